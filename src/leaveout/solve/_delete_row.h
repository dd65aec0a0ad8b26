/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Remove a row from a Cholesky factor.
 */
#ifndef LEAVEOUT_DELETE_ROW_H
#define LEAVEOUT_DELETE_ROW_H

#include <math.h>
#include <string.h>

/* Rows that go through the rotations together: each waits for its own last result. */
#define TOGETHER 4

/* Take row `at` out of the lower triangular L (m rows, row-major, ld long), and rotate it
   back to triangular form. Row i moves up to i - 1 and has one element too many, L[i][i];
   rotation c, in cosine[c] and sine[c] for at <= c < m - 1, mixes the columns c and c + 1
   of it and of the rows below. */
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
        /* The last rotations of these rows come from each other. */
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
