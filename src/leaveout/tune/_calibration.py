# SPDX-License-Identifier: BSD-3-Clause
"""Probabilities from left-out values (Platt scaling).

From decision values to probabilities: one sigmoid a machine, coupled over pairs.

Probabilities of classes from the values of one-vs-one machines.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from leaveout._typing import BoolArray, FloatArray
from leaveout.exceptions import CalibrationWarning
from leaveout.loo._multiclass import class_pairs, positive_class
from leaveout.loo._task import Target

# Newton steps and halvings of a step; some ten and none are usual.
MAX_STEPS, MAX_HALVINGS = 100, 30
# Probabilities of pairs stay this far from 0 and 1, as in LIBSVM: coupling divides.
SMALLEST_PROBABILITY = 1e-7


@dataclass(frozen=True)
class Sigmoid:
    """P(positive | f) = 1 / (1 + exp(-(slope f + offset))), never falling in f.

    Parameters
    ----------
    slope : float
        >= 0; Platt's -A. 0 means that the probability is the same for every f.
    offset : float
        Platt's -B.

    Examples
    --------
    >>> import numpy as np
    >>> Sigmoid(2.0, 0.0)(np.array([-1.0, 0.0, 1.0])).round(3)
    array([0.119, 0.5  , 0.881])
    """

    slope: float
    offset: float

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return the probability of the positive class at each value."""
        return expit(self.slope * values + self.offset)


def fit_sigmoid(
    values: FloatArray, positive: BoolArray, weights: FloatArray | None = None
) -> Sigmoid:
    r"""Fit Platt's sigmoid to decision values of samples that were left out.

    .. math:: \min_{a, b} -\sum_i v_i \big( t_i \log p_i + (1 - t_i) \log(1 - p_i)
              \big), \quad p_i = 1 / (1 + e^{-(a f_i + b)})

    The targets are Platt's [1]_: :math:`t_i = (N_+ + 1) / (N_+ + 2)` for the positive
    samples and :math:`1 / (N_- + 2)` for the others, N being sums of weights: the
    optimum is finite even if the values separate the classes. Newton's method with
    halved steps, as in [2]_.

    If a comes out negative, the values order the classes the wrong way round. Left-out
    values do so without any signal in the data: leaving a positive sample out shifts b
    towards the other class. The sigmoid is then constant, the share of the positive
    class; a probability that falls with f is never returned.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Left-out decision values, finite.
    positive : ndarray of bool, shape (n,)
        Which samples are of the positive class; some are and some are not.
    weights : ndarray of shape (n,), optional
        Weights v of the samples, >= 0; both classes have some.

    Returns
    -------
    Sigmoid
        With slope 0 if it is the share of the class.

    References
    ----------
    .. [1] J. Platt, "Probabilistic outputs for support vector machines and comparisons
       to regularized likelihood methods", Advances in Large Margin Classifiers, 1999.
    .. [2] H.-T. Lin, C.-J. Lin and R. C. Weng, "A note on Platt's probabilistic outputs
       for support vector machines", Machine Learning 68, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.array([-2.0, -1.0, 0.5, -0.5, 1.0, 2.0])
    >>> sigmoid = fit_sigmoid(values, np.array([0, 0, 0, 1, 1, 1], dtype=bool))
    >>> sigmoid(np.array([-1.0, 1.0])).round(3)
    array([0.347, 0.653])
    >>> fit_sigmoid(-values, np.array([0, 0, 0, 1, 1, 1], dtype=bool)).slope
    0.0
    """
    weights = np.ones(values.shape[0]) if weights is None else weights
    n_positive, n_negative = weights[positive].sum(), weights[~positive].sum()
    targets = np.where(
        positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2)
    )
    prior = Sigmoid(0.0, float(np.log(n_positive / n_negative)))
    # In units of the values, so that tiny C and large C are the same to Newton.
    scale = float(np.abs(values[weights > 0]).max())
    if scale == 0.0:
        return prior
    slope, offset = _minimise(values / scale, targets, weights, prior.offset)
    return Sigmoid(slope / scale, offset) if slope > 0.0 else prior


def _minimise(
    values: FloatArray, targets: FloatArray, weights: FloatArray, offset: float
) -> tuple[float, float]:
    """Return slope and offset by Newton from slope 0; the problem is convex."""
    features = np.column_stack([values, np.ones_like(values)])
    point = np.array([0.0, offset])
    loss = _loss(features @ point, targets, weights)
    for _ in range(MAX_STEPS):
        p = expit(features @ point)
        gradient = features.T @ (weights * (p - targets))
        if np.abs(gradient).max() <= 1e-10 * weights.sum():
            break
        curvature = (features.T * (weights * p * (1.0 - p))) @ features
        # All values equal make it singular; the added ridge only shortens the step.
        step = np.linalg.solve(curvature + 1e-12 * weights.sum() * np.eye(2), -gradient)
        for _ in range(MAX_HALVINGS):
            new_loss = _loss(features @ (point + step), targets, weights)
            if new_loss <= loss + 1e-4 * float(gradient @ step):
                break
            step *= 0.5
        else:
            break  # at the optimum, to rounding
        point, loss = point + step, new_loss
    return float(point[0]), float(point[1])


def _loss(logits: FloatArray, targets: FloatArray, weights: FloatArray) -> float:
    """Cross-entropy; log(1 + exp(z)) without overflow."""
    return float(weights @ (np.logaddexp(0.0, logits) - targets * logits))


def couple_pairs(pairwise: FloatArray) -> FloatArray:
    r"""Turn probabilities of pairs of classes into one probability per class.

    The second method of Wu, Lin & Weng [1]_: with :math:`r_{ij}` the estimate of
    P(i | i or j),

    .. math:: \min_p \sum_i \sum_{j \ne i} (r_{ji} p_i - r_{ij} p_j)^2,
              \quad \sum_i p_i = 1.

    The minimum is one linear system per sample and is positive by itself.

    Parameters
    ----------
    pairwise : ndarray of shape (n, n_classes, n_classes)
        r, with r_ij + r_ji = 1; the diagonal is not used.

    Returns
    -------
    ndarray of shape (n, n_classes)
        Probabilities that sum to 1.

    References
    ----------
    .. [1] T.-F. Wu, C.-J. Lin and R. C. Weng, "Probability estimates for multi-class
       classification by pairwise coupling", Journal of Machine Learning Research 5,
       2004, equations (18) to (21).

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([0.6, 0.3, 0.1])
    >>> couple_pairs((p[:, None] / (p[:, None] + p))[None]).round(6)
    array([[0.6, 0.3, 0.1]])
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


def fit_pair_sigmoids(
    machine_values: FloatArray, target: Target, stacklevel: int = 3
) -> list[Sigmoid]:
    """Fit one sigmoid per machine, on the samples of its two classes.

    All of them were left out of the machine; what it says of other classes, which it
    was not trained on, is not needed.

    Parameters
    ----------
    machine_values : ndarray of shape (n, n_machines)
        Left-out values, as in ``LooResult.machine_values``.
    target : Target
        Classes and weights of the samples.
    stacklevel : int, default=3
        Whose line a warning names.
    """
    n_classes = len(target.classes)
    sigmoids, wrong = [], []
    for k, (i, j) in enumerate(class_pairs(n_classes)):
        inside = np.isin(target.codes, (i, j)) & (target.weights > 0)
        sigmoid = fit_sigmoid(
            machine_values[inside, k],
            target.codes[inside] == positive_class(i, j, n_classes),
            target.weights[inside],
        )
        sigmoids.append(sigmoid)
        if sigmoid.slope == 0.0:
            wrong.append((target.classes[i], target.classes[j]))
    if wrong:
        _warn_prior(wrong, len(sigmoids), stacklevel + 1)
    return sigmoids


def class_probabilities(
    machine_values: FloatArray, sigmoids: Sequence[Sigmoid]
) -> FloatArray:
    """Return the probability of each class at the values of all machines.

    Parameters
    ----------
    machine_values : ndarray of shape (n, n_machines)
        Values of the machines at new samples.
    sigmoids : sequence of Sigmoid
        One per machine.

    Returns
    -------
    ndarray of shape (n, n_classes)
    """
    of_positive = [s(machine_values[:, k]) for k, s in enumerate(sigmoids)]
    if len(sigmoids) == 1:
        return np.column_stack([1.0 - of_positive[0], of_positive[0]])
    n_classes = round((1 + np.sqrt(1 + 8 * len(sigmoids))) / 2)
    pairwise = np.zeros((machine_values.shape[0], n_classes, n_classes))
    for (i, j), p in zip(class_pairs(n_classes), of_positive, strict=True):
        pairwise[:, i, j], pairwise[:, j, i] = p, 1.0 - p
    return couple_pairs(pairwise)


def _warn_prior(pairs: list[tuple[Any, Any]], n_machines: int, stacklevel: int) -> None:
    """Warn of machines whose left-out values say less than nothing."""
    named = ", ".join(f"{_plain(a)!r} and {_plain(b)!r}" for a, b in pairs[:3])
    more = f" and {len(pairs) - 3} more pairs" if len(pairs) > 3 else ""
    which = "" if n_machines == 1 else f" between {named}{more}"
    warnings.warn(
        f"The left-out decision values{which} order the classes the wrong way round, "
        "as they do where there is nothing to learn. The probabilities there are the "
        "shares of the classes, the same for every sample.",
        CalibrationWarning,
        stacklevel=stacklevel,
    )


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
