# SPDX-License-Identifier: BSD-3-Clause
"""Sequential minimal optimisation for the SVM dual, in signed coefficients.

    max  y'beta - 1/2 beta' K beta    s.t.  lower <= beta <= upper,   sum(beta) = 0

(the equality only with an intercept), beta_i = y_i alpha_i, so [lower, upper] is [0, C_i]
for y_i = +1 and [-C_i, 0] for y_i = -1. The gradient F = y - K beta is kept up to date.
beta is optimal iff  max{F_i : beta_i < upper_i} <= min{F_j : beta_j > lower_j}.

The working set: the index of largest F, then the one of largest gain of the objective
(Fan, Chen & Lin 2005, "WSS 2", the rule of LIBSVM).
"""

from libc.math cimport fabs

import numpy as np

cdef extern from "_simd.h":
    void step_and_bracket(
        long, double, const double*, const double*, const double*, const double*,
        double*, double*, double*) noexcept nogil
    double pair_gains(
        long, double, double, const double*, const double*, const double*,
        const double*, double*) noexcept nogil

# Added to the F of a point that cannot move in that direction, so it is never the extreme.
cdef double BARRED = -1e290


cdef inline double bar(bint can_move) noexcept nogil:
    """0 for a point that can move, else a penalty."""
    return 0.0 if can_move else BARRED


def smo_with_intercept(
    const double[:, ::1] K,        # in, (n, n)
    const double[::1] diag,        # in, (n,)
    const double[::1] lower,       # in, (n,)
    const double[::1] upper,       # in, (n,)
    double[::1] beta,              # in/out, (n,) feasible
    double[::1] F,                 # in/out, (n,) y - K beta
    double tol,
    Py_ssize_t max_steps,
):
    """Take pair steps until the violation is at most tol. Return (steps, violation)."""
    cdef Py_ssize_t n = beta.shape[0], step = 0, i, j, k
    cdef double F_max, F_min, best, d, q, move = 0.0
    cdef double[:, ::1] work = np.empty((3, n))
    cdef double* up = &work[0, 0]
    cdef double* down = &work[1, 0]
    cdef double* gain = &work[2, 0]
    cdef const double* row_i = &K[0, 0]
    cdef const double* row_j = &K[0, 0]
    with nogil:
        for k in range(n):
            up[k] = bar(beta[k] < upper[k])
            down[k] = bar(beta[k] > lower[k])
        while True:
            # F_max = max F over {beta < upper};  F_min = min F over {beta > lower}
            step_and_bracket(n, move, row_i, row_j, up, down, &F[0], &F_max, &F_min)
            if F_max - F_min <= tol or step >= max_steps:
                break
            i = 0
            while i < n and F[i] + up[i] != F_max:
                i += 1
            if i == n:
                break  # F has overflowed: no point has the largest value
            row_i = &K[i, 0]
            best = pair_gains(n, F_max, diag[i], row_i, &diag[0], &F[0], down, gain)
            j = 0
            while j < n and gain[j] != best:
                j += 1
            if j == n:
                break
            row_j = &K[j, 0]
            q = diag[i] + diag[j] - 2.0 * row_i[j]
            d = F_max - F[j]
            move = min(upper[i] - beta[i], beta[j] - lower[j])
            if q > 0.0 and d < move * q:
                move = d / q
                beta[i] += move
                beta[j] -= move
            elif upper[i] - beta[i] <= beta[j] - lower[j]:
                # i reaches its bound: set it exactly.
                beta[j] -= move
                beta[i] = upper[i]
            else:
                beta[i] += move
                beta[j] = lower[j]
            up[i] = bar(beta[i] < upper[i])
            down[i] = bar(beta[i] > lower[i])
            up[j] = bar(beta[j] < upper[j])
            down[j] = bar(beta[j] > lower[j])
            step += 1
    return step, F_max - F_min


def smo_without_intercept(
    const double[:, ::1] K,        # in, (n, n)
    const double[::1] diag,        # in, (n,)
    const double[::1] lower,       # in, (n,)
    const double[::1] upper,       # in, (n,)
    double[::1] beta,              # in/out, (n,) feasible
    double[::1] F,                 # in/out, (n,) y - K beta
    double tol,
    Py_ssize_t max_steps,
):
    """Take coordinate steps of largest gain until |projected F| <= tol.

    Return (steps, violation).
    """
    cdef Py_ssize_t n = beta.shape[0], step = 0, i, k
    cdef double gain_num, gain_den, q, target, move, violation
    cdef const double* row
    with nogil:
        while True:
            i = -1
            violation = 0.0
            gain_num = 0.0
            gain_den = 1.0
            for k in range(n):
                if (F[k] > 0.0 and beta[k] < upper[k]) or (F[k] < 0.0 and beta[k] > lower[k]):
                    if fabs(F[k]) > violation:
                        violation = fabs(F[k])
                    q = diag[k] if diag[k] > 1e-12 else 1e-12
                    if F[k] * F[k] * gain_den > gain_num * q:
                        gain_num = F[k] * F[k]
                        gain_den = q
                        i = k
            if violation <= tol or step >= max_steps or i < 0:
                break
            q = diag[i] if diag[i] > 1e-300 else 1e-300
            target = beta[i] + F[i] / q
            target = min(max(target, lower[i]), upper[i])
            move = target - beta[i]
            beta[i] = target
            row = &K[i, 0]
            for k in range(n):
                F[k] -= move * row[k]
            step += 1
    return step, violation
