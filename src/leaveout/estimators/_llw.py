# SPDX-License-Identifier: BSD-3-Clause
"""LLWClassifier: the multi-class SVM of Lee, Lin & Wahba."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from leaveout.adapt._prepare import fit_task
from leaveout.estimators._base import KernelClassifier
from leaveout.kernel._gram import may_be_indefinite
from leaveout.kernel._symmetric import is_psd
from leaveout.loo._leave_out import solve_task
from leaveout.run._parallel import limit_blas


class LLWClassifier(KernelClassifier):
    r"""Multi-class SVM of Lee, Lin & Wahba, which is Fisher consistent.

    There is one function per class, :math:`h_k(x) = \sum_i W_{ik} K(x, x_i) + b_k`. All
    come from one problem with Q classes, and they sum to zero::

        min  1/2 sum_k ||w_k||^2 + sum_i C_i sum_{k != y_i} max(0, h_k(x_i) + 1/(Q-1))

    The class with the largest h_k is predicted. For two classes the model is an SVM
    with C / 2.

    Parameters
    ----------
    C : float, default=1.0
        Regularization parameter, the weight of the losses. C_i is C times class weight
        times sample weight. ``numpy.inf`` gives the hard margin, for classes that the
        kernel separates.
    loss : {"hinge", "quadratic"}, default="hinge"
        "quadratic" replaces the hinge losses by slacks xi_ik >= h_k(x_i) + 1/(Q-1) with
        the cost C_i [sum_k xi_ik^2 + (sum_k xi_ik)^2]: the M-SVM² of Guermeur &
        Monfrini (2011). This is a hard margin with kernel K + I / (2 C), so the bounds
        of :func:`llw_bounds` hold for it.
    kernel, degree, gamma, coef0
        As in :class:`SVC`.
    class_weight : dict or "balanced", default=None
        Factor of C per class; "balanced" is n_samples / (n_classes * count).
    verbose : int, default=0
        If positive, :func:`leave_one_out` shows its progress on stderr.

    Attributes
    ----------
    expansion_coef_ : ndarray of shape (n_classes, n_samples)
        W transposed; rows and columns sum to zero.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts b; they sum to zero.
    intercept_interval_ : ndarray of shape (n_classes, 2)
        Interval of each b_k: all b within the intervals that sum to zero are optimal.
        The interval is a point unless a class has no free multiplier.
    dual_ : ndarray of shape (n_samples, n_classes)
        Multipliers alpha; 0 for a sample's own class.
    objective_ : float
        Optimal value.
    duality_gap_ : float
        Relative difference between primal and dual value, a proof of optimality.
    support_ : ndarray of shape (n_support,)
        Rows with a positive multiplier.
    n_iter_ : int
        Number of steps of SMO and of the active-set method.
    classes_, class_weight_, support_vectors_, gamma_, shape_fit_ : object
        As in :class:`SVC`.

    See Also
    --------
    llw_bounds : Bounds on its leave-one-out error.
    leave_one_out : Its exact leave-one-out error.
    SVC : One binary classifier per pair of classes.

    Notes
    -----
    The kernel must be positive semi-definite. Sequential minimal optimisation (SMO)
    comes close to the optimum, and an active-set method then reaches it; see
    docs/method/llw.

    References
    ----------
    .. [1] Y. Lee, Y. Lin and G. Wahba, "Multicategory support vector machines", JASA 99
       (2004) 67-81.
    .. [2] Y. Guermeur and E. Monfrini, "Radius-margin bound on the leave-one-out error
       of the LLW-M-SVM", ASMDA 2009.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = lo.LLWClassifier(C=1, gamma=0.5).fit(X, y)
    >>> clf.expansion_coef_.shape, bool(abs(clf.intercept_.sum()) < 1e-9)
    ((3, 150), True)
    >>> round(lo.leave_one_out(clf, X, y).error, 4)
    0.0267
    """

    __module__ = "leaveout"
    _family = "llw"

    # Not a parameter: the model always has intercepts.
    fit_intercept = True

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "hinge",
        kernel: str | Callable[..., Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        class_weight: dict[Any, float] | str | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.loss = loss
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.class_weight = class_weight
        self.verbose = verbose

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> LLWClassifier:
        """Fit the model; parameters are those of :meth:`SVC.fit`.

        With C=inf, positive weights have no effect, and NotSeparableError is raised if
        the kernel does not separate the classes.
        """
        task = fit_task(self, X, y, sample_weight)
        with limit_blas(1):
            _, [solution] = solve_task(task)
        self._store_task(task, np.flatnonzero(solution.alpha.any(axis=1)))
        self.expansion_coef_ = task.unscale(np.ascontiguousarray(solution.coef.T))
        self.intercept_ = solution.intercept
        self.intercept_interval_ = np.column_stack(
            [solution.intercept_lower, solution.intercept_upper]
        )
        self.dual_ = task.unscale(solution.alpha)
        self.objective_ = float(np.ldexp(solution.objective, -task.gram.exponent))
        self.duality_gap_ = solution.duality_gap
        self.n_iter_ = solution.n_iter
        if may_be_indefinite(self.kernel, self.coef0) and not is_psd(task.K):
            self._warn_indefinite(task, stacklevel=2)
        elif not solution.converged:
            warnings.warn(
                "The solver did not converge: relative duality gap "
                f"{solution.duality_gap:.1e}, required 1e-8. Standardise the features "
                f"(sklearn.preprocessing.StandardScaler), or lower C (C={self.C:g}).",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self
