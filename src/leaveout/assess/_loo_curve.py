# SPDX-License-Identifier: BSD-3-Clause
"""``loo_curve``: the leave-one-out error for every C between two ends."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.adapt._checks import check_penalty
from leaveout.adapt._prepare import prepare
from leaveout.exceptions import CertificateWarning
from leaveout.loo._summary import Summary, as_percent
from leaveout.loo._task import svm_subproblems
from leaveout.methods._curve import trace_curve
from leaveout.run._parallel import limit_blas


@dataclass(frozen=True, eq=False, repr=False)
class LooCurve(Summary):
    """The exact leave-one-out error as a step function of C.

    Parameters
    ----------
    breakpoints : ndarray of shape (k + 1,)
        Ends of the intervals, ascending from C_min to C_max.
    errors : ndarray of shape (k,)
        Fraction of wrong samples on each open interval. If the intercept is not unique,
        the midpoint of its interval decides, as in :class:`LooResult`.
    n_ambiguous : ndarray of shape (k,)
        Number of samples whose label depends on the choice among optimal intercepts.
    n_samples : int
        Number of samples.
    n_uncertified : int
        Number of samples whose path did not pass its checks.
    counts : mapping
        Number of events, paths, factorisations, restarts, checks; seconds.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two classes
    >>> curve = lo.loo_curve(lo.SVC(gamma=0.1), X, y, C_max=100)
    >>> curve
    <LooCurve: smallest error 3.0 %, for C from 1.71 to 2.099>
    >>> curve.n_ambiguous_at([0.1, 1.0])
    array([0, 0])
    """

    __module__ = "leaveout"

    breakpoints: FloatArray
    errors: FloatArray
    n_ambiguous: IntArray
    n_samples: int
    n_uncertified: int = 0
    counts: Mapping[str, float] = field(default_factory=dict)

    @property
    def C_min(self) -> float:  # noqa: N802
        """Lower end of the range of C."""
        return float(self.breakpoints[0])

    @property
    def C_max(self) -> float:  # noqa: N802
        """Upper end of the range of C."""
        return float(self.breakpoints[-1])

    @property
    def best_error(self) -> float:
        """Smallest error."""
        return float(self.errors.min())

    @property
    def best_interval(self) -> tuple[float, float]:
        """Interval of C with the smallest error; the lowest if there are several."""
        best = self.errors == self.errors.min()
        start = int(np.argmax(best))
        length = int(np.argmin(np.append(best[start:], False)))
        return float(self.breakpoints[start]), float(self.breakpoints[start + length])

    def error_at(self, C: Any) -> Any:
        """Return the error at each C between C_min and C_max.

        At a breakpoint it is the error of the interval above.
        """
        return self.errors[self._interval_of(C)]

    def n_ambiguous_at(self, C: Any) -> Any:
        """Return the number of ambiguous samples at each C; see :meth:`error_at`."""
        return self.n_ambiguous[self._interval_of(C)]

    def _interval_of(self, C: Any) -> Any:
        C = np.asarray(C, dtype=np.float64)
        if not np.all((self.C_min <= C) & (self.C_max >= C)):
            raise ValueError(
                f"C must be between {self.C_min:g} and {self.C_max:g}, the range of "
                "the curve. Call loo_curve with a wider range, C_min and C_max."
            )
        found = np.searchsorted(self.breakpoints, C, side="right") - 1
        return np.minimum(found, self.errors.shape[0] - 1)

    _title = "Leave-one-out error over C"

    def _verdict(self) -> str:
        low, high = self.best_interval
        error = as_percent(self.best_error)
        return f"smallest error {error}, for C from {low:.4g} to {high:.4g}"

    def _rows(self) -> list[tuple[str, Any]]:
        low, high = self.best_interval
        at_best = self.n_ambiguous_at(0.5 * (low + high))
        return [
            ("samples", self.n_samples),
            ("C", f"{self.C_min:g} to {self.C_max:g}"),
            ("steps", self.errors.shape[0]),
            ("best error", as_percent(self.best_error)),
            ("for C", f"{low:.6g} to {high:.6g}"),
            ("ambiguous", f"{at_best} there, at most {self.n_ambiguous.max()}"),
            ("not certified", self.n_uncertified),
            ("events", int(self.counts.get("events", 0))),
            ("restarts", int(self.counts.get("restarts", 0))),
            ("seconds", f"{self.counts.get('seconds', 0.0):.3g}"),
        ]


def loo_curve(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    C_min: float = 1e-2,
    C_max: float = 1e3,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> LooCurve:
    """Compute the exact leave-one-out error of a two-class SVC for every C at once.

    The optimum without sample r is piecewise affine in C. It is followed from C_min to
    C_max for every r; the error changes where the decision value of sample r changes
    sign. Unlike a grid, this covers every C in the range.

    Parameters
    ----------
    estimator : sklearn.svm.SVC or leaveout.SVC, or a Pipeline that ends in one
        Classifier for two classes. It does not need to be fitted and is not changed;
        its own C is ignored. The curve needs one kernel for all folds: steps of a
        Pipeline are fitted once on all rows, with a warning, and ``gamma="scale"`` and
        ``class_weight="balanced"`` are resolved there.
    C_min, C_max : float, default=1e-2, 1e3
        Ends of the range, 0 < C_min < C_max.
    X, y, sample_weight, n_jobs
        As in :func:`leave_one_out`.

    Returns
    -------
    LooCurve
        ``breakpoints``, ``errors``, ``n_ambiguous``, ``best_interval``, ``error_at``.

    References
    ----------
    .. [1] T. Hastie, S. Rosset, R. Tibshirani and J. Zhu, "The entire regularization
       path for the support vector machine", Journal of Machine Learning Research 5,
       2004.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> curve = lo.loo_curve(lo.SVC(gamma=0.1), X[50:], y[50:], C_max=100)
    >>> low, high = curve.best_interval
    >>> print(f"error {curve.best_error:.2f} for C from {low:.4f} to {high:.4f}")
    error 0.03 for C from 1.7105 to 2.0994
    >>> curve.error_at([0.1, 1.0, 10.0])
    array([0.09, 0.04, 0.05])
    """
    low = check_penalty(C_min, "C_min")
    high = check_penalty(C_max, "C_max")
    if low >= high:
        raise ValueError(f"C_min must be below C_max; got {C_min!r} and {C_max!r}.")
    task, plan = prepare(
        estimator,
        X,
        y,
        sample_weight=sample_weight,
        n_jobs=n_jobs,
        psd_for="loo_curve",
        frozen_for="loo_curve",
    )
    if len(task.target.classes) != 2:
        raise ValueError(
            f"y has {len(task.target.classes)} classes, but loo_curve is for two. Use "
            "loo_path, which takes a list of C and any number of classes."
        )
    [sub] = svm_subproblems(task, whole=True)
    weights = replace(sub.problem, C=sub.problem.C / float(task.params.C))
    truth = np.where(task.target.codes < 0, 0.0, sub.problem.y)
    with limit_blas(1):
        traced = trace_curve(weights, low, high, truth=truth, n_threads=plan.n_threads)
    n = weights.n_samples
    curve = LooCurve(
        traced.breakpoints, traced.n_wrong / n, traced.n_ambiguous, n,
        traced.n_uncertified, traced.counts,
    )  # fmt: skip
    if curve.n_uncertified:
        warnings.warn(
            f"{curve.n_uncertified} of {curve.n_samples} paths did not pass their "
            "checks, so the curve may be inaccurate. Compare it with leave_one_out at "
            "the C you choose, or use a smaller C_max.",
            CertificateWarning,
            stacklevel=2,
        )
    return curve
