# SPDX-License-Identifier: BSD-3-Clause
"""Gram matrices in tiles, and equal rows of a matrix.

A strip of rows of K is computed in square tiles that fit into the cache. Each tile of inner
products (dgemm) becomes kernel values in place, and is then written to K and, if K is
symmetric, to its mirror image below the diagonal. With v = <x, y>, or a distance::

    LINEAR       v
    POLY         (gamma v + coef0)^degree
    SIGMOID      tanh(gamma v + coef0)
    RBF          exp(-gamma max(0, |x|^2 + |y|^2 - 2 v))
    LAPLACIAN    exp(-gamma v),    v = |x - y|_1

exp and tanh use x = k log(2) + z, |z| <= log(2) / 2, and a polynomial for exp(z) - 1, which
compilers vectorise. exp is within 1 ulp of the exact value, never above 1 for x <= 0, and 0
below -708; tanh is within 3 ulp.
"""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport uint64_t
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport dgemm

cdef extern from "_simd.h":
    pass

cdef extern from *:
    """
    #include <float.h>
    #include <stdint.h>

    /* Rows that are transposed together: a row of 8 is a cache line. */
    #define LINE 8

    /* exp(x) = scale * (1 + the result), for |x| <= 708. Taylor's series of exp(z) - 1 up to
       z^13 leaves out less than 5e-18. Adding 1.5 * 2^52 rounds to an integer, which is then
       in the low bits. */
    static inline double reduced_expm1(double x, double *scale)
    {
        const double shift = 6755399441055744.0;
        double shifted = x * 1.4426950408889634074 + shift, k = shifted - shift;
        double z = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
        double q = 1.0 / 6227020800.0;
        uint64_t bits;
        q = q * z + 1.0 / 479001600.0;
        q = q * z + 1.0 / 39916800.0;
        q = q * z + 1.0 / 3628800.0;
        q = q * z + 1.0 / 362880.0;
        q = q * z + 1.0 / 40320.0;
        q = q * z + 1.0 / 5040.0;
        q = q * z + 1.0 / 720.0;
        q = q * z + 1.0 / 120.0;
        q = q * z + 1.0 / 24.0;
        q = q * z + 1.0 / 6.0;
        q = q * z + 0.5;
        memcpy(&bits, &shifted, sizeof bits);
        bits = (bits + 1023) << 52;
        memcpy(scale, &bits, sizeof bits);
        return z + z * z * q;
    }

    /* exp(x) for x <= 0; NaN stays NaN. */
    static inline double exp_negative(double x)
    {
        double scale, r = reduced_expm1(x < -708.0 ? -708.0 : x, &scale);
        return x < -708.0 ? 0.0 : scale * (1.0 + r);
    }

    /* v = exp(-gamma |x - y|^2) from v = <x, y>; square = |x|^2, squares = |y|^2. */
    WIDEST static void apply_rbf(
        long n, double gamma, double square, const double *squares, double *v)
    {
        for (long j = 0; j < n; j++) {
            double d = square + squares[j] - 2.0 * v[j];
            v[j] = exp_negative(-gamma * (d < 0.0 ? 0.0 : d));
        }
    }

    WIDEST static void apply_exp(long n, double gamma, double *v)
    {
        for (long j = 0; j < n; j++)
            v[j] = exp_negative(-gamma * v[j]);
    }

    /* tanh(u) = -m / (2 + m) with m = exp(-2 u) - 1, for u >= 0. */
    WIDEST static void apply_tanh(long n, double gamma, double coef0, double *v)
    {
        for (long j = 0; j < n; j++) {
            double u = gamma * v[j] + coef0, x = -2.0 * fabs(u), scale, m;
            m = reduced_expm1(x < -708.0 ? -708.0 : x, &scale);
            m = scale * m + (scale - 1.0);
            v[j] = copysign(m / (2.0 + m), u);
        }
    }

    /* Repeated squaring; n <= TILE. */
    WIDEST static void apply_power(
        long n, double gamma, double coef0, long degree, double *v, double *factor)
    {
        for (long j = 0; j < n; j++) {
            factor[j] = gamma * v[j] + coef0;
            v[j] = 1.0;
        }
        for (; degree; degree /= 2) {
            if (degree % 2)
                for (long j = 0; j < n; j++)
                    v[j] *= factor[j];
            if (degree > 1)
                for (long j = 0; j < n; j++)
                    factor[j] *= factor[j];
        }
    }

    WIDEST static long count_not_finite(long n, const double *v)
    {
        long count = 0;
        for (long j = 0; j < n; j++)
            count += !(fabs(v[j]) <= DBL_MAX);
        return count;
    }

    /* to = from', (columns, rows); both row-major, ld and ld_to long. */
    static void write_transposed(
        long rows, long columns, const double *from, long ld, double *to, long ld_to)
    {
        for (long b = 0; b < columns; b += LINE)
            for (long a = 0; a < rows; a += LINE) {
                long last_i = rows - a < LINE ? rows : a + LINE;
                long last_j = columns - b < LINE ? columns : b + LINE;
                for (long j = b; j < last_j; j++)
                    for (long i = a; i < last_i; i++)
                        to[j * ld_to + i] = from[i * ld + j];
            }
    }

    /* A number that equal rows share; the bits of -0.0 count as those of 0.0. */
    static uint64_t hash_row(long p, const double *x)
    {
        uint64_t hash = 0, bits;
        for (long j = 0; j < p; j++) {
            memcpy(&bits, x + j, sizeof bits);
            hash = (hash ^ (bits == (uint64_t)1 << 63 ? 0 : bits)) * 0x9E3779B97F4A7C15u;
            hash ^= hash >> 32;
        }
        return hash;
    }
    """
    enum:
        LINE
    void apply_rbf(long, double, double, const double*, double*) noexcept nogil
    void apply_exp(long, double, double*) noexcept nogil
    void apply_tanh(long, double, double, double*) noexcept nogil
    void apply_power(long, double, double, long, double*, double*) noexcept nogil
    long count_not_finite(long, const double*) noexcept nogil
    void write_transposed(long, long, const double*, long, double*, long) noexcept nogil
    uint64_t hash_row(long, const double*) noexcept nogil

cdef enum:
    TILE = 192      # 288 KB: fits into the second-level cache

# Rows per call of fill_rows.
TILE_ROWS = TILE


cpdef enum Formula:
    LINEAR = 0
    POLY = 1
    SIGMOID = 2
    RBF = 3
    LAPLACIAN = 4


cdef struct Kernel:
    Formula formula
    double gamma
    double coef0
    long degree


def fill_rows(
    const double[:, ::1] X,         # in, (n, p), or None: K has the products or distances
    const double[:, ::1] Y,         # in, (m, p), or None; X itself if symmetric
    const double[::1] squares_X,    # in, (n,) |x|^2, for RBF
    const double[::1] squares_Y,    # in, (m,) |y|^2, for RBF
    Formula formula,
    double gamma,
    long degree,
    double coef0,
    bint symmetric,
    Py_ssize_t start,
    Py_ssize_t stop,                # at most TILE_ROWS more than start
    double[:, ::1] K,               # out, (n, m)
):
    """Write K[start:stop]; return how many values are not finite.

    If symmetric, only K[start:stop, start:] and its mirror image are written.
    """
    cdef Kernel kernel = Kernel(formula, gamma, coef0, degree)
    cdef Py_ssize_t m = K.shape[1], column = start if symmetric else 0
    cdef int rows = stop - start, columns, ld = min(TILE, m - column), p
    cdef double[::1] work = np.empty(TILE + rows * ld)
    cdef double* tile = &work[TILE]
    cdef double one = 1.0, zero = 0.0
    cdef long bad = 0
    cdef Py_ssize_t i
    with nogil:
        while column < m:
            columns = min(TILE, m - column)
            if X is not None:
                p = X.shape[1]
                # tile = X[start:stop] @ Y[column : column + columns].T
                dgemm("T", "N", &columns, &rows, &p, &one, <double*>&Y[column, 0],
                      &p, <double*>&X[start, 0], &p, &zero, tile, &ld)
            else:
                for i in range(rows):
                    memcpy(tile + i * ld, &K[start + i, column], columns * sizeof(double))
            bad += apply_kernel(&kernel, rows, columns, symmetric and column == start,
                                &squares_X[start], &squares_Y[column], tile, ld, &work[0])
            for i in range(rows):
                memcpy(&K[start + i, column], tile + i * ld, columns * sizeof(double))
            if symmetric and column > start:
                write_transposed(rows, columns, tile, ld, &K[column, start], m)
            column += columns
    return bad


cdef long apply_kernel(
    const Kernel* kernel,
    Py_ssize_t rows,
    Py_ssize_t columns,
    bint diagonal,                  # compute the upper triangle, and mirror it
    const double* squares_X,        # in, (rows,)
    const double* squares_Y,        # in, (columns,)
    double* tile,                   # in, out, (rows, ld)
    Py_ssize_t ld,
    double* factor,                 # work, (TILE,)
) noexcept nogil:
    """Replace products or distances by kernel values; count those that are not finite."""
    cdef Py_ssize_t i, j, first, n
    cdef double* v
    cdef long bad = 0
    for i in range(rows):
        first = i // LINE * LINE if diagonal else 0
        n = columns - first
        v = tile + i * ld + first
        if kernel.formula == RBF:
            apply_rbf(n, kernel.gamma, squares_X[i], squares_Y + first, v)
        elif kernel.formula == LAPLACIAN:
            apply_exp(n, kernel.gamma, v)
        elif kernel.formula == SIGMOID:
            apply_tanh(n, kernel.gamma, kernel.coef0, v)
        elif kernel.formula == POLY:
            apply_power(n, kernel.gamma, kernel.coef0, kernel.degree, v, factor)
        bad += count_not_finite(n, v)
    if diagonal:
        for i in range(rows):
            for j in range(i):
                tile[i * ld + j] = tile[j * ld + i]
            if kernel.formula == RBF:
                tile[i * ld + i] = 1.0
    return bad


def nearest_to_mean(
    const double[:, ::1] X,         # in, (n, p)
):
    """Return the index of the row nearest to the mean of all rows; 0 if that overflows."""
    cdef Py_ssize_t n = X.shape[0], p = X.shape[1], i, j, nearest = 0
    cdef double[::1] mean = np.zeros(p)
    cdef double distance, least = INFINITY
    with nogil:
        for i in range(n):
            for j in range(p):
                mean[j] += X[i, j] / n
        for i in range(n):
            distance = 0.0
            for j in range(p):
                distance += (X[i, j] - mean[j]) * (X[i, j] - mean[j])
            if distance < least:
                least, nearest = distance, i
    return nearest


def first_equal(
    const double[:, ::1] X,         # in, (n, p)
    Py_ssize_t[::1] first,          # out, (n,)
):
    """Write the index of the first row equal to each row; return how many are repeated.

    A hash table, with at most two thirds of its slots used, finds candidates, which are
    then compared.
    """
    cdef Py_ssize_t n = X.shape[0], p = X.shape[1], size = 2, i, slot, repeated = 0
    while 2 * size < 3 * n:
        size *= 2
    cdef Py_ssize_t[::1] table = np.full(size, -1, dtype=np.intp)
    cdef uint64_t[::1] hashes = np.empty(n, dtype=np.uint64)
    with nogil:
        for i in range(n):
            hashes[i] = hash_row(p, &X[i, 0])
            slot = <Py_ssize_t>(hashes[i] & <uint64_t>(size - 1))
            while table[slot] >= 0 and not (
                hashes[table[slot]] == hashes[i]
                and are_equal(p, &X[table[slot], 0], &X[i, 0])
            ):
                slot = (slot + 1) & (size - 1)
            if table[slot] < 0:
                table[slot] = i
            else:
                repeated += 1
            first[i] = table[slot]
    return repeated


cdef inline bint are_equal(Py_ssize_t p, const double* x, const double* y) noexcept nogil:
    """Whether two rows are equal; -0.0 equals 0.0."""
    cdef Py_ssize_t j
    for j in range(p):
        if x[j] != y[j]:
            return False
    return True
