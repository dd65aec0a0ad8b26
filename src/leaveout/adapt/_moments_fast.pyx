# SPDX-License-Identifier: BSD-3-Clause
"""Mean and variance of columns in every fold, by subtracting the left-out rows."""

import numpy as np

cdef extern from "_simd.h":
    pass

cdef extern from *:
    """
    /* first += d, second += d^2 with d = x - centre. */
    WIDEST static void add_powers(
        long p, const double *x, const double *centre, double *first, double *second)
    {
        for (long j = 0; j < p; j++) {
            double d = x[j] - centre[j];
            first[j] += d;
            second[j] += d * d;
        }
    }

    /* Mean and variance of size rows from total sums minus those of the left-out rows;
       return how many variances are a smaller share of the total squares. */
    WIDEST static long write_moments(
        long p, double size, double share, const double *centre, const double *first,
        const double *second, double *mean, double *variance)
    {
        long count = 0;
        for (long j = 0; j < p; j++) {
            double m = (first[j] - mean[j]) / size;
            double v = (second[j] - variance[j]) / size - m * m;
            variance[j] = v > 0.0 ? v : 0.0;
            mean[j] = m + centre[j];
            count += variance[j] * size < share * second[j];
        }
        return count;
    }
    """
    void add_powers(long, const double*, const double*, double*, double*) noexcept nogil
    long write_moments(long, double, double, const double*, const double*, const double*,
                       double*, double*) noexcept nogil


def fold_moments(
    const double[:, ::1] values,        # in, (n, p)
    const double[::1] centre,           # in, (p,) near the means
    const Py_ssize_t[::1] members,      # in, left-out rows, fold by fold
    const Py_ssize_t[::1] begin,        # in, (g + 1,)
    double share,                       # of the total squares that a difference may be
    double[:, ::1] mean,                # out, (g, p)
    double[:, ::1] variance,            # out, (g, p)
):
    """Write the moments; return the total squares, and how many differences are less."""
    cdef Py_ssize_t n = values.shape[0], p = values.shape[1], k, i
    cdef double[:, ::1] total = np.zeros((2, p))
    cdef long bad = 0
    mean[:] = 0.0
    variance[:] = 0.0
    with nogil:
        for i in range(n):
            add_powers(p, &values[i, 0], &centre[0], &total[0, 0], &total[1, 0])
        for k in range(mean.shape[0]):
            for i in range(begin[k], begin[k + 1]):
                add_powers(p, &values[members[i], 0], &centre[0], &mean[k, 0],
                           &variance[k, 0])
            bad += write_moments(p, n - (begin[k + 1] - begin[k]), share, &centre[0],
                                 &total[0, 0], &total[1, 0], &mean[k, 0], &variance[k, 0])
    return np.asarray(total[1]), bad
