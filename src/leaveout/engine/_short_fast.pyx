# SPDX-License-Identifier: BSD-3-Clause
"""Solve a small, ordinary SVM and leave out each sample, in one call.

The steps are those of ``solve_svc`` and ``loo_walk``. Where they need more than one round,
or what is rarely needed around them, the call ends early (Stage).
"""

import numpy as np

from libc.math cimport fabs
from scipy.linalg.cython_blas cimport dgemv

from leaveout.engine._active_set_fast cimport run_active_set
from leaveout.engine._certificate_fast cimport any_near, balance, measure, settle_members
from leaveout.engine._smo_fast cimport smo_with_intercept
from leaveout.engine._tableau_fast cimport Tableau
from leaveout.engine._walk_fast cimport run_walks

from leaveout.engine import _certificate as limits
from leaveout.engine import _problem as names
from leaveout.engine._solve import ROUNDING as ROUNDING_UNITS
from leaveout.engine._solve import SMO_STEPS_PER_SAMPLE, SMO_TOL
from leaveout.engine._walk_fast import FOLDS_AT_ONCE, Status

cdef double SMO_ENDS = SMO_TOL, ROUNDING = ROUNDING_UNITS * 2.0**-52, TIE = names.TIE
cdef double DOMINATING = limits.DOMINATING, SMALLEST_BOUNDS = limits.SMALLEST_BOUNDS
cdef double NEAR = limits.NEAR, REACH = limits.REACH
cdef Py_ssize_t SMO_STEPS = SMO_STEPS_PER_SAMPLE, AT_ONCE = FOLDS_AT_ONCE
cdef signed char MARGIN = names.MARGIN, BOUNDED = names.BOUNDED, WALK = names.WALK
cdef signed char FIRST_SEGMENT = names.FIRST_SEGMENT, NEGATIVE = names.NEGATIVE_MARGIN
cdef signed char STOPPED = Status.STOPPED
# Residual up to which no scaling is needed to see that a solution is optimal.
cdef double OPTIMAL = 1e-12
NO_CHANGES, NONE_NEEDED = np.empty((0, 0)), np.empty(0, dtype=np.uint8)
NO_OFFSETS = np.zeros(1)  # the kink of the hinge loss is y


cpdef enum Stage:
    REFUSED = 0     # not tried, or the solver needs another round
    FOUND = 1       # the dual point and its members; its certificate needs more
    SOLVED = 2      # the solution; the walks need more
    LEFT_OUT = 3    # all values


cdef class Short:
    """A problem, its solution and its left-out values; what is read depends on the stage."""

    cdef readonly object beta, F, f, state          # (n,)
    cdef readonly object members                    # (m,)
    cdef readonly object lower, upper, settled_by   # (n,); the first two may be one array
    cdef readonly double top, total, b, residual, gap, primal
    cdef readonly Py_ssize_t n_steps, n_walks, n_events
    cdef readonly int stage
    cdef object K, y, levels
    cdef const double[:, ::1] _K
    cdef const double[::1] _y, _C, _offsets
    cdef double[::1] _beta, _F, _f, _diagonal
    cdef double[:, ::1] _levels
    cdef signed char[::1] _state

    def __init__(self, K, y, C, start, signs, bint labels_only):
        """Go as far as possible from ``start``, or from zero."""
        cdef Py_ssize_t n = y.shape[0]
        self.K, self.y, self._K, self._y, self._C = K, y, K, y, C
        self.beta = np.zeros(n) if start is None else np.array(start)
        self.F, self.f, diagonal = np.empty((3, n))
        self.levels, self.state = np.empty((n, 2)), np.zeros(n, np.int8)
        self._beta, self._F, self._f, self._diagonal = self.beta, self.F, self.f, diagonal
        self._levels, self._state, self._offsets = self.levels, self.state, NO_OFFSETS
        self.stage = REFUSED
        if self._is_ordinary():
            self.stage = self._solve()
        if self.stage == SOLVED and self._walk(signs, labels_only):
            self.stage = LEFT_OUT

    cdef bint _is_ordinary(self):
        """Two of each class, all present, with kernel values of one size; write levels."""
        cdef Py_ssize_t n = self._y.shape[0], i
        cdef double least, all_C = 0.0, imbalance = 0.0, smallest = self._C[0]
        self.top = least = self._K[0, 0]
        for i in range(n):
            self._diagonal[i] = self._K[i, i]
            self.top, least = max(self.top, self._K[i, i]), min(least, self._K[i, i])
            smallest = min(smallest, self._C[i])
            all_C += self._C[i]
            imbalance += self._y[i]
            self._levels[i, 0] = self._C[i] if self._y[i] > 0.0 else 0.0
            self._levels[i, 1] = 0.0 if self._y[i] > 0.0 else -self._C[i]
        if not smallest > 0.0 or fabs(imbalance) > n - 4:
            return False
        return 0.0 < self.top <= DOMINATING * least and self.top * all_C >= SMALLEST_BOUNDS

    cdef _update(self):
        """F = y - K beta; total = sum |beta|."""
        cdef Py_ssize_t i
        cdef int n = <int>self._y.shape[0], one = 1
        cdef double minus = -1.0, plus = 1.0
        self.total = 0.0
        for i in range(n):
            self._F[i] = self._y[i]
            self.total += fabs(self._beta[i])
        if self.total > 0.0:
            dgemv(b"T", &n, &n, &minus, <double*>&self._K[0, 0], &n, &self._beta[0], &one,
                  &plus, &self._F[0], &one)

    cdef int _solve(self):
        """SMO and active set, one round."""
        cdef Py_ssize_t n = self._y.shape[0], i, m, more
        cdef double violation, worst, off, tight
        cdef bint stays, is_free
        cdef Py_ssize_t[::1] members
        self._update()
        self.n_steps, violation = smo_with_intercept(
            self._K, self._diagonal, self._y, self._offsets, self._levels, self._beta,
            self._F, SMO_ENDS, SMO_STEPS * n)
        if not violation <= SMO_ENDS:
            return REFUSED
        self.total = 0.0
        for i in range(n):
            self.total += fabs(self._beta[i])
        tight = ROUNDING * max(1.0, self.top * self.total)
        self.members = np.empty(n, np.intp)
        members = self.members
        m, more, violation = run_active_set(
            self._K, self._diagonal, self._y, self._offsets, self._levels, True, self._beta,
            self._F, members, tight, 20 * n, max(1, n // 20))
        if not violation <= tight:
            return REFUSED
        self.n_steps += more
        self.members, members = self.members[:m], members[:m]
        balance(self._offsets, self._levels, self._beta, members)
        self._update()
        stays, is_free, self.b = settle_members(
            self._offsets, self._levels, self._C, self._beta, self._F, members, 0.0)
        for i in range(n):
            self._f[i] = self._y[i] - self._F[i] + self.b
            self._state[i] = BOUNDED if self._beta[i] != 0.0 else 0
        for i in range(m):
            self._state[members[i]] = MARGIN
        worst, off, self.total, self.primal, self.gap = measure(
            self._y, self._offsets, self._levels, self._beta, self._f, self.b)
        off = fabs(off) / self.total if self.total > 0.0 else 0.0
        self.residual = max(worst, off)
        return SOLVED if stays and is_free and self.residual <= OPTIMAL else FOUND

    cdef bint _walk(self, signs, bint labels_only):
        """Leave out each sample; return whether all walks end."""
        cdef Py_ssize_t[::1] rows
        cdef Tableau tableau
        if any_near(self._K, self._y, self._beta, self._f, NEAR * self.top):
            return False
        self.settled_by, self.lower = np.zeros(self.y.shape[0], np.int8), self.f.copy()
        self.upper = self.lower
        rows = self._settle(self.settled_by, labels_only)
        self.n_walks = rows.shape[0]
        if self.n_walks == 0:
            return True
        tableau = self._make_tableau(signs)
        return tableau is not None and self._run(tableau, rows, labels_only)

    cdef Py_ssize_t[::1] _settle(self, signed char[::1] settled, bint labels_only):
        """Return the samples whose value does not follow from the solution."""
        cdef Py_ssize_t n = self._y.shape[0], i, g = 0
        cdef Py_ssize_t[::1] rows = np.empty(n, np.intp)
        for i in range(n):
            if self._beta[i] == 0.0:
                continue
            if labels_only and self._y[i] * self._f[i] < -TIE:
                settled[i] = NEGATIVE
                continue
            rows[g] = i
            g += 1
        return rows[:g]

    cdef Tableau _make_tableau(self, signs):
        """The tableau on all samples; None if the kernel is singular on M."""
        cdef Py_ssize_t n = self._y.shape[0], i, q = 0
        cdef double reach = REACH * self.total
        cdef Py_ssize_t[::1] others = np.empty(n, np.intp)
        cdef Tableau tableau
        for i in range(n):
            # as cap_unreachable_bounds does
            self._levels[i, 0] = min(self._levels[i, 0], reach)
            self._levels[i, 1] = max(self._levels[i, 1], -reach)
            if self._state[i] != MARGIN:
                others[q] = i
                q += 1
        try:
            tableau = Tableau(self.K, self.y, NO_OFFSETS, self.levels, self.beta, self.f,
                              self.state == MARGIN, signs, True)
        except np.linalg.LinAlgError:
            return None
        tableau.add(others[:q])
        tableau.project(slice(0, q))
        tableau.fill(slice(0, q))
        tableau.finish()
        return tableau

    cdef bint _run(self, Tableau tableau, Py_ssize_t[::1] rows, bint labels_only):
        """Run the walks and write the values, if all end."""
        cdef Py_ssize_t g = rows.shape[0], a, b, i
        cdef double[:, ::1] ends = np.empty((4, g))
        cdef double[::1] value = ends[0], down = ends[1], up = ends[2], lower, upper
        cdef Py_ssize_t[::1] events = np.empty(g, np.intp)
        cdef Py_ssize_t[::1] begin = np.arange(min(g, AT_ONCE) + 1)
        cdef signed char[::1] status = np.empty(g, np.int8), settled = self.settled_by
        for a in range(0, g, AT_ONCE):
            b = min(a + AT_ONCE, g)
            run_walks(
                tableau, rows[a:b], begin[:b - a + 1], labels_only, value[a:b], down[a:b],
                up[a:b], ends[3, a:b], status[a:b], events[a:b], NONE_NEEDED, NO_CHANGES)
        for a in range(g):
            if status[a] > STOPPED:
                return False
            if down[a] != up[a] and self.upper is self.lower:
                self.upper = self.lower.copy()
        lower, upper = self.lower, self.upper
        for a in range(g):
            i = rows[a]
            lower[i], upper[i] = value[a] + down[a], value[a] + up[a]
            settled[i] = FIRST_SEGMENT if events[a] == 0 else WALK
            self.n_events += events[a]
        return True
