# SPDX-License-Identifier: BSD-3-Clause
"""HiGHS: what it cannot solve raises; the sparse classifier by hand."""

import numpy as np
import pytest

from leaveout.engine._problem import Problem
from leaveout.exceptions import LeaveoutError
from leaveout.lp._highs import solve_sparse_linear
from leaveout.lp._lpm import solve_lpm


def test_a_kernel_beyond_what_highs_takes_raises():
    K = 1e200 * np.array([[1.0, 0.2], [0.2, 1.0]])
    with pytest.raises(LeaveoutError, match="HiGHS found no optimum"):
        solve_lpm(Problem(K, np.array([1.0, -1.0]), np.ones(2)))


def test_sparse_classifier_uses_the_feature_that_separates():
    """By hand: w = (1, 0), b = -2 puts the inner samples on the margin."""
    Z = np.array([[0.0, 3.0], [1.0, 3.0], [3.0, 3.0], [4.0, 3.0]])
    found = solve_sparse_linear(Z, np.array([-1.0, -1.0, 1.0, 1.0]), C=10.0)
    assert found.coef == pytest.approx([1.0, 0.0])
    assert found.intercept == pytest.approx(-2.0)
    assert found.objective == pytest.approx(1.0)
    assert abs(found.duality_gap) < 1e-9
