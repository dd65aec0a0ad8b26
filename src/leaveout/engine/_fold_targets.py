# SPDX-License-Identifier: BSD-3-Clause
"""Leave samples out of a linear SVM where every fold rescales many features.

The kernel of a fold is K + E with E = Z D Z', Z the centred features and D the changes
of their squared factors. Its matrix is not needed: beta is the optimum of the fold if
it is the optimum for K and the targets y - e with e = E beta. So all folds iterate
together, e <- E beta(e), which contracts by the factor max |D| or better, and only
products with Z, of all folds at once, take time. Anderson's method combines the last
iterates. E is applied to changes of beta in single precision; at the end e is compared
with E beta in double precision (docs/method/fold).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.engine._fold_walk import MAX_STEPS, TOLERANCE, FoldSolver
from leaveout.engine._solve import ROUNDING

# Iterates that are combined, and rounds after which a fold is solved otherwise.
MEMORY, ROUNDS = 4, 30
# Residuals that single precision leaves are smaller; then products are computed again.
SINGLE = 1e-6
# Features in a block, whose products stay in the cache.
FEATURES_AT_ONCE = 512
# Share of the tolerance for e; the problem with given targets is solved to a tenth.
REST = 0.5


class FoldTargets:
    """Solves one linear problem without some folds, together.

    Parameters
    ----------
    solver : FoldSolver
        The problem. No sample is absent, and no upper bound changes.
    Z : ndarray of shape (n, p)
        Centred features. K is ``scale * Z @ Z.T`` up to a shift of the origin.
    scale : float
        See Z.
    """

    def __init__(self, solver: FoldSolver, Z: FloatArray, scale: float) -> None:
        self.solver, self.Z, self.scale = solver, Z, scale
        self.narrow = Z.astype(np.float32)

    def leave_out(self, which: IntArray, factors: FloatArray) -> IntArray:
        """Solve some folds, and store the values; return those that did not converge.

        Features are multiplied by the factors, (n_folds, p).
        """
        solver, work, g = self.solver, self.solver.start(), which.size
        narrow: Any = np.empty((g, self.Z.shape[1]), dtype=np.float32)
        kept = np.ones((g, len(self.Z)))
        for row, k in enumerate(which.tolist()):
            narrow[row] = factors[k] ** 2 - 1.0
            kept[row, solver.folds[k]] = 0.0
        beta = np.tile(solver.solution.beta, (g, 1))

        def apply(beta: Any, folds: IntArray) -> Any:
            """Return E beta, (g, n)."""
            out = np.zeros((folds.size, len(self.Z)), dtype=beta.dtype)
            single = beta.dtype == np.float32
            Z = self.narrow if single else self.Z
            for first in range(0, Z.shape[1], FEATURES_AT_ONCE):
                part = slice(first, first + FEATURES_AT_ONCE)
                if single:
                    changes = narrow[folds, part]
                else:
                    changes = factors[which[folds], part] ** 2 - 1.0
                out += (changes * (beta @ Z[:, part])) @ Z[:, part].T
            return self.scale * out

        products = apply(beta[:1].astype(np.float32), np.arange(g)).astype(float)
        targets, rest = products.copy(), np.zeros_like(beta)
        limit, b, top = np.zeros((3, g))
        first = np.full(g, SINGLE)
        left, failed = np.arange(g), []
        past: list[tuple[FloatArray, FloatArray]] = []
        for _ in range(ROUNDS):
            before = beta[left]
            for row in left.tolist():
                change = beta[row] - solver.solution.beta
                rows = solver.folds[which[row]]
                work.begin(solver.data, solver.all_near, rows, 1.0, 1.0, change)
                tight = ROUNDING * 2.0**-52
                work.run(solver.problem.K, targets[row], TOLERANCE, tight, MAX_STEPS)
                unique = work.any_free or not solver.problem.fit_intercept
                if not (work.worst <= work.tol and unique):
                    failed.append(row)
                beta[row], limit[row], b[row] = work.beta, REST * work.tol, work.b
                top[row] = work.top
                solver.n_steps[which[row]] += work.n_steps
            step = (beta[left] - before).astype(np.float32)
            products[left] += apply(step, left)
            left = np.setdiff1d(left, failed)
            rest[left] = (products[left] - targets[left]) * kept[left]
            near = left[
                np.abs(rest[left]).max(axis=1) <= np.maximum(first, limit)[left]
            ]
            first[near] = 0.0
            exact = apply(beta[near], near)
            shift = (exact - products[near]) * kept[near]
            products[near] = exact
            for each in (rest, *(rests for _, rests in past)):
                each[near] += shift
            done = near[np.abs(rest[near]).max(axis=1) <= limit[near]]
            for row in done.tolist():
                rows = solver.folds[which[row]]
                values = solver.problem.K[rows] @ beta[row] + products[row, rows]
                changes = factors[which[row]] ** 2 - 1.0
                reach = self.scale * (self.Z[rows] ** 2 @ changes)
                reach += solver.problem.K[rows, rows]
                sizes = top[row], float(reach.max()), float(np.abs(beta[row]).sum())
                solver.store(int(which[row]), values + b[row], *sizes)
            left = np.setdiff1d(left, done)
            if not left.size:
                break
            past = [*past[1 - MEMORY :], (targets.copy(), rest.copy())]
            targets += _next_change(past)
        return which[np.append(left, failed).astype(np.intp)]


def _next_change(past: list[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Return the change of the targets by Anderson's method, (g, n).

    The last iterates are combined so that their residuals cancel best.
    """
    target, rest = past[-1]
    if len(past) == 1:
        return rest
    targets = np.stack([target - before for before, _ in past[:-1]], axis=2)
    rests = np.stack([rest - before for _, before in past[:-1]], axis=2)
    unit = np.sqrt((rests**2).sum(axis=1, keepdims=True))
    unit[unit == 0.0] = 1.0
    rests, targets = rests / unit, targets / unit
    across = rests.swapaxes(1, 2)
    square = across @ rests + 1e-12 * np.eye(len(past) - 1)
    weights = np.linalg.solve(square, across @ rest[:, :, None])
    change: FloatArray = rest - ((targets + rests) @ weights)[:, :, 0]
    return change
