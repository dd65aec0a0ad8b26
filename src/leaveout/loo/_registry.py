# SPDX-License-Identifier: BSD-3-Clause
"""The methods of leave-one-out for one binary machine, by name."""

from __future__ import annotations

from typing import Protocol

from leaveout.kernel import Problem
from leaveout.loo._refit import loo_refit
from leaveout.loo._result import MachineLoo
from leaveout.loo._walk import loo_walk
from leaveout.solve import Solution


class LooMethod(Protocol):
    """Signature shared by all methods."""

    def __call__(
        self,
        problem: Problem,
        *,
        solution: Solution | None = None,
        labels_only: bool = False,
        n_threads: int = 1,
    ) -> MachineLoo:
        """Leave every sample of the problem out."""


METHODS: dict[str, LooMethod] = {"walk": loo_walk, "refit": loo_refit}


def find_method(name: str) -> tuple[str, LooMethod]:
    """Return (name, function) of a method; "auto" is the walk.

    Examples
    --------
    >>> find_method("auto")[0]
    'walk'
    """
    name = "walk" if name == "auto" else name
    if name not in METHODS:
        known = ", ".join(repr(known) for known in ["auto", *METHODS])
        raise ValueError(f"method={name!r} is not known. Use one of {known}.")
    return name, METHODS[name]
