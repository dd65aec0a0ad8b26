# SPDX-License-Identifier: BSD-3-Clause
"""Samples ranked by how little the others support their label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

# Rows of the table that str() shows.
SHOWN = 20


@dataclass(frozen=True)
class Suspects:
    """Samples by ascending leave-one-out margin; the first are the most suspicious.

    Parameters
    ----------
    rows : ndarray of shape (k,)
        Row of X of each sample listed.
    ids : ndarray of shape (k,)
        What the user calls it.
    labels : ndarray of shape (k,)
        Label it was given.
    predictions : ndarray of shape (k,)
        Label by the classifier trained without it.
    margins : ndarray of shape (k,)
        Leave-one-out margin: y f for two classes; true class minus best other for more.
    lower, upper : ndarray of shape (k,)
        Interval of the margin over all optimal intercepts.
    ambiguous : ndarray of bool, shape (k,)
        Whether another optimal intercept gives another label.
    certified : ndarray of bool, shape (k,)
        Whether the optimality conditions were verified, and rounding can have changed
        neither the label nor three digits of the influence.
    influence : ndarray of shape (k,)
        Mean change of the margins of all other samples when this one is left out;
        positive if they are better off without it.
    n_samples : int
        Number of samples the list was taken from.
    error : float
        Leave-one-out error over all of them.
    n_flagged : int
        How many of them, listed or not, the others would label differently.
    id_name : str, default="id"
        What the table calls the ids.
    """

    rows: IntArray
    ids: np.ndarray
    labels: np.ndarray
    predictions: np.ndarray
    margins: FloatArray
    lower: FloatArray
    upper: FloatArray
    ambiguous: BoolArray
    certified: BoolArray
    influence: FloatArray
    n_samples: int
    error: float
    n_flagged: int
    id_name: str = "id"

    def __len__(self) -> int:
        """Return the number of samples listed."""
        return self.rows.size

    @property
    def flagged(self) -> BoolArray:
        """Mask of the listed samples that the others would label differently."""
        return self.predictions != self.labels

    def to_frame(self) -> pd.DataFrame:
        """Return one row a listed sample, indexed by its id (needs pandas)."""
        import pandas as pd

        columns = {
            "row": self.rows,
            "label": self.labels,
            "prediction": self.predictions,
            "margin": self.margins,
            "lower": self.lower,
            "upper": self.upper,
            "ambiguous": self.ambiguous,
            "certified": self.certified,
            "influence": self.influence,
            "flagged": self.flagged,
        }
        return pd.DataFrame(columns, index=pd.Index(self.ids, name="id"))

    def __str__(self) -> str:
        """Table of the first samples; * marks an ambiguous label, ? no certificate."""
        head = (
            f"Suspects: {self.n_flagged} of {self.n_samples} samples are labelled "
            f"differently by the others; {len(self)} listed"
        )
        titles = (self.id_name, "label", "others say", "margin", "influence")
        cells: list[tuple[str, ...]] = [titles]
        cells += [self._cells(k) for k in range(min(len(self), SHOWN))]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  " + "  ".join(c.rjust(w) for c, w in zip(line, widths, strict=True))
            for line in cells
        ]
        more = [f"  … {len(self) - SHOWN} more"] if len(self) > SHOWN else []
        return "\n".join([head, *lines, *more, *self._legend()])

    def _legend(self) -> list[str]:
        """Say what the marks of the lines shown mean."""
        shown = slice(SHOWN)
        legend = []
        if self.ambiguous[shown].any():
            legend.append("* another optimal intercept says otherwise")
        if not self.certified[shown].all():
            legend.append("? rounding may have changed it")
        return legend

    def _cells(self, k: int) -> tuple[str, ...]:
        """One line of the table."""
        star = "*" * bool(self.ambiguous[k]) + "?" * (not self.certified[k])
        texts: list[Any] = [self.ids[k], self.labels[k], f"{self.predictions[k]}{star}"]
        numbers = [f"{self.margins[k]:.4f}", f"{self.influence[k]:+.4f}"]
        return (*map(str, texts), *numbers)
