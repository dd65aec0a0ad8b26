# SPDX-License-Identifier: BSD-3-Clause
"""One pass over many blocks of rows: map over threads, results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from itertools import islice
from typing import Protocol, Self, TypeVar

from leaveout.run._threads import _pool, blas_threads

T = TypeVar("T")
R = TypeVar("R")


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
    with blas_threads(1):
        for result in map_in_order(function, items, n_threads):
            if total is None:
                total = result
            else:
                total.add(result)
    if total is None:
        raise ValueError("There are no rows.")
    return total
