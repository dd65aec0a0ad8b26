# SPDX-License-Identifier: BSD-3-Clause
"""Reference solutions of the SVM of Lee, Lin & Wahba: the dual by clarabel.

The dual is written out in full over the n (Q - 1) variables.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import clarabel
import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from leaveout.llw._solve import LlwProblem


class LlwOptimum(NamedTuple):
    """A solved problem: dual variables (n, Q), W, b (Q,), primal and dual value."""

    alpha: np.ndarray
    W: np.ndarray
    b: np.ndarray
    dual: float
    primal: float

    @property
    def gap(self):
        return (self.primal - self.dual) / abs(self.primal)


def llw_dual(problem):
    """Return P, q, A, rhs and cones of the dual for clarabel, and the variables."""
    K, codes, C, Q = problem.K, problem.codes, problem.C, problem.n_classes
    i, k = np.nonzero((codes[:, None] != np.arange(Q)) & (C > 0)[:, None])
    N = i.size
    H = K[np.ix_(i, i)] * ((k[:, None] == k) - 1 / Q)
    sums = sparse.csc_matrix((np.ones(N), (k, np.arange(N))), shape=(Q, N))
    differences = sums[:-1] - sums[1:]
    finite = np.isfinite(C[i])
    eye = sparse.identity(N, format="csc")
    A = sparse.vstack([differences, -eye, eye[finite]]).tocsc()
    rhs = np.concatenate([np.zeros(Q - 1 + N), C[i][finite]])
    n_inequalities = N + int(finite.sum())
    cones = [clarabel.ZeroConeT(Q - 1), clarabel.NonnegativeConeT(n_inequalities)]
    P = sparse.csc_matrix(np.triu(H))
    return P, np.full(N, -1 / (Q - 1)), A, rhs, cones, i, k


def llw_clarabel(problem):
    """Solve the dual; b from the multipliers of the column sums."""
    P, q, A, rhs, cones, i, k = llw_dual(problem)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solution = clarabel.DefaultSolver(P, q, A, rhs, cones, settings).solve()
    alpha = np.zeros((len(problem.C), problem.n_classes))
    alpha[i, k] = np.clip(solution.x, 0, problem.C[i])
    steps = solution.z[: problem.n_classes - 1]  # of the differences of sums
    return certify_llw(problem, alpha, np.append(0, steps) - np.append(steps, 0))


def certify_llw(problem, alpha, b):
    """Return the objective values of any dual and primal point."""
    C, Q = problem.C, problem.n_classes
    W = alpha.mean(axis=1, keepdims=True) - alpha
    KW = problem.K @ W
    norm = (W * KW).sum()
    slack = np.maximum(0, 1 / (Q - 1) + KW + b)
    slack[(problem.codes[:, None] == np.arange(Q)) | (C == 0)[:, None]] = 0
    if np.isinf(C).any():  # h scaled until all slacks are 0
        primal = 0.5 * norm / (1 - (Q - 1) * slack.max()) ** 2
    else:
        primal = 0.5 * norm + (C @ slack).sum()
    return LlwOptimum(alpha, W, b, alpha.sum() / (Q - 1) - 0.5 * norm, primal)


def random_problem(seed, Q=None, n=None, C=None):
    """Return a random problem: hard, soft or quadratic, weighted, unless C is given.

    Every class has two samples or more.
    """
    rng = np.random.default_rng(seed)
    Q = Q or int(rng.integers(2, 7))
    n = n or int(rng.integers(2 * Q, 41))
    codes = np.concatenate([np.tile(np.arange(Q), 2), rng.integers(0, Q, n - 2 * Q)])
    X = rng.normal(size=(n, 2)) + rng.uniform(0, 3) * rng.normal(size=(Q, 2))[codes]
    K = rbf_kernel(X, gamma=rng.uniform(0.3, 2.0))
    if C is not None:
        return LlwProblem(K, codes, np.full(n, C), Q)
    weights = rng.uniform(0.2, 2, n) if rng.random() < 0.5 else np.ones(n)
    problem = LlwProblem(K, codes, 10 ** rng.uniform(-2, 2) * weights, Q)
    kinds = problem, problem.as_hard_margin(), replace(problem, C=np.full(n, np.inf))
    return kinds[rng.integers(3)]


def degenerate_problem(seed):
    """Return repeated samples with conflicting labels; low rank if the seed is odd."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.integers(0, 3, size=(15, 2)).astype(float), 2, axis=0)
    C = np.full(30, [0.01, 1.0, 30.0][seed % 3])
    K = X @ X.T if seed % 2 else rbf_kernel(X, gamma=1.0)
    return LlwProblem(K, np.arange(30) % (3 + seed % 4), C, 3 + seed % 4)
