# SPDX-License-Identifier: BSD-3-Clause
"""Declaration of SMO for compiled callers."""

from leaveout.engine._stairs cimport Stairs

cdef Py_ssize_t take_pair_steps(
    const Stairs* s, const double* K, const double* diag, double* beta, double* F,
    double* work, double tol, Py_ssize_t max_steps, double* violation) noexcept nogil
