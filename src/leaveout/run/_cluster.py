# SPDX-License-Identifier: BSD-3-Clause
"""Passes over rows on a Dask cluster: a task for each part, results added up in a tree.

Which parts are added up first depends on their number alone, never on the workers or on
who is ready first: the sums are the same numbers on every cluster. Everything a worker
has was made by a task, so that Dask makes it anew when the worker dies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, TypeVar

from joblib.parallel import get_active_backend

from leaveout.exceptions import ClusterLostError
from leaveout.run._passes import Summable, sum_in_order

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S", bound=Summable)

# So many neighbours are added up at a time.
FAN_IN = 8
# For what may pass, such as a disk that is away for a moment. A worker that dies does
# not count: for these Dask has distributed.scheduler.allowed-failures.
RETRIES = 2
# Dask warns of data in graphs. Rows in memory have to travel, and do so once.
NO_SIZE_WARNING = {"distributed.admin.large-graph-warning-threshold": "1 PiB"}


class Cluster:
    """The Dask cluster that joblib is told to use.

    Parameters
    ----------
    client : distributed.Client
        The connection to its scheduler.
    """

    def __init__(self, client: Any) -> None:
        self.client = client

    @classmethod
    def active(cls) -> Cluster | None:
        """Return the cluster of ``joblib.parallel_config("dask")``, None without.

        None also inside of a task of that cluster: its workers are busy already.

        Examples
        --------
        >>> from leaveout.run import Cluster
        >>> Cluster.active() is None
        True
        """
        backend, _ = get_active_backend()
        if type(backend).__module__ != "joblib._dask" or _is_worker():
            return None
        return cls(backend.client)

    def place(self, items: Iterable[Any]) -> list[Any]:
        """Bring things to the workers; return a future for each."""
        import dask

        with self._losses_told(), dask.config.set(NO_SIZE_WARNING):
            return [
                self.client.submit(_itself, item, pure=False, retries=RETRIES)
                for item in items
            ]

    def keep(self, function: Callable[[Any], Any], placed: Sequence[Any]) -> list[Any]:
        """Leave ``function(item)`` of each placed item where it is computed."""
        with self._losses_told():
            return list(self._compute(self._apply(function, placed)))

    def fetch(self, function: Callable[[Any], R], placed: Sequence[Any]) -> list[R]:
        """Return ``function(item)`` of each placed item, in their order."""
        with self._losses_told():
            futures = self._compute(self._apply(function, placed))
            return list(self.client.gather(futures))

    def sum(self, job: Callable[[Any], S], placed: Sequence[Any]) -> S:
        """Add up ``job(block)`` over the blocks of all placed items, in their order."""
        from dask import delayed

        level = self._apply(_SumBlocks(job), placed)
        while len(level) > 1:
            level = [
                delayed(_add_up, pure=False)(level[i : i + FAN_IN])
                for i in range(0, len(level), FAN_IN)
            ]
        with self._losses_told():
            # A copy: what came over the network may be read-only.
            return deepcopy(self._compute(level)[0].result())

    def _apply(self, function: Callable[[Any], Any], placed: Sequence[Any]) -> Any:
        """Return one task for each item; the function travels once for all."""
        from dask import delayed

        shared = delayed(function, pure=False, traverse=False)
        call = delayed(_call, pure=False)
        return [call(shared, item) for item in placed]

    def _compute(self, tasks: list[Any]) -> Any:
        return self.client.compute(tasks, retries=RETRIES, optimize_graph=False)

    @contextmanager
    def _losses_told(self) -> Iterator[None]:
        """Say in our words that the cluster is gone; errors of tasks go through."""
        from distributed import CancelledError, KilledWorker
        from distributed.client import ClosedClientError
        from distributed.comm import CommClosedError
        from distributed.scheduler import NoWorkerError

        try:
            yield
        except (CancelledError, ClosedClientError, CommClosedError) as error:
            address = getattr(self.client.scheduler, "address", "")
            raise ClusterLostError(
                f"The Dask scheduler {address} was lost: {_first_line(error)}"
            ) from error
        except (KilledWorker, NoWorkerError) as error:
            raise ClusterLostError(
                f"The workers of the Dask cluster were lost: {_first_line(error)} If "
                "they ran out of memory, take fewer rows_at_once or give them more."
            ) from error


class _SumBlocks:
    """Add up what a job makes of the blocks of one item."""

    def __init__(self, job: Callable[[Any], Any]) -> None:
        self.job = job

    def __call__(self, blocks: Iterable[Any]) -> Any:
        return sum_in_order(self.job, blocks, n_threads=1)


def _add_up(sums: list[Any]) -> Any:
    """Add neighbours up. Dask may need them again, so they must stay as they are."""
    first, *others = map(deepcopy, sums)
    for other in others:
        first.add(other)
    return first


def _call(function: Callable[[Any], Any], item: Any) -> Any:
    return function(item)


def _itself(item: T) -> T:
    return item


def _is_worker() -> bool:
    """Whether this is a task on a worker."""
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return False
    return True


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
