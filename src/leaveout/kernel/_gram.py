# SPDX-License-Identifier: BSD-3-Clause
"""From features to a Gram matrix, and expansions evaluated at new samples.

Gram matrices of the kernels that scikit-learn's SVC knows, and two more.

A kernel is a function that takes the two sets of rows and the parameters and returns
a *filler*: ``fill(rows, columns, out)`` writes one block of kernel values. To add a
kernel, write such a function and list it in ``KERNELS``.

Values of kernel expansions at new points, in blocks of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import manhattan_distances
from sklearn.preprocessing import normalize
from sklearn.utils import check_array
from sklearn.utils.extmath import row_norms

from leaveout._typing import FloatArray
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
# Larger differences between K[i, j] and K[j, i], relative to max |K|, are a mistake of
# the caller rather than rounding.
SYMMETRY_TOLERANCE = 1e-8
# Kernel values of one block: 32 MB, some thousand rows for some thousand centres.
BLOCK_VALUES = 2**22


@dataclass(frozen=True)
class _Parameters:
    gamma: float
    degree: int
    coef0: float


@dataclass(frozen=True)
class Gram:
    """A Gram matrix and where it comes from.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        2^-exponent times the kernel values.
    gamma : float or None
        The number used for gamma; None if the kernel takes none from us.
    exponent : int, default=0
        Scale of K, see :func:`~leaveout.loo._task.make_task`.
    definite : bool or None, default=None
        Whether K is positive semi-definite; None if it was not tested.
    """

    K: FloatArray
    gamma: float | None
    exponent: int = 0
    definite: bool | None = None


def make_gram(
    X: Any,
    *,
    kernel: str | Callable[..., Any],
    gamma: str | float = "scale",
    degree: int = 3,
    coef0: float = 0.0,
) -> Gram:
    """Return the Gram matrix of checked samples, gamma resolved on all of them."""
    if kernel == "precomputed":
        return Gram(check_gram(X), None)
    with np.errstate(over="ignore"):  # gram_matrix says it better
        number = None if callable(kernel) else resolve_gamma(gamma, X)
    K = gram_matrix(X, kernel=kernel, gamma=number, degree=degree, coef0=coef0)
    return Gram(K, number)


def gram_matrix(
    X: Any,
    Y: Any = None,
    *,
    kernel: str | Callable[..., Any],
    gamma: float | None = None,
    degree: int = 3,
    coef0: float = 0.0,
) -> FloatArray:
    """Compute the kernel values between the rows of X and those of Y.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, p)
        Samples. If kernel="precomputed", the kernel values themselves, dense.
    Y : array-like or sparse matrix of shape (m, p), default=None
        Other samples; None means X, and gives a symmetric matrix. If
        kernel="precomputed", only the number of rows of Y matters: X has a column for
        each of them.
    kernel : str or callable
        "linear", "rbf", "poly", "sigmoid", "laplacian" or "cosine", with the formulas
        of :mod:`sklearn.metrics.pairwise`; "precomputed"; or a function that takes two
        matrices of shapes (n, p) and (m, p) and returns the values, (n, m).
    gamma : float, default=None
        Coefficient of "rbf", "poly", "sigmoid" and "laplacian", at least 0. None means
        1 / p. For "scale" and "auto" see :func:`resolve_gamma`.
    degree : int, default=3
        Exponent of "poly".
    coef0 : float, default=0.0
        Constant of "poly" and "sigmoid".

    Returns
    -------
    K : ndarray of shape (n, m)
        Float64, C-contiguous. With Y=None it is symmetric to the last bit, samples
        that are equal have equal rows and columns to the last bit, and the diagonal of
        "rbf" is exactly 1. A precomputed matrix that has this layout already is
        returned as it is, not copied; the caller's array is never changed.

    Notes
    -----
    Besides K there are only blocks of 128 rows and a copy of X in memory. The squared
    distances of "rbf" come from inner products. They are taken around the median of
    the columns: this avoids cancellation for data far from the origin, and keeps
    data of whole numbers whole, whose distances are then exact.

    Equality of rows holds within one call with Y=None only: between X and Y, BLAS may
    round the values of two equal rows differently in the last bits.

    Examples
    --------
    >>> gram_matrix([[0.0], [1.0], [3.0]], kernel="linear")
    array([[0., 0., 0.],
           [0., 1., 3.],
           [0., 3., 9.]])
    >>> gram_matrix([[0.0], [1.0]], [[1.0]], kernel="rbf", gamma=2.0).round(4)
    array([[0.1353],
           [1.    ]])
    """
    if kernel == "precomputed":
        return check_gram(X, n_columns=None if Y is None else _n_rows(Y))
    X = _check_features(X, "X")
    if Y is not None:
        Y = _check_features(Y, "Y")
        _check_same_features(X, Y)
    if callable(kernel):
        return _call_kernel(kernel, X, Y)
    parameters = _Parameters(
        _check_gamma(gamma, X.shape[1]), _check_degree(degree), _check_coef0(coef0)
    )
    make_filler = _find_kernel(kernel)
    with np.errstate(over="ignore", invalid="ignore"):  # _check_finite says it better
        if Y is None:
            K = _fill_symmetric(make_filler(X, X, parameters), X.shape[0])
        else:
            K = _fill_rectangle(make_filler(X, Y, parameters), X.shape[0], Y.shape[0])
    _check_finite(K, f"Gram matrix of kernel={kernel!r}")
    if Y is None:
        if kernel == "rbf":
            np.fill_diagonal(K, 1.0)
        share_equal_rows(K, first_equal_rows(X))
    return K


def resolve_gamma(gamma: str | float, X: Any) -> float:
    """Return the number that gamma means on the training samples X.

    Parameters
    ----------
    gamma : {"scale", "auto"} or float
        "scale" is 1 / (p * X.var()), or 1 if X is constant; "auto" is 1 / p; a number
        is itself.
    X : array-like or sparse matrix of shape (n, p)
        All training samples.

    Examples
    --------
    >>> X = [[0.0, 2.0], [2.0, 0.0]]
    >>> resolve_gamma("scale", X), resolve_gamma("auto", X), resolve_gamma(3, X)
    (0.5, 0.5, 3.0)
    """
    if not isinstance(gamma, str):
        return _check_gamma(gamma, n_features=1)
    if gamma not in ("scale", "auto"):
        raise ValueError(
            f"gamma must be 'scale', 'auto' or a number >= 0; got {gamma!r}."
        )
    X = X if sparse.issparse(X) else np.asarray(X)
    n_features = X.shape[1]
    if gamma == "auto":
        return 1.0 / n_features
    variance = _variance(X)
    return 1.0 / (n_features * variance) if variance > 0 else 1.0


def check_gram(K: Any, n_columns: int | None = None) -> FloatArray:
    """Check a precomputed Gram matrix, and return it symmetric to the last bit.

    Parameters
    ----------
    K : array-like of shape (n, n), or (m, n) if n_columns is given
        Kernel values.
    n_columns : int, default=None
        None for the values among the training samples, which must be square and
        symmetric up to 1e-8 of the largest value. Otherwise K has a row per new sample
        and a column for each of the n_columns training samples.

    Returns
    -------
    K : ndarray
        Float64 and C-contiguous; the argument itself if nothing had to be changed.

    Examples
    --------
    >>> check_gram([[1.0, 0.5], [0.6, 1.0]])
    Traceback (most recent call last):
    ...
    ValueError: The precomputed Gram matrix X is not symmetric: X[0, 1] and X[1, 0] ...
    """
    if sparse.issparse(K):
        raise TypeError(
            "kernel='precomputed' needs a dense Gram matrix, but X is sparse. "
            "Pass X.toarray()."
        )
    K = check_array(K, dtype=np.float64, order="C", input_name="X")
    name = "precomputed Gram matrix X"
    if n_columns is not None:
        if K.shape[1] != n_columns:
            raise ValueError(
                f"The {name} has {K.shape[1]} columns, but there are {n_columns} "
                "training samples. Pass the kernel values between the new samples "
                "(rows) and the training samples (columns)."
            )
        return K
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"The {name} must be square, (n_samples, n_samples); got {K.shape}. "
            "Pass kernel values, or choose another kernel for features."
        )
    return _with_equal_copies(_make_symmetric(K, name, "X"))


def _with_equal_copies(K: FloatArray) -> FloatArray:
    """Return K with rows equal to rounding made equal; K itself if they are so."""
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
        np.multiply(
            manhattan_distances(X[rows], Y[columns]), -parameters.gamma, out=out
        )
        np.exp(out, out=out)

    return fill


def _poly(X: Any, Y: Any, parameters: _Parameters) -> Filler:
    """(gamma <x, y> + coef0)^degree."""

    def fill(rows: slice, columns: slice, out: FloatArray) -> None:
        _affine_products(X[rows], Y[columns], parameters, out)
        _raise_to_power(out, parameters.degree)

    return fill


def _sigmoid(X: Any, Y: Any, parameters: _Parameters) -> Filler:
    """tanh(gamma <x, y> + coef0)."""

    def fill(rows: slice, columns: slice, out: FloatArray) -> None:
        _affine_products(X[rows], Y[columns], parameters, out)
        np.tanh(out, out=out)

    return fill


KERNELS: dict[str, Callable[[Any, Any, _Parameters], Filler]] = {
    "linear": _linear,
    "rbf": _rbf,
    "poly": _poly,
    "sigmoid": _sigmoid,
    "laplacian": _laplacian,
    "cosine": _cosine,
}


def _fill_symmetric(fill: Filler, n_samples: int) -> FloatArray:
    """Compute the blocks on and above the diagonal; mirror them below it."""
    K = np.empty((n_samples, n_samples))
    for rows in row_blocks(n_samples):
        fill(rows, slice(rows.start, n_samples), K[rows, rows.start :])
        mirror_upper_rows(K, rows)
    return K


def _fill_rectangle(fill: Filler, n_rows: int, n_columns: int) -> FloatArray:
    """Compute all blocks of rows."""
    K = np.empty((n_rows, n_columns))
    for rows in row_blocks(n_rows):
        fill(rows, slice(0, n_columns), K[rows])
    return K


def _inner_products(X: Any, Y: Any, out: FloatArray) -> None:
    """Write X @ Y.T, dense whatever X and Y are."""
    if not (sparse.issparse(X) or sparse.issparse(Y)):
        np.matmul(X, Y.T, out=out)
        return
    products = X @ Y.T
    out[...] = products.toarray() if sparse.issparse(products) else products


def _affine_products(X: Any, Y: Any, parameters: _Parameters, out: FloatArray) -> None:
    """Write gamma * X @ Y.T + coef0."""
    _inner_products(X, Y, out)
    out *= parameters.gamma
    out += parameters.coef0


def _raise_to_power(values: FloatArray, degree: int) -> None:
    """Raise in place by repeated squaring: some ten times faster than NumPy's pow."""
    factor = values.copy()
    values[...] = 1.0
    while degree:
        if degree % 2:
            values *= factor
        degree //= 2
        if degree:
            factor *= factor


def _around_median(X: Any, Y: Any) -> tuple[Any, Any]:
    """Move the origin to the lower median of Y's columns, a value of the data."""
    if sparse.issparse(X) or sparse.issparse(Y):
        return X, Y
    centre = np.quantile(Y, 0.5, axis=0, method="lower")
    moved_Y = Y - centre
    return (moved_Y if X is Y else X - centre), moved_Y


def _call_kernel(kernel: Callable[..., Any], X: Any, Y: Any) -> FloatArray:
    """Evaluate the user's kernel and hold its result to the contract of gram_matrix."""
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
    """Return K if it is symmetric, a repaired copy if nearly so, else raise."""
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
    for rows in row_blocks(K.shape[0]):
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(K[rows].sum()):
                continue
        bad = np.argwhere(~np.isfinite(K[rows]))
        if bad.size:
            i, j = bad[0, 0] + rows.start, bad[0, 1]
            raise ValueError(
                f"The {name} is not finite: K[{i}, {j}] is {K[i, j]}. Standardise the "
                "features, or check the formula and the parameters of the kernel."
            )


def _check_features(X: Any, name: str) -> Any:
    """Return X as finite float64, dense and C-contiguous or CSR."""
    if type(X) is np.ndarray and X.ndim == 2 and X.size and X.flags.c_contiguous:
        # The usual case, from an estimator that has checked X; a sum over NaN is NaN.
        with np.errstate(over="ignore", invalid="ignore"):
            if X.dtype == np.float64 and np.isfinite(X.sum()):
                return X
    return check_array(
        X, accept_sparse="csr", dtype=np.float64, order="C", input_name=name
    )


def _check_same_features(X: Any, Y: Any) -> None:
    if X.shape[1] != Y.shape[1]:
        raise ValueError(
            f"X has {X.shape[1]} features but Y has {Y.shape[1]}. "
            "Pass the same columns for both."
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


def _check_degree(degree: Any) -> int:
    if not isinstance(degree, Integral) or isinstance(degree, bool) or degree < 0:
        raise ValueError(f"degree must be a whole number >= 0; got {degree!r}.")
    return int(degree)


def _check_coef0(coef0: Any) -> float:
    if not _is_number(coef0) or not np.isfinite(coef0):
        raise ValueError(f"coef0 must be a finite number; got {coef0!r}.")
    return float(coef0)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _find_kernel(kernel: Any) -> Callable[[Any, Any, _Parameters], Filler]:
    """Return the maker of the named kernel's filler."""
    if not isinstance(kernel, str) or kernel not in KERNELS:
        names = ", ".join(repr(name) for name in KERNELS)
        raise ValueError(
            f"kernel must be one of {names}, 'precomputed', or a callable; "
            f"got {kernel!r}."
        )
    return KERNELS[kernel]


def _variance(X: Any) -> float:
    """Return the variance over all entries, as scikit-learn's SVC computes it."""
    if sparse.issparse(X):
        return float(X.multiply(X).mean() - X.mean() ** 2)
    return float(X.var())


def _n_rows(Y: Any) -> int:
    return Y.shape[0] if hasattr(Y, "shape") else len(Y)


def evaluate_expansion(
    X: Any,
    centres: Any,
    coefficients: FloatArray,
    intercepts: FloatArray,
    *,
    kernel: str | Callable[..., Any],
    gamma: float | None = None,
    degree: int = 3,
    coef0: float = 0.0,
) -> FloatArray:
    """Compute f_k(x) = sum_s c_sk K(x, x_s) + b_k for each row x of X.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, p), or (n, m) if precomputed
        New points; if kernel="precomputed", their kernel values with the centres.
    centres : array-like or sparse matrix of shape (m, p)
        The points x_s, not asked if kernel="precomputed".
    coefficients : ndarray of shape (m, n_machines)
        c. Without centres, m = 0, the values are the intercepts.
    intercepts : ndarray of shape (n_machines,)
        b.
    kernel, gamma, degree, coef0
        As :func:`gram_matrix` takes them.

    Returns
    -------
    ndarray of shape (n, n_machines)
        The values. Besides them and X, at most 32 MB of kernel values are in memory.

    Examples
    --------
    >>> import numpy as np
    >>> evaluate_expansion(
    ...     [[0.0], [2.0]], [[1.0]], np.array([[3.0]]), np.array([1.0]), kernel="linear"
    ... )
    array([[1.],
           [7.]])
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
            K = gram_matrix(
                K, centres, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0
            )
        values[rows] += K @ coefficients
    return values
