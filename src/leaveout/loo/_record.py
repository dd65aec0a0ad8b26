# SPDX-License-Identifier: BSD-3-Clause
"""LooResults as plain arrays and facts, for files, and back again bit by bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaveout._typing import IntArray
from leaveout.loo._result import SETTLED_BY, LooResult

PLAIN = (
    "decision_values",
    "machine_values",
    "margins",
    "lower",
    "upper",
    "ambiguous",
    "certified",
)
FACTS = ("method", "anti_learning")


def pack_results(
    results: Sequence[LooResult],
) -> tuple[dict[str, np.ndarray], list[dict[str, Any]]]:
    """Return arrays with one row per result, and what is no array of each.

    Labels become positions among the sorted labels, as their type may be any. The true
    labels, the weights and the groups are left out: whoever reads has them.

    Examples
    --------
    >>> import leaveout as lo
    >>> from leaveout.loo import pack_results, unpack_results
    >>> X, y = [[0.0], [1.0], [3.0], [4.0]], ["a", "a", "b", "b"]
    >>> result = lo.leave_one_out(lo.SVC(gamma=0.1), X, y)
    >>> again, = unpack_results(*pack_results([result]), result.y)
    >>> (again.predictions == result.predictions).all()
    np.True_
    """
    arrays = {
        name: np.stack([getattr(result, name) for result in results]) for name in PLAIN
    }
    arrays["codes"] = np.stack(
        [np.searchsorted(np.unique(r.y), r.predictions) for r in results]
    )
    names = list(SETTLED_BY)
    arrays["settled_by"] = np.array(
        [[names.index(name) for name in result.settled_by] for result in results],
        dtype=np.int8,
    )
    facts = [
        {**{name: getattr(r, name) for name in FACTS}, "counts": dict(r.counts)}
        for r in results
    ]
    return arrays, facts


def unpack_results(
    arrays: Mapping[str, np.ndarray],
    facts: Sequence[Mapping[str, Any]],
    y: NDArray[Any],
    groups: IntArray | None = None,
) -> list[LooResult]:
    """Undo :func:`pack_results` with the true labels and groups."""
    classes = np.unique(y)
    return [
        LooResult(
            **{name: arrays[name][k] for name in PLAIN},
            predictions=classes[arrays["codes"][k]],
            y=y,
            groups=groups,
            settled_by=np.array(SETTLED_BY)[arrays["settled_by"][k]],
            **own,
        )
        for k, own in enumerate(facts)
    ]
