# SPDX-License-Identifier: BSD-3-Clause
"""Solve a small, ordinary SVM and leave out each sample, at all C in one call.

The steps are those of ``solve_svc`` and ``loo_walk``. At a C where they need more than one
round, or what is rarely needed around them, the work ends early (Stage). Each solution
leads to the next: its coefficients are scaled to the next C, as in ``scale_bounds``.
"""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport fabs
from scipy.linalg.cython_blas cimport dgemv

from leaveout.engine._active_set_fast cimport ActiveSet, optimise
from leaveout.engine._certificate_fast cimport any_near, balance, measure, settle_members
from leaveout.engine._smo_fast cimport take_pair_steps
from leaveout.engine._stairs cimport Stairs, make_stairs
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


# Columns of facts; total = sum |beta|, open: whether lower and upper differ.
FACTS = ("stage", "steps", "total", "b", "residual", "gap", "primal", "walks", "events",
         "open")
cdef enum:
    STAGE, STEPS, TOTAL, INTERCEPT, RESIDUAL, GAP, PRIMAL, WALKS, EVENTS, IS_OPEN, N_FACTS

# Stages: as at the last C; not tried, or the solver needs another round; the dual point and
# its state, whose certificate needs more; the solution, whose walks need more; all values.
cpdef enum:
    AS_BEFORE = -1
    REFUSED = 0
    FOUND = 1
    SOLVED = 2
    LEFT_OUT = 3


cdef class Short:
    """A problem at some C, its solutions and left-out values; the stage says which."""

    cdef readonly object beta, f, state             # (n_Cs, n)
    cdef readonly object lower, upper, settled_by   # (n_Cs, n)
    cdef readonly object facts                      # (n_Cs, N_FACTS), see FACTS
    cdef readonly double top                        # largest K_ii
    cdef object K, y, levels, work, signs
    cdef const double[:, ::1] _K
    cdef const double[::1] _y, _offsets, _C
    cdef double[::1] _beta, _F, _f, _diagonal, fact
    cdef double[:, ::1] _levels
    cdef Py_ssize_t[::1] members, others
    cdef signed char[::1] _state
    cdef double least
    cdef Stairs stairs
    cdef ActiveSet active
    cdef double* smo_work
    cdef double* pivot_work
    cdef int* pivots
    cdef Tableau tableau

    def __init__(self, K, y, Cs, start, signs, bint regular, bint leave_out,
                 bint labels_only):
        """Go as far as possible at each row of ``Cs``, from ``start`` or from zero."""
        cdef Py_ssize_t n = y.shape[0], n_Cs = Cs.shape[0], k
        cdef double[:, ::1] beta, f, facts
        cdef const double[:, ::1] bounds = Cs
        cdef signed char[:, ::1] state
        self._reserve(K, y, n_Cs)
        beta, f, facts, state = self.beta, self.f, self.facts, self.state
        if leave_out:
            self.lower, self.upper = np.empty((2, n_Cs, n))
            self.settled_by, self.signs = np.zeros((n_Cs, n), np.int8), signs
        if start is not None:
            self.beta[0] = start
        self.facts[:, STAGE] = AS_BEFORE
        for k in range(n_Cs):
            PyErr_CheckSignals()
            facts[k, STAGE] = REFUSED
            self._C, self._beta, self._f, self.fact = bounds[k], beta[k], f[k], facts[k]
            self._state = state[k]
            if k > 0 and facts[k - 1, STAGE] > REFUSED:
                self._scale(bounds[k - 1], beta[k - 1])
            if self._is_ordinary():
                self.fact[STAGE] = self._solve()
            if (leave_out and self.fact[STAGE] == SOLVED
                    and self._walk(k, regular, labels_only)):
                self.fact[STAGE] = LEFT_OUT
            if self.fact[STAGE] == (LEFT_OUT if leave_out else SOLVED) and self._is_last():
                break

    cdef _reserve(self, K, y, Py_ssize_t n_Cs):
        """Take memory, and look at what does not depend on C."""
        cdef Py_ssize_t n = y.shape[0], i
        cdef double[:, ::1] work
        cdef Py_ssize_t[:, ::1] places
        cdef int[:, ::1] small
        self.K, self.y, self._K, self._y = K, y, K, y
        self.beta, self.f = np.zeros((n_Cs, n)), np.empty((n_Cs, n))
        self.facts, self.state = np.zeros((n_Cs, N_FACTS)), np.zeros((n_Cs, n), np.int8)
        self.levels = np.empty((n, 2))
        # Rows of L a multiple of 64 doubles apart share cache sets.
        self.active.ld = n + 8 if n % 64 == 0 else n
        work, places = np.empty((11, n)), np.empty((3, n), np.intp)
        L, small = np.empty((n, self.active.ld)), np.empty((2, n), np.intc)
        self.work = work, places, small, L
        self._levels, self._offsets = self.levels, NO_OFFSETS
        self._F, self._diagonal = work[0], work[1]
        self.members, self.others = places[0], places[1]
        self.smo_work, self.pivot_work, self.pivots = &work[2, 0], &work[5, 0], &small[0, 0]
        self.stairs = make_stairs(
            n, 1, &self._y[0], &self._offsets[0], &self._levels[0, 0])
        self.active.n, self.active.stairs, self.active.K = n, &self.stairs, &self._K[0, 0]
        self.active.diag, self.active.F = &self._diagonal[0], &self._F[0]
        self.active.L, self.active.state = address(L), &small[1, 0]
        self.active.u, self.active.v = &work[7, 0], &work[8, 0]
        self.active.moved, self.active.F_M = &work[9, 0], &work[10, 0]
        self.active.M, self.active.place = &self.members[0], &places[2, 0]
        self.active.intercept, self.active.outside, self.active.definite = True, 0.0, False
        self.top = self.least = self._K[0, 0]
        for i in range(n):
            self._diagonal[i] = self._K[i, i]
            self.top = max(self.top, self._K[i, i])
            self.least = min(self.least, self._K[i, i])

    cdef bint _is_last(self):
        """Whether all is the same at larger C: no beta is at a bound of it."""
        cdef Py_ssize_t i
        for i in range(self._y.shape[0]):
            if fabs(self._beta[i]) >= self._C[i]:
                return False
        return self.tableau is None or not self.tableau.reached_bounds

    cdef _scale(self, const double[::1] last, const double[::1] beta):
        """Start from the solution at another C: its bounded samples stay at their bounds."""
        cdef Py_ssize_t i
        for i in range(beta.shape[0]):
            self._beta[i] = self._C[i] * (beta[i] / last[i])

    cdef bint _is_ordinary(self):
        """Two of each class, all present, with kernel values of one size; write levels."""
        cdef Py_ssize_t n = self._y.shape[0], i
        cdef double all_C = 0.0, imbalance = 0.0, smallest = self._C[0]
        for i in range(n):
            smallest = min(smallest, self._C[i])
            all_C += self._C[i]
            imbalance += self._y[i]
            self._levels[i, 0] = self._C[i] if self._y[i] > 0.0 else 0.0
            self._levels[i, 1] = 0.0 if self._y[i] > 0.0 else -self._C[i]
        if not smallest > 0.0 or fabs(imbalance) > n - 4:
            return False
        return (0.0 < self.top <= DOMINATING * self.least
                and self.top * all_C >= SMALLEST_BOUNDS)

    cdef double _update(self):
        """F = y - K beta; return sum |beta|."""
        cdef Py_ssize_t i
        cdef int n = <int>self._y.shape[0], one = 1
        cdef double minus = -1.0, plus = 1.0, total = 0.0
        for i in range(n):
            self._F[i] = self._y[i]
            total += fabs(self._beta[i])
        if total > 0.0:
            dgemv(b"T", &n, &n, &minus, <double*>&self._K[0, 0], &n, &self._beta[0], &one,
                  &plus, &self._F[0], &one)
        return total

    cdef int _solve(self):
        """SMO and active set, one round."""
        cdef Py_ssize_t n = self._y.shape[0], i, steps, more
        cdef double violation, worst, off, tight, b, total = 0.0
        cdef bint stays, is_free
        cdef Py_ssize_t[::1] members
        self._update()
        with nogil:
            steps = take_pair_steps(
                &self.stairs, &self._K[0, 0], &self._diagonal[0], &self._beta[0],
                &self._F[0], self.smo_work, SMO_ENDS, SMO_STEPS * n, &violation)
        if not violation <= SMO_ENDS:
            return REFUSED
        for i in range(n):
            total += fabs(self._beta[i])
        tight = ROUNDING * max(1.0, self.top * total)
        self.active.beta = &self._beta[0]
        with nogil:
            violation = optimise(
                &self.active, self.pivot_work, self.pivots, tight, 20 * n, max(1, n // 20),
                &more)
        if not violation <= tight:
            return REFUSED
        self.fact[STEPS] = steps + more
        members = self.members[:self.active.m]
        balance(self._offsets, self._levels, self._beta, members)
        self._update()
        stays, is_free, b = settle_members(
            self._offsets, self._levels, self._C, self._beta, self._F, members, 0.0)
        for i in range(n):
            self._f[i] = self._y[i] - self._F[i] + b
            self._state[i] = BOUNDED if self._beta[i] != 0.0 else 0
        for i in range(members.shape[0]):
            self._state[members[i]] = MARGIN
        worst, off, total, self.fact[PRIMAL], self.fact[GAP] = measure(
            self._y, self._offsets, self._levels, self._beta, self._f, b)
        off = fabs(off) / total if total > 0.0 else 0.0
        worst = max(worst, off)
        self.fact[TOTAL], self.fact[INTERCEPT], self.fact[RESIDUAL] = total, b, worst
        return SOLVED if stays and is_free and worst <= OPTIMAL else FOUND

    cdef bint _walk(self, Py_ssize_t k, bint regular, bint labels_only):
        """Leave out each sample; return whether all walks end."""
        cdef Py_ssize_t[::1] rows
        if not regular and any_near(
                self._K, self._y, self._beta, self._f, NEAR * self.top):
            return False
        self.lower[k] = self.upper[k] = self.f[k]
        rows = self._settle(self.settled_by[k], labels_only)
        self.fact[WALKS] = rows.shape[0]
        if rows.shape[0] == 0:
            return True
        return self._make_tableau(k) and self._run(k, rows, labels_only)

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

    cdef bint _make_tableau(self, Py_ssize_t k):
        """Go to the tableau on all samples; return whether M is regular."""
        cdef Py_ssize_t n = self._y.shape[0], i, m = 0, q = 0
        cdef double reach = REACH * self.fact[TOTAL]
        for i in range(n):
            # as cap_unreachable_bounds does
            self._levels[i, 0] = min(self._levels[i, 0], reach)
            self._levels[i, 1] = max(self._levels[i, 1], -reach)
            if self._state[i] == MARGIN:
                self.members[m] = i
                m += 1
            else:
                self.others[q] = i
                q += 1
        if self.tableau is None:
            try:
                self.tableau = Tableau(
                    self.K, self.y, NO_OFFSETS, self.levels, self.beta[k], self.f[k],
                    self.state[k] == MARGIN, self.signs, True)
            except np.linalg.LinAlgError:
                return False
        elif not self.tableau.restart(self._beta, self._f, self.members[:m]):
            return False
        self.tableau.add(self.others[:q])
        self.tableau.project(slice(0, q))
        self.tableau.fill(slice(0, q))
        self.tableau.finish()
        return True

    cdef bint _run(self, Py_ssize_t k, Py_ssize_t[::1] rows, bint labels_only):
        """Run the walks and write the values, if all end."""
        cdef Py_ssize_t g = rows.shape[0], a, b, i
        cdef double[:, ::1] ends = np.empty((4, g))
        cdef double[::1] value = ends[0], down = ends[1], up = ends[2]
        cdef double[::1] lower = self.lower[k], upper = self.upper[k]
        cdef Py_ssize_t[::1] events = np.empty(g, np.intp)
        cdef Py_ssize_t[::1] begin = np.arange(min(g, AT_ONCE) + 1)
        cdef signed char[::1] status = np.empty(g, np.int8), settled = self.settled_by[k]
        for a in range(0, g, AT_ONCE):
            b = min(a + AT_ONCE, g)
            run_walks(
                self.tableau, rows[a:b], begin[:b - a + 1], labels_only, value[a:b],
                down[a:b], up[a:b], ends[3, a:b], status[a:b], events[a:b], NONE_NEEDED,
                NO_CHANGES)
        for a in range(g):
            i = rows[a]
            if status[a] > STOPPED:
                return False
            lower[i], upper[i] = value[a] + down[a], value[a] + up[a]
            settled[i] = FIRST_SEGMENT if events[a] == 0 else WALK
            self.fact[EVENTS] += events[a]
            if down[a] != up[a]:
                self.fact[IS_OPEN] = 1.0
        return True


cdef double* address(double[:, ::1] array):
    """Where an array begins."""
    return &array[0, 0]
