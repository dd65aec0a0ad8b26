# SPDX-License-Identifier: BSD-3-Clause
"""Primal active-set method for the dual of an SVM: finishes SMO at machine precision.

    max  sum_i kappa_i(beta_i) - 1/2 beta' K beta    s.t.  sum(beta) = 0

with kappa_i as in _smo_fast.pyx. M is the working set of free indices, each with its kink.
On it the optimum solves the bordered system

    K_MM beta_M + b 1 = ...,   1'beta_M = ...

With sum(beta) = 0 the kernel K + c 11' gives the same problem for every c, and for c > 0
the matrix K_MM + c 11' is positive definite iff the bordered one is non-singular. So one
Cholesky factor L of K_MM + c 11' (c = 0 without intercept) is enough: an index
is appended by one triangular solve and deleted by Givens rotations, O(|M|^2) each.
L is row-major lower triangular, which LAPACK reads as upper triangular.
"""

import numpy as np

from libc.math cimport fabs, sqrt
from scipy.linalg.cython_blas cimport daxpy, ddot, dtrsv
from scipy.linalg.cython_lapack cimport dpotrf, dpstrf

cdef extern from "_simd.h":
    void delete_row(double*, long, long, long, double*, double*) noexcept nogil

from leaveout.engine._stairs cimport (
    Stairs, level_of, make_stairs, state_of, total_height,
)
from leaveout.engine._tableau_fast cimport borrow, give_back

# A point whose squared distance to the affine hull of M is below this share of its
# squared norm counts as dependent on M: rounding errors of the factor are of that size.
# It cannot be larger: with smooth kernels and large C the optimum needs nearly dependent
# points.
cdef double SINGULAR = 1e-14
# If no pivot is below this share, whatever the order, no point depends on the others.
cdef double INDEPENDENT = 1e-8
# A free beta this close to a level counts as being on it, relative to the range, or to the
# largest beta if none comes near its C.
cdef double AT_LEVEL = 1e-11


cdef inline double low_end(ActiveSet* s, Py_ssize_t i) noexcept nogil:
    """Lower end of the range of a free beta."""
    return level_of(s.stairs, i, (s.state[i] + 1) // 2)


cdef inline double high_end(ActiveSet* s, Py_ssize_t i) noexcept nogil:
    """Upper end of the range of a free beta."""
    return level_of(s.stairs, i, (s.state[i] - 1) // 2)


cdef inline double F_at_kink(ActiveSet* s, Py_ssize_t i) noexcept nogil:
    """F_i plus the offset of the kink of a free index."""
    return s.F[i] + s.stairs.offset[s.state[i] // 2]


cdef inline void solve_lower(ActiveSet* s, double* x) noexcept nogil:
    """x := L^-1 x."""
    cdef int m = <int>s.m, ld = <int>s.ld, one = 1
    dtrsv(b"U", b"T", b"N", &m, s.L, &ld, x, &one)


cdef inline void solve_upper(ActiveSet* s, double* x) noexcept nogil:
    """x := L^-T x."""
    cdef int m = <int>s.m, ld = <int>s.ld, one = 1
    dtrsv(b"U", b"N", b"N", &m, s.L, &ld, x, &one)


cdef inline double dependence(Py_ssize_t m) noexcept nogil:
    """Relative squared distance to the hull of m points below which it is rounding error."""
    return max(SINGULAR, 1e-15 * m)


cdef double append_row(ActiveSet* s, Py_ssize_t j) noexcept nogil:
    """Write row m of L for index j; return its squared pivot over the diagonal of K + c."""
    cdef double* row = s.L + s.m * s.ld
    cdef const double* K_j = s.K + j * s.n
    cdef double total = s.diag[j] + s.shift, rest
    cdef int m = <int>s.m, one = 1
    cdef Py_ssize_t k
    for k in range(s.m):
        row[k] = K_j[s.M[k]] + s.shift
    solve_lower(s, row)
    rest = total - ddot(&m, row, &one, row, &one)
    row[s.m] = sqrt(rest) if rest > SINGULAR * total else sqrt(SINGULAR * total)
    return rest / total if total > 0.0 else 0.0


cdef void accept_row(ActiveSet* s, Py_ssize_t j) noexcept nogil:
    """Make j, whose row append_row wrote, a member of M."""
    s.M[s.m] = j
    s.place[j] = s.m
    s.m += 1


cdef void delete_at(ActiveSet* s, Py_ssize_t at) noexcept nogil:
    """Remove the index at a position of M and rotate L back to triangular form."""
    cdef Py_ssize_t i, m = s.m
    s.place[s.M[at]] = -1
    for i in range(at + 1, m):
        s.M[i - 1] = s.M[i]
        s.place[s.M[i]] = i - 1
    delete_row(s.L, s.ld, m, at, s.u, s.v)
    s.m = m - 1


cdef inline void snap(ActiveSet* s, Py_ssize_t i) noexcept nogil:
    """Set beta_i exactly to the level it has reached; it is not free any more."""
    cdef double low = low_end(s, i), high = high_end(s, i)
    cdef bint rises = high - s.beta[i] < s.beta[i] - low
    s.moved[i] += (high if rises else low) - s.beta[i]
    s.beta[i] = high if rises else low
    s.state[i] += -1 if rises else 1


cdef inline double room(ActiveSet* s, Py_ssize_t i, double slope) noexcept nogil:
    """Largest t >= 0 with beta_i + t slope within its range."""
    if slope > 0.0:
        return (high_end(s, i) - s.beta[i]) / slope
    if slope < 0.0:
        return (low_end(s, i) - s.beta[i]) / slope
    return 1e300


cdef bint take_dependent(ActiveSet* s, Py_ssize_t j) noexcept nogil:
    """Add j although phi_j lies in the affine hull of M: move along the null vector.

    v = (L^-T l, -1) changes neither w nor b; the objective changes at the rate
    (F + offset)'v. Move uphill until an index reaches a level. If that is another index,
    it leaves M and j is still to be added. Return whether it is.
    """
    cdef double* v = s.v
    cdef double* row = s.L + s.m * s.ld
    cdef Py_ssize_t k, block = -1
    cdef double rate = -F_at_kink(s, j), t, t_min, sign = 1.0
    for k in range(s.m):
        v[k] = row[k]
    solve_upper(s, v)
    for k in range(s.m):
        rate += F_at_kink(s, s.M[k]) * v[k]
    if rate < 0.0:
        sign = -1.0
    t_min = room(s, j, -sign)
    for k in range(s.m):
        t = room(s, s.M[k], sign * v[k])
        if t < t_min:
            t_min = t
            block = k
    for k in range(s.m):
        s.beta[s.M[k]] += sign * t_min * v[k]
        s.moved[s.M[k]] += sign * t_min * v[k]
    s.beta[j] -= sign * t_min
    s.moved[j] -= sign * t_min
    if block < 0:
        snap(s, j)
        return False
    snap(s, s.M[block])
    delete_at(s, block)
    return True


cdef void take(ActiveSet* s, Py_ssize_t j) noexcept nogil:
    """Add j to M, by null moves as long as it depends on M."""
    cdef bint waiting = True
    while waiting:
        if append_row(s, j) > dependence(s.m):
            accept_row(s, j)
            waiting = False
        else:
            waiting = take_dependent(s, j)


cdef double imbalance(ActiveSet* s) noexcept nogil:
    """Return sum(beta), which is 0 at the optimum; 0 without an intercept."""
    cdef Py_ssize_t i
    cdef double q = s.outside
    if not s.intercept:
        return 0.0
    for i in range(s.n):
        q += s.beta[i]
    return q


cdef int missing(ActiveSet* s) noexcept nogil:
    """1 if sum(beta) must rise, -1 if it must fall, 0 if it is 0 up to rounding."""
    cdef Py_ssize_t i
    cdef double q = imbalance(s), size = fabs(s.outside)
    for i in range(s.n):
        size += fabs(s.beta[i])
    if fabs(q) <= 1e-10 * size:
        return 0
    return 1 if q < 0.0 else -1


cdef double climb(ActiveSet* s, Py_ssize_t* n_steps, Py_ssize_t max_steps) noexcept nogil:
    """Go to the optimum on M, dropping the indices that reach a level; return b.

    Step: (K_MM + c 11') d + (b + c q) 1 = F_M, 1'd = -q, where q = sum(beta) is 0 up
    to rounding unless a sample was left out. F_M -> b 1 along the way, so F of the members
    is known without a product with K.
    """
    cdef Py_ssize_t k, i, block
    cdef double b = 0.0, t, t_min, uu, q = imbalance(s)
    cdef int m, one = 1
    for k in range(s.m):
        s.F_M[s.M[k]] = F_at_kink(s, s.M[k])
    while s.m > 0 and n_steps[0] < max_steps:
        m = <int>s.m
        for k in range(s.m):
            s.v[k] = s.F_M[s.M[k]]
        solve_lower(s, s.v)
        if s.intercept:
            for k in range(s.m):
                s.u[k] = 1.0
            solve_lower(s, s.u)
            uu = ddot(&m, s.u, &one, s.u, &one)
            b = (ddot(&m, s.u, &one, s.v, &one) + q) / uu
            for k in range(s.m):
                s.v[k] -= b * s.u[k]
            b -= s.shift * q
        solve_upper(s, s.v)
        t_min = 1.0
        block = -1
        for k in range(s.m):
            t = room(s, s.M[k], s.v[k])
            if t < t_min:
                t_min = t
                block = k
        for k in range(s.m):
            i = s.M[k]
            s.beta[i] += t_min * s.v[k]
            s.moved[i] += t_min * s.v[k]
            s.F_M[i] += t_min * (b - s.F_M[i])
        q *= 1.0 - t_min
        n_steps[0] += 1
        if block < 0:
            block = member_at_level(s)
        if block < 0:
            return b
        snap(s, s.M[block])
        delete_at(s, block)
    return b


cdef Py_ssize_t member_at_level(ActiveSet* s) noexcept nogil:
    """Position in M of an index that is on a level, or -1."""
    cdef Py_ssize_t k, i
    cdef double width, largest = 0.0
    for i in range(s.n):
        largest = max(largest, fabs(s.beta[i]))
    for k in range(s.m):
        i = s.M[k]
        width = AT_LEVEL * min(high_end(s, i) - low_end(s, i), largest)
        if s.beta[i] - low_end(s, i) <= width or high_end(s, i) - s.beta[i] <= width:
            return k
    return -1


cdef double refresh(ActiveSet* s, double b) noexcept nogil:
    """F -= K moved; clear moved. Return the error of the last step on M."""
    cdef Py_ssize_t i, k
    cdef int n = <int>s.n, one = 1
    cdef double minus, worst = 0.0
    for i in range(s.n):
        if s.moved[i] != 0.0:
            minus = -s.moved[i]
            daxpy(&n, &minus, <double*>(s.K + i * s.n), &one, s.F, &one)
            s.moved[i] = 0.0
    for k in range(s.m):
        worst = max(worst, fabs(F_at_kink(s, s.M[k]) - b))
    return worst


cdef void recompute(ActiveSet* s) noexcept nogil:
    """F = y - K beta from scratch."""
    cdef Py_ssize_t i
    cdef int n = <int>s.n, one = 1
    cdef double minus
    for i in range(s.n):
        s.F[i] = s.stairs.y[i]
    for i in range(s.n):
        if s.beta[i] != 0.0:
            minus = -s.beta[i]
            daxpy(&n, &minus, <double*>(s.K + i * s.n), &one, s.F, &one)


cdef double write_block(ActiveSet* s, Py_ssize_t m) noexcept nogil:
    """Write the lower triangle of K + c on the m candidates in M; return its largest K_ii."""
    cdef Py_ssize_t a, b
    cdef double largest = 0.0
    cdef const double* row
    for a in range(m):
        row = s.K + s.M[a] * s.n
        for b in range(a + 1):
            s.L[a * s.ld + b] = row[s.M[b]] + s.shift
        largest = max(largest, s.L[a * s.ld + a])
    return largest


cdef bint factor_plainly(ActiveSet* s, Py_ssize_t m, double tol) noexcept nogil:
    """Factor without pivots, which is faster, if no squared pivot is below tol."""
    cdef Py_ssize_t a
    cdef int order = <int>m, ld = <int>s.ld, info = 0
    cdef double pivot
    dpotrf(b"U", &order, s.L, &ld, &info)
    for a in range(m):
        pivot = s.L[a * s.ld + a]
        s.place[s.M[a]] = a
        if info != 0 or not pivot * pivot > tol:
            write_block(s, m)
            return False
    s.m = m
    return True


cdef void factor_start(ActiveSet* s, Py_ssize_t m, double* work, int* pivots) noexcept nogil:
    """Factor the m candidates in M; with pivots if some depend on others, added last."""
    cdef Py_ssize_t a, rank_
    cdef int order = <int>m, ld = <int>s.ld, rank = 0, info = 0
    cdef double tol = dependence(m) * write_block(s, m)
    if s.definite and factor_plainly(s, m, INDEPENDENT / SINGULAR * tol):
        return
    for a in range(m):
        s.place[s.M[a]] = -1
    dpstrf(b"U", &order, s.L, &ld, pivots, &rank, &tol, work, &info)
    # M takes the order of the pivots; moved serves as scratch and is cleared.
    for a in range(m):
        s.moved[a] = <double>s.M[pivots[a] - 1]
    rank_ = rank
    s.m = rank_
    for a in range(rank_):
        s.M[a] = <Py_ssize_t>s.moved[a]
        s.place[s.M[a]] = a
    for a in range(rank_, m):
        pivots[a - rank_] = <int>s.moved[a]
    for a in range(m):
        s.moved[a] = 0.0
    for a in range(m - rank_):
        take(s, pivots[a])


cdef inline double can_rise(ActiveSet* s, Py_ssize_t i) noexcept nogil:
    """F_i plus the offset of the kink below a level; -1e300 if there is none."""
    cdef int j = s.state[i] // 2
    if j == 0 or total_height(s.stairs, i) == 0.0:
        return -1e300
    return s.F[i] + s.stairs.offset[j - 1]


cdef inline double can_fall(ActiveSet* s, Py_ssize_t i) noexcept nogil:
    """F_i plus the offset of the kink above a level; 1e300 if there is none."""
    cdef int j = s.state[i] // 2
    if j == s.stairs.n_kinks or total_height(s.stairs, i) == 0.0:
        return 1e300
    return s.F[i] + s.stairs.offset[j]


cdef Py_ssize_t worst_violator(
    ActiveSet* s, double b, double tol, double* worst, int* way,
) noexcept nogil:
    """Index outside M with the largest violation, or -1; way: the change of its state."""
    cdef Py_ssize_t i, best = -1
    cdef double most = tol, rise, fall
    worst[0] = 0.0
    for i in range(s.n):
        if s.place[i] >= 0:
            continue
        # If b has overflowed, it differs from the 1e300 of a way that does not exist, too.
        rise = can_rise(s, i)
        fall = can_fall(s, i)
        if rise > -1e300 and rise - b > most:
            most = rise - b
            best = i
            way[0] = -1
        elif fall < 1e300 and b - fall > most:
            most = b - fall
            best = i
            way[0] = 1
    if best >= 0:
        worst[0] = most
    return best


cdef double bracket(ActiveSet* s, Py_ssize_t* up, Py_ssize_t* down) noexcept nogil:
    """The most violating pair if no index is free; return its violation."""
    cdef Py_ssize_t i
    cdef double F_max = -1e300, F_min = 1e300
    up[0] = -1
    down[0] = -1
    for i in range(s.n):
        if can_rise(s, i) > F_max:
            F_max = can_rise(s, i)
            up[0] = i
        if can_fall(s, i) < F_min:
            F_min = can_fall(s, i)
            down[0] = i
    return F_max - F_min


cdef void enter(ActiveSet* s, Py_ssize_t i, int way) noexcept nogil:
    """Let an index move from its level."""
    s.state[i] += way
    take(s, i)


cdef double optimise(
    ActiveSet* s,               # n, ld, stairs, K, diag, beta, F, outside, intercept set
    double* work,               # (2 n,)
    int* pivots,                # (n,)
    double tol,
    Py_ssize_t max_steps,
    Py_ssize_t max_enter,
    Py_ssize_t* n_steps,        # out
) noexcept nogil:
    """Go to the optimum from the states of beta; return the worst violation left."""
    cdef Py_ssize_t i, up, down, entered, n_again, n_free = 0
    cdef double b = 0.0, worst = 0.0, threshold
    cdef bint polished = False
    cdef int way = 0
    n_steps[0] = 0
    s.m = 0
    s.shift = 0.0
    for i in range(s.n):
        s.place[i] = -1
        s.moved[i] = 0.0
        s.shift += s.diag[i] / s.n if s.intercept else 0.0
        s.state[i] = state_of(s.stairs, i, s.beta[i])
        if s.state[i] % 2:
            s.M[n_free] = i
            n_free += 1
    if s.intercept and s.shift == 0.0:
        s.shift = 1.0
    if n_free > 0:
        factor_start(s, n_free, work, pivots)
    while True:
        b = climb(s, n_steps, max_steps)
        # A nearly singular factor makes the step inexact: climb again with recomputed F.
        n_again = 0
        while refresh(s, b) > tol and n_again < 5 and n_steps[0] < max_steps:
            b = climb(s, n_steps, max_steps)
            n_again += 1
        if s.intercept and s.m == 0:
            # No free point: any b of an interval is optimal, if the interval exists.
            worst = bracket(s, &up, &down)
            way = missing(s)
            if (way == 0 and worst <= tol) or n_steps[0] >= max_steps:
                break
            if up < 0 or down < 0:
                break  # F has overflowed: no sample has the largest value
            if way >= 0:
                enter(s, up, -1)
            if way <= 0 and (down != up or way < 0):
                enter(s, down, 1)
            n_steps[0] += 1
            continue
        i = worst_violator(s, b, tol, &worst, &way)
        if n_steps[0] >= max_steps:
            break
        if i < 0:
            if polished:
                break
            # F has accumulated the rounding errors of all steps: recompute it for the last.
            recompute(s)
            polished = True
            continue
        polished = False
        # Add the worst, and others that violate at least a tenth as much.
        threshold = max(0.1 * worst, tol)
        enter(s, i, way)
        entered = 1
        while entered < max_enter:
            i = worst_violator(s, b, threshold, &worst, &way)
            if i < 0:
                break
            enter(s, i, way)
            entered += 1
        n_steps[0] += 1
    return worst


def run_active_set(
    const double[:, ::1] K,        # in, (n, n)
    const double[::1] diag,        # in, (n,)
    const double[::1] y,           # in, (n,)
    const double[::1] offsets,     # in, (n_kinks,)
    const double[:, ::1] levels,   # in, (n, n_kinks + 1)
    bint intercept,
    double[::1] beta,              # in/out, (n,) feasible
    double[::1] F,                 # in/out, (n,) y - K beta
    Py_ssize_t[::1] members,       # out, (n,) M
    double tol,
    Py_ssize_t max_steps,
    Py_ssize_t max_enter,
):
    """Run to the optimum. Return (size of M, steps, worst violation left)."""
    cdef ActiveSet s
    cdef Py_ssize_t n = beta.shape[0], n_steps
    cdef double worst
    cdef Stairs stairs = make_stairs(
        y.shape[0], offsets.shape[0], &y[0], &offsets[0], &levels[0, 0])
    # Rows a multiple of 64 doubles apart share cache sets.
    cdef list loans = []
    cdef double[:, ::1] L = borrow(loans, (n, n + 8 if n % 64 == 0 else n))
    cdef double[:, ::1] work = np.empty((6, n))
    cdef Py_ssize_t[::1] place = np.empty(n, dtype=np.intp)
    cdef int[:, ::1] small = np.empty((2, n), dtype=np.intc)
    s.n, s.ld = n, L.shape[1]
    s.stairs, s.K, s.diag = &stairs, &K[0, 0], &diag[0]
    s.state, s.beta, s.F, s.L = &small[0, 0], &beta[0], &F[0], &L[0, 0]
    s.u, s.v, s.moved, s.F_M = &work[0, 0], &work[1, 0], &work[2, 0], &work[3, 0]
    s.M, s.place = &members[0], &place[0]
    s.intercept, s.outside, s.definite = intercept, 0.0, False
    with nogil:
        worst = optimise(&s, &work[4, 0], &small[1, 0], tol, max_steps, max_enter, &n_steps)
    give_back(loans)
    return s.m, n_steps, worst
