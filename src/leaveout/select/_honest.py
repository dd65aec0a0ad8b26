# SPDX-License-Identifier: BSD-3-Clause
"""The error of "tune by leave-one-out, then fit", from nested leave-one-out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from leaveout._typing import BoolArray, IntArray

# Choices that str() shows.
SHOWN = 5


@dataclass(frozen=True, eq=False)
class HonestLoo:
    """Nested leave-one-out: parameters were chosen anew without each left-out sample.

    Parameters
    ----------
    y : ndarray of shape (n,)
        True labels.
    predictions : ndarray of shape (n,)
        Labels by the classifier tuned and fitted without the sample.
    folds : ndarray of shape (n,)
        Fold in which each sample was left out: its own, or that of its group.
    params : tuple of dict
        Parameters chosen in each fold; empty where a fold had one class only.
    naive_error : float
        Leave-one-out error of the parameters chosen on all samples: the smallest of
        many, hence optimistic.
    seconds : float
        Time it took.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.select import HonestLoo
    >>> labels, found = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])
    >>> chosen = ({"C": 1}, {"C": 10}, {"C": 1}, {"C": 1})
    >>> result = HonestLoo(labels, found, np.arange(4), chosen, 0.0, 0.1)
    >>> result.error, result.choices[0]
    (0.25, ({'C': 1}, 3))
    """

    y: np.ndarray
    predictions: np.ndarray
    folds: IntArray
    params: tuple[Mapping[str, Any], ...]
    naive_error: float
    seconds: float

    @property
    def wrong(self) -> BoolArray:
        """Mask of the samples that are predicted wrongly."""
        return self.predictions != self.y

    @property
    def error(self) -> float:
        """Share of wrong samples."""
        return float(self.wrong.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of ``error``, as if folds were independent.

        The deviations are summed over each fold first, since samples of a group go
        wrong together; with one sample a fold it is sqrt(p (1 - p) / n).
        """
        sums = np.bincount(self.folds, self.wrong - self.error)
        return float(np.sqrt((sums**2).sum()) / self.y.shape[0])

    @property
    def optimism(self) -> float:
        """How much the naive error is too small: ``error - naive_error``."""
        return self.error - self.naive_error

    @property
    def choices(self) -> list[tuple[Mapping[str, Any], int]]:
        """Parameters and how many folds chose them, the most frequent first."""
        texts = [repr(sorted(chosen.items())) for chosen in self.params]
        first = {text: k for k, text in reversed(list(enumerate(texts)))}
        counted = Counter(texts).most_common()
        return [(self.params[first[text]], count) for text, count in counted]

    def __str__(self) -> str:
        """Small table: the honest error beside the naive one, and what was chosen."""
        rows: list[tuple[str, Any]] = [
            ("samples", self.y.shape[0]),
            ("folds", len(self.params)),
            ("error", f"{self.error:.4f} ± {self.standard_error:.4f}"),
            ("naive error", f"{self.naive_error:.4f} (smallest of the grid)"),
            ("seconds", f"{self.seconds:.3g}"),
        ]
        lines = [f"  {name:<14}{value}" for name, value in rows]
        lines += [f"  chosen {_text(p)} in {k}" for p, k in self.choices[:SHOWN]]
        if len(self.choices) > SHOWN:
            lines.append(f"  … {len(self.choices) - SHOWN} other choices")
        return "\n".join(["Nested leave-one-out", *lines])


def _text(params: Mapping[str, Any]) -> str:
    """Parameters as a user would write them."""
    shown = [
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in params.items()
    ]
    return ", ".join(shown) or "nothing (one class)"
