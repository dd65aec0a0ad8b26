# SPDX-License-Identifier: BSD-3-Clause
"""The steps of one fold in leaveout.engine._fold_walk between its kernel values.

The samples of a fold are in this order: near a kink, bounded, with a beta of 0, absent. The
active set runs on the near ones. The beta of the bounded are fixed: their kernel values
times beta, the pull, move the targets of the near ones.
"""

import numpy as np

from libc.math cimport fabs, sqrt

from leaveout.engine._active_set_fast cimport ActiveSet, optimise, recompute
from leaveout.engine._stairs cimport Stairs, level_of, make_stairs

cdef enum:
    NEAR = 0
    PLACES = 4


cdef class FoldProblem:
    """A problem and its optimum with all samples."""

    cdef const double[::1] y, beta, below, above, offsets
    cdef const double[:, ::1] levels
    cdef bint intercept

    def __init__(
        self,
        const double[::1] y,            # in, (n,)
        const double[::1] offsets,      # in, (n_kinks,)
        const double[:, ::1] levels,    # in, (n, n_kinks + 1)
        const double[::1] beta,         # in, (n,) the optimum
        const double[::1] below,        # in, (n,) range of f at these beta
        const double[::1] above,
        bint intercept,
    ):
        self.y, self.offsets, self.levels, self.beta = y, offsets, levels, beta
        self.below, self.above, self.intercept = below, above, intercept


cdef class FoldWork:
    """Memory and steps of one fold after another, for one thread."""

    cdef FoldProblem problem
    # of one fold, in its order
    cdef readonly object order          # (n,)
    cdef readonly object beta           # (n,)
    cdef readonly object levels         # (n, n_kinks + 1), near samples
    cdef readonly object F              # (n,) y - K beta, near samples
    cdef readonly object M              # (n,) members of M, n_free of them
    cdef Py_ssize_t[::1] _order, _M, _place, _left
    cdef double[::1] _beta, _F, _target, _diagonal
    cdef double[:, ::1] _levels, _work, _start, _L
    cdef Py_ssize_t[::1] _moved
    cdef int[:, ::1] _small
    cdef unsigned char[::1] _is_left
    cdef readonly Py_ssize_t n_near, n_bounded, n_present, n_free, n_steps
    cdef Py_ssize_t n_left
    cdef readonly double outside        # sum of the beta of the bounded
    cdef readonly double tol            # of violations
    cdef readonly double worst          # violation
    cdef readonly double top, reach     # largest K_ii of the near samples; of those left out
    cdef readonly double size           # sum |beta|
    cdef readonly double b
    cdef readonly bint any_free         # whether a beta is clearly between two levels

    def __init__(self, Py_ssize_t n, Py_ssize_t n_levels):
        self.order, self.M = np.empty((2, n), np.intp)
        self.beta, self.F = np.empty((2, n))
        self.levels = np.empty((n, n_levels))
        self._order, self._M, self._beta, self._F = self.order, self.M, self.beta, self.F
        self._levels = self.levels
        self._place, self._left, self._moved = np.empty((3, n), np.intp)
        self._start = np.empty((3, n))
        self._target, self._diagonal = np.empty((2, n))
        self._work, self._small = np.empty((6, n)), np.empty((2, n), np.intc)
        self._is_left = np.zeros(n, np.uint8)
        self._L = np.empty((1, 1))

    def begin(
        self,
        FoldProblem problem,
        const signed char[::1] place,   # in, (n,) NEAR, bounded, zero, absent: 0 to 3
        const Py_ssize_t[::1] rows,     # in, (k,) left out; they count as near
        double down,                    # factor of the C of negative samples
        double up,
        const double[::1] change=None,  # in, (n,) of beta at the start
    ):
        """Order the samples of a fold, and start from the optimum with all, or nearby."""
        cdef Py_ssize_t first[PLACES + 1]
        cdef Py_ssize_t n = place.shape[0], width = problem.levels.shape[1], i, j, a, at
        cdef double factor, beta
        self.problem = problem
        for a in range(PLACES + 1):
            first[a] = 0
        for i in range(rows.shape[0]):
            self._is_left[rows[i]] = 1
        for i in range(n):
            first[1 + (NEAR if self._is_left[i] else place[i])] += 1
        for a in range(PLACES):
            first[a + 1] += first[a]
        self.n_near, self.n_bounded, self.n_present = first[1], first[2], first[3]
        for i in range(n):
            a = NEAR if self._is_left[i] else place[i]
            at = first[a]
            first[a] += 1
            self._order[at] = i
            factor = up if problem.y[i] > 0.0 else down
            beta = problem.beta[i]
            if a == NEAR and change is not None:  # rounding must not leave the range
                beta = min(max(beta + change[i], problem.levels[i, width - 1]),
                           problem.levels[i, 0])
            self._beta[at] = 0.0 if self._is_left[i] else factor * beta
            if a == NEAR:
                for j in range(width):
                    self._levels[at, j] = (
                        0.0 if self._is_left[i] else factor * problem.levels[i, j])
        at = 0
        for i in range(self.n_near):
            if self._is_left[self._order[i]]:
                self._left[at] = i
                at += 1
        self.n_left = at
        for i in range(rows.shape[0]):
            self._is_left[rows[i]] = 0
        self.outside = 0.0
        for i in range(self.n_near, self.n_bounded):
            self.outside += self._beta[i]

    def run(
        self,
        const double[:, ::1] K,         # in, (n_near, n_near)
        const double[::1] pull,         # in, (n_near,) of the bounded
        double tolerance,               # largest violation, if rounding is smaller
        double rounding,                # in units of the largest K_ii times sum |beta|
        Py_ssize_t max_steps,
    ):
        """Go to the optimum of the near samples."""
        cdef ActiveSet s
        cdef FoldProblem problem = self.problem
        cdef Py_ssize_t n = self.n_near, i
        cdef double size = 0.0, top = 0.0, reach = 0.0, tight, off = self.outside
        cdef Stairs stairs = make_stairs(n, problem.offsets.shape[0], &self._target[0],
                                         &problem.offsets[0], &self._levels[0, 0])
        cdef Py_ssize_t ld = n + 8 if n % 64 == 0 else n, max_enter = max(1, n // 20)
        if self._L.shape[0] < n or self._L.shape[1] < ld:
            self._L = np.empty((n, ld))
        with nogil:
            for i in range(n):
                self._target[i] = problem.y[self._order[i]] - pull[i]
                self._diagonal[i] = K[i, i]
            for i in range(self.n_left):  # may be far larger than those of the others
                reach = max(reach, K[self._left[i], self._left[i]])
                self._diagonal[self._left[i]] = 0.0
            for i in range(n):
                top = max(top, self._diagonal[i])
            for i in range(self.n_bounded):
                size += fabs(self._beta[i])
            tight = rounding * max(1.0, top * size)
            s.n, s.ld = n, self._L.shape[1]
            s.stairs, s.K, s.diag = &stairs, &K[0, 0], &self._diagonal[0]
            s.state, s.beta, s.F = &self._small[0, 0], &self._beta[0], &self._F[0]
            s.L, s.M, s.place = &self._L[0, 0], &self._M[0], &self._place[0]
            s.u, s.v, s.moved = &self._work[0, 0], &self._work[1, 0], &self._work[2, 0]
            s.F_M = &self._work[3, 0]
            s.intercept, s.outside, s.definite = problem.intercept, self.outside, True
            recompute(&s)
            for i in range(n):
                self._start[0, i], self._start[1, i] = self._beta[i], self._F[i]
            self.worst = optimise(&s, &self._work[4, 0], &self._small[1, 0],
                                  min(0.1 * tolerance, tight), max_steps, max_enter,
                                  &self.n_steps)
            self.n_free = s.m
            size = 0.0
            for i in range(self.n_bounded):
                size += fabs(self._beta[i])
            for i in range(n):
                off += self._beta[i]
            self.tol = max(tolerance, rounding * top * size)
            self.top, self.reach, self.size = top, reach, size
            if problem.intercept and fabs(off) > tolerance * size:
                self.worst = max(self.worst, fabs(off))
            self._find_intercept(&s)

    cdef void _find_intercept(self, ActiveSet* s) noexcept nogil:
        """b: the mean of F plus the offset of its kink over the free samples."""
        cdef Py_ssize_t k, i, j, q = s.stairs.n_kinks
        cdef double total = 0.0, largest = 0.0, room, height
        self.any_free = False
        for i in range(self.n_bounded):
            largest = max(largest, fabs(self._beta[i]))
        for k in range(s.m):
            i = s.M[k]
            room, height = 1e300, 0.0
            for j in range(q + 1):
                room = min(room, fabs(self._beta[i] - level_of(s.stairs, i, j)))
                height = max(height, fabs(level_of(s.stairs, i, j)))
            if room > 1e-9 * min(height, largest):
                self.any_free = True
            total += self._F[i] + s.stairs.offset[s.state[i] // 2]
        self.b = total / s.m if self.problem.intercept and s.m > 0 else 0.0

    def values(
        self,
        Py_ssize_t n_left,
    ):
        """Return f at the samples left out, in order."""
        cdef Py_ssize_t a, i
        cdef double[::1] out = np.empty(n_left)
        for a in range(n_left):
            i = self._left[a]
            out[a] = self.problem.y[self._order[i]] - self._F[i] + self.b
        return np.asarray(out)

    def find_unclear(
        self,
        const double[::1] products,     # in, of the others from a position on
        errors,                         # in, the same, or None if they are exact
        Py_ssize_t first,               # the position
    ):
        """Return which of the others may be outside their range, as positions in order."""
        cdef const double[::1] given = errors
        cdef Py_ssize_t a, i
        cdef double f, slack
        found = []
        for a in range(products.shape[0]):
            i = self._order[first + a]
            f = products[a] + self.b
            slack = self.tol - (given[a] if given is not None else 0.0)
            if not (self.problem.below[i] - slack <= f <= self.problem.above[i] + slack):
                found.append(first + a)
        return found

    def find_unknown(
        self,
        const double[::1] values,       # in, (n,) K beta at the start, of all samples
        const double[::1] errors,       # in, (n,) their errors
        const double[:, ::1] K,         # in, (n, n) of all samples, nearly that of the fold
        double distance,                # largest difference of a kernel value
    ):
        """Return the others that may have left their range since the start.

        With the change d of beta, K_i. d is at most |d|_K sqrt(K_ii). Where that does not
        decide, values of K do. K here is the kernel of the fold, whose F are known.
        """
        cdef Py_ssize_t a, i, j, n = 0
        cdef double d, size = 0.0, square = 0.0, reach, f, slack
        found = []
        for j in range(self.n_near):
            d = self._beta[j] - self._start[0, j]
            if d != 0.0:
                square += d * (self._start[1, j] - self._F[j])
                size += fabs(d)
                self._moved[n], self._start[2, n] = self._order[j], d
                n += 1
        reach = sqrt(max(square, 0.0) + self.tol * size)
        for a in range(self.n_near, self.n_present):
            i = self._order[a]
            f = values[i] + self.b
            slack = self.tol - errors[i]
            d = slack - reach * sqrt(K[i, i])
            if self.problem.below[i] - d <= f <= self.problem.above[i] + d:
                continue
            for j in range(n):
                f += K[i, self._moved[j]] * self._start[2, j]
            slack -= distance * size
            if not (self.problem.below[i] - slack <= f <= self.problem.above[i] + slack):
                found.append(a)
        return found
