# SPDX-License-Identifier: BSD-3-Clause
"""Features from which the left-out label of a sample can be guessed.

Tsuda, Rätsch, Mika & Müller (2001, section 3): what a kernel classifier says of a
sample and of its three nearest neighbours, without leaving anything out. Variants::

                  coefficient of x_k            value at x_k
    "natural"     y_p a_k D_f^2                 y_p f(x_k)
    "signed"      y_p a_k                       y_p f(x_k) / ||w||
    "scaled"      y_p a_k / C_k                 y_p f(x_k) / ||w||
    "printed"     |a_k|                         f(x_k) / ||w||^2

p is the sample to be left out, D_f the largest distance in feature space. The printed
value knows no label, so that it cannot tell right from wrong; seen from the label of p
it can. In "natural", coefficients and values are in one unit, that of the margin: the
left-out error y_p f(x_p) < a_p S_p^2 of the span rule, with S_p a distance in feature
space, then reads alike for every C and kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leaveout._typing import FloatArray, IntArray

N_NEIGHBOURS = 3
VARIANTS = ("natural", "signed", "scaled", "printed")


@dataclass(frozen=True)
class FittedExpansion:
    """A kernel classifier f_c(x) = sum_j coef_cj K(x, x_j) + b_c on its training set.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Gram matrix.
    squares : ndarray of shape (n, n)
        Squared distances in input space.
    codes : ndarray of shape (n,)
        Class of each sample, from 0.
    coef : ndarray of shape (n_machines, n)
        Signed coefficients: one machine for two classes, positive for class 1, or one
        for each class.
    intercept : ndarray of shape (n_machines,)
        b.
    box : ndarray of shape (n,), optional
        Largest absolute coefficient of each sample, if there is one.
    row_dual : ndarray of shape (n_machines, n), optional
        Dual weights of the samples, where these are no coefficients (LPM).
    row_box : ndarray of shape (n,), optional
        Largest dual weight of each sample.
    """

    K: FloatArray
    squares: FloatArray
    codes: IntArray
    coef: FloatArray
    intercept: FloatArray
    box: FloatArray | None = None
    row_dual: FloatArray | None = None
    row_box: FloatArray | None = None

    @property
    def machines(self) -> IntArray:
        """The machine of each sample's class."""
        return self.codes if self.coef.shape[0] > 1 else np.zeros_like(self.codes)

    @property
    def signs(self) -> FloatArray:
        """-1 where the machine of a sample is positive for the other class."""
        if self.coef.shape[0] > 1:
            return np.ones(self.codes.size)
        return np.where(self.codes == 1, 1.0, -1.0)


def name_features(variant: str, *, row_dual: bool) -> list[str]:
    """Return the names of the 14 features, or of the 18 with dual weights.

    Examples
    --------
    >>> len(name_features("natural", row_dual=False))
    14
    >>> name_features("natural", row_dual=False)[:4]
    ['coef', 'margin', 'input_distance_1', 'feature_distance_1']
    """
    margin = "value" if variant == "printed" else "margin"
    own = ["coef", *["row_dual"] * row_dual, margin]
    names = list(own)
    for k in range(1, N_NEIGHBOURS + 1):
        names += [f"{name}_{k}" for name in ("input_distance", "feature_distance")]
        names += [f"{name}_{k}" for name in own]
    return names


def leave_one_out_features(
    fitted: FittedExpansion, variant: str = "natural"
) -> FloatArray:
    """Compute the features of every sample, (n, 14), or (n, 18) with dual weights.

    Parameters
    ----------
    fitted : FittedExpansion
        The classifier, and the samples it was fitted on.
    variant : {"natural", "signed", "scaled", "printed"}, default="natural"
        Units and signs of coefficients and values, see above.

    Returns
    -------
    ndarray of shape (n, n_features)
        Columns as :func:`name_features` says.
    """
    near = nearest(fitted.squares, N_NEIGHBOURS)
    everyone = np.column_stack([np.arange(near.shape[0]), near])
    spread = _largest_square(fitted.K)
    parts = [_coefficients(fitted, everyone, variant, spread)]
    if fitted.row_dual is not None:
        duals = fitted.row_dual
        if variant in ("natural", "scaled") and fitted.row_box is not None:
            duals = _divide(duals, fitted.row_box)
        parts.append(duals[fitted.machines[:, None], everyone])
    parts.append(_margins(fitted, everyone, variant))
    per_sample = np.stack(parts, axis=2)
    inputs = np.take_along_axis(fitted.squares, near, axis=1)
    mapped = _mapped_squares(fitted.K, near)
    distances = np.sqrt(
        np.stack(
            [_share(inputs, float(fitted.squares.max())), _share(mapped, spread)],
            axis=2,
        )
    )
    columns = [per_sample[:, 0]]
    for k in range(N_NEIGHBOURS):
        columns += [distances[:, k], per_sample[:, k + 1]]
    return np.hstack(columns)


def nearest(squares: FloatArray, k: int) -> IntArray:
    """Return the k nearest others of each sample; of equally near ones the first.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([0.0, 1.0, 3.0, 4.0])
    >>> nearest(np.abs(x - x[:, None]), 2)
    array([[1, 2],
           [0, 2],
           [3, 1],
           [2, 1]])
    """
    left = squares.copy()
    np.fill_diagonal(left, np.inf)
    rows = np.arange(left.shape[0])
    found = np.empty((left.shape[0], k), dtype=np.intp)
    for column in found.T:
        column[:] = left.argmin(axis=1)
        left[rows, column] = np.inf
    return found


def feature_squares(K: FloatArray) -> FloatArray:
    """Return the squared distances of all samples in feature space.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([0.0, 1.0, 3.0])
    >>> feature_squares(np.outer(x, x))
    array([[0., 1., 9.],
           [1., 0., 4.],
           [9., 4., 0.]])
    """
    diagonal = K.diagonal()
    return np.maximum(np.add.outer(diagonal, diagonal) - 2.0 * K, 0.0)


def _largest_square(K: FloatArray) -> float:
    """Return the largest squared distance in feature space, D_f^2."""
    diagonal = K.diagonal()
    if np.ptp(diagonal) == 0.0:
        return 2.0 * float(diagonal[0] - K.min())
    return float(feature_squares(K).max())


def _mapped_squares(K: FloatArray, near: IntArray) -> FloatArray:
    """Return the squared distances to some others in feature space."""
    diagonal = K.diagonal()
    both = diagonal[:, None] + diagonal[near]
    return np.maximum(both - 2.0 * np.take_along_axis(K, near, axis=1), 0.0)


def _coefficients(
    fitted: FittedExpansion, others: IntArray, variant: str, spread: float
) -> FloatArray:
    """Return the coefficients of some others in the machine of each sample's class."""
    coef = fitted.coef
    if variant == "scaled":
        coef = _divide(coef, _largest(coef) if fitted.box is None else fitted.box)
    chosen = coef[fitted.machines[:, None], others]
    if variant == "printed":
        return np.abs(chosen)
    unit = spread if variant == "natural" else 1.0
    return chosen * fitted.signs[:, None] * unit


def _largest(coef: FloatArray) -> FloatArray:
    return np.abs(coef).max(axis=1, keepdims=True)


def _divide(values: FloatArray, size: FloatArray) -> FloatArray:
    """Return values / size, 0 where size is."""
    size = np.broadcast_to(size, values.shape)
    return np.divide(values, size, out=np.zeros_like(values), where=size > 0.0)


def _margins(fitted: FittedExpansion, others: IntArray, variant: str) -> FloatArray:
    """Return the values at some others, for the class of each sample."""
    values = fitted.K @ fitted.coef.T
    squares = np.einsum("nm,mn->m", values, fitted.coef)  # ||w||^2 = a'Ka
    values += fitted.intercept
    norms = np.sqrt(np.maximum(squares, 0.0))[fitted.machines][:, None]
    if variant == "printed":
        return _divide(values[others, fitted.machines[:, None]], norms**2)
    seen = _own_minus_best_other(fitted, values, others)
    return seen if variant == "natural" else _divide(seen, norms)


def _own_minus_best_other(
    fitted: FittedExpansion, values: FloatArray, others: IntArray
) -> FloatArray:
    """y_p f(x_k) for two classes; for more, class of p minus the best other at x_k."""
    if values.shape[1] == 1:
        return values[others, 0] * fitted.signs[:, None]
    own = values[others, fitted.codes[:, None]]
    rivals = values[others]
    np.put_along_axis(rivals, fitted.codes[:, None, None], -np.inf, axis=2)
    return own - rivals.max(axis=2)


def _share(squares: FloatArray, largest: float) -> FloatArray:
    """Return squares as shares of the largest of all."""
    return squares / largest if largest > 0.0 else np.zeros_like(squares)
