/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The staircase of a sample: the graph of minus the subgradient of its loss,
 * f -> beta. For kinks k_0 < k_1 < ... and levels B_0 > B_1 > ...,
 *
 *     state 2 j:      beta = B_j fixed,   f between k_(j-1) and k_j
 *     state 2 j + 1:  f = k_j fixed,      beta between B_(j+1) and B_j     ("free")
 *
 *     hinge loss, y = 1 / -1:    kink y;               levels C, 0 / 0, -C
 *     epsilon-insensitive loss:  kinks y -+ epsilon;   levels C, 0, -C
 *
 * Kink j of sample i is y_i + offset_j. A sample with equal levels (C = 0) is absent: it
 * has a decision value and no conditions.
 */
#ifndef LEAVEOUT_STAIRS_H
#define LEAVEOUT_STAIRS_H

#include <math.h>

#define FAR 1e300

typedef struct {
    Py_ssize_t n;           /* samples */
    Py_ssize_t n_kinks;     /* kinks per sample: 1 or 2 */
    const double *y;        /* (n,) */
    const double *offset;   /* (n_kinks,) ascending */
    const double *level;    /* (n, n_kinks + 1) descending */
} Stairs;

static inline Stairs make_stairs(
    Py_ssize_t n, Py_ssize_t n_kinks, const double *y, const double *offset,
    const double *level)
{
    Stairs s = {n, n_kinks, y, offset, level};
    return s;
}

static inline double kink_of(const Stairs *s, Py_ssize_t i, Py_ssize_t j)
{
    return s->y[i] + s->offset[j];
}

static inline double level_of(const Stairs *s, Py_ssize_t i, Py_ssize_t j)
{
    return s->level[i * (s->n_kinks + 1) + j];
}

static inline double total_height(const Stairs *s, Py_ssize_t i)
{
    return level_of(s, i, 0) - level_of(s, i, s->n_kinks);
}

/* The level of sample i that is nearest to beta. */
static inline double nearest_level(const Stairs *s, Py_ssize_t i, double beta)
{
    double best = level_of(s, i, 0), next;
    for (int j = 1; j <= s->n_kinks; j++) {
        next = level_of(s, i, j);
        if (fabs(next - beta) < fabs(best - beta))
            best = next;
    }
    return best;
}

/* Even where beta is on a level, or beyond the last by rounding; odd between two levels. */
static inline int state_of(const Stairs *s, Py_ssize_t i, double beta)
{
    int j = 0;
    while (j < s->n_kinks && beta < level_of(s, i, j + 1))
        j++;
    /* level j + 1 <= beta, or j is the last level */
    if (j == s->n_kinks || beta >= level_of(s, i, j))
        return 2 * j;
    return beta > level_of(s, i, j + 1) ? 2 * j + 1 : 2 * j + 2;
}

/* Range of the quantity that is not fixed: beta in an odd state, f in an even one. */
static inline void range_of(
    const Stairs *s, Py_ssize_t i, int state, double *low, double *high)
{
    int j = state / 2;
    if (state & 1) {
        *low = level_of(s, i, j + 1);
        *high = level_of(s, i, j);
        return;
    }
    *low = j > 0 ? kink_of(s, i, j - 1) : -FAR;
    *high = j < s->n_kinks ? kink_of(s, i, j) : FAR;
    if (total_height(s, i) == 0.0) {
        *low = -FAR;
        *high = FAR;
    }
}

#endif
