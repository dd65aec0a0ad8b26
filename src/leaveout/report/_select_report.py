# SPDX-License-Identifier: BSD-3-Clause
"""All that a report on a choice of parameters can show, in one object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leaveout._typing import BoolArray, FloatArray
from leaveout.data import Dataset
from leaveout.loo import LooBounds, LooCurve, LooResult, PairAUC
from leaveout.select import HonestLoo


@dataclass(frozen=True)
class SelectReport:
    """A grid of parameters, the leave-one-out error of each cell, and the choice.

    Plain results only: every face of it (text, JSON, a page) is made from this.

    Parameters
    ----------
    dataset : Dataset
        The samples, with names and notes.
    preparation : str
        Sentence on what was done to the features.
    kernel : str
        Kernel of the machine.
    class_weight : str or None
        As given to the SVC.
    grid : mapping of str to list of float
        Values tried, by name of the parameter; "C" first.
    cells : mapping of str to array-like
        One entry per cell, under the names of ``LooSearchCV.cv_results_``.
    best_index : int
        The chosen cell.
    result : LooResult
        Leave-one-out of the chosen cell, one entry per sample.
    honest : HonestLoo, optional
        Nested leave-one-out.
    curve : LooCurve, optional
        The error for every C, at the other parameters of the chosen cell.
    pairs : PairAUC, optional
        Leave-pair-out, for two classes.
    bounds : LooBounds, optional
        Bounds and estimates of the chosen machine's error, for two classes.
    warnings : tuple of str
        What the run warned of.
    seconds : mapping of str to float
        How long each part took.
    command : str
        What to type to repeat it.
    versions : mapping of str to str
        Of Python and the packages.
    """

    dataset: Dataset
    preparation: str
    kernel: str
    class_weight: str | None
    grid: Mapping[str, list[float]]
    cells: Mapping[str, Any]
    best_index: int
    result: LooResult
    honest: HonestLoo | None = None
    curve: LooCurve | None = None
    pairs: PairAUC | None = None
    bounds: LooBounds | None = None
    warnings: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def errors(self) -> FloatArray:
        """Leave-one-out error of each cell."""
        n = len(self.dataset.y)
        # Scores are shares of n samples: whole numbers again, not 1 - 0.9166… .
        return np.rint(n * (1.0 - np.asarray(self.cells["mean_test_score"]))) / n

    @property
    def anti_learning(self) -> BoolArray:
        """Cells where the balance of the classes decides, not the features."""
        return np.asarray(self.cells["anti_learning"], dtype=bool)

    @property
    def best_params(self) -> dict[str, float]:
        """Parameters of the chosen cell."""
        return dict(self.cells["params"][self.best_index])

    @property
    def edges(self) -> list[tuple[str, str, tuple[float, float, int]]]:
        """Widths and penalties chosen at an end of their values, and a grid beyond it.

        One entry for each: name, "smallest" or "largest", and low, high and number of a
        grid that reaches two decades further.
        """
        found = []
        for name in ("C", "gamma"):
            values, chosen = sorted(self.grid.get(name, [])), self.best_params.get(name)
            if len(values) < 2 or chosen not in (values[0], values[-1]):
                continue
            low, high = values[0], values[-1]
            if chosen == low:
                found.append((name, "smallest", (low / 100, high, len(values) + 2)))
            else:
                found.append((name, "largest", (low, high * 100, len(values) + 2)))
        return found

    @property
    def class_counts(self) -> dict[Any, int]:
        """Number of samples of each class, the largest first."""
        return dict(Counter(self.dataset.y.tolist()).most_common())

    @property
    def wrong_by_class(self) -> dict[Any, int]:
        """Number of samples of each class that are wrong when left out."""
        wrong = Counter(self.dataset.y[self.result.wrong].tolist())
        return {label: wrong[label] for label in self.class_counts}

    @property
    def majority_error(self) -> float:
        """Error of always saying the largest class."""
        return 1.0 - max(self.class_counts.values()) / len(self.dataset.y)
