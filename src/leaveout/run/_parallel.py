# SPDX-License-Identifier: BSD-3-Clause
"""The one parallel loop of the package."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable
from typing import Any

from joblib import Parallel, delayed
from joblib.parallel import get_active_backend


def map_parallel(
    function: Callable[..., Any],
    tasks: Iterable[tuple[Any, ...]],
    *,
    n_jobs: int = 1,
    ordered: bool = True,
) -> Generator[Any, None, None]:
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

    Notes
    -----
    Close the generator to stop before the end: what is under way is then cancelled.

    Examples
    --------
    >>> from leaveout.run import map_parallel
    >>> list(map_parallel(pow, [(2, 3), (3, 2)]))
    [8, 9]
    """
    return_as = "generator" if ordered else "generator_unordered"
    parallel = Parallel(n_jobs=n_jobs, return_as=return_as)
    results = parallel(delayed(function)(*task) for task in tasks)
    try:
        for result in results:  # noqa: UP028, "yield from" would close it first
            yield result
    finally:
        # joblib warns of what was computed and not used, which is no news.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results.close()


def runs_here() -> bool:
    """Whether parallel loops run on this machine: not with Dask, Ray and their like.

    Examples
    --------
    >>> from joblib import parallel_config
    >>> from leaveout.run import runs_here
    >>> with parallel_config("loky", n_jobs=2):
    ...     runs_here()
    True
    """
    backend, _ = get_active_backend()
    return type(backend).__module__ == "joblib._parallel_backends"
