# SPDX-License-Identifier: BSD-3-Clause
"""Declarations of the active-set method for the solvers that run it."""

from leaveout.engine._stairs cimport Stairs

cdef struct ActiveSet:
    Py_ssize_t n            # samples
    Py_ssize_t m            # size of M
    Py_ssize_t ld           # row length of L
    const Stairs* stairs
    const double* K
    const double* diag
    int* state              # (n,) odd in M
    double* beta
    double* F
    double* L
    double* u               # work, L^-1 1
    double* v               # work, L^-1 F_M and the step on M
    double* moved           # change of beta that is not in F yet
    double* F_M             # work, F + offset of the members during a climb to b
    Py_ssize_t* M
    Py_ssize_t* place       # place[i] = position of i in M, or -1
    double shift            # c
    double outside          # sum of the beta of samples that are not among the n
    bint intercept
    bint definite           # K is: where it is not, the order of M decides the optimum

cdef void recompute(ActiveSet* s) noexcept nogil
cdef double optimise(ActiveSet* s, double* work, int* pivots, double tol, Py_ssize_t max_steps,
                     Py_ssize_t max_enter, Py_ssize_t* n_steps) noexcept nogil
