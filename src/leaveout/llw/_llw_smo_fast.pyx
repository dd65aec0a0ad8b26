# SPDX-License-Identifier: BSD-3-Clause
"""Sequential minimal optimisation for the dual of Lee, Lin & Wahba's SVM.

    max  1/(Q-1) sum(a) - 1/2 a'(P x K) a    s.t.  0 <= a <= upper,  equal column sums

with P = I - 11'/Q. The gradient G = 1/(Q-1) + K W, W = mean over columns - a, is kept up
to date. Let u_k be the largest G in column k of an entry that can rise, d_k the smallest
of one that can fall. a is optimal iff there is a b with u_k <= -b_k <= d_k and sum 0:

    u_k <= d_k for all k,     sum_k u_k <= 0 <= sum_k d_k

Every feasible direction is a sum of two kinds: a pair in a column, one rising as the other
falls, or one entry of each column, all rising or all falling.
"""

import numpy as np

cdef extern from "_simd.h":
    void shift_and_bracket(
        long, const double*, const double*, const double*, const double*,
        double*, double*, double*) noexcept nogil
    double pair_gains(
        long, double, double, const double*, const double*, const double*,
        const double*, double*) noexcept nogil

# Added to the G of an entry that cannot move in that direction, so it is never the extreme.
cdef double BARRED = -1e290


cdef struct Descent:
    Py_ssize_t n            # samples
    Py_ssize_t Q            # columns
    const double* K
    const double* diag
    const double* upper     # (Q, n)
    double* alpha           # (Q, n)
    double* G               # (Q, n)
    double* up              # (Q, n) 0 where alpha can rise, else BARRED
    double* down            # (Q, n) 0 where alpha can fall, else BARRED
    double* own             # (Q, n) what the last step subtracts from the G of its column
    double* shared          # (n,) what it adds to all columns
    double* gain            # work, (n,)
    double* nothing         # zeros, (n,)
    double* most            # (Q,) u
    double* least           # (Q,) d
    Py_ssize_t* chosen      # work, (Q,)
    Py_ssize_t moved        # the column of the last pair; Q after a tuple, -1 at first


cdef inline void put(Descent* s, Py_ssize_t e, double value) noexcept nogil:
    """Set an entry and record in which directions it can move."""
    s.alpha[e] = value
    s.up[e] = 0.0 if value < s.upper[e] else BARRED
    s.down[e] = 0.0 if value > 0.0 else BARRED


cdef inline Py_ssize_t find(
    const double* G, const double* bar, double sign, double value, Py_ssize_t n
) noexcept nogil:
    """First index with this G + sign * bar; -1 if G has overflowed."""
    cdef Py_ssize_t i
    for i in range(n):
        if G[i] + sign * bar[i] == value:
            return i
    return -1


cdef void update(Descent* s) noexcept nogil:
    """Update G by the last step; find the extremes of all columns."""
    cdef Py_ssize_t k, n = s.n
    for k in range(s.Q):
        shift_and_bracket(
            n, s.shared, s.own + k * n if s.moved == k or s.moved == s.Q else s.nothing,
            s.up + k * n, s.down + k * n, s.G + k * n, s.most + k, s.least + k)


cdef bint move_pair(Descent* s, Py_ssize_t k) noexcept nogil:
    """Raise the largest of column k and lower the partner of largest gain."""
    cdef Py_ssize_t n = s.n, at = k * n, i, j
    cdef const double* row_i
    cdef const double* row_j
    cdef double best, bend, slope, move, space
    i = find(s.G + at, s.up + at, 1.0, s.most[k], n)
    if i < 0:
        return False
    row_i = s.K + i * n
    best = pair_gains(
        n, s.most[k], s.diag[i], row_i, s.diag, s.G + at, s.down + at, s.gain)
    j = find(s.gain, s.nothing, 0.0, best, n)
    if j < 0:
        return False
    row_j = s.K + j * n
    bend = (s.diag[i] + s.diag[j] - 2.0 * row_i[j]) * (1.0 - 1.0 / s.Q)
    slope = s.most[k] - s.G[at + j]
    space = s.upper[at + i] - s.alpha[at + i]
    move = min(space, s.alpha[at + j])
    if bend > 0.0 and slope < move * bend:
        move = slope / bend
    # If one reaches its bound, set it exactly.
    put(s, at + i, s.upper[at + i] if move == space else s.alpha[at + i] + move)
    put(s, at + j, s.alpha[at + j] - move)
    for j in range(n):
        s.own[at + j] = move * (row_i[j] - row_j[j])
        s.shared[j] = s.own[at + j] / s.Q
    s.moved = k
    return True


cdef bint move_tuple(Descent* s, double sign, double slope) noexcept nogil:
    """Raise (sign 1) or lower (-1) the extreme entry of every column by the same step."""
    cdef Py_ssize_t n = s.n, i, k, j, e
    cdef double move = 1e300, bend = 0.0
    for k in range(s.Q):
        e = k * n
        if sign > 0.0:
            i = find(s.G + e, s.up + e, 1.0, s.most[k], n)
        else:
            i = find(s.G + e, s.down + e, -1.0, s.least[k], n)
        if i < 0:
            return False
        s.chosen[k] = i
        e += i
        move = min(move, s.upper[e] - s.alpha[e] if sign > 0.0 else s.alpha[e])
        bend += s.diag[i]
        for j in range(k):
            bend -= 2.0 * s.K[i * n + s.chosen[j]] / s.Q
        bend -= s.diag[i] / s.Q
    if bend > 0.0 and slope < move * bend:
        move = slope / bend
    for j in range(n):
        s.shared[j] = 0.0
    for k in range(s.Q):
        i = s.chosen[k]
        e = k * n + i
        put(s, e, min(max(s.alpha[e] + sign * move, 0.0), s.upper[e]))
        for j in range(n):
            s.own[k * n + j] = sign * move * s.K[i * n + j]
            s.shared[j] += s.own[k * n + j] / s.Q
    s.moved = s.Q
    return True


def llw_smo(
    const double[:, ::1] K,        # in, (n, n)
    const double[::1] diag,        # in, (n,)
    const double[:, ::1] upper,    # in, (Q, n) finite; 0 where there is no entry
    double[:, ::1] alpha,          # in/out, (Q, n) feasible
    double[:, ::1] G,              # in/out, (Q, n)
    double tol,
    Py_ssize_t max_steps,
):
    """Move pairs and tuples until no condition is violated by more than tol.

    Return (steps, violation).
    """
    cdef Descent s
    cdef Py_ssize_t Q = alpha.shape[0], n = alpha.shape[1], step = 0, k, widest
    cdef double violation, rise, fall, wide
    cdef double[:, ::1] work = np.zeros((3 * Q + 3, n))
    cdef double[::1] extremes = np.empty(2 * Q)
    cdef Py_ssize_t[::1] chosen = np.empty(Q, dtype=np.intp)
    s.n, s.Q, s.K, s.diag = n, Q, &K[0, 0], &diag[0]
    s.upper, s.alpha, s.G = &upper[0, 0], &alpha[0, 0], &G[0, 0]
    s.up, s.down, s.own = &work[0, 0], &work[Q, 0], &work[2 * Q, 0]
    s.shared, s.gain, s.nothing = &work[3 * Q, 0], &work[3 * Q + 1, 0], &work[3 * Q + 2, 0]
    s.most, s.least, s.chosen, s.moved = &extremes[0], &extremes[Q], &chosen[0], -1
    with nogil:
        for k in range(Q * n):
            put(&s, k, s.alpha[k])
        while True:
            update(&s)
            rise = fall = wide = 0.0
            widest = 0
            for k in range(Q):
                rise += s.most[k]
                fall -= s.least[k]
                if s.most[k] - s.least[k] > wide:
                    wide = s.most[k] - s.least[k]
                    widest = k
            violation = max(wide, rise, fall)
            if violation <= tol or step >= max_steps:
                break
            # Slopes per unit length of the move: two entries, or one of every column.
            if wide * wide * Q >= 2.0 * max(rise, fall, 0.0) ** 2:
                if not move_pair(&s, widest):
                    break
            elif not move_tuple(&s, 1.0 if rise >= fall else -1.0, max(rise, fall)):
                break
            step += 1
    return step, violation
