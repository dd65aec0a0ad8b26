# SPDX-License-Identifier: BSD-3-Clause
"""Leave samples out of a Pipeline whose steps are fitted without them.

Steps, features, and inner products or distances of a fold are computed once for all
kernels and all C. A thread has memory for one fold at a time: its features, and with
several kernels or C up to two (n, n) matrices. The Gram matrices of all samples, one
per kernel, are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances
from sklearn.preprocessing import normalize

from leaveout._typing import FloatArray, IntArray
from leaveout.adapt._checks import check_features
from leaveout.adapt._steps import FoldSteps
from leaveout.engine._fold_fast import FoldWork
from leaveout.engine._fold_targets import FoldTargets
from leaveout.engine._fold_walk import FoldSolver, NotFiniteError
from leaveout.engine._problem import Folds, LooIntervals
from leaveout.kernel._gram import KERNELS, make_gram
from leaveout.kernel._gram_fast import (
    FoldGram,
    Formula,
    nearest_to_mean,
    squared_differences,
)
from leaveout.kernel._moved_gram import Expansion, LinearRescaling, Rescaling
from leaveout.loo._family import scale_bounds
from leaveout.loo._leave_out import (
    Columns,
    LeftOut,
    Plan,
    fold_factors,
    has_anti_learning,
    solve_and_leave_out,
)
from leaveout.loo._task import Params, Subproblem, Task, make_task
from leaveout.run._parallel import map_chunks

if TYPE_CHECKING:
    from leaveout.adapt._unwrap import Model

# Folds that a thread takes at a time.
FOLDS_AT_ONCE = 32
# The same for those that iterate together.
TOGETHER = 128
# Features whose terms for all pairs are in memory at once, and the most pairs of all
# folds: 64 MB.
FEATURES_AT_ONCE, MOST_PAIRS = 256, 2**23
# Larger changes of a weight are not in single precision, nor values closer to 0, nor
# any if sum |beta| is larger: f has errors of up to 1e-10 times this.
LARGE_CHANGE, CLOSE, LARGE_SUM = 0.2, 1e-4, 200.0
# With more problems of the same kernel all its values are computed first.
FEW_PROBLEMS = 2


@dataclass
class Fold:
    """One fold after another in one thread, and its memory."""

    steps: FoldSteps
    order: IntArray  # all samples
    gram: FoldGram = field(default_factory=FoldGram)
    k: int = -1
    exact: bool = False  # whether all is in double precision
    _blocks: dict[str, FloatArray] = field(default_factory=dict)
    _memory: dict[str, FloatArray] = field(default_factory=dict)

    def start(self, k: int, *, exact: bool = False) -> None:
        """Go to fold k."""
        self.k, self.exact = k, exact
        self._blocks.clear()
        for name in ("features", "unshifted", "origin"):
            self.__dict__.pop(name, None)

    @cached_property
    def unshifted(self) -> Any:
        """The same up to a shift, see FoldSteps."""
        return self.steps.unshifted(self.k)

    @cached_property
    def features(self) -> Any:
        """Features of all samples."""
        Z = self.steps.features(self.k)
        if Z.shape[1] == 0:
            where = self.steps.describe(self.k)
            raise ValueError(f"The steps of the Pipeline leave no features {where}.")
        return Z

    @cached_property
    def origin(self) -> int:
        """Sample to measure distances from; one of those left out may be far away."""
        if sparse.issparse(self.features):
            return -1
        kept = self.steps.kept(self.k)
        return int(kept[nearest_to_mean(self.features[kept])])

    def keep(self, kind: str, fill: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return an (n, n) matrix of this fold; ``fill`` writes it on first use."""
        if kind not in self._blocks:
            if kind not in self._memory:
                self._memory[kind] = np.empty((self.order.size, self.order.size))
            self._blocks[kind] = fill(self._memory[kind])
        return self._blocks[kind]

    def square(self, out: FloatArray) -> FloatArray:
        """Write all values of the kernel that is loaded."""
        self.gram.arrange(self.order)
        _, n_bad = self.gram.square(self.order.size, out)
        if n_bad:
            raise NotFiniteError(f"{n_bad} kernel values are not finite.")
        return out

    def products(self, kind: str, Z: Any, origin: int, out: FloatArray) -> FloatArray:
        """Write the inner products or distances of all pairs."""
        if kind == "absolute":
            return manhattan_distances(Z)
        if sparse.issparse(Z):
            if kind == "squares":
                return euclidean_distances(Z, squared=True)
            out[:] = (Z @ Z.T).toarray()
            return out
        if kind == "squares":
            self.gram.load(Z, Formula.SQUARES, origin=origin)
        else:
            self.gram.load(Z, Formula.LINEAR)
        return self.square(out)


class FoldKernels:
    """Makes the kernels of each fold from its features.

    What several kernels are functions of, inner products or distances, is computed once
    per fold, or once for all folds if none changes the features. With many problems
    this also holds for the kernel values; with few, only those that are needed are
    computed.

    Parameters
    ----------
    tasks : list of Task
        Tasks on all samples that differ in the kernel.
    steps : FoldSteps
        The features of each fold.
    n_folds : int
        Number of folds.
    n_problems : float
        Problems to solve per kernel and fold, each a share of all samples.
    size : float
        The largest sum |beta|.
    """

    def __init__(
        self,
        tasks: list[Task],
        steps: FoldSteps,
        n_folds: int,
        n_problems: float,
        size: float,
    ) -> None:
        self.tasks, self.steps = tasks, steps
        self.many = n_problems > FEW_PROBLEMS
        kinds = [_kind(task.params) for task in tasks]
        X = steps.base
        n, p = X.shape
        self.origin = -1 if sparse.issparse(X) else nearest_to_mean(X)
        self.shared: dict[str, FloatArray] = {}
        self.pairs: FloatArray | None = None
        for kind in set(kinds):
            if steps.are_alike:
                Z = normalize(X) if kind == "unit" else X
                fold = Fold(steps, np.arange(n))
                out = np.empty((n, n))
                self.shared[kind] = fold.products(kind, Z, self.origin, out)
            elif kind == "squares":
                self.pairs = _all_pairs(steps, n_folds, size <= LARGE_SUM)
                if self.pairs is not None:
                    self.numbers = _numbers_of_pairs(n)
        wide = self.many and 4 * p > n
        self.blocks = {
            kind
            for kind in kinds
            if kinds.count(kind) > 1
            or kind == "absolute"
            or sparse.issparse(X)
            or (wide and kind != "squares")
        }

    def load(self, fold: Fold, i: int) -> FoldGram:
        """Return the kernel values of task i in a fold."""
        task, gram = self.tasks[i], fold.gram
        params, kind = task.params, _kind(task.params)
        formula = KERNELS[str(params.kernel)].formula
        gamma = 1.0
        if "gamma" in KERNELS[str(params.kernel)].parameters:
            gamma = self.gamma(fold, params, kind)
        numbers: dict[str, Any] = {"gamma": gamma, "degree": int(params.degree)}
        numbers["coef0"] = float(params.coef0)
        numbers["scale"] = float(np.ldexp(1.0, -task.gram.exponent))
        block = self._find_block(fold, kind)
        if block is not None:
            own = Formula.LAPLACIAN if kind == "squares" else formula
            gram.load(block, own, given=True, **numbers)
        else:
            origin = -1
            if kind in ("squares", "centred") and fold.unshifted is not None:
                Z, numbers["fill"], numbers["factor"] = fold.unshifted
                origin = self.origin
            else:
                Z = normalize(fold.features) if kind == "unit" else fold.features
                if kind in ("squares", "centred"):
                    origin = fold.origin
            gram.load(Z, formula, origin=origin, **numbers)
        if self.many and formula != Formula.LINEAR:
            gram.load(fold.keep(f"kernel {i}", fold.square), Formula.LINEAR, given=True)
        return gram

    def gamma(self, fold: Fold, params: Params, kind: str) -> float:
        """Return the number used for gamma in a fold."""
        if not isinstance(params.gamma, str):
            return float(params.gamma)
        Z = self.steps.base if kind in self.shared else None
        if Z is None:
            Z = fold.features if fold.unshifted is None else fold.unshifted[0]
        variance = 1.0
        if params.gamma == "scale":
            variance = self.steps.variance(fold.k, Z)
            if variance <= 0.0:
                return 1.0
        return 1.0 / (Z.shape[1] * variance)

    def _find_block(self, fold: Fold, kind: str) -> FloatArray | None:
        """Return what the kernels of a kind are functions of, if that is shared."""
        if kind in self.shared:
            return self.shared[kind]
        if kind == "squares" and self.pairs is not None and not fold.exact:
            pairs = self.pairs[fold.k]
            return fold.keep(kind, lambda out: np.take(pairs, self.numbers, out=out))
        if kind not in self.blocks:
            return None
        Z = normalize(fold.features) if kind == "unit" else fold.features
        return fold.keep(kind, partial(fold.products, kind, Z, fold.origin))


def _kind(params: Params) -> str:
    """Return what the kernel is a function of.

    With an intercept the linear kernel does not depend on the origin.
    """
    if params.kernel == "linear" and params.fit_intercept:
        return "centred"
    kinds = {"rbf": "squares", "laplacian": "absolute", "cosine": "unit"}
    return kinds.get(str(params.kernel), "products")


def _numbers_of_pairs(n: int) -> IntArray:
    """Return the position of each pair of samples in np.tril_indices(n), (n, n)."""
    i, j = np.indices((n, n))
    i, j = np.maximum(i, j), np.minimum(i, j)
    numbers: IntArray = i * (i + 1) // 2 + j
    return numbers


def _all_pairs(steps: FoldSteps, n_folds: int, narrow: bool) -> FloatArray | None:
    """Return squared distances of all pairs in every fold.

    (n_folds, n_pairs), the pairs in the order of ``np.tril_indices(n)``. A fold that
    only rescales the p features weights the terms of every pair: one matrix product for
    all folds replaces n_folds passes over n p features. If narrow, it has single
    precision for the changes of the weights, which are of order 1 / n. None where that
    is no gain.
    """
    n, p = steps.base.shape
    n_pairs = n * (n + 1) // 2
    if p < 2 * n or n_folds * n_pairs > MOST_PAIRS or steps.factors is None:
        return None
    changes, (rows, columns) = steps.factors**2 - 1.0, np.tril_indices(n)
    large = np.abs(changes) > (LARGE_CHANGE if narrow else 0.0)
    small = np.where(large, 0.0, changes).astype(np.float32)
    Z = steps.base - steps.base.mean(axis=0)
    columns32 = np.ascontiguousarray(Z.T, dtype=np.float32)
    memory = np.empty((min(p, FEATURES_AT_ONCE), n_pairs), dtype=np.float32)

    def distances(Z: FloatArray, weights: Any) -> FloatArray:
        products = (Z * weights) @ Z.T
        lengths = products.diagonal()
        found = lengths[:, None] + lengths - 2.0 * products
        return found[rows, columns]

    pairs = np.tile(distances(Z, 1.0), (n_folds, 1))
    for first in range(0, p if narrow else 0, FEATURES_AT_ONCE):
        part = columns32[first : first + FEATURES_AT_ONCE]
        terms = memory[: len(part)]
        squared_differences(part, terms)
        pairs += small[:, first : first + FEATURES_AT_ONCE] @ terms
    for k, some in enumerate(large):
        if some.any():
            pairs[k] += distances(Z[:, some], changes[k, some])
    return pairs


def leave_folds_out(
    model: Model,
    X: Any,
    tasks: list[Task],
    plan: Plan,
    factors: FloatArray,
    folds: Folds | None = None,
) -> list[Columns]:
    """Leave every sample or group out, on features fitted without it.

    Bound to model and X, this function replaces ``solve_and_leave_out`` as the source
    of a plan. If ``folds`` are passed, these are left out, and the values are one per
    member. They may overlap; the members of each ascend.
    """
    overlapping = folds is not None
    if folds is None:
        n = tasks[0].target.codes.shape[0]
        folds = Folds.of_groups(np.arange(n) if plan.groups is None else plan.groups)
    steps = FoldSteps.of(model.steps, X, tasks[0].target.labels, folds)
    tasks = _on_all_samples(model, tasks, steps.base)
    found: list[Columns] = [[] for _ in tasks]
    one_kernel = [
        steps.are_alike and _is_fixed(task.params) and not overlapping for task in tasks
    ]
    for columns, task, fixed in zip(found, tasks, one_kernel, strict=True):
        if fixed:
            balanced = task.params.class_weight == "balanced"
            own = replace(plan, source=None, rebalance=balanced)
            columns += solve_and_leave_out(task, own, factors, whole=True)
    rest = [i for i, fixed in enumerate(one_kernel) if not fixed]
    if rest:
        some = [tasks[i] for i in rest]
        solved = _FoldsOfTasks(model, some, plan, factors, folds, steps)
        solved.leave_out()
        for i, columns in zip(rest, solved.collect(overlapping), strict=True):
            found[i] = columns
    return [
        [[replace(part, preprocessing=steps.paths) for part in parts] for parts in own]
        for own in found
    ]


def _is_fixed(params: Params) -> bool:
    """Whether the kernel depends on a fold only through the features."""
    return "gamma" not in KERNELS[str(params.kernel)].parameters or (
        params.gamma != "scale"
    )


def _on_all_samples(model: Model, tasks: list[Task], Z: FloatArray) -> list[Task]:
    """Return the tasks on features from all samples."""
    Z = check_features(model.estimator, Z, reset=None)
    grams = (make_gram(Z, **task.params.kernel_options) for task in tasks)
    return [
        make_task(task.target, gram, task.params, Z)
        for task, gram in zip(tasks, grams, strict=True)
    ]


class _FoldsOfTasks:
    """Solves each task at each C without each fold."""

    def __init__(
        self,
        model: Model,
        tasks: list[Task],
        plan: Plan,
        factors: FloatArray,
        folds: Folds,
        steps: FoldSteps,
    ) -> None:
        self.model, self.tasks, self.plan = model, tasks, plan
        self.folds, self.steps = folds, steps
        # per task, factor and subproblem
        self.cells = [_solvers(task, plan, factors, folds) for task in tasks]
        solvers = [solver for _, solver in self.cells[0][0]]
        shares = sum(np.count_nonzero(s.problem.C) / s.problem.y.size for s in solvers)
        n_problems = float(shares) * factors.size
        everything = [s for cell in self.cells for parts in cell for _, s in parts]
        size = max(float(np.abs(s.solution.beta).sum()) for s in everything)
        self.kernels = FoldKernels(tasks, steps, len(folds), n_problems, size)
        self.expansions = [
            self._expand(task, cell)
            for task, cell in zip(tasks, self.cells, strict=True)
        ]

    def _expand(self, task: Task, cell: Any) -> dict[FoldSolver, Any]:
        """Return what is known of the products of full solutions."""
        kernels, steps, start = self.kernels, self.steps, task.gram.gamma
        solvers = [solver for parts in cell for _, solver in parts]
        if _kind(task.params) == "centred" and steps.factors is not None:
            Z = steps.base - steps.base.mean(axis=0)
            own = Z, float(np.ldexp(1.0, -task.gram.exponent)), steps.factors
            return {s: LinearRescaling(*own, *s.parts()) for s in solvers}
        if task.params.kernel != "rbf" or start is None or kernels.many:
            return {}
        if kernels.pairs is not None:
            return {}
        fold = Fold(steps, np.arange(0))
        gammas = np.empty(len(self.folds))
        if "squares" in kernels.shared or steps.factors is not None:
            for k in range(gammas.size):
                fold.start(k)
                gammas[k] = kernels.gamma(fold, task.params, "squares")
        if "squares" in kernels.shared:
            D, K = kernels.shared["squares"], task.K
            return {s: Expansion(D, K, start, gammas, *s.parts()) for s in solvers}
        if steps.factors is None:
            return {}
        changes = steps.factors**2 * (gammas[:, None] / start) - 1.0
        Z = steps.base
        return {s: Rescaling(Z, task.K, start, changes, *s.parts()) for s in solvers}

    def leave_out(self) -> None:
        """Solve some folds everywhere, then the others on the samples near a kink."""
        chosen = np.empty(0, dtype=np.intp)
        solvers = [s for cell in self.cells for parts in cell for _, s in parts]
        n_threads = self.plan.n_threads
        open_ = self._iterate_together(solvers)
        if not open_.size:
            return
        walked = all(self.expansions) and all(s.walk(n_threads) for s in solvers)
        for solver in [] if walked else solvers:
            chosen = solver.pilots(chosen)
        values = self._solve(chosen, False, everywhere=True)
        for solver, own in zip(solvers, zip(*values, strict=True), strict=False):
            solver.choose_near([f for f in own if f is not None])
        others = np.setdiff1d(open_, chosen)

        def run(part: slice) -> None:
            self._solve(others[part], walked)

        map_chunks(run, others.size, n_threads, FOLDS_AT_ONCE)

    def _iterate_together(self, solvers: list[FoldSolver]) -> IntArray:
        """Solve linear problems with many features; return the other folds."""
        steps, everything = self.steps, np.arange(len(self.folds))
        n, p = steps.base.shape
        linear = all(_kind(task.params) == "centred" for task in self.tasks)
        if not linear or steps.factors is None or p < 2 * n:
            return everything
        if any(s.factors or not s.problem.C.all() for s in solvers):
            return everything
        factors, open_ = steps.factors, []
        for expansions in self.expansions:
            for solver, moved in expansions.items():
                targets = FoldTargets(solver, moved.Z, moved.scale)
                some = np.flatnonzero(solver.n_classes > 1)
                open_.append(np.setdiff1d(everything, some))

                def run(
                    part: slice, which: IntArray = some, own: Any = targets
                ) -> None:
                    open_.append(own.leave_out(which[part], factors))

                map_chunks(run, some.size, self.plan.n_threads, TOGETHER)
        return np.unique(np.concatenate(open_))

    def collect(self, per_member: bool) -> list[Columns]:
        """Return the values of all samples, or of all members of the folds."""
        return [
            [
                [_collect(self.plan, *each, per_member=per_member) for each in parts]
                for parts in cell
            ]
            for cell in self.cells
        ]

    def _solve(
        self, numbers: IntArray, walked: bool, *, everywhere: bool = False
    ) -> list[list[Any]]:
        """Solve some folds; return f of all samples in each by solver, if asked for."""
        guesses = {
            solver: solver.guess(numbers, *moved.at(numbers))
            for expansions in self.expansions
            for solver, moved in expansions.items()
            if walked
        }
        n = self.tasks[0].target.codes.size
        fold = Fold(self.steps, np.arange(n))
        work, values = self.cells[0][0][0][1].start(), []
        for j, k in enumerate(numbers.tolist()):
            fold.start(k)
            own = self._solve_fold(fold, j, guesses, work, everywhere)
            solvers = [s for cell in self.cells for parts in cell for _, s in parts]
            pairs = self.kernels.pairs
            if pairs is not None and any(s.is_close(k, CLOSE) for s in solvers):
                fold.start(k, exact=True)
                own = self._solve_fold(fold, j, guesses, work, everywhere)
            values.append(own)
        return values

    def _solve_fold(
        self, fold: Fold, j: int, guesses: Any, work: FoldWork, everywhere: bool
    ) -> list[Any]:
        """Solve all problems without a fold, number j of the guesses."""
        own = []
        try:
            for i, cell in enumerate(self.cells):
                gram = self.kernels.load(fold, i)
                for solver in (solver for parts in cell for _, solver in parts):
                    moved = self.expansions[i].get(solver)
                    kernel = moved.move(gram, fold.k) if moved else gram
                    guess = guesses[solver][j] if guesses else None
                    own.append(
                        solver.leave_out(
                            fold.k, kernel, work, guess, everywhere=everywhere
                        )
                    )
        except NotFiniteError as error:
            rows = self.folds[fold.k]
            _explain_not_finite(self.model, fold.features, rows, error)
        return own


def _solvers(
    task: Task, plan: Plan, factors: FloatArray, folds: Folds
) -> list[list[tuple[Subproblem, FoldSolver]]]:
    """Return the solvers of a task at each C, on bounds that no fold can reach."""
    cells: list[list[tuple[Subproblem, FoldSolver]]] = [[] for _ in factors]
    for sub in plan.family.make_problems(task, True):
        own = folds
        if task.params.class_weight == "balanced":
            weights = fold_factors(sub.codes, sub.class_weight, folds)
            own = replace(folds, C_factors=weights[:, sub.signs])
        before = None
        for k in np.argsort(factors, kind="stable"):
            problem, start = scale_bounds(sub.problem, factors[k], before)
            solution = plan.family.solve(problem, start=start)
            before = problem, solution
            cells[k].append((sub, FoldSolver(problem, solution, own)))
    return cells


def _collect(
    plan: Plan, sub: Subproblem, solver: FoldSolver, *, per_member: bool
) -> LeftOut:
    """Return the values of all samples, or all members, by one subproblem."""
    found, folds, solution = solver.found, solver.folds, solver.solution
    assert plan.family.certify is not None
    found = plan.family.certify(solver.problem, solution, found, folds)
    counts = {**found.counts, **solver.counts}
    if per_member:
        return LeftOut(replace(found, counts=counts), sub.rows, solution)
    whole = LooIntervals.empty(solver.problem.n_samples)
    whole.write(folds.members, found)
    whole = replace(whole, counts=counts)
    own = replace(sub, problem=solver.problem)
    anti_learning = has_anti_learning(plan.family, own, solution, whole, folds)
    return LeftOut(whole, sub.rows, solution, anti_learning)


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
