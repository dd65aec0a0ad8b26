# SPDX-License-Identifier: BSD-3-Clause
"""Class probabilities from left-out decision values.

One sigmoid per binary subproblem (Platt), coupled over the pairs of classes (Wu, Lin &
Weng). References: :class:`leaveout.SVCCV`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from leaveout._typing import BoolArray, FloatArray
from leaveout.exceptions import CalibrationWarning
from leaveout.loo._multiclass import class_pairs, positive_class
from leaveout.loo._task import Target

# Pairwise probabilities stay this far from 0 and 1, as in LIBSVM.
SMALLEST_PROBABILITY = 1e-7


@dataclass(frozen=True)
class Sigmoid:
    """P(positive | f) = 1 / (1 + exp(-(slope f + offset))), with slope >= 0.

    Platt's A and B are -slope and -offset.
    """

    slope: float
    offset: float

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return the probability of the positive class at each value."""
        return expit(self.slope * values + self.offset)


def fit_sigmoid(
    values: FloatArray, positive: BoolArray, weights: FloatArray | None = None
) -> Sigmoid:
    r"""Fit Platt's sigmoid to left-out decision values.

    .. math:: \min_{a, b} -\sum_i v_i \big( t_i \log p_i + (1 - t_i) \log(1 - p_i)
              \big), \quad p_i = 1 / (1 + e^{-(a f_i + b)})

    The targets t are Platt's, with sums of the weights v as counts, so the optimum is
    finite even if the values separate the classes. If the values rank the classes in
    the wrong order, as left-out values do on pure noise, the sigmoid is constant, the
    proportion of the positive class.
    """
    weights = np.ones(values.shape[0]) if weights is None else weights
    n_positive, n_negative = weights[positive].sum(), weights[~positive].sum()
    targets = np.where(
        positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2)
    )
    prior = Sigmoid(0.0, float(np.log(n_positive / n_negative)))
    # Scaling makes the Newton steps independent of the units of the values.
    scale = float(np.abs(values[weights > 0]).max())
    if scale == 0.0:
        return prior
    slope, offset = _minimise(values / scale, targets, weights, prior.offset)
    return Sigmoid(slope / scale, offset) if slope > 0.0 else prior


def _minimise(
    values: FloatArray, targets: FloatArray, weights: FloatArray, offset: float
) -> tuple[float, float]:
    """Return slope and offset by Newton's method from slope 0; convex problem."""
    features = np.column_stack([values, np.ones_like(values)])
    point = np.array([0.0, offset])
    loss = _loss(features @ point, targets, weights)
    for _ in range(100):  # about ten are usual
        p = expit(features @ point)
        gradient = features.T @ (weights * (p - targets))
        if np.abs(gradient).max() <= 1e-10 * weights.sum():
            break
        curvature = (features.T * (weights * p * (1.0 - p))) @ features
        # It is singular if all values are equal; the ridge only shortens the step.
        step = np.linalg.solve(curvature + 1e-12 * weights.sum() * np.eye(2), -gradient)
        for _ in range(30):  # halvings; none is usual
            new_loss = _loss(features @ (point + step), targets, weights)
            if new_loss <= loss + 1e-4 * float(gradient @ step):
                break
            step *= 0.5
        else:
            break  # at the optimum, up to rounding
        point, loss = point + step, new_loss
    return float(point[0]), float(point[1])


def _loss(logits: FloatArray, targets: FloatArray, weights: FloatArray) -> float:
    """Return the cross-entropy, with log(1 + exp(z)) computed without overflow."""
    return float(weights @ (np.logaddexp(0.0, logits) - targets * logits))


def couple_pairs(pairwise: FloatArray) -> FloatArray:
    r"""Convert pairwise probabilities into one probability per class.

    The second method of Wu, Lin & Weng (2004), equations (18) to (21): with
    :math:`r_{ij}` the estimate of P(i | i or j),

    .. math:: \min_p \sum_i \sum_{j \ne i} (r_{ji} p_i - r_{ij} p_j)^2,
              \quad \sum_i p_i = 1.

    The minimum is the solution of one linear system per sample and is positive.
    ``pairwise`` is r of shape (n, n_classes, n_classes); its diagonal is not used.
    """
    n, k, _ = pairwise.shape
    r = np.clip(pairwise, SMALLEST_PROBABILITY, 1.0 - SMALLEST_PROBABILITY)
    r[:, range(k), range(k)] = 0.0
    flipped = np.swapaxes(r, 1, 2)
    # Q p + b e = 0, e' p = 1, with Q_ij = -r_ji r_ij and Q_ii = sum_s r_si^2.
    system = np.zeros((n, k + 1, k + 1))
    system[:, :k, :k] = -flipped * r
    system[:, range(k), range(k)] = (r**2).sum(axis=1)
    system[:, :k, k] = system[:, k, :k] = 1.0
    right = np.zeros((n, k + 1, 1))
    right[:, k] = 1.0
    p = np.maximum(np.linalg.solve(system, right)[:, :k, 0], 0.0)
    return p / p.sum(axis=1, keepdims=True)


def fit_pair_sigmoids(binary_values: FloatArray, target: Target) -> list[Sigmoid]:
    """Fit one sigmoid per pair of classes, on the samples of both classes."""
    classes = target.classes.tolist()  # plain labels for the message
    n_classes = len(classes)
    sigmoids, wrong = [], []
    for k, (i, j) in enumerate(class_pairs(n_classes)):
        inside = np.isin(target.codes, (i, j)) & (target.weights > 0)
        sigmoid = fit_sigmoid(
            binary_values[inside, k],
            target.codes[inside] == positive_class(i, j, n_classes),
            target.weights[inside],
        )
        sigmoids.append(sigmoid)
        if sigmoid.slope == 0.0:
            wrong.append((classes[i], classes[j]))
    if wrong:
        named = ", ".join(f"{a!r} and {b!r}" for a, b in wrong[:3])
        more = f" and {len(wrong) - 3} more pairs" if len(wrong) > 3 else ""
        which = "" if n_classes == 2 else f" between {named}{more}"
        warnings.warn(
            f"The left-out decision values{which} rank the classes in the wrong "
            "order, as they do on pure noise. The probabilities are then the class "
            "proportions, the same for every sample.",
            CalibrationWarning,
            stacklevel=4,  # fit of SVCCV
        )
    return sigmoids


def class_probabilities(
    binary_values: FloatArray, sigmoids: Sequence[Sigmoid]
) -> FloatArray:
    """Return the probability of each class from the values of all subproblems."""
    of_positive = [s(binary_values[:, k]) for k, s in enumerate(sigmoids)]
    if len(sigmoids) == 1:
        return np.column_stack([1.0 - of_positive[0], of_positive[0]])
    n_classes = round((1 + np.sqrt(1 + 8 * len(sigmoids))) / 2)
    pairwise = np.zeros((binary_values.shape[0], n_classes, n_classes))
    for (i, j), p in zip(class_pairs(n_classes), of_positive, strict=True):
        pairwise[:, i, j], pairwise[:, j, i] = p, 1.0 - p
    return couple_pairs(pairwise)
