# SPDX-License-Identifier: BSD-3-Clause
"""One-vs-one votes and values per class."""

from itertools import product

import numpy as np
import pytest
from sklearn.utils.multiclass import _ovr_decision_function

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
