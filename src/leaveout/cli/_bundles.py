# SPDX-License-Identifier: BSD-3-Clause
"""Bundles of options: a dataclass is one argument in Python, many on the command line.

typer reads the signature of a command. Here it gets one in which each argument that is
a dataclass is replaced by the fields of it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def spread_bundles(function: Callable[..., None]) -> Callable[..., None]:
    """Return the function with the fields of its bundles as keywords of their own."""
    parameters: list[Parameter] = []
    bundles: dict[str, Any] = {}
    hints = get_type_hints(function, include_extras=True)
    for parameter in signature(function).parameters.values():
        kind = hints[parameter.name]
        if is_dataclass(kind):
            bundles[parameter.name] = kind
            parameters += _parameters_of(kind)
        else:
            parameters.append(parameter.replace(annotation=kind))

    @functools.wraps(function)
    def run(**flat: Any) -> None:
        for name, kind in bundles.items():
            own = {field.name: flat.pop(field.name) for field in fields(kind)}
            flat[name] = kind(**own)
        function(**flat)

    run.__signature__ = Signature(  # type: ignore[attr-defined]
        [p.replace(kind=Parameter.KEYWORD_ONLY) for p in parameters]
    )
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _parameters_of(bundle: Any) -> list[Parameter]:
    hints = get_type_hints(bundle, include_extras=True)
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(bundle)
    ]
