# SPDX-License-Identifier: BSD-3-Clause
"""Threads over samples, for kernels that release the interpreter lock."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import Any

from joblib import effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from leaveout.run._parallel import check_jobs, runs_here

# A pool only starts the threads it needs.
MOST_THREADS = 1024


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
def blas_threads(n_threads: int) -> Iterator[None]:
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
