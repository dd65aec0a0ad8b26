# SPDX-License-Identifier: BSD-3-Clause
"""The published leave-one-out methods for one binary SVM, by name.

The methods of leave-one-out for one binary machine, by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from inspect import signature
from typing import Any, Protocol

from leaveout.engine._problem import LooIntervals, Problem, Solution
from leaveout.engine._trust import with_rounding_checks
from leaveout.engine._walk import loo_walk
from leaveout.methods._consolidated import PathMemory, loo_consolidated, loo_magic
from leaveout.methods._stopping import loo_refit, loo_stopping


class LooMethod(Protocol):
    """Signature shared by all methods."""

    def __call__(
        self,
        problem: Problem,
        *,
        solution: Solution | None = None,
        labels_only: bool = False,
        n_threads: int = 1,
    ) -> LooIntervals:
        """Leave every sample of the problem out."""


METHODS: dict[str, LooMethod] = {
    "walk": with_rounding_checks(loo_walk),
    "refit": with_rounding_checks(loo_refit),
    "stopping": with_rounding_checks(loo_stopping),
    "consolidated": with_rounding_checks(loo_consolidated),
    "magic": with_rounding_checks(loo_magic),
}


# Methods that give the sign of a left-out value, not the value.
LABEL_METHODS = frozenset({"stopping"})


# Methods that leave out groups, too, and samples whose weights change the boxes.
GROUP_METHODS = frozenset({"walk", "refit"})


# Methods that take over something from the C before.
PATH_METHODS = frozenset({"consolidated"})


_SHARED = ("problem", "solution", "labels_only", "n_threads", "memory")


def find_method(
    name: str, params: Mapping[str, Any] | None = None
) -> tuple[str, LooMethod]:
    """Return (name, function) of a method; "auto" is the walk.

    Parameters
    ----------
    name : str
        "auto" or one of ``METHODS``.
    params : mapping, optional
        Parameters of this method alone; they are bound to the function.

    Examples
    --------
    >>> find_method("auto")[0]
    'walk'
    >>> name, loo = find_method("refit", {"eps": 1e-3})
    """
    name = "walk" if name == "auto" else name
    if name not in METHODS:
        known = ", ".join(repr(known) for known in ["auto", *METHODS])
        raise ValueError(f"method={name!r} is not known. Use one of {known}.")
    if not params:
        return name, METHODS[name]
    own = [key for key in signature(METHODS[name]).parameters if key not in _SHARED]
    for key in params:
        if key not in own:
            takes = ", ".join(own) if own else "none"
            raise ValueError(
                f"method_params has {key!r}, which method={name!r} does not take. "
                f"It takes: {takes}."
            )
    return name, partial(METHODS[name], **params)


def follow_path(name: str, method: LooMethod) -> LooMethod:
    """Return the method for one machine over ascending C: it may remember the last one.

    Examples
    --------
    >>> name, loo = find_method("walk")
    >>> follow_path(name, loo) is loo
    True
    """
    if name not in PATH_METHODS:
        return method
    extra: dict[str, Any] = {"memory": PathMemory()}
    return partial(method, **extra)
