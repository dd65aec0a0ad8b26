# SPDX-License-Identifier: BSD-3-Clause
"""The default grid of C and gamma, and the choice among the candidates of a grid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import rankdata
from sklearn.utils.sparsefuncs import mean_variance_axis

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.kernel._gram import KERNELS, kernel_parameters


def median_heuristic(X: Any, kernel: str = "rbf") -> float:
    """Return the gamma for which a typical kernel value is neither 0 nor 1.

    It is 1 / median squared distance for "rbf", so that a typical value is exp(-1);
    1 / median sum of absolute differences for "laplacian"; 1 / median squared norm for
    "poly" and "sigmoid". Zeros are ignored; it is 1 if all are zero.
    """
    size_of = KERNELS[kernel].size_of
    if size_of is None:
        return 1.0
    rows = X[:: max(1, -(-X.shape[0] // 500))]  # enough for a few percent
    with np.errstate(over="ignore"):  # gram_matrix has a better message
        sizes = size_of(rows)
    sizes = sizes[sizes > 0]
    gamma = float(1.0 / np.median(sizes)) if sizes.size else 1.0
    return gamma if 0.0 < gamma < np.inf else 1.0


def default_gammas(X: Any, kernel: str | Callable[..., Any] = "rbf") -> FloatArray:
    """Return the median heuristic times 1/16, 1/4, 1, 4, 16; 1 if gamma is unused."""
    if not isinstance(kernel, str) or "gamma" not in kernel_parameters(kernel):
        return np.ones(1)
    return median_heuristic(X, kernel) * np.array([1 / 16, 1 / 4, 1.0, 4.0, 16.0])


def kernel_scale(X: Any, kernel: str | Callable[..., Any] = "rbf") -> float:
    """Return the mean squared distance of samples from their mean, in kernel space.

    Multiplying a kernel by s and dividing C by s gives the same classifier, so the
    default C is relative to this scale. Kernels with a gamma count as 1.
    """
    if kernel == "precomputed":
        scale = float(np.trace(X) / X.shape[0] - X.mean())
    elif kernel != "linear":
        return 1.0
    elif sparse.issparse(X):
        scale = float(mean_variance_axis(X.tocsr(), axis=0)[1].sum())
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            scale = float(X.var(axis=0).sum())
    return scale if np.isfinite(scale) and scale > 0.0 else 1.0


def default_Cs(scale: float = 1.0) -> FloatArray:  # noqa: N802
    """Return 0.01, 0.1, ..., 1000, divided by the power of ten nearest to ``scale``."""
    exponent = round(np.log10(scale))
    return np.array([float(f"1e{k - exponent}") for k in range(-2, 4)])


def rank_candidates(scores: FloatArray, avoid: BoolArray | None = None) -> IntArray:
    """Rank scores from 1, the largest first; equal scores share the smallest rank.

    Candidates in ``avoid`` rank after all others with a score; NaN ranks last.
    """
    known = ~np.isnan(scores)
    levels = np.full(scores.shape, np.inf)
    levels[known] = rankdata(-scores[known], method="dense")
    if avoid is not None:
        levels[avoid] += scores.size
    return rankdata(levels, method="min").astype(np.intp)


def take_best(
    ranks: IntArray, Cs: Sequence[Any], gammas: Sequence[Any] | None = None
) -> int:
    """Return the candidate of the lowest rank.

    Ties go to the smaller C, then to the smaller gamma, then to the earlier one. Values
    that are not numbers, such as gamma="scale", come after all numbers.
    """
    columns = [column for column in (gammas, Cs, ranks) if column is not None]
    keys = [[v if isinstance(v, Real) else np.inf for v in own] for own in columns]
    return int(np.lexsort(np.array(keys, dtype=np.float64))[0])


def best_within_one_se(
    scores: FloatArray,
    standard_errors: FloatArray,
    Cs: Sequence[Any],
    gammas: Sequence[Any] | None = None,
    *,
    avoid: BoolArray | None = None,
) -> int:
    """Return the smallest C, then gamma, within one standard error of the best.

    Candidates in ``avoid`` are chosen only if no other has a score, NaN never.
    """
    best = take_best(rank_candidates(scores, avoid), Cs, gammas)
    error = standard_errors[best]
    near = scores >= scores[best] - (error if np.isfinite(error) else 0.0)
    if avoid is not None and not avoid[best]:
        near &= ~avoid
    if not near.any():  # no candidate has a score
        return best
    return take_best(np.where(near, 1, 2), Cs, gammas)


def tabulate_params(candidates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``param_<name>`` as masked arrays, as GridSearchCV does."""
    names = dict.fromkeys(name for candidate in candidates for name in candidate)
    table = {}
    for name in names:
        given = [k for k, candidate in enumerate(candidates) if name in candidate]
        values = [candidates[k][name] for k in given]
        numbers = all(isinstance(value, Real | np.bool_) for value in values)
        dtype = np.asarray(values).dtype if numbers else object
        column: Any = np.ma.MaskedArray(np.empty(len(candidates), dtype), mask=True)
        for k, value in zip(given, values, strict=True):
            column[k] = value
        table[f"param_{name}"] = column
    return table
