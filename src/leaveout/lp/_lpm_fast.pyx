# SPDX-License-Identifier: BSD-3-Clause
"""Leave samples out of an LPM by pivots from one shared basis.

All quantities v, the values f_i and the weights z_j (coefficients, then the intercept),
have a convex cost with at most one kink:

    f_i:  C_i max(0, 1 - y_i f_i), kink at y_i;   z_j:  |z_j|, kink at 0;   intercept:  0

and f = G z. At a vertex the nonbasic quantities sit at their kinks, and the basic ones,
each on one side of its kink, are x = T (nonbasic). With the slopes c of the basic costs
the rate of nonbasic k is D_k = sum_i c_i T_ik; the vertex is optimal if low_k <= D_k <=
high_k, where -low_k and -high_k are the slopes of the cost of k above and below its kink.

Fading a cost means changing the slope of one basic quantity v linearly: D_k moves with
T_vk. When D_k reaches an end, k leaves its kink at no cost, until a basic quantity r
reaches its own: one exchange of r and k (docs/method/lpm), which does not change D.

T is shared and read-only. A walk stores row R and column X of each of its exchanges and
applies them to the next row or column it needs, with d = T_rk:

    column c:  v = c_r / d,  c -= v X,  c_r = -v        if c = k:  c = X / d,   c_r = 1 / d
    row q:     v = q_k / d,  q -= v R,  q_k =  v        if q = r:  q = -R / d,  q_k = 1 / d
"""

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport daxpy, idamax

cpdef enum Status:
    DONE = 0
    TOO_LONG = 1  # more pivots than the capacity
    # No quantity ends a step, a pivot is zero up to rounding, or rounding may hide that a
    # rate is at its end.
    FAILED = 2

# A rate smaller than this, relative to the largest, is rounding error.
cdef double STILL = 1e-10
# Pivots lose digits: a rate within this many slacks of its end may be at it, and the range
# of optima larger than it appears.
cdef double DOUBT = 1024.0
# After this many steps of length zero in a row, the lowest index decides (Bland).
cdef int PATIENCE = 40


cdef struct Shared:
    Py_ssize_t n  # rows: basic quantities
    Py_ssize_t m  # columns: nonbasic quantities
    const double* T  # (n, m)
    const double* Tt  # (m, n)
    const double* kink  # (n + m,); f_i first, then z_j
    const unsigned char* has_kink  # (n + m,)
    const double* low  # (n + m,)
    const double* high  # (n + m,)
    # Rates and values up to this far beyond an end count as being at it (Harris).
    double rate_slack
    double value_slack
    double doubt  # rates this far from an end may be at it after pivots


cdef struct Walk:
    Py_ssize_t row_out  # f of the sample left out
    Py_ssize_t col_out  # its coefficient
    bint row_gone  # f no longer has a cost
    bint col_gone  # the coefficient stays at 0
    Py_ssize_t* basic  # (n,) quantity of each row
    Py_ssize_t* nonbasic  # (m,) quantity of each column, behind basic
    double* x  # (n,) values of the basic quantities
    double* side  # (n,) +1 above the kink, -1 below, behind x
    double* D  # (m,) behind side
    double* kept  # (2n + m,) x, side, D from which the second end of the range starts
    Py_ssize_t* kept_places  # (n + m,) basic, nonbasic there
    double* rho  # (m,) row of the fading quantity
    double* column  # (n,)
    double* row  # (m,)
    Py_ssize_t n_pivots  # kept
    Py_ssize_t n_made  # includes those of the first end, which are dropped for the second
    Py_ssize_t capacity
    Py_ssize_t* pivot_row  # (capacity,)
    Py_ssize_t* pivot_col  # (capacity,)
    double* pivots  # (capacity,)
    double* columns  # (capacity, n)
    double* rows  # (capacity, m)


def work_sizes(Py_ssize_t n, Py_ssize_t m, Py_ssize_t capacity):
    """Lengths of the work arrays of leave_out_rows: of floats and of integers."""
    return 5 * n + 4 * m + capacity * (n + m + 1), 2 * (n + m) + 2 * capacity


def leave_out_rows(
    const double[:, ::1] T,  # in, (n, m)
    const double[:, ::1] Tt,  # in, (m, n): the transpose
    const Py_ssize_t[::1] basic,  # in, (n,)
    const Py_ssize_t[::1] nonbasic,  # in, (m,)
    const double[::1] x,  # in, (n,)
    const double[::1] side,  # in, (n,)
    const double[::1] D,  # in, (m,)
    const double[::1] kink,  # in, (n + m,)
    const unsigned char[::1] has_kink,  # in, (n + m,)
    const double[::1] low,  # in, (n + m,)
    const double[::1] high,  # in, (n + m,)
    const double[::1] y,  # in, (n,)
    double rate_slack,
    double value_slack,
    bint shared_optimum,  # the tableau is that of all samples
    const Py_ssize_t[::1] rows,  # in, (k,): samples to leave out, one at a time
    double[::1] work,  # work
    Py_ssize_t[::1] integers,  # work
    Py_ssize_t capacity,
    double[:, ::1] z_least,  # out, (k, m): an optimal z with the smallest f at the sample
    double[:, ::1] z_most,  # out, (k, m): one with the largest
    double[:, ::1] slopes,  # out, (k, n): row duals times y
    long[::1] n_pivots,  # out, (k,)
    signed char[::1] status,  # out, (k,)
):
    """Leave each of some samples out; find both ends of the range of its value."""
    cdef Shared shared
    cdef Walk walk
    cdef Py_ssize_t k, n = T.shape[0], m = T.shape[1]
    shared.n, shared.m = n, m
    shared.T, shared.Tt = &T[0, 0], &Tt[0, 0]
    shared.kink, shared.has_kink = &kink[0], &has_kink[0]
    shared.low, shared.high = &low[0], &high[0]
    shared.rate_slack, shared.value_slack = rate_slack, value_slack
    shared.doubt = DOUBT * rate_slack if shared_optimum else rate_slack
    cdef double* floats = &work[0]
    walk.x, walk.side, walk.D = floats, floats + n, floats + 2 * n
    walk.kept = floats + 2 * n + m
    floats += 2 * (2 * n + m)
    walk.column, walk.rho, walk.row = floats, floats + n, floats + n + m
    floats += n + 2 * m
    walk.pivots, walk.columns = floats, floats + capacity
    walk.rows = floats + capacity * (1 + n)
    cdef Py_ssize_t* places = &integers[0]
    walk.basic, walk.nonbasic, walk.kept_places = places, places + n, places + n + m
    walk.pivot_row, walk.pivot_col = places + 2 * (n + m), places + 2 * (n + m) + capacity
    walk.capacity = capacity
    with nogil:
        for k in range(rows.shape[0]):
            memcpy(walk.basic, &basic[0], n * sizeof(Py_ssize_t))
            memcpy(walk.nonbasic, &nonbasic[0], m * sizeof(Py_ssize_t))
            memcpy(walk.x, &x[0], n * sizeof(double))
            memcpy(walk.side, &side[0], n * sizeof(double))
            memcpy(walk.D, &D[0], m * sizeof(double))
            walk.n_pivots = walk.n_made = 0
            status[k] = leave_out(
                &shared, &walk, rows[k], y[rows[k]], &z_least[k, 0], &z_most[k, 0],
                &slopes[k, 0],
            )
            n_pivots[k] = walk.n_made


cdef Status leave_out(
    Shared* shared, Walk* walk, Py_ssize_t p, double y, double* z_least, double* z_most,
    double* slopes,
) noexcept nogil:
    """Fade out row p, then coefficient p; then move f_p down and up among the optima."""
    cdef Status status
    cdef Py_ssize_t v, n_pivots, end, n = shared.n, m = shared.m
    walk.row_out, walk.col_out = p, n + p
    walk.row_gone = walk.col_gone = False
    # Row first: coefficient p mainly serves its own row.
    status = fade_row(shared, walk, p, y)
    if status != DONE:
        return status
    v = find(walk.basic, n, walk.col_out)
    if v >= 0:
        # The cost of |z_p| grows until z_p = 0.
        load_row(shared, walk, v, walk.rho)
        status = fade(shared, walk, v, walk.side[v], INFINITY)
        if status != DONE:
            return status
    walk.col_gone = True
    v = find(walk.basic, n, p)
    store_slopes(shared, walk, slopes)
    if not has_ties(shared, walk, shared.rate_slack):
        store_weights(shared, walk, z_least)
        memcpy(z_most, z_least, m * sizeof(double))
        if walk.n_made > 0 and has_ties(shared, walk, shared.doubt):
            return FAILED
        return DONE
    memcpy(walk.kept, walk.x, (2 * n + m) * sizeof(double))
    memcpy(walk.kept_places, walk.basic, (n + m) * sizeof(Py_ssize_t))
    n_pivots = walk.n_pivots
    for end in range(2):
        memcpy(walk.x, walk.kept, (2 * n + m) * sizeof(double))
        memcpy(walk.basic, walk.kept_places, (n + m) * sizeof(Py_ssize_t))
        walk.n_pivots = n_pivots
        load_row(shared, walk, v, walk.rho)
        status = fade(shared, walk, v, 1.0 if end == 0 else -1.0, 0.0)
        if status != DONE:
            return status
        store_weights(shared, walk, z_least if end == 0 else z_most)
    return DONE


cdef Status fade_row(Shared* shared, Walk* walk, Py_ssize_t p, double y) noexcept nogil:
    """Lower the row dual of p to zero; f_p is then basic and without cost."""
    cdef Py_ssize_t c, v = find(walk.basic, shared.n, p)
    cdef double dual
    cdef Status status
    if v >= 0:
        dual = -y * slope(shared, walk, v)
        walk.row_gone = True
    else:
        # At the kink: with C_p lowered to its row dual, f_p can move to the side with cost.
        c = find(walk.nonbasic, shared.m, p)
        dual = y * walk.D[c]
        walk.row_gone = True
        load_column(shared, walk, c, walk.column)
        v = blocking_row(shared, walk, -y, False)
        if v < 0:
            return FAILED
        status = exchange(shared, walk, v, c, -y)
        if status != DONE:
            return status
    if dual <= shared.rate_slack:
        return DONE
    load_row(shared, walk, v, walk.rho)
    return fade(shared, walk, v, y, dual)


cdef Status fade(
    Shared* shared, Walk* walk, Py_ssize_t v, double sign, double length
) noexcept nogil:
    """Add sign * length to the slope of basic quantity v, step by step.

    ``walk.rho`` is its row. Ends early if v itself reaches its kink and leaves the basis.
    """
    cdef Py_ssize_t k, c, r
    cdef double step, towards, left = length
    cdef int n_still = 0
    cdef bint bland, still
    cdef Status status
    while True:
        bland = n_still > PATIENCE
        c = next_entering(shared, walk, sign, left, bland, &step)
        if c < 0:
            if left > 0.0:
                if left == INFINITY:
                    return FAILED
                for k in range(shared.m):
                    walk.D[k] += left * sign * walk.rho[k]
            return DONE
        if step > 0.0:
            for k in range(shared.m):
                walk.D[k] += step * sign * walk.rho[k]
            left -= step
        # D_c is at its upper end: c moves down.
        towards = -1.0 if sign * walk.rho[c] > 0.0 else 1.0
        walk.D[c] = limit(shared, walk, walk.nonbasic[c], towards < 0.0)
        load_column(shared, walk, c, walk.column)
        r = blocking_row(shared, walk, towards, bland)
        if r < 0:
            return FAILED
        still = step <= 0.0 and room_to_kink(shared, walk, r) <= shared.value_slack
        n_still = n_still + 1 if still else 0
        if n_still > 20 * PATIENCE:
            return FAILED
        status = exchange(shared, walk, r, c, towards)
        if status != DONE or r == v:
            return status
        # The row of v after the exchange.
        exchange_row(walk.rho, walk.row, c, walk.column[r], shared.m)


cdef Py_ssize_t next_entering(
    Shared* shared, Walk* walk, double sign, double left, bint bland, double* step
) noexcept nogil:
    """Column whose rate first reaches its end within ``left``, or -1."""
    cdef Py_ssize_t k, best = -1
    cdef double rate, size, room, reach = INFINITY, size_best = 0.0
    cdef double most = largest(shared.m, walk.rho)
    for k in range(shared.m):
        rate = sign * walk.rho[k]
        size = fabs(rate)
        if size > STILL * most:
            room = room_of(shared, walk, k, rate > 0.0)
            reach = min(reach, (room + shared.rate_slack) / size)
    if reach == INFINITY:
        return -1
    for k in range(shared.m):
        rate = sign * walk.rho[k]
        size = fabs(rate)
        if size > STILL * most:
            room = room_of(shared, walk, k, rate > 0.0)
            # Among the first, take the fastest: its pivot is large. A rate that reaches its
            # end after ``left`` must not hide one that does so before.
            if room <= min(reach * size, left * size + shared.rate_slack) and (
                walk.nonbasic[k] < walk.nonbasic[best] if bland and best >= 0
                else size > size_best
            ):
                best, size_best = k, size
                step[0] = room / size
    if best < 0:
        return -1
    step[0] = min(step[0], left)
    return best


cdef inline double room_of(
    Shared* shared, Walk* walk, Py_ssize_t k, bint up
) noexcept nogil:
    """Distance of rate k to its end; 0 if it is beyond."""
    cdef double end = limit(shared, walk, walk.nonbasic[k], up)
    return max(0.0, end - walk.D[k] if up else walk.D[k] - end)


cdef inline double limit(
    Shared* shared, Walk* walk, Py_ssize_t quantity, bint up
) noexcept nogil:
    """Upper or lower end of the rate of a nonbasic quantity."""
    if quantity == walk.col_out and walk.col_gone:
        return INFINITY if up else -INFINITY
    if quantity == walk.row_out and walk.row_gone:
        return 0.0
    return shared.high[quantity] if up else shared.low[quantity]


cdef inline bint can_block(Shared* shared, Walk* walk, Py_ssize_t r) noexcept nogil:
    """Whether the quantity of row r has a kink."""
    cdef Py_ssize_t quantity = walk.basic[r]
    return shared.has_kink[quantity] and not (walk.row_gone and quantity == walk.row_out)


cdef inline double room_to_kink(Shared* shared, Walk* walk, Py_ssize_t r) noexcept nogil:
    """Distance of the quantity of row r to its kink; 0 if it is beyond."""
    return max(0.0, walk.side[r] * (walk.x[r] - shared.kink[walk.basic[r]]))


cdef Py_ssize_t blocking_row(
    Shared* shared, Walk* walk, double towards, bint bland
) noexcept nogil:
    """Row whose quantity first reaches its kink as the entering one moves, or -1."""
    cdef Py_ssize_t i, best = -1
    cdef double rate, room, reach = INFINITY, size_best = 0.0
    cdef double most = largest(shared.n, walk.column)
    for i in range(shared.n):
        rate = -towards * walk.column[i] * walk.side[i]  # > 0: towards the kink
        if rate > STILL * most and can_block(shared, walk, i):
            room = room_to_kink(shared, walk, i)
            reach = min(reach, (room + shared.value_slack) / rate)
    for i in range(shared.n):
        rate = -towards * walk.column[i] * walk.side[i]
        if rate > STILL * most and can_block(shared, walk, i):
            room = room_to_kink(shared, walk, i)
            if room <= reach * rate and (
                walk.basic[i] < walk.basic[best] if bland and best >= 0
                else rate > size_best
            ):
                best, size_best = i, rate
    return best


cdef Status exchange(
    Shared* shared, Walk* walk, Py_ssize_t r, Py_ssize_t c, double towards
) noexcept nogil:
    """Move column c until row r is at its kink; then exchange them.

    ``walk.column`` is column c; afterwards ``walk.row`` is row r as it was before.
    """
    cdef Py_ssize_t i, entering = walk.nonbasic[c], leaving = walk.basic[r]
    cdef double* column = walk.column
    cdef double pivot = column[r], at_kink, length, leaving_slope
    if walk.n_pivots == walk.capacity:
        return TOO_LONG
    if pivot == 0.0:
        return FAILED
    load_row(shared, walk, r, walk.row)
    length = room_to_kink(shared, walk, r) / fabs(pivot)
    leaving_slope = slope(shared, walk, r)
    at_kink = shared.kink[entering] if shared.has_kink[entering] else 0.0
    for i in range(shared.n):
        walk.x[i] += length * towards * column[i]
    walk.x[r] = at_kink + length * towards
    walk.side[r] = towards
    walk.basic[r], walk.nonbasic[c] = entering, leaving
    walk.D[c] = -leaving_slope
    i = walk.n_pivots
    walk.pivot_row[i], walk.pivot_col[i], walk.pivots[i] = r, c, pivot
    memcpy(walk.columns + i * shared.n, column, shared.n * sizeof(double))
    memcpy(walk.rows + i * shared.m, walk.row, shared.m * sizeof(double))
    walk.n_pivots += 1
    walk.n_made += 1
    return DONE


cdef inline void subtract(
    Py_ssize_t n, double share, const double* a, double* x
) noexcept nogil:
    """x -= share * a."""
    cdef int length = <int>n, one = 1
    cdef double minus = -share
    daxpy(&length, &minus, <double*>a, &one, x, &one)


cdef inline double largest(Py_ssize_t n, const double* x) noexcept nogil:
    """Largest |x_i|."""
    cdef int length = <int>n, one = 1
    return fabs(x[idamax(&length, <double*>x, &one) - 1])


cdef inline double slope(Shared* shared, Walk* walk, Py_ssize_t i) noexcept nogil:
    """Slope of the cost of the quantity of row i, on its side of the kink."""
    cdef Py_ssize_t quantity = walk.basic[i]
    if quantity == walk.row_out and walk.row_gone:
        return 0.0
    return -shared.low[quantity] if walk.side[i] > 0.0 else -shared.high[quantity]


cdef inline void exchange_row(
    double* row, const double* R, Py_ssize_t c, double pivot, Py_ssize_t m
) noexcept nogil:
    """Apply to another row an exchange in column c whose row was R."""
    cdef double share = row[c] / pivot
    if share != 0.0:
        subtract(m, share, R, row)
    row[c] = share


cdef void load_row(Shared* shared, Walk* walk, Py_ssize_t q, double* row) noexcept nogil:
    """Row q of the current tableau."""
    cdef Py_ssize_t p, k, m = shared.m
    cdef double* R
    memcpy(row, shared.T + q * m, m * sizeof(double))
    for p in range(walk.n_pivots):
        R = walk.rows + p * m
        if walk.pivot_row[p] == q:
            for k in range(m):
                row[k] = -R[k] / walk.pivots[p]
            row[walk.pivot_col[p]] = 1.0 / walk.pivots[p]
        else:
            exchange_row(row, R, walk.pivot_col[p], walk.pivots[p], m)


cdef void load_column(
    Shared* shared, Walk* walk, Py_ssize_t c, double* column
) noexcept nogil:
    """Column c of the current tableau."""
    cdef Py_ssize_t p, i, r, n = shared.n
    cdef double share
    cdef double* X
    memcpy(column, shared.Tt + c * n, n * sizeof(double))
    for p in range(walk.n_pivots):
        X, r = walk.columns + p * n, walk.pivot_row[p]
        if walk.pivot_col[p] == c:
            for i in range(n):
                column[i] = X[i] / walk.pivots[p]
            column[r] = 1.0 / walk.pivots[p]
        else:
            share = column[r] / walk.pivots[p]
            if share != 0.0:
                subtract(n, share, X, column)
            column[r] = -share


cdef bint has_ties(Shared* shared, Walk* walk, double slack) noexcept nogil:
    """Whether some rate is at an end: only then can there be another optimum."""
    cdef Py_ssize_t k
    for k in range(shared.m):
        if (room_of(shared, walk, k, True) <= slack
                or room_of(shared, walk, k, False) <= slack):
            return True
    return False


cdef void store_weights(Shared* shared, Walk* walk, double* z) noexcept nogil:
    """Coefficients and intercept, (m,)."""
    cdef Py_ssize_t i
    for i in range(shared.m):
        z[i] = 0.0
    for i in range(shared.n):
        if walk.basic[i] >= shared.n:
            z[walk.basic[i] - shared.n] = walk.x[i]


cdef void store_slopes(Shared* shared, Walk* walk, double* slopes) noexcept nogil:
    """Row duals times y: minus the slopes of the costs of f, (n,)."""
    cdef Py_ssize_t i
    for i in range(shared.n):
        if walk.basic[i] < shared.n:
            slopes[walk.basic[i]] = -slope(shared, walk, i)
    for i in range(shared.m):
        if walk.nonbasic[i] < shared.n:
            slopes[walk.nonbasic[i]] = walk.D[i]


cdef inline Py_ssize_t find(
    const Py_ssize_t* places, Py_ssize_t length, Py_ssize_t quantity
) noexcept nogil:
    """Position of a quantity, or -1."""
    cdef Py_ssize_t i
    for i in range(length):
        if places[i] == quantity:
            return i
    return -1
