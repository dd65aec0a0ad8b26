# SPDX-License-Identifier: BSD-3-Clause
"""Follow one left-out optimum over ascending C, with bounds C_i = C c_i.

Each sample i has one basic quantity x_i, as in the walks:

    i on the margin (in M):   x_i = beta_i within bounds, and f_i = y_i
    i outside:                x_i = f_i on its side,   and beta_i = 0
    i bounded (in E):         x_i = f_i on its side,   and beta_i = y_i c_i C
    i passive:                x_i = f_i anywhere,      and beta_i = 0 (left out, weight 0)

Between events x is affine in C. With e = y c on E, q = sum(e) and A the inverse of the
bordered kernel [[0, 1'], [1, K_MM]] (docs/method/curve):

    (b' ; beta'_M) = A (-q ; -K_ME e),    f' = K_E e + K_M beta'_M + b'

When x_p reaches an end of its range, p changes sides: A changes by rank one and x' by a
multiple of one column of the tableau, O(|M|^2 + n |M|). With an empty margin b is an
interval whose ends are maxima and minima of affine functions, followed one by one.
"""

from libc.math cimport INFINITY, fabs, sqrt
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport daxpy, dgemv, dger, dsymv
from scipy.linalg.cython_lapack cimport dpotrf, dpotri

import numpy as np

cdef signed char OUTSIDE = 0, MARGIN = 1, BOUNDED = 2, PASSIVE = 3

# A quantity may exceed its range by this much, relative to the unit margin and to C.
cdef double SLACK = 1e-12
# A margin point within this share of C of a bound counts as being on it.
cdef double ON_BOUND = 1e-9
# Events between two factorisations from scratch.
cdef Py_ssize_t EVENTS_PER_FACTOR = 100
# Events without progress, after which ties go to the lowest index; after which the path
# gives up.
cdef Py_ssize_t STANDING = 30

# Rows of the work array besides K_M and A.
cdef Py_ssize_t N_WORK_ROWS = 8
# How a step ends: well, or because a check failed, M is singular or there is no progress.
cdef int ARRIVED = 0, LOST = 1


cdef struct Path:
    Py_ssize_t n
    Py_ssize_t r
    Py_ssize_t m            # size of M
    Py_ssize_t ld           # n + 1, row length of work
    Py_ssize_t n_bounded    # size of E
    bint intercept
    const double* K
    const double* y
    const double* c
    const double* probe     # random signs
    const double* K_probe
    double probe_sum
    double scale            # typical K_ii
    double C
    double b
    double b_rate
    double q                # sum of y c over E
    double total            # sum of c
    double size             # sum |beta|
    double rate_size        # sum |beta'|
    double* x               # (n,)
    double* v               # (n,) dx / dC
    double* col             # (n,) one column of the tableau
    double* Ke              # (n,) K_E e
    double* u               # (m + 1,) intercept and M of that column
    double* w               # (m + 1,)
    double* s               # (m + 1,)
    double* t               # (m + 1,)
    double* rows            # (m, n) K_M
    double* A               # (m + 1, m + 1), intercept first; its row is 0 without intercept
    signed char* side
    signed char* banned     # cannot enter: it is in the affine hull of M
    Py_ssize_t* member      # (m,)
    Py_ssize_t n_events
    Py_ssize_t n_factors
    Py_ssize_t n_pieces
    Py_ssize_t capacity
    double* pieces          # (capacity, 6) C, C', low, low', high, high'
    double C_sound          # the last C that passed a check
    Py_ssize_t n_sound      # pieces up to there


cdef inline double bounded_beta(Path* p, Py_ssize_t i) noexcept nogil:
    """beta of a point that is not on the margin."""
    return p.y[i] * p.c[i] * p.C if p.side[i] == BOUNDED else 0.0


cdef inline double f_tol(Path* p) noexcept nogil:
    """A generous bound on the rounding error of f."""
    return 1e-9 + 3e-14 * p.scale * p.size


cdef bint record(
    Path* p, double step, double low, double high, double low_rate, double high_rate,
) noexcept nogil:
    """Store one affine piece of the interval of f_r; False if there is no memory."""
    cdef double* row
    if step <= 0.0:
        return True
    if p.n_pieces == p.capacity:
        row = <double*>realloc(p.pieces, (2 * p.capacity + 64) * 6 * sizeof(double))
        if row == NULL:
            return False
        p.pieces, p.capacity = row, 2 * p.capacity + 64
    row = p.pieces + 6 * p.n_pieces
    row[0] = p.C
    row[1] = p.C + step
    row[2] = low
    row[3] = low + step * low_rate
    row[4] = high
    row[5] = high + step * high_rate
    p.n_pieces += 1
    return True


cdef void advance(Path* p, double step) noexcept nogil:
    """Advance C, x and b by a step."""
    cdef int n = <int>p.n, one = 1
    # x += step * v
    daxpy(&n, &step, p.v, &one, p.x, &one)
    p.C += step
    p.b += step * p.b_rate


cdef void times_A(Path* p, double* right, double* out) noexcept nogil:
    """out = A @ right, both (m + 1,)."""
    cdef int k = <int>p.m + 1, ld = <int>p.ld, one = 1
    cdef double unit = 1.0, zero = 0.0
    dsymv(b"L", &k, &unit, p.A, &ld, right, &one, &zero, out, &one)


cdef void add_margin(Path* p, double* u, double* out) noexcept nogil:
    """out += K_M' u_M + u_0, over all n samples."""
    cdef int n = <int>p.n, m = <int>p.m, ld = <int>p.ld, one = 1
    cdef double unit = 1.0
    cdef Py_ssize_t i
    if m > 0:
        dgemv(b"N", &n, &m, &unit, p.rows, &ld, u + 1, &one, &unit, out, &one)
    if u[0] != 0.0:
        for i in range(p.n):
            out[i] += u[0]


cdef int factor(Path* p) noexcept nogil:
    """K_M and A from scratch, by Cholesky of K_MM + c 11' as in engine/_walk."""
    cdef Py_ssize_t a, d, ld = p.ld
    cdef int m = <int>p.m, lda = <int>ld, info = 0
    cdef double shift = p.scale if p.intercept else 0.0, norm = 0.0
    cdef double* A = p.A
    cdef double* P = p.A + ld + 1
    for a in range(p.m + 1):
        A[a] = A[a * ld] = 0.0
    for a in range(p.m):
        memcpy(p.rows + a * ld, p.K + p.member[a] * p.n, p.n * sizeof(double))
        for d in range(p.m):
            P[a * ld + d] = p.rows[a * ld + p.member[d]] + shift
    if p.m == 0:
        return ARRIVED
    dpotrf(b"L", &m, P, &lda, &info)
    if info != 0:
        return LOST
    dpotri(b"L", &m, P, &lda, &info)
    if info != 0:
        return LOST
    for a in range(p.m):
        for d in range(a):
            P[a * ld + d] = P[d * ld + a]
    if not p.intercept:
        return ARRIVED
    for a in range(p.m):
        p.w[a] = 0.0
        for d in range(p.m):
            p.w[a] += P[a * ld + d]
        norm += p.w[a]
    if not norm > 0.0:
        return LOST
    for a in range(p.m):
        A[a + 1] = A[(a + 1) * ld] = p.w[a] / norm
        for d in range(p.m):
            P[a * ld + d] -= p.w[a] * p.w[d] / norm
    A[0] = shift - 1.0 / norm
    return ARRIVED


cdef void solve_margin(
    Path* p, double level, double rhs, double* b, double* beta, double* f,
) noexcept nogil:
    """f_M = rhs y_M with beta_E = level e: write b, beta_M (m,) and f (n,).

    (level, rhs) = (C, 1) gives the point itself, (1, 0) its derivative. The later rounds
    refine it, with new residuals, as long as that helps.
    """
    cdef Py_ssize_t a, i, _round
    cdef double worst, before = INFINITY
    for i in range(p.n):
        f[i] = level * p.Ke[i]
    for a in range(p.m):
        beta[a] = 0.0
    if p.intercept and p.m == 0:
        for i in range(p.n):
            f[i] += b[0]
        return
    b[0] = 0.0
    for _round in range(8):
        p.t[0] = -level * p.q
        worst = 0.0
        for a in range(p.m):
            i = p.member[a]
            p.t[a + 1] = rhs * p.y[i] - f[i]
            p.t[0] -= beta[a]
            worst = max(worst, fabs(p.t[a + 1]))
        if _round > 2 and worst > 0.5 * before:
            break
        before = worst
        times_A(p, p.t, p.u)
        b[0] += p.u[0]
        for a in range(p.m):
            beta[a] += p.u[a + 1]
        add_margin(p, p.u, f)


cdef bint correct(Path* p) noexcept nogil:
    """Recompute x and x' from the sets, C, K_E e and A; False if A is too inaccurate."""
    cdef Py_ssize_t a
    cdef double tol, b_rate = 0.0
    solve_margin(p, 1.0, 0.0, &b_rate, p.s, p.v)
    p.b_rate = b_rate
    for a in range(p.m):
        p.v[p.member[a]] = p.s[a]
        p.rate_size += fabs(p.s[a])
    solve_margin(p, p.C, 1.0, &p.b, p.s, p.x)
    for a in range(p.m):
        p.size += fabs(p.s[a])
    tol = f_tol(p)
    for a in range(p.m):
        if not fabs(p.x[p.member[a]] - p.y[p.member[a]]) <= tol:
            return False
        p.x[p.member[a]] = p.s[a]
    return True


cdef int refresh(Path* p) noexcept nogil:
    """Recompute everything from the sets and C, and check the optimality conditions.

    A point that passes is optimal at C, whatever happened before. Both ends of a segment
    have the same sets and the conditions are affine in C, so all points between are
    optimal, too.
    """
    cdef Py_ssize_t a, i
    cdef int n = <int>p.n, one = 1, code
    cdef double e, tol, excess, low = -INFINITY, high = INFINITY
    p.m = p.n_bounded = 0
    p.q = p.size = p.rate_size = 0.0
    for i in range(p.n):
        p.Ke[i] = 0.0
        p.banned[i] = 0
    for i in range(p.n):
        if p.side[i] == MARGIN:
            p.member[p.m] = i
            p.m += 1
        elif p.side[i] == BOUNDED:
            p.n_bounded += 1
            e = p.y[i] * p.c[i]
            p.q += e
            p.size += p.c[i] * p.C
            p.rate_size += p.c[i]
            daxpy(&n, &e, <double*>p.K + i * p.n, &one, p.Ke, &one)
    code = factor(p)
    if code != ARRIVED:
        return code
    if not correct(p):
        return LOST
    # The effect of rounding of f on beta_i is proportional to A_ii.
    for a in range(p.m):
        p.t[p.member[a]] = p.A[(a + 1) * (p.ld + 1)]
    for i in range(p.n):
        if p.side[i] == PASSIVE:
            continue
        if p.side[i] == MARGIN:
            excess = p.y[i] * p.x[i]
            tol = ON_BOUND * p.c[i] * p.C + 1e-14 * p.scale * p.size * p.t[i]
            if not (-tol <= excess <= p.c[i] * p.C + tol):
                return LOST
            continue
        tol = f_tol(p)
        excess = p.y[i] * p.x[i] - 1.0
        if p.intercept and p.m == 0:
            if (p.side[i] == OUTSIDE) == (p.y[i] > 0):
                low = max(low, p.y[i] - p.x[i])
            else:
                high = min(high, p.y[i] - p.x[i])
        elif not ((excess if p.side[i] == OUTSIDE else -excess) >= -tol):
            return LOST
    if p.intercept and p.m == 0:
        if low > high + f_tol(p) or fabs(p.q) > 1e-9 * p.total:
            return LOST
    return ARRIVED


cdef bint is_sound(Path* p) noexcept nogil:
    """Whether x and x' are consistent with K, along a random direction (Freivalds 1979).

    f = K beta + b with f_M = y_M and f' = K beta' + b' with f'_M = 0, each reduced to one
    number. Also updates the sizes that the tolerances are relative to.
    """
    cdef Py_ssize_t i
    cdef double tracked = 0.0, wanted = p.b * p.probe_sum, beta, balance = 0.0
    cdef double rate_tracked = 0.0, rate_wanted = p.b_rate * p.probe_sum, rate
    cdef double rate_balance = 0.0, rounding = 1e-14 * sqrt(p.n)
    p.size = p.rate_size = 0.0
    for i in range(p.n):
        if p.side[i] == MARGIN:
            beta = p.x[i]
            rate = p.v[i]
            tracked += p.probe[i] * p.y[i]
        else:
            beta = bounded_beta(p, i)
            rate = p.y[i] * p.c[i] if p.side[i] == BOUNDED else 0.0
            tracked += p.probe[i] * p.x[i]
            rate_tracked += p.probe[i] * p.v[i]
        balance += beta
        rate_balance += rate
        p.size += fabs(beta)
        p.rate_size += fabs(rate)
        wanted += beta * p.K_probe[i]
        rate_wanted += rate * p.K_probe[i]
    if p.intercept and (fabs(balance) > rounding * p.size
                        or fabs(rate_balance) > rounding * p.rate_size):
        return False
    return (fabs(tracked - wanted) <= rounding * (p.n + p.scale * p.size)
            and fabs(rate_tracked - rate_wanted) <= rounding * p.scale * p.rate_size)


cdef inline void look_ahead(
    Path* p, Py_ssize_t i, double* rate, double* room, double* slack, bint* at_high,
) noexcept nogil:
    """Which end of its range x_i approaches, how fast, and its distance; rate 0: none."""
    cdef double a, rise
    rate[0] = 0.0
    at_high[0] = False
    if p.side[i] == MARGIN:
        a = p.y[i] * p.x[i]
        rise = p.y[i] * p.v[i]
        slack[0] = SLACK * p.c[i] * p.C
        if rise < 0.0:
            rate[0] = -rise
            room[0] = a
        elif rise > p.c[i]:
            rate[0] = rise - p.c[i]
            room[0] = p.c[i] * p.C - a
            at_high[0] = True
    elif p.side[i] != PASSIVE and not p.banned[i]:
        slack[0] = SLACK * max(1.0, 0.1 * p.scale * p.size)
        a = p.y[i] * p.x[i] - 1.0
        rise = p.y[i] * p.v[i]
        if p.side[i] == BOUNDED:
            a = -a
            rise = -rise
        if rise < 0.0:
            rate[0] = -rise
            room[0] = a
    if rate[0] > 0.0 and room[0] <= 10.0 * slack[0]:
        # Already at its end: a rate that is only rounding error does not leave it.
        if rate[0] <= (1e-12 if p.side[i] == MARGIN else 1e-13 * p.scale) * p.rate_size:
            rate[0] = 0.0


cdef Py_ssize_t next_event(
    Path* p, double remaining, bint lowest, double* step, bint* at_high,
) noexcept nogil:
    """Ratio test with moving bounds, in two passes (Harris 1973); -1 if no event."""
    cdef Py_ssize_t i, best = -1
    cdef double rate = 0.0, room = 0.0, slack = 0.0, longest = remaining, size, most = 0.0
    cdef bint high = False
    for i in range(p.n):
        look_ahead(p, i, &rate, &room, &slack, &high)
        if rate > 0.0 and rate * longest > room + slack:
            longest = max(0.0, (room + slack) / rate)
    if longest >= remaining:
        return -1
    for i in range(p.n):
        look_ahead(p, i, &rate, &room, &slack, &high)
        if rate > 0.0 and room <= rate * longest:
            size = rate / p.c[i] if p.side[i] == MARGIN else rate / p.scale
            if size > most and not (lowest and best >= 0):
                most = size
                best = i
                at_high[0] = high
                step[0] = max(0.0, room / rate)
    return best


cdef bint is_flat(Path* p) noexcept nogil:
    """Whether every point on the margin is on a bound and stays there: b is an interval."""
    cdef Py_ssize_t a, i
    cdef double alpha, rise
    for a in range(p.m):
        i = p.member[a]
        alpha = p.y[i] * p.x[i]
        rise = p.y[i] * p.v[i]
        if alpha > 0.5 * p.c[i] * p.C:
            alpha = p.c[i] * p.C - alpha
            rise = p.c[i] - rise
        if alpha > ON_BOUND * p.c[i] * p.C or fabs(rise) > ON_BOUND * p.c[i]:
            return False
    return True


cdef void empty_margin(Path* p) noexcept nogil:
    """Move every margin point to the set of the bound it is at."""
    cdef Py_ssize_t a, i
    for a in range(p.m):
        i = p.member[a]
        p.side[i] = BOUNDED if p.y[i] * p.x[i] > 0.5 * p.c[i] * p.C else OUTSIDE


cdef void change_bounded(Path* p, Py_ssize_t i, int sign) noexcept nogil:
    """Add i to E or remove it: update the count, q and K_E e."""
    cdef int n = <int>p.n, one = 1
    cdef double e = sign * p.y[i] * p.c[i]
    p.n_bounded += sign
    p.q += e
    daxpy(&n, &e, <double*>p.K + i * p.n, &one, p.Ke, &one)


cdef bint enter(Path* p, Py_ssize_t i) noexcept nogil:
    """f_i has reached y_i: i joins M. False if it is in the affine hull of M."""
    cdef Py_ssize_t a, ld = p.ld
    cdef int k = <int>p.m + 1, n = <int>p.n, one = 1, lda = <int>ld
    cdef double S, change, inverse, span = 1.0, beta = bounded_beta(p, i)
    p.t[0] = 1.0
    for a in range(p.m):
        p.t[a + 1] = p.rows[a * ld + i]
    times_A(p, p.t, p.u)
    for a in range(p.m + 1):
        p.u[a] = -p.u[a]
    memcpy(p.col, p.K + i * p.n, p.n * sizeof(double))
    add_margin(p, p.u, p.col)
    if p.col[i] < 1e-4 * p.scale:
        # Close to the hull of M: refine once, since f'_M = 0 and sum(beta') = 0 hold only
        # approximately.
        p.t[0] = -1.0
        for a in range(p.m):
            p.t[0] -= p.u[a + 1]
            p.t[a + 1] = -p.col[p.member[a]]
        times_A(p, p.t, p.w)
        add_margin(p, p.w, p.col)
        for a in range(p.m + 1):
            p.u[a] += p.w[a]
    S = p.col[i]
    for a in range(p.m):
        span += fabs(p.u[a + 1])
    if not S > 1e-15 * p.scale * span * span:
        return False
    for a in range(p.m):
        p.col[p.member[a]] = p.u[a + 1]
    # f_i is constant: beta_i' compensates for f_i'
    change = -p.v[i] / S
    daxpy(&n, &change, p.col, &one, p.v, &one)
    p.b_rate += change * p.u[0]
    p.v[i] = change
    if p.side[i] == BOUNDED:
        p.v[i] += p.y[i] * p.c[i]
        change_bounded(p, i, -1)
    p.x[i] = beta
    p.side[i] = MARGIN
    inverse = 1.0 / S
    # A += outer(u, u) / S, then one more row and column
    dger(&k, &k, &inverse, p.u, &one, p.u, &one, p.A, &lda)
    for a in range(p.m + 1):
        p.A[(p.m + 1) * ld + a] = p.A[a * ld + p.m + 1] = p.u[a] * inverse
    p.A[(p.m + 1) * ld + p.m + 1] = inverse
    memcpy(p.rows + p.m * ld, p.K + i * p.n, p.n * sizeof(double))
    p.member[p.m] = i
    p.m += 1
    return True


cdef bint leave(Path* p, Py_ssize_t i, bint at_high) noexcept nogil:
    """beta_i has reached a bound: i leaves M. False if the pivot is not positive."""
    cdef Py_ssize_t a, at = 0, last = p.m, ld = p.ld
    cdef int k = <int>p.m + 1, n = <int>p.n, one = 1, lda = <int>ld
    cdef double pivot, change, minus
    while p.member[at] != i:
        at += 1
    at += 1
    pivot = p.A[at * ld + at]
    if not pivot > 0.0:
        return False
    memcpy(p.u, p.A + at * ld, (p.m + 1) * sizeof(double))
    for a in range(p.n):
        p.col[a] = 0.0
    add_margin(p, p.u, p.col)
    for a in range(p.m):
        p.col[p.member[a]] = p.u[a + 1]
    # beta_i follows its bound: f_i' compensates for the rest
    change = ((p.y[i] * p.c[i] if at_high else 0.0) - p.v[i]) / pivot
    daxpy(&n, &change, p.col, &one, p.v, &one)
    p.b_rate += change * p.u[0]
    p.v[i] = change
    p.x[i] = p.y[i]
    p.side[i] = BOUNDED if at_high else OUTSIDE
    if at_high:
        change_bounded(p, i, 1)
    minus = -1.0 / pivot
    # A -= outer(u, u) / pivot, then the last takes the place of i
    dger(&k, &k, &minus, p.u, &one, p.u, &one, p.A, &lda)
    if at != last:
        memcpy(p.A + at * ld, p.A + last * ld, (p.m + 1) * sizeof(double))
        for a in range(p.m + 1):
            p.A[a * ld + at] = p.A[a * ld + last]
        p.A[at * ld + at] = p.A[last * ld + last]
        memcpy(p.rows + (at - 1) * ld, p.rows + (last - 1) * ld, p.n * sizeof(double))
        p.member[at - 1] = p.member[last - 1]
    p.m -= 1
    return True


cdef inline bint holds_low(Path* p, Py_ssize_t i) noexcept nogil:
    """Whether i, not on the margin, bounds b from below (else from above)."""
    return (p.side[i] == OUTSIDE) == (p.y[i] > 0)


cdef void find_ends(Path* p, Py_ssize_t* low, Py_ssize_t* high) noexcept nogil:
    """Samples at the ends of the interval of b; of ties, those that are there next."""
    cdef Py_ssize_t i
    cdef double value, tie = SLACK * max(1.0, 0.1 * p.scale * p.size)
    cdef double most = -INFINITY, least = INFINITY
    low[0] = high[0] = -1
    for i in range(p.n):
        if p.side[i] == PASSIVE:
            continue
        value = p.y[i] - p.x[i]
        if holds_low(p, i):
            most = max(most, value)
        else:
            least = min(least, value)
    for i in range(p.n):
        if p.side[i] == PASSIVE:
            continue
        value = p.y[i] - p.x[i]
        if holds_low(p, i):
            if value >= most - tie and (low[0] < 0 or -p.v[i] > -p.v[low[0]]):
                low[0] = i
        elif value <= least + tie and (high[0] < 0 or -p.v[i] < -p.v[high[0]]):
            high[0] = i


cdef int cross_empty_margin(Path* p, double end) noexcept nogil:
    """M is empty: follow both ends of the interval of b until they meet.

    The lower end is a maximum of affine functions, the upper one a minimum. The rate of the
    sample at an end only grows (falls), so there are at most n changes. Where the ends meet,
    both samples enter M. Their pivot is d_ij^2 > 0; otherwise the ends could not approach.
    """
    cdef Py_ssize_t i, low = -1, high = -1, next_low, next_high
    cdef double at_low, at_high, low_rate, high_rate, step, t, middle
    cdef double noise = 1e-13 * p.scale * p.rate_size
    cdef bint meet
    find_ends(p, &low, &high)
    if low < 0 or high < 0:
        return LOST
    while p.C < end:
        at_low = p.y[low] - p.x[low]
        at_high = p.y[high] - p.x[high]
        low_rate = -p.v[low]
        high_rate = -p.v[high]
        step = end - p.C
        next_low = next_high = -1
        meet = False
        for i in range(p.n):
            if p.side[i] == PASSIVE:
                continue
            if holds_low(p, i):
                if -p.v[i] > low_rate + noise:
                    t = max(0.0, (at_low - p.y[i] + p.x[i]) / (-p.v[i] - low_rate))
                    if t < step:
                        step = t
                        next_low = i
                        next_high = -1
            elif -p.v[i] < high_rate - noise:
                t = max(0.0, (p.y[i] - p.x[i] - at_high) / (high_rate + p.v[i]))
                if t < step:
                    step = t
                    next_high = i
                    next_low = -1
        if low_rate > high_rate + noise:
            t = max(0.0, (at_high - at_low) / (low_rate - high_rate))
            if t <= step:
                step = t
                meet = True
        if at_low > at_high:
            middle = 0.5 * (at_low + at_high)
            at_low = at_high = middle
        if not record(p, step, p.x[p.r] + at_low, p.x[p.r] + at_high,
                      p.v[p.r] + low_rate, p.v[p.r] + high_rate):
            return LOST
        advance(p, step)
        if meet:
            p.b += p.y[low] - p.x[low]
            p.side[low] = p.side[high] = MARGIN
            return refresh(p)
        if next_low >= 0:
            low = next_low
        elif next_high >= 0:
            high = next_high
        else:
            p.C = end
    return ARRIVED


cdef bint banned_stay(Path* p) noexcept nogil:
    """Whether the points barred from M satisfy their conditions up to rounding."""
    cdef Py_ssize_t i
    cdef double excess
    for i in range(p.n):
        if p.banned[i]:
            excess = p.y[i] * p.x[i] - 1.0
            if (-excess if p.side[i] == OUTSIDE else excess) > f_tol(p):
                return False
    return True


cdef void mark_sound(Path* p) noexcept nogil:
    """Record that the point has passed a check at C."""
    p.C_sound = p.C
    p.n_sound = p.n_pieces


cdef int follow(Path* p, double end) noexcept nogil:
    """C -> end."""
    cdef Py_ssize_t i, since = 0, standing = 0, n_banned = 0
    cdef double step = 0.0, before
    cdef bint at_high = False, moved
    cdef int code = refresh(p)
    while code == ARRIVED and p.C < end:
        if standing > 10 * STANDING + p.n:
            return LOST
        if p.intercept and p.m == 0:
            before = p.C
            p.n_events += 1
            code = cross_empty_margin(p, end)
            if code == ARRIVED:
                mark_sound(p)
            standing = standing + 1 if p.C <= before else 0
        elif p.n_bounded == 0:
            # No bounded sample: the solution no longer changes.
            if not record(p, end - p.C, p.x[p.r], p.x[p.r], 0.0, 0.0):
                return LOST
            p.C = end
            mark_sound(p)
            return ARRIVED
        else:
            i = next_event(p, end - p.C, standing > STANDING, &step, &at_high)
            if i < 0:
                step = end - p.C
            if p.intercept and step > 1e-13 * p.C and is_flat(p):
                empty_margin(p)
                code = refresh(p)
                standing += 1
                continue
            if not record(p, step, p.x[p.r], p.x[p.r], p.v[p.r], p.v[p.r]):
                return LOST
            advance(p, step)
            if step > 0.2 * p.C:
                # Far away, rounding of the rates matters: recompute at the end.
                if not correct(p):
                    return LOST
                p.pieces[6 * p.n_pieces - 3] = p.pieces[6 * p.n_pieces - 1] = p.x[p.r]
            if n_banned > 0 and not banned_stay(p):
                return LOST
            if i < 0:
                p.C = end
                break
            standing = standing + 1 if step <= 1e-14 * p.C else 0
            p.n_events += 1
            since += 1
            if p.side[i] == MARGIN:
                if p.intercept and p.m == 1:
                    p.x[i] = p.y[i] * p.c[i] * p.C if at_high else 0.0
                    empty_margin(p)
                    code = refresh(p)
                    since = 0
                else:
                    moved = leave(p, i, at_high)
                    if not moved:
                        since = EVENTS_PER_FACTOR
                        p.side[i] = BOUNDED if at_high else OUTSIDE
            elif not enter(p, i):
                p.banned[i] = 1
                n_banned += 1
                continue
            if n_banned > 0:
                for i in range(p.n):
                    p.banned[i] = 0
                n_banned = 0
            if since < EVENTS_PER_FACTOR and (
                    is_sound(p) or (correct(p) and is_sound(p))):
                mark_sound(p)
                continue
            if code == ARRIVED:
                since = 0
                p.n_factors += 1
                code = refresh(p)
                if code == ARRIVED:
                    mark_sound(p)
    if code == ARRIVED:
        code = refresh(p)
        if code == ARRIVED:
            mark_sound(p)
    return code


def trace_path(
    const double[:, ::1] K,          # in, (n, n)
    const double[::1] y,             # in, (n,)
    const double[::1] c,             # in, (n,) bounds are C c; 0: absent
    bint intercept,
    const double[::1] probe,         # in, (n,) random signs
    const double[::1] K_probe,       # in, (n,) K @ probe
    double scale,
    Py_ssize_t r,                    # the sample that is left out
    double C,
    double end,
    double b,
    const signed char[::1] state,    # in, (n,) sets of the optimum at C without r
):
    """Follow the optimum without r; all arguments are checked by the caller.

    Return whether the end was reached, the numbers of events and factorisations, the last
    C that passed a check, and the pieces of the interval of f_r up to there, (k, 6): C at
    both ends, the lower end of f at both, the upper end at both.
    """
    cdef Path p
    cdef Py_ssize_t i, n = y.shape[0]
    cdef int code
    cdef double[:, ::1] work = np.empty((N_WORK_ROWS + 2 * n + 1, n + 1))
    cdef signed char[:, ::1] sides = np.empty((2, n), dtype=np.int8)
    cdef Py_ssize_t[::1] members = np.empty(n, dtype=np.intp)
    cdef double[:, ::1] out
    p.n = n
    p.r = r
    p.ld = work.shape[1]
    p.intercept = intercept
    p.K = &K[0, 0]
    p.y = &y[0]
    p.c = &c[0]
    p.probe = &probe[0]
    p.K_probe = &K_probe[0]
    p.scale = scale
    p.C = C
    p.b = b if intercept else 0.0
    p.x = &work[0, 0]
    p.v = &work[1, 0]
    p.col = &work[2, 0]
    p.Ke = &work[3, 0]
    p.u = &work[4, 0]
    p.w = &work[5, 0]
    p.s = &work[6, 0]
    p.t = &work[7, 0]
    p.rows = &work[N_WORK_ROWS, 0]
    p.A = &work[N_WORK_ROWS + n, 0]
    p.side = &sides[0, 0]
    p.banned = &sides[1, 0]
    p.member = &members[0]
    p.pieces = NULL
    p.n_pieces = p.capacity = p.n_sound = p.n_events = p.n_factors = 0
    p.C_sound = C
    with nogil:
        p.probe_sum = p.total = 0.0
        for i in range(p.n):
            p.side[i] = state[i] if c[i] > 0.0 and i != r else PASSIVE
            p.probe_sum += probe[i]
            p.total += c[i]
        code = follow(&p, end)
    pieces = np.empty((p.n_sound, 6))
    if p.n_sound:
        out = pieces
        memcpy(&out[0, 0], p.pieces, 6 * p.n_sound * sizeof(double))
    free(p.pieces)
    return code == ARRIVED, p.n_events, p.n_factors, p.C_sound, pieces
