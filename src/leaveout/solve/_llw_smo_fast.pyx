# SPDX-License-Identifier: BSD-3-Clause
"""Sequential minimal optimisation for the dual of Lee, Lin & Wahba's machine.

    max  1/(Q-1) sum(a) - 1/2 a'(P x K) a    s.t.  0 <= a <= upper,  equal column sums

with P = I - 11'/Q. The gradient G = 1/(Q-1) + K W, W = mean over columns - a, is kept up
to date. Let u_k be the largest G in column k of an entry that can rise, d_k the smallest
of one that can fall. a is optimal iff there is a b with u_k <= -b_k <= d_k and sum 0:

    u_k <= d_k for all k,     sum_k u_k <= 0 <= sum_k d_k

Every feasible direction is a sum of those that break one of these: a pair in a column,
one rising as the other falls, or one entry of each column, all rising or all falling.
"""

import numpy as np

cdef extern from "_smo_step.h":
    void shift_and_bracket(
        long, const double*, const double*, const double*, const double*,
        double*, double*, double*) noexcept nogil
    double pair_gains(
        long, double, double, const double*, const double*, const double*,
        const double*, double*) noexcept nogil

# Added to the G of an entry that cannot move that way: it is then never the extreme one.
cdef double BARRED = -1e290


cdef inline void mark(
    const double* alpha, const double* upper, double* up, double* down, Py_ssize_t e
) noexcept nogil:
    """Say where entry e can move."""
    up[e] = 0.0 if alpha[e] < upper[e] else BARRED
    down[e] = 0.0 if alpha[e] > 0.0 else BARRED


cdef inline Py_ssize_t find(
    const double* G, const double* bar, double sign, double value, Py_ssize_t n
) noexcept nogil:
    """First index with this G + sign * bar; -1 if G has overflowed."""
    cdef Py_ssize_t i
    for i in range(n):
        if G[i] + sign * bar[i] == value:
            return i
    return -1


def llw_smo(
    const double[:, ::1] K,        # in, (n, n)
    const double[::1] diag,        # in, (n,)
    const double[:, ::1] upper,    # in, (Q, n) finite; 0 where there is no entry
    double[:, ::1] alpha,          # in/out, (Q, n) feasible
    double[:, ::1] G,              # in/out, (Q, n)
    double tol,
    Py_ssize_t max_steps,
):
    """Move pairs and tuples until no condition is off by more than tol.

    Return (steps, violation).
    """
    cdef Py_ssize_t Q = alpha.shape[0], n = alpha.shape[1], step = 0
    cdef Py_ssize_t i, j, k, l, widest
    cdef double violation, rise, fall, wide, best, move, slope, bend, sign
    cdef double[:, ::1] work = np.zeros((3 * Q + 3, n))
    cdef double[::1] most = np.empty(Q), least = np.empty(Q)
    cdef Py_ssize_t[::1] chosen = np.empty(Q, dtype=np.intp)
    cdef double* up = &work[0, 0]
    cdef double* down = &work[Q, 0]
    cdef double* own = &work[2 * Q, 0]
    cdef double* shared = &work[3 * Q, 0]
    cdef double* gain = &work[3 * Q + 1, 0]
    cdef double* nothing = &work[3 * Q + 2, 0]
    cdef const double* row_i
    cdef const double* row_j
    cdef Py_ssize_t moved = -1  # the column of the pair that moved; Q after a tuple
    with nogil:
        for k in range(Q * n):
            mark(&alpha[0, 0], &upper[0, 0], up, down, k)
        while True:
            for k in range(Q):
                shift_and_bracket(
                    n, shared, own + k * n if moved == k or moved == Q else nothing,
                    up + k * n, down + k * n, &G[k, 0], &most[k], &least[k])
            rise = fall = 0.0
            wide = 0.0
            widest = 0
            for k in range(Q):
                rise += most[k]
                fall -= least[k]
                if most[k] - least[k] > wide:
                    wide = most[k] - least[k]
                    widest = k
            violation = max(wide, rise, fall)
            if violation <= tol or step >= max_steps:
                break
            if wide * wide * Q >= 2.0 * max(rise, fall) * max(rise, fall):
                k = widest
                i = find(&G[k, 0], up + k * n, 1.0, most[k], n)
                if i < 0:
                    break
                row_i = &K[i, 0]
                best = pair_gains(
                    n, most[k], diag[i], row_i, &diag[0], &G[k, 0], down + k * n, gain)
                j = find(gain, nothing, 0.0, best, n)
                if j < 0:
                    break
                row_j = &K[j, 0]
                bend = (diag[i] + diag[j] - 2.0 * row_i[j]) * (1.0 - 1.0 / Q)
                slope = most[k] - G[k, j]
                move = min(upper[k, i] - alpha[k, i], alpha[k, j])
                if bend > 0.0 and slope < move * bend:
                    move = slope / bend
                    alpha[k, i] += move
                    alpha[k, j] -= move
                elif upper[k, i] - alpha[k, i] <= alpha[k, j]:
                    alpha[k, j] -= move
                    alpha[k, i] = upper[k, i]
                else:
                    alpha[k, i] += move
                    alpha[k, j] = 0.0
                mark(&alpha[0, 0], &upper[0, 0], up, down, k * n + i)
                mark(&alpha[0, 0], &upper[0, 0], up, down, k * n + j)
                for l in range(n):
                    own[k * n + l] = move * (row_i[l] - row_j[l])
                    shared[l] = own[k * n + l] / Q
                moved = k
            else:
                sign = 1.0 if rise >= fall else -1.0
                slope = max(rise, fall)
                move = 1e300
                bend = 0.0
                for k in range(Q):
                    if sign > 0.0:
                        i = find(&G[k, 0], up + k * n, 1.0, most[k], n)
                    else:
                        i = find(&G[k, 0], down + k * n, -1.0, least[k], n)
                    chosen[k] = i
                    if i < 0:
                        break
                    move = min(move, upper[k, i] - alpha[k, i] if sign > 0.0 else alpha[k, i])
                    bend += diag[i]
                if chosen[k] < 0:
                    break
                for k in range(Q):
                    for l in range(Q):
                        bend -= K[chosen[k], chosen[l]] / Q
                if bend > 0.0 and slope < move * bend:
                    move = slope / bend
                for l in range(n):
                    shared[l] = 0.0
                for k in range(Q):
                    i = chosen[k]
                    alpha[k, i] = min(max(alpha[k, i] + sign * move, 0.0), upper[k, i])
                    mark(&alpha[0, 0], &upper[0, 0], up, down, k * n + i)
                    for l in range(n):
                        own[k * n + l] = sign * move * K[i, l]
                        shared[l] += own[k * n + l] / Q
                moved = Q
            step += 1
    return step, violation
