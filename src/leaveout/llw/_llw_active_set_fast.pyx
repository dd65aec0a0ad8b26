# SPDX-License-Identifier: BSD-3-Clause
"""Primal active set for the dual of Lee, Lin & Wahba's SVM: finishes an SMO run.

    max  1/(Q-1) sum(a) - 1/2 a'(P x K) a    s.t.  0 <= a <= upper,  equal column sums

with P = I - 11'/Q; entry e = k n + i is sample i in column k. M is the working set of
free entries, E their columns (m, Q). The kernel K + c gives the same problem for every
c, and for c > 0 the matrix A of M is positive definite iff M leaves no direction without
curvature. The method updates its Cholesky factor L and U = L^-1 E. The step d on M solves

    A d = G_M + E (b + db),    E'd = s 1 - q

where q is the rounding error of the column sums. If every column has a member, s is
free and sum(b + db) = 0; else no sum can change, s = 0, and b of the columns without
members is only bounded. An entry is appended by a triangular solve and deleted by rotations.
L is row-major lower triangular, which LAPACK reads as upper triangular.
"""

from libc.math cimport fabs, sqrt
from scipy.linalg.cython_blas cimport ddot, dgemm, dtrsm, dtrsv
from scipy.linalg.cython_lapack cimport dpstrf

import numpy as np

cdef extern from "_simd.h":
    void delete_row(double*, long, long, long, double*, double*) noexcept nogil

# As in _active_set_fast: the share of the norm below which an entry depends on M, and the
# share of C, or of the largest alpha, within which a free entry is at its bound.
cdef double SINGULAR = 1e-14
cdef double AT_BOUND = 1e-11
# How a run ends: at the optimum, after max_steps, or because it cannot continue.
cdef int DONE = 0, MORE = 1, LOST = 2
# Larger than any step: no bound is reached.
cdef double FAR = 1e299


cdef struct ActiveSet:
    Py_ssize_t n            # samples
    Py_ssize_t Q            # columns
    Py_ssize_t m            # size of M
    Py_ssize_t ld           # row length of L, the capacity
    const double* K
    const double* upper     # (Q, n)
    double* alpha           # (Q, n)
    double* G               # (Q, n)
    double* moved           # (Q, n) change of alpha that is not in G yet
    double* W               # work, (Q, n)
    double* L               # (ld, ld)
    double* U               # (ld, Q)
    double* v               # L^-1 (G_M + E b)
    double* d               # work, the step on M
    double* cosine          # work, rotations
    double* sine
    Py_ssize_t* M
    Py_ssize_t* place       # place[e] = position of e in M, or -1
    Py_ssize_t* members     # (Q,) number of members in each column
    double* b               # (Q,)
    double* db              # (Q,)
    double* q               # (Q,)
    double* T               # work, (Q, Q + 2)
    double shift            # c
    bint failed


cdef inline double curve(ActiveSet* s, Py_ssize_t e, Py_ssize_t f) noexcept nogil:
    """Element of P x (K + c)."""
    cdef Py_ssize_t k = e // s.n, other = f // s.n
    cdef double value = s.K[(e - k * s.n) * s.n + (f - other * s.n)] + s.shift
    return value * ((1.0 if k == other else 0.0) - 1.0 / s.Q)


cdef inline void solve_lower(ActiveSet* s, double* x) noexcept nogil:
    """x := L^-1 x."""
    cdef int m = <int>s.m, ld = <int>s.ld, one = 1
    dtrsv(b"U", b"T", b"N", &m, s.L, &ld, x, &one)


cdef inline void solve_upper(ActiveSet* s, double* x) noexcept nogil:
    """x := L^-T x."""
    cdef int m = <int>s.m, ld = <int>s.ld, one = 1
    dtrsv(b"U", b"N", b"N", &m, s.L, &ld, x, &one)


cdef inline double dependence(Py_ssize_t m) noexcept nogil:
    """Relative squared distance to the hull of m entries below which it is rounding error."""
    return max(SINGULAR, 1e-15 * m)


cdef double append_row(ActiveSet* s, Py_ssize_t e) noexcept nogil:
    """Write row m of L for entry e; return its squared pivot over the diagonal of A."""
    cdef double* row = s.L + s.m * s.ld
    cdef double total = curve(s, e, e), rest
    cdef int m = <int>s.m, one = 1
    cdef Py_ssize_t a
    for a in range(s.m):
        row[a] = curve(s, e, s.M[a])
    solve_lower(s, row)
    rest = total - ddot(&m, row, &one, row, &one)
    row[s.m] = sqrt(rest) if rest > SINGULAR * total else sqrt(SINGULAR * total)
    return rest / total if total > 0.0 else 0.0


cdef void accept_row(ActiveSet* s, Py_ssize_t e) noexcept nogil:
    """Make e, whose row append_row wrote, a member of M."""
    cdef double* row = s.L + s.m * s.ld
    cdef double* last = s.U + s.m * s.Q
    cdef Py_ssize_t a, k, column = e // s.n
    for k in range(s.Q):
        last[k] = 1.0 if k == column else 0.0
    for a in range(s.m):
        for k in range(s.Q):
            last[k] -= row[a] * s.U[a * s.Q + k]
    for k in range(s.Q):
        last[k] /= row[s.m]
    s.M[s.m] = e
    s.place[e] = s.m
    s.members[column] += 1
    s.m += 1


cdef inline void rotate(double* x, double* y, double cosine, double sine) noexcept nogil:
    """(x, y) := (cos x + sin y, cos y - sin x)."""
    cdef double old = x[0]
    x[0] = cosine * old + sine * y[0]
    y[0] = cosine * y[0] - sine * old


cdef void delete_at(ActiveSet* s, Py_ssize_t at) noexcept nogil:
    """Remove the entry at a position of M; rotate L back to triangular form, U and v too."""
    cdef Py_ssize_t i, c, k, m = s.m
    s.place[s.M[at]] = -1
    s.members[s.M[at] // s.n] -= 1
    for i in range(at + 1, m):
        s.M[i - 1] = s.M[i]
        s.place[s.M[i]] = i - 1
    delete_row(s.L, s.ld, m, at, s.cosine, s.sine)
    for c in range(at, m - 1):
        rotate(s.v + c, s.v + c + 1, s.cosine[c], s.sine[c])
        for k in range(c * s.Q, (c + 1) * s.Q):
            rotate(s.U + k, s.U + k + s.Q, s.cosine[c], s.sine[c])
    s.m = m - 1


cdef inline double room(ActiveSet* s, Py_ssize_t e, double slope) noexcept nogil:
    """Largest t >= 0 with alpha_e + t slope within its bounds."""
    if slope > 0.0:
        return max(s.upper[e] - s.alpha[e], 0.0) / slope
    if slope < 0.0:
        return max(s.alpha[e], 0.0) / -slope
    return FAR


cdef inline void shift_entry(ActiveSet* s, Py_ssize_t e, double change) noexcept nogil:
    """Move alpha_e."""
    s.alpha[e] += change
    s.moved[e] += change


cdef inline void snap(ActiveSet* s, Py_ssize_t e) noexcept nogil:
    """Set alpha_e exactly to the bound it has reached."""
    cdef double bound = s.upper[e] if s.upper[e] - s.alpha[e] < s.alpha[e] else 0.0
    s.moved[e] += bound - s.alpha[e]
    s.alpha[e] = bound


cdef bint take_dependent(ActiveSet* s, Py_ssize_t e) noexcept nogil:
    """Add e although it has no curvature given M: move along the null vector.

    (L^-T l, -1) changes no output; the objective changes at the rate G'v. Move uphill
    until an entry reaches its bound. If that is another entry, it leaves M and e is still
    to be added. Return whether it is.
    """
    cdef double* row = s.L + s.m * s.ld
    cdef Py_ssize_t a, block = -1
    cdef double rate = -s.G[e], t, t_min, sign = 1.0
    for a in range(s.m):
        s.d[a] = row[a]
    solve_upper(s, s.d)
    for a in range(s.m):
        rate += s.G[s.M[a]] * s.d[a]
    if rate < 0.0:
        sign = -1.0
    t_min = room(s, e, -sign)
    for a in range(s.m):
        t = room(s, s.M[a], sign * s.d[a])
        if t < t_min:
            t_min = t
            block = a
    if not t_min < FAR:  # unbounded, or not a number
        s.failed = True
        return False
    for a in range(s.m):
        shift_entry(s, s.M[a], sign * t_min * s.d[a])
    shift_entry(s, e, -sign * t_min)
    if block < 0:
        snap(s, e)
        return False
    snap(s, s.M[block])
    delete_at(s, block)
    return True


cdef void take(ActiveSet* s, Py_ssize_t e) noexcept nogil:
    """Add e to M, by null moves as long as it depends on M."""
    cdef bint waiting = s.place[e] < 0
    while waiting and not s.failed:
        if s.m == s.ld:
            s.failed = True
        elif append_row(s, e) > dependence(s.m):
            accept_row(s, e)
            waiting = False
        else:
            waiting = take_dependent(s, e)


cdef bint all_columns(ActiveSet* s) noexcept nogil:
    """Whether every column has a member."""
    cdef Py_ssize_t k
    for k in range(s.Q):
        if s.members[k] == 0:
            return False
    return True


cdef void balance(ActiveSet* s) noexcept nogil:
    """q: the column sums minus the sum of the columns that cannot change, or their mean."""
    cdef Py_ssize_t k, e, fixed = 0
    cdef double mean = 0.0
    cdef bint full = all_columns(s)
    for k in range(s.Q):
        s.q[k] = 0.0
        for e in range(k * s.n, (k + 1) * s.n):
            s.q[k] += s.alpha[e]
        if full or s.members[k] == 0:
            mean += s.q[k]
            fixed += 1
    for k in range(s.Q):
        s.q[k] = s.q[k] - mean / fixed if s.members[k] else 0.0


cdef void find_db(ActiveSet* s) noexcept nogil:
    """db of the columns with members: (U'U) db = s 1 - q - U'v, by elimination."""
    cdef Py_ssize_t Q = s.Q, width = s.Q + 2, a, k, other, j
    cdef double* T = s.T
    cdef double factor, total = 0.0, ones = 0.0, rise = 0.0
    cdef double* row
    for k in range(Q):
        for other in range(Q):
            T[k * width + other] = 0.0
        T[k * width + Q] = -s.q[k]
        T[k * width + Q + 1] = 1.0
    for a in range(s.m):
        row = s.U + a * Q
        for k in range(Q):
            for other in range(Q):
                T[k * width + other] += row[k] * row[other]
            T[k * width + Q] -= row[k] * s.v[a]
    for k in range(Q):
        if s.members[k] == 0:  # db = 0
            for j in range(width):
                T[k * width + j] = 0.0
            T[k * width + k] = 1.0
        for other in range(Q):
            if other == k or T[other * width + k] == 0.0:
                continue
            factor = T[other * width + k] / T[k * width + k]
            for j in range(k, width):
                T[other * width + j] -= factor * T[k * width + j]
    for k in range(Q):
        total += T[k * width + Q] / T[k * width + k] + s.b[k]
        ones += T[k * width + Q + 1] / T[k * width + k]
    if all_columns(s):
        rise = -total / ones
    for k in range(Q):
        s.db[k] = (T[k * width + Q] + rise * T[k * width + Q + 1]) / T[k * width + k]


cdef void climb(ActiveSet* s, Py_ssize_t* n_steps) noexcept nogil:
    """Go to the optimum on M, dropping the entries that reach a bound; find its b.

    G_M + E b -> 0 along the way, so it is known without a product with K.
    """
    cdef Py_ssize_t a, k, block
    cdef double t, t_min, mean
    for a in range(s.m):
        s.v[a] = s.G[s.M[a]] + s.b[s.M[a] // s.n]
    solve_lower(s, s.v)
    while s.m > 0 and not s.failed:
        balance(s)
        find_db(s)
        for a in range(s.m):
            s.d[a] = s.v[a]
            for k in range(s.Q):
                s.d[a] += s.U[a * s.Q + k] * s.db[k]
        solve_upper(s, s.d)
        t_min = 1.0
        block = -1
        for a in range(s.m):
            t = room(s, s.M[a], s.d[a])
            if t < t_min:
                t_min = t
                block = a
            if s.d[a] != s.d[a]:  # overflow
                s.failed = True
                return
        for a in range(s.m):
            shift_entry(s, s.M[a], t_min * s.d[a])
            s.v[a] *= 1.0 - t_min
        mean = 0.0
        for k in range(s.Q):
            mean += s.q[k] / s.Q
        for k in range(s.Q):
            if s.members[k]:  # includes what c adds to K if the sums differ
                s.b[k] += t_min * (s.db[k] + s.shift * (s.q[k] - mean))
        n_steps[0] += 1
        if block < 0:
            block = member_at_bound(s)
        if block < 0:
            return
        snap(s, s.M[block])
        delete_at(s, block)


cdef Py_ssize_t member_at_bound(ActiveSet* s) noexcept nogil:
    """Position in M of an entry that is on its bound, or -1."""
    cdef Py_ssize_t a, e
    cdef double width, largest = 0.0
    for e in range(s.n * s.Q):
        largest = max(largest, s.alpha[e])
    for a in range(s.m):
        e = s.M[a]
        width = AT_BOUND * min(s.upper[e], largest)
        if s.alpha[e] <= width or s.upper[e] - s.alpha[e] <= width:
            return a
    return -1


cdef void add_product(ActiveSet* s, const double* change) noexcept nogil:
    """G += K W for W = mean over columns - change."""
    cdef Py_ssize_t i, k
    cdef int n = <int>s.n, Q = <int>s.Q
    cdef double one = 1.0, mean
    for i in range(s.n):
        mean = 0.0
        for k in range(s.Q):
            mean += change[k * s.n + i]
        mean /= s.Q
        for k in range(s.Q):
            s.W[k * s.n + i] = mean - change[k * s.n + i]
    dgemm(b"N", b"N", &n, &Q, &n, &one, <double*>s.K, &n, s.W, &n, &one, s.G, &n)


cdef double refresh(ActiveSet* s) noexcept nogil:
    """Update G by moved. Return the error of the last step on M: |G_M + b|, c |q|."""
    cdef Py_ssize_t a, e, k
    cdef double worst = 0.0
    add_product(s, s.moved)
    for e in range(s.n * s.Q):
        s.moved[e] = 0.0
    balance(s)
    for k in range(s.Q):
        worst = max(worst, s.shift * fabs(s.q[k]))
    for a in range(s.m):
        worst = max(worst, fabs(s.G[s.M[a]] + s.b[s.M[a] // s.n]))
    return worst


cdef void recompute(ActiveSet* s) noexcept nogil:
    """G from scratch."""
    cdef Py_ssize_t e
    for e in range(s.n * s.Q):
        s.G[e] = 1.0 / (s.Q - 1)
    add_product(s, s.alpha)


cdef void factor_start(ActiveSet* s, Py_ssize_t m, double* work, int* pivots) noexcept nogil:
    """Factor the m candidates in M (pivoted Cholesky), then add the dependent ones."""
    cdef Py_ssize_t a, c
    cdef int order = <int>m, ld = <int>s.ld, rank = 0, info = 0, Q = <int>s.Q
    cdef double largest = 0.0, tol, one = 1.0
    for a in range(m):
        for c in range(a + 1):
            s.L[a * s.ld + c] = curve(s, s.M[a], s.M[c])
        largest = max(largest, s.L[a * s.ld + a])
    tol = dependence(m) * largest
    dpstrf(b"U", &order, s.L, &ld, pivots, &rank, &tol, work, &info)
    # M takes the order of the pivots; d serves as scratch.
    for a in range(m):
        s.d[a] = <double>s.M[pivots[a] - 1]
    for a in range(rank):
        s.M[a] = <Py_ssize_t>s.d[a]
        s.place[s.M[a]] = a
        s.members[s.M[a] // s.n] += 1
        for c in range(s.Q):
            s.U[a * s.Q + c] = 1.0 if s.M[a] // s.n == c else 0.0
    for a in range(rank, m):
        pivots[a - rank] = <int>s.d[a]
    s.m = rank
    if rank:
        dtrsm(b"R", b"U", b"N", b"N", &Q, &rank, &one, s.L, &ld, s.U, &Q)
    for a in range(m - rank):
        take(s, pivots[a])


cdef Py_ssize_t worst_violator(ActiveSet* s, double tol, double* worst) noexcept nogil:
    """Entry with the largest violation in a column with members, or -1."""
    cdef Py_ssize_t k, e, best = -1
    cdef double slope, most = tol
    for k in range(s.Q):
        if s.members[k] == 0:
            continue
        for e in range(k * s.n, (k + 1) * s.n):
            slope = s.G[e] + s.b[k]
            if slope > most and s.alpha[e] < s.upper[e] and s.place[e] < 0:
                most = slope
                best = e
            elif -slope > most and s.alpha[e] > 0.0 and s.place[e] < 0:
                most = -slope
                best = e
    worst[0] = max(worst[0], most if best >= 0 else 0.0)
    return best


cdef void bracket(
    ActiveSet* s, Py_ssize_t k, Py_ssize_t* up, Py_ssize_t* down
) noexcept nogil:
    """Entries of a column with the largest G that can rise, the smallest that can fall."""
    cdef Py_ssize_t e
    up[0] = down[0] = -1
    for e in range(k * s.n, (k + 1) * s.n):
        if s.alpha[e] < s.upper[e] and (up[0] < 0 or s.G[e] > s.G[up[0]]):
            up[0] = e
        if s.alpha[e] > 0.0 and (down[0] < 0 or s.G[e] < s.G[down[0]]):
            down[0] = e


cdef bint take_pairs(ActiveSet* s, double tol, double* worst) noexcept nogil:
    """Add a pair to every column without members that has a violating one."""
    cdef Py_ssize_t k, up, down
    cdef bint any_ = False
    for k in range(s.Q):
        if s.members[k]:
            continue
        bracket(s, k, &up, &down)
        if up >= 0 and down >= 0 and s.G[up] - s.G[down] > tol:
            worst[0] = max(worst[0], s.G[up] - s.G[down])
            take(s, up)
            take(s, down)
            any_ = True
    return any_


cdef bint take_tuple(ActiveSet* s, Py_ssize_t* ups, Py_ssize_t* downs, double tol,
                     double* worst) noexcept nogil:
    """Add one entry to every column without members, if all of them violate."""
    cdef Py_ssize_t k, e
    cdef double rise = 0.0, fall = 0.0
    cdef bint can_rise = True, can_fall = True
    if all_columns(s):
        return False
    for k in range(s.Q):
        ups[k] = downs[k] = -1
        if s.members[k]:
            rise -= s.b[k]
            fall += s.b[k]
            continue
        bracket(s, k, ups + k, downs + k)
        can_rise = can_rise and ups[k] >= 0
        can_fall = can_fall and downs[k] >= 0
        if ups[k] >= 0:
            rise += s.G[ups[k]]
        if downs[k] >= 0:
            fall -= s.G[downs[k]]
    can_rise = can_rise and rise > tol
    can_fall = can_fall and fall > tol
    if not (can_rise or can_fall):
        return False
    worst[0] = max(worst[0], rise if can_rise else fall)
    for k in range(s.Q):
        e = ups[k] if can_rise else downs[k]
        if e >= 0:
            take(s, e)
    return True


def run_llw_active_set(
    const double[:, ::1] K,        # in, (n, n)
    const double[:, ::1] upper,    # in, (Q, n) finite; 0 where there is no entry
    double[:, ::1] alpha,          # in/out, (Q, n) feasible
    double[:, ::1] G,              # in/out, (Q, n) gradient
    Py_ssize_t[::1] M,             # in/out, (capacity,) first n_members: M
    Py_ssize_t n_members,
    double[:, ::1] L,              # work, (capacity, capacity)
    double shift,
    double tol,
    Py_ssize_t max_steps,
):
    """Run to the optimum. Return (size of M, steps, how it ended: DONE, MORE or LOST)."""
    cdef ActiveSet s
    cdef Py_ssize_t Q = alpha.shape[0], n = alpha.shape[1], capacity = L.shape[0]
    cdef Py_ssize_t steps = 0, entered, e, n_again
    cdef double worst = 0.0, threshold
    cdef bint polished = False
    cdef int end = LOST
    cdef double[:, ::1] wide = np.zeros((2 * Q, n))
    cdef double[:, ::1] long_ = np.empty((Q + 6, capacity))
    cdef double[::1] small = np.zeros(Q * (Q + 5))
    cdef Py_ssize_t[::1] place = np.full(Q * n, -1, dtype=np.intp)
    cdef Py_ssize_t[::1] counts = np.zeros(3 * Q, dtype=np.intp)
    cdef int[::1] pivots = np.empty(capacity, dtype=np.intc)
    s.n, s.Q, s.m, s.ld = n, Q, 0, capacity
    s.K, s.upper, s.alpha, s.G = &K[0, 0], &upper[0, 0], &alpha[0, 0], &G[0, 0]
    s.moved, s.W = &wide[0, 0], &wide[Q, 0]
    s.L, s.M, s.place, s.members = &L[0, 0], &M[0], &place[0], &counts[0]
    s.v, s.d, s.cosine, s.sine = &long_[0, 0], &long_[1, 0], &long_[2, 0], &long_[3, 0]
    s.U = &long_[6, 0]
    s.b, s.db, s.q, s.T = &small[0], &small[Q], &small[2 * Q], &small[3 * Q]
    s.shift, s.failed = shift, False
    with nogil:
        if n_members > 0:
            factor_start(&s, n_members, &long_[4, 0], &pivots[0])
        while not s.failed:
            climb(&s, &steps)
            # A nearly singular factor makes the step inexact: climb again with recomputed G.
            n_again = 0
            while refresh(&s) > tol and n_again < 5 and not s.failed:
                climb(&s, &steps)
                n_again += 1
            if steps >= max_steps:
                end = MORE
                break
            worst = 0.0
            e = worst_violator(&s, tol, &worst)
            if e < 0 and not take_pairs(&s, tol, &worst):
                if not take_tuple(&s, &counts[Q], &counts[2 * Q], tol, &worst):
                    if polished:
                        end = DONE
                        break
                    # G has accumulated the rounding errors of all steps: recompute it for the last.
                    recompute(&s)
                    polished = True
                    continue
            polished = False
            # Add the worst, and others that violate at least a tenth as much.
            threshold = max(0.1 * worst, tol)
            entered = 0
            while e >= 0 and not s.failed:
                take(&s, e)
                entered += 1
                if 20 * entered > s.m:
                    break
                e = worst_violator(&s, threshold, &worst)
            steps += 1
    return s.m, steps, end
