# SPDX-License-Identifier: BSD-3-Clause
"""Declaration of SMO for compiled callers."""

cpdef smo_with_intercept(
    const double[:, ::1] K, const double[::1] diag, const double[::1] y,
    const double[::1] offsets, const double[:, ::1] levels, double[::1] beta,
    double[::1] F, double tol, Py_ssize_t max_steps)
