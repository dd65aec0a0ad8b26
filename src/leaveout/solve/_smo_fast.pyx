# SPDX-License-Identifier: BSD-3-Clause
"""Sequential minimal optimisation for the SVM dual, in signed coefficients.

    max  y'beta - 1/2 beta' K beta    s.t.  lower <= beta <= upper,   sum(beta) = 0

(the last only with an intercept), beta_i = y_i alpha_i, so [lower, upper] is [0, C_i]
for y_i = +1 and [-C_i, 0] for y_i = -1. The gradient F = y - K beta is kept up to date.
beta is optimal iff  max{F_i : beta_i < upper_i} <= min{F_j : beta_j > lower_j}.

Working set: first index by the largest F, second by the largest gain of the objective
(Fan, Chen & Lin 2005, "WSS 2", the rule of LIBSVM).
"""

from libc.math cimport fabs


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
    cdef double F_max, F_min, gain_num, gain_den, d, q, move, violation
    cdef const double* row_i
    cdef const double* row_j
    with nogil:
        while True:
            # i = argmax F over {beta < upper};  F_min = min F over {beta > lower}
            i = -1
            F_max = -1e300
            F_min = 1e300
            for k in range(n):
                if F[k] > F_max and beta[k] < upper[k]:
                    F_max = F[k]
                    i = k
                if F[k] < F_min and beta[k] > lower[k]:
                    F_min = F[k]
            violation = F_max - F_min
            if violation <= tol or step >= max_steps:
                break
            row_i = &K[i, 0]
            j = best_partner(row_i, &diag[0], &F[0], &beta[0], &lower[0], n, i)
            row_j = &K[j, 0]
            q = diag[i] + diag[j] - 2.0 * row_i[j]
            d = F_max - F[j]
            move = min(upper[i] - beta[i], beta[j] - lower[j])
            if q > 0.0 and d < move * q:
                move = d / q
                beta[i] += move
                beta[j] -= move
            else:
                # One of the two reaches its bound: set it exactly.
                if upper[i] - beta[i] <= beta[j] - lower[j]:
                    beta[j] -= move
                    beta[i] = upper[i]
                else:
                    beta[i] += move
                    beta[j] = lower[j]
            for k in range(n):
                F[k] -= move * (row_i[k] - row_j[k])
            step += 1
    return step, violation


cdef inline Py_ssize_t best_partner(
    const double* row, const double* diag, const double* F, const double* beta,
    const double* lower, Py_ssize_t n, Py_ssize_t i,
) noexcept nogil:
    """Index j that can decrease, F_j < F_i, with the largest (F_i - F_j)^2 / ||phi_i - phi_j||^2."""
    cdef Py_ssize_t k, best = -1
    cdef double d, q, best_num = 0.0, best_den = 1.0, F_i = F[i], K_ii = diag[i]
    for k in range(n):
        d = F_i - F[k]
        if d > 0.0 and beta[k] > lower[k]:
            q = K_ii + diag[k] - 2.0 * row[k]
            if q < 1e-12:
                q = 1e-12
            # d^2 / q > best without the division
            if d * d * best_den > best_num * q:
                best_num = d * d
                best_den = q
                best = k
    return best


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
            if violation <= tol or step >= max_steps:
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
