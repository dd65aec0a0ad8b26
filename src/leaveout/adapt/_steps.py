# SPDX-License-Identifier: BSD-3-Clause
"""Features of every fold: steps fitted without the rows that the fold leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import get_tags

from leaveout._typing import FloatArray
from leaveout.adapt._columns import FoldRows
from leaveout.adapt._pipeline import fit_transform, take_columns, take_rows
from leaveout.engine._problem import Folds

Steps = Sequence[tuple[str, Any]]
CLOSED_FORM, STATELESS, FITTED = "closed form", "stateless", "fitted in each fold"


class FoldSteps:
    """Features of all rows under steps fitted without each fold.

    Parameters
    ----------
    state : object
        Features after the last step; ``features(k)`` returns those of a fold.
    rows : FoldRows
        The folds, and a last one without rows.
    paths : dict
        For each step, how it is fitted: "closed form", "stateless" or "fitted in each
        fold".
    """

    def __init__(self, state: Any, rows: FoldRows, paths: dict[str, str]) -> None:
        self._state, self._rows, self.paths = state, rows, paths

    @classmethod
    def of(cls, steps: Steps, X: Any, y: NDArray[Any], folds: Folds) -> FoldSteps:
        """Prepare the steps of a Pipeline for all folds."""
        begin = np.append(folds.begin, folds.begin[-1])
        rows = FoldRows(len(y), Folds(folds.members, begin), np.asarray(y))
        state, paths = run_steps(steps, Table(X, rows))
        return cls(state, rows, paths)

    def features(self, k: int) -> FloatArray:
        """Transform all rows by the steps fitted without fold k, (n, p_k)."""
        Z = self._state.features(k)
        Z = Z.toarray() if sparse.issparse(Z) else Z
        return np.ascontiguousarray(Z, dtype=np.float64)

    @cached_property
    def base(self) -> FloatArray:
        """All rows transformed by the steps fitted on all rows, (n, p)."""
        return self.features(len(self._rows.folds) - 1)

    def affine(self, k: int) -> tuple[FloatArray, FloatArray] | None:
        """Return (shift, factor) with features(k) = (base - shift) * factor, or None.

        A factor of 0 stands for a column that fold k does not have.
        """
        return self._state.affine(k)

    def variance(self, k: int) -> float:
        """Variance of all entries of the rows that remain, as for gamma="scale"."""
        return float(self.features(k)[self._rows.kept(k)].var())

    def group_of(self, k: int) -> Any:
        """Return a key; folds with equal keys have equal features."""
        return self._state.key(k)


class Table:
    """Features that are the same in every fold, in the container they came in."""

    def __init__(self, X: Any, rows: FoldRows) -> None:
        self.X, self.rows = X, rows

    def features(self, k: int) -> Any:
        return self.X

    def affine(self, k: int) -> Any:
        p = self.X.shape[1]
        return np.zeros(p), np.ones(p)

    def key(self, k: int) -> Any:
        return 0


class InEachFold:
    """Features after steps that are fitted in each fold, on those of ``parent``."""

    def __init__(self, parent: Any, steps: Steps) -> None:
        self.parent, self.steps, self.rows = parent, steps, parent.rows

    def features(self, k: int) -> Any:
        rows = self.rows.only(k)
        kept, left = rows.kept(0), rows.folds[0]
        X = self.parent.features(k)
        A, B = take_rows(X, kept), take_rows(X, left) if left.size else None
        for name, step in self.steps:
            A, B = fit_clone(name, step, A, B, rows)
        return merge(A, B, kept, left)

    def affine(self, k: int) -> None:
        return None

    def key(self, k: int) -> Any:
        return k


def run_steps(steps: Steps, state: Any) -> tuple[Any, dict[str, str]]:
    """Apply steps to the features of all folds; return the path each step took."""
    paths = dict.fromkeys((name for name, _ in steps), FITTED)
    return (InEachFold(state, steps) if steps else state), paths


def fit_clone(
    name: str, step: Any, A: Any, B: Any, rows: FoldRows
) -> tuple[Any, Any]:
    """Fit a clone on the kept rows A; return A and the left-out rows B transformed."""
    try:
        own = clone(step)
        if get_tags(own).input_tags.pairwise:
            kept = rows.kept(0)
            A = take_columns(A, kept)
            B = None if B is None else take_columns(B, kept)
        A = fit_transform(own, A, rows.y[rows.kept(0)])
        return A, None if B is None else own.transform(B)
    except Exception as error:
        raise ValueError(
            f"Step {name!r} ({type(step).__name__}) failed {rows.describe(0)}: {error}"
        ) from error


def merge(A: Any, B: Any, kept: NDArray[Any], left: NDArray[Any]) -> NDArray[Any]:
    """Put the kept rows A and the left-out rows B in one array, in order."""
    A, B = (Z.toarray() if sparse.issparse(Z) else Z for Z in (A, B))
    A = np.asarray(A)
    if B is None:
        return A
    Z = np.empty((kept.size + left.size, A.shape[1]), dtype=A.dtype)
    Z[kept], Z[left] = A, B
    return Z
