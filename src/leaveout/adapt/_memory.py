# SPDX-License-Identifier: BSD-3-Clause
"""Refuse Gram matrices that do not fit into memory, before they are computed."""

from __future__ import annotations

import math
from typing import Any

from leaveout.adapt._checks import count_rows
from leaveout.exceptions import GramTooLargeError
from leaveout.run._memory import GIB, available_memory
from leaveout.run._parallel import count_workers, runs_here

# Peak number of n x n matrices, measured: the Gram matrix, the solver's copy, and what
# a method keeps. Walks keep a column per point they meet, 0.3 to 4 matrices; one is
# counted, so that nothing feasible is refused.
FIT = 2
MATRICES = {"auto": 3, "walk": 3, "consolidated": 12, "magic": 12}
# Smaller needs are not checked: reading the limits takes as long as a small fit.
SMALL = 2**25


def check_memory(svc: Any, X: Any, method: str | None = None) -> None:
    """Raise if one fit (method None) or leave-one-out needs more than there is."""
    n_samples = count_rows(X) if hasattr(X, "__len__") or hasattr(X, "tocsr") else 0
    _check(svc, n_samples, MATRICES.get(method or "", FIT))


def check_search_memory(
    svc: Any,
    n_samples: int,
    method: str,
    *,
    n_paths: int,
    n_jobs: int | None,
    refit: bool,
) -> None:
    """Raise if the paths that run at a time need more memory than there is.

    Paths on a cluster check their own memory; only the refit is here.
    """
    if runs_here():
        n_at_once = min(count_workers(n_jobs), n_paths)
        _check(svc, n_samples, MATRICES.get(method, FIT), n_at_once)
    elif refit:
        _check(svc, n_samples, FIT)


def _check(svc: Any, n_samples: int, n_matrices: int, n_at_once: int = 1) -> None:
    n_matrices -= svc.kernel == "precomputed"  # it exists already
    needed = 8 * n_samples**2 * n_matrices
    available: float | None = math.inf
    if n_at_once * needed >= SMALL:
        available = available_memory()
    if available is None or n_at_once * needed <= available:
        return
    if needed <= available:
        raise GramTooLargeError(
            f"{n_at_once} candidates at a time need {n_at_once * needed / GIB:.1f} GiB "
            f"for their Gram matrices; {available / GIB:.1f} GiB are available. Use "
            f"n_jobs={int(available // needed)}."
        )
    raise GramTooLargeError(
        f"The exact solution for {n_samples} rows needs {needed / GIB:.1f} GiB "
        f"({n_matrices} matrices of {n_samples} x {n_samples}); {available / GIB:.1f} "
        "GiB are available. Use leaveout.FeatureSVC, which works on approximate kernel "
        "features, or set LEAVEOUT_MEMORY_GIB if there is more memory than was found."
    )
