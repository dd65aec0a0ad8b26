# SPDX-License-Identifier: BSD-3-Clause
"""A classifier's task: target, Gram matrix, upper bounds, and its binary subproblems.

From an SVC, X, y and weights to Gram matrix, classes and boxes, all checked.

One-vs-rest as scikit-learn's OneVsRestClassifier does it.

Machine k stands between class k and all others, and a positive value speaks for class
k; the largest value wins, the lowest class among equals. For two classes there is one
machine, whose positive values speak for class 1, and 0 is class 0.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.class_weight import compute_class_weight

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.adapt._checks import (
    LARGEST_BOX,
    check_class_weight,
    check_decision_function_shape,
    check_features,
    check_flag,
    check_labels,
    check_max_iter,
    check_number,
    check_penalty,
    check_sample_weight,
)
from leaveout.adapt._memory import check_memory
from leaveout.engine._problem import Problem
from leaveout.kernel._gram import check_gram, gram_matrix, resolve_gamma
from leaveout.loo._multiclass import class_pairs, positive_class

if TYPE_CHECKING:
    from leaveout.estimators._base import KernelClassifier
    from leaveout.estimators._svc import SVC


@dataclass(frozen=True)
class Target:
    """Who belongs to which class, and with what weight.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Checked y.
    classes : ndarray of shape (n_classes,)
        Sorted labels of the rows with a weight > 0; two or more.
    codes : ndarray of shape (n,)
        Index into ``classes`` per row; -1 if no row of its class has a weight > 0.
    weights : ndarray of shape (n,)
        Sample weights; 0 = row absent.
    """

    labels: NDArray[Any]
    classes: NDArray[Any]
    codes: IntArray
    weights: FloatArray

    def take(self, rows: IntArray) -> Target:
        """Return some of the rows; the classes stay, even those that lose all."""
        return Target(
            self.labels[rows], self.classes, self.codes[rows], self.weights[rows]
        )

    def vanishing(self, groups: IntArray | None = None) -> BoolArray:
        """Return (n, n_classes): is no row of a class left without row r, or its group.

        The groups are numbered from 0; without them each row is one.
        """
        n = self.codes.shape[0]
        groups = np.arange(n) if groups is None else groups
        present = np.flatnonzero(self.weights > 0)
        members = np.zeros((int(groups.max()) + 1, len(self.classes)), dtype=np.intp)
        np.add.at(members, (groups[present], self.codes[present]), 1)
        return (members == members.sum(axis=0))[groups]

    def singletons(self) -> list[tuple[int, int]]:
        """Return (class, row) of each row that is alone in its class."""
        return [(int(c), int(r)) for c, r in np.argwhere(self.vanishing().T)]


@dataclass(frozen=True)
class Task(Target):
    """What an SVC is to be fitted on, free of everything the estimator decides.

    Parameters
    ----------
    labels, classes, codes, weights
        As in :class:`Target`.
    X : ndarray or CSR matrix of shape (n, p), or (n, n) if precomputed
        Checked samples.
    class_weight : ndarray of shape (n_classes,)
        Factor of C per class.
    K : ndarray of shape (n, n)
        Gram matrix over all rows.
    C : ndarray of shape (n,)
        Box of each row, C times class weight times sample weight; 0 = row absent.
    fit_intercept : bool
        Whether each machine has a bias.
    gamma : float or None
        Number that gamma means on all rows, None if the kernel takes none from us.
    """

    X: Any
    class_weight: FloatArray
    K: FloatArray
    C: FloatArray
    fit_intercept: bool
    gamma: float | None

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Classes (i, j) of each machine, one-vs-one."""
        return class_pairs(len(self.classes))

    @property
    def machines(self) -> list[tuple[Task, int, int]]:
        """The task and the two classes of each machine."""
        return [(self, i, j) for i, j in self.pairs]

    def rows(self, i: int, j: int) -> IntArray:
        """Return the rows of classes i and j that are present."""
        return np.flatnonzero(((self.codes == i) | (self.codes == j)) & (self.C > 0))

    def problem(self, i: int, j: int) -> Problem:
        """Return the binary machine between classes i and j, on ``rows(i, j)``."""
        rows = self.rows(i, j)
        positive = positive_class(i, j, len(self.classes))
        y = np.where(self.codes[rows] == positive, 1.0, -1.0)
        everything = rows.shape[0] == self.K.shape[0]
        K = self.K if everything else self.K[np.ix_(rows, rows)]
        return Problem(K, y, self.C[rows], self.fit_intercept)

    def whole_problem(self, i: int, j: int) -> Problem:
        """Return the machine between classes i and j over all rows, the others absent.

        The boxes of the other rows are closed: they have values, but no part in it.
        """
        positive = positive_class(i, j, len(self.classes))
        y = np.where(self.codes == positive, 1.0, -1.0)
        inside = (self.codes == i) | (self.codes == j)
        return Problem(self.K, y, np.where(inside, self.C, 0.0), self.fit_intercept)


def make_task(svc: SVC, X: Any, y: Any, sample_weight: Any = None) -> Task:
    """Check the parameters of svc and its data, and compute the Gram matrix once.

    As in scikit-learn, ``gamma="scale"`` and ``class_weight="balanced"`` are resolved
    on all rows, whatever their weights.
    """
    check_parameters(svc)
    X = check_features(svc, X, reset=True)
    return build_task(svc, X, make_target(y, X.shape[0], sample_weight))


def build_task(
    svc: SVC | KernelClassifier,
    X: Any,
    target: Target,
    gram: tuple[FloatArray, float | None] | None = None,
) -> Task:
    """Compute boxes and Gram matrix of what is checked already.

    ``gram`` is the Gram matrix and the gamma it was made with, if they are at hand.
    """
    class_weight = resolve_class_weight(svc.class_weight, target)
    # class_weight[-1] stands in for the rows with code -1, whose weight is 0.
    # A leave-one-out machine has no C: its boxes are the weights alone.
    factors = class_weight[target.codes] * target.weights
    C = np.zeros_like(factors)  # an infinite C times a weight of 0 is 0, too
    penalty = float(getattr(svc, "C", 1.0))
    with np.errstate(over="ignore"):
        C[factors > 0.0] = penalty * factors[factors > 0.0]
    _check_boxes(C, penalty, factors)
    K, gamma = gram or _gram(svc, X)
    return Task(
        labels=target.labels,
        classes=target.classes,
        codes=target.codes,
        weights=target.weights,
        X=X,
        class_weight=class_weight,
        K=K,
        C=C,
        fit_intercept=bool(svc.fit_intercept),
        gamma=gamma,
    )


def make_target(y: Any, n_samples: int, sample_weight: Any = None) -> Target:
    """Check labels and weights of n_samples rows; ValueError if there is one class."""
    labels = check_labels(y, n_samples)
    weights = check_sample_weight(sample_weight, n_samples)
    return Target(labels, *_encode(labels, weights), weights)


def resolve_class_weight(class_weight: Any, target: Target) -> FloatArray:
    """Return the factor of C per class; "balanced" counts only classes with rows."""
    if class_weight is None:
        return np.ones(len(target.classes))
    present = np.arange(len(target.classes))
    if class_weight == "balanced":
        present = np.unique(target.codes[target.codes >= 0])
    factors = np.ones(len(target.classes))
    factors[present] = compute_class_weight(
        class_weight,
        classes=target.classes[present],
        y=target.labels[target.codes >= 0],
    )
    return factors


def check_parameters(svc: SVC) -> None:
    """Raise if a parameter of svc is wrong; those of the kernel are checked with it."""
    check_penalty(svc.C)
    check_number("tol", svc.tol, above=0.0)
    check_max_iter(svc.max_iter)
    check_flag("fit_intercept", svc.fit_intercept)
    check_decision_function_shape(svc.decision_function_shape, svc.break_ties)
    check_class_weight(svc.class_weight)


def _check_boxes(C: FloatArray, penalty: float, factors: FloatArray) -> None:
    """Raise if C times the weights is no longer a number, or 0 where it is not."""
    too_large = (C > LARGEST_BOX) & np.isfinite(penalty)
    lost = too_large | ((C == 0.0) & (factors > 0.0))
    if lost.any():
        row = int(np.argmax(lost))
        raise ValueError(
            f"C times the weights of row {row}, {penalty:g} * {factors[row]:g}, is "
            f"{'too large' if C[row] else 'too small'} for a double. Take another C, "
            "or divide all weights by a common factor."
        )


def _encode(labels: NDArray[Any], weights: FloatArray) -> tuple[NDArray[Any], IntArray]:
    """Return the classes that have weight, and the class of each row or -1."""
    found, codes = np.unique(labels, return_inverse=True)
    kept = np.bincount(codes, weights, minlength=len(found)) > 0
    if kept.sum() < 2:
        label = found[kept].tolist()[0]
        rows = "rows" if weights.all() else "rows with sample_weight > 0"
        raise ValueError(
            f"y has one class, {label!r}, in all {np.count_nonzero(weights)} "
            f"{rows}. A classifier needs two classes or more: add samples of another."
        )
    renumbered = np.where(kept, np.cumsum(kept) - 1, -1)
    return found[kept], renumbered[codes]


def _gram(svc: SVC | KernelClassifier, X: Any) -> tuple[FloatArray, float | None]:
    """Return the Gram matrix of all rows and the gamma it was made with."""
    check_memory(svc, X)
    if svc.kernel == "precomputed":
        return check_gram(X), None
    with np.errstate(over="ignore"):  # gram_matrix says it better
        gamma = None if callable(svc.kernel) else resolve_gamma(svc.gamma, X)
    K = gram_matrix(
        X, kernel=svc.kernel, gamma=gamma, degree=svc.degree, coef0=svc.coef0
    )
    return K, gamma


@dataclass(frozen=True)
class OneVsRestTask(Task):
    """A task whose machines stand between one class and the rest.

    Parameters
    ----------
    parts : tuple of Task
        One task of two classes per machine, 1 for the class and 0 for the rest; they
        share the Gram matrix. As in scikit-learn, ``class_weight`` of the SVC speaks
        of these 0 and 1.
    """

    parts: tuple[Task, ...]

    @property
    def machines(self) -> list[tuple[Task, int, int]]:
        """The task and the two classes of each machine."""
        return [(part, 0, 1) for part in self.parts]


def make_one_vs_rest_task(
    svc: SVC, X: Any, y: Any, sample_weight: Any = None
) -> OneVsRestTask:
    """Do what ``make_task`` does, for one machine per class."""
    check_parameters(svc)
    X = check_features(svc, X, reset=True)
    target = make_target(y, X.shape[0], sample_weight)
    return build_one_vs_rest_task(svc, X, target)


def build_one_vs_rest_task(
    svc: SVC,
    X: Any,
    target: Target,
    gram: tuple[FloatArray, float | None] | None = None,
) -> OneVsRestTask:
    """Do what ``build_task`` does, for one machine per class."""
    whole = build_task(clone(svc).set_params(class_weight=None), X, target, gram)
    n_classes = len(whole.classes)
    codes = [1] if n_classes == 2 else range(n_classes)
    values = {field.name: getattr(whole, field.name) for field in fields(whole)}
    parts = tuple(_against_rest(svc, values, code) for code in codes)
    return OneVsRestTask(**values, parts=parts)


def _against_rest(svc: SVC, whole: dict[str, Any], code: int) -> Task:
    """Return the task between one class and the rest; rows without class stay out."""
    labels = (whole["codes"] == code).astype(np.intp)
    codes = np.where(whole["codes"] < 0, -1, labels)
    target = Target(labels, np.array([0, 1]), codes, whole["weights"])
    class_weight = resolve_class_weight(svc.class_weight, target)
    own = {
        "labels": labels,
        "classes": target.classes,
        "codes": codes,
        "class_weight": class_weight,
        "C": whole["C"] * class_weight[codes],
    }
    return Task(**{**whole, **own})
