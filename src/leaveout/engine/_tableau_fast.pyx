# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the factors and columns of the tableau, some at a time, for threads.

SciPy's wrappers of BLAS hold the interpreter lock; here it is free all the time.
"""

import numpy as np

from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport daxpy, dgemm, dtrmm

# Columns made by one product: enough for BLAS-3, few enough for the cache.
cdef Py_ssize_t BLOCK = 48


def fill_factors(
    const double[:, ::1] K,              # in, (n, n)
    const Py_ssize_t[::1] members,       # in, (m,) M
    const Py_ssize_t[::1] rows,          # in, (k,) samples outside M
    const double[::1, :] inverse,        # in, (m, m) upper triangular: L^-T
    const double[::1] unit,              # in, (m,) P 1 / sqrt(1'P 1); empty: no intercept
    double c,
    double[:, ::1] V,                    # out, (n, m + 2), only the given rows
    double[:, ::1] Bm,                   # out, (n, m), only the given rows
):
    """Write rows of V and Bm (see Tableau)."""
    cdef int m = <int>members.shape[0], k = <int>rows.shape[0], inc = 1
    cdef double one = 1.0, d, root = 0.0
    cdef double[:, ::1] block = np.empty((k, m))
    cdef Py_ssize_t i, j
    cdef bint intercept = unit.shape[0] > 0
    with nogil:
        for j in range(unit.shape[0]):
            root += unit[j]
        for i in range(k):
            for j in range(m):
                block[i, j] = K[rows[i], members[j]] + c
        # A C-ordered array is its transpose in Fortran: block := block L^-T
        dtrmm(b"L", b"U", b"T", b"N", &m, &k, &one, <double*>&inverse[0, 0], &m,
              &block[0, 0], &m)
        for i in range(k):
            memcpy(&V[rows[i], 0], &block[i, 0], m * sizeof(double))
            V[rows[i], m] = 0.0
            V[rows[i], m + 1] = 1.0
        # block := block L^-1 = (K_.M + c) P
        dtrmm(b"L", b"U", b"N", b"N", &m, &k, &one, <double*>&inverse[0, 0], &m,
              &block[0, 0], &m)
        for i in range(k):
            if intercept:
                d = 1.0
                for j in range(m):
                    d -= block[i, j]
                d /= root
                V[rows[i], m] = d
                # block[i] += d * unit
                daxpy(&m, &d, <double*>&unit[0], &inc, &block[i, 0], &inc)
            memcpy(&Bm[rows[i], 0], &block[i, 0], m * sizeof(double))


def write_columns(
    const double[:, ::1] K,              # in, (n, n)
    const Py_ssize_t[::1] members,       # in, (m,) M
    const Py_ssize_t[::1] place,         # in, (n,) place in members, or -1
    const double[:, ::1] V,              # in, (n, m + 2)
    const double[::1] weights,           # in, (m + 2,)
    const double[:, ::1] Bm,             # in, (n, m)
    const double[:, ::1] A,              # in, (m, m)
    const Py_ssize_t[::1] indices,       # in, (k,) whose columns
    double[:, ::1] out,                  # out, (k, n), a column a row
):
    """Write columns of the tableau."""
    cdef int n = <int>K.shape[0], n_factors = <int>V.shape[1], run
    cdef Py_ssize_t m = members.shape[0], k = 0, first, i, j, q
    cdef double one = 1.0
    cdef double[:, ::1] left = np.empty((BLOCK, n_factors))
    with nogil:
        while k < indices.shape[0]:
            j = indices[k]
            first = k
            if place[j] >= 0:
                # Columns of Bm, a cache line of them at a time.
                while k < indices.shape[0] and k - first < 8 and place[indices[k]] >= 0:
                    k += 1
                for i in range(n):
                    for q in range(first, k):
                        out[q, i] = Bm[i, place[indices[q]]]
                for i in range(first, k):
                    for q in range(m):
                        out[i, members[q]] = A[place[indices[i]], q]
                continue
            while k < indices.shape[0] and k - first < BLOCK and place[indices[k]] < 0:
                j = indices[k]
                memcpy(&out[k, 0], &K[j, 0], n * sizeof(double))
                for q in range(n_factors):
                    left[k - first, q] = weights[q] * V[j, q]
                k += 1
            run = <int>(k - first)
            # out[first:k] += left @ V.T
            dgemm(b"T", b"N", &n, &run, &n_factors, &one, <double*>&V[0, 0], &n_factors,
                  &left[0, 0], &n_factors, &one, &out[first, 0], &n)
            for i in range(first, k):
                for q in range(m):
                    out[i, members[q]] = -Bm[indices[i], q]
