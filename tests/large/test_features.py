# SPDX-License-Identifier: BSD-3-Clause
"""Rows as features: the same in memory and streamed, whole or in part."""

import numpy as np
import pytest
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import FunctionTransformer

from leaveout.large._features import Encode, FeatureMap, FeatureRows
from leaveout.large._sources import open_rows


def streamed(rng, transformer, n_threads=1):
    X, y = rng.standard_normal((50, 3)), np.arange(50) % 3
    feature_map = FeatureMap.around(transformer, X)
    encode = Encode(feature_map, np.array([0, 1]), np.array([1.0, 2.0]))
    source = open_rows(X, y, np.linspace(0.0, 1.0, 50), rows_at_once=8)
    rows = FeatureRows(source, encode, 50, feature_map.n_components, n_threads)
    return rows, X, feature_map


@pytest.mark.parametrize("index", [[], [3], [3, 4, 40], list(range(50))])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_gathered_rows_are_those_kept_in_memory(rng, index, n_threads):
    transformer = RBFSampler(n_components=4, random_state=0).fit(np.zeros((1, 3)))
    rows, X, feature_map = streamed(rng, transformer, n_threads)
    index = np.array(index, dtype=np.intp)
    mine, kept = rows.gather(index), rows.in_memory().gather(index)
    np.testing.assert_array_equal(mine.index, index)
    np.testing.assert_allclose(mine.Z, kept.Z, rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(mine.codes, kept.codes)
    np.testing.assert_array_equal(mine.weight, kept.weight)
    if index.size:
        np.testing.assert_allclose(mine.Z, feature_map(X[index]), rtol=1e-14)


def test_unknown_classes_have_no_weight(rng):
    rows, _, _ = streamed(rng, None)
    block = rows.in_memory().source.blocks[0]
    np.testing.assert_array_equal(block.codes, [0, 1, -1, 0, 1, -1, 0, 1])
    given = np.linspace(0.0, 1.0, 50)[:8]
    np.testing.assert_array_equal(block.weight, given * [1, 2, 0, 1, 2, 0, 1, 2])


def test_a_transformer_that_returns_its_input_does_not_change_it(rng):
    X = rng.standard_normal((5, 2))
    before = X.copy()
    Z = FeatureMap.around(FunctionTransformer(), X)(X)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-15)
