# SPDX-License-Identifier: BSD-3-Clause
"""HonestLoo: errors, standard errors, choices, table."""

import numpy as np
import pytest

from leaveout.tune._honest import HonestLoo


def result(wrong, folds=None, params=None):
    wrong = np.asarray(wrong)
    folds = np.arange(wrong.size) if folds is None else np.asarray(folds)
    params = ({"C": 1.0},) * (folds.max() + 1) if params is None else params
    y = np.zeros(wrong.size, dtype=int)
    return HonestLoo(y, y + wrong, folds, params, 0.1, 2.0)


def test_standard_error_of_single_samples_is_the_binomial_one():
    honest = result([1, 0, 0, 1, 1, 0, 0, 0])
    assert honest.standard_error == pytest.approx(np.sqrt(3 / 8 * 5 / 8 / 8))
    assert honest.optimism == pytest.approx(3 / 8 - 0.1)


def test_standard_error_of_groups_grows_if_they_go_wrong_together():
    together = result([1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 2, 2])
    # As three samples that count twice each.
    assert together.standard_error == pytest.approx(np.sqrt(1 / 3 * 2 / 3 / 3))
    apart = result([1, 0, 1, 0, 1, 0], [0, 0, 1, 1, 2, 2])
    assert apart.standard_error == 0.0


def test_choices_are_counted():
    params = [{"C": 1.0, "gamma": g} for g in (0.1, 0.2, 0.1, 0.3, 0.1, 0.2)]
    honest = result([0] * 6, params=tuple(params))
    assert honest.choices == [
        ({"C": 1.0, "gamma": 0.1}, 3),
        ({"C": 1.0, "gamma": 0.2}, 2),
        ({"C": 1.0, "gamma": 0.3}, 1),
    ]
    assert "chosen C=1, gamma=0.1 in 3" in str(honest)
    assert "naive error   0.1000" in str(honest)


def test_table_is_short_and_names_folds_without_choice():
    params = tuple({"C": float(c)} for c in range(8))
    assert "… 3 other choices" in str(result([0] * 8, params=params))
    assert "nothing (one class)" in str(result([0, 1], params=({}, {"C": 1})))
