# SPDX-License-Identifier: BSD-3-Clause
"""The task of a model: target, Gram matrix, upper bounds, and its subproblems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._certificate import KERNEL_RANGE, unit_exponent
from leaveout.engine._problem import Problem
from leaveout.kernel._gram import Gram
from leaveout.loo._multiclass import class_pairs, positive_class

# Larger products of C and weights would overflow in sums.
LARGEST_PENALTY = 1e305
# An epsilon below this share of the scale of y is 0: its two kinks would coincide.
SMALLEST_EPSILON = 1e-12


@dataclass(frozen=True)
class Params:
    """Parameters of a model, as in its estimator.

    ``family`` is a key of ``FAMILIES``. Parameters that a family does not have keep
    their defaults.
    """

    family: str = "svc"
    C: float = 1.0
    epsilon: float = 0.1
    kernel: str | Callable[..., Any] = "rbf"
    degree: int = 3
    gamma: str | float = "scale"
    coef0: float = 0.0
    class_weight: Any = None
    fit_intercept: bool = True
    decision_function_shape: str = "ovr"
    break_ties: bool = False
    one_vs_rest: bool = False
    tol: float = 1e-9
    max_iter: int = -1
    nu: float = 1.0
    loss: str = "hinge"
    verbose: int = 0

    @property
    def kernel_options(self) -> dict[str, Any]:
        """Keywords of ``make_gram`` and ``gram_matrix``."""
        names = ("kernel", "gamma", "degree", "coef0")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Target:
    """Class, or number to predict, and weight of each sample.

    A regression is solved for (y - centre) / 2^exponent.
    """

    labels: NDArray[Any]  # (n,), checked y
    # (n_classes,), sorted labels of the samples with weight > 0; empty in a regression
    classes: NDArray[Any]
    codes: IntArray  # (n,), index into classes; -1 if the class has no weight
    weights: FloatArray  # (n,), sample weights; 0: absent
    centre: float = 0.0  # mean of the numbers
    exponent: int = 0  # power of two next to their standard deviation

    def take(self, rows: IntArray) -> Target:
        """Return some of the samples; classes, even empty ones, and scale are kept."""
        own = {
            name: getattr(self, name)[rows] for name in ("labels", "codes", "weights")
        }
        return replace(self, **own)

    def scaled_numbers(self) -> FloatArray:
        """Return the numbers of a regression at unit scale; 0 for absent samples."""
        present = np.where(self.weights > 0, self.labels, self.centre)
        return np.ldexp(present - self.centre, -self.exponent)

    def unscale(self, values: FloatArray) -> FloatArray:
        """Return values at unit scale as predictions of y."""
        return np.ldexp(values, self.exponent) + self.centre

    def vanishing(self, groups: IntArray | None = None) -> BoolArray:
        """Return, (n, n_classes), if a class is empty without sample r or its group.

        Groups are numbered from 0; by default each sample is a group.
        """
        n = self.codes.shape[0]
        groups = np.arange(n) if groups is None else groups
        present = np.flatnonzero(self.weights > 0)
        members = np.zeros((int(groups.max()) + 1, len(self.classes)), dtype=np.intp)
        np.add.at(members, (groups[present], self.codes[present]), 1)
        return (members == members.sum(axis=0))[groups]

    def singletons(self) -> list[tuple[int, int]]:
        """Return (class, row) of each sample that is the only one of its class."""
        counts = np.bincount(self.codes[self.weights > 0], minlength=self.classes.size)
        if not self.classes.size or counts.min() > 1:
            return []
        return [(int(c), int(r)) for c, r in np.argwhere(self.vanishing().T)]


@dataclass(frozen=True)
class Task:
    """Data and parameters of a fit, at unit scale."""

    target: Target
    params: Params
    gram: Gram  # largest K_ii near 1; None if each fold computes its own
    # (n,), C times class and sample weight, divided by the scales of the Gram matrix
    # and of y; 0: absent
    C: FloatArray
    class_weight: FloatArray  # (n_classes,), factors of C; ones for one-vs-rest
    X: Any = None  # checked samples

    @property
    def K(self) -> FloatArray:  # noqa: N802
        """Gram matrix at unit scale."""
        return self.gram.K

    def unscale(self, coefficients: FloatArray) -> FloatArray:
        """Return coefficients for the unscaled kernel and y."""
        return np.ldexp(coefficients, self.target.exponent - self.gram.exponent)


@dataclass(frozen=True)
class Subproblem:
    """One problem of a task."""

    problem: Any  # Problem, LoomProblem or LlwProblem
    rows: IntArray  # (m,), its samples in the task
    codes: IntArray  # (n,), class of each sample, as class_weight counts them
    class_weight: FloatArray  # (q,)
    signs: tuple[int, int] = (0, 1)  # codes of the negative and the positive class


def make_target(labels: NDArray[Any], weights: FloatArray) -> Target:
    """Encode checked labels; raise ValueError if there is only one class."""
    ordered = np.sort(labels)
    new = np.empty(ordered.shape, dtype=np.bool_)
    new[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    found = ordered[new]
    codes = found.searchsorted(labels)
    if len(found) > 1 and weights.all():
        return Target(labels, found, codes, weights)
    kept = np.bincount(codes, weights, minlength=len(found)) > 0
    if kept.sum() < 2:
        label = found[kept].tolist()[0]
        rows = "rows" if weights.all() else "rows with sample_weight > 0"
        raise ValueError(
            f"y has only one class, {label!r}, in all {np.count_nonzero(weights)} "
            f"{rows}. A classifier needs at least two: add samples of another class."
        )
    renumbered = np.where(kept, np.cumsum(kept) - 1, -1)
    return Target(labels, found[kept], renumbered[codes], weights)


def make_numbers(numbers: FloatArray, weights: FloatArray) -> Target:
    """Return the target of a regression, with the scale of its present samples."""
    present = numbers[weights > 0]
    centre = float(present.mean())
    spread = float((present - centre).std())
    exponent = int(np.frexp(spread)[1]) if spread > 0.0 else 0
    codes = np.zeros(numbers.shape[0], dtype=np.intp)
    return Target(numbers, np.empty(0), codes, weights, centre, exponent)


def make_task(
    target: Target,
    gram: Gram,
    params: Params,
    X: Any = None,
    *,
    kernel_range: int = KERNEL_RANGE,
) -> Task:
    """Compute class weights and upper bounds, and scale K and C to unit scale.

    ``K -> 2^-e K, C -> 2^e C`` is free of rounding and does not change f. e is 0 unless
    the largest K_ii is outside 2^-kernel_range ... 2^kernel_range. In a regression
    ``y -> 2^-e y, C -> 2^-e C`` scales f by 2^-e, with the e of the target.
    """
    class_weight = np.ones(len(target.classes))
    factors = target.weights
    weighted = params.class_weight is not None
    if weighted and target.classes.size and not params.one_vs_rest:
        class_weight = resolve_class_weight(params.class_weight, target)
        # Samples with code -1 pick class_weight[-1], but their weight is 0.
        factors = class_weight[target.codes] * factors
    C = _upper_bounds(float(params.C), factors)
    own = unit_exponent(gram.K, kernel_range)
    if own:
        K = np.ldexp(gram.K, -own)
        gram = replace(gram, K=K, exponent=gram.exponent + own)
    exponent = gram.exponent - target.exponent
    if exponent:
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.ldexp(C, exponent)
        finite = np.clip(scaled, np.finfo(float).tiny, LARGEST_PENALTY)
        C = np.where(np.isinf(C) | (C == 0.0), C, finite)
    return Task(target, params, gram, C, class_weight, X)


def resolve_class_weight(class_weight: Any, target: Target) -> FloatArray:
    """Return the factor of C per class; "balanced" ignores empty classes."""
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


def _upper_bounds(penalty: float, factors: FloatArray) -> FloatArray:
    """Return C times the weights; raise if that overflows, or underflows to 0."""
    least, most = penalty * float(factors.min()), penalty * float(factors.max())
    if 0.0 < least and most <= LARGEST_PENALTY:
        return penalty * factors
    C = np.zeros_like(factors)  # an infinite C times a weight of 0 is 0, too
    with np.errstate(over="ignore"):
        np.multiply(factors, penalty, out=C, where=factors > 0.0)
    too_large = (C > LARGEST_PENALTY) & np.isfinite(penalty)
    lost = too_large | ((C == 0.0) & (factors > 0.0))
    if lost.any():
        row = int(np.argmax(lost))
        raise ValueError(
            f"C times the weights of row {row}, {penalty:g} * {factors[row]:g}, is "
            f"{'too large' if C[row] else 'too small'} for a double. Use another C, "
            "or divide all weights by a common factor."
        )
    return C


def svm_subproblems(task: Task, whole: bool) -> Iterator[Subproblem]:
    """Yield the binary SVMs of a task: one per pair of classes, or one per class.

    If ``whole``, each has all samples, those of other classes with C = 0 (they have
    values, but are not trained on); otherwise only the samples of its classes.
    """
    if task.params.one_vs_rest:
        for code in rest_codes(task.target):
            yield _against_rest(task, code, whole)
        return
    n_classes = len(task.target.classes)
    codes = task.target.codes
    for i, j in class_pairs(n_classes):
        positive = positive_class(i, j, n_classes)
        y, C = np.where(codes == positive, 1.0, -1.0), task.C
        if n_classes > 2:
            C = np.where((codes == i) | (codes == j), C, 0.0)
        signs = (j if positive == i else i, positive)
        yield _subproblem(task, y, C, codes, task.class_weight, signs, whole)


def svr_subproblems(task: Task, whole: bool) -> Iterator[Subproblem]:
    """Yield the only problem of a regression, as :func:`svm_subproblems` does."""
    target = task.target
    epsilon = float(np.ldexp(float(task.params.epsilon), -target.exponent))
    epsilon = epsilon if epsilon >= SMALLEST_EPSILON else 0.0
    y = target.scaled_numbers()
    sub = _subproblem(task, y, task.C, target.codes, task.class_weight, (0, 0), whole)
    yield replace(sub, problem=replace(sub.problem, epsilon=epsilon))


def rest_codes(target: Target) -> list[int]:
    """Return the classes with a one-vs-rest problem: the second of two, else all."""
    n_classes = len(target.classes)
    return [1] if n_classes == 2 else list(range(n_classes))


def _against_rest(task: Task, code: int, whole: bool) -> Subproblem:
    """Return one class against the rest; class_weight has keys 0 and 1 (sklearn)."""
    known = task.target.codes >= 0
    labels = (task.target.codes == code).astype(np.intp)
    codes = np.where(known, labels, -1)
    own = Target(labels, np.array([0, 1]), codes, task.target.weights)
    class_weight = resolve_class_weight(task.params.class_weight, own)
    y = np.where(labels == 1, 1.0, -1.0)
    C = np.where(known, task.C * class_weight[codes], 0.0)
    return _subproblem(task, y, C, codes, class_weight, (0, 1), whole)


def _subproblem(
    task: Task,
    y: FloatArray,
    C: FloatArray,
    codes: IntArray,
    class_weight: FloatArray,
    signs: tuple[int, int],
    whole: bool,
) -> Subproblem:
    """Return a binary SVM on all samples, or only on those with C > 0."""
    n, intercept = y.shape[0], bool(task.params.fit_intercept)
    K, copies = task.K, task.gram.first_equal
    rows = np.arange(n) if whole else (C > 0.0).nonzero()[0]
    if rows.size < n:
        K, y, C = K[np.ix_(rows, rows)], y[rows], C[rows]
        copies = None if copies is None else copies[rows]
    problem = Problem(K, y, C, intercept, copies)
    return Subproblem(problem, rows, codes, class_weight, signs)
