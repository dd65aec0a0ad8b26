# SPDX-License-Identifier: BSD-3-Clause
"""One classifier of the bag of a LooPredictor."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from leaveout._typing import BoolArray, FloatArray
from leaveout.lp._highs import solve_sparse_linear


@dataclass(frozen=True)
class LooMember:
    """A sparse linear classifier on features and their products of degree two.

    ``variant`` gives the units of its features; ``low`` and ``high`` are the range of
    its ``n_samples`` training samples, of which ``error_rate`` are errors.
    """

    variant: str
    mean: FloatArray  # (n_features,), like scale, low and high
    scale: FloatArray
    low: FloatArray
    high: FloatArray
    coef: FloatArray  # (n_monomials,), positive for a correct label
    intercept: float
    duality_gap: float
    n_samples: int
    error_rate: float

    @classmethod
    def learn(
        cls, variant: str, features: FloatArray, right: BoolArray, C: float
    ) -> LooMember:
        """Minimise 1-norm + C 1000 / n_samples * hinge losses."""
        scale = features.std(axis=0)
        scale[scale == 0.0] = 1.0
        mean, low, high = (f(features, axis=0) for f in (np.mean, np.min, np.max))
        found = solve_sparse_linear(
            _monomials((features - mean) / scale),
            np.where(right, 1.0, -1.0),
            C * 1000.0 / right.size,
        )
        rate = float(1.0 - right.mean())
        learned = (found.coef, found.intercept, found.duality_gap, right.size, rate)
        return cls(variant, mean, scale, low, high, *learned)

    def decide(self, features: FloatArray) -> FloatArray:
        """Return the decision values, positive where a correct label is predicted.

        Features are clipped, because products grow fast outside the training range.
        """
        inside = np.clip(features, self.low, self.high)
        monomials = _monomials((inside - self.mean) / self.scale)
        return monomials @ self.coef + self.intercept

    def is_beyond(self, features: FloatArray) -> BoolArray:
        """Return which samples have a feature outside the training range."""
        beyond: BoolArray = (features < self.low) | (features > self.high)
        return np.any(beyond, axis=1)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain numbers and lists."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> LooMember:
        """Return the member that :meth:`to_dict` wrote."""
        found = {field.name: content[field.name] for field in fields(cls)}
        for name, value in found.items():
            if isinstance(value, list):
                found[name] = np.array(value, dtype=np.float64)
        return cls(**found)


def _monomials(standard: FloatArray) -> FloatArray:
    """Return standardised features and their products: 119 from 14, 189 from 18."""
    i, j = np.triu_indices(standard.shape[1])
    return np.hstack([standard, standard[:, i] * standard[:, j]])
