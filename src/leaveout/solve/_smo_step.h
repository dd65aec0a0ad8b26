/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The loops over all samples of an SMO step, compiled for the widest registers there are.
 * F = y - K beta; up (down) is 0 where beta can rise (fall), else a large negative number.
 */
#ifndef LEAVEOUT_SMO_STEP_H
#define LEAVEOUT_SMO_STEP_H

#include "_widest.h"

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

#endif
