# SPDX-License-Identifier: BSD-3-Clause
"""Walks: lower the beta of one sample, or of a fold, to zero while the others stay optimal.

Every sample i is on its staircase (_stairs.h) and has one basic quantity x_i with a range:

    i free (in M):       x_i = beta_i, between two levels;  f_i is fixed at a kink
    i on a level:        x_i = f_i, between two kinks;      beta_i is fixed
    i left out:          x_i = f_i, no range;               beta_i is fading

Column j of the tableau T holds dx / d(fixed quantity of j) at the full solution. With
A, Bm, S as in leaveout.engine._walk:

    rows \\ columns        j in M            j not in M
    i in M               A_ij              -Bm_ji
    i not in M           Bm_ij             S_ij

While no x reaches an end of its range, x is affine in the way walked. When x_p reaches an
end, p changes sides. P is the set of samples that are on another side than at the start;
what was basic for them is fixed now, and what was fixed moves at rates z (Schur form):

    T_PP z = own_P - drive_P,     rates = drive + T_P z,     rates_P = z

drive = sum of (rate of beta_r) T_r over the fading r off M; own is the rate of the fading
ones in M, which belong to P from the start. With the rows of M negated T_PP is symmetric
quasi-definite (Vanderbei 1995): L D L' exists in any order of P.

**Near set.** The walks run on some of the samples only, the slots. At the end, f of all
other samples is computed and must be in its range: then all optimality conditions hold,
however the slots were chosen. Samples that are not in their range are reported; the caller
adds them to the slots and repeats those walks (docs/method/walk).
"""

import numpy as np

from libc.math cimport INFINITY, fabs, sqrt
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport daxpy, ddot, dgemm, sgemm

from leaveout.engine._stairs cimport (
    FAR, Stairs, kink_of, level_of, range_of, total_height,
)
from leaveout.engine._tableau_fast cimport (
    BLOCK, OF_MEMBERS, Tableau, add_ones, borrow, borrow_floats,
    give_back,
)

cdef extern from "_simd.h":
    int count_hits(const double*, const double*, const double*, const double*,
                   double, double) noexcept nogil
    void combine_columns(long, long, const double**, const double*, const double*,
                         double*) noexcept nogil
    void step_along(long, double, const double*, double*) noexcept nogil
    void add_float_row(long, float, const float*, float*) noexcept nogil
    int count_tighter(const double*, const double*, double, const double*,
                      const double*, double, double) noexcept nogil
    long count_outside(long, const double*, const double*, const double*,
                       double) noexcept nogil
    long count_far(long, const float*, const float*, const float*,
                   float, float) noexcept nogil

# A quantity may exceed its range by this much, relative to the unit margin and to C.
cdef double SLACK = 1e-12
# A fading beta below this share of C counts as zero. This is decided before the rule for an
# empty margin; otherwise rounding turns an ambiguous point into an error
# (docs/method/walk).
cdef double ARRIVED = 1e-10
# A point whose squared distance to the affine hull of M is below this share of a typical
# K_ii counts as lying in it: many pivots leave rounding errors of that size.
cdef double DEPENDENT = 1e-12
# A beta within this share of its range from an end counts as being on a level.
cdef double AT_LEVEL = 1e-9
# Largest P; walks that need more are refitted. After an empty margin a long walk adds to M
# one by one, and refits are faster.
cdef enum:
    MAX_PIVOTS = 192
    MAX_FROM_EMPTY = 32
# Far samples checked at a time in single precision: the products stay in the cache.
cdef enum:
    CHUNK = 1024
# Folds per call whose columns are computed by one product.
FOLDS_AT_ONCE = 128


cpdef enum Status:
    DONE = 0            # the end was reached and checked
    STOPPED = 1         # labels mode: the margin became negative, and stays negative
    NOT_NEAR = 2        # a sample outside the near set left its range
    TOO_LONG = 3        # too many pivots
    FAILED = 4          # the end does not satisfy the optimality conditions
    STUCK = 5           # b cannot be restored (impossible in exact arithmetic)

cdef int IN_HULL = -1


cdef struct Walk:
    # shared by all walks
    const Stairs* stairs
    const double* K
    Py_ssize_t n
    Py_ssize_t k            # slots
    Py_ssize_t width        # slots rounded up to whole blocks
    Py_ssize_t ld           # row length of T
    Py_ssize_t m            # free samples of the full solution: the first m slots
    const Py_ssize_t* row   # (k,) the sample of each slot
    const double* T         # (k, ld) column j of the tableau in row j
    const double* x0        # (ld,) start values
    const double* low0
    const double* high0
    const double* on0
    const double* beta0
    const double* f0
    const int* state0       # (k,)
    const double* probe     # (ld,) random signs
    const double* K_probe   # (ld,) kernel values between slots, times probe
    double probe_sum
    double probe_f          # probe @ f0
    double tol              # tolerance of f: the rounding error of its sums
    double scale            # typical K_ii
    double unit             # no beta is larger
    bint intercept
    # of one walk
    const Py_ssize_t* left  # (n_left,) the samples left out
    const Py_ssize_t* slot  # (n_left,) their slots, or -1
    Py_ssize_t n_left
    double* share           # (n_left,) beta / t of each at the start
    double t                # how far the walk still has to go: beta = t * share
    double t_start
    double fading           # sum of share
    Py_ssize_t n_on         # size of M
    Py_ssize_t base         # -1: shared tableau; else M was {base} at the first pivot
    double* x
    double* low
    double* high
    double* on              # 1 if free, else 0
    double* c               # rates of x
    int* state
    double* drive           # (ld,)
    double* fade            # (ld,) sum of (rate of beta_r) K_r over the fading samples
    bint has_fade
    double f_start          # of the first left-out sample
    double own_f            # f of a single left-out sample without a slot, its rate, and
    double own_rate         # the part of that rate that does not depend on P
    double own_drive
    double* scratch         # (MAX_FROM_EMPTY, ld) columns when base >= 0
    Py_ssize_t n_scratch
    Py_ssize_t n_pivots     # size of P
    Py_ssize_t pivot[MAX_PIVOTS]
    const double* column[MAX_PIVOTS]    # of the tableau
    double own[MAX_PIVOTS]  # prescribed rates
    double D[MAX_PIVOTS]
    double z[MAX_PIVOTS]
    double* L               # (MAX_PIVOTS, MAX_PIVOTS)
    double* T_PP            # (MAX_PIVOTS, MAX_PIVOTS) lower triangle, rows of M negated
    double error[MAX_PIVOTS]
    Py_ssize_t* touched     # slots that changed sides
    Py_ssize_t n_touched
    Py_ssize_t* flagged     # work, (ld / BLOCK,)


cdef inline void touch(Walk* w, Py_ssize_t s) noexcept nogil:
    """Remember that slot s changed sides (only the first time matters)."""
    cdef Py_ssize_t a
    for a in range(w.n_touched):
        if w.touched[a] == s:
            return
    w.touched[w.n_touched] = s
    w.n_touched += 1


cdef inline double height(Walk* w, Py_ssize_t s) noexcept nogil:
    """Length of the range of a free beta, at most the largest beta."""
    return min(w.high[s] - w.low[s], w.unit)


cdef inline double fixed_kink(Walk* w, Py_ssize_t s) noexcept nogil:
    """f of a free slot."""
    return kink_of(w.stairs, w.row[s], w.state[s] // 2)


cdef inline double fixed_level(Walk* w, Py_ssize_t s) noexcept nogil:
    """beta of a slot that is not free."""
    return level_of(w.stairs, w.row[s], w.state[s] // 2)


cdef void change_side(Walk* w, Py_ssize_t s, bint at_high) noexcept nogil:
    """x of slot s is at an end of its range: what was fixed moves from now on."""
    touch(w, s)
    if fabs(w.high[s] if at_high else w.low[s]) >= FAR:
        w.tol = INFINITY  # x has overflowed at an end that does not exist: no end is valid
        return
    if w.on[s] > 0.5:
        w.x[s] = fixed_kink(w, s)
        w.state[s] += -1 if at_high else 1
        w.on[s] = 0.0
        w.n_on -= 1
    else:
        w.x[s] = fixed_level(w, s)
        w.state[s] += 1 if at_high else -1
        w.on[s] = 1.0
        w.n_on += 1
    range_of(w.stairs, w.row[s], w.state[s], &w.low[s], &w.high[s])


# L D L' of T_PP with the rows of M negated.


cdef inline double sign_of(Walk* w, Py_ssize_t s) noexcept nogil:
    """-1 for slots that were free when the walk, or its base, started."""
    if w.base < 0:
        return -1.0 if w.on0[s] > 0.5 else 1.0
    return -1.0 if s == w.base else 1.0


cdef double eliminate(Walk* w, Py_ssize_t i) noexcept nogil:
    """Compute row i of L; return D_i."""
    cdef Py_ssize_t j, a
    cdef double* row = w.L + i * MAX_PIVOTS
    cdef double* entry = w.T_PP + i * MAX_PIVOTS
    cdef double* other
    cdef double sign = sign_of(w, w.pivot[i]), d = sign * w.column[i][w.pivot[i]], value
    entry[i] = d
    for j in range(i):
        value = entry[j] = sign * w.column[j][w.pivot[i]]
        other = w.L + j * MAX_PIVOTS
        for a in range(j):
            value -= row[a] * other[a]
        row[j] = value
    for j in range(i):
        value = row[j] / w.D[j]
        d -= value * row[j]
        row[j] = value
    return d


cdef bint is_pivot(Walk* w, Py_ssize_t i, double d) noexcept nogil:
    """D is a squared distance (entering) or minus the inverse of one (leaving)."""
    cdef Py_ssize_t s = w.pivot[i]
    if sign_of(w, s) > 0.0:
        return d > DEPENDENT * w.scale
    return d < -1e-13 * fabs(w.column[i][s])


cdef int factor_from(Walk* w, Py_ssize_t i) noexcept nogil:
    """Factor again from pivot i on; a pivot that is not possible yet moves to the end."""
    cdef Py_ssize_t a, moved = 0, s
    cdef double own
    cdef const double* column
    while i < w.n_pivots:
        w.D[i] = eliminate(w, i)
        if is_pivot(w, i, w.D[i]):
            i += 1
            moved = 0
            continue
        if moved >= w.n_pivots - 1 - i:
            return FAILED
        s, column, own = w.pivot[i], w.column[i], w.own[i]
        for a in range(i + 1, w.n_pivots):
            w.pivot[a - 1] = w.pivot[a]
            w.column[a - 1] = w.column[a]
            w.own[a - 1] = w.own[a]
        a = w.n_pivots - 1
        w.pivot[a], w.column[a], w.own[a] = s, column, own
        moved += 1
    return DONE


cdef int append_pivot(Walk* w, Py_ssize_t s, double own) noexcept nogil:
    """Add slot s to P."""
    cdef Py_ssize_t a = w.n_pivots
    cdef int status
    if a >= MAX_PIVOTS:
        return TOO_LONG
    w.pivot[a] = s
    w.own[a] = own
    w.column[a] = load_column(w, s)
    if w.column[a] == NULL:
        return TOO_LONG
    w.n_pivots += 1
    status = factor_from(w, a)
    if status == FAILED:
        w.n_pivots -= 1
        # Off the margin: s lies in the affine hull of M, where f is known.
        return IN_HULL if w.on[s] < 0.5 else FAILED
    return status


cdef int remove_pivot(Walk* w, Py_ssize_t at) noexcept nogil:
    """Remove a pivot from P."""
    cdef Py_ssize_t a
    for a in range(at + 1, w.n_pivots):
        w.pivot[a - 1] = w.pivot[a]
        w.column[a - 1] = w.column[a]
        w.own[a - 1] = w.own[a]
    w.n_pivots -= 1
    return factor_from(w, at)


cdef int pivot_on(Walk* w, Py_ssize_t s, bint at_high) noexcept nogil:
    """Let slot s, whose x is at an end of its range, change sides."""
    cdef Py_ssize_t a
    cdef int status
    for a in range(w.n_pivots):
        if w.pivot[a] == s:
            status = remove_pivot(w, a)
            break
    else:
        status = append_pivot(w, s, 0.0)
    if status == IN_HULL:
        w.c[s] = 0.0  # its rate was rounding error
        return DONE
    if status == DONE or status == FAILED:
        change_side(w, s, at_high)
        if status == FAILED and w.intercept and w.n_on == 1:
            # One point is left, a duplicate of the first: the tableau of M = {point}.
            for a in range(w.k):
                if w.on[a] > 0.5:
                    start_from(w, a)
            status = DONE
        find_rates(w)
    return status


cdef void solve(Walk* w, double* z) noexcept nogil:
    """z := (L D L')^-1 z."""
    cdef Py_ssize_t i, j, q = w.n_pivots
    cdef double* row
    for i in range(q):
        row = w.L + i * MAX_PIVOTS
        for j in range(i):
            z[i] -= row[j] * z[j]
    for i in range(q):
        z[i] /= w.D[i]
    for i in range(q - 1, -1, -1):
        row = w.L + i * MAX_PIVOTS
        for j in range(i):
            z[j] -= row[j] * z[i]


cdef void find_rates(Walk* w) noexcept nogil:
    """Rates of all x for the present P; z is refined once, because L may be large."""
    cdef Py_ssize_t i, j, q = w.n_pivots
    cdef double value
    cdef double* z = w.z
    cdef double* error = w.error
    cdef double* row
    for i in range(q):
        value = w.own[i] - w.drive[w.pivot[i]]
        error[i] = z[i] = value if sign_of(w, w.pivot[i]) > 0.0 else -value
    solve(w, z)
    for i in range(q):
        row = w.T_PP + i * MAX_PIVOTS
        error[i] -= row[i] * z[i]
        for j in range(i):
            error[i] -= row[j] * z[j]
            error[j] -= row[j] * z[i]
    solve(w, error)
    for i in range(q):
        z[i] += error[i]
    # c = drive + z @ columns
    combine_columns(w.width, q, w.column, z, w.drive, w.c)
    w.own_rate = w.own_drive
    for i in range(q):
        # T_rp = +- T_pr, and drive_p = (rate of beta_r) T_pr
        w.own_rate += z[i] * sign_of(w, w.pivot[i]) * w.drive[w.pivot[i]] * -w.share[0]
        w.c[w.pivot[i]] = z[i]


# Columns of the tableau of M = {base}: its bordered inverse is [[0, 1], [1, -K_bb]].


cdef inline const double* kernel_row(Walk* w, Py_ssize_t s) noexcept nogil:
    """Kernel values of a slot with all samples."""
    return w.K + w.row[s] * w.n


cdef const double* load_column(Walk* w, Py_ssize_t s) noexcept nogil:
    """Column of slot s before any pivot; NULL if there is no place for it."""
    cdef Py_ssize_t i
    cdef double* column
    cdef const double* row = kernel_row(w, s)
    cdef const double* base
    cdef double shift
    if w.base < 0:
        return w.T + s * w.ld
    if w.n_scratch >= MAX_FROM_EMPTY:
        return NULL
    column = w.scratch + w.n_scratch * w.ld
    w.n_scratch += 1
    base = kernel_row(w, w.base)
    shift = base[w.row[w.base]] - row[w.row[w.base]]
    for i in range(w.k):
        column[i] = 1.0 if s == w.base else row[w.row[i]] - base[w.row[i]] + shift
    for i in range(w.k, w.ld):
        column[i] = 0.0
    column[w.base] = 0.0 if s == w.base else -1.0
    return column


cdef void add_up_fading(Walk* w) noexcept nogil:
    """fade = sum of (rate of beta_r) K_r over the slots."""
    cdef Py_ssize_t a, i
    cdef const double* row
    if w.has_fade:
        return
    w.has_fade = True
    memset(w.fade, 0, w.ld * sizeof(double))
    for a in range(w.n_left):
        row = w.K + w.left[a] * w.n
        for i in range(w.k if w.share[a] != 0.0 else 0):
            w.fade[i] -= w.share[a] * row[w.row[i]]


cdef void start_from(Walk* w, Py_ssize_t s) noexcept nogil:
    """M := {s}: a new tableau replaces the shared one and all pivots."""
    cdef Py_ssize_t i, r = w.left[0]
    cdef const double* base = kernel_row(w, s)
    cdef double shift
    w.base = s
    w.n_pivots = w.n_scratch = 0
    add_up_fading(w)
    shift = -w.fading * base[w.row[s]] - w.fade[s]
    for i in range(w.k):
        w.drive[i] = w.fade[i] + w.fading * base[w.row[i]] + shift
    w.drive[s] = w.fading
    if w.n_left == 1:
        w.own_drive = (-w.share[0] * (w.K[r * w.n + r] + base[w.row[s]])
                       - 2.0 * w.fade[s])


# An empty margin.


cdef int restore_intercept(Walk* w) noexcept nogil:
    """Empty margin: move b until a sample reaches a kink, and start again there.

    The others must compensate for the fading beta, so b jumps against their sign. If the
    fading beta sum to zero, b is an interval instead: see close_intercept_interval.
    """
    cdef Py_ssize_t i, at_low, at_high
    cdef double low, high, move
    if fabs(w.fading) <= 1e-12:
        return close_intercept_interval(w)
    intercept_ends(w, 0.0, &low, &high, &at_low, &at_high)
    if (at_low if w.fading > 0.0 else at_high) < 0:
        return STUCK
    move = min(low, 0.0) if w.fading > 0.0 else max(high, 0.0)
    for i in range(w.k):
        w.x[i] += move
    w.own_f += move
    change_side(w, at_low if w.fading > 0.0 else at_high, w.fading < 0.0)
    start_from(w, at_low if w.fading > 0.0 else at_high)
    find_rates(w)
    return DONE


cdef void intercept_ends(
    Walk* w, double way, double* low, double* high, Py_ssize_t* at_low,
    Py_ssize_t* at_high,
) noexcept nogil:
    """How far b can move down and up, for all but the free slots, if x moves a way."""
    cdef Py_ssize_t a, i
    cdef double x
    low[0] = -0.5 * FAR
    high[0] = 0.5 * FAR
    at_low[0] = at_high[0] = -1
    for a in range(w.width // BLOCK):
        i = a * BLOCK
        if not count_tighter(w.x + i, w.fade + i, way, w.low + i, w.high + i, low[0], high[0]):
            continue
        for i in range(a * BLOCK, min((a + 1) * BLOCK, w.k)):
            if w.on[i] > 0.5:
                continue
            x = w.x[i] + way * w.fade[i] if way != 0.0 else w.x[i]
            if w.low[i] - x > low[0]:
                low[0] = w.low[i] - x
                at_low[0] = i
            if w.high[i] - x < high[0]:
                high[0] = w.high[i] - x
                at_high[0] = i


cdef int close_intercept_interval(Walk* w) noexcept nogil:
    """Empty margin, and the fading beta sum to zero: b is an interval; follow its ends.

    After a way, low is a maximum and high a minimum of affine functions, so low - high is
    convex. It is negative now; if it is also negative at the end, the walk ends there.
    Otherwise Newton's method from the end finds, in finitely many steps, where the two
    ends meet, and both points become free.
    """
    cdef double low, high, way = w.t, slope, gap, mid
    cdef Py_ssize_t i, j, s, _
    cdef int status
    add_up_fading(w)
    for _ in range(1000):
        intercept_ends(w, way, &low, &high, &i, &j)
        gap = low - high
        if gap <= SLACK:
            break
        if i < 0 or j < 0:
            return STUCK  # x has overflowed
        # d(low - high) / d(way) at the two points that determine the ends
        slope = w.fade[j] - w.fade[i]
        if slope <= 0.0:
            return STUCK
        way -= gap / slope
        if way <= 0.0:
            way = 0.0
            intercept_ends(w, way, &low, &high, &i, &j)
            break
    if way != w.t and (i < 0 or j < 0):
        return STUCK
    mid = 0.5 * (low + high) if i >= 0 and j >= 0 else 0.0
    for s in range(w.k):
        w.x[s] += mid + way * w.fade[s]
    if way == w.t:
        w.t = 0.0
        return DONE
    w.t -= way
    change_side(w, i, False)
    start_from(w, i)
    status = append_pivot(w, j, 0.0)
    if status != DONE:
        return STUCK
    change_side(w, j, True)
    find_rates(w)
    return DONE


# The walk.


cdef inline double room_ahead(Walk* w, Py_ssize_t s, double rate) noexcept nogil:
    """Distance of x_s to the end of the range it moves towards."""
    return w.high[s] - w.x[s] if rate > 0.0 else w.x[s] - w.low[s]


cdef inline bint is_noise(Walk* w, Py_ssize_t s) noexcept nogil:
    """Whether a rate is rounding error: duplicates of free points have rate 0."""
    return fabs(w.c[s]) <= (1e-12 if w.on[s] > 0.5 else 1e-13 * w.scale)


cdef Py_ssize_t ratio_test(
    Walk* w, double remaining, double* step, bint* at_high, bint lowest,
) noexcept nogil:
    """The slot whose quantity first reaches an end of its range, or -1.

    Output: step, how far that quantity can move, at most remaining, and at_high, whether
    it is then at the upper end. With lowest, ties are broken by the lowest index instead
    of the largest rate.

    Two passes (Harris 1973): find the longest step that exceeds no range by more than
    SLACK, then, among the quantities that limit it, the one with the largest rate, whose
    pivot is the most stable; or the lowest index, which cannot cycle (Bland 1977). Blocks
    without a candidate are skipped by vector code.
    """
    cdef Py_ssize_t i, a, block, n_flagged = 0, best = -1
    cdef double size, room, longest = remaining, best_size = 0.0
    for a in range(w.width // BLOCK):
        block = a * BLOCK
        if not count_hits(w.c + block, w.x + block, w.low + block, w.high + block,
                          1.0, longest):
            continue
        w.flagged[n_flagged] = block
        n_flagged += 1
        for i in range(block, block + BLOCK):
            size = fabs(w.c[i])
            room = room_ahead(w, i, w.c[i])
            if size * longest > room and not is_noise(w, i):
                room += SLACK * height(w, i) if w.on[i] > 0.5 else SLACK
                if size * longest > room:
                    longest = room / size if room > 0.0 else 0.0
    if longest >= remaining:
        return -1
    # Quantities that limit the final step also limited the longer ones: only flagged blocks
    # matter.
    for a in range(n_flagged):
        block = w.flagged[a]
        for i in range(block, block + BLOCK):
            size = fabs(w.c[i])
            if room_ahead(w, i, w.c[i]) <= size * longest and not is_noise(w, i):
                if w.on[i] < 0.5:
                    size /= w.scale
                if size > best_size and not (lowest and best >= 0):
                    best_size = size
                    best = i
    if best < 0:
        return -1
    room = room_ahead(w, best, w.c[best])
    at_high[0] = w.c[best] > 0.0
    step[0] = room / fabs(w.c[best]) if room > 0.0 else 0.0
    return best


cdef int leave(Walk* w, const double* beta, const double* f, double* arrived) noexcept nogil:
    """Take the left-out samples off their staircases; from now on their beta fade."""
    cdef Py_ssize_t a, s
    cdef int status = DONE
    w.t = w.fading = 0.0
    arrived[0] = 0.0
    for a in range(w.n_left):
        w.t = max(w.t, fabs(beta[w.left[a]]))
        arrived[0] = max(
            arrived[0], ARRIVED * min(total_height(w.stairs, w.left[a]), w.unit))
    w.t_start = w.t
    w.own_f = w.f_start = f[w.left[0]]
    for a in range(w.n_left):
        s = w.slot[a]
        w.share[a] = beta[w.left[a]] / w.t if w.t > 0.0 else 0.0
        w.fading += w.share[a]
        if s < 0:
            continue
        touch(w, s)
        if w.on[s] > 0.5:
            w.n_on -= 1
            w.on[s] = 0.0
            if not w.intercept or w.n_on > 0:
                w.on[s] = 1.0
                status = append_pivot(w, s, -w.share[a])
                w.on[s] = 0.0
        w.x[s] = w.f0[s]
        w.low[s] = -FAR
        w.high[s] = FAR
        if status != DONE:
            return status
    return DONE


cdef int walk(Walk* w, bint labels_only, double arrived, Py_ssize_t* events) noexcept nogil:
    """Walk until the fading beta are zero."""
    cdef double step = 0.0
    cdef int status
    cdef Py_ssize_t p, standing = 0, r = w.left[0]
    cdef bint at_high = False
    cdef double sign = w.stairs.y[r]
    while w.t > arrived:
        if w.intercept and w.n_on == 0:
            status = restore_intercept(w)
            if status != DONE:
                return status
            events[0] += 1
            if w.t <= arrived:
                break
        if labels_only and sign * (w.x[w.slot[0]] if w.slot[0] >= 0 else w.own_f) < -1e-10:
            return STOPPED
        p = ratio_test(w, w.t, &step, &at_high, standing > 30)
        if p < 0:
            step = w.t
        step_along(w.width, step, w.c, w.x)
        w.own_f += step * w.own_rate
        w.t -= step
        if p < 0:
            w.t = 0.0
            break
        events[0] += 1
        if events[0] > 8 * MAX_PIVOTS:
            return TOO_LONG
        standing = standing + 1 if step == 0.0 else 0
        if w.intercept and w.n_on == 1 and w.on[p] > 0.5:
            # The last free point leaves: there is no pivot, and the next round restores b.
            change_side(w, p, at_high)
            continue
        status = pivot_on(w, p, at_high)
        if status != DONE:
            return status
    w.t = 0.0  # what is left of it is rounding error; check_end finds out if not
    return DONE


# The end.


cdef inline double fixed_change(Walk* w, Py_ssize_t s) noexcept nogil:
    """Change of what is fixed now for slot s: f of a free slot, else beta."""
    return (fixed_kink(w, s) - w.f0[s] if w.on[s] > 0.5
            else fixed_level(w, s) - w.beta0[s])


cdef void repeat_in_one_step(Walk* w) noexcept nogil:
    """Compute x at the end from the full solution, without the errors of all steps.

    What moved from its start to a level or kink did so at a known average rate.
    """
    cdef Py_ssize_t i, s
    cdef int width = <int>w.width, one = 1
    cdef double way = w.t_start - w.t, rate
    if w.base >= 0 or w.n_touched == w.n_left or way <= 0.0:
        return
    for i in range(w.n_pivots):
        if w.own[i] == 0.0:
            w.own[i] = fixed_change(w, w.pivot[i]) / way
    for i in range(w.n_touched):
        s = w.touched[i]
        if w.on[s] == w.on0[s] and w.state[s] != w.state0[s]:
            # Back on its side, but on another level or kink.
            rate = fixed_change(w, s) / way
            w.own_drive += rate * sign_of(w, s) * w.drive[s] * -w.share[0]
            daxpy(&width, &rate, <double*>(w.T + s * w.ld), &one, w.drive, &one)
    find_rates(w)
    for s in range(w.k):
        w.x[s] = w.x0[s] + way * w.c[s]
    for i in range(w.n_pivots):
        s = w.pivot[i]
        w.x[s] = (w.f0[s] if w.on0[s] > 0.5 else w.beta0[s]) + way * w.z[i]
    w.own_f = w.f_start + way * w.own_rate


cdef Py_ssize_t find_anchor(Walk* w, double* share) noexcept nogil:
    """The free slot farthest from its levels, relative to its range, or -1."""
    cdef Py_ssize_t a, s, best = -1
    cdef double room
    share[0] = -1.0
    for a in range(w.m + w.n_touched):
        s = a if a < w.m else w.touched[a - w.m]
        if w.on[s] > 0.5:
            room = min(w.x[s] - w.low[s], w.high[s] - w.x[s]) / height(w, s)
            if room > share[0]:
                share[0] = room
                best = s
    return best


cdef void intercept_range(Walk* w, double* down, double* up) noexcept nogil:
    """How far b can move down and up at an end where no sample is free.

    A free beta within 1e-9 of a level counts as being on it: f is at a kink, and b can
    move only to the side of that level.
    """
    cdef Py_ssize_t a, s, j, at_low, at_high
    cdef double low, high
    intercept_ends(w, 0.0, &low, &high, &at_low, &at_high)
    down[0] = -INFINITY if at_low < 0 else low
    up[0] = INFINITY if at_high < 0 else high
    for a in range(w.m + w.n_touched):
        s = a if a < w.m else w.touched[a - w.m]
        if w.on[s] < 0.5:
            continue
        j = w.state[s] // 2
        if w.high[s] - w.x[s] < w.x[s] - w.low[s]:
            up[0] = min(up[0], 0.0)
            if j > 0:
                down[0] = max(down[0], w.stairs.offset[j - 1] - w.stairs.offset[j])
        else:
            down[0] = max(down[0], 0.0)
            if j + 1 < w.stairs.n_kinks:
                up[0] = min(up[0], w.stairs.offset[j + 1] - w.stairs.offset[j])
    if down[0] > up[0]:
        # They cross only by rounding errors, which check_end bounds.
        down[0] = up[0] = 0.5 * (down[0] + up[0])


cdef bint is_in_range(Walk* w) noexcept nogil:
    """Whether all x are in their ranges."""
    cdef Py_ssize_t s
    cdef double tol
    if count_outside(w.k, w.x, w.low, w.high, 0.0) == 0:
        return True
    for s in range(w.k):
        tol = AT_LEVEL * height(w, s) if w.on[s] > 0.5 else w.tol
        if w.x[s] < w.low[s] - tol or w.x[s] > w.high[s] + tol:
            return False
    return True


cdef inline double faded(Walk* w, Py_ssize_t a) noexcept nogil:
    """Change of beta of a left-out sample."""
    return (w.t - w.t_start) * w.share[a]


cdef void find_changes(Walk* w, double* change) noexcept nogil:
    """Write the change of beta of every slot; others than these are zero already."""
    cdef Py_ssize_t a, s
    for a in range(w.m + w.n_touched):
        s = a if a < w.m else w.touched[a - w.m]
        change[s] = (w.x[s] if w.on[s] > 0.5 else fixed_level(w, s)) - w.beta0[s]
    for a in range(w.n_left):
        if w.slot[a] >= 0:
            change[w.slot[a]] = faded(w, a)


cdef double change_at(
    Walk* w, const double* row, const Py_ssize_t* place, const double* change,
) noexcept nogil:
    """Sum of the changes of beta times a vector; place: where the slots are in it."""
    cdef Py_ssize_t a, s
    cdef double total = 0.0
    for s in range(w.m):
        total += change[s] * row[s if place == NULL else place[s]]
    for a in range(w.n_touched):
        s = w.touched[a]
        if s >= w.m:
            total += change[s] * row[s if place == NULL else place[s]]
    return total


cdef double value_at(
    Walk* w, Py_ssize_t r, const double* f, const double* change, double shift,
) noexcept nogil:
    """f of sample r at the end, from K."""
    cdef Py_ssize_t a
    cdef const double* row = w.K + r * w.n
    cdef double value = f[r] + shift + change_at(w, row, w.row, change)
    for a in range(w.n_left):
        if w.slot[a] < 0:
            value += faded(w, a) * row[w.left[a]]
    return value


cdef double size_of(Walk* w, const double* change, double* total) noexcept nogil:
    """Sum of the absolute changes of beta; output: their sum."""
    cdef Py_ssize_t a, s
    cdef double size = 0.0
    total[0] = 0.0
    for a in range(w.m + w.n_touched):
        s = a if a < w.m else w.touched[a - w.m]
        if a < w.m or s >= w.m:
            size += fabs(change[s])
            total[0] += change[s]
    for a in range(w.n_left):
        if w.slot[a] < 0:
            size += fabs(faded(w, a))
            total[0] += faded(w, a)
    return size


cdef int check_end(
    Walk* w, const double* f, Py_ssize_t anchor, double* change, double* shift,
    double* value,
) noexcept nogil:
    """Verify the end against K and the full solution; compute left-out f from beta.

    Only samples that were free or changed sides have another beta. The tracked f must
    equal K beta + b for all slots: both sides are compared along a random direction
    (Freivalds 1979). Output: the change of beta by slot, that of b, and f of the left-out
    samples.
    """
    cdef int k = <int>w.k, one = 1
    cdef Py_ssize_t a, b, s, at = anchor if anchor >= 0 else 0
    cdef double total, size, along, tracked
    cdef const double* row
    shift[0] = 0.0
    if not w.tol < INFINITY or not is_in_range(w):
        return FAILED
    find_changes(w, change)
    size = size_of(w, change, &total)
    if w.intercept:
        if not fabs(total) <= 1e-9 * size:
            return FAILED
        shift[0] = (fixed_kink(w, at) if w.on[at] > 0.5 else w.x[at]) - value_at(
            w, w.row[at], f, change, 0.0)
    # probe @ f; x holds f except for the free slots
    tracked = ddot(&k, <double*>w.probe, &one, w.x, &one)
    for a in range(w.m + w.n_touched):
        s = a if a < w.m else w.touched[a - w.m]
        if w.on[s] > 0.5 and (a < w.m or s >= w.m):
            tracked += w.probe[s] * (fixed_kink(w, s) - w.x[s])
    along = w.probe_f + shift[0] * w.probe_sum + change_at(w, w.K_probe, NULL, change)
    for a in range(w.n_left):
        if w.slot[a] < 0 and w.share[a] != 0.0:
            row = w.K + w.left[a] * w.n
            for b in range(w.k):
                along += faded(w, a) * w.probe[b] * row[w.row[b]]
    if not fabs(tracked - along) <= w.tol * k:
        return FAILED
    for a in range(w.n_left):
        value[a] = value_at(w, w.left[a], f, change, shift[0])
        if w.slot[a] >= 0 and not fabs(value[a] - w.x[w.slot[a]]) <= 10.0 * w.tol:
            return FAILED
    return DONE


cdef bint is_at_bound(Walk* w) noexcept nogil:
    """Whether a beta that changed sides is on a level other than 0 now."""
    cdef Py_ssize_t a, s
    cdef bint left_out
    for a in range(w.n_touched):
        s = w.touched[a]
        left_out = w.low[s] == -FAR and w.high[s] == FAR
        if w.on[s] < 0.5 and not left_out and fixed_level(w, s) != 0.0:
            return True
    return False


cdef void clear_changes(Walk* w, double* change) noexcept nogil:
    """Set the changes of beta back to zero."""
    cdef Py_ssize_t a
    memset(change, 0, w.m * sizeof(double))
    for a in range(w.n_touched):
        change[w.touched[a]] = 0.0


cdef void begin_walk(Walk* w) noexcept nogil:
    """Return to the full solution."""
    cdef Py_ssize_t a, s
    memcpy(w.x, w.x0, w.width * sizeof(double))
    for a in range(w.n_touched):
        s = w.touched[a]
        w.low[s] = w.low0[s]
        w.high[s] = w.high0[s]
        w.on[s] = w.on0[s]
        w.state[s] = w.state0[s]
    w.n_touched = w.n_pivots = w.n_scratch = 0
    w.n_on = w.m
    w.base = -1
    w.has_fade = False
    w.own_drive = w.own_rate = 0.0


cdef double find_reach(
    Walk* w, Tableau t, const double* change, double low, double high, const double* value,
) noexcept nogil:
    """How far the walk moved w, as _tableau_fast compares it with reach.

    |Delta w|^2 = sum of (change of beta) (change of f), because the changes of beta sum to
    zero or b is fixed. low and high: ends of the change of b.
    """
    cdef Py_ssize_t a, s
    cdef double square = 0.0, members = 0.0, total = 0.0, size = size_of(w, change, &total)
    for a in range(w.n_touched):
        s = w.touched[a]
        total = (fixed_kink(w, s) if w.on[s] > 0.5 else w.x[s]) - w.f0[s]
        square += change[s] * total
        if s < t.n_basis:
            members += fabs(total)
    for a in range(w.n_left):
        if w.slot[a] < 0:
            square += faded(w, a) * (value[a] - t.f[w.left[a]])
    # Both f have errors of tol at most.
    square = max(square, 0.0) + 2.0 * w.tol * (1.0 + size)
    if t.n_basis == 0:
        return sqrt(square * t.top) + max(fabs(low), fabs(high))
    return max(sqrt(square), members / OF_MEMBERS()) if low == high else INFINITY


cpdef run_walks(
    Tableau tableau,
    const Py_ssize_t[::1] members,   # in, (k,) samples to leave out, fold by fold
    const Py_ssize_t[::1] begin,     # in, (n_folds + 1,) where a fold begins
    bint labels_only,
    double[::1] value,               # out, (k,) f at the end
    double[::1] down,                # out, (n_folds,) b may go down by this (<= 0)
    double[::1] up,                  # out, (n_folds,) b may go up by this (>= 0)
    double[::1] shift,               # out, (n_folds,) change of b
    signed char[::1] status,         # out, (n_folds,)
    Py_ssize_t[::1] events,          # out, (n_folds,)
    unsigned char[::1] needed,       # in/out, (n,) samples that left their range
    double[:, ::1] changes,          # out, (n_folds, n_slots) of beta; or (0, 0)
):
    """Leave out at most FOLDS_AT_ONCE folds; all arguments are checked by the caller."""
    cdef Py_ssize_t n_folds = begin.shape[0] - 1, a, s, k = tableau.n_slots
    cdef Space space = Space(tableau, n_folds, members.shape[0])
    cdef Walk* w = &space.walk
    cdef double arrived = 0.0, share
    cdef int code
    cdef double* change
    with nogil:
        for a in range(members.shape[0]):
            space.slots[a] = tableau.slot[members[a]]
        multiply(tableau, space, members, begin)
        for a in range(n_folds):
            w.left = &members[begin[a]]
            w.slot = &space.slots[begin[a]]
            w.n_left = begin[a + 1] - begin[a]
            begin_walk(w)
            events[a] = 0
            down[a] = up[a] = 0.0
            change = &space.change[a if space.has_far else 0, 0]
            code = leave(w, &tableau.beta[0], &tableau.f[0], &arrived)
            if code == DONE:
                if w.n_on > 0 or not w.intercept:
                    write_drive(tableau, space, a)
                    find_rates(w)
                code = walk(w, labels_only, arrived, &events[a])
            if code == DONE or code == STOPPED:
                repeat_in_one_step(w)
                s = find_anchor(w, &share)
                if code == DONE and w.intercept and share <= AT_LEVEL:
                    intercept_range(w, &down[a], &up[a])
                if check_end(w, &tableau.f[0], s, change, &shift[a],
                             &value[begin[a]]) != DONE:
                    code = FAILED
                elif down[a] < up[a] or is_at_bound(w):
                    tableau.reached_bounds = True
                if code != FAILED and space.has_far:
                    space.size[a] = size_of(w, change, &share)
                    space.kept[a] = w.t / w.t_start if w.t_start > 0.0 else 0.0
                    space.moved[a] = find_reach(
                        w, tableau, change, shift[a] + down[a], shift[a] + up[a],
                        &value[begin[a]])
            status[a] = code
            if changes.shape[0] > 0:
                memcpy(&changes[a, 0], change, k * sizeof(double))
            if not space.has_far:
                clear_changes(w, change)
        if space.has_far:
            check_far(tableau, space, members, begin, down, up, shift, status, needed)


cdef void multiply(
    Tableau t, Space space, const Py_ssize_t[::1] members, const Py_ssize_t[::1] begin,
) noexcept nogil:
    """Prepare the drive of folds that have samples without slots: one product for all.

    faded holds the sum of (rate of beta_r) K_r over these samples, total that of the
    rates; Y, B and product follow.
    """
    cdef Py_ssize_t a, e, i, r, m = t.n_free, k = t.n_slots, q = 0
    cdef int order = <int>m, others = <int>(k - m), count
    cdef double rate, minus = -1.0, zero = 0.0, largest
    cdef const double* row
    for a in range(begin.shape[0] - 1):
        space.outside[a] = -1
        largest = 0.0
        for e in range(begin[a], begin[a + 1]):
            largest = max(largest, fabs(t.beta[members[e]]))
        if m == 0 and t.intercept:
            continue
        for e in range(begin[a], begin[a + 1]):
            r = members[e]
            if t.beta[r] == 0.0 or space.slots[e] >= 0:
                continue
            if space.outside[a] < 0:
                space.outside[a] = q
                memset(&space.faded[q, 0], 0, k * sizeof(double))
                space.total[q] = 0.0
                q += 1
            rate = -t.beta[r] / largest
            row = &t.K[r, 0]
            for i in range(k):
                space.faded[q - 1, i] += rate * row[t.row[i]]
            space.total[q - 1] += rate
            space.own[q - 1] = rate * (row[r] + t.c)
    if q == 0 or m == 0:
        return
    for a in range(q):
        for i in range(m):
            space.Y[a, i] = space.faded[a, i] + t.c * space.total[a]
    t.to_rows_of_B(q, m, &space.Y[0, 0], &space.B[0, 0])
    count = <int>q
    if others > 0:
        # product = -Y[:q] @ Y_slots.T
        dgemm(b"T", b"N", &others, &count, &order, &minus, &t.Y[0, 0], &order,
              &space.Y[0, 0], &order, &zero, &space.product[0, 0], &others)


cdef void write_drive(Tableau t, Space space, Py_ssize_t fold) noexcept nogil:
    """Write the drive of a walk: (rate of beta_r) T_r, summed over the r off M."""
    cdef Walk* w = &space.walk
    cdef Py_ssize_t a, i, s, m = t.n_free, k = t.n_slots, q = space.outside[fold]
    cdef int order = <int>m, width = <int>k, inc = 1
    cdef double rate, d
    memset(w.drive, 0, w.width * sizeof(double))
    w.own_drive = 0.0
    if q >= 0:
        memcpy(w.drive, &space.faded[q, 0], k * sizeof(double))
        w.own_drive = space.own[q]
    if q >= 0 and m > 0:
        d = add_ones(m, &space.B[q, 0], space.total[q], &t.ones[0], t.root, t.intercept)
        for i in range(m):
            w.drive[i] = -space.B[q, i]
        for i in range(m, k):
            w.drive[i] += space.product[q, i - m] + d * t.d[i] + t.c * space.total[q]
        # S_rr of a single sample, whose rate is 1 or -1
        w.own_drive += space.total[q] * (
            d * d - ddot(&order, &space.Y[q, 0], &inc, &space.Y[q, 0], &inc))
    for a in range(w.n_left):
        s = w.slot[a]
        if w.share[a] != 0.0 and s >= m:
            rate = -w.share[a]
            # drive += rate * T[s]
            daxpy(&width, &rate, &t.T[s, 0], &inc, w.drive, &inc)


# The samples without a slot.


cdef Py_ssize_t sort_folds(
    Tableau t, Space space, const signed char[::1] status,
) noexcept nogil:
    """Put the folds that are done in order of n_checked, the largest first; count them.

    n_checked: how many of the far samples, in their order, the walk might have moved.
    """
    cdef Py_ssize_t a, b, low, high, middle, count = 0
    for a in range(status.shape[0]):
        if status[a] > STOPPED:
            continue
        low, high = 0, t.far.shape[0]
        while low < high:
            middle = (low + high) // 2
            if t.reach[middle] <= space.moved[a]:
                low = middle + 1
            else:
                high = middle
        space.n_checked[a] = low
        b = count
        while b > 0 and space.n_checked[space.order[b - 1]] < low:
            space.order[b] = space.order[b - 1]
            b -= 1
        space.order[b] = a
        count += 1
    return count


cdef void check_far(
    Tableau t, Space space, const Py_ssize_t[::1] members, const Py_ssize_t[::1] begin,
    const double[::1] down, const double[::1] up, const double[::1] shift,
    signed char[::1] status, unsigned char[::1] needed,
) noexcept nogil:
    """Whether f of the samples without a slot stays in its range, by single precision.

    change of f = K_.M (change of beta_M) + the other slots + the left-out samples +
    that of b. Its rounding error is at most margin; a sample within the margin of an
    end counts as outside, so that single precision decides no close case.
    """
    cdef Py_ssize_t chunk, first, a, b, i, n_far = t.far.shape[0], m = t.n_free, n_terms
    cdef Py_ssize_t n_folds = sort_folds(t, space, status)
    cdef int order = <int>m, count, length, ld = <int>n_far, out = <int>CHUNK
    cdef float one = 1.0, zero = 0.0, margin, lower, upper
    cdef float* g
    for b in range(n_folds):
        for i in range(m):
            space.change32[b, i] = <float>space.change[space.order[b], i]
    for chunk in range((n_far + CHUNK - 1) // CHUNK):
        first = chunk * CHUNK
        while n_folds > 0 and space.n_checked[space.order[n_folds - 1]] <= first:
            n_folds -= 1
        if n_folds == 0:
            return
        length, count = <int>min(CHUNK, n_far - first), <int>n_folds
        if m > 0:
            # moves = change_M @ far_K_M[:, first:first + length]
            sgemm(b"N", b"N", &length, &count, &order, &one, &t.far_K[0, first], &ld,
                  &space.change32[0, 0], &order, &zero, &space.moves[0, 0], &out)
        for b in range(n_folds):
            a, g = space.order[b], &space.moves[b, 0]
            if m == 0:
                memset(g, 0, length * sizeof(float))
            length = <int>min(CHUNK, space.n_checked[a] - first)
            n_terms = m + 4 + add_other_moves(
                t, space, a, members[begin[a]:begin[a + 1]], begin[a], first, length, g)
            margin = <float>(2.2 * n_terms * 2.0**-24 * space.size[a] * t.top + 1e-6
                             + 2.0**-22 * fabs(shift[a]))
            lower = <float>(shift[a] + down[a]) - margin
            upper = <float>(shift[a] + up[a]) + margin
            if count_far(length, g, &t.far_room[0, first], &t.far_room[1, first], lower,
                         upper) == 0:
                continue
            for i in range(first, first + length):
                if (g[i - first] + lower < t.far_room[0, i]
                        or g[i - first] + upper > t.far_room[1, i]):
                    if not is_among(t.far[i], members, begin[a], begin[a + 1]):
                        needed[t.far[i]] = 1
                        status[a] = NOT_NEAR


cdef Py_ssize_t add_other_moves(
    Tableau t, Space space, Py_ssize_t a, const Py_ssize_t[::1] left, Py_ssize_t entry,
    Py_ssize_t first, Py_ssize_t length, float* g,
) noexcept nogil:
    """Add the moves of far samples that are not due to M; return the number of terms."""
    cdef Py_ssize_t s, e, i, r, n_terms = 0
    cdef float factor
    for s in range(t.n_free, t.n_slots):
        if space.change[a, s] != 0.0:
            add_float_row(length, <float>space.change[a, s], &t.far_K[s, first], g)
            n_terms += 1
    for e in range(left.shape[0]):
        r = left[e]
        if space.slots[entry + e] < 0 and t.beta[r] != 0.0:
            factor = <float>-(t.beta[r] * (1.0 - space.kept[a]))
            for i in range(length):
                g[i] += factor * <float>t.K[r, t.far[first + i]]
            n_terms += 1
    return n_terms


cdef bint is_among(
    Py_ssize_t i, const Py_ssize_t[::1] members, Py_ssize_t start, Py_ssize_t stop,
) noexcept nogil:
    """Whether i is one of some members."""
    cdef Py_ssize_t e
    for e in range(start, stop):
        if members[e] == i:
            return True
    return False


cdef class Space:
    """Memory of the walks of one call."""

    cdef Walk walk
    cdef double[:, ::1] rows         # (7, ld): x, low, high, on, c, fade, drive
    cdef double[:, ::1] L, T_PP      # (MAX_PIVOTS, MAX_PIVOTS)
    cdef double[:, ::1] scratch      # (MAX_FROM_EMPTY, ld)
    cdef int[::1] state              # (ld,)
    cdef Py_ssize_t[::1] touched, flagged, slots, outside
    cdef double[:, ::1] change       # (n_folds, ld), or (1, ld) if all samples have slots
    cdef bint has_far
    cdef double[:, ::1] faded        # (n_folds, k) see multiply
    cdef double[:, ::1] Y, B         # (n_folds, m)
    cdef double[:, ::1] product      # (n_folds, k - m)
    cdef list loans
    cdef double[::1] share           # (n_members,)
    cdef double[::1] total, own      # (n_folds,) see multiply
    cdef double[::1] size, kept      # (n_folds,) sum |change|, share of the way left
    cdef double[::1] moved           # (n_folds,) see find_reach
    cdef Py_ssize_t[::1] order, n_checked    # (n_folds,) see sort_folds
    cdef float[:, ::1] change32      # (n_folds, m)
    cdef float[:, ::1] moves         # (n_folds, CHUNK)

    def __del__(self):
        give_back(self.loans)

    def __cinit__(self, Tableau tableau, Py_ssize_t n_folds, Py_ssize_t n_members):
        cdef Py_ssize_t ld = tableau.T.shape[1], k = tableau.n_slots, n_change = 1
        cdef double[:, ::1] block
        cdef Py_ssize_t[::1] places = np.empty(2 * ld + n_members + 3 * n_folds, np.intp)
        self.has_far = k < tableau.y.shape[0]
        self.loans = []
        self.touched, self.flagged = places[:ld], places[ld:2 * ld]
        places = places[2 * ld:]
        self.slots, places = places[:n_members], places[n_members:]
        self.outside, self.order = places[:n_folds], places[n_folds:2 * n_folds]
        self.n_checked = places[2 * n_folds:]
        self.state, self.share = np.zeros(ld, np.intc), np.empty(n_members)
        block = borrow(self.loans, (2 * MAX_PIVOTS, MAX_PIVOTS))
        self.L, self.T_PP = block[:MAX_PIVOTS], block[MAX_PIVOTS:]
        if self.has_far:
            n_change = n_folds
            self._reserve_outside(n_folds, k, tableau.n_free)
        block = borrow(self.loans, (7 + MAX_FROM_EMPTY + n_change, ld))
        self.rows, self.scratch = block[:7], block[7:7 + MAX_FROM_EMPTY]
        self.change = block[7 + MAX_FROM_EMPTY:]
        memset(&self.rows[0, 0], 0, 7 * ld * sizeof(double))
        memset(&self.change[0, 0], 0, n_change * ld * sizeof(double))
        self._point(tableau)

    cdef _reserve_outside(self, Py_ssize_t n_folds, Py_ssize_t k, Py_ssize_t m):
        """Memory for samples without slots and their products."""
        self.faded = borrow(self.loans, (n_folds, k))
        self.Y = borrow(self.loans, (n_folds, max(m, 1)))
        self.B = borrow(self.loans, (n_folds, max(m, 1)))
        self.product = borrow(self.loans, (n_folds, max(k - m, 1)))
        self.total, self.own, self.size, self.kept, self.moved = np.zeros((5, n_folds))
        self.change32 = borrow_floats(self.loans, (n_folds, max(m, 1)))
        self.moves = borrow_floats(self.loans, (n_folds, CHUNK))

    cdef void _point(self, Tableau tableau):
        """Let the walk use this memory, and start as the full solution."""
        cdef Walk* w = &self.walk
        cdef Py_ssize_t k = tableau.n_slots, ld = tableau.T.shape[1]
        w.stairs, w.K, w.n = &tableau.stairs, &tableau.K[0, 0], tableau.y.shape[0]
        w.k, w.m, w.ld = k, tableau.n_free, ld
        w.width = (k + BLOCK - 1) // BLOCK * BLOCK
        w.row, w.state0, w.T = &tableau.row[0], &tableau.state[0], &tableau.T[0, 0]
        w.x0, w.low0, w.high0 = &tableau.start[0, 0], &tableau.start[1, 0], &tableau.start[2, 0]
        w.on0, w.beta0, w.f0 = &tableau.start[3, 0], &tableau.start[4, 0], &tableau.start[5, 0]
        w.probe, w.K_probe = &tableau.start[6, 0], &tableau.start[7, 0]
        w.probe_sum, w.probe_f = tableau.probe_sum, tableau.probe_f
        w.tol, w.scale, w.unit = tableau.tol, tableau.scale, tableau.unit
        w.intercept = tableau.intercept
        w.x, w.low, w.high = &self.rows[0, 0], &self.rows[1, 0], &self.rows[2, 0]
        w.on, w.c, w.fade = &self.rows[3, 0], &self.rows[4, 0], &self.rows[5, 0]
        w.drive = &self.rows[6, 0]
        w.state, w.share = &self.state[0], &self.share[0]
        w.L, w.T_PP = &self.L[0, 0], &self.T_PP[0, 0]
        w.scratch = &self.scratch[0, 0]
        w.touched, w.flagged = &self.touched[0], &self.flagged[0]
        w.n_touched = 0
        memcpy(w.low, w.low0, ld * sizeof(double))
        memcpy(w.high, w.high0, ld * sizeof(double))
        memcpy(w.on, w.on0, ld * sizeof(double))
        memcpy(w.state, w.state0, k * sizeof(int))
