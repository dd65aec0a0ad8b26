# SPDX-License-Identifier: BSD-3-Clause
"""The curve over C against leave_one_out and an interior-point solver at single C."""

import numpy as np
import pytest
from oracles.binary import loo_intervals
from oracles.problems import DEGENERATE, KERNELS, random_case
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from solved import loo_walk

import leaveout as lo
from leaveout.assess._loo_curve import LooCurve
from leaveout.engine._problem import Problem
from leaveout.kernel._gram import gram_matrix
from leaveout.methods import _curve

# Values closer to 0 than this have no sign.
NO_SIGN = 1e-8
TWO_CLASSES = [name for name, case in DEGENERATE.items() if len(set(case.y)) == 2]


def curve_of(problem, C_min, C_max, **options):
    traced = _curve.trace_curve(problem, C_min, C_max, **options)
    n, (breakpoints, n_wrong, *rest) = problem.n_samples, traced
    return LooCurve(breakpoints, n_wrong / n, rest[0], n, *rest[1:])


def away_from_steps(curve, Cs):
    """Return the C that are not within 1e-9 of a breakpoint."""
    near = np.abs(curve.breakpoints[None, :] / Cs[:, None] - 1.0).min(axis=1) <= 1e-9
    return Cs[~near]


def weights_of(case):
    """Return the problem at C = 1: C_i relative to their median."""
    return Problem(case.K, case.y, case.C / np.median(case.C), case.fit_intercept)


def assert_counts(curve, C, y, low, value, high):
    """Compare counts at C; an f that is 0 up to rounding may count either way."""
    tie = np.abs(value) <= NO_SIGN
    wrong = np.where(value >= 0, 1.0, -1.0) != y
    found = round(curve.error_at(C) * curve.n_samples)
    assert np.sum(wrong & ~tie) <= found <= np.sum(wrong | tie), C
    sure = (low < -NO_SIGN) & (high > NO_SIGN)
    open_ = (low <= NO_SIGN) & (high >= -NO_SIGN)
    assert sure.sum() <= curve.n_ambiguous_at(C) <= open_.sum(), C


def assert_sound(curve):
    """Check what holds for every curve."""
    assert curve.n_uncertified == 0
    assert curve.counts["restarts"] == 0
    assert (np.diff(curve.breakpoints) > 0).all()
    assert np.diff([curve.errors, curve.n_ambiguous]).any(axis=0).all()
    assert curve.breakpoints.shape == (curve.errors.size + 1,)
    low, high = curve.best_interval
    assert curve.error_at(0.5 * (low + high)) == curve.best_error == curve.errors.min()


@pytest.mark.parametrize(
    ("kernel", "weighted", "fit_intercept"),
    [("linear", False, True), ("rbf", True, True), ("poly", True, False)],
)
def test_equals_leave_one_out_on_real_data(kernel, weighted, fit_intercept, rng):
    X, labels = load_breast_cancer(return_X_y=True)
    K, y = gram_matrix(scale(X)[:50], kernel=kernel), labels[:50]
    weights = 10 ** rng.uniform(-1, 1, y.size) if weighted else None
    svc = lo.SVC(kernel="precomputed", fit_intercept=fit_intercept)
    curve = lo.loo_curve(svc, K, y, sample_weight=weights)
    assert_sound(curve)
    Cs = away_from_steps(curve, 10 ** rng.uniform(-2, 3, 30))
    assert Cs.size >= 25
    for C in Cs:
        found = lo.leave_one_out(svc.set_params(C=C), K, y, sample_weight=weights)
        assert curve.error_at(C) == found.error, C
        assert curve.n_ambiguous_at(C) == found.n_ambiguous, C


@pytest.mark.parametrize("name", TWO_CLASSES)
def test_degenerate_problems(name, rng):
    problem = weights_of(DEGENERATE[name])
    curve = curve_of(problem, 1e-3, 1e4)
    assert_sound(curve)
    for C in away_from_steps(curve, 10 ** rng.uniform(-3, 4, 20)):
        at = Problem(problem.K, problem.y, C * problem.C, problem.fit_intercept)
        loo = loo_walk(at)
        assert_counts(curve, C, problem.y, loo.lower, loo.values, loo.upper)


@pytest.mark.parametrize("kernel", KERNELS)
def test_small_problems_against_interior_point(kernel, rng):
    for _ in range(3):
        case = random_case(rng, kernel=kernel, C=1.0, max_n=12)
        problem = weights_of(case)
        curve = curve_of(problem, 1e-3, 1e3)
        assert_sound(curve)
        for C in away_from_steps(curve, 10 ** rng.uniform(-3, 3, 3)):
            truth = loo_intervals(case.K, case.y, C * problem.C, case.fit_intercept)
            assert truth.kkt.max() <= 1e-10
            low, high = np.sort([case.y * truth.low, case.y * truth.high], axis=0)
            assert_counts(curve, C, case.y, low, case.y * truth.value, high)


def test_hand_computed_curves():
    # Orthogonal points: the value of a left-out one is b alone. With two against two
    # and a +1 left out, b = -1 + C/2 up to C = 4/3; then no sample is bounded, b =
    # -1/3.
    curve = curve_of(Problem(np.eye(4), [1, 1, -1, -1], np.ones(4)), 1e-2, 10)
    assert curve.breakpoints.tolist() == [1e-2, 10.0]
    assert curve.errors.tolist() == [1.0]
    assert curve.n_ambiguous.tolist() == [0]
    # With three against two and a +1 left out, b is between -1 + C and 1 - C, then 0.
    curve = curve_of(Problem(np.eye(5), [1, 1, 1, -1, -1], np.ones(5)), 1e-2, 10)
    assert curve.errors.tolist() == [0.4]
    assert curve.n_ambiguous.tolist() == [3]
    # Without row 0, two against two remain, all orthogonal; K = 0.6 with both +1:
    # f = 1.2 C + b with b from -1 + C to 1 - C, above 0 for C > 1 / 2.2.
    curve = curve_of(weights_of(DEGENERATE["no_free_vector"]), 0.2, 0.8)
    step = np.argmin(np.abs(curve.breakpoints - 1 / 2.2))
    assert curve.breakpoints[step] == pytest.approx(1 / 2.2, rel=1e-14)
    assert curve.n_ambiguous[step - 1] == curve.n_ambiguous[step] + 1


@pytest.mark.parametrize("always", [False, True])
def test_failed_paths_are_restarted_and_counted(always, monkeypatch, rng):
    problem = weights_of(random_case(rng, n=20, kernel="rbf", C=1.0))
    for array in (problem.K, problem.y, problem.C):
        array.flags.writeable = False
    wanted = curve_of(problem, 1e-2, 1e2)
    trace_path, seen = _curve.trace_path, set()

    def fail(*args):
        (arrived, *counts, end, pieces), r, C = trace_path(*args), *args[7:9]
        if always:
            return (False, *counts, C, pieces[:0])
        failed = r not in seen
        seen.add(r)
        return (arrived and not failed, *counts, end, pieces)

    monkeypatch.setattr(_curve, "trace_path", fail)
    curve = curve_of(problem, 1e-2, 1e2, n_threads=2)
    assert curve.n_uncertified == (20 if always else 0)
    if not always:
        assert curve.counts["restarts"] == curve.counts["paths"]
        np.testing.assert_allclose(curve.breakpoints, wanted.breakpoints, rtol=1e-10)
        np.testing.assert_array_equal(curve.errors, wanted.errors)


def test_result_object():
    C, errors = np.array([0.1, 1.0, 2.0, 5.0, 10.0]), np.array([0.3, 0.1, 0.1, 0.2])
    curve = LooCurve(C, errors, np.array([0, 0, 2, 0]), n_samples=10)
    assert curve.best_interval == (1.0, 5.0)
    assert curve.error_at([0.1, 1.0, 10.0]).tolist() == [0.3, 0.1, 0.2]
    assert curve.n_ambiguous_at(2.5) == 2
    with pytest.raises(ValueError, match=r"between 0\.1 and 10"):
        curve.error_at(11.0)
