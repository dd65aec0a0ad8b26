# SPDX-License-Identifier: BSD-3-Clause
"""LPMClassifier and LOOMClassifier: classifiers fitted by linear programming."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from leaveout.adapt._prepare import fit_task
from leaveout.estimators._base import KernelClassifier, stack
from leaveout.exceptions import CertificateWarning
from leaveout.loo._leave_out import solve_task
from leaveout.lp._loom import LoomSolution, loom_bound


class LPMClassifier(KernelClassifier):
    r"""Kernel classifier with an L1 penalty on the coefficients.

    With :math:`f(x) = \sum_j a_j K(x, x_j) + b`, it solves the linear program::

        min  sum_j |a_j| + sum_i C_i max(0, 1 - y_i f(x_i))

    Most coefficients are zero at the optimum. The kernel does not need to be positive
    semi-definite. For two classes there is one binary classifier; for more, one per
    class against the rest, and the class with the largest value is predicted.

    Parameters
    ----------
    C : float, default=1.0
        Regularization parameter, the weight of the hinge losses. C_i is C times class
        weight times sample weight.
    kernel, degree, gamma, coef0
        As in :class:`SVC`.
    class_weight : dict or "balanced", default=None
        Factor of C per class; "balanced" is n_samples / (n_classes * count).
    fit_intercept : bool, default=True
        Whether f has an intercept b. It is not regularised.

    Attributes
    ----------
    expansion_coef_ : ndarray of shape (n_classifiers, n_samples)
        Signed coefficients a of all training samples, most of them 0.
    row_dual_ : ndarray of shape (n_classifiers, n_samples)
        Dual variables of the margin constraints, between 0 and C_i. Unlike in an SVM,
        they are not the coefficients.
    intercept_ : ndarray of shape (n_classifiers,)
        Intercept b. If several are optimal with these coefficients, the midpoint of
        their interval.
    objective_ : ndarray of shape (n_classifiers,)
        Optimal values.
    duality_gap_ : ndarray of shape (n_classifiers,)
        Relative difference between primal and dual value, a proof of optimality.
    support_ : ndarray of shape (n_centres,)
        Rows with a nonzero coefficient for some class.
    n_iter_ : ndarray of shape (n_classifiers,)
        Number of simplex iterations.
    classes_, class_weight_, support_vectors_, gamma_, shape_fit_ : object
        As in :class:`SVC`.

    See Also
    --------
    leave_one_out : Its exact leave-one-out error, by pivots from the optimal basis.
    SVC : L2 penalty on the weights in feature space.

    Notes
    -----
    A linear program may have several optima. HiGHS returns one of them, a vertex;
    :func:`leave_one_out` reports the range of values over all of them. A row with
    weight 0 is ignored.

    References
    ----------
    .. [1] K. Tsuda, G. Rätsch, S. Mika and K.-R. Müller, "Learning to predict the
       leave-one-out error of kernel based classifiers", ICANN 2001.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = lo.LPMClassifier(C=10, gamma=0.1).fit(X, y)
    >>> clf.expansion_coef_.shape, clf.support_.size
    ((3, 150), 13)
    >>> round(lo.leave_one_out(clf, X, y).error, 4)
    0.0267
    """

    __module__ = "leaveout"
    _family = "lpm"

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str | Callable[..., Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        class_weight: dict[Any, float] | str | None = None,
        fit_intercept: bool = True,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> LPMClassifier:
        """Fit the model; parameters are those of :meth:`SVC.fit`."""
        task = fit_task(self, X, y, sample_weight)
        _, solutions = solve_task(task)
        self._store_expansion(task, solutions)
        self.row_dual_ = task.unscale(stack(solutions, "row_dual"))
        worst = max(solution.duality_gap for solution in solutions)
        if not all(solution.converged for solution in solutions):
            warnings.warn(
                f"HiGHS did not converge: relative duality gap {worst:.1e}, required "
                "1e-9. Standardise the features (sklearn.preprocessing.StandardScaler) "
                f"or lower C (C={self.C:g}).",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self


class LOOMClassifier(KernelClassifier):
    r"""Leave-one-out SVM of Weston, a kernel classifier without a C.

    With :math:`f(x) = \sum_j \alpha_j y_j K(x, x_j)`, it solves the linear program::

        min  sum_i w_i xi_i
        s.t. y_i (f(x_i) - alpha_i y_i K(x_i, x_i)) >= 1 - xi_i,   alpha >= 0,  xi >= 0

    Each sample must be classified by the terms of the other samples, without its own.
    Samples for which this is impossible keep a slack, which regularizes the model in
    place of C; only the kernel has to be chosen. If there are several optima, the one
    with the smallest sum of alpha is used. For two classes there is one binary
    classifier; for more, one per class against the rest, and the class with the largest
    value is predicted.

    Parameters
    ----------
    kernel, degree, gamma, coef0
        As in :class:`SVC`.
    class_weight : dict or "balanced", default=None
        Weight of the slacks per class; "balanced" is n_samples / (n_classes * count).
    fit_intercept : bool, default=False
        Whether f has an intercept b. The model in the paper has none.
    nu : float, default=1.0
        Fraction of a sample's own term that is subtracted in its constraint. 1 is
        Weston's classifier; 0 requires margins as an SVM does, without regularization;
        values above 1 are stricter.

    Attributes
    ----------
    expansion_coef_ : ndarray of shape (n_classifiers, n_samples)
        Signed coefficients alpha_j y_j of all training samples.
    intercept_ : ndarray of shape (n_classifiers,)
        Intercept b. If several are optimal with these coefficients, the midpoint of
        their interval.
    slack_ : ndarray of shape (n_classifiers, n_samples)
        Slacks xi. If a slack is 1 or more, the other samples' terms do not classify the
        sample correctly.
    row_dual_ : ndarray of shape (n_classifiers, n_samples)
        Dual variables of the constraints, between 0 and w_i, a proof of optimality.
    objective_ : ndarray of shape (n_classifiers,)
        Weighted sums of the slacks.
    loo_bound_ : ndarray of shape (n_classifiers,)
        Weighted fraction of the samples that the other samples' terms do not classify
        correctly; a value of 0 counts as incorrect. If nu = 1, it is at most the mean
        slack. It does **not** bound the leave-one-out error of this classifier, only
        that of an SVM with the same coefficients. :func:`leave_one_out` computes the
        error itself.
    duality_gap_ : ndarray of shape (n_classifiers,)
        Relative difference between primal and dual value.
    support_ : ndarray of shape (n_centres,)
        Rows with a nonzero coefficient for some class.
    n_iter_ : ndarray of shape (n_classifiers,)
        Number of simplex iterations.
    classes_, class_weight_, support_vectors_, gamma_, shape_fit_ : object
        As in :class:`SVC`.

    See Also
    --------
    leave_one_out : Its exact leave-one-out error, or ``loo_bound_``.
    LooSearchCV : Choose the kernel by either.
    LPMClassifier : Another linear program, with a C.

    Notes
    -----
    Scaling the kernel changes the coefficients but not the labels. Weights apply to the
    slacks: a sample with weight 2 is not equivalent to two copies, which would support
    each other. A row with weight 0 is ignored. If gamma is far too large, kernel values
    between samples are almost zero, and a coefficient would have to be huge to affect
    another sample; it is then limited to 1e6 over the largest kernel value, with a
    warning.

    References
    ----------
    .. [1] J. Weston, "Leave-one-out support vector machines", IJCAI 1999.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = lo.LOOMClassifier(gamma=0.5).fit(X, y)
    >>> clf.support_.size, clf.loo_bound_.round(4)
    (39, array([0.    , 0.0133, 0.0133]))
    >>> round(lo.leave_one_out(clf, X, y).error, 4)
    0.04
    """

    __module__ = "leaveout"
    _family = "loom"

    def __init__(
        self,
        *,
        kernel: str | Callable[..., Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        class_weight: dict[Any, float] | str | None = None,
        fit_intercept: bool = False,
        nu: float = 1.0,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.nu = nu

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> LOOMClassifier:
        """Fit the model; parameters are those of :meth:`SVC.fit`."""
        task = fit_task(self, X, y, sample_weight)
        subproblems, solutions = solve_task(task)
        self._store_expansion(task, solutions)
        self.slack_ = stack(solutions, "slack")
        self.row_dual_ = stack(solutions, "row_dual")
        pairs = zip(subproblems, solutions, strict=True)
        bounds = [loom_bound(sub.problem, solution) for sub, solution in pairs]
        self.loo_bound_ = np.array(bounds)
        _warn_of_trouble(solutions)
        return self


def _warn_of_trouble(solutions: list[LoomSolution]) -> None:
    """Warn if the kernel is too narrow or the duality gap too large."""
    n_capped = sum(solution.n_capped for solution in solutions)
    worst = max(solution.duality_gap for solution in solutions)
    if n_capped:
        warnings.warn(
            f"{n_capped} coefficient(s) were limited to 1e6 / max |K|: some samples "
            "have kernel values of almost 0 with all that could classify them, so "
            f"their labels are unreliable (relative duality gap {worst:.1e}). "
            "Use a wider kernel, for example a smaller gamma.",
            CertificateWarning,
            stacklevel=3,
        )
    elif not all(solution.converged for solution in solutions):
        warnings.warn(
            "HiGHS did not find the smallest coefficients, or could not prove them "
            f"optimal (relative duality gap {worst:.1e}, required 1e-6). Standardise "
            "the features (sklearn.preprocessing.StandardScaler) or use a wider "
            "kernel.",
            ConvergenceWarning,
            stacklevel=3,
        )
