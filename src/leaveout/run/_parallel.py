# SPDX-License-Identifier: BSD-3-Clause
"""Loops over processes and threads, limits on BLAS threads, progress.

Results have the same bits for any number of threads: parts have fixed sizes, sums are
taken in order, and BLAS uses one thread while the pool works.
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
from functools import cache
from itertools import islice, starmap
from numbers import Integral
from time import monotonic, process_time
from typing import Any, Protocol, Self, TypeVar

from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from leaveout.exceptions import ClusterLostError, WorkerKilledError

# Starting worker processes, which import scikit-learn, takes 1 to 3 s.
SECONDS_WORTH_WORKERS = 4.0

T = TypeVar("T")
R = TypeVar("R")


class _BlasLimit:
    """The number of BLAS threads, which is one setting for the complete process.

    Blocks may overlap in any order: the smallest limit holds until the last one ends.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._limits: list[int] = []
        self._libraries: list[Any] | None = None
        self._before: list[tuple[Any, int]] = []

    def begin(self, n_threads: int) -> None:
        with self._lock:
            if self._libraries is None:  # scanning them takes milliseconds
                found = ThreadpoolController().select(user_api="blas")
                self._libraries = found.lib_controllers
            if not self._limits:
                counts = ((one, one.num_threads) for one in self._libraries)
                self._before = [(one, n) for one, n in counts if n > 1]
            lowest = min(self._limits, default=None)
            self._limits.append(n_threads)
            if lowest is None or n_threads < lowest:
                self._apply()

    def end(self, n_threads: int) -> None:
        with self._lock:
            self._limits.remove(n_threads)
            if n_threads < min(self._limits, default=n_threads + 1):
                self._apply()

    def _apply(self) -> None:
        """Set the smallest limit, or the numbers before the first block."""
        for library, before in self._before:
            # threadpoolctl 3.8 obeys only the first thread that sets a number.
            take_control = getattr(library, "clear_controlling_thread", lambda force: 0)
            take_control(force=True)
            library.set_num_threads(min(self._limits, default=before))
            take_control(force=True)  # the next block may be in another thread


_blas_limit = _BlasLimit()


class limit_blas:  # noqa: N801, a context manager as contextlib names them
    """Limit BLAS to a number of threads inside the block, for all Python threads."""

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads

    def __enter__(self) -> None:
        self._limit = _blas_limit  # a fork inside the block has its own
        self._limit.begin(self.n_threads)

    def __exit__(self, *error: object) -> None:
        self._limit.end(self.n_threads)


def count_threads(n_jobs: int | None) -> int:
    """Convert scikit-learn's n_jobs to a number of threads on this computer."""
    n_jobs = check_jobs(n_jobs)
    if n_jobs is None:
        return 1
    in_worker = bool(get_active_backend()[0].nesting_level)
    if n_jobs < 0 and in_worker:  # others use the other cores
        return 1
    if runs_here():
        return int(effective_n_jobs(n_jobs))
    with parallel_config("threading"):  # a cluster would count all its cores
        return int(effective_n_jobs(n_jobs))


def map_chunks(
    function: Callable[[slice], None], n: int, n_threads: int, size: int = 256
) -> None:
    """Call ``function(slice)`` on consecutive parts of range(n), over threads.

    Python handles signals between parts, so that Ctrl-C works.
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
            for part in left:  # shared by all threads: each takes the next part
                function(part)
        finally:
            for _ in left:  # after an error or Ctrl-C no other part is started
                pass

    n_helpers = min(n_threads, len(parts)) - 1
    helpers = [_pool().submit(work) for _ in range(n_helpers)]
    try:
        work()
    finally:
        started = [helper for helper in helpers if not helper.cancel()]
        if started:
            wait(started)
    for helper in started:
        helper.result()


@cache
def _pool() -> ThreadPoolExecutor:
    """Return persistent threads: starting one costs as much as 100 samples."""
    # The pool starts only the threads it needs.
    return ThreadPoolExecutor(max_workers=1024, thread_name_prefix="leaveout")


def _reset_after_fork() -> None:
    """Drop the parent's pool and lock: a fork does not have its threads."""
    global _blas_limit
    _pool.cache_clear()
    _blas_limit = _BlasLimit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def map_parallel(
    function: Callable[..., Any],
    tasks: Iterable[tuple[Any, ...]],
    *,
    n_jobs: int = 1,
    ordered: bool = True,
) -> Generator[Any, None, None]:
    """Yield ``function(*task)`` for each task, as soon as it is available.

    With ``n_jobs=1`` tasks run in this process, otherwise on joblib's default backend
    or that of :func:`joblib.parallel_config`. Close the generator to cancel what is
    running.
    """
    if n_jobs == 1:
        yield from starmap(function, tasks)
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
            "A worker process was killed, most likely because memory ran out. Try "
            f"again with fewer workers than n_jobs={n_jobs}."
        ) from why
    except CancelledError as error:  # raised by dask when the scheduler is lost
        raise ClusterLostError(
            f"The cluster was lost before the work was done: {error} Start it and run "
            "again; functions with checkpoint= keep finished work."
        ) from error
    finally:
        # joblib warns about results that were computed but not used.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results.close()


def map_worthwhile(
    function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], *, n_jobs: int
) -> Generator[Any, None, None]:
    """Yield ``function(*task)`` in any order; start workers only if it pays.

    On this computer, the first task runs in this process, and so does each next one as
    long as those left would take less than SECONDS_WORTH_WORKERS, judged by the
    mean. CPU time counts: if the computer is busy, starting workers takes longer too.
    """
    n_done, spent = 0, 0.0
    while n_jobs > 1 and runs_here() and n_done < len(tasks):
        if spent * (len(tasks) - n_done) > SECONDS_WORTH_WORKERS * n_done:
            break
        started = process_time()
        result = function(*tasks[n_done])
        n_done, spent = n_done + 1, spent + process_time() - started
        yield result
    if n_done < len(tasks):
        yield from map_parallel(function, tasks[n_done:], n_jobs=n_jobs, ordered=False)


def _map_in_rounds(
    function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], n_jobs: int
) -> Generator[Any, None, None]:
    """Run in rounds on backends that return all results at once, such as Ray's."""
    left = iter(tasks)
    while batch := list(islice(left, 2 * effective_n_jobs(n_jobs))):
        yield from Parallel(n_jobs=n_jobs)(delayed(function)(*task) for task in batch)


def count_workers(n_jobs: int | None) -> int:
    """Convert scikit-learn's n_jobs to a number of parallel tasks, as joblib does."""
    return int(effective_n_jobs(check_jobs(n_jobs)))


def check_jobs(n_jobs: Any) -> int | None:
    """Return n_jobs; raise unless it is None or a nonzero integer."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(
            "n_jobs must be a whole number, -1 for all cores, or None, but not 0; got "
            f"{n_jobs!r}."
        )
    return n_jobs  # type: ignore[return-value]


def runs_here() -> bool:
    """Whether parallel loops run on this computer, not on Dask, Ray and the like."""
    backend, _ = get_active_backend()
    return type(backend).__module__ == "joblib._parallel_backends"


class Summable(Protocol):
    """What a pass computes from a block: sums, lists of rows, maxima."""

    def add(self, other: Self) -> None:
        """Add another block's result."""


S = TypeVar("S", bound=Summable)


def map_in_order(
    function: Callable[[T], R], items: Iterable[T], n_threads: int
) -> Iterator[R]:
    """Yield function(item) in the order of the items; threads compute a few ahead."""
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
            ahead += [_pool().submit(function, item) for item in islice(left, 1)]
            yield result
    finally:
        for future in ahead:
            future.cancel()


def sum_in_order(function: Callable[[T], S], items: Iterable[T], n_threads: int) -> S:
    """Add up function(item) in the order of the items."""
    with limit_blas(1):
        results = map_in_order(function, items, n_threads)
        total = next(results, None)
        if total is None:
            raise ValueError("There are no rows.")
        for result in results:
            total.add(result)
    return total


def show_progress(
    items: Iterable[T], total: int, label: str, *, verbose: bool = True
) -> Iterator[T]:
    """Yield the items; show done, total and time left on stderr if verbose."""
    started = monotonic()
    try:
        for done, item in enumerate(items):
            if verbose and done:
                left = (monotonic() - started) / done * (total - done)
                sys.stderr.write(f"\r{label}: {done} of {total}, {left:.0f} s left ")
                sys.stderr.flush()
            yield item
    except BaseException:
        if verbose:  # the next message starts a new line
            sys.stderr.write("\n")
        raise
    if verbose:
        seconds = monotonic() - started
        sys.stderr.write(f"\r{label}: {total} of {total}, {seconds:.1f} s      \n")
        sys.stderr.flush()
