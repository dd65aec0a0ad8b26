# SPDX-License-Identifier: BSD-3-Clause
"""Independent reference solutions: interior-point QPs and LIBSVM.

The problem, for n points with Gram matrix K, signs y and upper bounds C::

    min_{w,b}  1/2 ||w||^2 + sum_i C_i max(0, 1 - y_i (<w, phi_i> + b))

b is free with ``fit_intercept=True`` and 0 otherwise. The code is slow
and simple. `svc_clarabel` is the reference: an interior-point solution, polished on its
active set, with a measure of its optimality. `svc_libsvm` is a second solver, accurate
to about 1e-6, because LIBSVM stores kernel values in single precision; `svc_refit`
polishes its solution.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import chain

import clarabel
import numpy as np
from scipy import linalg, sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC


@dataclass(frozen=True)
class Optimum:
    """A solved SVM: signed coefficients beta = y alpha, g = K beta, all optimal b."""

    alpha: np.ndarray
    beta: np.ndarray
    g: np.ndarray
    b_low: float
    b_high: float
    objective: float
    gap: float
    kkt: float

    @property
    def b(self) -> float:
        """Midpoint of the interval of b, or its finite end."""
        return midpoint(self.b_low, self.b_high)

    @property
    def quality(self) -> float:
        """Distance from optimality: the larger of residual and gap."""
        return max(self.kkt, abs(self.gap))

    @property
    def f(self) -> np.ndarray:
        """Decision values on the training points, at the midpoint."""
        return self.g + self.b


@dataclass(frozen=True)
class LooIntervals:
    """Leave-one-out reference per row: the interval of y_r f(x_r) and its flags."""

    low: np.ndarray
    high: np.ndarray
    value: np.ndarray
    kkt: np.ndarray

    @property
    def correct(self) -> np.ndarray:
        return self.low > 0

    @property
    def error(self) -> np.ndarray:
        return self.high < 0

    @property
    def ambiguous(self) -> np.ndarray:
        return ~self.correct & ~self.error


def gap_rounding(K, C, beta, objective):
    """Return the relative gap due to rounding: f is accurate to a few eps of its terms.

    The hinge loss multiplies this by C: with C = 1e6 an exact solution shows 1e-9.
    """
    terms = np.maximum(1, np.abs(K) @ np.abs(beta))
    return 4 * np.finfo(float).eps * (C @ terms) / max(1.0, objective)


def midpoint(low, high):
    """Return the midpoint; the finite end if one is infinite; 0 if both are."""
    if np.isinf(low) and np.isinf(high):
        return 0.0
    if np.isinf(low) or np.isinf(high):
        return high if np.isinf(low) else low
    return low + 0.5 * (high - low)


def intercept_interval(g, y, C):
    """Return all b that minimise sum_i C_i max(0, 1 - y_i (g_i + b)).

    The weighted median of the breakpoints y_i - g_i: it needs no dual variables, so an
    alpha close to its bound does not matter.
    """
    order = np.argsort(y - g, kind="stable")
    breakpoints = (y - g)[order]
    cumulated = np.cumsum(C[order])
    positive, slack = C[y > 0].sum(), 1e-12 * C.sum()
    reached = cumulated >= positive - slack
    passed = cumulated > positive + slack
    low = breakpoints[np.argmax(reached)] if positive > 0 else -np.inf
    high = breakpoints[np.argmax(passed)] if passed.any() else np.inf
    return low, high


def certificate(K, y, C, beta, b):
    """Return (primal value, relative duality gap, KKT residual) of beta and b.

    The residual of point i is relative to max(1, sum_j |beta_j K_ij|); the bounds
    of beta must hold exactly, without a tolerance.
    """
    g, alpha = K @ beta, y * beta
    assert (alpha >= 0).all()
    assert (alpha <= C).all()
    slack = 1 - y * (g + b)
    primal = 0.5 * beta @ g + C @ np.maximum(0, slack)
    gap = (primal - (alpha.sum() - 0.5 * beta @ g)) / max(1.0, primal)
    too_small = np.where(alpha < C, slack, 0)  # h < 1 although alpha could increase
    too_large = np.where(alpha > 0, -slack, 0)  # h > 1 although alpha could decrease
    violation = np.maximum(0, np.maximum(too_small, too_large))
    return primal, gap, np.max(violation / np.maximum(1, np.abs(K) @ np.abs(beta)))


def svc_clarabel(K, y, C, fit_intercept=True):
    """Solve the dual by an interior point, then polish it on its active set.

    With K = L L^T the dual reads ``min 1/2 ||v||^2 - sum alpha`` with v = L^T beta,
    which is well posed for a singular K, too. The interior point ends at the centre of
    the optimal face; the best of it and its polished versions is returned. Check
    ``gap`` and ``kkt`` before using the result.
    """
    K, y, C = (np.asarray(a, dtype=np.float64) for a in (K, y, C))
    if fit_intercept and abs(y.sum()) == len(y):  # one class: w = 0, and |b| >= 1
        return _optimum(K, y, C, np.zeros(len(y)), True)
    best, scale = None, C.max()
    for _ in range(3):
        alpha = _interior_point(K, y, C, fit_intercept, scale)
        for candidate in chain([alpha], _polished(K, y, C, alpha, fit_intercept)):
            optimum = _optimum(K, y, C, candidate, fit_intercept)
            if best is None or optimum.quality < best.quality:
                best = optimum
            if best.kkt < 1e-14 and best.quality < 1e-12:  # gap: rounding of a sum
                return best
        if best.quality < 1e-11:
            break
        scale = max(alpha.max(), 1e-6 * scale)  # again, in units of the largest alpha
    return best


def _optimum(K, y, C, alpha, fit_intercept):
    """Return the solution that follows from alpha."""
    beta = y * alpha
    g = K @ beta
    low, high = intercept_interval(g, y, C) if fit_intercept else (0.0, 0.0)
    primal, gap, kkt = certificate(K, y, C, beta, midpoint(low, high))
    balance = abs(beta.sum()) / C.max() if fit_intercept else 0.0
    return Optimum(alpha, beta, g, low, high, primal, gap, max(kkt, balance))


def _interior_point(K, y, C, fit_intercept, scale):
    """Return the dual alpha; clarabel sees alpha / scale and v / scale."""
    n = len(y)
    eigenvalues, vectors = np.linalg.eigh(K)
    keep = eigenvalues > 1e-15 * max(eigenvalues[-1], 1e-300)
    L = vectors[:, keep] * np.sqrt(eigenvalues[keep])
    rank = L.shape[1]
    equalities = [np.hstack([L.T * y, -np.eye(rank)])]
    if fit_intercept:
        equalities.append(np.hstack([y, np.zeros(rank)])[None, :])
    box = sparse.hstack(
        [sparse.csc_array(sparse.identity(n)), sparse.csc_array((n, rank))]
    )
    A = sparse.vstack([sparse.csc_array(np.vstack(equalities)), box, -box])
    n_equal = A.shape[0] - 2 * n
    bounds = np.concatenate([np.zeros(n_equal), C / scale, np.zeros(n)])
    P = sparse.block_diag(
        [sparse.csc_array((n, n)), scale * sparse.csc_array(sparse.identity(rank))]
    )
    q = np.concatenate([-np.ones(n), np.zeros(rank)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    cones = [clarabel.ZeroConeT(n_equal), clarabel.NonnegativeConeT(2 * n)]
    P, A = sparse.csc_matrix(P), sparse.csc_matrix(A)
    solution = clarabel.DefaultSolver(P, q, A, bounds, cones, settings).solve()
    return np.clip(scale * np.asarray(solution.x[:n]), 0, C)


def _polished(K, y, C, alpha, fit_intercept, rounds=30):
    """Yield alphas from active-set steps that start at the interior point.

    Each round solves h = 1 on the free points (least squares: the smallest change of
    the free alphas, so a singular K does no harm), then moves the points that break a
    bound or the sign of their slack.
    """
    beta = y * alpha
    low, high = intercept_interval(K @ beta, y, C) if fit_intercept else (0.0, 0.0)
    slack = 1 - y * (K @ beta + midpoint(low, high))
    for share in (1.0, 1e-2, 1e-4, 1e-6):
        at_zero = (slack < 0) & (alpha / C < -slack * share)
        at_C = (slack > 0) & (1 - alpha / C < slack * share)
        yield from _active_set(K, y, C, alpha, at_zero, at_C, fit_intercept, rounds)


def _active_set(K, y, C, alpha, at_zero, at_C, fit_intercept, rounds):
    seen = set()
    for _ in range(rounds):
        key = (at_zero.tobytes(), at_C.tobytes())
        if key in seen:
            return
        seen.add(key)
        free = ~at_zero & ~at_C
        start = np.where(at_zero, 0, np.where(at_C, C, alpha))
        beta, b = _solve_free(K, y, start, free, fit_intercept)
        trial = np.where(free, y * beta, start)
        yield np.clip(trial, 0, C)
        if b is None:  # no free point, so no step
            return
        h = y * (K @ (y * trial) + b)
        eps = 1e-13 * np.maximum(1, np.abs(K) @ np.abs(trial))
        at_zero = (at_zero & (h >= 1 - eps)) | (free & (trial <= 0))
        at_C = (at_C & (h <= 1 + eps)) | (free & (trial >= C))


def _solve_free(K, y, alpha, free, fit_intercept):
    """Return beta and b with h = 1 on the free points, with the smallest change."""
    beta, b = y * alpha, 0.0
    if not free.any():
        return beta, None
    m = int(free.sum())
    system = K[np.ix_(free, free)]
    if fit_intercept:
        ones = np.ones((m, 1))
        system = np.block([[system, ones], [ones.T, np.zeros((1, 1))]])
    inverse = np.linalg.pinv(system, rcond=1e-14)
    for _ in range(3):  # later rounds refine the solution
        residual = (y - K @ beta - b)[free]
        if fit_intercept:
            residual = np.append(residual, -beta.sum())
        step = inverse @ residual
        beta[free] += step[:m]
        b += step[m] if fit_intercept else 0.0
    return beta, b


def svc_libsvm(K, y, C, fit_intercept=True, tol=1e-10, max_iter=5_000_000):
    """Solve by scikit-learn's SVC on the precomputed kernel, always with intercept.

    Returns (beta, b, f, converged): f are the decision values on the training points.
    """
    if not fit_intercept:
        raise ValueError("LIBSVM always has an intercept")
    model = SVC(kernel="precomputed", C=1.0, tol=tol, max_iter=max_iter, cache_size=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(K, y, sample_weight=C)
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    b = float(model.intercept_[0])
    return beta, b, K @ beta + b, model.fit_status_ == 0


def svc_refit(K, y, C, cap=1000, certain=1e-12):
    """Solve by LIBSVM, then h = 1 on its free vectors in double precision.

    Returns None if LIBSVM needs more than ``cap`` iterations per sample, or if no
    optimum to ``certain`` is found within ten rounds of letting vectors in and out.
    """
    beta, _, _, converged = svc_libsvm(K, y, C, tol=1e-8, max_iter=cap * len(y))
    if not converged:
        return None
    alpha = np.clip(y * beta, 0, C)
    free = (alpha > 0) & (alpha < C)
    for _ in range(10):
        alpha, b = _solve_margin(K, y, alpha, free)
        optimum = _optimum(K, y, C, np.clip(alpha, 0, C), True)
        if np.isfinite(optimum.b) and alpha.any() and optimum.kkt <= certain:
            return optimum
        if not free.any():
            return None
        h = y * (K @ (y * alpha) + b)
        stay = free & (alpha > 0) & (alpha < C)
        enter = np.where(optimum.alpha > 0, h > 1 + 1e-12, h < 1 - 1e-12)
        alpha, free = optimum.alpha, stay | (~free & enter)
    return None


def _solve_margin(K, y, alpha, free):
    """Return alpha with h = 1 on the free points, the others as they are, and b."""
    bounded = y * np.where(free, 0.0, alpha)
    right = np.append((y - K @ bounded)[free], -bounded.sum())
    ones = np.ones((np.count_nonzero(free), 1))
    left = np.block([[K[np.ix_(free, free)], ones], [ones.T, np.zeros((1, 1))]])
    solved, *_ = linalg.lstsq(left, right, cond=1e-13, lapack_driver="gelsy")
    alpha = alpha.copy()
    alpha[free] = y[free] * solved[:-1]
    return alpha, float(solved[-1])


def loo_intervals(K, y, C, fit_intercept=True, rows=None):
    """Leave out each row, solve again, and return the intervals of y_r f(x_r).

    Without the only row of a class, one class remains: with an intercept the interval
    is then (-inf, -1], a definite error. A margin of exactly 0 at an end counts as
    ambiguous.
    """
    rows = np.arange(len(y)) if rows is None else np.asarray(rows)
    found = [_left_out(K, y, C, fit_intercept, r) for r in rows]
    return LooIntervals(*(np.array(column) for column in zip(*found, strict=True)))


def _left_out(K, y, C, fit_intercept, r):
    """Return (low, high, value, kkt) of one row."""
    others = np.delete(np.arange(len(y)), r)
    fit = svc_clarabel(K[np.ix_(others, others)], y[others], C[others], fit_intercept)
    g = K[r, others] @ fit.beta
    low, high = sorted(y[r] * (g + b) for b in (fit.b_low, fit.b_high))
    return low, high, midpoint(low, high), fit.kkt
