# SPDX-License-Identifier: BSD-3-Clause
"""The tableau of a full solution, as the walks read it."""

from leaveout.engine._stairs cimport Stairs

# Slots per block of vector code (_simd.h).
cdef enum:
    BLOCK = 32

# Weight of max |B_ij| against |res_i|: sum_j |Delta f_j| is about that share of |Delta w|.
cdef inline double OF_MEMBERS() noexcept nogil: return 0.2

# Memory of earlier tableaux, see _tableau_fast.pyx.
cdef borrow(list loans, tuple shape)
cdef borrow_floats(list loans, tuple shape)
cdef give_back(list loans)

cdef double add_ones(
    Py_ssize_t m, double* B, double total, const double* ones, double root, bint intercept,
) noexcept nogil


cdef class Tableau:
    cdef const double[:, ::1] K, levels
    cdef const double[::1] y, offsets, beta, f, signs
    cdef Stairs stairs
    cdef bint intercept
    cdef double c, root, scale, top, unit, tol, probe_sum, probe_f
    cdef readonly Py_ssize_t n_free, n_slots
    cdef Py_ssize_t capacity, n_old
    cdef double[:, ::1] inverse      # (m, m) L^-1
    cdef double[::1] ones            # (m,) P 1 / root, root = sqrt(1'P 1)
    cdef Py_ssize_t[::1] row         # (capacity,) sample of each slot
    cdef Py_ssize_t[::1] slot        # (n,) slot of each sample, or -1
    cdef readonly double[:, ::1] T   # (capacity, ld)
    cdef double[:, ::1] Y            # (capacity - m, m)
    cdef double[::1] d               # (capacity,)
    cdef double[:, ::1] start        # (8, ld): x, low, high, on, beta, f, probe, K probe
    cdef int[::1] state              # (capacity,)
    cdef readonly bint reached_bounds    # by the beta of a sample at the end of a walk
    cdef list loans, loans_of_M
    # The samples that had no slot when they were put in order, see sort_far
    cdef Py_ssize_t n_basis          # free samples that bound how far f can move
    cdef Py_ssize_t[::1] far         # (n_far,) in ascending order of reach
    cdef double[::1] reach           # (n_far,)
    cdef float[:, ::1] far_K         # (capacity, n_far) kernel values with the slots
    cdef float[:, ::1] far_room      # (2, n_far) ends of the range of f minus f
    cpdef bint restart(
        self, const double[::1] beta, const double[::1] f, const Py_ssize_t[::1] members)
    cpdef add(self, rows)
    cpdef project(self, part)
    cpdef fill(self, part)
    cpdef finish(self)
    cdef bint _factor(self)
    cdef void to_rows_of_B(
        self, Py_ssize_t count, Py_ssize_t m, double* Y, double* B) noexcept nogil
    cdef void _project(
        self, const Py_ssize_t* rows, Py_ssize_t count, Py_ssize_t m, const double* ones,
        double root, double* Y, double* B, double* d) noexcept nogil
