# SPDX-License-Identifier: BSD-3-Clause
"""Whether Gram matrices will fit into memory, asked before they are made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

from leaveout.adapt._checks import count_rows
from leaveout.exceptions import GramTooLargeError
from leaveout.run._memory import available_memory
from leaveout.run._parallel import count_workers, runs_here

# Matrices of n x n numbers at the worst moment, measured: the Gram matrix, the copy the
# solver works on, and what a method keeps. Walks keep a column for every point they
# meet, 0.3 to 4 matrices; one is taken, so as not to refuse what would do.
FIT = 2
MATRICES = {
    "auto": 3,
    "walk": 3,
    "refit": FIT,
    "stopping": FIT,
    "consolidated": 12,
    "magic": 12,
}
GIB = 2**30
# Looking takes as long as a small fit.
NOT_WORTH_ASKING = 2**25
# The names of gamma, for those who know numbers only.
FORMULAS = {"'scale'": "1 / (X.shape[1] * X.var())", "'auto'": "1 / X.shape[1]"}


def check_memory(svc: Any, X: Any, method: str | None = None) -> None:
    """Raise if the Gram matrices of one fit, or of a leave-one-out, exceed memory.

    Parameters
    ----------
    svc : estimator
        With a kernel; its gamma and C are those of the advice.
    X : array-like
        The rows, checked or not: what is no array is for others to refuse.
    method : str, optional
        Name of the leave-one-out method; None for a fit alone.
    """
    n_samples = count_rows(X) if hasattr(X, "__len__") or hasattr(X, "tocsr") else 0
    n_matrices = MATRICES.get(method, FIT) if method else FIT
    needed = _bytes(svc, n_samples, n_matrices)
    available = _available(needed)
    if needed > available:
        raise _too_large(n_samples, needed, available, _feature_call([svc]))


def check_search_room(
    svcs: Sequence[Any],
    n_samples: int,
    method: str,
    *,
    n_cells: int,
    n_jobs: int | None,
    refit: bool,
) -> None:
    """Raise if the cells of a search that run at a time exceed memory.

    Cells on a cluster look at their own machines; here is only the last fit then.
    """
    here = runs_here()
    if not here and not refit:
        return
    n_matrices = MATRICES.get(method, FIT) if here else FIT
    needed = _bytes(svcs[0], n_samples, n_matrices)
    n_at_once = min(count_workers(n_jobs), n_cells) if here else 1
    available = _available(n_at_once * needed)
    if n_at_once * needed <= available:
        return
    if needed <= available:
        raise GramTooLargeError(
            f"{n_at_once} cells at a time need {n_at_once * needed / GIB:.1f} GiB for "
            f"their Gram matrices; {available / GIB:.1f} GiB are available. Use "
            f"n_jobs={int(available // needed)}."
        )
    raise _too_large(n_samples, needed, available, _feature_call(svcs))


def _available(needed: int) -> float:
    """Bytes that can be had; without a look if any machine has what is needed."""
    if needed < NOT_WORTH_ASKING:
        return math.inf
    available = available_memory()
    return math.inf if available is None else available


def _bytes(svc: Any, n_samples: int, n_matrices: int) -> int:
    """Bytes of the matrices that are not there yet."""
    return 8 * n_samples**2 * (n_matrices - (svc.kernel == "precomputed"))


def _too_large(
    n_samples: int, needed: int, available: float, instead: str
) -> GramTooLargeError:
    n_matrices = needed // (8 * n_samples**2)
    return GramTooLargeError(
        f"The exact solution for {n_samples} rows needs {needed / GIB:.1f} GiB "
        f"({n_matrices} matrices of {n_samples} x {n_samples}); {available / GIB:.1f} "
        f"GiB are available. For so many rows use features instead: {instead}. If "
        "there is more memory than was found, set LEAVEOUT_MEMORY_GIB."
    )


def _feature_call(svcs: Sequence[Any]) -> str:
    """Return the call that does the same with features, for all C and gamma at hand."""
    Cs = list(dict.fromkeys(_shown(getattr(svc, "C", 1.0)) for svc in svcs))
    gammas = list(dict.fromkeys(_shown(svc.gamma) for svc in svcs))
    C = Cs[0] if len(Cs) == 1 else f"[{', '.join(Cs)}]"
    several = len(gammas) > 1 and svcs[0].kernel != "linear"
    features = _features(svcs[0], "gamma" if several else gammas[0])
    call = f"lo.FeatureSVC({features}, C={C}).fit(X, y)"
    return f"{call} for each gamma in [{', '.join(gammas)}]" if several else call


def _features(svc: Any, gamma: str) -> str:
    """Return the arguments by which FeatureSVC stands for the kernel of svc."""
    if svc.kernel == "linear":
        return "features='linear'"
    if svc.kernel in ("poly", "sigmoid", "laplacian", "cosine"):
        own = {"poly": f", degree={svc.degree}, coef0={svc.coef0:g}"}
        own["sigmoid"] = f", coef0={svc.coef0:g}"
        gamma = FORMULAS.get(gamma, gamma)
        return (
            f"features=sklearn.kernel_approximation.Nystroem(kernel={svc.kernel!r}, "
            f"gamma={gamma}{own.get(svc.kernel, '')}, n_components=300)"
        )
    return f"features='nystroem', n_components=300, gamma={gamma}"


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, Real) else repr(value)
