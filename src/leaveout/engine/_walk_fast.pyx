# SPDX-License-Identifier: BSD-3-Clause
"""Walks: lower the alpha of one sample, or of a group, to zero while the others stay optimal.

Each sample i has one basic quantity x_i and a range [low_i, high_i] it must stay in:

    i on the margin (in M):   x_i = beta_i,  range = [0, C_i] y_i,     and f_i = y_i
    i outside or bounded:     x_i = f_i,     range = its side of y_i,  and beta_i fixed
    i left out:               x_i = f_i,     no range,                 and beta_i fading

Column j of the tableau holds dx / d(nonbasic quantity of j). The fading beta_i are
t times weights w_i, t from max |beta_i| to 0. While no x reaches the end of its range, x
is affine in t with the rates c = sum_i w_i column_i. When x_p reaches an end, p changes
sides: one principal pivot on p (docs/method/walk).

The tableau of the full solution is shared and read-only. A walk stores the columns of its
pivots and applies them to the next column it needs (product form):

    pivot p, column X, element d = X_p:   c -= X * (c_p / d),   c_p = -c_p / d
"""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport daxpy, ddot, dgemm, dgemv, dscal, dtrmm

cdef extern from "_simd.h":
    int count_hits(const double*, const double*, const double*, const double*,
                   double, double) noexcept nogil
    void apply_pivots(long, long, const double*, long, const Py_ssize_t*,
                      double*, double*, double*) noexcept nogil
    enum:
        BLOCK

cdef extern from *:
    """
    /* How many of BLOCK quantities x - move c shorten the range of b. */
    WIDEST static int count_tighter(
        const double *x, const double *c, double move, const double *low,
        const double *high, double most, double least)
    {
        long hits = 0;
        for (int i = 0; i < BLOCK; i++) {
            double at = move != 0.0 ? x[i] - move * c[i] : x[i];
            hits += (low[i] - at > most) + (high[i] - at < least);
        }
        return (int)hits;
    }

    /* How many quantities are outside their range by more than a tolerance. */
    WIDEST static long count_outside(
        long n, const double *x, const double *low, const double *high, double tol)
    {
        long outside = 0;
        for (long i = 0; i < n; i++)
            outside += (x[i] < low[i] - tol) + (x[i] > high[i] + tol);
        return outside;
    }
    """
    int count_tighter(const double*, const double*, double, const double*,
                      const double*, double, double) noexcept nogil
    long count_outside(long, const double*, const double*, const double*,
                       double) noexcept nogil

cdef double FAR = 1e300
# A quantity may exceed its range by this much, relative to the unit margin and to C.
cdef double SLACK = 1e-12
# alpha_r below this share of C_r counts as zero. This is decided before the rule for an
# empty margin; otherwise rounding turns an ambiguous point into an error
# (docs/method/walk).
cdef double ARRIVED = 1e-10
# A point whose squared distance to the affine hull of M is below this share of a typical
# K_ii counts as lying in it: many pivots leave rounding errors of that size.
cdef double DEPENDENT = 1e-12
cdef int IN_HULL = -1

# Rows of work before the pivot columns.
cdef Py_ssize_t N_WORK_ROWS = 14


def work_shape(Py_ssize_t n, Py_ssize_t capacity):
    """Shape of the work array of run_walks."""
    return N_WORK_ROWS + capacity, (n + BLOCK - 1) // BLOCK * BLOCK


cpdef enum Status:
    DONE = 0            # the end was reached and checked
    STOPPED = 1         # labels mode: the margin became negative, and stays negative
    NEEDS_COLUMN = 2    # a column of the tableau is missing
    TOO_LONG = 3        # more pivots than the capacity
    FAILED = 4          # the end does not satisfy the optimality conditions
    STUCK = 5           # b cannot be restored (impossible in exact arithmetic)


cdef struct Walk:
    Py_ssize_t n
    Py_ssize_t padded       # n rounded up to whole blocks
    Py_ssize_t m            # size of M
    const Py_ssize_t* left  # (n_left,) the samples left out
    Py_ssize_t n_left
    double* share           # (n_left,) beta_i / t of each
    Py_ssize_t base         # -1: shared tableau; else M was {base} at the first pivot
    Py_ssize_t n_pivots     # pivots since the start or since base
    Py_ssize_t capacity
    Py_ssize_t missing
    const double* K
    const double* y
    const double* C
    const double* columns
    const Py_ssize_t* where
    const double* V         # (n_factors, n): S = K + V' diag(weights) V
    const double* weights   # (n_factors,)
    const double* Bm        # (n_members, n)
    const double* A         # (n_members, n_members)
    const Py_ssize_t* members
    Py_ssize_t n_members
    Py_ssize_t n_factors    # 0: missing columns are requested
    double* small           # work, (n_factors,)
    double* change          # work, (2 n,)
    Py_ssize_t* flagged     # work, (n / BLOCK,)
    Py_ssize_t* touched     # samples that changed sides, to be restored
    Py_ssize_t n_touched
    double* x
    double* low
    double* high
    double* c               # rates of x in t
    double* on              # 1 on the margin, else 0
    double* fixed           # beta of the points off the margin, y of those on it
    double* X               # (capacity, padded) pivot columns
    Py_ssize_t* pivot       # (capacity,) pivot indices
    double* shares          # work, (2 capacity,)
    double noise            # rates of f below this are rounding errors
    double scale            # typical K_ii
    double t
    bint intercept


cdef struct Start:
    const double* beta      # the full solution
    const double* f
    const signed char* state
    const double* probe     # random signs
    const double* K_probe
    double probe_sum
    double probe_f          # probe @ f
    double tol              # tolerance of f: the rounding error of its sums


cdef inline void set_range(
    double y, double C, bint on_margin, double beta, double* low, double* high,
) noexcept nogil:
    """Range of x_i by the side i is on; beta is 0 or y C if not on the margin.

    A sample with C = 0 is absent: f is computed, but has no range.
    """
    if C == 0.0:
        low[0] = -FAR
        high[0] = FAR
    elif on_margin:
        low[0] = 0.0 if y > 0 else -C
        high[0] = C if y > 0 else 0.0
    elif (beta == 0.0) == (y > 0):
        low[0] = y
        high[0] = FAR
    else:
        low[0] = -FAR
        high[0] = y


cdef inline void touch(Walk* w, Py_ssize_t p) noexcept nogil:
    """Remember that p changed sides (only the first time matters)."""
    cdef Py_ssize_t k
    for k in range(w.n_touched):
        if w.touched[k] == p:
            return
    w.touched[w.n_touched] = p
    w.n_touched += 1


cdef inline void leave_margin(Walk* w, Py_ssize_t p, bint at_high) noexcept nogil:
    """p has reached one of its bounds: beta_p stays there, f_p is free to move."""
    w.fixed[p] = w.high[p] if at_high else w.low[p]
    w.x[p] = w.y[p]
    w.on[p] = 0.0
    w.m -= 1
    touch(w, p)
    set_range(w.y[p], w.C[p], False, w.fixed[p], &w.low[p], &w.high[p])


cdef inline void enter_margin(Walk* w, Py_ssize_t p) noexcept nogil:
    """f_p has reached y_p: it stays there, beta_p is free to move."""
    w.x[p] = w.fixed[p]
    w.fixed[p] = w.y[p]
    w.on[p] = 1.0
    w.m += 1
    touch(w, p)
    set_range(w.y[p], w.C[p], True, 0.0, &w.low[p], &w.high[p])


cdef inline void bring_over(Walk* w, double* col, Py_ssize_t first) noexcept nogil:
    """Apply all pivots from the given one on to a column."""
    apply_pivots(
        w.n, w.n_pivots - first, w.X + first * w.padded, w.padded, w.pivot + first,
        w.shares, w.shares + w.capacity, col)


cdef void make_column(Walk* w, Py_ssize_t j, double* col) noexcept nogil:
    """Column j of the shared tableau from its factors: cheap while M is small."""
    cdef Py_ssize_t q, at = -1
    cdef int n = <int>w.n, k = <int>w.n_factors, one = 1
    cdef double unit = 1.0
    for q in range(w.n_members):
        if w.members[q] == j:
            at = q
    if at >= 0:
        memcpy(col, w.Bm + at * w.n, w.n * sizeof(double))
        for q in range(w.n_members):
            col[w.members[q]] = w.A[at * w.n_members + q]
        return
    for q in range(w.n_factors):
        w.small[q] = w.weights[q] * w.V[q * w.n + j]
    memcpy(col, w.K + j * w.n, w.n * sizeof(double))
    # col += V.T @ small
    dgemv(b"N", &n, &k, &unit, <double*>w.V, &n, w.small, &one, &unit, col, &one)
    for q in range(w.n_members):
        col[w.members[q]] = -w.Bm[q * w.n + j]


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
        # j was itself a pivot: its column then became X / d, with 1 / d on the diagonal.
        d = 1.0 / w.X[q * w.padded + j]
        for i in range(w.n):
            col[i] = w.X[q * w.padded + i] * d
        col[j] = d
        first = q + 1
    elif w.base < 0:
        if w.where[j] >= 0:
            memcpy(col, w.columns + w.where[j] * w.n, w.n * sizeof(double))
        elif w.n_factors > 0:
            make_column(w, j, col)
        else:
            w.missing = j
            return False
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
    bring_over(w, col, first)
    return True


cdef void undo_pivot(Walk* w) noexcept nogil:
    """Undo the last pivot: a second one on the same index is its inverse."""
    cdef double* X = w.X + (w.n_pivots - 1) * w.padded
    cdef Py_ssize_t p = w.pivot[w.n_pivots - 1]
    cdef double share = -w.c[p]
    cdef int n = <int>w.n, one = 1
    # c += X * share
    daxpy(&n, &share, X, &one, w.c, &one)
    w.c[p] = share * X[p]
    w.n_pivots -= 1


cdef int pivot_on(Walk* w, Py_ssize_t p) noexcept nogil:
    """Apply a pivot on p to the direction."""
    cdef double* X
    if w.n_pivots > 0 and w.pivot[w.n_pivots - 1] == p:
        undo_pivot(w)
        return DONE
    if w.n_pivots >= w.capacity:
        return TOO_LONG
    X = w.X + w.n_pivots * w.padded
    if not load_column(w, p, X):
        return NEEDS_COLUMN
    # The pivot is a squared distance (entering) or its inverse (leaving): positive.
    if w.on[p] < 0.5 and X[p] <= DEPENDENT * w.scale:
        return IN_HULL
    if X[p] <= 0.0:
        return FAILED
    w.pivot[w.n_pivots] = p
    w.n_pivots += 1
    bring_over(w, w.c, w.n_pivots - 1)
    return DONE


cdef int change_side(Walk* w, Py_ssize_t p, bint at_high) noexcept nogil:
    """Let p, whose x has reached an end of its range, enter or leave the margin."""
    cdef int status = pivot_on(w, p)
    if status == IN_HULL:
        # p lies in the affine hull of M, where f is known: its rate was rounding error.
        w.c[p] = 0.0
        return DONE
    if status != DONE:
        return status
    if w.on[p] > 0.5:
        leave_margin(w, p, at_high)
    else:
        enter_margin(w, p)
    return DONE


cdef inline double room_ahead(Walk* w, Py_ssize_t i, double rate) noexcept nogil:
    """Distance of x_i to the end of the range it moves towards."""
    return w.high[i] - w.x[i] if rate > 0.0 else w.x[i] - w.low[i]


cdef inline bint is_noise(Walk* w, Py_ssize_t i, double rate) noexcept nogil:
    """Whether a rate is rounding error: duplicates of margin points have rate 0."""
    return fabs(rate) <= (1e-12 if w.on[i] > 0.5 else w.noise)


cdef Py_ssize_t ratio_test(
    Walk* w, double sign, double remaining, double* step, bint* at_high, bint lowest,
) noexcept nogil:
    """Ratio test: the quantity that first reaches an end of its range, or -1.

    The quantities move by sign * w.c times a step of at most remaining. Output: step,
    how far that quantity can move, and at_high, whether it is then at the upper end. With
    lowest, ties are broken by the lowest index instead of the largest rate.

    Two passes (Harris 1973): find the longest step that exceeds no range by more than
    SLACK, then, among the quantities that limit it, the one with the largest rate, whose
    pivot is the most stable; or the lowest index, which cannot cycle (Bland 1977). Blocks
    without a candidate are skipped by vector code.
    """
    cdef Py_ssize_t i, k, block, n_flagged = 0, best = -1
    cdef double rate, size, room, longest = remaining, best_size = 0.0
    for k in range(w.padded // BLOCK):
        block = k * BLOCK
        if not count_hits(w.c + block, w.x + block, w.low + block, w.high + block,
                          sign, longest):
            continue
        w.flagged[n_flagged] = block
        n_flagged += 1
        for i in range(block, block + BLOCK):
            rate = sign * w.c[i]
            room = room_ahead(w, i, rate)
            if fabs(rate) * longest > room and not is_noise(w, i, rate):
                room += SLACK * w.C[i] if w.on[i] > 0.5 else SLACK
                if fabs(rate) * longest > room:
                    longest = room / fabs(rate) if room > 0.0 else 0.0
    if longest >= remaining:
        return -1
    # Quantities that limit the final step also limited the longer ones: only flagged blocks
    # matter.
    for k in range(n_flagged):
        block = w.flagged[k]
        for i in range(block, block + BLOCK):
            rate = sign * w.c[i]
            size = fabs(rate)
            if room_ahead(w, i, rate) <= size * longest and not is_noise(w, i, rate):
                if w.on[i] < 0.5:
                    size /= w.scale
                if size > best_size and not (lowest and best >= 0):
                    best_size = size
                    best = i
    if best < 0:
        return -1
    rate = sign * w.c[best]
    room = room_ahead(w, best, rate)
    at_high[0] = rate > 0.0
    step[0] = room / fabs(rate) if room > 0.0 else 0.0
    return best


cdef int aim(Walk* w) noexcept nogil:
    """c := sum over the left-out samples of share * column, in the current tableau."""
    cdef Py_ssize_t k
    cdef int n = <int>w.n, one = 1
    cdef double* col
    if w.n_left == 1:
        if not load_column(w, w.left[0], w.c):
            return NEEDS_COLUMN
        # c *= share, which is 1 or -1 (or 0)
        dscal(&n, w.share, w.c, &one)
        return DONE
    if w.n_pivots >= w.capacity:
        return TOO_LONG
    col = w.X + w.n_pivots * w.padded
    for k in range(w.n):
        w.c[k] = 0.0
    for k in range(w.n_left):
        if w.share[k] != 0.0:
            if not load_column(w, w.left[k], col):
                return NEEDS_COLUMN
            daxpy(&n, &w.share[k], col, &one, w.c, &one)
    return DONE


cdef int restore_intercept(Walk* w) noexcept nogil:
    """Empty margin: move b until a sample reaches the margin, and start again there.

    The others must compensate for the fading beta, so b jumps against their sign. If the
    fading beta sum to zero, b is an interval instead: see close_intercept_interval.
    """
    cdef Py_ssize_t i, k, i_low, i_high
    cdef double low, high, move, fading = 0.0
    for k in range(w.n_left):
        fading += w.share[k]
    if fabs(fading) <= 1e-12:
        return close_intercept_interval(w)
    intercept_ends(w, w.t, &low, &high, &i_low, &i_high)
    if (i_low if fading > 0.0 else i_high) < 0:
        return STUCK
    move = min(low, 0.0) if fading > 0.0 else max(high, 0.0)
    for i in range(w.n):
        w.x[i] += move
    start_from(w, i_low if fading > 0.0 else i_high)
    return aim(w)


cdef void start_from(Walk* w, Py_ssize_t j) noexcept nogil:
    """M := {j}: a new tableau replaces the shared one and all pivots."""
    enter_margin(w, j)
    w.base = j
    w.n_pivots = 0


cdef void intercept_ends(
    Walk* w, double t, double* low, double* high, Py_ssize_t* i_low, Py_ssize_t* i_high,
) noexcept nogil:
    """How far b can move down and up if all x move on to t and the margin is empty."""
    cdef Py_ssize_t k, block, i
    cdef double x, move = w.t - t
    low[0] = -0.5 * FAR
    high[0] = 0.5 * FAR
    i_low[0] = i_high[0] = -1
    for k in range(w.padded // BLOCK):
        block = k * BLOCK
        if not count_tighter(w.x + block, w.c + block, move, w.low + block,
                             w.high + block, low[0], high[0]):
            continue
        for i in range(block, block + BLOCK):
            x = w.x[i] - move * w.c[i] if move != 0.0 else w.x[i]
            if w.low[i] - x > low[0]:
                low[0] = w.low[i] - x
                i_low[0] = i
            if w.high[i] - x < high[0]:
                high[0] = w.high[i] - x
                i_high[0] = i


cdef int close_intercept_interval(Walk* w) noexcept nogil:
    """Empty margin, and the fading beta sum to zero: b is an interval; follow its ends.

    low(t) is a maximum and high(t) a minimum of affine functions, so low - high is convex
    in t. It is negative now; if it is also negative at t = 0, the walk ends there. Otherwise
    Newton's method from t = 0 finds, in finitely many steps, where the two ends meet, and
    both points enter the margin.
    """
    cdef double low, high, t = 0.0, slope, gap, mid
    cdef Py_ssize_t i, j, k, _
    w.base = -1
    w.n_pivots = 0
    # With an empty margin and sum 0, b has no effect: the columns are those of K.
    for k in range(w.n):
        w.c[k] = 0.0
    for k in range(w.n_left):
        add_kernel_row(w, w.left[k], w.share[k])
    for _ in range(1000):
        intercept_ends(w, t, &low, &high, &i, &j)
        gap = low - high
        if gap <= SLACK:
            break
        if i < 0 or j < 0:
            return STUCK  # x has overflowed
        # d(low - high)/dt at the two points that determine the ends
        slope = w.c[j] - w.c[i]
        if slope >= 0.0:
            return STUCK
        t += gap / -slope
        if t >= w.t:
            t = w.t
            intercept_ends(w, t, &low, &high, &i, &j)
            break
    if t != 0.0 and (i < 0 or j < 0):
        return STUCK
    mid = 0.5 * (low + high) if i >= 0 and j >= 0 else 0.0
    for k in range(w.n):
        w.x[k] += mid - (w.t - t) * w.c[k]
    w.t = t
    if t == 0.0:
        return DONE
    start_from(w, i)
    if w.capacity < 1:
        return TOO_LONG
    if not load_column(w, j, w.X):
        return NEEDS_COLUMN
    if w.X[j] <= 0.0:
        return STUCK
    w.pivot[0] = j
    w.n_pivots = 1
    enter_margin(w, j)
    return aim(w)


cdef inline void add_kernel_row(Walk* w, Py_ssize_t i, double share) noexcept nogil:
    """c += share * K[i]."""
    cdef int n = <int>w.n, one = 1
    daxpy(&n, &share, <double*>(w.K + i * w.n), &one, w.c, &one)


cdef int walk(
    Walk* w, bint labels_only, Py_ssize_t max_pivots, double arrived, Py_ssize_t* pivots,
) noexcept nogil:
    """Walk from t to 0."""
    cdef double step = 0.0, move
    cdef int n = <int>w.n, one = 1, status
    cdef Py_ssize_t p, standing = 0, r = w.left[0]
    cdef bint at_high = False
    while w.t > arrived:
        if w.intercept and w.m == 0:
            status = restore_intercept(w)
            if status != DONE:
                return status
            pivots[0] += 1
            if w.t <= arrived:
                break
        if labels_only and w.y[r] * w.x[r] < -1e-10:
            return STOPPED
        p = ratio_test(w, -1.0, w.t, &step, &at_high, standing > 30)
        if p < 0:
            step = w.t
        move = -step
        daxpy(&n, &move, w.c, &one, w.x, &one)
        w.t -= step
        if p < 0:
            w.t = 0.0
            break
        pivots[0] += 1
        if pivots[0] > max_pivots:
            return TOO_LONG
        standing = standing + 1 if step == 0.0 else 0
        if w.intercept and w.m == 1 and w.on[p] > 0.5:
            # The last free point leaves: there is no pivot, and the next round restores b.
            leave_margin(w, p, at_high)
            continue
        status = change_side(w, p, at_high)
        if status != DONE:
            return status
    return DONE


cdef inline double room_share(Walk* w, Py_ssize_t i) noexcept nogil:
    """Distance of a free beta to its nearer bound, relative to C."""
    return min(fabs(w.x[i]), w.C[i] - fabs(w.x[i])) / w.C[i]


cdef Py_ssize_t find_anchor(Walk* w, Py_ssize_t likely, double* share) noexcept nogil:
    """A point on the margin well inside its bounds: the likely one if it still is, else
    the one farthest from its bounds. Only initial members and touched points qualify."""
    cdef Py_ssize_t k, i, best = -1
    share[0] = -1.0
    if likely >= 0 and w.on[likely] > 0.5 and room_share(w, likely) > 1e-2:
        share[0] = room_share(w, likely)
        return likely
    for k in range(w.n_members + w.n_touched):
        i = w.members[k] if k < w.n_members else w.touched[k - w.n_members]
        if w.on[i] > 0.5 and room_share(w, i) > share[0]:
            share[0] = room_share(w, i)
            best = i
    return best


cdef void intercept_range(Walk* w, double* down, double* up) noexcept nogil:
    """How far b can move down and up at an end where no sample is free.

    A point on the margin within 1e-9 of a bound counts as being on it.
    """
    cdef Py_ssize_t i_low, i_high
    if w.m == 0:
        intercept_ends(w, w.t, down, up, &i_low, &i_high)
        if i_low < 0:
            down[0] = -INFINITY
        if i_high < 0:
            up[0] = INFINITY
    else:
        intercept_range_with_margin(w, down, up)
    if down[0] > up[0]:
        # They cross only by rounding errors, which check_end bounds.
        down[0] = up[0] = 0.5 * (down[0] + up[0])


cdef void intercept_range_with_margin(Walk* w, double* down, double* up) noexcept nogil:
    """The same if all points on the margin have reached a bound."""
    cdef Py_ssize_t i
    cdef double distance, alpha
    cdef bint can_rise, can_fall
    down[0] = -INFINITY
    up[0] = INFINITY
    for i in range(w.n):
        if w.low[i] < -0.5 * FAR and w.high[i] > 0.5 * FAR:
            continue  # left out
        distance = 0.0 if w.on[i] > 0.5 else w.y[i] - w.x[i]
        alpha = fabs(w.x[i] if w.on[i] > 0.5 else w.fixed[i])
        can_rise = w.C[i] - alpha > 1e-9 * w.C[i]
        can_fall = alpha > 1e-9 * w.C[i]
        if can_rise if w.y[i] > 0 else can_fall:
            down[0] = max(down[0], distance)
        if can_fall if w.y[i] > 0 else can_rise:
            up[0] = min(up[0], distance)


cdef int check_end(Walk* w, Start* full, Py_ssize_t anchor, double* values) noexcept nogil:
    """Verify the end against K and the full solution; compute left-out f from beta.

    Only points that were on the margin or changed sides have a different beta, so each f
    takes O(|M|). The tracked f must equal K beta + b for all samples: both sides are
    compared along a random direction (Freivalds 1979). Then the ranges are checked.
    """
    cdef int n = <int>w.n, one = 1
    cdef Py_ssize_t k, j, r, a = anchor if anchor >= 0 else w.left[0]
    cdef double change, total = 0.0, size = 0.0, at_anchor = 0.0, along = 0.0, tracked
    cdef double b_change = 0.0, tol = full.tol
    cdef const double* row = w.K + a * w.n
    if not tol < INFINITY:
        return FAILED
    # probe @ f; x holds f except for the points on the margin, where f = y
    tracked = ddot(&n, <double*>full.probe, &one, w.x, &one)
    for k in range(w.n_members + w.n_touched):
        j = w.members[k] if k < w.n_members else w.touched[k - w.n_members]
        w.change[k] = 0.0
        if k >= w.n_members and full.state[j] == 1:
            continue  # was among the members
        if w.on[j] > 0.5:
            tracked += full.probe[j] * (w.y[j] - w.x[j])
            if w.x[j] < w.low[j] - 1e-9 * w.C[j] or w.x[j] > w.high[j] + 1e-9 * w.C[j]:
                return FAILED
        change = (w.x[j] if w.on[j] > 0.5 else w.fixed[j]) - full.beta[j]
        w.change[k] = change
        total += change
        size += fabs(change)
        at_anchor += change * row[j]
        along += change * full.K_probe[j]
    if w.intercept:
        if fabs(total) > 1e-9 * size:
            return FAILED
        b_change = (w.y[a] if anchor >= 0 else w.x[a]) - full.f[a] - at_anchor
    along += b_change * full.probe_sum
    if not fabs(tracked - full.probe_f - along) <= tol * n:
        return FAILED
    for r in range(w.n_left):
        values[r] = full.f[w.left[r]] + b_change
        row = w.K + w.left[r] * w.n
        for k in range(w.n_members + w.n_touched):
            j = w.members[k] if k < w.n_members else w.touched[k - w.n_members]
            values[r] += w.change[k] * row[j]
        if not fabs(values[r] - w.x[w.left[r]]) <= tol:
            return FAILED
    if count_outside(w.n, w.x, w.low, w.high, tol) > 0:
        # Members were checked above, with their own tolerance.
        for k in range(w.n):
            if w.on[k] < 0.5 and (w.x[k] < w.low[k] - tol or w.x[k] > w.high[k] + tol):
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
    const Py_ssize_t[::1] members,       # in, (m,) M
    const double[:, ::1] V,              # in, (m + 2, n) or (0, n): make columns here
    const double[::1] weights,           # in, (m + 2,)
    const double[:, ::1] Bm,             # in, (m, n)
    const double[:, ::1] A,              # in, (m, m)
    const double[::1] probe,             # in, (n,) random direction
    const double[::1] K_probe,           # in, (n,) K @ probe
    double scale,
    double noise,
    const Py_ssize_t[::1] left,          # in, (n_left,) samples to leave out, by group
    const Py_ssize_t[::1] begin,         # in, (n_groups + 1,) where a group begins in left
    bint labels_only,
    Py_ssize_t max_pivots,
    double[:, ::1] work,                 # work, work_shape(n, capacity)
    Py_ssize_t[::1] work_pivot,          # work, (capacity + 2 n,)
    double[:, ::1] everywhere,           # out, (n_groups, n) f of all at the end; or (0, n)
    double[::1] value,                   # out, (n_left,) f at the end
    double[::1] down,                    # out, (n_groups,) b may go down by this (<= 0)
    double[::1] up,                      # out, (n_groups,) b may go up by this (>= 0)
    signed char[::1] status,             # out, (n_groups,)
    Py_ssize_t[::1] pivots,              # out, (n_groups,)
    Py_ssize_t[::1] missing,             # out, (n_groups,) column requested
):
    """Run the walks of some groups; all arguments are checked by the caller."""
    cdef Walk w
    cdef Py_ssize_t n = y.shape[0], width = work.shape[1], n_free = 0
    cdef Py_ssize_t a, i, k, anchor, first_anchor
    cdef int code
    cdef double share, size = 0.0, arrived = 0.0
    cdef Start full
    cdef double[::1] small = np.empty(V.shape[0] + 1)
    cdef double[::1] shares = np.empty(2 * work.shape[0])
    cdef size_t row = width * sizeof(double)
    w.n = n
    w.padded = width
    w.capacity = work.shape[0] - N_WORK_ROWS
    w.K = &K[0, 0]
    w.y = &y[0]
    w.C = &C[0]
    w.columns = &columns[0, 0] if columns.shape[0] > 0 else NULL
    w.where = &where[0]
    w.x = &work[0, 0]
    w.low = &work[1, 0]
    w.high = &work[2, 0]
    w.on = &work[3, 0]
    w.fixed = &work[4, 0]
    w.c = &work[5, 0]
    w.share = &work[11, 0]
    w.change = &work[12, 0]  # two rows
    w.X = &work[N_WORK_ROWS, 0]
    w.pivot = &work_pivot[0]
    w.touched = &work_pivot[w.capacity]
    w.shares = &shares[0]
    w.flagged = &work_pivot[w.capacity + n]
    w.n_factors = V.shape[0]
    w.n_members = members.shape[0]
    w.members = &members[0] if w.n_members > 0 else NULL
    if w.n_factors > 0:
        w.V = &V[0, 0]
        w.weights = &weights[0]
        w.Bm = &Bm[0, 0]
        w.A = &A[0, 0]
        w.small = &small[0]
    w.noise = noise
    w.scale = scale
    w.intercept = intercept
    full.beta = &beta[0]
    full.f = &f[0]
    full.state = &state[0]
    full.probe = &probe[0]
    full.K_probe = &K_probe[0]
    full.probe_sum = full.probe_f = 0.0
    with nogil:
        # Rows 6 to 10 keep x, low, high, on, fixed of the full solution.
        for i in range(n):
            work[9, i] = 1.0 if state[i] == 1 else 0.0
            work[6, i] = beta[i] if state[i] == 1 else f[i]
            work[10, i] = y[i] if state[i] == 1 else beta[i]
            set_range(y[i], C[i], state[i] == 1, beta[i], &work[7, i], &work[8, i])
            n_free += state[i] == 1
            size += fabs(beta[i])
            full.probe_sum += probe[i]
            full.probe_f += probe[i] * f[i]
        for i in range(n, width):
            work[6, i] = work[9, i] = work[10, i] = work[5, i] = 0.0
            work[7, i] = -FAR
            work[8, i] = FAR
        memcpy(w.x, &work[6, 0], 5 * row)
        w.n_touched = 0
        first_anchor = find_anchor(&w, -1, &share)
        # A few SLACK plus rounding. It cannot be larger: if points are nearly dependent, an
        # error of f at these moves f elsewhere a million times as far.
        full.tol = 4.0 * SLACK + 2e-15 * scale * size
        for a in range(begin.shape[0] - 1):
            w.left = &left[begin[a]]
            w.n_left = begin[a + 1] - begin[a]
            w.m = n_free
            w.base = -1
            w.n_pivots = 0
            w.missing = -1
            w.n_touched = 0
            memcpy(w.x, &work[6, 0], row)
            pivots[a] = 0
            down[a] = up[a] = 0.0
            code = leave(&w, &full, &arrived)
            if code == DONE:
                code = walk(&w, labels_only, max_pivots, arrived, &pivots[a])
            for k in range(w.n_left):
                value[begin[a] + k] = w.x[w.left[k]]
            if code == DONE:
                anchor = find_anchor(&w, first_anchor, &share)
                if intercept and share <= 1e-9:
                    intercept_range(&w, &down[a], &up[a])
                code = check_end(&w, &full, anchor, &value[begin[a]])
            if code == DONE and everywhere.shape[0] > 0:
                for i in range(n):
                    everywhere[a, i] = y[i] if w.on[i] > 0.5 else w.x[i]
            status[a] = code
            missing[a] = w.missing
            for i in range(w.n_touched):
                k = w.touched[i]
                w.low[k] = work[7, k]
                w.high[k] = work[8, k]
                w.on[k] = work[9, k]
                w.fixed[k] = work[10, k]


cdef int leave(Walk* w, Start* full, double* arrived) noexcept nogil:
    """Remove the left-out samples from the sets; from now on their beta are t * share."""
    cdef Py_ssize_t k, i
    cdef int status
    w.t = 0.0
    arrived[0] = 0.0
    for k in range(w.n_left):
        w.t = max(w.t, fabs(full.beta[w.left[k]]))
        arrived[0] = max(arrived[0], ARRIVED * w.C[w.left[k]])
    for k in range(w.n_left):
        i = w.left[k]
        w.share[k] = full.beta[i] / w.t if w.t > 0.0 else 0.0
        if w.on[i] > 0.5:
            if w.intercept and w.m == 1:
                w.m = 0
            else:
                status = change_side(w, i, False)
                if status != DONE:
                    return status
        # A fading point: f_i is computed and has no range, beta_i ends at 0.
        touch(w, i)
        w.x[i] = full.f[i]
        w.on[i] = 0.0
        w.fixed[i] = 0.0
        w.low[i] = -FAR
        w.high[i] = FAR
    if w.intercept and w.m == 0:
        return DONE
    return aim(w)


# Factors and columns of the tableau, in parts for threads. SciPy's wrappers of BLAS hold
# the interpreter lock; here it is released.

# Columns computed by one product: enough for BLAS-3, few enough for the cache.
cdef Py_ssize_t COLUMNS_AT_ONCE = 48


def fill_factors(
    const double[:, ::1] K,              # in, (n, n)
    const Py_ssize_t[::1] members,       # in, (m,) M
    const Py_ssize_t[::1] rows,          # in, (k,) samples outside M
    const double[::1, :] inverse,        # in, (m, m) upper triangular: L^-T
    const double[::1] unit,              # in, (m,) P 1 / sqrt(1'P 1); empty: no intercept
    double c,
    double[:, ::1] V,                    # out, (n, m + 2), only the given rows
    double[:, ::1] Bm,                   # out, (n, m), only the given rows
):
    """Write rows of V and Bm (see Tableau)."""
    cdef int m = <int>members.shape[0], k = <int>rows.shape[0], inc = 1
    cdef double one = 1.0, d, root = 0.0
    cdef double[:, ::1] block = np.empty((k, m))
    cdef Py_ssize_t i, j
    cdef bint intercept = unit.shape[0] > 0
    with nogil:
        for j in range(unit.shape[0]):
            root += unit[j]
        for i in range(k):
            for j in range(m):
                block[i, j] = K[rows[i], members[j]] + c
        # A C-ordered array is its transpose in Fortran: block := block L^-T
        dtrmm(b"L", b"U", b"T", b"N", &m, &k, &one, <double*>&inverse[0, 0], &m,
              &block[0, 0], &m)
        for i in range(k):
            memcpy(&V[rows[i], 0], &block[i, 0], m * sizeof(double))
            V[rows[i], m] = 0.0
            V[rows[i], m + 1] = 1.0
        # block := block L^-1 = (K_.M + c) P
        dtrmm(b"L", b"U", b"N", b"N", &m, &k, &one, <double*>&inverse[0, 0], &m,
              &block[0, 0], &m)
        for i in range(k):
            if intercept:
                d = 1.0
                for j in range(m):
                    d -= block[i, j]
                d /= root
                V[rows[i], m] = d
                # block[i] += d * unit
                daxpy(&m, &d, <double*>&unit[0], &inc, &block[i, 0], &inc)
            memcpy(&Bm[rows[i], 0], &block[i, 0], m * sizeof(double))


def write_columns(
    const double[:, ::1] K,              # in, (n, n)
    const Py_ssize_t[::1] members,       # in, (m,) M
    const Py_ssize_t[::1] place,         # in, (n,) place in members, or -1
    const double[:, ::1] V,              # in, (n, m + 2)
    const double[::1] weights,           # in, (m + 2,)
    const double[:, ::1] Bm,             # in, (n, m)
    const double[:, ::1] A,              # in, (m, m)
    const Py_ssize_t[::1] indices,       # in, (k,) whose columns
    double[:, ::1] out,                  # out, (k, n), one column per row
):
    """Write columns of the tableau."""
    cdef int n = <int>K.shape[0], n_factors = <int>V.shape[1], run
    cdef Py_ssize_t m = members.shape[0], k = 0, first, i, j, q
    cdef double one = 1.0
    cdef double[:, ::1] left = np.empty((COLUMNS_AT_ONCE, n_factors))
    with nogil:
        while k < indices.shape[0]:
            j = indices[k]
            first = k
            if place[j] >= 0:
                # Columns of Bm, one cache line of them at a time.
                while k < indices.shape[0] and k - first < 8 and place[indices[k]] >= 0:
                    k += 1
                for i in range(n):
                    for q in range(first, k):
                        out[q, i] = Bm[i, place[indices[q]]]
                for i in range(first, k):
                    for q in range(m):
                        out[i, members[q]] = A[place[indices[i]], q]
                continue
            while k < indices.shape[0] and k - first < COLUMNS_AT_ONCE and place[indices[k]] < 0:
                j = indices[k]
                memcpy(&out[k, 0], &K[j, 0], n * sizeof(double))
                for q in range(n_factors):
                    left[k - first, q] = weights[q] * V[j, q]
                k += 1
            run = <int>(k - first)
            # out[first:k] += left @ V.T
            dgemm(b"T", b"N", &n, &run, &n_factors, &one, <double*>&V[0, 0], &n_factors,
                  &left[0, 0], &n_factors, &one, &out[first, 0], &n)
            for i in range(first, k):
                for q in range(m):
                    out[i, members[q]] = -Bm[indices[i], q]
