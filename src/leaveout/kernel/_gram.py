# SPDX-License-Identifier: BSD-3-Clause
"""Gram matrices, and kernel expansions evaluated at new samples.

``KERNELS`` is the only list of kernels. To add one, write a function that takes the two
sets of rows and the parameters and returns a *filler*, ``fill(rows, columns, out)``,
which writes one block of kernel values, and give it a ``KernelSpec``. Estimators,
default grids, the test for definiteness and the tests of all kernels read the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances
from sklearn.preprocessing import normalize
from sklearn.utils import check_array
from sklearn.utils.extmath import row_norms

from leaveout._typing import FloatArray, IntArray
from leaveout.kernel._symmetric import (
    first_equal_rows,
    first_near_rows,
    largest_asymmetry,
    mirror_upper_rows,
    row_blocks,
    share_equal_rows,
    symmetrised,
)

Filler = Callable[[slice, slice, FloatArray], None]
# A larger difference between K[i, j] and K[j, i], relative to max |K|, is an error of
# the caller, not rounding.
SYMMETRY_TOLERANCE = 1e-8
# Kernel values per block: 32 MB, a few thousand rows for a few thousand centres.
BLOCK_VALUES = 2**22


class _Parameters(NamedTuple):
    gamma: float
    degree: int
    coef0: float


@dataclass(frozen=True)
class KernelSpec:
    """What the package needs to know about a kernel."""

    fill: Callable[[Any, Any, _Parameters], Filler]
    # Which of gamma, degree and coef0 change the kernel.
    parameters: tuple[str, ...] = ()
    # Whether all its Gram matrices are positive semi-definite with this coef0.
    always_psd: Callable[[float], bool] = lambda coef0: True
    # The quantity that gamma multiplies; default gammas come from its median.
    size_of: Callable[[Any], FloatArray] | None = None
    # Whether k(x, x) = 1 for every x, though rounding may make it less.
    unit_diagonal: bool = False


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
        Whether K is positive semi-definite; None if it was not tested.
    first_equal : ndarray of shape (n,) or None, default=None
        Index of the first equal row of K; None if all are distinct.
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
    if kernel == "precomputed":
        K = check_gram(X)
        return Gram(K, None, first_equal=_repeated_rows(K))
    with np.errstate(over="ignore"):  # gram_matrix has a clearer message
        number = None if callable(kernel) else resolve_gamma(gamma, X)
    K = gram_matrix(X, kernel=kernel, gamma=number, degree=degree, coef0=coef0)
    return Gram(K, number, first_equal=_repeated_rows(K))


def _repeated_rows(K: FloatArray) -> IntArray | None:
    """Return the index of the first equal row per row, or None if all are distinct."""
    first = first_equal_rows(K)
    return None if np.array_equal(first, np.arange(first.size)) else first


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
    Besides K, it needs memory for only 128 rows and a copy of X.
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
        return _call_kernel(kernel, X, Y)
    if not _is_named(kernel):
        raise ValueError(
            f"kernel must be one of {', '.join(map(repr, KERNELS))}, 'precomputed', or "
            f"a callable; got {kernel!r}."
        )
    parameters = _check_parameters(gamma, degree, coef0, X.shape[1])
    spec = KERNELS[kernel]
    with np.errstate(over="ignore", invalid="ignore"):  # _check_finite reports where
        K = _fill(spec, X, X if Y is None else Y, parameters)
    _check_finite(K, f"Gram matrix of kernel={kernel!r}")
    if Y is None:
        if spec.unit_diagonal:
            np.fill_diagonal(K, 1.0)
        share_equal_rows(K, first_equal_rows(X))
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
    variance = float(X.multiply(X).mean() - X.mean() ** 2 if is_sparse else X.var())
    return 1.0 / (n_features * variance) if variance > 0 else 1.0


def check_gram(K: Any, n_columns: int | None = None) -> FloatArray:
    """Check a precomputed Gram matrix, and return it symmetric to the last bit.

    It must be symmetric up to 1e-8 of its largest value. With ``n_columns`` it instead
    has one row per new sample and that many columns. It is copied only if changed.
    """
    if sparse.issparse(K):
        raise TypeError(
            "kernel='precomputed' needs a dense Gram matrix, but X is sparse. "
            "Pass X.toarray()."
        )
    K = check_array(K, dtype=np.float64, order="C", input_name="X")
    name = "precomputed Gram matrix X"
    if n_columns == K.shape[1]:
        return K
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


def _with_equal_copies(K: FloatArray) -> FloatArray:
    """Return K with rows made equal that differ by rounding; K itself if none do."""
    first = first_near_rows(K)
    repeated = np.flatnonzero(first != np.arange(first.shape[0]))
    if all(np.array_equal(K[i], K[first[i]]) for i in repeated):
        return K
    K = K.copy()
    share_equal_rows(K, first)
    return K


def _linear(X: Any, Y: Any, parameters: _Parameters) -> Filler:
    """<x, y>."""
    return lambda rows, columns, out: _inner_products(X[rows], Y[columns], out)


def _cosine(X: Any, Y: Any, parameters: _Parameters) -> Filler:
    """<x, y> / (|x| |y|); a zero row has zero similarity."""
    unit_X = normalize(X)
    unit_Y = unit_X if Y is X else normalize(Y)
    return _linear(unit_X, unit_Y, parameters)


def _rbf(X: Any, Y: Any, parameters: _Parameters) -> Filler:
    """exp(-gamma |x - y|^2)."""
    X, Y = _around_median(X, Y)
    squares_X = row_norms(X, squared=True)
    squares_Y = squares_X if Y is X else row_norms(Y, squared=True)
    doubled_X = -2.0 * X

    def fill(rows: slice, columns: slice, out: FloatArray) -> None:
        _inner_products(doubled_X[rows], Y[columns], out)
        out += squares_X[rows, None]
        out += squares_Y[columns]
        np.maximum(out, 0.0, out=out)
        out *= -parameters.gamma
        np.exp(out, out=out)

    return fill


def _laplacian(X: Any, Y: Any, parameters: _Parameters) -> Filler:
    """exp(-gamma |x - y|_1)."""

    def fill(rows: slice, columns: slice, out: FloatArray) -> None:
        distances = manhattan_distances(X[rows], Y[columns])
        np.multiply(distances, -parameters.gamma, out=out)
        np.exp(out, out=out)

    return fill


def _poly(X: Any, Y: Any, parameters: _Parameters) -> Filler:
    """(gamma <x, y> + coef0)^degree."""
    power = partial(_raise_to_power, degree=parameters.degree)
    return _of_products(X, Y, parameters, power)


def _sigmoid(X: Any, Y: Any, parameters: _Parameters) -> Filler:
    """tanh(gamma <x, y> + coef0)."""
    return _of_products(X, Y, parameters, lambda out: np.tanh(out, out=out))


def _of_products(
    X: Any, Y: Any, parameters: _Parameters, apply: Callable[[FloatArray], Any]
) -> Filler:
    """Fill with gamma <x, y> + coef0, then apply a function in place."""

    def fill(rows: slice, columns: slice, out: FloatArray) -> None:
        _inner_products(X[rows], Y[columns], out)
        out *= parameters.gamma
        out += parameters.coef0
        apply(out)

    return fill


def _squared_norms(X: Any) -> FloatArray:
    squares = X.multiply(X) if sparse.issparse(X) else X * X
    return np.asarray(squares.sum(axis=1)).ravel()


def _squared_distances(X: Any) -> FloatArray:
    if not sparse.issparse(X):
        return pdist(X, "sqeuclidean")
    return euclidean_distances(X, squared=True)[np.triu_indices(X.shape[0], 1)]


def _absolute_distances(X: Any) -> FloatArray:
    if not sparse.issparse(X):
        return pdist(X, "cityblock")
    return manhattan_distances(X)[np.triu_indices(X.shape[0], 1)]


KERNELS: dict[str, KernelSpec] = {
    "linear": KernelSpec(_linear),
    "rbf": KernelSpec(_rbf, ("gamma",), size_of=_squared_distances, unit_diagonal=True),
    "poly": KernelSpec(
        _poly, ("gamma", "degree", "coef0"), lambda coef0: coef0 >= 0, _squared_norms
    ),
    "sigmoid": KernelSpec(
        _sigmoid, ("gamma", "coef0"), lambda coef0: False, _squared_norms
    ),
    "laplacian": KernelSpec(_laplacian, ("gamma",), size_of=_absolute_distances),
    "cosine": KernelSpec(_cosine),
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


def _fill(spec: KernelSpec, X: Any, Y: Any, parameters: _Parameters) -> FloatArray:
    """Compute all blocks of rows; if Y is X, mirror the upper triangle."""
    fill, n_columns = spec.fill(X, Y, parameters), Y.shape[0]
    K = np.empty((X.shape[0], n_columns))
    for rows in row_blocks(X.shape[0]):
        start = rows.start if Y is X else 0
        fill(rows, slice(start, n_columns), K[rows, start:])
        if Y is X:
            mirror_upper_rows(K, rows)
    return K


def _inner_products(X: Any, Y: Any, out: FloatArray) -> None:
    """Write X @ Y.T, dense whatever X and Y are."""
    if not (sparse.issparse(X) or sparse.issparse(Y)):
        np.matmul(X, Y.T, out=out)
        return
    products = X @ Y.T
    out[...] = products.toarray() if sparse.issparse(products) else products


def _raise_to_power(values: FloatArray, degree: int) -> None:
    """Raise in place by repeated squaring: about ten times faster than NumPy's pow."""
    factor = values.copy()
    values[...] = 1.0
    while degree:
        if degree % 2:
            values *= factor
        degree //= 2
        if degree:
            factor *= factor


def _around_median(X: Any, Y: Any) -> tuple[Any, Any]:
    """Move the origin to Y's lower median: no cancellation; integers stay exact."""
    if sparse.issparse(X) or sparse.issparse(Y):
        return X, Y
    centre = np.quantile(Y, 0.5, axis=0, method="lower")
    moved_Y = Y - centre
    return (moved_Y if X is Y else X - centre), moved_Y


def _call_kernel(kernel: Callable[..., Any], X: Any, Y: Any) -> FloatArray:
    """Evaluate the user's kernel and check its result."""
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
        return K
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
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(K.sum()):
            return
    for i, j in np.argwhere(~np.isfinite(K))[:1]:
        raise ValueError(
            f"The {name} is not finite: K[{i}, {j}] is {K[i, j]}. Standardise the "
            "features, or check the formula and the parameters of the kernel."
        )


def _check_features(X: Any, name: str) -> Any:
    """Return X as finite float64, dense and C-contiguous or CSR."""
    if type(X) is np.ndarray and X.ndim == 2 and X.size and X.flags.c_contiguous:
        # The usual case: an estimator has checked X. A sum over NaN is NaN.
        with np.errstate(over="ignore", invalid="ignore"):
            if X.dtype == np.float64 and np.isfinite(X.sum()):
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
    return isinstance(value, Real) and not isinstance(value, bool)


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
