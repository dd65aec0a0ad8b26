# SPDX-License-Identifier: BSD-3-Clause
"""Parallel loops on backends that lose work, or return all of it at once.

Dask and Ray themselves: tests/nightly/test_clusters.py.
"""

from concurrent.futures import CancelledError

import joblib
import pytest

import leaveout as lo
from leaveout.run._parallel import map_parallel


def test_cancelled_work_is_a_lost_cluster():
    def lose(i):
        raise CancelledError("scheduler-connection-lost.")

    with (
        joblib.parallel_config("threading"),
        pytest.raises(lo.ClusterLostError, match=r"connection-lost\. Start it"),
    ):
        list(map_parallel(lose, [(1,), (2,)], n_jobs=2))


class AllAtOnce(joblib.parallel.ThreadingBackend):
    """Threads that, as Ray's backend, return results only in a list."""

    supports_return_generator = False


def test_backend_without_generators_works_in_rounds():
    joblib.register_parallel_backend("all at once", AllAtOnce)
    done = []

    def work(i):
        done.append(i)
        return i * i

    with joblib.parallel_config("all at once", n_jobs=2):
        results = map_parallel(work, [(i,) for i in range(10)], n_jobs=2)
        assert next(results) == 0
        assert len(done) == 4
        assert list(results) == [i * i for i in range(1, 10)]
