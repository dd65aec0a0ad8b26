# SPDX-License-Identifier: BSD-3-Clause
"""One left-out problem after the other by SMO, each stopped as soon as may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.kernel import Problem
from leaveout.loo._refit import seed_without
from leaveout.loo._result import EPS_KKT, REFIT, STOPPING
from leaveout.loo._stopping_fast import Condition, End, solve_left_out
from leaveout.run import map_chunks
from leaveout.solve import (
    Solution,
    make_solution,
    solve_svc,
    weighted_median_interval,
)

# Steps a sample after which SMO gives up and the active set takes over.
STEPS_PER_SAMPLE = 1000
# A kernel value that stands for zero where one divides by it.
TINY = 1e-290


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
