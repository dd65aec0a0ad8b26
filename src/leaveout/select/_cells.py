# SPDX-License-Identifier: BSD-3-Clause
"""Grid points that share one kernel make a cell; grid points are ranked, one is taken.

Along C nothing but the box changes, so all C of a cell are one path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.stats import rankdata

from leaveout._typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Cell:
    """Candidates that differ in C alone.

    Parameters
    ----------
    params : mapping
        Their parameters but C.
    Cs : tuple
        C of each, as the user gave it.
    positions : tuple of int
        Where they stand in the list of candidates.
    """

    params: Mapping[str, Any]
    Cs: tuple[Any, ...]
    positions: tuple[int, ...]


def split_cells(
    candidates: Sequence[Mapping[str, Any]], C_names: Sequence[str], Cs: Sequence[Any]
) -> list[Cell]:
    """Group candidates by everything except C, in the order of their first members.

    Parameters
    ----------
    candidates : sequence of mapping
        Parameters of each candidate.
    C_names : sequence of str
        What C is called in each: "C", "svc__C" …
    Cs : sequence
        C of each, be it the candidate's or the estimator's own.

    Examples
    --------
    >>> from leaveout.select import split_cells
    >>> grid = [{"C": C, "gamma": gamma} for C in (1, 10) for gamma in (0.1, 0.2)]
    >>> cells = split_cells(grid, ["C"] * 4, [1, 1, 10, 10])
    >>> [(cell.params, cell.Cs, cell.positions) for cell in cells]
    [({'gamma': 0.1}, (1, 10), (0, 2)), ({'gamma': 0.2}, (1, 10), (1, 3))]
    """
    groups: dict[tuple[Any, ...], list[int]] = {}
    for position, (candidate, C_name) in enumerate(
        zip(candidates, C_names, strict=True)
    ):
        others = _without(candidate, C_name)
        # Values may have no hash. Those of one list are the same objects throughout.
        key = (C_name, *((name, _identity(value)) for name, value in others.items()))
        groups.setdefault(key, []).append(position)
    return [
        Cell(
            params=_without(candidates[positions[0]], C_names[positions[0]]),
            Cs=tuple(Cs[k] for k in positions),
            positions=tuple(positions),
        )
        for positions in groups.values()
    ]


def rank_candidates(scores: FloatArray, avoid: BoolArray | None = None) -> IntArray:
    """Rank scores from 1, the largest first; equal scores share the smallest rank.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates,)
        Larger is better; NaN ranks last.
    avoid : ndarray of bool, shape (n_candidates,), default=None
        Candidates that rank behind all others with a score, whatever theirs is.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.select import rank_candidates
    >>> rank_candidates(np.array([0.8, 0.9, np.nan, 0.9]))
    array([3, 1, 4, 1])
    >>> rank_candidates(np.array([0.8, 0.9, 0.7]), avoid=np.array([False, True, False]))
    array([1, 3, 2])
    """
    known = ~np.isnan(scores)
    levels = np.full(scores.shape, np.inf)
    levels[known] = rankdata(-scores[known], method="dense")
    if avoid is not None:
        levels[avoid] += scores.size
    return rankdata(levels, method="min").astype(np.intp)


def take_best(
    ranks: IntArray, Cs: Sequence[Any], gammas: Sequence[Any] | None = None
) -> int:
    """Return the first rank; of equal ones the smaller C, then the smaller gamma.

    What is not a number, such as gamma="scale", comes after all numbers; what is left
    equal is decided by the order of the grid.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.select import take_best
    >>> take_best(np.array([1, 1, 2]), Cs=[10.0, 1.0, 0.1])
    1
    """
    keys = [_as_numbers(Cs), np.asarray(ranks)]
    if gammas is not None:
        keys.insert(0, _as_numbers(gammas))
    return int(np.lexsort(keys)[0])


def take_smoothest(
    scores: FloatArray,
    standard_errors: FloatArray,
    Cs: Sequence[Any],
    gammas: Sequence[Any] | None = None,
    *,
    avoid: BoolArray | None = None,
) -> int:
    """Return the smallest C, then gamma, within one standard error of the best.

    Parameters
    ----------
    scores, standard_errors : ndarray of shape (n_candidates,)
        Larger scores are better; NaN is never taken.
    Cs, gammas : sequence
        Parameters of each candidate.
    avoid : ndarray of bool, shape (n_candidates,), default=None
        Candidates that are not to be taken while there are others with a score.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.select import take_smoothest
    >>> take_smoothest(np.array([0.7, 0.85, 0.9]), np.full(3, 0.1), Cs=[0.1, 1.0, 10.0])
    1
    """
    best = take_best(rank_candidates(scores, avoid), Cs, gammas)
    error = standard_errors[best]
    near = scores >= scores[best] - (error if np.isfinite(error) else 0.0)
    if avoid is not None and not avoid[best]:
        near &= ~avoid
    if not near.any():  # no candidate has a score
        return best
    return take_best(np.where(near, 1, 2), Cs, gammas)


def tabulate_params(candidates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``param_<name>``, a masked array each, masked where it is not set.

    Examples
    --------
    >>> from leaveout.select import tabulate_params
    >>> tabulate_params([{"C": 1.0}, {"C": 2.0, "degree": 3}])["param_degree"]
    masked_array(data=[--, 3],
                 mask=[ True, False],
           fill_value=999999)
    """
    names = dict.fromkeys(name for candidate in candidates for name in candidate)
    table = {}
    for name in names:
        own = [candidate[name] for candidate in candidates if name in candidate]
        mask = np.array([name not in candidate for candidate in candidates])
        column = np.ma.MaskedArray(np.empty(len(candidates), _dtype(own)), mask=True)
        for place, value in zip(np.flatnonzero(~mask), own, strict=True):
            column[place] = value
        table[f"param_{name}"] = column
    return table


def _without(candidate: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in candidate.items() if key != name}


def _identity(value: Any) -> Any:
    """Numbers and texts by value, all else by object."""
    return value if isinstance(value, Real | str | None) else id(value)


def _as_numbers(values: Sequence[Any]) -> FloatArray:
    return np.array([float(v) if isinstance(v, Real) else np.inf for v in values])


def _dtype(values: list[Any]) -> Any:
    """Return the type of numbers if all are, else object."""
    try:
        array = np.asarray(values)
    except ValueError:  # of different shapes
        return object
    return array.dtype if array.ndim == 1 and array.dtype.kind in "biuf" else object
