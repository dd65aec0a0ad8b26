# SPDX-License-Identifier: BSD-3-Clause
"""Loops over samples and their staircases (_stairs.h) behind a certificate.

A point beta with values f = K beta + b is optimal iff every f_i is between the kinks at
which beta_i could rise and fall. Its duality gap is the sum of the terms

    loss_i(f_i) - kappa_i(beta_i) + beta_i f_i >= 0

of the samples, which avoids the cancellation in primal minus dual.
"""

import numpy as np

from libc.math cimport INFINITY, fabs

from leaveout.engine._stairs cimport (
    Stairs, kink_of, level_of, make_stairs, nearest_level,
)


cdef inline double room_of(const Stairs* s, Py_ssize_t i, double beta) noexcept nogil:
    """Distance of beta to its nearest level."""
    return fabs(beta - nearest_level(s, i, beta))


cdef inline double between(double value, double low, double high) noexcept nogil:
    """The value, clipped to an interval."""
    return low if value < low else high if value > high else value


cdef double loss_of(const Stairs* s, Py_ssize_t i, double f) noexcept nogil:
    """Loss of sample i at f."""
    cdef double loss = 0.0, below, top, bottom
    cdef Py_ssize_t j
    for j in range(s.n_kinks):
        below = kink_of(s, i, j) - f
        top, bottom = level_of(s, i, j), level_of(s, i, j + 1)
        loss += (max(top, 0.0) - max(bottom, 0.0)) * max(below, 0.0)
        loss += (max(-bottom, 0.0) - max(-top, 0.0)) * max(-below, 0.0)
    return loss


cdef double reward_of(const Stairs* s, Py_ssize_t i, double beta) noexcept nogil:
    """kappa_i(beta): minus the conjugate of the loss at -beta."""
    cdef double reward = 0.0, top, bottom
    cdef Py_ssize_t j
    for j in range(s.n_kinks):
        top, bottom = level_of(s, i, j), level_of(s, i, j + 1)
        reward += kink_of(s, i, j) * (between(beta, bottom, top) - between(0.0, bottom, top))
    return reward


cdef double violation_of(const Stairs* s, Py_ssize_t i, double beta, double f) noexcept nogil:
    """How far f is outside the range in which beta is optimal."""
    cdef double below = -INFINITY, above = INFINITY
    cdef Py_ssize_t j
    for j in range(s.n_kinks):
        if level_of(s, i, j) > beta:
            below = kink_of(s, i, j)
        if level_of(s, i, j + 1) < beta and above == INFINITY:
            above = kink_of(s, i, j)
    return max(max(below - f, f - above), 0.0)


cpdef measure(
    const double[::1] y,           # in, (n,)
    const double[::1] offsets,     # in, (n_kinks,)
    const double[:, ::1] levels,   # in, (n, n_kinks + 1)
    const double[::1] beta,        # in, (n,)
    const double[::1] f,           # in, (n,) K beta + b
    double b,
):
    """Return (largest violation, sum beta, sum |beta|, primal, primal - dual)."""
    cdef Py_ssize_t i, n = y.shape[0]
    cdef double worst = 0.0, total = 0.0, size = 0.0, losses = 0.0, square = 0.0, gap = 0.0
    cdef double loss, violation
    cdef Stairs stairs = make_stairs(n, offsets.shape[0], &y[0], &offsets[0], &levels[0, 0])
    with nogil:
        for i in range(n):
            loss = loss_of(&stairs, i, f[i])
            gap += loss - (reward_of(&stairs, i, beta[i]) - beta[i] * f[i])
            losses += loss
            square += beta[i] * (f[i] - b)
            total += beta[i]
            size += fabs(beta[i])
            violation = violation_of(&stairs, i, beta[i], f[i])
            if not violation <= worst:
                worst = violation
    return worst, total, size, 0.5 * square + losses, gap - b * total


cpdef settle_members(
    const double[::1] offsets,     # in, (n_kinks,)
    const double[:, ::1] levels,   # in, (n, n_kinks + 1)
    const double[::1] C,           # in, (n,)
    double[::1] beta,              # in/out, (n,)
    const double[::1] F,           # in, (n,) y - K beta
    const Py_ssize_t[::1] members,  # in, (m,) M, the working set of the active set
    double unseen,                 # a beta that does not move f
):
    """Snap M to its levels if all of it is there up to rounding; find b if a member is free.

    If the C of both classes balance up to rounding, one member stays next to its level to
    absorb the difference. It is not on the margin: no sample is free, and the optimal b
    form an interval. Return (whether M stays, whether a member is free, b).
    """
    cdef Py_ssize_t i, j, a, n = C.shape[0], m = members.shape[0]
    cdef double top = 0.0, total = 0.0, b = 0.0, room, rounding
    cdef bint stays = False, is_free = False
    cdef Stairs stairs = make_stairs(n, offsets.shape[0], &C[0], &offsets[0], &levels[0, 0])
    with nogil:
        for i in range(n):
            top = max(top, fabs(beta[i]))
        for i in range(n):
            total += min(C[i], top)
        for a in range(m):
            i = members[a]
            room = room_of(&stairs, i, beta[i])
            rounding = max(1e-15 * total, min(unseen, 1e-12 * C[i]))
            stays = stays or room > rounding
            is_free = is_free or room > 1e-9 * min(C[i], top)
            j = 0
            while j + 1 < stairs.n_kinks and beta[i] < level_of(&stairs, i, j + 1):
                j += 1
            # F plus the offset of its kink is b.
            b += (F[i] + offsets[j]) / m
        for a in range(0 if stays else m):
            beta[members[a]] = nearest_level(&stairs, members[a], beta[members[a]])
    return stays, stays and is_free, b


cpdef balance(
    const double[::1] offsets,     # in, (n_kinks,)
    const double[:, ::1] levels,   # in, (n, n_kinks + 1)
    double[::1] beta,              # in/out, (n,)
    const Py_ssize_t[::1] members,  # in, (m,)
):
    """Make sum(beta) zero by the member farthest from its levels.

    If C K is tiny, the sum hardly affects f, and the active set ends before it is zero.
    """
    cdef Py_ssize_t i, a, best = -1, n = beta.shape[0]
    cdef double most = 0.0, off = 0.0, room
    cdef Stairs stairs = make_stairs(n, offsets.shape[0], &beta[0], &offsets[0], &levels[0, 0])
    with nogil:
        for i in range(n):
            off += beta[i]
        for a in range(members.shape[0]):
            room = room_of(&stairs, members[a], beta[members[a]])
            if room > most:
                most, best = room, members[a]
        if fabs(off) < most:
            beta[best] -= off


cpdef any_near(
    const double[:, ::1] K,        # in, (n, n)
    const double[::1] y,           # in, (n,) signs
    const double[::1] beta,        # in, (n,)
    const double[::1] f,           # in, (n,)
    double reach,                  # squared distance
):
    """Whether two samples, on or next to the margin or with beta != 0, nearly coincide."""
    cdef Py_ssize_t i, j, n = y.shape[0], m = 0, a
    cdef Py_ssize_t[::1] rows = np.empty(n, dtype=np.intp)
    cdef bint found = False
    with nogil:
        for i in range(n):
            if beta[i] == 0.0 and fabs(y[i] - f[i]) >= 1e-2:
                continue
            for a in range(m):
                j = rows[a]
                found = found or (K[i, i] - K[i, j]) + (K[j, j] - K[i, j]) < reach
            rows[m] = i
            m += 1
    return found
