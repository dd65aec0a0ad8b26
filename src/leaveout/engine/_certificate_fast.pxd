# SPDX-License-Identifier: BSD-3-Clause
"""Declarations of the loops behind a certificate for compiled callers."""

cpdef measure(
    const double[::1] y, const double[::1] offsets, const double[:, ::1] levels,
    const double[::1] beta, const double[::1] f, double b)
cpdef settle_members(
    const double[::1] offsets, const double[:, ::1] levels, const double[::1] C,
    double[::1] beta, const double[::1] F, const Py_ssize_t[::1] members, double unseen)
cpdef balance(
    const double[::1] offsets, const double[:, ::1] levels, double[::1] beta,
    const Py_ssize_t[::1] members)
cpdef any_near(
    const double[:, ::1] K, const double[::1] y, const double[::1] beta,
    const double[::1] f, double reach)
