# SPDX-License-Identifier: BSD-3-Clause
"""Gram matrices, and kernel expansions evaluated at new samples.

``KERNELS`` is the only list of kernels. A kernel is a ``Formula`` (``_gram_fast.pyx``)
of inner products, or of the values that its ``block`` writes. Estimators, default
grids, the test for definiteness and the tests of all kernels read the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances
from sklearn.preprocessing import normalize
from sklearn.utils import check_array

from leaveout._typing import FloatArray, IntArray
from leaveout.kernel._gram_fast import (
    Formula,
    fill_rows,
    is_finite,
    is_symmetric,
    nearest_to_mean,
    squared_norms,
)
from leaveout.kernel._symmetric import (
    first_equal_rows,
    first_near_rows,
    largest_asymmetry,
    row_blocks,
    share_equal_rows,
    symmetrised,
)
from leaveout.run._parallel import limit_blas

# A larger difference between K[i, j] and K[j, i], relative to max |K|, is an error of
# the caller, not rounding.
SYMMETRY_TOLERANCE = 1e-8
# Kernel values per block: 32 MB, a few thousand rows for a few thousand centres.
BLOCK_VALUES = 2**22


class _Parameters(NamedTuple):
    gamma: float
    degree: int
    coef0: float


def _inner_products(X: Any, Y: Any, out: FloatArray) -> None:
    """Write X @ Y.T, dense whatever X and Y are."""
    products = X @ Y.T
    out[...] = products.toarray() if sparse.issparse(products) else products


@dataclass(frozen=True)
class KernelSpec:
    """What the package needs to know about a kernel."""

    formula: Formula
    # Which of gamma, degree and coef0 change the kernel.
    parameters: tuple[str, ...] = ()
    # Whether all its Gram matrices are positive semi-definite with this coef0.
    always_psd: Callable[[float], bool] = lambda coef0: True
    # The quantity that gamma multiplies; default gammas come from its median.
    size_of: Callable[[Any], FloatArray] | None = None
    # Changes the rows of X and Y first.
    transform: Callable[[Any, Any], tuple[Any, Any]] = lambda X, Y: (X, Y)
    # Writes what the formula is applied to, for some rows of X and some of Y.
    block: Callable[[Any, Any, FloatArray], None] = _inner_products


@dataclass(frozen=True)
class Gram:
    """A Gram matrix and how it was computed.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        2^-exponent times the kernel values.
    gamma : float or None
        The number used for gamma; None if the kernel does not use it.
    exponent : int, default=0
        Scale of K, see :func:`~leaveout.loo._task.make_task`.
    definite : bool or None, default=None
        Whether K is positive semi-definite; None if neither known nor tested.
    first_equal : ndarray of shape (n,) or None, default=None
        Index of the first equal sample (precomputed and callable kernels: of the first
        equal row of K); None if all are distinct.
    """

    K: FloatArray
    gamma: float | None
    exponent: int = 0
    definite: bool | None = None
    first_equal: IntArray | None = None


def make_gram(
    X: Any,
    *,
    kernel: str | Callable[..., Any],
    gamma: str | float = "scale",
    degree: int = 3,
    coef0: float = 0.0,
) -> Gram:
    """Return the Gram matrix of checked samples; gamma is resolved on all of them."""
    if callable(kernel):
        K, first = _call_kernel(kernel, _check_features(X, "X"), None)
        return Gram(K, None, first_equal=first)
    if kernel == "precomputed":
        K, first = _check_gram(X, None)
        return Gram(K, None, first_equal=first)
    number = resolve_gamma(gamma, X)
    parameters = _check_parameters(number, degree, coef0, X.shape[1])
    K, first = _compute(kernel, X, None, parameters)
    definite = None if may_be_indefinite(kernel, coef0) else True
    return Gram(K, number, definite=definite, first_equal=first)


def gram_matrix(
    X: Any,
    Y: Any = None,
    *,
    kernel: str | Callable[..., Any],
    gamma: float | None = None,
    degree: int = 3,
    coef0: float = 0.0,
) -> FloatArray:
    """Compute the kernel values between the rows of X and those of Y, or of X.

    ``kernel`` is a name in ``KERNELS``, with the formulas of
    :mod:`sklearn.metrics.pairwise`; "precomputed" (X holds the values, and only the
    number of rows of Y matters); or a function of two matrices. ``gamma=None`` means
    1 / p.

    With Y=None the matrix is symmetric, and equal samples have equal rows and columns,
    both to the last bit; between X and Y, BLAS may round equal rows differently.
    Besides K, it needs memory for a copy of X and, if X is sparse, for 192 rows of K.
    """
    if kernel == "precomputed":
        return check_gram(X, None if Y is None else Y.shape[0])
    X = _check_features(X, "X")
    if Y is not None:
        Y = _check_features(Y, "Y")
        if X.shape[1] != Y.shape[1]:
            sizes = f"X has {X.shape[1]} features but Y has {Y.shape[1]}"
            raise ValueError(f"{sizes}. Pass the same columns for both.")
    if callable(kernel):
        return _call_kernel(kernel, X, Y)[0]
    parameters = _check_parameters(gamma, degree, coef0, X.shape[1])
    K, _ = _compute(kernel, X, Y, parameters)
    return K


def resolve_gamma(gamma: str | float, X: Any) -> float:
    """Return the value of gamma on the training samples X, as scikit-learn's SVC does.

    "scale" is 1 / (p * X.var()), or 1 if X is constant; "auto" is 1 / p.
    """
    if not isinstance(gamma, str):
        return _check_gamma(gamma, n_features=1)
    if gamma not in ("scale", "auto"):
        raise ValueError(
            f"gamma must be 'scale', 'auto' or a number >= 0; got {gamma!r}."
        )
    is_sparse = sparse.issparse(X)
    X = X if is_sparse else np.asarray(X)
    n_features = X.shape[1]
    if gamma == "auto":
        return 1.0 / n_features
    with np.errstate(over="ignore"):  # _check_finite has a clearer message
        variance = X.multiply(X).mean() - X.mean() ** 2 if is_sparse else X.var()
    variance = float(variance)
    return 1.0 / (n_features * variance) if variance > 0 else 1.0


def check_gram(K: Any, n_columns: int | None = None) -> FloatArray:
    """Check a precomputed Gram matrix, and return it symmetric to the last bit.

    It must be symmetric up to 1e-8 of its largest value. With ``n_columns`` it instead
    has one row per new sample and that many columns. It is copied only if changed.
    """
    return _check_gram(K, n_columns)[0]


def _check_gram(K: Any, n_columns: int | None) -> tuple[FloatArray, IntArray | None]:
    """Return the checked matrix and the first equal row of each row, as in Gram."""
    if sparse.issparse(K):
        raise TypeError(
            "kernel='precomputed' needs a dense Gram matrix, but X is sparse. "
            "Pass X.toarray()."
        )
    if n_columns is None and is_plain(K) and K.shape[0] == K.shape[1]:
        if is_symmetric(K):
            return _with_equal_copies(K)
    K = check_array(K, dtype=np.float64, order="C", input_name="X")
    name = "precomputed Gram matrix X"
    if n_columns == K.shape[1]:
        return K, None
    if n_columns is not None:
        raise ValueError(
            f"The {name} has {K.shape[1]} columns, but there are {n_columns} training "
            "samples. Pass the kernel values between the new samples (rows) and the "
            "training samples (columns)."
        )
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"The {name} must be square, (n_samples, n_samples); got {K.shape}. "
            "Pass kernel values, or choose another kernel for features."
        )
    return _with_equal_copies(_make_symmetric(K, name, "X"))


def _with_equal_copies(K: FloatArray) -> tuple[FloatArray, IntArray | None]:
    """Make rows of K equal that differ by rounding, in a copy if there are any.

    Return also the first equal row of each row, as in Gram.
    """
    first = first_near_rows(K)
    if first is None:
        return K, None
    repeated = np.flatnonzero(first != np.arange(first.shape[0]))
    if not all(np.array_equal(K[i], K[first[i]]) for i in repeated):
        K = K.copy()
        share_equal_rows(K, first)
    return K, first


def _around_row(X: Any, Y: Any) -> tuple[Any, Any]:
    """Move the origin to the row of Y nearest to its mean.

    This avoids cancellation in |x|^2 + |y|^2 - 2 <x, y>, and integers stay exact.
    """
    if sparse.issparse(X) or sparse.issparse(Y):
        return X, Y
    origin = Y[nearest_to_mean(Y)]
    moved_Y = Y - origin
    return (moved_Y if X is Y else X - origin), moved_Y


def _to_unit_norm(X: Any, Y: Any) -> tuple[Any, Any]:
    """Divide the rows by their norms; a zero row stays zero."""
    unit_X = normalize(X)
    return unit_X, (unit_X if Y is X else normalize(Y))


def _l1_distances(X: Any, Y: Any, out: FloatArray) -> None:
    out[...] = manhattan_distances(X, Y)


def _squared_norms(X: Any) -> FloatArray:
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return squared_norms(np.ascontiguousarray(X, dtype=float))


def _squared_distances(X: Any) -> FloatArray:
    if not sparse.issparse(X):
        return pdist(X, "sqeuclidean")
    return euclidean_distances(X, squared=True)[np.triu_indices(X.shape[0], 1)]


def _absolute_distances(X: Any) -> FloatArray:
    if not sparse.issparse(X):
        return pdist(X, "cityblock")
    return manhattan_distances(X)[np.triu_indices(X.shape[0], 1)]


KERNELS: dict[str, KernelSpec] = {
    "linear": KernelSpec(Formula.LINEAR),
    "rbf": KernelSpec(
        Formula.RBF, ("gamma",), size_of=_squared_distances, transform=_around_row
    ),
    "poly": KernelSpec(
        Formula.POLY,
        ("gamma", "degree", "coef0"),
        lambda coef0: coef0 >= 0,
        _squared_norms,
    ),
    "sigmoid": KernelSpec(
        Formula.SIGMOID, ("gamma", "coef0"), lambda coef0: False, _squared_norms
    ),
    "laplacian": KernelSpec(
        Formula.LAPLACIAN, ("gamma",), size_of=_absolute_distances, block=_l1_distances
    ),
    "cosine": KernelSpec(Formula.LINEAR, transform=_to_unit_norm),
}


def kernel_parameters(kernel: str | Callable[..., Any]) -> tuple[str, ...]:
    """Return which of gamma, degree and coef0 change the kernel."""
    return KERNELS[kernel].parameters if _is_named(kernel) else ()


def may_be_indefinite(kernel: str | Callable[..., Any], coef0: float = 0.0) -> bool:
    """Return whether the kernel can give a Gram matrix that is not PSD."""
    if _is_named(kernel):
        return not KERNELS[kernel].always_psd(coef0)
    return callable(kernel) or kernel == "precomputed"


def _is_named(kernel: Any) -> TypeGuard[str]:
    return isinstance(kernel, str) and kernel in KERNELS


def _compute(
    kernel: Any, X: Any, Y: Any, parameters: _Parameters
) -> tuple[FloatArray, IntArray | None]:
    """Compute a named kernel; with Y=None, also the first equal row of each row of X.

    BLAS uses one thread: the bits of K do not depend on the number of cores.
    """
    if not _is_named(kernel):
        raise ValueError(
            f"kernel must be one of {', '.join(map(repr, KERNELS))}, 'precomputed', or "
            f"a callable; got {kernel!r}."
        )
    # _check_finite reports where.
    with limit_blas(1), np.errstate(over="ignore", invalid="ignore"):
        K, n_bad = _fill(KERNELS[kernel], X, X if Y is None else Y, parameters)
    if n_bad:
        _check_finite(K, f"Gram matrix of kernel={kernel!r}")
    first = first_equal_rows(X) if Y is None else None
    if first is not None:
        share_equal_rows(K, first)
    return K, first


def _fill(
    spec: KernelSpec, X: Any, Y: Any, parameters: _Parameters
) -> tuple[FloatArray, int]:
    """Return K, symmetric if Y is X, and how many values are not finite."""
    X, Y = spec.transform(X, Y)
    symmetric = Y is X
    squares_X = _squared_norms(X)
    squares_Y = squares_X if symmetric else _squared_norms(Y)
    in_tiles = spec.block is _inner_products and not (
        sparse.issparse(X) or sparse.issparse(Y)
    )
    K, n_bad = np.empty((X.shape[0], Y.shape[0])), 0
    for rows in row_blocks(X.shape[0]):
        start = rows.start if symmetric else 0
        if not in_tiles:
            spec.block(X[rows], Y[start:], K[rows, start:])
        n_bad += fill_rows(
            X if in_tiles else None,
            Y if in_tiles else None,
            squares_X,
            squares_Y,
            spec.formula,
            *parameters,
            symmetric,
            rows.start,
            rows.stop,
            K,
        )
    return K, n_bad


def _call_kernel(
    kernel: Callable[..., Any], X: Any, Y: Any
) -> tuple[FloatArray, IntArray | None]:
    """Evaluate the user's kernel and check its result, as _check_gram does."""
    name = f"result of the kernel {getattr(kernel, '__name__', repr(kernel))}"
    n_columns = X.shape[0] if Y is None else Y.shape[0]
    K = kernel(X, X if Y is None else Y)
    if sparse.issparse(K):
        raise TypeError(f"The {name} is sparse. Return a dense array.")
    K = np.ascontiguousarray(K, dtype=np.float64)
    if K.shape != (X.shape[0], n_columns):
        raise ValueError(
            f"The {name} has shape {K.shape}, but ({X.shape[0]}, {n_columns}) is "
            "needed. A kernel takes two matrices and returns the values between all "
            "rows of the first and all rows of the second."
        )
    _check_finite(K, name)
    if Y is not None:
        return K, None
    return _with_equal_copies(_make_symmetric(K, name, "K"))


def _make_symmetric(K: FloatArray, name: str, letter: str) -> FloatArray:
    """Return K if it is symmetric, a symmetrised copy if nearly so, else raise."""
    difference, i, j = largest_asymmetry(K)
    if difference == 0:
        return K
    if difference > SYMMETRY_TOLERANCE * max(K.max(), -K.min()):
        raise ValueError(
            f"The {name} is not symmetric: {letter}[{i}, {j}] and {letter}[{j}, {i}] "
            f"differ by {difference:.3g}. A kernel value does not depend on the order "
            "of its two samples."
        )
    return symmetrised(K)


def _check_finite(K: FloatArray, name: str) -> None:
    """Raise if K has a NaN or an infinity, and say where."""
    if is_finite(K):
        return
    for i, j in np.argwhere(~np.isfinite(K))[:1]:
        raise ValueError(
            f"The {name} is not finite: K[{i}, {j}] is {K[i, j]}. Standardise the "
            "features, or check the formula and the parameters of the kernel."
        )


def is_plain(X: Any) -> bool:
    """Whether X is an array that needs no conversion."""
    if type(X) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2:
        return False
    return bool(X.size) and X.flags.c_contiguous


def _check_features(X: Any, name: str) -> Any:
    """Return X as finite float64, dense and C-contiguous or CSR."""
    if is_plain(X) and is_finite(X):  # the usual case: an estimator has checked X
        return X
    return check_array(
        X, accept_sparse="csr", dtype=np.float64, order="C", input_name=name
    )


def _check_gamma(gamma: Any, n_features: int) -> float:
    """Return gamma as a finite number >= 0; None means 1 / n_features."""
    if gamma is None:
        return 1.0 / n_features
    if isinstance(gamma, str):
        raise TypeError(
            f"gamma must be a number here; got {gamma!r}. Resolve it on the training "
            "samples first: gamma=resolve_gamma(gamma, X)."
        )
    if not _is_number(gamma) or not 0 <= gamma < np.inf:
        raise ValueError(f"gamma must be a finite number >= 0; got {gamma!r}.")
    return float(gamma)


def _check_parameters(
    gamma: Any, degree: Any, coef0: Any, n_features: int
) -> _Parameters:
    gamma = _check_gamma(gamma, n_features)
    if not isinstance(degree, Integral) or isinstance(degree, bool) or degree < 0:
        raise ValueError(f"degree must be a whole number >= 0; got {degree!r}.")
    if not _is_number(coef0) or not np.isfinite(coef0):
        raise ValueError(f"coef0 must be a finite number; got {coef0!r}.")
    return _Parameters(gamma, int(degree), float(coef0))


def _is_number(value: Any) -> bool:
    real = type(value) is float or isinstance(value, Real)
    return real and not isinstance(value, bool)


def evaluate_expansion(
    X: Any,
    centres: Any,
    coefficients: FloatArray,
    intercepts: FloatArray,
    *,
    kernel: str | Callable[..., Any],
    **parameters: Any,
) -> FloatArray:
    """Compute f_k(x) = sum_s c_sk K(x, x_s) + b_k for each row x of X.

    The coefficients c have shape (m, k) for m centres x_s, the result (n, k). With
    kernel="precomputed", X holds the kernel values with the centres. At most 32 MB of
    kernel values are in memory at a time. ``parameters`` are those of ``gram_matrix``.
    """
    X = X if hasattr(X, "shape") else np.asarray(X, dtype=np.float64)
    values = np.tile(intercepts, (X.shape[0], 1))
    n_centres = coefficients.shape[0]
    if n_centres == 0:
        return values
    step = max(1, BLOCK_VALUES // n_centres)
    for start in range(0, X.shape[0], step):
        rows = slice(start, start + step)
        K = X[rows]
        if kernel != "precomputed":
            K = gram_matrix(K, centres, kernel=kernel, **parameters)
        values[rows] += K @ coefficients
    return values
