# SPDX-License-Identifier: BSD-3-Clause
"""How results are packed into the arrays and facts of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaveout._typing import IntArray
from leaveout.engine._problem import SETTLED_BY, UNCERTIFIED
from leaveout.loo._regression import LooRegressionResult
from leaveout.loo._result import LooResult

# Fields that are stored as they are: of classifiers, and of regressors.
PLAIN: dict[type, tuple[str, ...]] = {
    LooResult: (
        "decision_values",
        "binary_values",
        "margins",
        "lower",
        "upper",
        "ambiguous",
    ),
    LooRegressionResult: ("predictions", "lower", "upper"),
}
FACTS: dict[type, tuple[str, ...]] = {
    LooResult: ("method", "anti_learning", "preprocessing"),
    LooRegressionResult: ("method", "preprocessing"),
}
NAMED = {"settled_by": SETTLED_BY, "uncertified_by": UNCERTIFIED}


def pack_results(
    results: Sequence[Any],
) -> tuple[dict[str, np.ndarray], list[dict[str, Any]]]:
    """Return arrays with one row per result, and the other fields of each.

    Labels become positions among the sorted labels, as their type may be any. The true
    labels, the weights and the groups are left out: the reader has them.
    """
    kind = type(results[0])
    arrays = {
        name: np.stack([getattr(result, name) for result in results])
        for name in PLAIN[kind]
    }
    if kind is LooResult:
        arrays["codes"] = np.stack(
            [np.searchsorted(np.unique(r.y), r.predictions) for r in results]
        )
    for field_name, names in NAMED.items():
        rows = [getattr(result, field_name).tolist() for result in results]
        arrays[field_name] = np.array(
            [[names.index(name) for name in row] for row in rows], dtype=np.int8
        )
    facts = [
        {**{name: getattr(r, name) for name in FACTS[kind]}, "counts": dict(r.counts)}
        for r in results
    ]
    return arrays, facts


def unpack_results(
    arrays: Mapping[str, np.ndarray],
    facts: Sequence[Mapping[str, Any]],
    y: NDArray[Any],
    groups: IntArray | None = None,
) -> list[Any]:
    """Undo :func:`pack_results` with the true labels and groups."""
    kind = LooResult if "codes" in arrays else LooRegressionResult
    found = []
    for k, own in enumerate(facts):
        fields = {name: arrays[name][k] for name in PLAIN[kind]}
        fields |= {name: np.array(NAMED[name])[arrays[name][k]] for name in NAMED}
        if kind is LooResult:
            fields["predictions"] = np.unique(y)[arrays["codes"][k]]
        found.append(kind(**fields, y=y, groups=groups, **own))
    return found
