# SPDX-License-Identifier: BSD-3-Clause
"""Loops over processes and threads, limits on BLAS threads, progress.

Threads over samples, for kernels that release the interpreter lock.

The one parallel loop of the package.

One pass over many blocks of rows: map over threads, results in order.

One line on stderr that says how far a long loop is.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from itertools import islice
from numbers import Integral
from time import monotonic
from typing import Any, Protocol, Self, TypeVar

from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from leaveout.exceptions import ClusterLostError, WorkerKilledError

# A pool only starts the threads it needs.
MOST_THREADS = 1024
T = TypeVar("T")
R = TypeVar("R")


class _BlasLimit:
    """The number of threads of BLAS, which is one for the whole process.

    Blocks in several threads overlap in any order. The smallest wish among them holds;
    when the last one ends, the number is again what it was before the first.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wishes: list[int] = []
        self._controller: ThreadpoolController | None = None
        self._before: Any = None

    def begin(self, n_threads: int) -> None:
        with self._lock:
            self._wishes.append(n_threads)
            limit = self._apply()
            self._before = self._before or limit

    def end(self, n_threads: int) -> None:
        with self._lock:
            self._wishes.remove(n_threads)
            if self._wishes:
                self._apply()
            else:
                self._take_control()
                self._before.restore_original_limits()
                self._take_control()  # and leave it to the next, whichever thread
                self._before = None

    def _apply(self) -> Any:
        if self._controller is None:  # scanning the libraries takes milliseconds
            self._controller = ThreadpoolController()
        self._take_control()
        return self._controller.limit(limits=min(self._wishes), user_api="blas")

    def _take_control(self) -> None:
        """Be the thread whose limits count.

        From version 3.8 on threadpoolctl hears the first thread only, until that has
        given up control; which of ours sets the number does not matter.
        """
        assert self._controller is not None
        for library in self._controller.lib_controllers:
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread(force=True)


_blas_limit = _BlasLimit()


@contextmanager
def limit_blas(n_threads: int) -> Iterator[None]:
    """Limit BLAS to a number of threads inside the block, for all threads of Python."""
    limit = _blas_limit  # a fork inside the block gets another
    limit.begin(n_threads)
    try:
        yield
    finally:
        limit.end(n_threads)


def count_threads(n_jobs: int | None) -> int:
    """Turn scikit-learn's n_jobs into a number of threads, which are those here.

    Inside a worker of joblib, "one per core" is one: the other workers have the others.
    Backends of joblib for clusters would count the cores of all machines.
    """
    n_jobs = check_jobs(n_jobs)
    if n_jobs is None or (n_jobs < 0 and _in_worker()):
        return 1
    if runs_here():
        return int(effective_n_jobs(n_jobs))
    with parallel_config("threading"):
        return int(effective_n_jobs(n_jobs))


def _in_worker() -> bool:
    backend, _ = get_active_backend()
    return bool(backend.nesting_level)


def map_chunks(
    function: Callable[[slice], None], n: int, n_threads: int, size: int = 256
) -> None:
    """Call ``function(slice)`` on consecutive parts of range(n), over threads.

    Between two parts Python looks at its signals, so that Ctrl-C works.

    Parameters
    ----------
    function : callable
        Works on one part; releases the interpreter lock if threads are to help.
    n : int
        Length of the range.
    n_threads : int
        Threads; with one, the parts are run here.
    size : int, default=256
        Length of a part. It does not depend on the number of threads, so that sums
        over a part do not either.

    Examples
    --------
    >>> import numpy as np
    >>> out = np.zeros(5)
    >>> def fill(part):
    ...     out[part] = 1.0
    >>> map_chunks(fill, 5, n_threads=2)
    >>> out
    array([1., 1., 1., 1., 1.])
    """
    parts = [slice(start, min(start + size, n)) for start in range(0, n, size)]
    map_parts(function, parts, n_threads)


def map_parts(
    function: Callable[[slice], None], parts: Sequence[slice], n_threads: int
) -> None:
    """Call ``function(slice)`` on each of the parts, over threads."""
    left = iter(parts)

    def work() -> None:
        try:
            for part in left:  # one list for all threads: each takes the next one
                function(part)
        finally:
            for _ in left:  # after an error or Ctrl-C nothing is left to take
                pass

    n_helpers = min(n_threads, len(parts)) - 1
    helpers = [_pool().submit(work) for _ in range(n_helpers)]
    try:
        work()
    finally:
        wait([helper for helper in helpers if not helper.cancel()])
    for helper in helpers:
        if not helper.cancelled():
            helper.result()


def shrinking_parts(n: int, n_threads: int, *, most: int, least: int) -> list[slice]:
    """Split range(n) into parts for threads, large ones first: all end together.

    For work in which a part of its own has a cost, and parts share no sums.

    Examples
    --------
    >>> [part.stop - part.start for part in shrinking_parts(100, 2, most=64, least=8)]
    [25, 18, 14, 10, 8, 8, 8, 8, 1]
    >>> shrinking_parts(100, 1, most=64, least=8)
    [slice(0, 64, None), slice(64, 100, None)]
    """
    parts, start = [], 0
    while start < n:
        share = n - start if n_threads == 1 else (n - start) // (2 * n_threads)
        stop = min(n, start + min(most, max(least, share)))
        parts.append(slice(start, stop))
        start = stop
    return parts


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads that stay: starting one takes as long as leaving out a hundred samples.

    They are made when they are needed, up to the largest n_threads asked for.
    """
    return ThreadPoolExecutor(max_workers=MOST_THREADS, thread_name_prefix="leaveout")


def _start_afresh() -> None:
    """Forget the pool and the lock of a parent: a fork has none of its threads."""
    global _blas_limit
    _pool.cache_clear()
    _blas_limit = _BlasLimit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_afresh)


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
    >>> with parallel_config("loky", n_jobs=2):
    ...     runs_here()
    True
    """
    backend, _ = get_active_backend()
    return type(backend).__module__ == "joblib._parallel_backends"


class Summable(Protocol):
    """What a pass makes of a block: sums, lists of rows, maxima."""

    def add(self, other: Self) -> None:
        """Take over what another block gave."""


S = TypeVar("S", bound=Summable)


def map_in_order(
    function: Callable[[T], R], items: Iterable[T], n_threads: int
) -> Iterator[R]:
    """Yield function(item) in the order of the items, a few ahead over threads.

    Examples
    --------
    >>> list(map_in_order(lambda x: x * x, range(4), n_threads=2))
    [0, 1, 4, 9]
    """
    if n_threads == 1:
        yield from map(function, items)
        return
    left = iter(items)
    ahead: deque[Future[R]] = deque()
    try:
        for item in islice(left, n_threads + 1):
            ahead.append(_pool().submit(function, item))
        while ahead:
            result = ahead.popleft().result()
            for item in islice(left, 1):
                ahead.append(_pool().submit(function, item))
            yield result
    finally:
        for future in ahead:
            future.cancel()


def sum_in_order(function: Callable[[T], S], items: Iterable[T], n_threads: int) -> S:
    """Add up function(item) in the order of the items: the same bits for any threads.

    Examples
    --------
    >>> class Count:
    ...     def __init__(self, n):
    ...         self.n = n
    ...     def add(self, other):
    ...         self.n += other.n
    >>> sum_in_order(Count, range(4), n_threads=2).n
    6
    """
    total: S | None = None
    with limit_blas(1):
        for result in map_in_order(function, items, n_threads):
            if total is None:
                total = result
            else:
                total.add(result)
    if total is None:
        raise ValueError("There are no rows.")
    return total


def show_progress(
    items: Iterable[T], total: int, label: str, *, verbose: bool = True
) -> Iterator[T]:
    """Yield the items, writing done, total and time left to stderr as they are used.

    Parameters
    ----------
    items : iterable
        What to go through.
    total : int
        How many there are.
    label : str
        What is being done.
    verbose : bool, default=True
        Whether to write anything.

    Examples
    --------
    >>> list(show_progress("ab", 2, "letters", verbose=False))
    ['a', 'b']
    """
    started = monotonic()
    try:
        for done, item in enumerate(items):
            if verbose and done:
                left = (monotonic() - started) / done * (total - done)
                sys.stderr.write(f"\r{label}: {done} of {total}, {left:.0f} s left ")
                sys.stderr.flush()
            yield item
    except BaseException:
        if verbose:  # whatever is said next begins a line
            sys.stderr.write("\n")
        raise
    if verbose:
        seconds = monotonic() - started
        sys.stderr.write(f"\r{label}: {total} of {total}, {seconds:.1f} s      \n")
        sys.stderr.flush()
