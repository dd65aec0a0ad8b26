# SPDX-License-Identifier: BSD-3-Clause
"""Declarations of _stairs.h, the staircases of solver and walks."""

cdef extern from "_stairs.h":
    double FAR
    ctypedef struct Stairs:
        Py_ssize_t n
        Py_ssize_t n_kinks
        const double* y
        const double* offset
        const double* level
    double kink_of(const Stairs*, Py_ssize_t, Py_ssize_t) noexcept nogil
    double level_of(const Stairs*, Py_ssize_t, Py_ssize_t) noexcept nogil
    double total_height(const Stairs*, Py_ssize_t) noexcept nogil
    double nearest_level(const Stairs*, Py_ssize_t, double) noexcept nogil
    int state_of(const Stairs*, Py_ssize_t, double) noexcept nogil
    void range_of(const Stairs*, Py_ssize_t, int, double*, double*) noexcept nogil
    Stairs make_stairs(Py_ssize_t, Py_ssize_t, const double*, const double*,
                       const double*) noexcept nogil
