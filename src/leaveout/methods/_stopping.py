# SPDX-License-Identifier: BSD-3-Clause
"""Methods "stopping" and "refit" (Franc, Laskov & Müller 2008).

"refit" solves n warm-started problems, exactly or within eps; within eps it is the
*standard approach* of the paper, its Algorithm 1, with Improved SMO (Keerthi et al.
2001) as the solver. "stopping" is its Algorithm 3: each left-out problem is solved
until its label is proved. Labels that follow from the full solution are settled first
(Table 1; with an intercept the printed checks can be wrong: docs/method/stopping):

1. alpha_r = 0: the solution does not change; without a free support vector b may.
2. h_r < 0 for some optimal b: an error for every optimal b without r.
3. Instead of ``2 alpha_r R^2 + xi_r < 1``: the interval of
   ``left_out_intervals`` excludes zero.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.engine._certificate import weighted_median_interval
from leaveout.engine._problem import (
    CERTIFICATE,
    CERTIFIED,
    EPS_KKT,
    EPS_ONLY,
    NEGATIVE_MARGIN,
    NOT_CONVERGED,
    REFIT,
    STOPPING,
    Folds,
    LooIntervals,
    Problem,
    Solution,
)
from leaveout.engine._solve import refit_each, seed_without, solve_svc
from leaveout.engine._walk import settle_from_solution
from leaveout.methods._left_out_interval import left_out_intervals
from leaveout.methods._stopping_fast import Condition, End, solve_left_out
from leaveout.run._parallel import map_chunks

# A margin, or an end of an interval, closer to 0 than this has no sign.
ROUNDING = 1e-10
# Steps per sample after which the active set replaces SMO.
STEPS_PER_SAMPLE = 1000
# Replaces a kernel value of zero in a division.
TINY = 1e-290
CONDITIONS = {"auxiliary": Condition.AUXILIARY, "ball": Condition.BALL}
# Exact mode: a label not proved at this accuracy, or after this many steps per sample
# of the problem, is near a tie or ill-conditioned; the active set then solves it.
LAST_EPS = 1e-6
LAST_STEPS = 10
# The trial ends early if so many more labels are not proved than are. One that is not
# proved costs half as much again as without the condition.
LOST = 3


def check_left_out(
    problem: Problem, solution: Solution
) -> tuple[LooIntervals, IntArray]:
    """Settle the samples whose left-out label follows from the full solution.

    For negative margins and certificates only the sign is valid. Also returns the
    samples that no check settles; these are not certified.
    """
    found = LooIntervals.from_solution(solution)
    open_rows = settle_from_solution(problem, solution, found, labels_only=False)
    f = values_at_worst_b(problem, solution)
    wrong = (problem.y * f)[open_rows] < -ROUNDING
    settled = open_rows[wrong]
    found.lower[settled] = found.upper[settled] = f[settled]
    found.settled_by[settled] = NEGATIVE_MARGIN
    rest = open_rows[~wrong]
    low, high = left_out_intervals(problem, solution, rest)
    clear = (low > ROUNDING) | (high < -ROUNDING)
    settled, left = rest[clear], rest[~clear]
    found.lower[settled], found.upper[settled] = low[clear], high[clear]
    found.settled_by[settled] = CERTIFICATE
    found.uncertified_by[left] = NOT_CONVERGED
    return found, left


def values_at_worst_b(problem: Problem, solution: Solution) -> FloatArray:
    """Return f at the worst optimal b per sample: no left-out margin is larger."""
    worst_b = np.where(problem.y > 0, *solution.intercept_interval)
    return solution.decision_values - solution.intercept + worst_b


class LeftOutSolver:
    """Solves a problem without one sample by Improved SMO (Keerthi et al. 2001).

    A solve ends when the optimality conditions (Franc et al. 2008, eq. (8)) hold within
    ``eps``. With ``seed`` it starts from the full solution, else from zero. After
    ``steps_per_sample`` steps per sample the active set finishes it.
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
        self.problem, self.solution, self.eps, self.seed = problem, solution, eps, seed
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
    ) -> LooIntervals:
        """Leave out each of some samples; ``condition`` may stop a solve early.

        With ``finish``, problems whose label is not proved when SMO ends are solved
        exactly. The counts hold "steps" of SMO and "columns" of the kernel matrix.
        """
        n = rows.size
        out = LooIntervals.empty(n)
        steps, columns = np.zeros((2, n), dtype=np.intp)

        def run(part: slice) -> None:
            for k in range(n)[part]:
                steps[k], columns[k] = self._leave_out_one(
                    int(rows[k]), condition, finish, out, k
                )

        map_chunks(run, n, n_threads, size=1)
        counts = {
            "solves": float(n),
            "proved": float(np.count_nonzero(out.settled_by == STOPPING)),
            "refits": float(np.count_nonzero(out.settled_by == REFIT)),
            "steps": float(steps.sum()),
            "columns": float(columns.sum()),
        }
        return replace(out, counts=counts)

    def _leave_out_one(
        self, r: int, condition: Condition, finish: bool, out: LooIntervals, k: int
    ) -> tuple[int, int]:
        """Solve without r and write entry k; return steps and columns."""
        C = self.problem.C.copy()
        C[r] = 0.0
        rest = replace(self.problem, C=C)
        beta, F, changed = self._start(r)
        end, steps, aux_steps = self._run(rest, r, condition, beta, F)
        if end == End.TOO_LONG or (finish and end == End.EPS_KKT):
            exact = solve_svc(rest, start=beta)
            low, high = exact.intercept_interval
            g_r = float(exact.decision_values[r]) - exact.intercept
            out.settled_by[k] = REFIT
            out.uncertified_by[k] = CERTIFIED if exact.converged else NOT_CONVERGED
        else:
            low, high = _intercepts(rest, F)
            g_r = float(rest.y[r] - F[r])
            proved = end == End.PROVED
            out.settled_by[k] = STOPPING if proved else EPS_KKT
            out.uncertified_by[k] = CERTIFIED if proved else EPS_ONLY
        out.lower[k], out.upper[k] = g_r + low, g_r + high
        return steps, changed + 2 * steps + aux_steps

    def _start(self, r: int) -> tuple[FloatArray, FloatArray, int]:
        """Feasible coefficients without r, their y - K beta, and the columns used."""
        if not self.seed:
            return np.zeros_like(self.F), self.problem.y.copy(), 0
        beta = seed_without(self.problem, self.solution, np.array([r]))
        changed = np.flatnonzero(beta != self.solution.beta)
        moved = (self.solution.beta - beta)[changed]
        return beta, self.F + moved @ self.problem.K[changed], int(changed.size)

    def _run(
        self, rest: Problem, r: int, condition: Condition, beta: FloatArray,
        F: FloatArray,
    ) -> tuple[int, int, int]:  # fmt: skip
        """Run the kernel in place; return how it ended, steps on G, steps on H."""
        y, C, n = rest.y, rest.C, rest.n_samples
        curvature = _auxiliary_diagonal(rest, r, self.diag)
        distance = np.sqrt(curvature)
        if not rest.fit_intercept:
            distance[r] = np.sqrt(max(self.diag[r], 0.0))
            if not self.diag[r] > 0.0:  # f(x_r) = 0 for every w: nothing to prove
                condition = Condition.NONE
        aux, Q, H = beta, F, 0.0
        if condition == Condition.AUXILIARY:
            aux, Q = beta.copy(), _auxiliary_gradient(rest, r, F)
            H = 0.5 * float(aux @ (y + Q))
        b = 0.0
        if condition != Condition.NONE and rest.fit_intercept:
            b = next((end for end in _intercepts(rest, F) if np.isfinite(end)), 0.0)
        return solve_left_out(
            rest.K, y, C, np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0),
            self.curvature, _with_inverse(curvature), distance,
            r, rest.fit_intercept, condition, self.eps, self.max_steps, b, H,
            beta, F, aux, Q, np.empty((3, n)),
        )  # fmt: skip


def _intercepts(rest: Problem, F: FloatArray) -> tuple[float, float]:
    """All b that minimise the primal at y - K beta = F, over the present samples."""
    if not rest.fit_intercept:
        return 0.0, 0.0
    here = rest.C > 0.0
    level = float(rest.C[rest.y > 0].sum())
    return weighted_median_interval(F[here], rest.C[here], level)


def _auxiliary_gradient(problem: Problem, r: int, F: FloatArray) -> FloatArray:
    """Return y - K' aux of a problem with w given by y - K beta = F.

    With an intercept b = -g_r makes f(x_r) = 0: u = g - g_r, for beta that sum to zero
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
    """K'_ii: squared distance to phi_r, or without intercept to its span, (n,)."""
    row = problem.K[r]
    if problem.fit_intercept:
        squared: FloatArray = diag + diag[r] - 2.0 * row
    else:
        squared = diag - row**2 / max(diag[r], TINY)
    return np.maximum(squared, 0.0)


def loo_refit(
    problem: Problem,
    solution: Solution,
    folds: Folds | None = None,
    *,
    labels_only: bool = False,
    n_threads: int = 1,
    eps: float | None = None,
    seed: bool = True,
) -> LooIntervals:
    """Leave samples out of one binary SVM by solving a problem for each fold.

    Each solve starts from the full solution by alpha-seeding (DeCoste & Wagstaff 2000)
    and ends at the same tolerance as a fit. With ``eps`` the standard approach of the
    paper is run instead: samples that no check settles are solved until optimal within
    eps, and are not certified.

    Parameters
    ----------
    problem, solution, folds, n_threads
        As in :func:`~leaveout.engine._walk.loo_walk`; with ``eps`` single samples only.
    labels_only : bool, default=False
        Ignored: a refit always gives the value. With ``eps`` only the sign is valid for
        samples that a check settled.
    eps : float, optional
        Tolerance of the optimality conditions (eq. (8), corrected). None: exact.
    seed : bool, default=True
        Whether solves start from the full solution; False (from zero) needs ``eps``.

    Returns
    -------
    LooIntervals
        With ``eps`` the counts hold "columns" of the kernel matrix, "solves" and
        "steps" of SMO.
    """
    if eps is not None:
        found, rows = check_left_out(problem, solution)
        solver = LeftOutSolver(problem, solution, _checked(eps), seed=seed)
        out = solver.leave_out(rows, n_threads=n_threads)
        found.write(rows, out)
        return replace(found, counts=out.counts)
    if not seed:
        raise ValueError("seed=False needs eps: exact refits start from the solution.")
    if folds is None:
        folds = Folds.singles(np.arange(problem.n_samples))
    found = refit_each(problem, solution, folds, n_threads=n_threads)
    return replace(found, counts={"refits": float(len(folds))})


def loo_stopping(
    problem: Problem,
    solution: Solution,
    folds: Folds | None = None,
    *,
    labels_only: bool = True,
    n_threads: int = 1,
    eps: float | None = None,
    seed: bool = True,
    condition: str = "auxiliary",
    n_trial: int = 10,
) -> LooIntervals:
    """Leave every sample out of one binary SVM and prove its label.

    Algorithm 3 of Franc, Laskov & Müller (2008), with the errors of the printed version
    corrected (docs/method/stopping): SMO on the left-out problem stops as soon as no
    further step can change the label.

    Parameters
    ----------
    problem, solution, folds, n_threads
        As in :func:`~leaveout.engine._walk.loo_walk`; single samples only.
    labels_only : bool, default=True
        Ignored: for most samples only the sign of the value is known.
    eps : float, optional
        If a label is not proved before the solve is optimal within eps, the label at
        that point is used, without a certificate, as in the paper. None: such samples
        are solved exactly.
    seed : bool, default=True
        Whether solves start from the full solution; from zero otherwise.
    condition : {"auxiliary", "ball"}, default="auxiliary"
        What proves a label. "auxiliary": the primal value is below a lower bound of the
        best solution with f(x_r) = 0 (eq. (14) of the paper). "ball": the optimum is in
        a ball around the current point, and all solutions in it agree, which needs no
        second problem.
    n_trial : int, default=10
        If the condition proves fewer than half of the first ``n_trial`` samples, or if
        among these three more are not proved than are, the others are solved without
        it. 0: never.

    Returns
    -------
    LooIntervals
        The counts hold "columns" of the kernel matrix, "steps" of SMO, "solves"
        (samples that no check settled) and "proved" (solves that the condition ended).
        The paper's Prec is proved / solves.
    """
    if condition not in CONDITIONS:
        raise ValueError(f"condition must be 'auxiliary' or 'ball'; got {condition!r}.")
    if n_trial < 0:
        raise ValueError(f"n_trial must be 0 or more; got {n_trial}.")
    exact = eps is None
    found, open_rows = check_left_out(problem, solution)
    solver = LeftOutSolver(
        problem,
        solution,
        LAST_EPS if eps is None else _checked(eps),
        seed=seed,
        steps_per_sample=LAST_STEPS if exact else STEPS_PER_SAMPLE,
    )
    proving = CONDITIONS[condition]
    counts = dict.fromkeys(("solves", "proved", "refits", "steps", "columns"), 0.0)
    done = balance = 0  # proved minus not proved
    while done < open_rows.size:
        in_trial = done < n_trial and proving != Condition.NONE
        # As many samples as cannot end the trial sooner, for any number of threads.
        size = min(n_trial - done, LOST + balance) if in_trial else open_rows.size
        rows = open_rows[done : done + size]
        done += rows.size
        if proving == Condition.NONE and exact:
            singles = Folds.singles(rows)
            part = refit_each(problem, solution, singles, n_threads=n_threads)
            found.write(rows, part)
            counts["refits"] += rows.size
            continue
        part = solver.leave_out(rows, proving, finish=exact, n_threads=n_threads)
        found.write(rows, part)
        counts = {name: counts[name] + part.counts[name] for name in counts}
        if in_trial:
            balance += 2 * int(part.counts["proved"]) - rows.size
            if balance <= -LOST or (done >= n_trial and balance < 0):
                proving = Condition.NONE
    counts["solves"] = float(open_rows.size)
    return replace(found, counts=counts)


def _checked(eps: float) -> float:
    if not eps > 0.0:
        raise ValueError(f"eps must be > 0, or None for exact labels; got {eps!r}.")
    return float(eps)
