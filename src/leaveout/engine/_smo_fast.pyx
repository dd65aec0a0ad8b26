# SPDX-License-Identifier: BSD-3-Clause
"""Sequential minimal optimisation for the dual of an SVM, in signed coefficients.

    max  sum_i kappa_i(beta_i) - 1/2 beta' K beta    s.t.  sum(beta) = 0

(the equality only with an intercept). kappa_i is concave and piecewise linear: its slope is
kink j of sample i, y_i + offset_j, where beta_i is between its levels j + 1 and j
(_stairs.h); for the hinge loss it is y_i beta_i, with beta_i in [0, C_i] y_i.
F = y - K beta is kept up to date. Let up_i be the offset of the kink at which beta_i can
rise, and down_i minus that at which it can fall, or a large negative number if it cannot.
beta is optimal iff max(F + up) <= min(F - down).

The working set: the index of largest F + up, then the one of largest gain of the objective
(Fan, Chen & Lin 2005, "WSS 2", the rule of LIBSVM).
"""

import numpy as np

from libc.math cimport fabs

cdef extern from "_simd.h":
    void step_and_bracket(
        long, double, const double*, const double*, const double*, const double*,
        double*, double*, double*) noexcept nogil
    double pair_gains(
        long, double, double, const double*, const double*, const double*,
        const double*, double*) noexcept nogil

from leaveout.engine._stairs cimport (
    Stairs, level_of, make_stairs, nearest_level, state_of, total_height,
)

# Added to the F of a point that cannot move in that direction, so it is never the extreme.
cdef double BARRED = -1e290


cdef inline double rise(const Stairs* s, Py_ssize_t i, double beta, double* up) noexcept nogil:
    """How far beta_i can rise to the next level; output: up_i."""
    cdef int state = state_of(s, i, beta), j = (state - 1) // 2
    up[0] = BARRED
    if state == 0 or total_height(s, i) == 0.0:
        return 0.0
    up[0] = s.offset[j]
    return level_of(s, i, j) - beta


cdef inline double fall(const Stairs* s, Py_ssize_t i, double beta, double* down) noexcept nogil:
    """How far beta_i can fall to the next level; output: down_i."""
    cdef int state = state_of(s, i, beta), j = state // 2
    down[0] = BARRED
    if j == s.n_kinks or total_height(s, i) == 0.0:
        return 0.0
    down[0] = -s.offset[j]
    return beta - level_of(s, i, j + 1)


cdef Py_ssize_t take_pair_steps(
    const Stairs* s,
    const double* K,        # (n, n)
    const double* diag,     # (n,)
    double* beta,           # in/out, (n,) feasible
    double* F,              # in/out, (n,) y - K beta
    double* work,           # (3, n)
    double tol,
    Py_ssize_t max_steps,
    double* violation,      # out
) noexcept nogil:
    """Take pair steps until the violation is at most tol; return their number."""
    cdef Py_ssize_t n = s.n, step = 0, i, j, k
    cdef double F_max, F_min, best, d, q, move = 0.0, room_i, room_j
    cdef double* up = work
    cdef double* down = work + n
    cdef double* gain = work + 2 * n
    cdef const double* row_i = K
    cdef const double* row_j = K
    for k in range(n):
        rise(s, k, beta[k], &up[k])
        fall(s, k, beta[k], &down[k])
    while True:
        # F_max = max(F + up);  F_min = min(F - down)
        step_and_bracket(n, move, row_i, row_j, up, down, F, &F_max, &F_min)
        if F_max - F_min <= tol or step >= max_steps:
            break
        i = 0
        while i < n and F[i] + up[i] != F_max:
            i += 1
        if i == n:
            break  # F has overflowed: no point has the largest value
        row_i = K + i * n
        best = pair_gains(n, F_max, diag[i], row_i, diag, F, down, gain)
        j = 0
        while j < n and gain[j] != best:
            j += 1
        if j == n:
            break
        row_j = K + j * n
        q = diag[i] + diag[j] - 2.0 * row_i[j]
        d = F_max - (F[j] - down[j])
        room_i = rise(s, i, beta[i], &up[i])
        room_j = fall(s, j, beta[j], &down[j])
        move = min(room_i, room_j)
        if q > 0.0 and d < move * q:
            move = d / q
            room_i = room_j = 2.0 * move
        beta[i] += move
        beta[j] -= move
        # What reaches a level is set exactly.
        if room_i <= move:
            beta[i] = nearest_level(s, i, beta[i])
        if room_j <= move:
            beta[j] = nearest_level(s, j, beta[j])
        rise(s, i, beta[i], &up[i])
        fall(s, i, beta[i], &down[i])
        rise(s, j, beta[j], &up[j])
        fall(s, j, beta[j], &down[j])
        step += 1
    violation[0] = F_max - F_min
    return step


def smo_with_intercept(
    const double[:, ::1] K,        # in, (n, n)
    const double[::1] diag,        # in, (n,)
    const double[::1] y,           # in, (n,)
    const double[::1] offsets,     # in, (n_kinks,)
    const double[:, ::1] levels,   # in, (n, n_kinks + 1)
    double[::1] beta,              # in/out, (n,) feasible
    double[::1] F,                 # in/out, (n,) y - K beta
    double tol,
    Py_ssize_t max_steps,
):
    """Take pair steps until the violation is at most tol. Return (steps, violation)."""
    cdef Py_ssize_t steps
    cdef double violation
    cdef Stairs stairs = make_stairs(
        y.shape[0], offsets.shape[0], &y[0], &offsets[0], &levels[0, 0])
    cdef double[:, ::1] work = np.empty((3, beta.shape[0]))
    with nogil:
        steps = take_pair_steps(&stairs, &K[0, 0], &diag[0], &beta[0], &F[0], &work[0, 0],
                                tol, max_steps, &violation)
    return steps, violation


def smo_without_intercept(
    const double[:, ::1] K,        # in, (n, n)
    const double[::1] diag,        # in, (n,)
    const double[::1] y,           # in, (n,)
    const double[::1] offsets,     # in, (n_kinks,)
    const double[:, ::1] levels,   # in, (n, n_kinks + 1)
    double[::1] beta,              # in/out, (n,) feasible
    double[::1] F,                 # in/out, (n,) y - K beta
    double tol,
    Py_ssize_t max_steps,
):
    """Take coordinate steps of largest gain until the violation is at most tol.

    Return (steps, violation).
    """
    cdef Py_ssize_t n = beta.shape[0], step = 0, i, k
    cdef double gain, best, q, move, violation, d, slope, room
    cdef Stairs stairs = make_stairs(
        y.shape[0], offsets.shape[0], &y[0], &offsets[0], &levels[0, 0])
    cdef const Stairs* s = &stairs
    cdef double[:, ::1] work = np.empty((2, n))
    cdef const double* row
    with nogil:
        for k in range(n):
            rise(s, k, beta[k], &work[0, k])
            fall(s, k, beta[k], &work[1, k])
        while True:
            i = -1
            violation = best = slope = 0.0
            for k in range(n):
                d = max(F[k] + work[0, k], 0.0) + min(F[k] - work[1, k], 0.0)
                q = diag[k] if diag[k] > 1e-12 else 1e-12
                gain = d * d / q
                violation = max(violation, fabs(d))
                if gain > best:
                    best = gain
                    slope = d
                    i = k
            if violation <= tol or step >= max_steps or i < 0:
                break
            q = diag[i] if diag[i] > 1e-300 else 1e-300
            move = slope / q
            if move > 0.0:
                room = rise(s, i, beta[i], &work[0, i])
            else:
                room = fall(s, i, beta[i], &work[1, i])
            if fabs(move) < room:
                beta[i] += move
            else:
                move = (room if move > 0.0 else -room)
                beta[i] = nearest_level(s, i, beta[i] + move)
            rise(s, i, beta[i], &work[0, i])
            fall(s, i, beta[i], &work[1, i])
            row = &K[i, 0]
            for k in range(n):
                F[k] -= move * row[k]
            step += 1
    return step, violation
