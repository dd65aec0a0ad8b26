# SPDX-License-Identifier: BSD-3-Clause
"""Leave samples out of a Pipeline whose steps are fitted without them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances
from sklearn.preprocessing import normalize

from leaveout._typing import FloatArray, IntArray
from leaveout.adapt._checks import check_features
from leaveout.adapt._steps import FoldSteps
from leaveout.engine._fold_walk import FoldSolver, NotFiniteError
from leaveout.engine._problem import Folds, LooIntervals
from leaveout.kernel._gram import KERNELS, make_gram
from leaveout.kernel._gram_fast import FoldGram, Formula, nearest_to_mean
from leaveout.loo._leave_out import (
    LeftOut,
    Plan,
    fold_factors,
    has_anti_learning,
    leave_subproblem_out,
)
from leaveout.loo._task import Params, Subproblem, Task, make_task
from leaveout.run._parallel import map_chunks

if TYPE_CHECKING:
    from leaveout.adapt._unwrap import Model

# Folds that a thread takes at a time.
FOLDS_AT_ONCE = 32
# Features whose terms for all pairs are in memory at once, and the most pairs of all
# folds: 64 MB.
FEATURES_AT_ONCE, MOST_PAIRS = 64, 2**23


@dataclass(frozen=True)
class FoldKernels:
    """Makes the kernel of each fold from its features.

    Parameters
    ----------
    params : Params
        The kernel and its parameters.
    scale : float
        Factor of all kernel values.
    origin : int
        Sample from which distances are measured, so that they are accurate; or -1.
    given : bool
        Whether all inner products or distances are computed first: for distances that
        are not Euclidean, and for sparse features.
    """

    params: Params
    scale: float
    origin: int
    given: bool
    pairs: FloatArray | None = None

    @classmethod
    def of(cls, task: Task, steps: FoldSteps, n_folds: int) -> FoldKernels:
        """Return the kernels of the folds of a task."""
        params, scale = task.params, float(np.ldexp(1.0, -task.gram.exponent))
        pairs = None
        # Without an intercept the linear kernel depends on the origin.
        if params.kernel == "rbf" or (
            params.kernel == "linear" and params.fit_intercept
        ):
            pairs = _all_pairs(steps, n_folds, params.kernel)
        given = sparse.issparse(task.X) or params.kernel == "laplacian"
        given |= pairs is not None
        centred = params.kernel == "rbf" and not given
        origin = nearest_to_mean(task.X) if centred else -1
        return cls(params, scale, origin, given, pairs)

    def empty(self) -> FoldGram:
        """Return an object that takes one fold after another."""
        params = self.params
        formula = KERNELS[str(params.kernel)].formula
        if self.given and formula == Formula.RBF:
            formula = Formula.LAPLACIAN  # of squared distances
        coef0, degree = float(params.coef0), int(params.degree)
        return FoldGram(formula, degree, coef0, self.scale, self.origin)

    def load(self, gram: FoldGram, steps: FoldSteps, k: int) -> None:
        """Load the features of all samples without fold k."""
        kernel, gamma = str(self.params.kernel), self.params.gamma
        Z = steps.base if self.pairs is not None else steps.features(k)
        number = 1.0
        if "gamma" in KERNELS[kernel].parameters:
            number = gamma if not isinstance(gamma, str) else 1.0 / Z.shape[1]
            if gamma == "scale":
                variance = steps.variance(k, None if self.pairs is not None else Z)
                number = number / variance if variance > 0.0 else 1.0
        if kernel == "cosine":
            Z = normalize(Z)
        if self.pairs is not None:
            n = Z.shape[0]
            Z = np.empty((n, n))
            rows, columns = np.tril_indices(n)
            Z[rows, columns] = Z[columns, rows] = self.pairs[k]
        elif self.given:
            Z = _products_or_distances(kernel, Z)
        elif sparse.issparse(Z):
            Z = Z.toarray()
        gram.load(Z, number, self.given)


def _all_pairs(steps: FoldSteps, n_folds: int, kernel: str) -> FloatArray | None:
    """Return squared distances, or inner products, of all pairs in every fold.

    (n_folds, n_pairs), the pairs in the order of ``np.tril_indices(n)``. A fold that
    only rescales the p features weights the terms of every pair: one matrix product for
    all folds replaces n_folds passes over n p features. None where that is no gain.
    """
    n, p = steps.base.shape
    n_pairs = n * (n + 1) // 2
    if p < 2 * n or n_folds * n_pairs > MOST_PAIRS or sparse.issparse(steps.base):
        return None
    rescaled = [steps.affine(k) for k in range(n_folds)]
    if any(own is None for own in rescaled):
        return None
    weights = np.array([own[1] for own in rescaled if own is not None]) ** 2
    if not weights.all():  # a fold lacks some of the features
        return None
    rows, columns = np.tril_indices(n)
    features = np.ascontiguousarray((steps.base - steps.base.mean(axis=0)).T)
    pairs = np.zeros((n_folds, n_pairs))
    for first in range(0, p, FEATURES_AT_ONCE):
        Z = features[first : first + FEATURES_AT_ONCE]
        terms, others = (np.take(Z, which, axis=1) for which in (rows, columns))
        if kernel == "rbf":
            terms -= others
            others = terms
        terms *= others
        pairs += weights[:, first : first + FEATURES_AT_ONCE] @ terms
    return pairs


def _products_or_distances(kernel: str, Z: Any) -> FloatArray:
    """Return what the formula of the kernel is applied to, (n, n)."""
    if kernel == "laplacian":
        return manhattan_distances(Z)
    if kernel == "rbf":
        return euclidean_distances(Z, squared=True)
    V = Z @ Z.T
    return np.ascontiguousarray(V.toarray() if sparse.issparse(V) else V)


def leave_folds_out(model: Model, X: Any, task: Task, plan: Plan) -> list[LeftOut]:
    """Leave every sample or group out, on features fitted without it.

    Bound to model and X, this function replaces ``solve_and_leave_out`` as the source
    of a plan.
    """
    n = task.target.codes.shape[0]
    codes = np.arange(n) if plan.groups is None else plan.groups
    folds = Folds.of_groups(codes)
    steps = FoldSteps.of(model.steps, X, task.target.labels, folds)
    task = _on_all_samples(model, task, steps.base)
    subproblems = list(plan.family.make_problems(task, True))
    if _is_one_kernel(task.params, steps, len(folds)):
        parts = [leave_subproblem_out(task, plan, sub) for sub in subproblems]
        return [
            replace(part, solution=None, preprocessing=steps.paths) for part in parts
        ]
    solvers = [_solver(task, plan, sub, folds) for sub in subproblems]
    kernels = FoldKernels.of(task, steps, len(folds))

    def solve(numbers: IntArray, *, everywhere: bool = False) -> list[list[Any]]:
        gram, values = kernels.empty(), []
        work = [solver.start() for solver in solvers]
        for k in numbers.tolist():
            try:
                kernels.load(gram, steps, k)
                values.append(
                    [
                        solver.leave_out(k, gram, own, everywhere=everywhere)
                        for solver, own in zip(solvers, work, strict=True)
                    ]
                )
            except NotFiniteError as error:
                _explain_not_finite(model, steps.features(k), folds[k], error)
        return values

    pilots = np.unique(np.concatenate([solver.pilots() for solver in solvers]))
    values = solve(pilots, everywhere=True)
    for i, solver in enumerate(solvers):
        if pilots.size:
            own = (f[i] for f in values)
            solver.choose_near([f for f in own if f is not None])
    others = np.setdiff1d(np.arange(len(folds)), pilots)

    def run(part: slice) -> None:
        solve(others[part])

    map_chunks(run, others.size, plan.n_threads, FOLDS_AT_ONCE)
    return [
        replace(_collect(task, plan, sub, solver), preprocessing=steps.paths)
        for sub, solver in zip(subproblems, solvers, strict=True)
    ]


def _is_one_kernel(params: Params, steps: FoldSteps, n_folds: int) -> bool:
    """Whether no fold changes a feature, gamma or a class weight."""
    has_gamma = "gamma" in KERNELS[str(params.kernel)].parameters
    if params.class_weight == "balanced" or (has_gamma and params.gamma == "scale"):
        return False
    return len({steps.group_of(k) for k in range(n_folds)}) == 1


def _on_all_samples(model: Model, task: Task, Z: FloatArray) -> Task:
    """Return the task on features from all samples."""
    own = clone(model.estimator)  # check_features stores the columns in it
    Z = check_features(own, Z, reset=True)
    gram = make_gram(Z, **task.params.kernel_options)
    return make_task(task.target, gram, task.params, Z)


def _solver(task: Task, plan: Plan, sub: Subproblem, folds: Folds) -> FoldSolver:
    """Return the solver of one subproblem, on bounds that no fold can reach."""
    if task.params.class_weight == "balanced":
        factors = fold_factors(sub.codes, sub.class_weight, folds)
        folds = replace(folds, C_factors=factors[:, sub.signs])
    problem, solution = sub.problem, plan.family.solve(sub.problem)
    return FoldSolver(problem, solution, folds)


def _collect(task: Task, plan: Plan, sub: Subproblem, solver: FoldSolver) -> LeftOut:
    """Return the values of all samples by one subproblem."""
    found, folds, solution = solver.found, solver.folds, solver.solution
    assert plan.family.certify is not None
    found = plan.family.certify(solver.problem, solution, found, folds)
    whole = LooIntervals.empty(task.target.codes.shape[0])
    whole.write(folds.members, found)
    whole = replace(whole, counts={**found.counts, **solver.counts})
    anti_learning = has_anti_learning(plan.family, sub, solution, whole, folds)
    return LeftOut(whole, anti_learning=anti_learning)


def _explain_not_finite(
    model: Model, Z: FloatArray, rows: IntArray, error: NotFiniteError
) -> NoReturn:
    """Raise an error that names the fold and what is not finite in it."""
    names = ", ".join(str(row) for row in rows[:5])
    try:
        Z = check_features(clone(model.estimator), Z, reset=True)
        make_gram(Z, **model.params.kernel_options)
    except Exception as reason:
        reason.add_note(f"This fold left out row {names}{' …' * (rows.size > 5)}.")
        raise reason from error
    raise error
