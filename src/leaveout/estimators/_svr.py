# SPDX-License-Identifier: BSD-3-Clause
"""Epsilon-support vector regression, solved to double precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from leaveout._typing import FloatArray
from leaveout.estimators._exact import ExactSVM

if TYPE_CHECKING:
    from leaveout.loo._leave_out import Fitted


class SVR(RegressorMixin, ExactSVM):
    r"""Epsilon-support vector regression, solved to high precision.

    With :math:`f(x) = \langle w, \varphi(x) \rangle + b`, it solves::

        min  1/2 ||w||^2 + sum_i C_i max(0, |y_i - f(x_i)| - epsilon)

    to a KKT residual of ``tol``, about six digits more than
    :class:`sklearn.svm.SVR` by default. It is a drop-in replacement for
    :class:`sklearn.svm.SVR`, with the same parameters and attributes.

    Parameters
    ----------
    C : float, default=1.0
        Regularization parameter, the weight of the losses. C_i is C times sample
        weight.
    epsilon : float, default=0.1
        Half the width of the tube: smaller residuals have no loss. It is in the units
        of y; with 0 the loss is the absolute residual.
    kernel : str or callable, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "cosine", "precomputed" (X is
        then the Gram matrix), or a function that takes two matrices of shapes (n, p)
        and (m, p) and returns the kernel values, of shape (n, m).
    degree : int, default=3
        Degree of the polynomial kernel ("poly").
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient for "rbf", "poly", "sigmoid" and "laplacian". "scale" is
        1 / (n_features * X.var()), "auto" is 1 / n_features; both ignore weights.
    coef0 : float, default=0.0
        Independent term of "poly" and "sigmoid".
    tol : float, default=1e-9
        Tolerance: largest violation of the optimality conditions, relative to the terms
        of f and to the standard deviation of y.
    max_iter : int, default=-1
        Limit on solver iterations; -1 for a generous limit.

    Attributes
    ----------
    support_ : ndarray of shape (n_SV,)
        Indices of support vectors.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
        Support vectors; of shape (0, 0) if kernel="precomputed".
    n_support_ : ndarray of shape (1,)
        Number of support vectors.
    dual_coef_ : ndarray of shape (1, n_SV)
        Coefficients of the support vectors; dense even if X is sparse.
    intercept_ : ndarray of shape (1,)
        Intercept b.
    coef_ : ndarray or CSR matrix of shape (1, n_features)
        Weights of the features, only if kernel="linear".
    gamma_ : float or None
        The value used for gamma; None for a precomputed or callable kernel.
    fit_status_ : int
        0 if ``tol`` was reached, 1 otherwise.
    duality_gap_ : float
        Relative difference between primal and dual value, a proof of optimality up to
        rounding of the predictions.
    n_iter_ : int
        Number of solver iterations; 0 if the coefficients come from a search.
    shape_fit_ : tuple of int
        Shape of the X passed to fit.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features seen during fit, if X has feature names that are all strings.

    See Also
    --------
    sklearn.svm.SVR : The same regressor, solved by LIBSVM.
    leave_one_out : Its exact leave-one-out predictions.

    Notes
    -----
    A row with weight 0 is ignored; only "scale" still counts it, as in scikit-learn. If
    b is not unique, the midpoint of its interval is used, as in LIBSVM. The problem is
    solved for y minus its mean, in units of a power of two near its standard deviation,
    so predictions follow a shift and a scaling of y.

    Examples
    --------
    >>> from leaveout import SVR
    >>> X, y = [[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]
    >>> reg = SVR(kernel="linear", C=10, epsilon=0.5).fit(X, y)
    >>> reg.predict([[3.0]]).round(6)
    array([6.])
    >>> bool(abs(reg.duality_gap_) < 1e-12)
    True
    """

    __module__ = "leaveout"
    _family = "svr"

    def __init__(
        self,
        C: float = 1.0,
        *,
        epsilon: float = 0.1,
        kernel: str | Callable[..., Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-9,
        max_iter: int = -1,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> SVR:
        """Fit the SVM.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training samples; the symmetric Gram matrix if kernel="precomputed".
        y : array-like of shape (n_samples,)
            Numbers to predict.
        sample_weight : array-like of shape (n_samples,), default=None
            Rescales C per sample; at least 0. Rows with weight 0 are ignored.

        Returns
        -------
        SVR
            Fitted estimator.
        """
        self._fit(X, y, sample_weight)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predict the numbers of the samples in X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples; if kernel="precomputed", their kernel values with the training
            samples, of shape (n_samples, n_training_samples).

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions.
        """
        return self._values(X)[:, 0]

    def _store(self, fitted: Fitted) -> None:
        """Set the fitted attributes."""
        task, [sub], [solution] = fitted.task, fitted.subproblems, fitted.solutions
        beta = np.zeros(task.C.shape[0])
        beta[sub.rows] = task.unscale(solution.beta)
        support = np.flatnonzero(beta)
        self._store_task(task, support.astype(np.int32))
        self.n_support_ = np.array([support.size], dtype=np.int32)
        self.dual_coef_ = beta[None, support]
        self.intercept_ = task.target.unscale(np.array([solution.intercept]))
        self.duality_gap_ = solution.duality_gap
        self.n_iter_ = solution.n_iter
        self.fit_status_ = int(not solution.converged)

    def _columns(self) -> FloatArray:
        """Return the coefficients of the support vectors, (n_SV, 1)."""
        return self.dual_coef_.T
