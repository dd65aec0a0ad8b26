# SPDX-License-Identifier: BSD-3-Clause
"""Features that predict the left-out label of a sample (Tsuda et al. 2001, section 3).

They describe a sample and its three nearest neighbours in the classifier fitted on all
samples. Variants, for the sample p to be left out and a neighbour k::

                  coefficient of x_k            value at x_k
    "natural"     y_p a_k D_f^2                 y_p f(x_k)
    "relative"    "natural", in units of |y_p f(x_p)| + |a_p| D_f^2
    "signed"      y_p a_k                       y_p f(x_k) / ||w||
    "scaled"      y_p a_k / C_k                 y_p f(x_k) / ||w||
    "printed"     |a_k|                         f(x_k) / ||w||^2

D_f is the largest distance in feature space. The value printed in the paper lacks the
label, so it cannot separate right from wrong. In "natural", coefficients and values are
both in units of the margin, so that the span rule y_p f(x_p) < a_p S_p^2, with S_p a
distance in feature space, is the same for every C and kernel. There and in "relative",
distances in feature space are squared, so that products of two features contain the
terms a_p d^2 of that rule. "relative" also makes small and large C comparable.
"""

from __future__ import annotations

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.adapt._fitted import FittedExpansion, feature_squares

N_NEIGHBOURS = 3
SQUARED = ("natural", "relative")
VARIANTS = (*SQUARED, "signed", "scaled", "printed")


def name_features(variant: str, *, row_dual: bool) -> list[str]:
    """Return the names of the 14 features, or of 18 with row duals."""
    margin = "value" if variant == "printed" else "margin"
    own = ["coef", *["row_dual"] * row_dual, margin]
    mapped = "feature_square" if variant in SQUARED else "feature_distance"
    names = list(own)
    for k in range(1, N_NEIGHBOURS + 1):
        names += [f"{name}_{k}" for name in ("input_distance", mapped, *own)]
    return names


def leave_one_out_features(
    fitted: FittedExpansion, variant: str = "natural"
) -> FloatArray:
    """Return the features of every sample, columns as :func:`name_features`."""
    if variant == "relative":
        return relative_to_own(leave_one_out_features(fitted, "natural"))
    near = nearest(fitted.squares, N_NEIGHBOURS)
    involved = np.column_stack([np.arange(near.shape[0]), near])
    mapped = feature_squares(fitted.K)
    spread = float(mapped.max())
    parts = [_coefficients(fitted, involved, variant, spread)]
    if fitted.row_dual is not None:
        duals = fitted.row_dual
        if variant in ("natural", "scaled") and fitted.row_bound is not None:
            duals = _divide(duals, fitted.row_bound)
        parts.append(duals[fitted.rows[:, None], involved])
    parts.append(_margins(fitted, involved, variant))
    per_sample = np.stack(parts, axis=2)
    shares = [_share_of_largest(squares, near) for squares in (fitted.squares, mapped)]
    distances = np.stack(shares, axis=2)
    squared = 1 if variant in SQUARED else 2
    np.sqrt(distances[..., :squared], out=distances[..., :squared])
    columns = [per_sample[:, 0]]
    for k in range(N_NEIGHBOURS):
        columns += [distances[:, k], per_sample[:, k + 1]]
    return np.hstack(columns)


def relative_to_own(natural: FloatArray) -> FloatArray:
    """Return "relative" features, given "natural" ones.

    With s = |own coefficient| + |own margin|, own values are divided by s and a
    neighbour's value v by s + |v|. Distances and row duals do not change.
    """
    width = natural.shape[1]
    names = name_features("relative", row_dual=width == 18)
    scaled = [i for i, n in enumerate(names) if n.startswith(("coef", "margin"))]
    values = natural[:, scaled]
    own = np.abs(values[:, :2]).sum(axis=1, keepdims=True)
    sizes = np.hstack([own, own, own + np.abs(values[:, 2:])])
    relative = natural.copy()
    relative[:, scaled] = _divide(values, sizes)
    return relative


def nearest(squares: FloatArray, k: int) -> IntArray:
    """Return the k nearest neighbours of each sample; ties go to the lower row."""
    left = squares.copy()
    np.fill_diagonal(left, np.inf)
    rows = np.arange(left.shape[0])
    found = np.empty((left.shape[0], k), dtype=np.intp)
    for column in found.T:
        column[:] = left.argmin(axis=1)
        left[rows, column] = np.inf
    return found


def _coefficients(
    fitted: FittedExpansion, others: IntArray, variant: str, spread: float
) -> FloatArray:
    """Return coefficients of ``others`` in the classifier of each sample's class."""
    coef = fitted.coef
    if variant == "scaled":
        largest = np.abs(coef).max(axis=1, keepdims=True)
        coef = _divide(coef, largest if fitted.bound is None else fitted.bound)
    chosen = coef[fitted.rows[:, None], others]
    if variant == "printed":
        return np.abs(chosen)
    unit = spread if variant == "natural" else 1.0
    return chosen * fitted.signs[:, None] * unit


def _divide(values: FloatArray, size: FloatArray) -> FloatArray:
    """Return values / size, or 0 where size is 0."""
    size = np.broadcast_to(size, values.shape)
    return np.divide(values, size, out=np.zeros_like(values), where=size > 0.0)


def _margins(fitted: FittedExpansion, others: IntArray, variant: str) -> FloatArray:
    """Return the decision values at ``others`` for the class of each sample."""
    values = fitted.K @ fitted.coef.T
    squares = np.einsum("nm,mn->m", values, fitted.coef)  # ||w||^2 = a'Ka
    values += fitted.intercept
    norms = np.sqrt(np.maximum(squares, 0.0))[fitted.rows][:, None]
    if variant == "printed":
        return _divide(values[others, fitted.rows[:, None]], norms**2)
    seen = _own_minus_best_other(fitted, values, others)
    return seen if variant == "natural" else _divide(seen, norms)


def _own_minus_best_other(
    fitted: FittedExpansion, values: FloatArray, others: IntArray
) -> FloatArray:
    """Return y_p f(x_k); with several classes, class of p minus best other at x_k."""
    if values.shape[1] == 1:
        return values[others, 0] * fitted.signs[:, None]
    own = values[others, fitted.codes[:, None]]
    rivals = values[others]
    np.put_along_axis(rivals, fitted.codes[:, None, None], -np.inf, axis=2)
    return own - rivals.max(axis=2)


def _share_of_largest(squares: FloatArray, near: IntArray) -> FloatArray:
    """Return squared distances to the neighbours, divided by the largest of all."""
    largest, found = float(squares.max()), np.take_along_axis(squares, near, axis=1)
    return found / largest if largest > 0.0 else np.zeros_like(found)
