/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Inner loops in C shared by several kernels, written so that compilers vectorise them.
 */
#ifndef LEAVEOUT_SIMD_H
#define LEAVEOUT_SIMD_H

#include <math.h>
#include <string.h>

/*
 * Marks a loop that is compiled for the widest registers available.
 */

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDEST
#endif

/*
 * The loops over all samples of an SMO step, compiled for the widest registers available.
 * F = y - K beta; up (down) is 0 where beta can rise (fall), else a large negative number.
 */


/* F -= move * (row_i - row_j); then the largest F + up and the smallest F - down. */
WIDEST static void step_and_bracket(
    long n, double move, const double *row_i, const double *row_j,
    const double *up, const double *down, double *F, double *F_max, double *F_min)
{
    double most = -1e300, least = 1e300;
    for (long k = 0; k < n; k++) {
        double v = F[k] - move * (row_i[k] - row_j[k]);
        double a = v + up[k], b = v - down[k];
        F[k] = v;
        most = a > most ? a : most;
        least = b < least ? b : least;
    }
    *F_max = most;
    *F_min = least;
}

/* F += shared - own; then the largest F + up and the smallest F - down. */
WIDEST static void shift_and_bracket(
    long n, const double *shared, const double *own,
    const double *up, const double *down, double *F, double *F_max, double *F_min)
{
    double most = -1e300, least = 1e300;
    for (long k = 0; k < n; k++) {
        double v = F[k] + (shared[k] - own[k]);
        double a = v + up[k], b = v - down[k];
        F[k] = v;
        most = a > most ? a : most;
        least = b < least ? b : least;
    }
    *F_max = most;
    *F_min = least;
}

/* gain = (F_i - F)^2 / ||phi_i - phi||^2 where F can fall and F < F_i; its maximum. */
WIDEST static double pair_gains(
    long n, double F_i, double K_ii, const double *row_i, const double *diag,
    const double *F, const double *down, double *gain)
{
    double most = 0.0;
    for (long k = 0; k < n; k++) {
        double d = F_i - F[k] + down[k];
        double q = K_ii + diag[k] - 2.0 * row_i[k];
        d = d > 0.0 ? d : 0.0;
        q = q > 1e-12 ? q : 1e-12;
        d = d * d / q;
        gain[k] = d;
        most = d > most ? d : most;
    }
    return most;
}

/*
 * Columns of a tableau after principal pivots, in product form: the pivot columns X are
 * stored and applied to the next column c that is needed,
 *
 *     pivot p, column X, element d = X_p:   c -= X * (c_p / d),   c_p = -c_p / d
 *
 * Rows of X are `stride` long, a multiple of BLOCK.
 */


#define BLOCK 32

/* How many of BLOCK quantities x, with rates sign * c, would leave [low, high] within a
   step; a plain sum of comparisons, which compilers vectorise. */
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

/* How many of BLOCK quantities x + way c shorten the range of b. */
WIDEST static int count_tighter(
    const double *x, const double *c, double way, const double *low, const double *high,
    double most, double least)
{
    long hits = 0;
    for (int i = 0; i < BLOCK; i++) {
        double at = way != 0.0 ? x[i] + way * c[i] : x[i];
        hits += (low[i] - at > most) + (high[i] - at < least);
    }
    return (int)hits;
}

/* How many quantities are outside their range by more than a tolerance. */
WIDEST static long count_outside(
    long n, const double *x, const double *low, const double *high, double tol)
{
    long outside = 0;
    for (long i = 0; i < n; i++)
        outside += (x[i] < low[i] - tol) + (x[i] > high[i] + tol);
    return outside;
}

/* How many of n moves, each between move + lower and move + upper, leave [low, high]. */
WIDEST static long count_far(
    long n, const float *move, const float *low, const float *high, float lower,
    float upper)
{
    int far = 0;
    for (long i = 0; i < n; i++)
        far += (move[i] + lower < low[i]) + (move[i] + upper > high[i]);
    return far;
}

/* out = first + sum over q of share[q] column[q], four columns at a time. */
WIDEST static void combine_columns(
    long n, long k, const double **column, const double *share, const double *first,
    double *out)
{
    long q = 0;
    memcpy(out, first, n * sizeof(double));
    for (; q + 4 <= k; q += 4) {
        const double *a = column[q], *b = column[q + 1], *c = column[q + 2],
                     *d = column[q + 3];
        double s = share[q], t = share[q + 1], u = share[q + 2], v = share[q + 3];
        for (long i = 0; i < n; i++)
            out[i] += (s * a[i] + t * b[i]) + (u * c[i] + v * d[i]);
    }
    for (; q < k; q++)
        for (long i = 0; i < n; i++)
            out[i] += share[q] * column[q][i];
}

/* x += step * rate */
WIDEST static void step_along(long n, double step, const double *rate, double *x)
{
    for (long i = 0; i < n; i++)
        x[i] += step * rate[i];
}

/* out += factor * row, in single precision. */
WIDEST static void add_float_row(long n, float factor, const float *row, float *out)
{
    for (long i = 0; i < n; i++)
        out[i] += factor * row[i];
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

/* Apply k pivots to a column. The shares depend only on its entries at the pivots: compute
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

/*
 * Remove a row from a Cholesky factor.
 */


/* Rows that are rotated together, to hide latency: each rotation needs the one before. */
#define TOGETHER 4

/* Remove row `at` from the lower triangular L (m rows, row-major, ld long), and rotate L
   back to triangular form. Row i moves up to i - 1 and has one extra element, L[i][i];
   rotation c, in cosine[c] and sine[c] for at <= c < m - 1, mixes columns c and c + 1
   of that row and of those below. */
static void delete_row(
    double *L, long ld, long m, long at, double *cosine, double *sine)
{
    for (long i = at + 1; i < m;) {
        long rows = m - i >= TOGETHER ? TOGETHER : 1;
        double *row = L + i * ld, *above = row - ld, x[TOGETHER];
        for (long j = 0; j < rows; j++) {
            x[j] = row[j * ld + at];
            memcpy(above + j * ld, row + j * ld, at * sizeof(double));
        }
        if (rows == TOGETHER)
            for (long c = at; c < i - 1; c++)
                for (long j = 0; j < TOGETHER; j++) {
                    double next = row[j * ld + c + 1];
                    above[j * ld + c] = cosine[c] * x[j] + sine[c] * next;
                    x[j] = cosine[c] * next - sine[c] * x[j];
                }
        else
            for (long c = at; c < i - 1; c++) {
                double next = row[c + 1];
                above[c] = cosine[c] * x[0] + sine[c] * next;
                x[0] = cosine[c] * next - sine[c] * x[0];
            }
        /* The last rotations of these rows depend on each other. */
        for (long j = 0; j < rows; j++, i++) {
            double r, end = L[i * ld + i];
            for (long c = i - 1 - j; c < i - 1; c++) {
                double next = L[i * ld + c + 1];
                L[(i - 1) * ld + c] = cosine[c] * x[j] + sine[c] * next;
                x[j] = cosine[c] * next - sine[c] * x[j];
            }
            r = sqrt(x[j] * x[j] + end * end);
            cosine[i - 1] = x[j] / r;
            sine[i - 1] = end / r;
            L[(i - 1) * ld + i - 1] = r;
        }
    }
}

#endif
