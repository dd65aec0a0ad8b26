# SPDX-License-Identifier: BSD-3-Clause
"""The curve over C against leave_one_out and an interior point at single C."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.agreement import decided
from oracles.binary import loo_intervals
from oracles.problems import DEGENERATE, KERNELS, random_case
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from solved import loo_walk

import leaveout as lo
from leaveout.assess._loo_curve import LooCurve
from leaveout.data import make_mixture
from leaveout.engine._problem import Problem
from leaveout.kernel._gram import gram_matrix
from leaveout.methods._curve import trace_curve

# Values nearer to 0 than this have no sign.
NO_SIGN = 1e-9
TWO_CLASSES = [name for name, case in DEGENERATE.items() if len(set(case.y)) == 2]

pytestmark = pytest.mark.filterwarnings("ignore::leaveout.SingletonClassWarning")


def curve_of(problem, C_min, C_max, **options):
    traced = trace_curve(problem, C_min, C_max, **options)
    n, (breakpoints, n_wrong, *rest) = problem.n_samples, traced
    return LooCurve(breakpoints, n_wrong / n, rest[0], n, *rest[1:])


def away_from_steps(curve, Cs):
    """Those C that are not on a breakpoint, to 1e-9."""
    near = np.abs(curve.breakpoints[None, :] / Cs[:, None] - 1.0).min(axis=1) <= 1e-9
    return Cs[~near]


def weights_of(case):
    """The problem at C = 1: C_i relative to their median."""
    return Problem(case.K, case.y, case.C / np.median(case.C), case.fit_intercept)


def count_wrong(f, y):
    """(wrong for sure, wrong at most): f that is 0 to rounding may go either way."""
    tie = np.abs(f) <= NO_SIGN
    wrong = np.where(f >= 0, 1.0, -1.0) != y
    return np.sum(wrong & ~tie), np.sum(wrong | tie)


def assert_curve_is_walk(problem, curve, Cs):
    """Equal to walks at the C given: exactly, but for values that have no sign."""
    for C in away_from_steps(curve, Cs):
        boxes = C * problem.C
        loo = loo_walk(Problem(problem.K, problem.y, boxes, problem.fit_intercept))
        least, most = count_wrong(loo.values, problem.y)
        assert least <= round(curve.error_at(C) * curve.n_samples) <= most, C
        low, high = loo.lower, loo.upper
        sure = (low < -NO_SIGN) & (high > NO_SIGN)
        open_ = (low <= NO_SIGN) & (high >= -NO_SIGN)
        assert sure.sum() <= curve.n_ambiguous_at(C) <= open_.sum(), C


def assert_sound(curve):
    """What every curve has, whatever the data."""
    assert curve.n_uncertified == 0
    assert (np.diff(curve.breakpoints) > 0).all()
    changes = np.diff(curve.errors).astype(bool) | np.diff(curve.n_ambiguous).astype(
        bool
    )
    assert changes.all()
    assert curve.errors.shape == curve.n_ambiguous.shape
    assert curve.breakpoints.shape == (curve.errors.size + 1,)
    low, high = curve.best_interval
    assert curve.error_at(0.5 * (low + high)) == curve.best_error == curve.errors.min()


def simulation():
    X, labels = make_mixture(50, 5, random_state=1)
    return gram_matrix(X, kernel="rbf", gamma=0.1), 2.0 * labels - 1.0


def cancer(kernel, **parameters):
    X, labels = load_breast_cancer(return_X_y=True)
    K = gram_matrix(scale(X)[:50], kernel=kernel, **parameters)
    return K, 2.0 * labels[:50] - 1.0


def repeated():
    rng = np.random.default_rng(3)
    X = np.repeat(rng.normal(size=(16, 2)), 3, axis=0)
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=48) > 0, 1.0, -1.0)
    return gram_matrix(X, kernel="rbf", gamma=0.5), y


DATA = {
    "simulation": simulation,
    "cancer_rbf": lambda: cancer("rbf", gamma=0.03),
    "cancer_linear": lambda: cancer("linear"),
    "cancer_poly": lambda: cancer("poly", gamma=0.03, degree=2, coef0=1.0),
    "repeated": repeated,
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "plain") for name in DATA),
        ("simulation", "weights"),
        ("repeated", "weights"),
        ("cancer_poly", "no_intercept"),
    ],
)
def test_equals_leave_one_out_at_random_penalties(name, kind, rng):
    K, y = DATA[name]()
    weights = 10 ** rng.uniform(-1, 1, y.size) if kind == "weights" else None
    intercept = kind != "no_intercept"
    svc = lo.SVC(kernel="precomputed", fit_intercept=intercept)
    curve = lo.loo_curve(svc, K, y, sample_weight=weights)
    assert_sound(curve)
    assert curve.counts["restarts"] == 0
    n_compared = 0
    for C in away_from_steps(curve, 10 ** rng.uniform(-2, 3, 50)):
        svc.set_params(C=C)
        res = lo.leave_one_out(svc, K, y, sample_weight=weights)
        assert curve.error_at(C) == res.error, C
        assert curve.n_ambiguous_at(C) == res.n_ambiguous, C
        n_compared += 1
    assert n_compared >= 45


@pytest.mark.parametrize("name", TWO_CLASSES)
def test_degenerate_problems(name, rng):
    problem = weights_of(DEGENERATE[name])
    curve = curve_of(problem, 1e-3, 1e4)
    assert_sound(curve)
    assert curve.counts["restarts"] == 0
    assert_curve_is_walk(problem, curve, 10 ** rng.uniform(-3, 4, 20))


@pytest.mark.parametrize("kernel", KERNELS)
def test_small_problems_against_interior_point(kernel, rng):
    for k in range(3):
        case = random_case(rng, kernel=kernel, C=1.0, max_n=12)
        problem = weights_of(case)
        curve = curve_of(problem, 1e-3, 1e3)
        assert_sound(curve)
        for C in away_from_steps(curve, 10 ** rng.uniform(-3, 3, 3)):
            truth = loo_intervals(case.K, case.y, C * problem.C, case.fit_intercept)
            assert truth.kkt.max() <= 1e-10
            correct, error = decided(truth)
            n_open = case.y.size - correct.sum() - error.sum()
            ambiguous = (truth.low < -1e-8) & (truth.high > 1e-8)
            # y = +1 takes f = 0 as correct, y = -1 as wrong; by the middle otherwise.
            wrong = error | (ambiguous & (truth.value < -1e-8))
            tie = ~correct & ~error & (np.abs(truth.value) <= 1e-8)
            found = round(curve.error_at(C) * curve.n_samples)
            assert wrong.sum() <= found <= wrong.sum() + tie.sum(), (k, C)
            assert ambiguous.sum() <= curve.n_ambiguous_at(C) <= n_open, (k, C)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), fit_intercept=st.booleans())
def test_any_small_problem(seed, fit_intercept):
    rng = np.random.default_rng(seed)
    problem = weights_of(random_case(rng, max_n=15, C=1.0, fit_intercept=fit_intercept))
    curve = curve_of(problem, 1e-2, 1e3)
    assert_sound(curve)
    assert_curve_is_walk(problem, curve, 10 ** rng.uniform(-2, 3, 4))


def test_hand_computed_curves():
    # Orthogonal points: the value of a left-out one is b alone. Of two against two with
    # a +1 left out, b = -1 + C/2 until C = 4/3; then nobody is bounded and b = -1/3.
    curve = curve_of(Problem(np.eye(4), [1, 1, -1, -1], np.ones(4)), 1e-2, 10)
    assert curve.breakpoints.tolist() == [1e-2, 10.0]
    assert curve.errors.tolist() == [1.0]
    assert curve.n_ambiguous.tolist() == [0]
    # Of three against two with a +1 left out, b is between -1 + C and 1 - C, then 0.
    signs = [1, 1, 1, -1, -1]
    curve = curve_of(Problem(np.eye(5), signs, np.ones(5)), 1e-2, 10)
    assert curve.errors.tolist() == [0.4]
    assert curve.n_ambiguous.tolist() == [3]


def test_hand_computed_end_of_ambiguity():
    # Row 0 leaves two against two behind, all orthogonal, and has K = 0.6 with both +1:
    # f = 1.2 C + b with b from -1 + C to 1 - C, above 0 for C > 1 / 2.2.
    case = DEGENERATE["no_free_vector"]
    curve = curve_of(weights_of(case), 0.2, 0.8)
    step = np.argmin(np.abs(curve.breakpoints - 1 / 2.2))
    assert curve.breakpoints[step] == pytest.approx(1 / 2.2, rel=1e-14)
    assert curve.n_ambiguous[step - 1] == curve.n_ambiguous[step] + 1


def test_majority_by_one_is_ambiguous_for_tiny_boxes():
    case = DEGENERATE["majority_by_one_tiny_C"]
    curve = curve_of(weights_of(case), 1e-3, 1e3)
    assert curve.n_ambiguous[0] == (case.y > 0).sum()
    assert curve.n_ambiguous[-1] == 0


def test_threads_and_inputs(rng):
    case = random_case(rng, n=40, kernel="rbf", C=1.0)
    problem = weights_of(case)
    for array in (problem.K, problem.y, problem.C):
        array.flags.writeable = False
    one = curve_of(problem, 1e-2, 1e2)
    two = curve_of(problem, 1e-2, 1e2, n_threads=2)
    np.testing.assert_array_equal(one.breakpoints, two.breakpoints)
    np.testing.assert_array_equal(one.errors, two.errors)


def test_a_failed_path_starts_again_and_is_counted(monkeypatch, rng):
    from leaveout.methods import _curve

    trace_path, calls = _curve.trace_path, []

    def fail_at_first(*args):
        status, *rest = trace_path(*args)
        calls.append(args[7])
        # Every path gets to its end at the second try only.
        return (
            status if calls.count(args[7]) > 1 else _curve.PathStatus.DRIFTED,
            *rest,
        )

    problem = weights_of(random_case(rng, n=20, kernel="rbf", C=1.0))
    wanted = curve_of(problem, 1e-2, 1e2)
    monkeypatch.setattr(_curve, "trace_path", fail_at_first)
    curve = curve_of(problem, 1e-2, 1e2)
    assert curve.counts["restarts"] == curve.counts["paths"]
    assert curve.n_uncertified == 0
    np.testing.assert_allclose(curve.breakpoints, wanted.breakpoints, rtol=1e-10)
    np.testing.assert_array_equal(curve.errors, wanted.errors)


def test_a_path_that_always_fails_is_not_certified(monkeypatch, rng):
    from leaveout.methods import _curve

    trace_path = _curve.trace_path

    def fail(*args):
        C, (_, *rest) = args[8], trace_path(*args)
        return (_curve.PathStatus.STOOD, *rest[:2], C, 0, C, 0, 0)

    problem = weights_of(random_case(rng, n=6, kernel="rbf", C=1.0))
    monkeypatch.setattr(_curve, "trace_path", fail)
    curve = curve_of(problem, 1e-2, 1e2)
    assert curve.n_uncertified == 6


def test_result_object():
    curve = LooCurve(
        np.array([0.1, 1.0, 2.0, 5.0, 10.0]),
        np.array([0.3, 0.1, 0.1, 0.2]),
        np.array([0, 0, 2, 0]),
        n_samples=10,
        counts={"events": 7.0, "seconds": 0.5},
    )
    assert curve.best_interval == (1.0, 5.0)
    assert curve.error_at(0.1) == 0.3
    np.testing.assert_array_equal(curve.error_at([1.0, 10.0]), [0.1, 0.2])
    assert curve.n_ambiguous_at(2.5) == 2
    with pytest.raises(ValueError, match=r"between 0\.1 and 10"):
        curve.error_at(11.0)
    text = str(curve)
    assert "least error   0.1000" in text
    assert "1 to 5" in text
