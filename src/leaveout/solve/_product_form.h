/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Columns of a tableau after principal pivots, in product form: the pivot columns X are
 * kept and applied to the next column c that is needed,
 *
 *     pivot p, column X, element d = X_p:   c -= X * (c_p / d),   c_p = -c_p / d
 *
 * Rows of X are `stride` long, a multiple of BLOCK.
 */
#ifndef LEAVEOUT_PRODUCT_FORM_H
#define LEAVEOUT_PRODUCT_FORM_H

#include "_widest.h"

#define BLOCK 32

/* How many of BLOCK quantities x, of rates sign * c, would leave [low, high] within a
   step; a plain sum of comparisons, which compilers turn into vector code. */
WIDEST static int count_hits(
    const double *c, const double *x, const double *low, const double *high,
    double sign, double step)
{
    long hits = 0;
    for (int i = 0; i < BLOCK; i++) {
        double rate = sign * c[i];
        double size = rate > 0.0 ? rate : -rate;
        double room = rate > 0.0 ? high[i] - x[i] : x[i] - low[i];
        hits += size * step >= room;
    }
    return (int)hits;
}

/* column += sum over q of share[q] X[q], four rows of X at a time. */
WIDEST static void add_rows(
    long n, long k, const double *X, long stride, const double *share, double *column)
{
    long q = 0;
    for (; q + 4 <= k; q += 4) {
        const double *a = X + q * stride, *b = a + stride, *c = b + stride, *d = c + stride;
        double s = share[q], t = share[q + 1], u = share[q + 2], v = share[q + 3];
        for (long i = 0; i < n; i++)
            column[i] += (s * a[i] + t * b[i]) + (u * c[i] + v * d[i]);
    }
    for (; q < k; q++)
        for (long i = 0; i < n; i++)
            column[i] += share[q] * X[q * stride + i];
}

/* Bring a column over k pivots. The shares depend on its entries at pivots alone: follow
   those, then add all rows. `share` and `entry` are work, (k,) each. */
static void apply_pivots(
    long n, long k, const double *X, long stride, const Py_ssize_t *pivot,
    double *share, double *entry, double *column)
{
    for (long q = 0; q < k; q++)
        entry[q] = column[pivot[q]];
    for (long q = 0; q < k; q++) {
        share[q] = -entry[q] / X[q * stride + pivot[q]];
        for (long j = 0; j < k; j++)
            if (pivot[j] == pivot[q])
                entry[j] = share[q];
            else
                entry[j] += share[q] * X[q * stride + pivot[j]];
    }
    add_rows(n, k, X, stride, share, column);
    for (long q = 0; q < k; q++)
        column[pivot[q]] = entry[q];
}

#endif
