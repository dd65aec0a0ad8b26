# SPDX-License-Identifier: BSD-3-Clause
"""Methods "stopping" and "refit" (Franc, Laskov & Müller 2008).

Left-out labels that follow from the full solution (Franc et al. 2008, Table 1).

As printed the checks can be wrong with an intercept; here is what holds
(docs/method/stopping):

1. alpha_r = 0: the machine stays; without a free support vector b may move.
2. h_r < 0 for some optimal b: an error for every optimal b without r.
3. In the place of ``2 alpha_r R^2 + xi_r < 1``: the interval of
   ``loo_interval_from_solution`` excludes zero.

One left-out problem after the other by SMO, each stopped as soon as may be.

Method "refit": n warm-started refits, exact or within eps.

Within eps it is the *standard approach* of Franc, Laskov & Müller (2008): their
Algorithm 1, with the checks repaired, and Improved SMO as the solver.

Method "stopping": each left-out problem is solved until its label is proved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.engine._anti_learning import is_anti_learning
from leaveout.engine._certificate import weighted_median_interval
from leaveout.engine._problem import (
    CERTIFICATE,
    EPS_KKT,
    NEGATIVE_MARGIN,
    REFIT,
    STOPPING,
    Answer,
    Folds,
    LooIntervals,
    Problem,
    Solution,
    middle,
)
from leaveout.engine._solve import make_solution, refit_groups, seed_without, solve_svc
from leaveout.engine._walk import settle_from_solution
from leaveout.methods._left_out_interval import loo_interval_from_solution
from leaveout.methods._stopping_fast import Condition, End, solve_left_out
from leaveout.run._parallel import map_chunks

# A margin, or an end of an interval, nearer to 0 than this has no sign.
ROUNDING = 1e-10
# Steps a sample after which SMO gives up and the active set takes over.
STEPS_PER_SAMPLE = 1000
# A kernel value that stands for zero where one divides by it.
TINY = 1e-290
CONDITIONS = {"auxiliary": Condition.AUXILIARY, "ball": Condition.BALL}
# Exact mode: a sample not proved at this accuracy, or after this many steps a sample of
# the machine, is near a tie or badly conditioned, and left to the active set.
LAST_EPS = 1e-6
LAST_STEPS = 10


@dataclass
class Checked(Answer):
    """What the checks say of every sample.

    ``lower`` and ``upper`` are intervals of f(x_r), of which only the sign counts for
    negative margins and certificates; nothing is certified of a sample that is open.

    Parameters
    ----------
    lower, upper, certified, settled_by : ndarray of shape (n,)
        As in :class:`Answer`.
    problem, solution : Problem, Solution
        What was checked.
    open_rows : ndarray of int
        Samples that no check settles.
    """

    problem: Problem
    solution: Solution
    open_rows: IntArray

    def fill(
        self,
        rows: IntArray,
        lower: FloatArray,
        upper: FloatArray,
        certified: BoolArray,
        settled_by: np.ndarray,
    ) -> None:
        """Write the answers of samples that were open."""
        self.lower[rows], self.upper[rows] = lower, upper
        self.certified[rows], self.settled_by[rows] = certified, settled_by

    def result(self, counts: Mapping[str, float]) -> LooIntervals:
        """Return the answers with what they cost."""
        values = middle(self.lower, self.upper)
        return LooIntervals(
            values, self.lower, self.upper, self.certified, self.settled_by, counts,
            is_anti_learning(self.problem, self.solution, values),
        )  # fmt: skip


def check_left_out(
    problem: Problem, solution: Solution, rows: IntArray | None = None
) -> Checked:
    """Settle the samples whose left-out label the full solution tells.

    Parameters
    ----------
    problem : Problem
        The machine.
    solution : Solution
        Its optimum. From one that is optimal within some eps only, the answers are
        those of the paper's algorithm, but nothing is certified.
    rows : ndarray of int, optional
        Samples that are asked for; all if not given.

    Returns
    -------
    Checked
        With the samples, among those asked for, that are left.
    """
    answer = Answer.of_full_solution(solution)
    open_rows = settle_from_solution(problem, solution, answer, labels_only=False)
    checked = Checked(
        **vars(answer), problem=problem, solution=solution, open_rows=open_rows
    )
    if rows is not None:
        checked.open_rows = np.intersect1d(checked.open_rows, rows)
    g = solution.decision_values - solution.intercept
    # The least favourable b: also an upper bound of every left-out margin.
    worst_b = np.where(problem.y > 0, *solution.intercept_interval)
    wrong = (problem.y * (g + worst_b))[checked.open_rows] < -ROUNDING
    found = checked.open_rows[wrong]
    checked.lower[found] = checked.upper[found] = (g + worst_b)[found]
    checked.settled_by[found] = NEGATIVE_MARGIN
    checked.open_rows = checked.open_rows[~wrong]
    _settle_by_interval(problem, solution, checked)
    checked.certified[checked.open_rows] = False
    return checked


def _settle_by_interval(problem: Problem, solution: Solution, checked: Checked) -> None:
    """Check 3, by the interval that is always valid."""
    left = []
    for r in checked.open_rows:
        low, high = loo_interval_from_solution(problem, solution, int(r))
        if low > ROUNDING or high < -ROUNDING:
            checked.lower[r], checked.upper[r] = low, high
            checked.settled_by[r] = CERTIFICATE
        else:
            left.append(r)
    checked.open_rows = np.array(left, dtype=np.intp)


class LeftOut(NamedTuple):
    """What leaving out each of some samples gives; one entry a sample.

    ``columns`` counts columns of the kernel matrix: two a step of SMO, one a step on
    the auxiliary problem, one for each coefficient that seeding changed.
    """

    lower: FloatArray
    upper: FloatArray
    certified: BoolArray
    settled_by: np.ndarray
    steps: IntArray
    columns: IntArray

    @classmethod
    def join(cls, parts: Sequence[LeftOut]) -> LeftOut:
        """Put the entries of several parts one after the other."""
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    @property
    def counts(self) -> dict[str, float]:
        """Sums over the samples."""
        return {
            "solves": float(self.steps.size),
            "proved": float(np.count_nonzero(self.settled_by == STOPPING)),
            "refits": float(np.count_nonzero(self.settled_by == REFIT)),
            "steps": float(self.steps.sum()),
            "columns": float(self.columns.sum()),
        }


class LeftOutSolver:
    """Solves a machine without one sample by Improved SMO (Keerthi et al. 2001).

    Parameters
    ----------
    problem : Problem
        The machine.
    solution : Solution
        Its optimum, or a point near it.
    eps : float
        Optimality conditions (Franc et al. 2008, eq. (8)) within eps end a solve.
    seed : bool, default=True
        Start from the full solution; from zero otherwise.
    steps_per_sample : int, default=1000
        After this many steps a sample of the machine the active set ends the solve.
    """

    def __init__(
        self,
        problem: Problem,
        solution: Solution,
        eps: float,
        *,
        seed: bool = True,
        steps_per_sample: int = STEPS_PER_SAMPLE,
    ) -> None:
        self.problem = problem
        self.solution = solution
        self.eps = eps
        self.seed = seed
        self.max_steps = steps_per_sample * problem.n_samples
        self.F = problem.y - (solution.decision_values - solution.intercept)
        self.diag = np.ascontiguousarray(problem.K.diagonal())
        self.curvature = _with_inverse(self.diag)

    def leave_out(
        self,
        rows: IntArray,
        condition: Condition = Condition.NONE,
        *,
        finish: bool = False,
        n_threads: int = 1,
    ) -> LeftOut:
        """Leave out each of some samples.

        Parameters
        ----------
        rows : ndarray of int
            The samples.
        condition : Condition, default=NONE
            What stops a solve before it is optimal within eps.
        finish : bool, default=False
            Whether a sample whose label is not proved when SMO ends is solved exactly.
        n_threads : int, default=1
            Threads over samples.
        """
        n = rows.size
        out = LeftOut(
            np.empty(n), np.empty(n), np.zeros(n, dtype=bool),
            np.empty(n, dtype=np.int8), np.zeros(n, np.intp), np.zeros(n, np.intp),
        )  # fmt: skip

        def run(part: slice) -> None:
            for k in range(n)[part]:
                self._leave_out_one(int(rows[k]), condition, finish, out, k)

        map_chunks(run, n, n_threads, size=1)
        return out

    def _leave_out_one(
        self, r: int, condition: Condition, finish: bool, out: LeftOut, k: int
    ) -> None:
        """Solve without r, and write entry k."""
        C = self.problem.C.copy()
        C[r] = 0.0
        rest = Problem(self.problem.K, self.problem.y, C, self.problem.fit_intercept)
        beta, F, changed = self._start(r)
        end, steps, aux_steps = self._run(rest, r, condition, beta, F)
        out.steps[k] = steps
        out.columns[k] = changed + 2 * steps + aux_steps
        if end == End.TOO_LONG or (finish and end == End.EPS_KKT):
            exact = solve_svc(rest, start=beta)
            low, high = exact.intercept_interval
            g_r = float(exact.decision_values[r]) - exact.intercept
            out.settled_by[k], out.certified[k] = REFIT, exact.converged
        else:
            low, high = _intercepts(rest, F)
            g_r = float(rest.y[r] - F[r])
            out.settled_by[k] = STOPPING if end == End.PROVED else EPS_KKT
            out.certified[k] = end == End.PROVED
        out.lower[k], out.upper[k] = g_r + low, g_r + high

    def _start(self, r: int) -> tuple[FloatArray, FloatArray, int]:
        """Feasible coefficients without r, y - K beta there, and columns it took."""
        if not self.seed:
            return np.zeros_like(self.F), self.problem.y.copy(), 0
        beta = seed_without(self.problem, self.solution, np.array([r]))
        changed = np.flatnonzero(beta != self.solution.beta)
        moved = (self.solution.beta - beta)[changed]
        return beta, self.F + moved @ self.problem.K[changed], int(changed.size)

    def _start_auxiliary(
        self, r: int, beta: FloatArray, F: FloatArray
    ) -> tuple[FloatArray, FloatArray, float]:
        """Coefficients of H, y - K' aux there, and its value.

        The better of two points that cost nothing: the start of G, where H = G, and the
        full solution without its entry r, whose w is that of the full solution.
        """
        problem, y = self.problem, self.problem.y
        seeded = _auxiliary_gradient(problem, r, F)
        value = 0.5 * float(beta @ (y + seeded))
        if not self.seed:
            return beta.copy(), seeded, value
        full = self.solution.beta.copy()
        full[r] = 0.0
        Q = _auxiliary_gradient(problem, r, self.F)
        full_value = 0.5 * float(full @ (y + Q))
        if full_value > value:
            return full, Q, full_value
        return beta.copy(), seeded, value

    def _run(
        self, rest: Problem, r: int, condition: Condition, beta: FloatArray,
        F: FloatArray,
    ) -> tuple[int, int, int]:  # fmt: skip
        """Run the kernel in place: how it ended, steps on G, steps on H."""
        y, C, n = rest.y, rest.C, rest.n_samples
        curvature = _auxiliary_diagonal(rest, r, self.diag)
        if condition != Condition.NONE and not rest.fit_intercept:
            # K_rr = 0: f(x_r) = 0 whatever the machine, there is nothing to prove.
            condition = condition if self.diag[r] > 0.0 else Condition.NONE
        distance = np.sqrt(curvature)
        if not rest.fit_intercept:
            distance[r] = np.sqrt(max(self.diag[r], 0.0))
        aux, Q, H = beta, F, 0.0
        if condition == Condition.AUXILIARY:
            aux, Q, H = self._start_auxiliary(r, beta, F)
        b = 0.0
        if condition != Condition.NONE and rest.fit_intercept:
            b = next(end for end in _intercepts(rest, F) if np.isfinite(end))
        return solve_left_out(
            rest.K, y, C, np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0),
            self.curvature, _with_inverse(curvature), distance,
            r, rest.fit_intercept, condition, self.eps, self.max_steps, b, H,
            beta, F, aux, Q, np.empty((3, n)),
        )  # fmt: skip


def check_eps(eps: float) -> float:
    """Return eps, a positive number."""
    if not eps > 0.0:
        raise ValueError(f"eps must be > 0, or None for exact labels; got {eps!r}.")
    return float(eps)


def solve_to_eps(problem: Problem, eps: float) -> tuple[Solution, int]:
    """Solve a machine by Improved SMO until it is optimal within eps.

    Parameters
    ----------
    problem : Problem
        The machine, with both classes.
    eps : float
        Accuracy of the optimality conditions.

    Returns
    -------
    solution : Solution
        Converged only if it happens to be optimal to 1e-9, or if SMO took so long that
        the active set ended it.
    columns : int
        Columns of the kernel matrix used.
    """
    y, C, n = problem.y, problem.C, problem.n_samples
    beta, F, none = np.zeros(n), y.copy(), np.zeros(n)
    curvature = _with_inverse(problem.K.diagonal())
    end, steps, _ = solve_left_out(
        problem.K, y, C, np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0),
        curvature, curvature, none, 0, problem.fit_intercept, Condition.NONE, eps,
        STEPS_PER_SAMPLE * n, 0.0, 0.0, beta, F, beta, F, np.empty((3, n)),
    )  # fmt: skip
    if end == End.TOO_LONG:
        return solve_svc(problem, start=beta), 2 * steps
    free = np.flatnonzero((beta != 0.0) & (np.abs(beta) < C))
    return make_solution(problem, beta, F, free, steps, 1e-9), 2 * steps


def _intercepts(rest: Problem, F: FloatArray) -> tuple[float, float]:
    """All b that minimise the primal at y - K beta = F, without the absent samples."""
    if not rest.fit_intercept:
        return 0.0, 0.0
    here = rest.C > 0.0
    level = float(rest.C[rest.y > 0].sum())
    return weighted_median_interval(F[here], rest.C[here], level)


def _auxiliary_gradient(problem: Problem, r: int, F: FloatArray) -> FloatArray:
    """Return y - K' aux of a machine with w given by y - K beta = F.

    With an intercept b = -g_r puts f(x_r) to 0: u = g - g_r, for beta that sum to zero
    with or without r. Without one, u = g - K_r g_r / K_rr.
    """
    g_r = float(problem.y[r] - F[r])
    if problem.fit_intercept:
        return F + g_r
    return F + problem.K[r] * (g_r / problem.K[r, r])


def _with_inverse(squares: FloatArray) -> FloatArray:
    """Squared norms, kept away from zero, and their inverses, (2, n)."""
    squares = np.maximum(squares, TINY)
    return np.stack([squares, 1.0 / squares])


def _auxiliary_diagonal(problem: Problem, r: int, diag: FloatArray) -> FloatArray:
    """K'_ii: squared distance to phi_r, or to its span without intercept, (n,)."""
    row = problem.K[r]
    if problem.fit_intercept:
        squared: FloatArray = diag + diag[r] - 2.0 * row
    else:
        squared = diag - row**2 / max(diag[r], TINY)
    return np.maximum(squared, 0.0)


def loo_refit(
    problem: Problem,
    *,
    solution: Solution | None = None,
    labels_only: bool = False,
    n_threads: int = 1,
    eps: float | None = None,
    seed: bool = True,
) -> LooIntervals:
    """Leave every sample out of one binary machine by solving n problems.

    Each starts from the full solution by alpha-seeding (DeCoste & Wagstaff 2000) and
    ends at the same tolerance as a fit. With ``eps`` the standard approach of Franc,
    Laskov & Müller (2008) is run instead: labels that follow from the full solution are
    taken from it, the other samples are solved by Improved SMO (Keerthi et al. 2001)
    until optimal within eps. Nothing of the latter is certified.

    Parameters
    ----------
    problem : Problem
        The machine.
    solution : Solution, optional
        Its optimum, if it is at hand. If not, it is solved to ``eps`` too, as in the
        paper, and nothing is certified.
    labels_only : bool, default=False
        Ignored: a refit gives the value anyway. With ``eps`` only signs count where a
        check settled a sample.
    n_threads : int, default=1
        Threads over samples.
    eps : float, optional
        How far from optimal a solve may end (eq. (8), repaired). None: exact.
    seed : bool, default=True
        Whether solves start from the full solution; False, from zero, needs ``eps``.

    Returns
    -------
    LooIntervals
        Values with the interval of the intercept. With ``eps`` the counts have
        "columns" of the kernel matrix, "fit_columns" for the full solution, "solves"
        and "steps" of SMO.
    """
    started = perf_counter()
    if eps is not None:
        return _standard_approach(
            problem, solution, n_threads, check_eps(eps), seed, started
        )
    if not seed:
        raise ValueError("seed=False needs eps: exact refits start from the solution.")
    if solution is None:
        solution = solve_svc(problem)
    singles = Folds.singles(np.arange(problem.n_samples))
    ends = refit_groups(problem, solution, singles, n_threads=n_threads)
    lower, upper = ends.values + ends.down, ends.values + ends.up
    counts = {
        "refits": float(problem.n_samples),
        "seconds": perf_counter() - started,
    }
    values = middle(lower, upper)
    return LooIntervals(
        values, lower, upper, ends.certified, ends.settled_by, counts,
        is_anti_learning(problem, solution, values),
    )  # fmt: skip


def _standard_approach(
    problem: Problem,
    solution: Solution | None,
    n_threads: int,
    eps: float,
    seed: bool,
    started: float,
) -> LooIntervals:
    """Algorithm 1 of Franc et al. (2008)."""
    fit_columns = 0
    if solution is None:
        solution, fit_columns = solve_to_eps(problem, eps)
    checked = check_left_out(problem, solution)
    solver = LeftOutSolver(problem, solution, eps, seed=seed)
    out = solver.leave_out(checked.open_rows, n_threads=n_threads)
    checked.fill(checked.open_rows, *out[:4])
    seconds = perf_counter() - started
    return checked.result(
        {**out.counts, "fit_columns": float(fit_columns), "seconds": seconds}
    )


def loo_stopping(
    problem: Problem,
    *,
    solution: Solution | None = None,
    labels_only: bool = True,
    n_threads: int = 1,
    eps: float | None = None,
    seed: bool = True,
    condition: str = "auxiliary",
    n_trial: int = 10,
) -> LooIntervals:
    """Leave every sample out of one binary machine; labels, with proof.

    Algorithm 3 of Franc, Laskov & Müller (2008), with the errors of the printed version
    corrected (docs/method/stopping): SMO on the left-out problem stops as soon as no
    further step can change the label.

    Parameters
    ----------
    problem : Problem
        The machine.
    solution : Solution, optional
        Its optimum, if it is at hand.
    labels_only : bool, default=True
        Ignored: of most samples only the sign of the value is known.
    n_threads : int, default=1
        Threads over samples.
    eps : float, optional
        A sample whose label is not proved before the solve is optimal within eps gets
        the label there, not certified, as in the paper. None: such samples are solved
        exactly.
    seed : bool, default=True
        Whether solves start from the full solution; from zero otherwise.
    condition : {"auxiliary", "ball"}, default="auxiliary"
        What proves a label. "auxiliary": the primal value is below a lower bound of the
        best machine with f(x_r) = 0 (the paper's, eq. (14)). "ball": the optimum is in
        a ball around the current point, and all machines in it agree (no second
        problem).
    n_trial : int, default=10
        If the condition proves fewer than half of the first ``n_trial`` samples, the
        others are solved without it. 0: never.

    Returns
    -------
    LooIntervals
        The counts have "columns" of the kernel matrix, "steps" of SMO, "solves" that
        the checks left over, and "proved", those that the condition ended. The paper's
        Prec is proved / solves.
    """
    started = perf_counter()
    _check_parameters(condition, n_trial)
    exact = eps is None
    if solution is None:
        solution = solve_svc(problem)
    checked = check_left_out(problem, solution)
    solver = LeftOutSolver(
        problem,
        solution,
        LAST_EPS if eps is None else check_eps(eps),
        seed=seed,
        steps_per_sample=LAST_STEPS if exact else STEPS_PER_SAMPLE,
    )
    parts = []
    proving = CONDITIONS[condition]
    for rows in np.split(checked.open_rows, [n_trial]):
        if proving == Condition.NONE and exact:
            _refit(problem, solution, rows, checked, n_threads)
            continue
        part = solver.leave_out(rows, proving, finish=exact, n_threads=n_threads)
        checked.fill(rows, *part[:4])
        parts.append(part)
        if np.count_nonzero(part.settled_by == STOPPING) < 0.5 * rows.size:
            proving = Condition.NONE
    counts = LeftOut.join(parts).counts
    counts["refits"] += checked.open_rows.size - counts["solves"]
    counts["solves"] = float(checked.open_rows.size)
    counts["seconds"] = perf_counter() - started
    return checked.result(counts)


def _check_parameters(condition: str, n_trial: int) -> None:
    """Raise if a parameter of the method alone is wrong."""
    if condition not in CONDITIONS:
        raise ValueError(f"condition must be 'auxiliary' or 'ball'; got {condition!r}.")
    if n_trial < 0:
        raise ValueError(f"n_trial must be 0 or more; got {n_trial}.")


def _refit(
    problem: Problem,
    solution: Solution,
    rows: IntArray,
    checked: Checked,
    n_threads: int,
) -> None:
    """Solve without each of some samples exactly."""
    ends = refit_groups(problem, solution, Folds.singles(rows), n_threads=n_threads)
    lower, upper = ends.values + ends.down, ends.values + ends.up
    checked.fill(rows, lower, upper, ends.certified, ends.settled_by)
