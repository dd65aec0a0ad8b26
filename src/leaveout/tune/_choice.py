# SPDX-License-Identifier: BSD-3-Clause
"""Default grids, ranks, and the choice among candidates.

A grid of C and gamma around the scale of the data, and the choice on it.

Grid points that share one kernel make a cell; grid points are ranked, one is taken.

Along C nothing but the box changes, so all C of a cell are one path.
"""

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

# Distances among this many rows fix the median to a few per cent.
N_MEDIAN_ROWS = 500


def needs_gamma(kernel: str | Callable[..., Any]) -> bool:
    """Tell whether gamma changes the kernel.

    Examples
    --------
    >>> needs_gamma("rbf"), needs_gamma("linear")
    (True, False)
    """
    return "gamma" in kernel_parameters(kernel)


def median_heuristic(X: Any, kernel: str = "rbf") -> float:
    """Return the gamma that makes a typical kernel value neither 0 nor 1.

    It is 1 / median squared distance for "rbf", so that a typical value is exp(-1);
    1 / median sum of absolute differences for "laplacian"; and 1 / median squared norm
    for "poly" and "sigmoid", which take gamma times the inner product. Equal samples do
    not count, nor does the origin.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, p)
        Samples. Of more than 500, every k-th is taken.
    kernel : str, default="rbf"
        Kernel that gamma is for.

    Returns
    -------
    gamma : float
        1.0 if all samples are equal.

    Examples
    --------
    >>> import numpy as np
    >>> median_heuristic(np.array([[0.0], [0.0], [2.0]]))
    0.25
    """
    size_of = KERNELS[kernel].size_of
    if size_of is None:
        return 1.0
    rows = X[:: max(1, -(-X.shape[0] // N_MEDIAN_ROWS))]
    with np.errstate(over="ignore"):  # gram_matrix says it better
        sizes = size_of(rows)
    sizes = sizes[sizes > 0]
    gamma = float(1.0 / np.median(sizes)) if sizes.size else 1.0
    return gamma if 0.0 < gamma < np.inf else 1.0


def default_gammas(X: Any, kernel: str | Callable[..., Any] = "rbf") -> FloatArray:
    """Return the median heuristic times 1/16, 1/4, 1, 4 and 16.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, p)
        Samples.
    kernel : str or callable, default="rbf"
        Kernel that gamma is for. One that ignores gamma gets a single value, 1.

    Examples
    --------
    >>> import numpy as np
    >>> default_gammas(np.array([[0.0], [1.0]]))
    array([ 0.0625,  0.25  ,  1.    ,  4.    , 16.    ])
    """
    if not isinstance(kernel, str) or not needs_gamma(kernel):
        return np.ones(1)
    return median_heuristic(X, kernel) * np.array([1 / 16, 1 / 4, 1.0, 4.0, 16.0])


def kernel_scale(X: Any, kernel: str | Callable[..., Any] = "rbf") -> float:
    """Return the mean squared distance of samples from their mean, in kernel space.

    Multiplying a kernel by s and dividing C by s leaves the classifier as it is: C is
    to be judged by C times this scale. It is computed for the kernels whose scale is
    that of the data, "linear" and "precomputed"; the others, with a gamma from
    :func:`default_gammas`, count as 1.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, p), or (n, n) if precomputed
        Samples, or their Gram matrix.
    kernel : str or callable, default="rbf"
        The kernel.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.0], [6.0, 8.0]])
    >>> kernel_scale(X, "linear"), kernel_scale(X @ X.T, "precomputed")
    (25.0, 25.0)
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
    """Return 0.01, 0.1, ..., 1000, divided by the power of ten next to ``scale``.

    Parameters
    ----------
    scale : float, default=1.0
        Scale of the kernel, see :func:`kernel_scale`.

    Examples
    --------
    >>> default_Cs()
    array([1.e-02, 1.e-01, 1.e+00, 1.e+01, 1.e+02, 1.e+03])
    >>> default_Cs(30.0)
    array([1.e-03, 1.e-02, 1.e-01, 1.e+00, 1.e+01, 1.e+02])
    """
    exponent = round(np.log10(scale))
    return np.array([float(f"1e{k - exponent}") for k in range(-2, 4)])


def rank_candidates(scores: FloatArray, avoid: BoolArray | None = None) -> IntArray:
    """Rank scores from 1, the largest first; equal scores share the smallest rank.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates,)
        Larger is better; NaN ranks last.
    avoid : ndarray of bool, shape (n_candidates,), default=None
        Candidates that rank behind all others with a score, whatever theirs is.

    Examples
    --------
    >>> import numpy as np
    >>> rank_candidates(np.array([0.8, 0.9, np.nan, 0.9]))
    array([3, 1, 4, 1])
    >>> rank_candidates(np.array([0.8, 0.9, 0.7]), avoid=np.array([False, True, False]))
    array([1, 3, 2])
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
    """Return the first rank; of equal ones the smaller C, then the smaller gamma.

    What is not a number, such as gamma="scale", comes after all numbers; what is left
    equal is decided by the order of the grid.

    Examples
    --------
    >>> import numpy as np
    >>> take_best(np.array([1, 1, 2]), Cs=[10.0, 1.0, 0.1])
    1
    """
    keys = [_as_numbers(Cs), np.asarray(ranks)]
    if gammas is not None:
        keys.insert(0, _as_numbers(gammas))
    return int(np.lexsort(keys)[0])


def best_within_one_se(
    scores: FloatArray,
    standard_errors: FloatArray,
    Cs: Sequence[Any],
    gammas: Sequence[Any] | None = None,
    *,
    avoid: BoolArray | None = None,
) -> int:
    """Return the smallest C, then gamma, within one standard error of the best.

    Parameters
    ----------
    scores, standard_errors : ndarray of shape (n_candidates,)
        Larger scores are better; NaN is never taken.
    Cs, gammas : sequence
        Parameters of each candidate.
    avoid : ndarray of bool, shape (n_candidates,), default=None
        Candidates that are not to be taken while there are others with a score.

    Examples
    --------
    >>> import numpy as np
    >>> scores, errors = np.array([0.7, 0.85, 0.9]), np.full(3, 0.1)
    >>> best_within_one_se(scores, errors, Cs=[0.1, 1.0, 10.0])
    1
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
    """Return ``param_<name>``, a masked array each, masked where it is not set.

    Examples
    --------
    >>> tabulate_params([{"C": 1.0}, {"C": 2.0, "degree": 3}])["param_degree"]
    masked_array(data=[--, 3],
                 mask=[ True, False],
           fill_value=999999)
    """
    names = dict.fromkeys(name for candidate in candidates for name in candidate)
    table = {}
    for name in names:
        own = [candidate[name] for candidate in candidates if name in candidate]
        mask = np.array([name not in candidate for candidate in candidates])
        column = np.ma.MaskedArray(np.empty(len(candidates), _dtype(own)), mask=True)
        for place, value in zip(np.flatnonzero(~mask), own, strict=True):
            column[place] = value
        table[f"param_{name}"] = column
    return table


def _as_numbers(values: Sequence[Any]) -> FloatArray:
    return np.array([float(v) if isinstance(v, Real) else np.inf for v in values])


def _dtype(values: list[Any]) -> Any:
    """Return the type of numbers if all are, else object."""
    try:
        array = np.asarray(values)
    except ValueError:  # of different shapes
        return object
    return array.dtype if array.ndim == 1 and array.dtype.kind in "biuf" else object
