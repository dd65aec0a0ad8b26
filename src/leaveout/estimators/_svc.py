# SPDX-License-Identifier: BSD-3-Clause
"""Support vector classification, solved to double precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leaveout._typing import FloatArray
from leaveout.estimators._base import KernelClassifier, stack
from leaveout.estimators._exact import ExactSVM
from leaveout.loo._multiclass import (
    one_value_per_class,
    pair_coefficients,
    stack_coefficients,
    vote,
)

if TYPE_CHECKING:
    from leaveout.loo._leave_out import Fitted


class SVC(ExactSVM, KernelClassifier):
    r"""C-support vector classification, solved to high precision.

    For each pair of classes, with :math:`f(x) = \langle w, \varphi(x) \rangle + b`, it
    solves::

        min  1/2 ||w||^2 + sum_i C_i max(0, 1 - y_i f(x_i))

    to a KKT residual of ``tol``, about six digits more than
    :class:`sklearn.svm.SVC` by default. It is a drop-in replacement for
    :class:`sklearn.svm.SVC`, with the same parameters, attributes, signs and votes.

    Parameters
    ----------
    C : float, default=1.0
        Regularization parameter, the weight of the hinge losses. C_i is C times class
        weight times sample weight.
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
    class_weight : dict or "balanced", default=None
        Factor of C per class; "balanced" is n_samples / (n_classes * count).
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        For three or more classes: one value per class, or one per pair of classes.
    break_ties : bool, default=False
        For three or more classes, whether ties in the votes are broken by the values of
        ``decision_function`` rather than by the order of the classes.
    fit_intercept : bool, default=True
        Whether f has an intercept b. It is not regularised.
    tol : float, default=1e-9
        Tolerance: largest violation of the optimality conditions, relative to the terms
        of f.
    max_iter : int, default=-1
        Limit on solver iterations per pair of classes; -1 for a generous limit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    class_weight_ : ndarray of shape (n_classes,)
        Factor of C per class.
    support_ : ndarray of shape (n_SV,)
        Indices of support vectors, ordered by class.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
        Support vectors; of shape (0, 0) if kernel="precomputed".
    n_support_ : ndarray of shape (n_classes,)
        Number of support vectors per class.
    dual_coef_ : ndarray of shape (n_classes - 1, n_SV)
        Dual coefficients times labels, in the layout of :class:`sklearn.svm.SVC`;
        dense even if X is sparse.
    intercept_ : ndarray of shape (n_pairs,)
        Intercept b per pair of classes; n_pairs = n_classes * (n_classes - 1) / 2.
    coef_ : ndarray or CSR matrix of shape (n_pairs, n_features)
        Weights of the features, only if kernel="linear".
    gamma_ : float or None
        The value used for gamma; None for a precomputed or callable kernel.
    fit_status_ : int
        0 if every pair reached ``tol``, 1 otherwise.
    duality_gap_ : ndarray of shape (n_pairs,)
        Relative difference between primal and dual value, a proof of optimality up to
        rounding of the decision values.
    n_iter_ : ndarray of shape (n_pairs,)
        Number of solver iterations; 0 if the coefficients come from a search.
    shape_fit_ : tuple of int
        Shape of the X passed to fit.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features seen during fit, if X has feature names that are all strings.

    See Also
    --------
    sklearn.svm.SVC : The same classifier, solved by LIBSVM.

    Notes
    -----
    A row with weight 0 is ignored; only "scale" and "balanced" still count it, as in
    scikit-learn. A class whose samples all have weight 0 is ignored, too. If b is not
    unique, the midpoint of its interval is used, as in LIBSVM. With a kernel that is
    not positive semi-definite the optimum cannot be proved; a warning is given.

    References
    ----------
    .. [1] C.-C. Chang and C.-J. Lin, "LIBSVM: a library for support vector machines",
       ACM Transactions on Intelligent Systems and Technology 2(3), 2011.

    Examples
    --------
    >>> from leaveout import SVC
    >>> X = [[0.0, 0.0], [1.0, 1.0], [3.0, 3.0], [4.0, 4.0]]
    >>> y = ["low", "low", "high", "high"]
    >>> clf = SVC(kernel="linear", C=10).fit(X, y)
    >>> clf.predict([[0.0, 1.0], [3.5, 2.0]])
    array(['low', 'high'], dtype='<U4')
    >>> clf.coef_, clf.intercept_
    (array([[-0.5, -0.5]]), array([2.]))
    """

    __module__ = "leaveout"
    _family = "svc"

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str | Callable[..., Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        class_weight: dict[Any, float] | str | None = None,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        fit_intercept: bool = True,
        tol: float = 1e-9,
        max_iter: int = -1,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> SVC:
        """Fit one SVM per pair of classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training samples; the symmetric Gram matrix if kernel="precomputed".
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Rescales C per sample; at least 0. Rows with weight 0 are ignored.

        Returns
        -------
        SVC
            Fitted estimator.
        """
        self._fit(X, y, sample_weight)
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Evaluate the decision function for the samples in X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples; if kernel="precomputed", their kernel values with the training
            samples, of shape (n_samples, n_training_samples).

        Returns
        -------
        ndarray
            For two classes f, of shape (n_samples,), positive for ``classes_[1]``. For
            more, of shape (n_samples, n_classes) for "ovr" and (n_samples, n_pairs) for
            "ovo", where a positive value is a vote for the first class of the pair.
        """
        values = self._values(X)
        if len(self.classes_) == 2:
            return values[:, 0]
        if self.decision_function_shape == "ovo":
            return values
        return one_value_per_class(values)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict class labels for the samples in X, by votes over pairs of classes.

        Parameters are those of :meth:`decision_function`.
        """
        values = self._values(X)
        if self.break_ties and len(self.classes_) > 2:
            return self.classes_[np.argmax(one_value_per_class(values), axis=1)]
        return self.classes_[vote(values)]

    def _store(self, fitted: Fitted) -> None:
        """Set the fitted attributes."""
        task, solutions = fitted.task, fitted.solutions
        codes = task.target.codes
        betas = np.zeros((len(solutions), codes.size))
        for beta, sub, solution in zip(
            betas, fitted.subproblems, solutions, strict=True
        ):
            beta[sub.rows] = task.unscale(solution.beta)
        stacked = stack_coefficients(list(betas), codes)
        support = np.flatnonzero(stacked.any(axis=0))
        support = support[np.argsort(codes[support], kind="stable")]
        counts = np.bincount(codes[support], minlength=len(task.target.classes))
        self._store_task(task, support.astype(np.int32))
        self.n_support_ = counts.astype(np.int32)
        self.dual_coef_ = stacked[:, support]
        self.intercept_ = stack(solutions, "intercept")
        self.duality_gap_ = stack(solutions, "duality_gap")
        self.n_iter_ = stack(solutions, "n_iter")
        self.fit_status_ = int(not all(solution.converged for solution in solutions))

    def _columns(self) -> FloatArray:
        """Return ``dual_coef_`` with one column per pair, (n_SV, n_pairs)."""
        codes = np.repeat(np.arange(len(self.classes_)), self.n_support_)
        return pair_coefficients(self.dual_coef_, codes)
