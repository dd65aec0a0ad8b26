# SPDX-License-Identifier: BSD-3-Clause
"""Classical bounds and estimates of the leave-one-out error, each said to be which.

A sample is *wrong* if its left-out margin is below 0 for every optimal intercept, and
*ambiguous* if that depends on the intercept. With an unregularised intercept most
bounds of the literature do not hold as printed (docs/method/bounds); ``kind`` tells
what a number is worth for the machine at hand:

    bound       no fewer samples are wrong or ambiguous
    weak bound  no fewer samples are wrong; ambiguous ones may be missed
    estimate    no promise
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import fsum
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from leaveout._typing import BoolArray
from leaveout.kernel import Problem
from leaveout.loo._checks import ROUNDING, check_left_out
from leaveout.loo._lpm import loo_lpm_walk
from leaveout.loo._radius import enclosing_radius_squared, solve_l2_svm
from leaveout.loo._result import MachineLoo
from leaveout.loo._span import span_squared
from leaveout.loo._trust import rounding_of_values, trusted
from leaveout.loo._walk import loo_walk
from leaveout.solve import LpmSolution, Solution, has_room

if TYPE_CHECKING:
    import pandas as pd

BOUND, WEAK, ESTIMATE, EXACT = "bound", "weak bound", "estimate", "exact"
# Where rounding may move f further, nobody knows who is a support vector.
DOUBT = 1e-5
IN_DOUBT = "terms cancel: rounding may hide errors"


@dataclass(frozen=True)
class Bound:
    """One number that stands for the leave-one-out error.

    Parameters
    ----------
    name : str
        Whose it is.
    kind : {"bound", "weak bound", "estimate", "exact"}
        What it is worth for this machine.
    value : float
        Share of samples; sums, such as radius-margin, may exceed 1.
    lower : float
        Share of samples that are certainly wrong; 0 if it has no lower end.
    cost : str
        Operations beyond the fit, for n samples with s support vectors, m of them free.
    note : str
        Why it is no more than that, or what else it is of.
    seconds : float
        Time taken.
    """

    name: str
    kind: str
    value: float
    lower: float = 0.0
    cost: str = ""
    note: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class LooBounds:
    """Bounds and estimates of the leave-one-out error of one machine.

    Parameters
    ----------
    rows : tuple of Bound
        One each; the exact error is last, if it was asked for.
    n_samples : int
        Number of samples.
    fit_intercept : bool
        Whether the machine has an intercept, which decides what most are worth.

    Examples
    --------
    >>> import leaveout as lo
    >>> from leaveout.data import make_twonorm
    >>> X, y = make_twonorm(100, random_state=0)
    >>> bounds = lo.loo_bounds(lo.SVC(C=1, gamma=0.05), X, y)
    >>> bounds["span"].kind, bounds["certificate"].kind
    ('estimate', 'bound')
    """

    rows: tuple[Bound, ...]
    n_samples: int
    fit_intercept: bool

    def __getitem__(self, name: str) -> Bound:
        """Return the row of that name."""
        for row in self.rows:
            if row.name == name:
                return row
        known = ", ".join(repr(row.name) for row in self.rows)
        raise KeyError(f"{name!r} is not in the table. It has: {known}.")

    def to_frame(self) -> pd.DataFrame:
        """Return one row a bound, indexed by its name (needs pandas)."""
        import pandas as pd

        return pd.DataFrame([vars(row) for row in self.rows]).set_index("name")

    def __str__(self) -> str:
        """Table of the numbers with what they are worth."""
        cells = [("", "kind", "error", "cost", "")]
        for row in self.rows:
            ends = row.lower < row.value and (row.lower > 0.0 or row.kind == EXACT)
            low = f"{row.lower:.4f} to " if ends else ""
            error = f"{low}{row.value:.4f}"
            cells.append((row.name, row.kind, error, row.cost, row.note))
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip()
            for line in cells
        ]
        intercept = "with" if self.fit_intercept else "without"
        head = f"Leave-one-out error of {self.n_samples} samples, {intercept} intercept"
        return "\n".join([head, *lines])


def bound_sv_count(problem: Problem, solution: Solution) -> Bound:
    """Share of support vectors: the others do not change the machine.

    Without a free support vector the intercept may still move, and a sample with alpha
    = 0 may become ambiguous, though never certainly wrong. If boxes balance all but
    their last bits, who stops the intercept has an alpha too small to be seen.
    """
    settled = not problem.fit_intercept or has_room(
        problem.C, solution.alpha, solution.free
    )
    note = "" if settled else "no free support vector: others may be ambiguous"
    support = solution.beta != 0.0
    if not settled and fsum(solution.beta) != 0.0:
        at = problem.y - (solution.decision_values - solution.intercept)
        for end in solution.intercept_interval:
            support |= np.abs(at - end) <= ROUNDING
    share = _share(support)
    return Bound(
        "support-vector count", BOUND if settled else WEAK, share, cost="0", note=note
    )


def bound_jaakkola_haussler(problem: Problem, solution: Solution) -> Bound:
    """Jaakkola & Haussler (1999): alpha_p K_pp >= y_p f(x_p), Tsuda et al. eq. (4).

    Without an intercept h_p - alpha_p K_pp is a lower bound of the left-out margin.
    """
    worst = _margins(problem, solution) - solution.alpha * problem.K.diagonal()
    kind, note = _needs_no_intercept(problem)
    share = _share(worst <= ROUNDING)
    return Bound("Jaakkola-Haussler", kind, share, cost="n", note=note)


def bound_xi_alpha(problem: Problem, solution: Solution) -> Bound:
    """Joachims (2000): rho alpha_p R^2 + xi_p >= 1.

    With an intercept rho = 2 and R^2 = max(K_ii - K_ij); without, rho = 1 and
    R^2 = max K_ii, and it follows from the bound of Jaakkola & Haussler.
    """
    K = problem.K
    if problem.fit_intercept:
        reach = 2.0 * float((K.diagonal()[:, None] - K).max())
    else:
        reach = float(K.diagonal().max())
    slack = np.maximum(0.0, 1.0 - _margins(problem, solution))
    kind, note = _needs_no_intercept(problem)
    share = _share(solution.alpha * reach + slack >= 1.0 - ROUNDING)
    return Bound("xi-alpha", kind, share, cost="n²", note=note)


def bound_span(problem: Problem, solution: Solution) -> Bound:
    """Vapnik & Chapelle (2000): alpha_p S_p^2 > y_p f(x_p), Tsuda et al. eq. (5)."""
    spans = span_squared(problem, solution)
    support = solution.beta != 0.0
    shift = np.multiply(solution.alpha, spans, where=support, out=np.zeros_like(spans))
    wrong = support & (_margins(problem, solution) - shift < -ROUNDING)
    undefined = int(np.isinf(spans).sum())
    note = "exact where the sets stay the same"
    if undefined:
        note = f"{undefined} without another free support vector, taken as wrong"
    return Bound("span", ESTIMATE, _share(wrong), cost="m³ + s m²", note=note)


def bound_radius_margin(problem: Problem, solution: Solution) -> Bound:
    """Radius-margin criterion of the L1-SVM: (4 R^2 sum(alpha) + sum(xi)) / n.

    Without an intercept (max K_ii sum(alpha) + sum(xi)) / n is a bound, as the sum of
    the left sides of Jaakkola & Haussler's.
    """
    if problem.fit_intercept:
        reach = 4.0 * enclosing_radius_squared(problem.K)
    else:
        reach = float(problem.K.diagonal().max())
    slack = np.maximum(0.0, 1.0 - _margins(problem, solution))
    kind, note = _needs_no_intercept(problem)
    total = reach * float(solution.alpha.sum()) + float(slack.sum())
    return Bound(
        "radius-margin L1", kind, total / problem.n_samples, cost="n² per step",
        note=note,
    )  # fmt: skip


def bound_radius_margin_l2(problem: Problem, solution: Solution) -> Bound:
    """4 R^2 ||w||^2 / n of the L2-SVM with the same C, a hard margin (Vapnik 1998).

    Without an intercept max K_ii ||w||^2 / n. It bounds the error of that machine.
    """
    hard, optimum = solve_l2_svm(problem)
    if problem.fit_intercept:
        reach = 4.0 * enclosing_radius_squared(hard.K)
    else:
        reach = float(hard.K.diagonal().max())
    value = reach * float(optimum.alpha.sum()) / problem.n_samples
    kind = BOUND if optimum.converged else ESTIMATE
    return Bound(
        "radius-margin L2", kind, value, cost="a fit + n² per step",
        note="of the L2-SVM with the same C",
    )  # fmt: skip


def bound_gacv(problem: Problem, solution: Solution) -> Bound:
    """Wahba, Lin & Zhang (1999): the left-out hinge loss, by a first-order step.

    (sum(xi) + 2 sum_{h < -1} alpha K_ii + sum_{-1 <= h <= 1} alpha K_ii) / n.
    """
    h, pull = _margins(problem, solution), solution.alpha * problem.K.diagonal()
    slack = np.maximum(0.0, 1.0 - h)
    near = h <= 1.0 + ROUNDING
    total = slack.sum() + 2.0 * pull[h < -1.0].sum() + pull[near & (h >= -1.0)].sum()
    return Bound(
        "GACV", ESTIMATE, float(total) / problem.n_samples, cost="n",
        note="of the hinge loss, not of the error",
    )  # fmt: skip


def bound_certificate(problem: Problem, solution: Solution) -> Bound:
    """Rigorous intervals of all left-out margins (docs/method/bounds)."""
    checked = check_left_out(problem, solution)
    low = np.minimum(problem.y * checked.lower, problem.y * checked.upper)
    high = np.maximum(problem.y * checked.lower, problem.y * checked.upper)
    open_ = np.zeros(problem.n_samples, dtype=bool)
    open_[checked.open_rows] = True
    wrong = ~open_ & (high < -ROUNDING)
    unsure = open_ | (low <= ROUNDING)
    kind = BOUND if solution.converged else ESTIMATE
    return Bound(
        "certificate", kind, _share(wrong | unsure), _share(wrong), "s n log n"
    )


# In the order of the table: from the cheapest to what is closest.
SVM_BOUNDS: tuple[Callable[[Problem, Solution], Bound], ...] = (
    bound_sv_count,
    bound_jaakkola_haussler,
    bound_xi_alpha,
    bound_radius_margin,
    bound_radius_margin_l2,
    bound_gacv,
    bound_span,
    bound_certificate,
)


def tabulate_bounds(
    problem: Problem, solution: Solution, *, exact: bool = True, n_threads: int = 1
) -> LooBounds:
    """Compute all bounds and estimates of one SVM, and the exact error beside them.

    Parameters
    ----------
    problem : Problem
        The machine, without absent samples.
    solution : Solution
        Its optimum.
    exact : bool, default=True
        Whether to leave every sample out, too.
    n_threads : int, default=1
        Threads of that.

    Returns
    -------
    LooBounds
    """
    rows = [_timed(function, problem, solution) for function in SVM_BOUNDS]
    if rounding_of_values(problem, solution) > DOUBT:
        rows = [replace(row, kind=ESTIMATE, note=IN_DOUBT) for row in rows]
    if exact:
        loo = trusted(loo_walk)(problem, solution=solution, n_threads=n_threads)
        rows.append(exact_row(problem, loo, cost="a few pivots per SV"))
    return LooBounds(tuple(rows), problem.n_samples, problem.fit_intercept)


def tabulate_lpm_bounds(
    problem: Problem, solution: LpmSolution, *, exact: bool = True, n_threads: int = 1
) -> LooBounds:
    """Do the same for a linear programming machine, of which only the count is known.

    A sample with neither coefficient nor row dual keeps the full optimum as one of the
    optima without it, where its margin is 1 or more.
    """
    active = (solution.coef != 0.0) | (solution.row_dual != 0.0)
    rows = [
        Bound(
            "support-vector count", WEAK, _share(active), cost="0",
            note="other optima may be ambiguous",
        )
    ]  # fmt: skip
    if exact:
        loo = loo_lpm_walk(problem, solution=solution, n_threads=n_threads)
        rows.append(exact_row(problem, loo, cost="pivots"))
    return LooBounds(tuple(rows), problem.n_samples, problem.fit_intercept)


def exact_row(problem: Problem, loo: MachineLoo, cost: str) -> Bound:
    """Return the exact error: from wrong samples to wrong or ambiguous ones.

    What is not certified may be right or wrong.
    """
    wrong, ambiguous = wrong_and_ambiguous(problem, loo)
    unknown = ~loo.certified
    counts = (ambiguous & ~unknown).sum(), unknown.sum()
    said = zip(counts, ("ambiguous", "not certified"), strict=True)
    note = ", ".join(f"{count} {word}" for count, word in said if count)
    return Bound(
        "exact", EXACT, _share(wrong | ambiguous | unknown), _share(wrong & ~unknown),
        cost, note,
        float(loo.counts.get("seconds", 0.0)),
    )  # fmt: skip


def wrong_and_ambiguous(
    problem: Problem, loo: MachineLoo
) -> tuple[BoolArray, BoolArray]:
    """Return who is wrong for every optimal intercept, and who for some."""
    ends = np.sort(np.column_stack([problem.y * loo.lower, problem.y * loo.upper]))
    wrong = ends[:, 1] < -ROUNDING
    return wrong, ~wrong & (ends[:, 0] <= ROUNDING)


def _timed(
    function: Callable[[Problem, Solution], Bound], problem: Problem, solution: Solution
) -> Bound:
    """Compute one row, and how long it took."""
    started = perf_counter()
    row = function(problem, solution)
    return Bound(**{**vars(row), "seconds": perf_counter() - started})


def _margins(problem: Problem, solution: Solution) -> np.ndarray:
    """H = y f at the intercept that is the worst for each sample."""
    g = solution.decision_values - solution.intercept
    worst = np.where(problem.y > 0, *solution.intercept_interval)
    return problem.y * (g + worst)


def _needs_no_intercept(problem: Problem) -> tuple[str, str]:
    """Return kind and note of what is proved only without an intercept."""
    if problem.fit_intercept:
        return ESTIMATE, "no bound with an intercept"
    return BOUND, ""


def _share(mask: BoolArray) -> float:
    return float(np.mean(mask))
