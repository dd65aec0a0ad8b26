# SPDX-License-Identifier: BSD-3-Clause
"""A walk through the optima of Lee, Lin & Wahba's SVM as one sample fades.

Entry e = i Q + k is sample i in column k; the Q - 1 coordinates of b follow the entries.
Each has one basic quantity x and a range [low, high] it must stay in:

    e on the margin:       x_e = alpha_e,  range = [0, C_i],          and its slope is 0
    e outside or bounded:  x_e = slope_e,  range = its side of 0,     and alpha_e fixed
    e of the left-out one: x_e = slope_e,  no range,                  and alpha_e fading

While no x reaches an end of its range it moves at the rates c. When x_p does, p changes
sides: a principal pivot on p. The columns of the full optimum are shared and read-only;
those of the pivots are stored and applied to the next one (engine/_simd.h).
"""

import numpy as np

from libc.math cimport fabs
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport daxpy

cdef extern from "_simd.h":
    int count_hits(const double*, const double*, const double*, const double*,
                   double, double) noexcept nogil
    void apply_pivots(long, long, const double*, long, const Py_ssize_t*,
                      double*, double*, double*) noexcept nogil
    enum:
        BLOCK

# As in leaveout.engine._problem.
cdef signed char OUTSIDE = 0, MARGIN = 1, BOUNDED = 2
cdef double FAR = 1e300
# A quantity may exceed its range by this much, relative to slopes of order 1 and to C.
cdef double SLACK = 1e-12

cpdef enum Status:
    DONE = 0            # the left-out sample has faded
    NEEDS_COLUMN = 1    # the column of ``pending`` is missing; call again with it
    LOST = 2            # too many pivots, or NaN


def padded(Py_ssize_t n):
    """Round a length up to whole blocks."""
    return (n + BLOCK - 1) // BLOCK * BLOCK


cdef class FadingWalk:
    """The state of one walk; arrays are (length,), a multiple of the block.

    x, low, high: basic quantities and their ranges at the full optimum; state: OUTSIDE,
    MARGIN or BOUNDED, (n Q,); all changed in place. upper: upper bounds of alpha, (n Q,);
    capacity: most pivots. ``pending`` is the entry that is about to change sides, or
    -1; ``left`` the remaining share of the walk; ``quantities`` is x.
    """

    cdef readonly Py_ssize_t n_pivots, pending
    cdef readonly double left
    cdef readonly object quantities
    cdef double noise
    cdef Py_ssize_t length, capacity
    cdef double[::1] x, low, high, c, shares
    cdef double[:, ::1] X
    cdef signed char[::1] state
    cdef const double[::1] upper
    cdef Py_ssize_t[::1] pivot, flagged

    def __init__(self, x, double[::1] low, double[::1] high,
                 signed char[::1] state, const double[::1] upper, Py_ssize_t capacity):
        self.quantities = self.x = x
        self.low, self.high = low, high
        self.state, self.upper = state, upper
        self.length, self.capacity = self.x.shape[0], capacity
        self.X = np.empty((capacity, self.length))
        self.c = np.zeros(self.length)
        self.shares = np.empty(2 * capacity)
        self.pivot = np.empty(capacity, dtype=np.intp)
        self.flagged = np.empty(self.length // BLOCK, dtype=np.intp)
        self.n_pivots, self.pending, self.left, self.noise = 0, -1, 1.0, 0.0

    def aim(self, const double[::1] rates, double noise):
        """Set the rates of x from the fading entries off the margin, and the noise level."""
        self.c[:] = rates
        self.noise = noise

    def fade(self, Py_ssize_t e, const double[:, ::1] columns, const Py_ssize_t[::1] where):
        """Remove an entry of the left-out sample from the margin: it fades at its own rate."""
        cdef int status
        cdef double alpha = self.x[e]
        # At the rate -alpha instead of c_e: the pivot then compensates for the difference.
        self.c[e] += alpha
        status = self.exchange(e, columns, where)
        if status == DONE:
            self.free(e)
        else:
            self.c[e] -= alpha
        return status

    def free(self, Py_ssize_t e):
        """Remove the range of an entry: only its slope is computed."""
        self.state[e] = OUTSIDE
        self.low[e], self.high[e] = -FAR, FAR

    def exchange(self, Py_ssize_t e, const double[:, ::1] columns,
                 const Py_ssize_t[::1] where):
        """Pivot on an entry; its quantity is then 0, on the other side."""
        cdef int status
        with nogil:
            status = self.pivot_on(e, &columns[0, 0], columns.shape[0], &where[0])
            if status == DONE:
                self.x[e] = 0.0
        return status

    def run(self, const double[:, ::1] columns, const Py_ssize_t[::1] where):
        """Walk until all has faded or a column is missing. Return the status."""
        cdef int status = DONE
        with nogil:
            while self.left > 0.0 and status == DONE:
                if self.pending < 0:
                    self.step()
                if self.pending >= 0:
                    status = self.pivot_on(
                        self.pending, &columns[0, 0], columns.shape[0], &where[0])
                    if status == DONE:
                        self.change_side(self.pending)
                        self.pending = -1
        return status

    def apply(self, double[::1] column):
        """Apply the pivots to a column of the full optimum, in place."""
        with nogil:
            self.bring_over(&column[0], 0)

    cdef void bring_over(self, double* column, Py_ssize_t first) noexcept nogil:
        if self.n_pivots > first:
            apply_pivots(
                self.length, self.n_pivots - first, &self.X[first, 0], self.length,
                &self.pivot[first], &self.shares[0], &self.shares[self.capacity], column)

    cdef int pivot_on(self, Py_ssize_t e, const double* columns, Py_ssize_t n_columns,
                      const Py_ssize_t* where) noexcept nogil:
        """Apply a pivot on e to the rates."""
        cdef Py_ssize_t q = self.n_pivots - 1, first, i
        cdef double* X
        cdef double d
        if self.n_pivots >= self.capacity:
            return LOST
        X = &self.X[self.n_pivots, 0]
        while q >= 0 and self.pivot[q] != e:
            q -= 1
        first = q + 1
        if q >= 0:
            # e was itself a pivot: its column then became X / d, with 1 / d at e.
            d = 1.0 / self.X[q, e]
            for i in range(self.length):
                X[i] = self.X[q, i] * d
            X[e] = d
        elif 0 <= where[e] < n_columns:
            memcpy(X, columns + where[e] * self.length, self.length * sizeof(double))
        else:
            self.pending = e
            return NEEDS_COLUMN
        self.bring_over(X, first)
        if not 0.0 < fabs(X[e]) < FAR:
            return LOST
        self.pivot[self.n_pivots] = e
        self.n_pivots += 1
        self.bring_over(&self.c[0], self.n_pivots - 1)
        return DONE

    cdef void change_side(self, Py_ssize_t e) noexcept nogil:
        """Move an entry that has reached an end of its range to the other side."""
        cdef bint bounded = self.state[e] == BOUNDED
        if self.state[e] == MARGIN:
            bounded = self.high[e] - self.x[e] < self.x[e] - self.low[e]
            self.state[e] = BOUNDED if bounded else OUTSIDE
            self.x[e] = 0.0
            self.low[e] = 0.0 if bounded else -FAR
            self.high[e] = FAR if bounded else 0.0
        else:
            self.state[e] = MARGIN
            self.x[e] = self.upper[e] if bounded else 0.0
            self.low[e] = 0.0
            self.high[e] = min(self.upper[e], FAR)

    cdef void step(self) noexcept nogil:
        """Move to the next event, whose entry becomes pending, or to the end."""
        cdef int length = <int>self.length, one = 1
        cdef double move = self.left
        cdef Py_ssize_t e = self.next_event(&move)
        daxpy(&length, &move, &self.c[0], &one, &self.x[0], &one)
        self.left = self.left - move if e >= 0 else 0.0
        self.pending = e if self.left > 0.0 else -1

    cdef inline double room(self, Py_ssize_t i) noexcept nogil:
        """Distance of x_i to the end of the range it moves towards."""
        return self.high[i] - self.x[i] if self.c[i] > 0.0 else self.x[i] - self.low[i]

    cdef inline bint is_still(self, Py_ssize_t i) noexcept nogil:
        """Whether a rate is zero up to rounding; alpha may have any scale."""
        return self.state[i] != MARGIN and fabs(self.c[i]) <= self.noise

    cdef Py_ssize_t next_event(self, double* move) noexcept nogil:
        """Ratio test: the entry that first reaches an end of its range, or -1.

        Two passes (Harris 1973): find the longest step that exceeds no range by more than
        SLACK, then, among the entries that limit it, the one with the largest rate.
        """
        cdef Py_ssize_t block, k, i, n_flagged = 0, best = -1, n_entries = self.upper.shape[0]
        cdef double longest = move[0], room, size, largest = 0.0
        for k in range(self.length // BLOCK):
            block = k * BLOCK
            if not count_hits(&self.c[block], &self.x[block], &self.low[block],
                              &self.high[block], 1.0, longest):
                continue
            self.flagged[n_flagged] = block
            n_flagged += 1
            for i in range(block, min(block + BLOCK, n_entries)):
                size = fabs(self.c[i])
                if size * longest <= self.room(i) or self.is_still(i):
                    continue
                room = self.room(i)
                room += SLACK * min(self.upper[i], 1.0) if self.state[i] == MARGIN else SLACK
                if size * longest > room:
                    longest = max(room, 0.0) / size
        if longest >= move[0]:
            return -1
        for k in range(n_flagged):
            for i in range(self.flagged[k], min(self.flagged[k] + BLOCK, n_entries)):
                size = fabs(self.c[i])
                if (size > largest and self.room(i) <= size * longest
                        and not self.is_still(i)):
                    largest = size
                    best = i
        if best >= 0:
            move[0] = max(self.room(best), 0.0) / largest
        return best
