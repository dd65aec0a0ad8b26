# SPDX-License-Identifier: BSD-3-Clause
"""SMO on the problem without one sample r, until its label is proved (Franc et al. 2008).

    G:  max  y'beta - 1/2 beta'K beta     bounds, beta_r = 0, sum(beta) = 0 with an intercept
    H:  max  y'aux  - 1/2 aux'K'aux       bounds, aux_r  = 0, no equality

H is the dual of the same problem with the extra constraint f(x_r) = 0, with the kernel

    K'_ij = K_ij - K_ir - K_jr + K_rr     with an intercept,
    K'_ij = K_ij - K_ir K_jr / K_rr       without

(the paper prints -K_rr: docs/method/stopping). Let P(b) be the primal value at the weights
of beta with intercept b. If P(b) < H(aux) for some b, the sign of f(x_r) is that of every
optimum: its label is proved (Corollary 1, eq. (14)).

The pair of G is the one that violates the two thresholds most (Keerthi et al. 2001,
modification 2, over all samples); the coefficient of H is the one that gains most.
F = y - K beta and Q = y - K' aux are kept up to date.
"""

from libc.math cimport fabs, sqrt

cdef extern from "_simd.h":
    void step_and_bracket(
        long, double, const double*, const double*, const double*, const double*,
        double*, double*, double*) noexcept nogil

cdef extern from *:
    """
    /* Q -= move * (row - factor * row_r - shift); then the gain of the best step of each
       coefficient within its bounds. Return the largest. */
    WIDEST static double step_and_gains(
        long n, double move, double factor, double shift, const double *restrict row,
        const double *restrict row_r, const double *restrict curvature,
        const double *restrict inverse, const double *restrict lower,
        const double *restrict upper, const double *restrict beta,
        double *restrict Q, double *restrict gain)
    {
        double most = 0.0;
        for (long k = 0; k < n; k++) {
            double q = Q[k] - move * (row[k] - factor * row_r[k] - shift);
            double step = q * inverse[k];
            double least = lower[k] - beta[k], top = upper[k] - beta[k];
            Q[k] = q;
            step = step < least ? least : step;
            step = step > top ? top : step;
            q = step * (q - 0.5 * step * curvature[k]);
            gain[k] = q;
            most = q > most ? q : most;
        }
        return most;
    }

    /* out: primal value, gap, weight of {F < b}, weight of {F <= b}, largest F < b,
       smallest F > b, sum of C (1 + |F - b|), all at the intercept b. */
    WIDEST static void weigh_at(
        long n, double b, const double *restrict y, const double *restrict C,
        const double *restrict F, const double *restrict beta, double *restrict out)
    {
        double loss = 0.0, norm = 0.0, linear = 0.0, below = 0.0, upto = 0.0;
        double lower = -1e300, higher = 1e300, size = 0.0;
        for (long k = 0; k < n; k++) {
            double short_ = y[k] * (F[k] - b), f = F[k];
            loss += C[k] * (short_ > 0.0 ? short_ : 0.0);
            norm += beta[k] * (y[k] - f);
            linear += beta[k] * (f - b);
            size += C[k] * (1.0 + (short_ > 0.0 ? short_ : -short_));
            below += f < b ? C[k] : 0.0;
            upto += f <= b ? C[k] : 0.0;
            f = F[k] < b ? F[k] : -1e300;
            lower = f > lower ? f : lower;
            f = F[k] > b ? F[k] : 1e300;
            higher = f < higher ? f : higher;
        }
        out[0] = 0.5 * norm + loss;
        out[1] = loss - linear;
        out[2] = below;
        out[3] = upto;
        out[4] = lower;
        out[5] = higher;
        out[6] = size;
    }

    /* The largest |F| among the coefficients that can move the way it pulls. */
    WIDEST static double largest_pull(
        long n, const double *restrict F, const double *restrict lower,
        const double *restrict upper, const double *restrict beta)
    {
        double most = 0.0;
        for (long k = 0; k < n; k++) {
            double rise = beta[k] < upper[k] ? F[k] : 0.0;
            double fall = beta[k] > lower[k] ? -F[k] : 0.0;
            most = rise > most ? rise : most;
            most = fall > most ? fall : most;
        }
        return most;
    }
    """
    double step_and_gains(
        long, double, double, double, const double*, const double*, const double*,
        const double*, const double*, const double*, const double*, double*,
        double*) noexcept nogil
    void weigh_at(
        long, double, const double*, const double*, const double*, const double*,
        double*) noexcept nogil
    double largest_pull(
        long, const double*, const double*, const double*, const double*) noexcept nogil

cdef double BARRED = -1e290
# A test costs as much as a few steps. It is made at each of the first steps, then each
# time the number of steps has grown by this share.
cdef Py_ssize_t TESTED_SHARE = 8
# Steps of b towards the minimum of P in one test. Every b is valid, so it need not reach
# the minimum.
cdef int MAX_MOVES_OF_B = 16
# P < H must hold by more than the rounding errors of both sums: relative to P and, if C
# is large and P is not, relative to the terms of P.
cdef double SLACK = 1e-10
cdef double ROUNDING = 1e-13


cpdef enum End:
    EPS_KKT = 0     # optimal within eps
    PROVED = 1      # the label can no longer change
    TOO_LONG = 2    # max_steps, or no step gains anything


cpdef enum Condition:
    NONE = 0        # the standard approach
    AUXILIARY = 1   # P(b) < H(aux)
    BALL = 2        # the interval of the ball of radius sqrt(P - G) excludes 0


cdef struct Ascent:
    # Coordinate ascent, for H, and for G without an intercept.
    Py_ssize_t n
    Py_ssize_t n_steps
    const double* K
    const double* row_r     # NULL: the kernel is K itself
    double K_rr
    bint intercept          # which K' it is
    const double* curvature
    const double* inverse   # 1 / curvature
    const double* lower
    const double* upper
    double* beta
    double* Q
    double* gain            # work
    double best             # largest gain
    double value            # objective at beta
    double move             # last step, which is not in Q yet
    double factor
    double shift
    const double* row


cdef struct FoldProblem:
    Py_ssize_t n
    Py_ssize_t r
    bint intercept
    double positive         # sum of C over y = +1
    double b
    double primal           # P(b)
    double gap              # P(b) - G
    double rounding         # how far both may be off
    const double* y
    const double* C
    const double* beta
    const double* F
    const double* distance


cdef void minimise_over_b(FoldProblem* m) noexcept nogil:
    """Move b downhill from breakpoint to breakpoint of P; update P(b) and its gap.

    The slope of P to the right of b is the weight of {F <= b} minus that of the positive
    class; to the left it is the weight of {F < b} minus the same.
    """
    cdef double out[7]
    cdef int way, last = 0, moves = 0
    while True:
        weigh_at(m.n, m.b, m.y, m.C, m.F, m.beta, out)
        way = 0
        if m.intercept and out[3] < m.positive * (1.0 - 1e-12) and out[5] < 1e300:
            way = 1
        elif m.intercept and out[2] > m.positive * (1.0 + 1e-12) and out[4] > -1e300:
            way = -1
        moves += 1
        if way == 0 or way == -last or moves > MAX_MOVES_OF_B:
            break
        m.b = out[5] if way > 0 else out[4]
        last = way
    m.primal = out[0]
    m.gap = out[1]
    m.rounding = ROUNDING * out[6]


cdef bint ball_excludes_zero(const FoldProblem* m) noexcept nogil:
    """Whether f(x_r) has one sign in the ball around the point (docs/method/stopping).

    The lower end of the interval is the smallest v_i - e_i whose cumulative weight reaches
    that of the positive class. It is above 0 if the weight of {v_i - e_i <= 0} is smaller.
    """
    cdef double radius = sqrt(max(m.gap, 0.0) + m.rounding)
    cdef double g_r = m.y[m.r] - m.F[m.r], v, e, low = 0.0, high = 0.0, total = 0.0
    cdef Py_ssize_t k
    if not m.intercept:
        return fabs(g_r) > radius * m.distance[m.r]
    for k in range(m.n):
        v = m.F[k] + g_r
        e = radius * m.distance[k]
        total += m.C[k]
        if v - e <= 0.0:
            low += m.C[k]
        if v + e < 0.0:
            high += m.C[k]
    return (
        low < m.positive - 1e-12 * total
        or high > m.positive + 1e-12 * total
    )


cdef void refresh(Ascent* a) noexcept nogil:
    """Update Q and the gains by the last step."""
    cdef const double* row_r = a.row if a.row_r == NULL else a.row_r  # factor is 0
    a.best = step_and_gains(
        a.n, a.move, a.factor, a.shift, a.row, row_r, a.curvature, a.inverse, a.lower,
        a.upper, a.beta, a.Q, a.gain)
    a.move = 0.0


cdef bint climb(Ascent* a) noexcept nogil:
    """Take the step of largest gain; return False, without a step, if it is rounding error."""
    cdef Py_ssize_t k = 0
    if a.best <= 1e-14 * fabs(a.value):
        return False
    while k < a.n and a.gain[k] != a.best:
        k += 1
    if k == a.n:
        return False  # overflow
    a.row = a.K + k * a.n
    if a.row_r != NULL:
        # Column k of K' is row - factor * row_r - shift.
        a.factor = 1.0 if a.intercept else a.row_r[k] / a.K_rr
        a.shift = a.row_r[k] - a.K_rr if a.intercept else 0.0
    a.move = within(a.beta[k] + a.Q[k] * a.inverse[k], a.lower[k], a.upper[k])
    a.move -= a.beta[k]
    a.beta[k] = within(a.beta[k] + a.move, a.lower[k], a.upper[k])
    a.value += a.best
    a.n_steps += 1
    return True


cdef inline double within(double value, double lower, double upper) noexcept nogil:
    """Clip to an interval."""
    return min(max(value, lower), upper)


cdef inline double take_pair_step(
    Py_ssize_t i, Py_ssize_t j, double q, double d,
    const double* lower, const double* upper, double* beta,
) noexcept nogil:
    """Move beta_i up and beta_j down by as much as the objective and the bounds allow."""
    cdef double room_i = upper[i] - beta[i], room_j = beta[j] - lower[j]
    cdef double move = min(room_i, room_j)
    if q > 0.0 and d < move * q:
        move = d / q
        beta[i] += move
        beta[j] -= move
    elif room_i <= room_j:
        # i reaches its bound: set it exactly.
        beta[i] = upper[i]
        beta[j] -= move
    else:
        beta[i] += move
        beta[j] = lower[j]
    return move


cdef inline void bar(
    Py_ssize_t k, const double* lower, const double* upper, const double* beta,
    double* up, double* down,
) noexcept nogil:
    """0 for each direction that is open, else a penalty."""
    up[k] = 0.0 if beta[k] < upper[k] else BARRED
    down[k] = 0.0 if beta[k] > lower[k] else BARRED


cdef bint is_proved(FoldProblem* m, int condition, double H) noexcept nogil:
    """Whether the label of r can no longer change."""
    minimise_over_b(m)
    if condition == BALL:
        return ball_excludes_zero(m)
    return m.primal + SLACK * max(1.0, m.primal) + m.rounding < H


def solve_left_out(
    const double[:, ::1] K,         # in, (n, n)
    const double[::1] y,            # in, (n,)
    const double[::1] C,            # in, (n,) 0 at r
    const double[::1] lower,        # in, (n,) 0 at r
    const double[::1] upper,        # in, (n,) 0 at r
    const double[:, ::1] curvature,    # in, (2, n) K_ii > 0, and 1 / K_ii
    const double[:, ::1] curvature_aux,  # in, (2, n) K'_ii > 0, and 1 / K'_ii
    const double[::1] distance,     # in, (n,) to r; without intercept sqrt(K_rr) at r
    Py_ssize_t r,
    bint intercept,
    int condition,
    double eps,
    Py_ssize_t max_steps,
    double b,                       # in, intercept to start the test from
    double H,                       # in, H(aux)
    double[::1] beta,               # in/out, (n,) feasible
    double[::1] F,                  # in/out, (n,) y - K beta
    double[::1] aux,                # in/out, (n,) feasible
    double[::1] Q,                  # in/out, (n,) y - K' aux
    double[:, ::1] work,            # work, (3, n)
):
    """Return (how it ended, steps on G, steps on H)."""
    cdef Py_ssize_t n = beta.shape[0], step = 0, due = 0, k, i = 0, j = 0
    cdef double F_max = 0.0, F_min = 0.0, violation, move = 0.0
    cdef int end
    cdef const double* row_i = &K[r, 0]
    cdef const double* row_j = &K[r, 0]
    cdef double* up = &work[0, 0]
    cdef double* down = &work[1, 0]
    cdef FoldProblem m = FoldProblem(
        n, r, intercept, 0.0, b if intercept else 0.0, 0.0, 0.0, 0.0,
        &y[0], &C[0], &beta[0], &F[0], &distance[0])
    cdef Ascent auxiliary = Ascent(
        n, 0, &K[0, 0], &K[r, 0], K[r, r], intercept, &curvature_aux[0, 0],
        &curvature_aux[1, 0], &lower[0], &upper[0], &aux[0], &Q[0], &work[2, 0],
        0.0, H, 0.0, 0.0, 0.0, &K[r, 0])
    cdef Ascent alone = Ascent(
        n, 0, &K[0, 0], NULL, 0.0, False, &curvature[0, 0], &curvature[1, 0],
        &lower[0], &upper[0], &beta[0], &F[0], &work[0, 0],
        0.0, 0.0, 0.0, 0.0, 0.0, &K[r, 0])
    with nogil:
        for k in range(n):
            if y[k] > 0.0:
                m.positive += C[k]
            if intercept:
                bar(k, &lower[0], &upper[0], &beta[0], up, down)
        while True:
            if intercept:
                step_and_bracket(n, move, row_i, row_j, up, down, &F[0], &F_max, &F_min)
                violation = 0.5 * (F_max - F_min)
            else:
                refresh(&alone)
                violation = 0.0
                if alone.best > 0.0:
                    violation = largest_pull(n, &F[0], &lower[0], &upper[0], &beta[0])
            if condition == AUXILIARY:
                refresh(&auxiliary)
                climb(&auxiliary)
            if condition != NONE and (step >= due or violation <= eps):
                due = step + 1 + step // TESTED_SHARE
                if is_proved(&m, condition, auxiliary.value):
                    end = PROVED
                    break
            if violation <= eps or step >= max_steps:
                end = EPS_KKT if violation <= eps else TOO_LONG
                break
            if intercept:
                # The pair that violates the two thresholds most.
                i = 0
                while i < n and F[i] + up[i] != F_max:
                    i += 1
                j = 0
                while j < n and F[j] - down[j] != F_min:
                    j += 1
                if i == n or j == n:
                    end = TOO_LONG  # F has overflowed
                    break
                row_i = &K[i, 0]
                row_j = &K[j, 0]
                move = take_pair_step(
                    i, j, row_i[i] + row_j[j] - 2.0 * row_i[j], F_max - F_min,
                    &lower[0], &upper[0], &beta[0])
                bar(i, &lower[0], &upper[0], &beta[0], up, down)
                bar(j, &lower[0], &upper[0], &beta[0], up, down)
            elif not climb(&alone):
                end = TOO_LONG
                break
            step += 1
    return end, step, auxiliary.n_steps
