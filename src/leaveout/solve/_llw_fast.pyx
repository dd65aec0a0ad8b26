# SPDX-License-Identifier: BSD-3-Clause
"""The first event on a walk of Lee, Lin & Wahba's machine."""

from libc.math cimport INFINITY

# As in leaveout.solve._solution.
cdef signed char OUTSIDE = 0, MARGIN = 1
# Slopes that change more slowly than this, of terms of order 1, do not change.
cdef double NOISE = 1e-13


def first_event(
    const double[::1] alpha,          # in, (n Q,) variables
    const double[::1] rate,           # in, (n Q,) their change per unit of the walk
    const double[::1] slope,          # in, (n Q,) G + b
    const double[::1] slope_rate,     # in, (n Q,) its change
    const double[::1] box,            # in, (n Q,) upper bounds, 0 where there is no entry
    const signed char[::1] state,     # in, (n Q,) OUTSIDE, MARGIN or BOUNDED
):
    """Return how far the walk goes with these sets, and the entry that ends it (-1: none).

    A free entry moves until 0 or C; one at 0 stays while its slope is below 0, one at C
    while it is above. Of several that end it at once, the fastest.
    """
    cdef Py_ssize_t e, entry = -1
    cdef double speed, room, step = INFINITY, fastest = 0.0
    with nogil:
        for e in range(alpha.shape[0]):
            if box[e] <= 0.0:
                continue
            if state[e] == MARGIN:
                speed = rate[e] if rate[e] > 0.0 else -rate[e]
                room = box[e] - alpha[e] if rate[e] > 0.0 else alpha[e]
                if speed == 0.0 or room == INFINITY:
                    continue
            else:
                speed = slope_rate[e] if state[e] == OUTSIDE else -slope_rate[e]
                room = -slope[e] if state[e] == OUTSIDE else slope[e]
                if speed <= NOISE:
                    continue
            room = room if room > 0.0 else 0.0
            if room < step * speed or (room == step * speed and speed > fastest):
                step, entry, fastest = room / speed, e, speed
    return step, entry
