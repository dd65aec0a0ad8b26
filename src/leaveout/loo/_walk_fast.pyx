# SPDX-License-Identifier: BSD-3-Clause
"""Walks: lower one alpha_r to zero while everybody else stays optimal.

Each sample i has one basic quantity x_i and a range [low_i, high_i] it must stay in:

    i on the margin (in M):   x_i = beta_i,  range = its box,          and f_i = y_i
    i outside or bounded:     x_i = f_i,     range = its side of y_i,  and beta_i fixed

Column j of the tableau holds dx / d(nonbasic quantity of j). While no x reaches the end
of its range, x is affine in t = alpha_r with the rates -y_r * column r. When x_p reaches
an end, p changes sides: one principal pivot on p (docs/method/walk).

The tableau of the full solution is shared and read-only. A walk keeps the columns it has
pivoted on and applies them to the next column it needs (product form):

    pivot p, column X, element d = X_p:   c -= X * (c_p / d),   c_p = -c_p / d
"""

from libc.math cimport fabs
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport daxpy, ddot


cdef double FAR = 1e300
# A range is left only by more than this, relative to the unit margin and to the box.
cdef double SLACK = 1e-12
# alpha_r below this share of C_r is zero: decided before the rule for an empty margin,
# else rounding there turns an ambiguous point into an error (docs/method/walk).
cdef double ARRIVED = 1e-10

cpdef enum Status:
    DONE = 0            # the end was reached and checked
    STOPPED = 1         # labels mode: the margin became negative, it stays so
    NEEDS_COLUMN = 2    # a column of the tableau that was not given
    TOO_LONG = 3        # more pivots than there is room for
    FAILED = 4          # the end does not satisfy the optimality conditions
    STUCK = 5           # no way to restore the bias (does not happen in exact arithmetic)


cdef struct Walk:
    Py_ssize_t n
    Py_ssize_t r
    Py_ssize_t m            # size of M
    Py_ssize_t base         # -1: shared tableau; else M was {base} at the first pivot
    Py_ssize_t n_pivots     # pivots since the start or since base
    Py_ssize_t capacity
    Py_ssize_t missing
    const double* K
    const double* y
    const double* C
    const double* columns
    const Py_ssize_t* where
    double* x
    double* low
    double* high
    double* c               # column r of the current tableau
    char* state             # 0 outside, 1 on the margin, 2 bounded
    double* X               # (capacity, n) pivot columns
    Py_ssize_t* pivot       # (capacity,) pivot indices
    double noise            # rates of f below this are rounding
    double scale            # typical K_ii
    double t
    bint intercept


cdef inline double bound_value(Walk* w, Py_ssize_t i) noexcept nogil:
    """beta_i of a point that is outside or bounded."""
    return w.C[i] * w.y[i] if w.state[i] == 2 else 0.0


cdef inline void set_range(Walk* w, Py_ssize_t i) noexcept nogil:
    """Range of x_i by the side i is on."""
    if w.state[i] == 1:
        w.low[i] = 0.0 if w.y[i] > 0 else -w.C[i]
        w.high[i] = w.C[i] if w.y[i] > 0 else 0.0
    elif (w.state[i] == 0) == (w.y[i] > 0):
        w.low[i] = w.y[i]
        w.high[i] = FAR
    else:
        w.low[i] = -FAR
        w.high[i] = w.y[i]


cdef void apply_pivot(Walk* w, double* col, Py_ssize_t q) noexcept nogil:
    """Bring a column over pivot q."""
    cdef double* X = w.X + q * w.n
    cdef Py_ssize_t p = w.pivot[q]
    cdef double share = col[p] / X[p], minus = -share
    cdef int n = <int>w.n, one = 1
    if share != 0.0:
        # col -= X * share
        daxpy(&n, &minus, X, &one, col, &one)
    col[p] = -share


cdef bint load_column(Walk* w, Py_ssize_t j, double* col) noexcept nogil:
    """Write column j of the current tableau; False if the shared one lacks it."""
    cdef Py_ssize_t q, first = 0, i
    cdef double d, K_bj
    cdef const double* row
    cdef const double* base
    q = w.n_pivots - 1
    while q >= 0 and w.pivot[q] != j:
        q -= 1
    if q >= 0:
        # j was pivoted itself: its column then became X / d, with 1 / d on the diagonal.
        d = 1.0 / w.X[q * w.n + j]
        for i in range(w.n):
            col[i] = w.X[q * w.n + i] * d
        col[j] = d
        first = q + 1
    elif w.base < 0:
        if w.where[j] < 0:
            w.missing = j
            return False
        memcpy(col, w.columns + w.where[j] * w.n, w.n * sizeof(double))
    elif j == w.base:
        # M = {base}: its bordered inverse is [[0, 1], [1, -K_bb]].
        for i in range(w.n):
            col[i] = 1.0
        col[j] = 0.0
    else:
        row = w.K + j * w.n
        base = w.K + w.base * w.n
        K_bj = base[w.base] - row[w.base]
        for i in range(w.n):
            col[i] = row[i] - base[i] + K_bj
        col[w.base] = -1.0
    for q in range(first, w.n_pivots):
        apply_pivot(w, col, q)
    return True


cdef int change_side(Walk* w, Py_ssize_t p, bint at_high) noexcept nogil:
    """Pivot on p, whose x has reached an end of its range."""
    cdef double* X
    if w.n_pivots >= w.capacity:
        return TOO_LONG
    X = w.X + w.n_pivots * w.n
    if not load_column(w, p, X):
        return NEEDS_COLUMN
    # The pivot is a squared distance (entering) or its inverse (leaving): positive.
    if X[p] <= 0.0:
        return FAILED
    w.pivot[w.n_pivots] = p
    w.n_pivots += 1
    apply_pivot(w, w.c, w.n_pivots - 1)
    if w.state[p] == 1:
        w.state[p] = 2 if at_high == (w.y[p] > 0) else 0
        w.x[p] = w.y[p]
        w.m -= 1
    else:
        w.x[p] = bound_value(w, p)
        w.state[p] = 1
        w.m += 1
    set_range(w, p)
    return DONE


cdef Py_ssize_t next_event(
    Walk* w, double sign, double remaining, double* step, bint* at_high, bint bland,
) noexcept nogil:
    """Ratio test: who first reaches an end of its range? Return -1 if nobody does.

    Two passes (Harris 1973): the longest step that violates no range by more than
    SLACK, then among those who limit it the one with the largest rate, whose pivot is
    the safest. With bland the lowest index is taken, which cannot cycle.
    """
    cdef Py_ssize_t i, best = -1
    cdef double rate, size, room, slack, longest = remaining, best_size = 0.0
    cdef double f_noise = w.noise, beta_noise = 1e-12
    for i in range(w.n):
        rate = sign * w.c[i]
        room = w.high[i] - w.x[i] if rate > 0 else w.x[i] - w.low[i]
        if fabs(rate) * longest > room:
            if w.state[i] == 1:
                slack = SLACK * w.C[i]
                if fabs(rate) <= beta_noise:
                    continue
            else:
                slack = SLACK
                if fabs(rate) <= f_noise:
                    continue
            if fabs(rate) * longest > room + slack:
                longest = (room + slack) / fabs(rate)
                if longest < 0.0:
                    longest = 0.0
    if longest >= remaining:
        return -1
    for i in range(w.n):
        rate = sign * w.c[i]
        room = w.high[i] - w.x[i] if rate > 0 else w.x[i] - w.low[i]
        size = fabs(rate)
        if room <= size * longest:
            if w.state[i] == 1:
                if size <= beta_noise:
                    continue
            else:
                if size <= f_noise:
                    continue
                size /= w.scale
            if size > best_size:
                best_size = size
                best = i
                if bland:
                    break
    if best < 0:
        return -1
    rate = sign * w.c[best]
    at_high[0] = rate > 0
    room = w.high[best] - w.x[best] if rate > 0 else w.x[best] - w.low[best]
    step[0] = room / fabs(rate) if room > 0.0 else 0.0
    return best


cdef int restore_bias(Walk* w) noexcept nogil:
    """Empty margin: move b until somebody meets the margin, and start anew from there.

    While alpha_r > 0 must still go to zero, the bias jumps towards -y_r.
    """
    cdef Py_ssize_t i, j = -1
    cdef double sign = -w.y[w.r], room, least = FAR
    for i in range(w.n):
        if i == w.r:
            continue
        room = w.high[i] - w.x[i] if sign > 0 else w.x[i] - w.low[i]
        if room < least:
            least = room
            j = i
    if j < 0 or least > 0.5 * FAR:
        return STUCK
    if least < 0.0:
        least = 0.0
    for i in range(w.n):
        w.x[i] += sign * least
    w.x[j] = bound_value(w, j)
    w.state[j] = 1
    w.m = 1
    set_range(w, j)
    w.base = j
    w.n_pivots = 0
    load_column(w, w.r, w.c)
    return DONE


cdef int lower_alpha(Walk* w, bint labels_only, Py_ssize_t max_pivots, Py_ssize_t* pivots) noexcept nogil:
    """The walk itself, t = alpha_r -> 0."""
    cdef double sign = -w.y[w.r], arrived = ARRIVED * w.C[w.r], step = 0.0
    cdef int n = <int>w.n, one = 1, status
    cdef Py_ssize_t p, standing = 0
    cdef bint at_high = False
    cdef double move
    while w.t > arrived:
        if w.intercept and w.m == 0:
            status = restore_bias(w)
            if status != DONE:
                return status
            pivots[0] += 1
        if labels_only and w.y[w.r] * w.x[w.r] < -1e-10:
            return STOPPED
        p = next_event(w, sign, w.t, &step, &at_high, standing > 30)
        if p < 0:
            step = w.t
        move = sign * step
        daxpy(&n, &move, w.c, &one, w.x, &one)
        w.t -= step
        if p < 0:
            w.t = 0.0
            break
        pivots[0] += 1
        if pivots[0] > max_pivots:
            return TOO_LONG
        standing = standing + 1 if step == 0.0 else 0
        if w.intercept and w.m == 1 and w.state[p] == 1:
            # The last free point leaves: no pivot, the next round restores the bias.
            w.state[p] = 2 if at_high == (w.y[p] > 0) else 0
            w.x[p] = w.y[p]
            w.m = 0
            set_range(w, p)
            continue
        status = change_side(w, p, at_high)
        if status != DONE:
            return status
    return DONE


cdef double member_room(Walk* w, Py_ssize_t i) noexcept nogil:
    """Distance of a free beta to its nearer bound, relative to its box."""
    return min(fabs(w.x[i]), w.C[i] - fabs(w.x[i])) / w.C[i]


cdef void bias_range(Walk* w, double* down, double* up) noexcept nogil:
    """How far b may go down and up at the end of the walk: nowhere if a point is free.

    A free point within 1e-9 of a bound counts as being on it.
    """
    cdef Py_ssize_t i
    cdef double distance
    cdef bint can_rise, can_fall, positive
    down[0] = -FAR
    up[0] = FAR
    if not w.intercept:
        down[0] = 0.0
        up[0] = 0.0
        return
    for i in range(w.n):
        if i == w.r:
            continue
        positive = w.y[i] > 0
        if w.state[i] == 1:
            distance = 0.0
            can_rise = w.C[i] - fabs(w.x[i]) > 1e-9 * w.C[i]
            can_fall = fabs(w.x[i]) > 1e-9 * w.C[i]
        else:
            distance = w.y[i] - w.x[i]
            can_rise = w.state[i] == 0
            can_fall = not can_rise
        if (positive and can_rise) or (not positive and can_fall):
            down[0] = max(down[0], distance)
        if (positive and can_fall) or (not positive and can_rise):
            up[0] = min(up[0], distance)
    if down[0] > up[0]:
        # Rounding only: the final check bounds how far they can cross.
        down[0] = up[0] = 0.5 * (down[0] + up[0])


cdef int check_end(
    Walk* w, const double* probe, const double* K_probe, double* beta, double* value,
) noexcept nogil:
    """Verify the end from scratch in O(n); write f_r computed from beta alone.

    The tracked f must be K beta + b for all samples at once: both sides are compared
    along a random direction (Freivalds 1979), with b from the freest member of M.
    """
    cdef Py_ssize_t i, anchor = -1
    cdef int n = <int>w.n, one = 1
    cdef double total = 0.0, size = 0.0, freest = -1.0, b, f_r, left = 0.0, ones = 0.0, tol
    for i in range(w.n):
        if i == w.r:
            beta[i] = 0.0
        elif w.state[i] == 1:
            beta[i] = w.x[i]
            if member_room(w, i) > freest:
                freest = member_room(w, i)
                anchor = i
        else:
            beta[i] = bound_value(w, i)
        total += beta[i]
        size += fabs(beta[i])
        left += probe[i] * (w.y[i] if w.state[i] == 1 and i != w.r else w.x[i])
        ones += probe[i]
    tol = 1e-9 + 1e-12 * w.scale * size
    b = 0.0
    if w.intercept:
        if fabs(total) > 1e-9 * size:
            return FAILED
        if anchor < 0:
            anchor = w.r
        b = (w.y[anchor] if w.state[anchor] == 1 and anchor != w.r else w.x[anchor]) - ddot(
            &n, <double*>(w.K + anchor * w.n), &one, beta, &one)
    f_r = ddot(&n, <double*>(w.K + w.r * w.n), &one, beta, &one) + b
    value[0] = f_r
    if fabs(f_r - w.x[w.r]) > tol:
        return FAILED
    left -= ddot(&n, <double*>K_probe, &one, beta, &one) + b * ones
    if not fabs(left) <= tol * w.n:
        return FAILED
    for i in range(w.n):
        if i != w.r and (w.x[i] < w.low[i] - tol * (w.C[i] if w.state[i] == 1 else 1.0)
                         or w.x[i] > w.high[i] + tol * (w.C[i] if w.state[i] == 1 else 1.0)):
            return FAILED
    return DONE


def run_walks(
    const double[:, ::1] K,              # in, (n, n)
    const double[::1] y,                 # in, (n,)
    const double[::1] C,                 # in, (n,)
    const double[::1] beta,              # in, (n,) full solution
    const double[::1] f,                 # in, (n,) full solution
    const signed char[::1] state,        # in, (n,) full solution
    bint intercept,
    const double[:, ::1] columns,        # in, (n_columns, n) of the shared tableau
    const Py_ssize_t[::1] where,         # in, (n,) row in columns, or -1
    const double[::1] probe,             # in, (n,) random direction
    const double[::1] K_probe,           # in, (n,) K @ probe
    double scale,
    double noise,
    const Py_ssize_t[::1] rows,          # in, samples to leave out
    bint labels_only,
    Py_ssize_t max_pivots,
    double[:, ::1] work,                 # work, (5 + capacity, n)
    char[::1] work_state,                # work, (n,)
    Py_ssize_t[::1] work_pivot,          # work, (capacity,)
    double[::1] value,                   # out, (n_rows,) f_r at the end
    double[::1] down,                    # out, (n_rows,) b may go down by this (<= 0)
    double[::1] up,                      # out, (n_rows,) b may go up by this (>= 0)
    signed char[::1] status,             # out, (n_rows,)
    Py_ssize_t[::1] pivots,              # out, (n_rows,)
    Py_ssize_t[::1] missing,             # out, (n_rows,) column asked for
):
    """Run the walks of some samples; all arguments are checked by the caller."""
    cdef Walk w
    cdef Py_ssize_t n = y.shape[0], a, i, r
    cdef int code
    w.n = n
    w.capacity = work.shape[0] - 5
    w.K = &K[0, 0]
    w.y = &y[0]
    w.C = &C[0]
    w.columns = &columns[0, 0] if columns.shape[0] > 0 else NULL
    w.where = &where[0]
    w.x = &work[0, 0]
    w.low = &work[1, 0]
    w.high = &work[2, 0]
    w.c = &work[3, 0]
    w.X = &work[5, 0]
    w.state = &work_state[0]
    w.pivot = &work_pivot[0]
    w.noise = noise
    w.scale = scale
    w.intercept = intercept
    with nogil:
        for a in range(rows.shape[0]):
            r = rows[a]
            w.r = r
            w.m = 0
            w.base = -1
            w.n_pivots = 0
            w.missing = -1
            w.t = fabs(beta[r])
            for i in range(n):
                w.state[i] = state[i]
                w.x[i] = beta[i] if state[i] == 1 else f[i]
                w.m += state[i] == 1
                set_range(&w, i)
            pivots[a] = 0
            code = start(&w)
            if code == DONE:
                code = lower_alpha(&w, labels_only, max_pivots, &pivots[a])
            value[a] = w.x[r]
            down[a] = up[a] = 0.0
            if code == DONE:
                bias_range(&w, &down[a], &up[a])
                code = check_end(&w, &probe[0], &K_probe[0], &work[4, 0], &value[a])
            status[a] = code
            missing[a] = w.missing


cdef int start(Walk* w) noexcept nogil:
    """Take r out of the sets; column r becomes the direction."""
    cdef Py_ssize_t r = w.r
    cdef int code = DONE
    if w.state[r] == 1:
        w.m -= 1
        # As a nonbasic point r has x_r = f_r = y_r and alpha_r = t.
        w.x[r] = w.y[r]
        if not (w.intercept and w.m == 0):
            if not load_column(w, r, w.X):
                code = NEEDS_COLUMN
            elif w.X[r] <= 0.0:
                code = FAILED
            else:
                w.pivot[0] = r
                w.n_pivots = 1
                load_column(w, r, w.c)
    elif not (w.intercept and w.m == 0) and not load_column(w, r, w.c):
        code = NEEDS_COLUMN
    w.state[r] = 0
    w.low[r] = -FAR
    w.high[r] = FAR
    return code
