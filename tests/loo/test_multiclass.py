# SPDX-License-Identifier: BSD-3-Clause
"""One-vs-one votes and values per class."""

from itertools import product

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.svm import SVC
from sklearn.utils.multiclass import _ovr_decision_function

import leaveout as lo
from leaveout.loo._multiclass import class_pairs, is_settled, one_value_per_class, vote


@pytest.mark.parametrize("n_classes", [3, 4, 6])
def test_votes_and_values_per_class(n_classes, rng):
    values = rng.normal(size=(50, n_classes * (n_classes - 1) // 2)).round()
    np.testing.assert_array_equal(
        one_value_per_class(values),
        _ovr_decision_function(values < 0, -values, n_classes),
    )
    for row, winner in zip(values, vote(values), strict=True):
        votes = [0] * n_classes
        for value, (i, j) in zip(row, class_pairs(n_classes), strict=True):
            votes[i if value > 0 else j] += 1
        assert winner == votes.index(max(votes))


def test_zero_is_a_vote_for_the_second_of_two_classes():
    np.testing.assert_array_equal(vote(np.array([[-1.0], [0.0], [1.0]])), [0, 1, 1])


@pytest.mark.parametrize("n_classes", [3, 4, 5])
def test_settled_votes_are_those_that_no_choice_of_the_open_signs_changes(
    n_classes, rng
):
    signs = rng.choice([-1, 0, 1], size=(200, n_classes * (n_classes - 1) // 2))
    settled = is_settled(signs, n_classes)
    assert 0 < settled.sum() < settled.size
    for row, found in zip(signs, settled, strict=True):
        open_ = np.flatnonzero(row == 0)
        tries = np.tile(row.astype(float), (2**open_.size, 1))
        tries[:, open_] = list(product((-1.0, 1.0), repeat=open_.size))
        assert found == (np.unique(vote(tries)).size == 1)


@pytest.mark.filterwarnings("ignore::leaveout.SingletonClassWarning")
@pytest.mark.parametrize("class_weight", [None, {0: 3.0, 2: 0.5}, "balanced"])
def test_paths_of_pairs_equal_refits(class_weight):
    """Unequal classes, one with a single sample, copies, weights; C up to any bound."""
    rng = np.random.default_rng(7)
    sizes = [14, 9, 6, 1]
    y = np.repeat(range(4), sizes)
    X = rng.normal(size=(30, 3)) + 1.2 * np.eye(4)[y][:, :3]
    X[[3, 16]], X[[25]] = X[[4, 15]], X[[24]]
    weight = rng.choice([0.5, 1.0, 2.0], size=30)
    Cs = [0.05, 1.0, 20.0, 1e3, 1e4]
    svc = SVC(gamma=0.4, decision_function_shape="ovo", class_weight=class_weight)
    path = lo.loo_path(svc, X, y, Cs=Cs, sample_weight=weight)
    n_compared = 0
    for C, found in zip(Cs, path.results, strict=True):
        for r in range(29):  # without the last sample there are three classes
            kept = np.arange(30) != r
            own = clone(svc).set_params(C=C, tol=1e-9, cache_size=10)
            own.fit(X[kept], y[kept], sample_weight=weight[kept])
            unique = found.lower[r] == found.upper[r]
            if not unique or found.ambiguous[r]:
                continue
            values = own.decision_function(X[r : r + 1])[0]
            np.testing.assert_allclose(found.decision_values[r], values, 1e-4, 1e-4)
            if np.abs(values).min() > 1e-3:
                assert found.predictions[r] == own.predict(X[r : r + 1])[0]
            n_compared += 1
    assert n_compared > 100
