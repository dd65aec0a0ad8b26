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
    SQUARES      max(0, |x|^2 + |y|^2 - 2 v)

exp and tanh use x = k log(2) + z, |z| <= log(2) / 2, and a polynomial for exp(z) - 1, which
compilers vectorise. exp is within 1 ulp of the exact value, never above 1 for x <= 0, and 0
below -708; tanh is within 3 ulp.
"""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport uint64_t
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport dgemm, dgemv, dsyrk, sgemm, sgemv

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

    WIDEST static void apply_squares(
        long n, double square, const double *squares, double *v)
    {
        for (long j = 0; j < n; j++) {
            double d = square + squares[j] - 2.0 * v[j];
            v[j] = d < 0.0 ? 0.0 : d;
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

    /* exp(x) for x <= 0 in single precision: within 2e-7 of the exact value, 0 below -87. */
    static inline float exp_negative_float(float x)
    {
        const float shift = 12582912.0f;
        float y = x < -87.0f ? -87.0f : x, shifted = y * 1.44269504f + shift;
        float k = shifted - shift, z = (y - k * 0.693359375f) + k * 2.12194440e-4f, q, scale;
        uint32_t bits;
        q = 1.0f / 5040.0f;
        q = q * z + 1.0f / 720.0f;
        q = q * z + 1.0f / 120.0f;
        q = q * z + 1.0f / 24.0f;
        q = q * z + 1.0f / 6.0f;
        q = q * z + 0.5f;
        memcpy(&bits, &shifted, sizeof bits);
        bits = (bits + 127) << 23;
        memcpy(&scale, &bits, sizeof bits);
        return x < -87.0f ? 0.0f : scale * (1.0f + (z + z * z * q));
    }

    /* apply_rbf in single precision. */
    WIDEST static void apply_rbf_float(
        long n, float gamma, float square, const float *squares, float *v)
    {
        for (long j = 0; j < n; j++) {
            float d = square + squares[j] - 2.0f * v[j];
            v[j] = exp_negative_float(-gamma * (d < 0.0f ? 0.0f : d));
        }
    }

    /* out = (x - origin) factor, with fill where x is NaN; return its squared length.
       origin, factor and fill may be NULL. */
    WIDEST static double shift_row(
        long p, const double *x, const double *fill, const double *origin,
        const double *factor, double *out)
    {
        double sum[8] = {0.0};
        for (long j = 0; j < p; j++)
            out[j] = fill && x[j] != x[j] ? fill[j] : x[j];
        for (long j = 0; origin && j < p; j++)
            out[j] -= origin[j];
        for (long j = 0; factor && j < p; j++)
            out[j] *= factor[j];
        for (long j = 0; j + 8 <= p; j += 8)
            for (long a = 0; a < 8; a++)
                sum[a] += out[j + a] * out[j + a];
        for (long j = p / 8 * 8; j < p; j++)
            sum[0] += out[j] * out[j];
        return ((sum[0] + sum[1]) + (sum[2] + sum[3]))
            + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
    }

    WIDEST static void convert_row(long p, const double *x, float *out)
    {
        for (long j = 0; j < p; j++)
            out[j] = (float)x[j];
    }

    /* (z_i - z_j)^2 for all j <= i. */
    WIDEST static void write_pairs(long n, const float *z, float *out)
    {
        for (long i = 0; i < n; out += ++i)
            for (long j = 0; j <= i; j++)
                out[j] = (z[i] - z[j]) * (z[i] - z[j]);
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

    /* Values that are not finite, or differ from those of y. */
    WIDEST static long count_unequal(long n, const double *x, const double *y)
    {
        long count = 0;
        for (long j = 0; j < n; j++)
            count += !(x[j] == y[j]) | !(fabs(x[j]) <= DBL_MAX);
        return count;
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
    void apply_squares(long, double, const double*, double*) noexcept nogil
    double shift_row(long, const double*, const double*, const double*, const double*,
                     double*) noexcept nogil
    void convert_row(long, const double*, float*) noexcept nogil
    void apply_rbf_float(long, float, float, const float*, float*) noexcept nogil
    void apply_tanh(long, double, double, double*) noexcept nogil
    void write_pairs(long, const float*, float*) noexcept nogil
    void apply_power(long, double, double, long, double*, double*) noexcept nogil
    long count_not_finite(long, const double*) noexcept nogil
    void write_transposed(long, long, const double*, long, double*, long) noexcept nogil
    long count_unequal(long, const double*, const double*) noexcept nogil
    uint64_t hash_row(long, const double*) noexcept nogil

cdef enum:
    TILE = 192      # 288 KB: fits into the second-level cache
    SIDE = 32       # of blocks that are compared with their mirror images

# Rows per call of fill_rows.
TILE_ROWS = TILE


cpdef enum Formula:
    LINEAR = 0
    POLY = 1
    SIGMOID = 2
    RBF = 3
    LAPLACIAN = 4
    SQUARES = 5


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


def is_finite(
    const double[:, ::1] X,         # in, (n, p)
):
    """Whether all values are finite."""
    cdef long size = X.shape[0] * X.shape[1]
    with nogil:
        size = count_not_finite(size, &X[0, 0]) if size > 0 else 0
    return size == 0


def is_symmetric(
    const double[:, ::1] K,         # in, (n, n)
):
    """Whether all values are finite and equal, to the last bit, to their mirror images."""
    cdef double mirror[SIDE * SIDE]
    cdef Py_ssize_t n = K.shape[0], blocks = (n + SIDE - 1) // SIDE, ti, tj, i, j, a
    cdef long rows, columns, bad = 0
    with nogil:
        for ti in range(blocks):
            i = ti * SIDE
            rows = min(SIDE, n - i)
            for tj in range(ti, blocks):
                j = tj * SIDE
                columns = min(SIDE, n - j)
                write_transposed(columns, rows, &K[j, i], n, mirror, SIDE)
                for a in range(rows):
                    bad += count_unequal(columns, &K[i + a, j], mirror + a * SIDE)
            if bad:
                break
    return bad == 0


def squared_norms(
    const double[:, ::1] X,         # in, (n, p)
):
    """Return the sum of squares of each row."""
    cdef Py_ssize_t i, n = X.shape[0], p = X.shape[1]
    cdef double[::1] work = np.empty(p)
    cdef double[::1] squares = np.empty(n)
    with nogil:
        for i in range(n):
            squares[i] = shift_row(p, &X[i, 0], NULL, NULL, NULL, &work[0])
    return np.asarray(squares)


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
        elif kernel.formula == SQUARES:
            apply_squares(n, squares_X[i], squares_Y + first, v)
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
            elif kernel.formula == SQUARES:
                tile[i * ld + i] = 0.0
    return bad


cdef class FoldGram:
    """Kernel values of one fold after another, without the complete Gram matrix.

    ``load`` sets the features of a fold, or the products or distances that the formula is
    applied to; ``arrange`` the order of the samples, in which all positions count.
    """

    cdef Kernel kernel
    cdef double scale
    cdef Py_ssize_t origin
    cdef const double[:, ::1] Z         # (n, p), or (n, n) if given
    cdef const double[::1] factor, fill  # (p,)
    cdef bint given
    cdef const Py_ssize_t[::1] order    # (n,)
    cdef double[:, ::1] rows            # (n, p) in this order, about the origin
    cdef float[:, ::1] rows32
    cdef double[::1] squares            # (n,)
    cdef float[::1] squares32
    cdef long bad                       # rows that are not finite
    cdef double[::1] tile               # work, TILE + TILE x TILE
    cdef float[::1] tile32
    cdef object memory                  # of the matrix that square returns

    def __init__(self):
        self.tile = np.empty(TILE + TILE * TILE)
        self.tile32 = np.empty(TILE * TILE, np.float32)
        self.memory = np.empty(0)

    def load(
        self,
        const double[:, ::1] Z,     # in, (n, p) features, or (n, n) if given
        Formula formula,
        double gamma=1.0,
        long degree=3,
        double coef0=0.0,
        double scale=1.0,           # factor of all kernel values
        Py_ssize_t origin=-1,       # sample at which distances are measured from; or none
        bint given=False,
        const double[::1] factor=None,      # in, (p,) of the features
        const double[::1] fill=None,        # in, (p,) in place of NaN
    ):
        """Start a kernel of a fold from its features, or what the formula is applied to."""
        self.kernel = Kernel(formula, gamma, coef0, degree)
        self.Z, self.given, self.scale, self.origin = Z, given, scale, origin
        self.factor, self.fill = factor, fill

    def arrange(self, const Py_ssize_t[::1] order):
        """Set the order of the samples."""
        cdef Py_ssize_t n = self.Z.shape[0], p = self.Z.shape[1], i
        cdef double total
        cdef bint single = self.kernel.formula == RBF
        self.order, self.bad = order, 0
        if self.given:
            return
        if self.rows is None or self.rows.shape[0] != n or self.rows.shape[1] != p:
            self.rows, self.squares = np.empty((n, p)), np.empty(n)
            self.rows32 = None
        if single and self.rows32 is None:
            self.rows32, self.squares32 = (
                np.empty(shape, np.float32) for shape in ((n, p), n))
        cdef const double* origin = NULL
        cdef const double* factor = NULL
        cdef const double* fill = NULL
        cdef double[::1] start
        if self.fill is not None:
            fill = &self.fill[0]
        if self.origin >= 0:
            start = np.empty(p)
            shift_row(p, &self.Z[self.origin, 0], fill, NULL, NULL, &start[0])
            origin = &start[0]
        if self.factor is not None:
            factor = &self.factor[0]
        with nogil:
            for i in range(n):
                total = shift_row(p, &self.Z[order[i], 0], fill, origin, factor,
                                  &self.rows[i, 0])
                self.squares[i] = total
                self.bad += not total < INFINITY
                if single:
                    self.squares32[i] = <float>total
                    convert_row(p, &self.rows[i, 0], &self.rows32[i, 0])

    def square(self, Py_ssize_t k, K=None):
        """Return the kernel values between the first k samples, and how many are not finite.

        They are written to K, (k, k); without it, the next call overwrites them.
        """
        if K is None:
            if self.memory.size < k * k:
                self.memory = np.empty(k * k)
            K = self.memory[:k * k].reshape(k, k)
        cdef double[:, ::1] out = K
        cdef double* work = &self.tile[0]
        cdef double* tile = work + TILE
        cdef Py_ssize_t i, j, a, ti, tj, rows, columns
        cdef long bad = self.bad
        with nogil:
            for ti in range((k + TILE - 1) // TILE):
                i = ti * TILE
                rows = min(TILE, k - i)
                for tj in range(ti, (k + TILE - 1) // TILE):
                    j = tj * TILE
                    columns = min(TILE, k - j)
                    bad += self._fill(i, rows, j, columns, tile, work)
                    for a in range(rows):
                        memcpy(&out[i + a, j], tile + a * TILE, columns * sizeof(double))
                    if j > i:
                        write_transposed(rows, columns, tile, TILE, &out[j, i], k)
        return K, bad

    cdef long _fill(
        self, Py_ssize_t i, Py_ssize_t rows, Py_ssize_t j, Py_ssize_t columns,
        double* tile, double* work,
    ) noexcept nogil:
        """Write a tile of kernel values, TILE long; count those that are not finite."""
        cdef int width = <int>columns, height = <int>rows, ld = TILE, p
        cdef double one = 1.0, zero = 0.0
        cdef const double* squares = NULL
        cdef const double* row
        cdef const Py_ssize_t* column = &self.order[j]
        cdef Py_ssize_t a, b
        cdef long bad
        cdef bint diagonal = i == j and rows == columns
        if self.given:
            for a in range(rows):
                row = &self.Z[self.order[i + a], 0]
                for b in range(a // LINE * LINE if diagonal else 0, columns):
                    tile[a * TILE + b] = row[column[b]]
        else:
            p = <int>self.rows.shape[1]
            squares = &self.squares[0]
            if diagonal:
                # the upper triangle of rows[i : i + rows] @ rows[i : i + rows].T
                dsyrk("L", "T", &width, &p, &one, &self.rows[i, 0], &p, &zero, tile, &ld)
                for a in range(rows):
                    for b in range(a // LINE * LINE, a):
                        tile[a * TILE + b] = tile[b * TILE + a]
            else:
                # tile = rows[i : i + rows] @ rows[j : j + columns].T
                dgemm("T", "N", &width, &height, &p, &one, &self.rows[j, 0], &p,
                      &self.rows[i, 0], &p, &zero, tile, &ld)
        bad = apply_kernel(&self.kernel, rows, columns, diagonal, squares + i, squares + j,
                           tile, TILE, work)
        if self.scale != 1.0:
            for a in range(rows):
                for b in range(columns):
                    tile[a * TILE + b] *= self.scale
        return bad

    def products(
        self,
        Py_ssize_t first,               # rows first to stop
        Py_ssize_t stop,
        Py_ssize_t start,               # columns start to start + len(beta)
        const double[::1] beta,         # in, (m,)
        bint exact=True,                # or in single precision, where that is faster
    ):
        """Return kernel values times beta, (stop - first,), and a bound of their errors."""
        cdef Py_ssize_t m = beta.shape[0]
        values = np.zeros(stop - first)
        errors = None
        if m == 0 or stop == first:
            return values, errors
        if self.kernel.formula == LINEAR and not self.given:
            self._multiply_linear(first, stop, start, beta, values)
        elif exact or self.given or self.kernel.formula != RBF:
            self._multiply(first, stop, start, beta, values)
        else:
            errors = np.empty(stop - first)
            self._multiply_float(first, stop, start, beta, values, errors)
        return values, errors

    cdef void _multiply_linear(
        self, Py_ssize_t first, Py_ssize_t stop, Py_ssize_t start, const double[::1] beta,
        double[::1] out,
    ):
        """Write X (X' beta), without K."""
        cdef int p = <int>self.rows.shape[1], m = <int>beta.shape[0], one = 1
        cdef int height = <int>(stop - first)
        cdef double zero = 0.0, unit = 1.0
        cdef double[::1] w = np.empty(p)
        with nogil:
            dgemv("N", &p, &m, &unit, &self.rows[start, 0], &p, <double*>&beta[0], &one,
                  &zero, &w[0], &one)
            dgemv("T", &p, &height, &self.scale, &self.rows[first, 0], &p, &w[0], &one,
                  &zero, &out[0], &one)

    cdef void _multiply(
        self, Py_ssize_t first, Py_ssize_t stop, Py_ssize_t start, const double[::1] beta,
        double[::1] out,
    ):
        """Add kernel values times beta, tile by tile."""
        cdef double* work = &self.tile[0]
        cdef double* tile = work + TILE
        cdef Py_ssize_t i, j, ti, tj, m = beta.shape[0]
        cdef int rows, columns, ld = TILE, inc = 1
        cdef double one = 1.0
        with nogil:
            for ti in range((stop - first + TILE - 1) // TILE):
                i = first + ti * TILE
                rows = min(TILE, stop - i)
                for tj in range((m + TILE - 1) // TILE):
                    j = tj * TILE
                    columns = min(TILE, m - j)
                    self._fill(i, rows, start + j, columns, tile, work)
                    # out += tile @ beta
                    dgemv("T", &columns, &rows, &one, tile, &ld, <double*>&beta[j], &inc,
                          &one, &out[i - first], &inc)

    cdef void _multiply_float(
        self, Py_ssize_t first, Py_ssize_t stop, Py_ssize_t start, const double[::1] beta,
        double[::1] out, double[::1] errors,
    ):
        """The same for the RBF kernel in single precision.

        With u = 2^-24 an inner product of p terms is within p u |x| |y|, and exp changes by
        less than its argument; sums of m terms add m u times their sizes.
        """
        cdef Py_ssize_t i, j, a, ti, tj, m = beta.shape[0]
        cdef int rows, columns, ld = TILE, inc = 1, p = <int>self.rows.shape[1]
        cdef float[::1] tile = self.tile32
        cdef float[::1] beta32 = np.asarray(beta, dtype=np.float32)
        cdef float[::1] part = np.empty(TILE, np.float32)
        cdef float one = 1.0, zero = 0.0
        cdef double size = 0.0, reach = 0.0, far = 0.0, length, u = 2.0**-24
        cdef double gamma = self.kernel.gamma
        with nogil:
            for j in range(m):
                length = self.squares[start + j] ** 0.5
                size += abs(beta[j])
                reach += abs(beta[j]) * length
                far += abs(beta[j]) * length * length
            for i in range(first, stop):
                length = self.squares[i] ** 0.5
                errors[i - first] = abs(self.scale) * (
                    gamma * u * ((2 * p + 8) * length * reach
                                 + 4.0 * (far + size * length * length))
                    + size * (2e-7 + (min(m, TILE) + 4) * u))
            for ti in range((stop - first + TILE - 1) // TILE):
                i = first + ti * TILE
                rows = min(TILE, stop - i)
                for tj in range((m + TILE - 1) // TILE):
                    j = tj * TILE
                    columns = min(TILE, m - j)
                    sgemm("T", "N", &columns, &rows, &p, &one, &self.rows32[start + j, 0],
                          &p, &self.rows32[i, 0], &p, &zero, &tile[0], &ld)
                    for a in range(rows):
                        apply_rbf_float(columns, <float>gamma, self.squares32[i + a],
                                        &self.squares32[start + j], &tile[a * TILE])
                    # part = tile @ beta
                    sgemv("T", &columns, &rows, &one, &tile[0], &ld, &beta32[j], &inc, &zero,
                          &part[0], &inc)
                    for a in range(rows):
                        out[i - first + a] += self.scale * part[a]


def squared_differences(
    const float[:, ::1] Z,          # in, (p, n)
    float[:, ::1] out,              # out, (p, n (n + 1) / 2)
):
    """Write those of all pairs of samples, in the order of np.tril_indices(n)."""
    cdef Py_ssize_t k
    with nogil:
        for k in range(Z.shape[0]):
            write_pairs(Z.shape[1], &Z[k, 0], &out[k, 0])


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
