# SPDX-License-Identifier: BSD-3-Clause
"""Exact reference solutions: small SVMs solved in integers by Lemke's method.

Every float is an integer times a power of two, so a small problem can be solved
without rounding. The optimality conditions of the dual,

    u = Q alpha - 1 + xi + y b >= 0,   u  alpha = 0       Q = (y_i y_j K_ij)
    s = C - alpha >= 0,                s  xi = 0
    y'alpha = 0

are a linear complementarity problem whose matrix is positive semi-definite; for these
Lemke's pivots with the lexicographic rule reach a solution despite degeneracy.
The tableau is stored as integers over one common denominator (Edmonds, Bareiss).
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import NamedTuple


class ExactInterval(NamedTuple):
    """All values y_r f(x_r) without r; None for an infinite end."""

    low: Fraction | None
    high: Fraction | None

    @property
    def sign(self) -> int:
        """Return 1 or -1 if every value has this sign, otherwise 0."""
        if self.low is not None and self.low > 0:
            return 1
        return -1 if self.high is not None and self.high < 0 else 0


def is_exactly_psd(K):
    """Return whether a matrix of floats is positive semi-definite, by elimination."""
    A = [[Fraction(float(v)) for v in row] for row in K]
    n = len(A)
    for k in range(n):
        if A[k][k] < 0:
            return False
        if A[k][k] == 0:
            if any(A[k][j] for j in range(k + 1, n)):
                return False
            continue
        for i in range(k + 1, n):
            factor = A[i][k] / A[k][k]
            if factor:
                for j in range(k + 1, n):
                    A[i][j] -= factor * A[k][j]
    return True


def solve_lcp(M, q):
    """Return z >= 0 with w = M z + q >= 0 and z'w = 0, all Fractions; M is PSD.

    Lemke (1965) with the covering vector of ones; the lexicographic ratio test.
    """
    n = len(q)
    if all(v >= 0 for v in q):
        return [Fraction(0)] * n
    # The denominators of floats are powers of two; this is the largest.
    scale = lcm(*{v.denominator for row in [q, *M] for v in row})
    # Columns: right side | w (identity) | z | z0, integers over a denominator.
    T = [
        [int(q[i] * scale)]
        + [int(i == j) for j in range(n)]
        + [-int(M[i][j] * scale) for j in range(n)]
        + [-1]
        for i in range(n)
    ]
    denominator = 1
    basis = list(range(1, n + 1))
    z0 = 2 * n + 1

    def pivot(row, column):
        nonlocal denominator
        p = T[row][column]
        source = T[row]
        for i in range(n):
            if i == row:
                continue
            factor, target = T[i][column], T[i]
            if factor:
                T[i] = [
                    (a * p - factor * b) // denominator
                    for a, b in zip(target, source, strict=True)
                ]
            else:
                T[i] = [a * p // denominator for a in target]
        denominator = p
        if denominator < 0:
            denominator = -denominator
            for i in range(n):
                T[i] = [-a for a in T[i]]
        left, basis[row] = basis[row], column
        return left

    def smaller(i, k, column):
        """Return whether row i precedes row k in the order of their ratios."""
        a, b = T[i][column], T[k][column]
        for j in range(n + 1):
            left, right = T[i][j] * b, T[k][j] * a
            if left != right:
                return left < right
        raise AssertionError("two rows of a basis are equal")

    first = 0
    for i in range(1, n):  # the lexicographically smallest row of (q, I)
        if T[i][: n + 1] < T[first][: n + 1]:
            first = i
    left = pivot(first, z0)
    while True:
        column = left + n if left <= n else left - n
        rows = [i for i in range(n) if T[i][column] > 0]
        if not rows:
            raise ArithmeticError("no solution: the matrix is not semi-definite")
        best = rows[0]
        for i in rows[1:]:
            if smaller(i, best, column):
                best = i
        left = pivot(best, column)
        if left == z0:
            break
    z = [Fraction(0)] * n
    for i, variable in enumerate(basis):
        if n < variable <= 2 * n:
            z[variable - n - 1] = Fraction(T[i][0], denominator)
    return z


def solve_lp(cost, A, b):
    """Return x >= 0 with A x >= b and the smallest cost; ArithmeticError if none has.

    The optimality conditions are a complementarity problem, too: M is skew-symmetric.
    """
    n, m = len(cost), len(b)
    zero = Fraction(0)
    M = [[zero] * n + [-A[k][j] for k in range(m)] for j in range(n)]
    M += [list(A[k]) + [zero] * m for k in range(m)]
    return solve_lcp(M, [*cost, *(-v for v in b)])[:n]


def dot(left, right):
    """Return the sum of products as a Fraction."""
    return sum((a * b for a, b in zip(left, right, strict=True)), Fraction(0))


def range_over_optima(value, costs, A, b, tie=Fraction(0)):
    """Ends of ``value @ x`` over the x that minimise one cost after the other.

    Whose first cost is above the least by no more than ``tie`` minimises it, too.
    """
    A, b = [*A], [*b]
    for k, cost in enumerate(costs):
        best = dot(cost, solve_lp(cost, A, b))
        A.append([-v for v in cost])
        b.append(-best - (tie if k == 0 else 0))
    ends = []
    for sign in (1, -1):
        try:
            x = solve_lp([sign * v for v in value], A, b)
        except ArithmeticError:
            ends.append(None)
        else:
            ends.append(dot(value, x))
    return ExactInterval(*ends)


def exact_beta(K, y, C, fit_intercept=True):
    """Return signed coefficients of an optimum; K, y, C are Fractions."""
    n = len(y)
    size = 2 * n + 2 * fit_intercept
    zero, one = Fraction(0), Fraction(1)
    M = [[zero] * size for _ in range(size)]
    for i in range(n):
        for j in range(n):
            M[i][j] = y[i] * y[j] * K[i][j]
        M[i][n + i], M[n + i][i] = one, -one
        if fit_intercept:
            M[i][2 * n], M[i][2 * n + 1] = y[i], -y[i]
            M[2 * n][i], M[2 * n + 1][i] = -y[i], y[i]
    q = [-one] * n + list(C) + [zero] * (2 * fit_intercept)
    z = solve_lcp(M, q)
    return [y[i] * z[i] for i in range(n)]


def exact_intercepts(g, y, C):
    """Return all b that minimise the hinge losses at g, the weighted medians."""
    level = sum((c for c, s in zip(C, y, strict=True) if s > 0), Fraction(0))
    low = high = None
    total = Fraction(0)
    for v, c in sorted((s - a, c) for a, s, c in zip(g, y, C, strict=True)):
        total += c
        if low is None and level > 0 and total >= level:
            low = v
        if high is None and total > level:
            high = v
    return low, high


def to_fractions(K, y, C):
    """Convert floats to Fractions, without rounding."""
    whole = [[Fraction(float(v)) for v in row] for row in K]
    return whole, [Fraction(int(s)) for s in y], [Fraction(float(c)) for c in C]


class ExactModel(NamedTuple):
    """f = values + b at all samples, trained on or not; b anywhere between its ends."""

    values: list[Fraction]
    low: Fraction | None
    high: Fraction | None

    def margin(self, r, sign) -> ExactInterval:
        """Return the interval of all values sign * f(x_r)."""
        ends = [None if b is None else sign * (self.values[r] + b) for b in self[1:]]
        return ExactInterval(*(ends if sign > 0 else ends[::-1]))


def fit_exactly(K, y, C, fit_intercept=True):
    """Train on the samples with C > 0; K, y, C are Fractions."""
    kept = [i for i in range(len(y)) if C[i] > 0]
    signs, bounds = [y[i] for i in kept], [C[i] for i in kept]
    if fit_intercept and len(set(signs)) == 1:
        beta = [Fraction(0)] * len(kept)
    else:
        part = [[K[i][j] for j in kept] for i in kept]
        beta = exact_beta(part, signs, bounds, fit_intercept)
    support = [(j, b) for j, b in zip(kept, beta, strict=True) if b]
    g = [sum((row[j] * b for j, b in support), Fraction(0)) for row in K]
    if not fit_intercept:
        return ExactModel(g, Fraction(0), Fraction(0))
    return ExactModel(g, *exact_intercepts([g[i] for i in kept], signs, bounds))


def fit_without(K, y, C, rows, fit_intercept=True):
    """Train without some rows; K, y, C are floats."""
    K, y, C = to_fractions(K, y, C)
    bounds = [Fraction(0) if i in rows else c for i, c in enumerate(C)]
    return fit_exactly(K, y, bounds, fit_intercept)


def leave_out_exactly(K, y, C, fit_intercept=True, groups=None):
    """Return the interval of y_r f(x_r) without r or its group, for each r."""
    groups = range(len(y)) if groups is None else groups
    found = {}
    for group in set(groups):
        rows = {r for r, own in enumerate(groups) if own == group}
        model = fit_without(K, y, C, rows, fit_intercept)
        found |= {r: model.margin(r, int(y[r])) for r in rows}
    return [found[r] for r in range(len(y))]
