# SPDX-License-Identifier: BSD-3-Clause
"""The one parallel loop of the package."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from numbers import Integral
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from leaveout.exceptions import ClusterLostError, WorkerKilledError


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
        Number of tasks at a time; -1 means one per core. With 1 they run here, one
        after the other; else the backend is joblib's choice, or that of the caller's
        :func:`joblib.parallel_config`.
    ordered : bool, default=True
        Whether each waits for those before it, or comes when it is finished.

    Raises
    ------
    WorkerKilledError
        If a process among the workers is killed.

    Notes
    -----
    Close the generator to stop before the end: what is under way is then cancelled.

    A backend that gives results only when all of them are there, as Ray's, gets the
    tasks in rounds.

    Examples
    --------
    >>> from leaveout.run import map_parallel
    >>> list(map_parallel(pow, [(2, 3), (3, 2)]))
    [8, 9]
    """
    if n_jobs == 1:
        for task in tasks:
            yield function(*task)
        return
    if not get_active_backend()[0].supports_return_generator:
        yield from _map_in_rounds(function, tasks, n_jobs)
        return
    return_as = "generator" if ordered else "generator_unordered"
    parallel = Parallel(n_jobs=n_jobs, return_as=return_as)
    results = parallel(delayed(function)(*task) for task in tasks)
    try:
        for result in results:  # noqa: UP028, "yield from" would close it first
            yield result
    except BrokenProcessPool as why:
        raise WorkerKilledError(
            "A worker process was ended from outside, most likely by the system for "
            f"want of memory. Try again with fewer than n_jobs={n_jobs}."
        ) from why
    except CancelledError as error:  # nobody cancels but dask, without a scheduler
        raise ClusterLostError(
            f"The cluster was lost before all was done: {error} Start it again and run "
            "again; with checkpoint=, where there is one, finished work is not redone."
        ) from error
    finally:
        # joblib warns of what was computed and not used, which is no news.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results.close()


def _map_in_rounds(
    function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], n_jobs: int
) -> Generator[Any, None, None]:
    """Yield the results round by round, each large enough to keep workers busy."""
    left = iter(tasks)
    while batch := list(islice(left, 2 * effective_n_jobs(n_jobs))):
        yield from Parallel(n_jobs=n_jobs)(delayed(function)(*task) for task in batch)


def count_workers(n_jobs: int | None) -> int:
    """Turn scikit-learn's n_jobs into a number of tasks at a time.

    None is 1, or what the caller's :func:`joblib.parallel_config` says: with Dask all
    cores of the cluster.

    Examples
    --------
    >>> from joblib import parallel_config
    >>> from leaveout.run import count_workers
    >>> count_workers(None)
    1
    >>> with parallel_config("loky", n_jobs=3):
    ...     count_workers(None), count_workers(2)
    (3, 2)
    """
    return int(effective_n_jobs(check_jobs(n_jobs)))


def check_jobs(n_jobs: Any) -> int | None:
    """Return n_jobs; refuse what is neither None nor a whole number."""
    if n_jobs is None:
        return None
    if isinstance(n_jobs, Integral) and n_jobs != 0:
        return int(n_jobs)
    raise ValueError(
        "n_jobs must be a whole number, -1 for all cores, or None, but not 0; got "
        f"{n_jobs!r}."
    )


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
