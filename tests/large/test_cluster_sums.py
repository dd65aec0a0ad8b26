# SPDX-License-Identifier: BSD-3-Clause
"""Passes on a Dask cluster; its workers are threads here, which share all objects."""

import dask
import joblib
import pytest
from dask.distributed import Client, LocalCluster

from leaveout.large._sources import Cluster, _add_up
from leaveout.run._parallel import count_threads


class Listed:
    """A sum that tells the order of its terms."""

    def __init__(self, item):
        self.items = [item]

    def add(self, other):
        self.items += other.items


@pytest.fixture(scope="module")
def cluster():
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=2, processes=False, dashboard_address=":0"
        ) as local,
        Client(local) as client,
    ):
        yield Cluster(client)


@pytest.mark.parametrize("n_items", [1, 7, 8, 9, 65, 100])
def test_sum_keeps_the_order(cluster, n_items):
    items = [[10 * k, 10 * k + 1] for k in range(n_items)]
    total = cluster.sum(Listed, cluster.place(items))
    assert total.items == [x for item in items for x in item]


def test_sum_leaves_its_terms_as_they_are():
    """Dask may hold them still, and add them up again when a worker has died."""
    terms = [Listed(k) for k in range(4)]
    assert _add_up(terms).items == _add_up(terms).items == [0, 1, 2, 3]


def test_fetch_and_keep(cluster):
    placed = cluster.place(range(5))
    kept = cluster.keep(lambda x: x + 1, placed)
    assert cluster.fetch(lambda x: x * x, kept) == [1, 4, 9, 16, 25]


def test_large_rows_travel_without_warning(cluster):
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 kB"}):
        placed = cluster.place([bytes(100_000)])
    assert cluster.fetch(len, placed) == [100_000]


def test_errors_of_tasks_come_as_they_are(cluster):
    with pytest.raises(ZeroDivisionError):
        cluster.fetch(lambda x: 1 / x, cluster.place([1, 0]))


def test_active_only_where_joblib_is_told(cluster):
    assert Cluster.active() is None
    with joblib.parallel_config("threading"):
        assert Cluster.active() is None
    with joblib.parallel_config("dask"):
        assert Cluster.active().client is cluster.client
        assert count_threads(3) == 3
        assert count_threads(None) == 1


def active_there(_):
    with joblib.parallel_config("dask"):
        return Cluster.active() is None


def test_not_active_inside_of_a_task(cluster):
    assert cluster.fetch(active_there, cluster.place([0])) == [True]
