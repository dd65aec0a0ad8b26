# SPDX-License-Identifier: BSD-3-Clause
"""Declaration of the walks for compiled callers."""

from leaveout.engine._tableau_fast cimport Tableau

cpdef run_walks(
    Tableau tableau, const Py_ssize_t[::1] members, const Py_ssize_t[::1] begin,
    bint labels_only, double[::1] value, double[::1] down, double[::1] up,
    double[::1] shift, signed char[::1] status, Py_ssize_t[::1] events,
    unsigned char[::1] needed, double[:, ::1] changes)
