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
from scipy.linalg.cython_blas cimport daxpy, ddot, dgemm, dgemv, dtrmm, sgemm
from scipy.linalg.cython_lapack cimport dlauum, dpotrf, dtrtri

cdef extern from "_simd.h":
    int count_hits(const double*, const double*, const double*, const double*,
                   double, double) noexcept nogil
    void combine_columns(long, long, const double**, const double*, const double*,
                         double*) noexcept nogil
    void step_along(long, double, const double*, double*) noexcept nogil
    void add_converted_row(long, float, const double*, float*) noexcept nogil
    void add_float_row(long, float, const float*, float*) noexcept nogil
    int count_tighter(const double*, const double*, double, const double*,
                      const double*, double, double) noexcept nogil
    long count_outside(long, const double*, const double*, const double*,
                       double) noexcept nogil
    long count_far(long, const float*, const float*, const float*,
                   float, float) noexcept nogil
    enum:
        BLOCK

cdef extern from "_stairs.h":
    ctypedef struct Stairs:
        Py_ssize_t n
        Py_ssize_t n_kinks
        const double* y
        const double* offset
        const double* level
    double kink_of(const Stairs*, Py_ssize_t, Py_ssize_t) noexcept nogil
    double level_of(const Stairs*, Py_ssize_t, Py_ssize_t) noexcept nogil
    double total_height(const Stairs*, Py_ssize_t) noexcept nogil
    int state_of(const Stairs*, Py_ssize_t, double) noexcept nogil
    void range_of(const Stairs*, Py_ssize_t, int, double*, double*) noexcept nogil
    Stairs make_stairs(Py_ssize_t, Py_ssize_t, const double*, const double*,
                       const double*) noexcept nogil

cdef double FAR = 1e300
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
# Samples checked at a time in single precision: the products stay in the cache.
cdef enum:
    CHUNK = 2048
# Slots added at a time: enough for BLAS-3, few enough to compute only half of S.
cdef Py_ssize_t SLOTS_AT_ONCE = 96
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
    Py_ssize_t ld           # row length of T and KN
    Py_ssize_t m            # free samples of the full solution: the first m slots
    const Py_ssize_t* row   # (k,) the sample of each slot
    const double* T         # (k, ld) column j of the tableau in row j
    const double* KN        # (k, ld) kernel values between slots
    const double* x0        # (ld,) start values
    const double* low0
    const double* high0
    const double* on0
    const double* beta0
    const double* f0
    const int* state0       # (k,)
    const double* probe     # (ld,) random signs
    const double* K_probe   # (ld,) KN @ probe
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


cdef const double* load_column(Walk* w, Py_ssize_t s) noexcept nogil:
    """Column of slot s before any pivot; NULL if there is no place for it."""
    cdef Py_ssize_t i
    cdef double* column
    cdef const double* row = w.KN + s * w.ld
    cdef const double* base
    cdef double shift
    if w.base < 0:
        return w.T + s * w.ld
    if w.n_scratch >= MAX_FROM_EMPTY:
        return NULL
    column = w.scratch + w.n_scratch * w.ld
    w.n_scratch += 1
    base = w.KN + w.base * w.ld
    shift = base[w.base] - row[w.base]
    for i in range(w.width):
        column[i] = 1.0 if s == w.base else row[i] - base[i] + shift
    for i in range(w.k, w.width):
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
        if w.share[a] != 0.0 and w.slot[a] >= 0:
            row = w.KN + w.slot[a] * w.ld
            for i in range(w.k):
                w.fade[i] -= w.share[a] * row[i]
        elif w.share[a] != 0.0:
            row = w.K + w.left[a] * w.n
            for i in range(w.k):
                w.fade[i] -= w.share[a] * row[w.row[i]]


cdef void start_from(Walk* w, Py_ssize_t s) noexcept nogil:
    """M := {s}: a new tableau replaces the shared one and all pivots."""
    cdef Py_ssize_t i, r = w.left[0]
    cdef const double* base = w.KN + s * w.ld
    cdef double shift
    w.base = s
    w.n_pivots = w.n_scratch = 0
    add_up_fading(w)
    shift = -w.fading * base[s] - w.fade[s]
    for i in range(w.k):
        w.drive[i] = w.fade[i] + w.fading * base[i] + shift
    w.drive[s] = w.fading
    if w.n_left == 1:
        w.own_drive = -w.share[0] * (w.K[r * w.n + r] + base[s]) - 2.0 * w.fade[s]


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


cdef int start_state(
    const Stairs* stairs, Py_ssize_t i, double beta, double f, bint free,
) noexcept nogil:
    """State of sample i: the parity by whether it is free, the rest by beta and f."""
    cdef int state = state_of(stairs, i, beta), j = state // 2
    if free and state % 2 == 0:
        # Free with beta on a level: the kink that is nearer to f.
        if j == stairs.n_kinks:
            return state - 1
        if j == 0 or fabs(f - kink_of(stairs, i, j)) < fabs(f - kink_of(stairs, i, j - 1)):
            return state + 1
        return state - 1
    if not free and state % 2 == 1:
        return state - 1 if level_of(stairs, i, j) - beta < beta - level_of(
            stairs, i, j + 1) else state + 1
    return state


cdef double add_ones(
    Py_ssize_t m, double* B, double total, const double* ones, double root, bint intercept,
) noexcept nogil:
    """B := (K_.M + c) P + d P 1 / root, given the first term; return d."""
    cdef Py_ssize_t j
    cdef double d = total
    if not intercept:
        return 0.0
    for j in range(m):
        d -= B[j]
    d /= root
    for j in range(m):
        B[j] += d * ones[j]
    return d


# Memory of earlier tableaux: the first touch of a page costs more than the arithmetic on
# it. At most POOL_SIZE doubles are kept.
cdef list pool = []
cdef Py_ssize_t POOL_SIZE = 2**22


cdef borrow(list loans, shape):
    """An array of doubles from the pool; loans remembers it for give_back."""
    cdef Py_ssize_t size = int(np.prod(shape)), k
    for k in range(len(pool)):
        if size <= pool[k].size <= 4 * size + 1024:
            array = pool.pop(k)
            break
    else:
        array = np.empty(size)
    loans.append(array)
    return array[:size].reshape(shape)


cdef give_back(list loans):
    """Return arrays to the pool."""
    kept = sum([array.size for array in pool])
    for array in loans:
        kept += array.size
        if kept <= POOL_SIZE and len(pool) < 64:
            pool.append(array)


cdef enlarged(old, shape):
    """A copy of an array with more rows and columns."""
    new = np.empty(shape, np.asarray(old).dtype)
    where = tuple(slice(min(a, b)) for a, b in zip(new.shape, old.shape, strict=True))
    new[where] = np.asarray(old)[where]
    return new


cdef class Space


cdef class Tableau:
    """The tableau of a full solution on its slots, and the walks on it.

    The first slots are the free samples; extend adds others. With P = (K_MM + c 11')^-1
    and L its Cholesky factor, Y = (K_.M + c) L^-T and d = (1 - (K_.M + c) P 1) / root,
    S = K + c - Y Y' + d d'; c = d = 0 without an intercept.
    """

    cdef const double[:, ::1] K, levels
    cdef const double[::1] y, offsets, beta, f, signs
    cdef Stairs stairs
    cdef bint intercept
    cdef double c, root, scale, top, unit, tol, probe_sum, probe_f
    cdef readonly Py_ssize_t n_free, n_slots
    cdef Py_ssize_t capacity, n_rows
    cdef double[:, ::1] inverse      # (m, m) L^-1
    cdef double[::1] ones            # (m,) P 1 / root, root = sqrt(1'P 1)
    cdef Py_ssize_t[::1] row         # (capacity,) sample of each slot
    cdef Py_ssize_t[::1] slot        # (n,) slot of each sample, or -1
    cdef readonly double[:, ::1] T   # (capacity, ld)
    cdef double[:, ::1] KN           # (capacity, ld)
    cdef double[:, ::1] Y            # (capacity - m, m)
    cdef double[::1] d               # (capacity,)
    cdef double[:, ::1] start        # (8, ld): x, low, high, on, beta, f, probe, K probe
    cdef int[::1] state              # (capacity,)
    cdef float[:, ::1] K_rows        # (capacity, n) rows of K of the slots
    cdef float[:, ::1] room          # (2, n) ends of the range of f minus f
    cdef bint in_order               # whether slot s is sample s
    cdef list loans

    def __del__(self):
        """Keep the memory for the next tableau."""
        if self.loans is not None:
            give_back(self.loans)

    def __init__(self, K, y, offsets, levels, beta, f, free, signs, bint intercept):
        """Factor the kernel on the free samples; raise LinAlgError if it is singular."""
        cdef Py_ssize_t n = y.shape[0]
        self.K, self.levels = K, levels
        self.y, self.offsets, self.beta, self.f, self.signs = y, offsets, beta, f, signs
        self.stairs = make_stairs(
            n, offsets.shape[0], &self.y[0], &self.offsets[0], &self.levels[0, 0])
        self.intercept = intercept
        diagonal = K.diagonal()
        size = float(np.abs(beta).sum())
        self.scale = float(diagonal.mean()) or 1.0
        self.top = float(diagonal.max())
        self.unit = 4.0 * size
        # A few SLACK plus rounding. It cannot be larger: if points are nearly dependent, an
        # error of f at these moves f elsewhere a million times as far.
        self.tol = 4.0 * SLACK + 2e-15 * self.scale * size
        self.c = self.scale if intercept else 0.0
        self.root = 1.0
        self.n_free = self.n_slots = self.capacity = self.n_rows = 0
        self.loans = []
        self.in_order = True
        self.slot = np.full(n, -1, dtype=np.intp)
        self.inverse, self.ones, self.d = np.zeros((1, 1)), np.zeros(1), np.empty(0)
        self.T = self.KN = self.Y = self.start = np.empty((0, 0))
        self.row, self.state = np.empty(0, np.intp), np.empty(0, np.intc)
        self.K_rows = np.empty((0, 0), np.float32)
        members = np.flatnonzero(free)
        self._reserve(members.size)
        self._add(members, True)
        if members.size and not self._factor():
            raise np.linalg.LinAlgError("the bordered kernel on the margin is singular")

    @property
    def rows(self):
        """The sample of each slot."""
        return np.asarray(self.row)[: self.n_slots]

    def _reserve(self, Py_ssize_t slots):
        """Make room for a number of slots, and for more to come; keep what is there."""
        cdef Py_ssize_t n = self.y.shape[0], size, ld, k
        cdef double[:, ::1] T, KN
        if slots <= self.capacity and self.capacity > 0:
            return
        self.capacity = size = n if slots == n else min(n, slots + max(256, slots // 2))
        ld = (size // BLOCK + 1) * BLOCK
        ld += BLOCK * (ld % 64 == 0)  # rows 64 doubles apart share cache sets
        T, KN, k = self.T, self.KN, self.n_slots
        self.T, self.KN = borrow(self.loans, (size, ld)), borrow(self.loans, (size, ld))
        np.asarray(self.T)[:k, :k] = np.asarray(T)[:k, :k]
        np.asarray(self.KN)[:k, :k] = np.asarray(KN)[:k, :k]
        self.Y = enlarged(self.Y, (size - self.n_free, self.n_free))
        self.start, self.d = enlarged(self.start, (8, ld)), enlarged(self.d, (size,))
        self.row, self.state = enlarged(self.row, (size,)), enlarged(self.state, (size,))
        self.K_rows = enlarged(self.K_rows, (size, n))

    def _add(self, const Py_ssize_t[::1] rows, bint free):
        """Give samples slots, and write their start values."""
        cdef Py_ssize_t a, s, i, ld = self.start.shape[1]
        for a in range(rows.shape[0]):
            i, s = rows[a], self.n_slots + a
            self.row[s] = i
            self.slot[i] = s
            self.in_order = self.in_order and i == s
            self.state[s] = start_state(&self.stairs, i, self.beta[i], self.f[i], free)
            self.start[0, s] = self.beta[i] if free else self.f[i]
            range_of(&self.stairs, i, self.state[s], &self.start[1, s], &self.start[2, s])
            self.start[3, s] = 1.0 if free else 0.0
            self.start[4, s] = self.beta[i]
            self.start[5, s] = self.f[i]
            self.start[6, s] = self.signs[i]
        self.n_slots += rows.shape[0]
        if free:
            self.n_free = self.n_slots
            self.Y = np.empty((self.capacity - self.n_free, self.n_free))
        for s in range(self.n_slots, ld):
            self.start[1, s] = -FAR
            self.start[2, s] = FAR
            self.start[0, s] = self.start[3, s] = self.start[6, s] = 0.0

    def _factor(self):
        """Write A, L^-1 and P 1; return whether the matrix is positive definite."""
        cdef Py_ssize_t m = self.n_free, a, b
        cdef int order = <int>m, info = 0, ld = <int>self.T.shape[1]
        cdef double total = 0.0
        self.inverse, self.ones = np.zeros((m, m)), np.zeros(m)
        with nogil:
            for a in range(m):
                for b in range(a + 1):
                    self.KN[a, b] = self.KN[b, a] = self.K[self.row[a], self.row[b]]
                    self.inverse[a, b] = self.KN[a, b] + self.c
            # A row-major lower triangle is an upper one in Fortran: L, then L^-1.
            dpotrf(b"U", &order, &self.inverse[0, 0], &order, &info)
            if info == 0:
                dtrtri(b"U", b"N", &order, &self.inverse[0, 0], &order, &info)
        if info != 0:
            return False
        with nogil:
            for a in range(m):
                memcpy(&self.T[a, 0], &self.inverse[a, 0], (a + 1) * sizeof(double))
            dlauum(b"U", &order, &self.T[0, 0], &ld, &info)
            for a in range(m):
                for b in range(a):
                    self.T[b, a] = self.T[a, b]
            if self.intercept:
                for a in range(m):
                    for b in range(m):
                        self.ones[a] += self.T[a, b]
                    total += self.ones[a]
                self.root = sqrt(total)
                for a in range(m):
                    self.ones[a] /= self.root
                for a in range(m):
                    for b in range(m):
                        self.T[a, b] -= self.ones[a] * self.ones[b]
        return True

    def extend(self, rows):
        """Add samples to the slots; about 2 |M|^2 + k |M| flops each."""
        cdef Py_ssize_t first = self.n_slots, k = first + len(rows), a, b, n = self.y.shape[0]
        cdef Py_ssize_t ld, width
        cdef int order = <int>k, inc = 1, ld_
        cdef double one = 1.0, zero = 0.0
        self._reserve(k)
        self._add(np.ascontiguousarray(rows, dtype=np.intp), False)
        ld = self.T.shape[1]
        ld_ = <int>ld
        work = np.empty((SLOTS_AT_ONCE, max(self.n_free, 1)))
        for a in range(first, k, SLOTS_AT_ONCE):
            self._fill(a, min(a + SLOTS_AT_ONCE, k), work)
        width = (k + BLOCK - 1) // BLOCK * BLOCK
        for a in range(k):
            for b in range(k, width):
                self.T[a, b] = 0.0
        # K probe = KN @ probe
        dgemv(b"T", &order, &order, &one, &self.KN[0, 0], &ld_, &self.start[6, 0], &inc,
              &zero, &self.start[7, 0], &inc)
        self.probe_sum = self.probe_f = 0.0
        for a in range(k):
            self.probe_sum += self.start[6, a]
            self.probe_f += self.start[6, a] * self.start[5, a]
        if k < n:
            self._store_rows()
            self._find_room()

    def _store_rows(self):
        """Convert the rows of K of new slots to single precision."""
        new = slice(self.n_rows, self.n_slots)
        np.asarray(self.K_rows)[new] = np.asarray(self.K)[self.rows[new]]
        self.n_rows = self.n_slots

    def first_moves(self, pilots):
        """Moves of f of all samples if the first segments of some walks were complete."""
        cdef Py_ssize_t m = self.n_free
        K, members, slots = np.asarray(self.K), self.rows, np.asarray(self.slot)[pilots]
        beta = np.asarray(self.beta)[pilots]
        moves = -beta[:, None] * K[pilots]
        if m == 0:
            return moves - moves.mean(axis=1, keepdims=True) * self.intercept
        A, inside = np.asarray(self.T)[:m, :m], slots >= 0
        B = K[np.ix_(pilots, members)] @ A + np.asarray(self.ones) / self.root
        B *= beta[:, None]
        own = slots[inside]
        A_own = np.maximum(A[own, own], 1e-300)  # 0 if it is the only free sample
        B[inside] = -(beta[inside] / A_own)[:, None] * A[own]
        moves[inside] = 0.0
        self._store_rows()
        moves = moves.astype(np.float32)
        moves += B.astype(np.float32) @ np.asarray(self.K_rows)[:m]
        if self.intercept:  # f of the free samples does not move
            anchor = np.where(pilots == members[0], members[m - 1], members[0])
            moves -= moves[np.arange(anchor.size), anchor][:, None]
        return moves

    def _find_room(self):
        """Write how far f of the samples without a slot may move, in single precision."""
        cdef Py_ssize_t i
        cdef double low, high
        self.room = np.empty((2, self.y.shape[0]), np.float32)
        for i in range(self.y.shape[0]):
            low, high = -INFINITY, INFINITY
            if self.slot[i] < 0:
                range_of(&self.stairs, i, start_state(
                    &self.stairs, i, self.beta[i], self.f[i], False), &low, &high)
                low -= self.f[i]
                high -= self.f[i]
            self.room[0, i] = <float>low if low > -1e30 else -INFINITY
            self.room[1, i] = <float>high if high < 1e30 else INFINITY

    cdef void _fill(self, Py_ssize_t first, Py_ssize_t stop, double[:, ::1] B):
        """Write the rows and columns of T and KN of the slots from first to stop."""
        cdef Py_ssize_t m = self.n_free, a, b, j
        cdef int order = <int>m, count = <int>(stop - first), others = <int>(stop - m)
        cdef int ld = <int>self.T.shape[1]
        cdef double one = 1.0, minus = -1.0, d
        cdef const double* row
        with nogil:
            for a in range(first, stop):
                row = &self.K[self.row[a], 0]
                if self.in_order:
                    memcpy(&self.KN[a, 0], row, stop * sizeof(double))
                    continue
                for b in range(stop):
                    self.KN[a, b] = row[self.row[b]]
            for b in range(first):
                for a in range(first, stop):
                    self.KN[b, a] = self.KN[a, b]
            if m == 0 and self.intercept:
                return
            if m == 0:
                for a in range(first, stop):
                    memcpy(&self.T[a, 0], &self.KN[a, 0], stop * sizeof(double))
                for b in range(first):
                    for a in range(first, stop):
                        self.T[b, a] = self.KN[b, a]
                return
            for a in range(first, stop):
                for j in range(m):
                    self.Y[a - m, j] = self.KN[a, j] + self.c
            # Y[first:stop] := Y[first:stop] L^-T;  B = Y[first:stop] L^-1
            dtrmm(b"L", b"U", b"T", b"N", &order, &count, &one, &self.inverse[0, 0], &order,
                  &self.Y[first - m, 0], &order)
            memcpy(&B[0, 0], &self.Y[first - m, 0], count * m * sizeof(double))
            dtrmm(b"L", b"U", b"N", b"N", &order, &count, &one, &self.inverse[0, 0], &order,
                  &B[0, 0], &order)
            for a in range(first, stop):
                self.d[a] = add_ones(m, &B[a - first, 0], 1.0, &self.ones[0], self.root,
                                     self.intercept)
                for j in range(m):
                    self.T[a, j] = -B[a - first, j]
            for j in range(m):
                for a in range(first, stop):
                    self.T[j, a] = B[a - first, j]
            for a in range(first, stop):
                d = self.d[a]
                for b in range(m, stop):
                    self.T[a, b] = self.KN[a, b] + d * self.d[b] + self.c
            # T[first:stop, m:stop] -= Y[first:stop] @ Y[m:stop].T
            dgemm(b"T", b"N", &others, &count, &order, &minus, &self.Y[0, 0], &order,
                  &self.Y[first - m, 0], &order, &one, &self.T[first, m], &ld)
            for b in range(m, first):
                for a in range(first, stop):
                    self.T[b, a] = self.T[a, b]

    def run(
        self,
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
        cdef Space space = Space(self, begin.shape[0] - 1, members.shape[0])
        cdef Walk* w = &space.walk
        cdef Py_ssize_t n_folds = begin.shape[0] - 1, a, s, k = self.n_slots
        cdef double arrived = 0.0, share
        cdef int code
        cdef double* change
        with nogil:
            for a in range(members.shape[0]):
                space.slots[a] = self.slot[members[a]]
            self._multiply(space, members, begin)
            for a in range(n_folds):
                w.left = &members[begin[a]]
                w.slot = &space.slots[begin[a]]
                w.n_left = begin[a + 1] - begin[a]
                begin_walk(w)
                events[a] = 0
                down[a] = up[a] = 0.0
                change = &space.change[a if space.keeps_changes else 0, 0]
                code = leave(w, &self.beta[0], &self.f[0], &arrived)
                if code == DONE:
                    if w.n_on > 0 or not w.intercept:
                        self._drive(space, a)
                        find_rates(w)
                    code = walk(w, labels_only, arrived, &events[a])
                if code == DONE or code == STOPPED:
                    repeat_in_one_step(w)
                    s = find_anchor(w, &share)
                    if code == DONE and w.intercept and share <= AT_LEVEL:
                        intercept_range(w, &down[a], &up[a])
                    if check_end(w, &self.f[0], s, change, &shift[a],
                                 &value[begin[a]]) != DONE:
                        code = FAILED
                    space.size[a] = size_of(w, change, &share)
                    space.kept[a] = w.t / w.t_start if w.t_start > 0.0 else 0.0
                status[a] = code
                if changes.shape[0] > 0:
                    memcpy(&changes[a, 0], change, k * sizeof(double))
                if not space.keeps_changes:
                    clear_changes(w, change)
            if k < self.y.shape[0]:
                self._check_far(space, members, begin, down, up, shift, status, needed)

    cdef void _multiply(
        self, Space space, const Py_ssize_t[::1] members, const Py_ssize_t[::1] begin,
    ) noexcept nogil:
        """Prepare the drive of folds that have samples without slots: one product for all.

        fade holds the sum of (rate of beta_r) K_r over these samples, total that of the
        rates; Y, B and product follow.
        """
        cdef Py_ssize_t a, e, i, r, m = self.n_free, k = self.n_slots, q = 0
        cdef int order = <int>m, others = <int>(k - m), count
        cdef double rate, one = 1.0, minus = -1.0, largest
        cdef const double* row
        for a in range(begin.shape[0] - 1):
            space.outside[a] = -1
            largest = 0.0
            for e in range(begin[a], begin[a + 1]):
                largest = max(largest, fabs(self.beta[members[e]]))
            if m == 0 and self.intercept:
                continue
            for e in range(begin[a], begin[a + 1]):
                r = members[e]
                if self.beta[r] == 0.0 or space.slots[e] >= 0:
                    continue
                if space.outside[a] < 0:
                    space.outside[a] = q
                    memset(&space.faded[q, 0], 0, k * sizeof(double))
                    space.total[q] = 0.0
                    q += 1
                rate = -self.beta[r] / largest
                row = &self.K[r, 0]
                for i in range(k):
                    space.faded[q - 1, i] += rate * row[self.row[i]]
                space.total[q - 1] += rate
                space.own[q - 1] = rate * (row[r] + self.c)
        for a in range(q):
            for i in range(m):
                space.Y[a, i] = space.faded[a, i] + self.c * space.total[a]
        count = <int>q
        if q > 0 and m > 0:
            dtrmm(b"L", b"U", b"T", b"N", &order, &count, &one, &self.inverse[0, 0], &order,
                  &space.Y[0, 0], &order)
            memcpy(&space.B[0, 0], &space.Y[0, 0], q * m * sizeof(double))
            dtrmm(b"L", b"U", b"N", b"N", &order, &count, &one, &self.inverse[0, 0], &order,
                  &space.B[0, 0], &order)
            if others > 0:
                # product = -Y[:q] @ Y_slots.T
                dgemm(b"T", b"N", &others, &count, &order, &minus, &self.Y[0, 0], &order,
                      &space.Y[0, 0], &order, &space.zero, &space.product[0, 0], &others)

    cdef void _drive(self, Space space, Py_ssize_t fold) noexcept nogil:
        """Write the drive of a walk: (rate of beta_r) T_r, summed over the r off M."""
        cdef Walk* w = &space.walk
        cdef Py_ssize_t a, i, s, m = self.n_free, k = self.n_slots, q = space.outside[fold]
        cdef int order = <int>m, width = <int>k, inc = 1
        cdef double rate, d
        memset(w.drive, 0, w.width * sizeof(double))
        w.own_drive = 0.0
        if q >= 0:
            memcpy(w.drive, &space.faded[q, 0], k * sizeof(double))
            w.own_drive = space.own[q]
        if q >= 0 and m > 0:
            d = add_ones(m, &space.B[q, 0], space.total[q], &self.ones[0], self.root,
                         self.intercept)
            for i in range(m):
                w.drive[i] = -space.B[q, i]
            for i in range(m, k):
                w.drive[i] += (space.product[q, i - m] + d * self.d[i]
                               + self.c * space.total[q])
            # S_rr of a single sample, whose rate is 1 or -1
            w.own_drive += space.total[q] * (
                d * d - ddot(&order, &space.Y[q, 0], &inc, &space.Y[q, 0], &inc))
        for a in range(w.n_left):
            s = w.slot[a]
            if w.share[a] != 0.0 and s >= m:
                rate = -w.share[a]
                # drive += rate * T[s]
                daxpy(&width, &rate, &self.T[s, 0], &inc, w.drive, &inc)

    cdef void _check_far(
        self, Space space, const Py_ssize_t[::1] members, const Py_ssize_t[::1] begin,
        const double[::1] down, const double[::1] up, const double[::1] shift,
        signed char[::1] status, unsigned char[::1] needed,
    ) noexcept nogil:
        """Whether f of the samples without a slot stays in its range, by single precision.

        change of f = K_.M (change of beta_M) + the other slots + the left-out samples +
        that of b. Its rounding error is at most margin; a sample within the margin of an
        end counts as outside, so that single precision decides no close case.
        """
        cdef Py_ssize_t chunk, first, a, e, i, r, s, n = self.y.shape[0], m = self.n_free
        cdef Py_ssize_t n_folds = begin.shape[0] - 1, stop, n_terms
        cdef int order = <int>m, count = <int>n_folds, length, ld = <int>n, out = <int>CHUNK
        cdef float one = 1.0, zero = 0.0, margin, lower, upper
        cdef float* g
        for a in range(n_folds):
            for i in range(m):
                space.change32[a, i] = <float>space.change[a, i]
        for chunk in range((n + CHUNK - 1) // CHUNK):
            first = chunk * CHUNK
            stop = min(first + CHUNK, n)
            length = <int>(stop - first)
            if m > 0:
                # moves = change_M @ K_M[:, first:stop]
                sgemm(b"N", b"N", &length, &count, &order, &one, &self.K_rows[0, first], &ld,
                      &space.change32[0, 0], &order, &zero, &space.moves[0, 0], &out)
            for a in range(n_folds):
                if status[a] > STOPPED:
                    continue
                g = &space.moves[a, 0]
                if m == 0:
                    memset(g, 0, length * sizeof(float))
                n_terms = m + 4
                for s in range(m, self.n_slots):
                    if space.change[a, s] != 0.0:
                        add_float_row(length, <float>space.change[a, s],
                                      &self.K_rows[s, first], g)
                        n_terms += 1
                for e in range(begin[a], begin[a + 1]):
                    r = members[e]
                    if space.slots[e] < 0 and self.beta[r] != 0.0:
                        add_converted_row(
                            length, <float>-(self.beta[r] * (1.0 - space.kept[a])),
                            &self.K[r, first], g)
                        n_terms += 1
                margin = <float>(2.2 * n_terms * 2.0**-24 * space.size[a] * self.top + 1e-6
                                 + 2.0**-22 * fabs(shift[a]))
                lower = <float>(shift[a] + down[a]) - margin
                upper = <float>(shift[a] + up[a]) + margin
                if count_far(length, g, &self.room[0, first], &self.room[1, first], lower,
                             upper) == 0:
                    continue
                for i in range(length):
                    if (g[i] + lower < self.room[0, first + i]
                            or g[i] + upper > self.room[1, first + i]):
                        if not is_among(first + i, members, begin[a], begin[a + 1]):
                            needed[first + i] = 1
                            space.failed[a] = 1
        for a in range(n_folds):
            if status[a] <= STOPPED and space.failed[a]:
                status[a] = NOT_NEAR


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
    cdef bint keeps_changes
    cdef double[:, ::1] faded        # (n_folds, k) see _multiply
    cdef double[:, ::1] Y, B         # (n_folds, m)
    cdef double[:, ::1] product      # (n_folds, k - m)
    cdef list loans
    cdef double[::1] share           # (n_members,)
    cdef double[::1] total, own      # (n_folds,) see _multiply
    cdef double[::1] size, kept      # (n_folds,) sum |change|, share of the way left
    cdef float[:, ::1] change32      # (n_folds, m)
    cdef float[:, ::1] moves         # (n_folds, CHUNK)
    cdef unsigned char[::1] failed
    cdef double zero

    def __del__(self):
        give_back(self.loans)

    def __cinit__(self, Tableau tableau, Py_ssize_t n_folds, Py_ssize_t n_members):
        cdef Py_ssize_t ld = tableau.T.shape[1], k = tableau.n_slots, m = tableau.n_free
        cdef Walk* w = &self.walk
        cdef bint has_far = k < tableau.y.shape[0]
        # Folds without samples outside the slots need no product.
        cdef Py_ssize_t n_outside = n_folds if has_far else 0
        self.loans = []
        self.keeps_changes = has_far
        self.rows, self.state = np.zeros((7, ld)), np.zeros(ld, np.intc)
        self.L = borrow(self.loans, (MAX_PIVOTS, MAX_PIVOTS))
        self.T_PP = borrow(self.loans, (MAX_PIVOTS, MAX_PIVOTS))
        self.scratch = borrow(self.loans, (MAX_FROM_EMPTY, ld))
        self.touched, self.flagged = np.empty((2, ld), np.intp)
        self.slots, self.outside = np.empty(n_members, np.intp), np.empty(n_folds, np.intp)
        self.share = np.empty(n_members)
        self.change = borrow(self.loans, (n_folds if has_far else 1, ld))
        self.change[:, :] = 0.0
        self.faded = borrow(self.loans, (n_outside, k))
        self.Y = borrow(self.loans, (n_outside, max(m, 1)))
        self.B = borrow(self.loans, (n_outside, max(m, 1)))
        self.product = borrow(self.loans, (n_outside, max(k - m, 1)))
        self.total, self.own, self.size, self.kept = np.zeros((4, n_folds))
        self.change32 = np.empty((n_outside, max(m, 1)), np.float32)
        self.moves = np.empty((n_outside, CHUNK), np.float32)
        self.failed = np.zeros(n_folds, np.uint8)
        self.zero = 0.0
        w.stairs, w.K, w.n = &tableau.stairs, &tableau.K[0, 0], tableau.y.shape[0]
        w.k, w.m, w.ld = k, m, ld
        w.width = (k + BLOCK - 1) // BLOCK * BLOCK
        w.row, w.state0 = &tableau.row[0], &tableau.state[0]
        w.T, w.KN = &tableau.T[0, 0], &tableau.KN[0, 0]
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
