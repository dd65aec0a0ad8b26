# SPDX-License-Identifier: BSD-3-Clause
"""The published leave-one-out methods for one binary SVM, by name.

A method takes a problem at unit scale, its solution and what is left out together, and
returns intervals of the left-out values. It does not check for rounding errors:
``loo/_leave_out.py`` does that for all methods.

Imports: engine, run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, Protocol

from leaveout.engine._problem import Folds, LooIntervals
from leaveout.engine._walk import loo_walk
from leaveout.methods._consolidated import loo_consolidated, loo_magic
from leaveout.methods._stopping import loo_refit, loo_stopping


class LooMethod(Protocol):
    """Signature shared by all methods of all families."""

    def __call__(
        self,
        problem: Any,
        solution: Any,
        folds: Folds | None = None,
        *,
        labels_only: bool = False,
        n_threads: int = 1,
    ) -> LooIntervals:
        """Leave each fold out, or every sample by itself."""


@dataclass(frozen=True)
class Method:
    """A method and the options it takes.

    "groups": it also leaves out groups, with other upper bounds if needed; "values": it
    gives values, not only signs; "memory": it reuses results of the previous C.
    """

    function: LooMethod
    takes: frozenset[str]

    def own_params(self) -> list[str]:
        """Names of the parameters specific to this method."""
        shared = signature(LooMethod.__call__).parameters
        own = signature(self.function).parameters
        return [name for name in own if name not in shared and name != "memory"]


METHODS: dict[str, Method] = {
    "walk": Method(loo_walk, frozenset({"groups", "values"})),
    "refit": Method(loo_refit, frozenset({"groups", "values"})),
    "stopping": Method(loo_stopping, frozenset()),
    "consolidated": Method(loo_consolidated, frozenset({"values", "memory"})),
    "magic": Method(loo_magic, frozenset({"values"})),
}


def bind_params(name: str, method: Method, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters as keywords; raise ValueError for an unknown one."""
    own = method.own_params()
    for key in params:
        if key not in own:
            takes = ", ".join(own) if own else "none"
            raise ValueError(
                f"method_params has {key!r}, which method={name!r} does not take. "
                f"It takes: {takes}."
            )
    return dict(params)
