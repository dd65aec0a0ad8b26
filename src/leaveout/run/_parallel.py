# SPDX-License-Identifier: BSD-3-Clause
"""The one parallel loop of the package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from joblib import Parallel, delayed


def map_parallel(
    function: Callable[..., Any],
    tasks: Iterable[tuple[Any, ...]],
    *,
    n_jobs: int = 1,
    ordered: bool = True,
) -> Iterator[Any]:
    """Yield ``function(*task)`` for each task, as soon as it is there.

    Parameters
    ----------
    function : callable
        Defined at the top of a module, so that other processes find it.
    tasks : iterable of tuple
        Arguments of each call.
    n_jobs : int, default=1
        Number of tasks at a time; -1 means one per core. The backend is joblib's
        choice, or that of the caller's :func:`joblib.parallel_config`.
    ordered : bool, default=True
        Whether each waits for those before it, or comes when it is finished.

    Examples
    --------
    >>> from leaveout.run import map_parallel
    >>> list(map_parallel(pow, [(2, 3), (3, 2)]))
    [8, 9]
    """
    return_as = "generator" if ordered else "generator_unordered"
    parallel = Parallel(n_jobs=n_jobs, return_as=return_as)
    return parallel(delayed(function)(*task) for task in tasks)
