# SPDX-License-Identifier: BSD-3-Clause
"""One machine: as typed, or chosen on the default grid where C or gamma is not."""

from __future__ import annotations

from typing import Any

import typer

from leaveout.cli._grid import complete_grid, search_grid
from leaveout.cli._prepared import Prepared
from leaveout.cli._session import at_terminal, tell
from leaveout.estimators import SVC
from leaveout.report import format_model
from leaveout.select import needs_gamma


def parse_gamma(text: str | None) -> float | str | None:
    """Read a number, "scale" or "auto"."""
    if text is None or text in ("scale", "auto"):
        return text
    try:
        return float(text)
    except ValueError as why:
        raise typer.BadParameter(
            f"'{text}' is no number, nor 'scale' or 'auto'.", param_hint="'--gamma'"
        ) from why


def make_machine(
    prepared: Prepared,
    *,
    kernel: str,
    C: float | None,
    gamma: float | str | None,
    degree: int,
    coef0: float,
    class_weight: str | None,
    n_jobs: int,
) -> tuple[SVC, str]:
    """Return an SVC not fitted yet, and how to write it."""
    params: dict[str, Any] = {} if C is None else {"C": C}
    if needs_gamma(kernel) and gamma is not None:
        params["gamma"] = gamma
    if kernel == "poly":
        params |= {"degree": degree, "coef0": coef0}
    missing = {"C", "gamma"} if needs_gamma(kernel) else {"C"}
    if missing - set(params):
        grid = {k: [v] for k, v in params.items() if isinstance(v, float | int)}
        grid = complete_grid(grid, prepared.numbers, kernel)
        search = search_grid(
            prepared,
            grid,
            kernel=kernel,
            class_weight=class_weight,
            n_jobs=n_jobs,
            verbose=at_terminal(),
        )
        params = search.best_params_
        tell("Parameters chosen by leave-one-out; --C and --gamma set them.")
    svc = SVC(kernel=kernel, class_weight=class_weight, **params)
    return svc, format_model(kernel, params, class_weight)
