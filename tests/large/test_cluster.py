# SPDX-License-Identifier: BSD-3-Clause
"""FeatureSVC on two processes of Dask: the numbers of one, come what may."""

import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import dask
import dask.array as da
import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from cluster_features import TroubledFeatures
from dask import dataframe as dd
from dask.distributed import Client, LocalCluster
from pyarrow import parquet
from sklearn.model_selection import GridSearchCV

from leaveout import ClusterLostError, FeatureSVC
from leaveout.data import make_mixture
from leaveout.large._fit import CountClasses
from leaveout.large._sources import Cluster, DistributedRows, open_rows

N_ROWS = 8000
X, Y = make_mixture(N_ROWS, 5, random_state=0)
NAMES = [f"x{j}" for j in range(5)]
COMMON = {"n_components": 20, "C": [0.001, 0.01], "random_state": 0}
ARRAYS = ("coef_", "intercept_", "objective_")


@pytest.fixture(scope="module")
def cluster():
    """Two processes with one thread each; Dask gives up one that is long to return."""
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "600s"}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def fit_there(svc, *arguments, **options):
    with joblib.parallel_config("dask"):
        return svc.fit(*arguments, **options)


def assert_same_machine(here, there):
    """Equal to 1e-10 of the largest entry; labels and errors are equal."""
    for name in ARRAYS:
        wanted, found = getattr(here, name), getattr(there, name)
        atol = 1e-10 * abs(wanted).max()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=atol)
    assert there.C_ == here.C_
    assert there.loo_error_ == here.loo_error_
    np.testing.assert_array_equal(there.loo_labels_, here.loo_labels_)
    np.testing.assert_array_equal(there.loo_proved_, here.loo_proved_)
    np.testing.assert_allclose(there.path_["objective"], here.path_["objective"], 1e-10)


def write_parquet(folder, table, labels, n_files=3):
    """Files of unequal size, several row groups each."""
    cuts = np.linspace(0, len(table), n_files + 1).astype(int) + 7
    cuts[0], cuts[-1] = 0, len(table)
    for k, (first, stop) in enumerate(pairwise(cuts)):
        columns = {name: table[first:stop, j] for j, name in enumerate(NAMES)}
        rows = pa.table({**columns, "y": labels[first:stop]})
        parquet.write_table(rows, folder / f"{k}.parquet", row_group_size=800)
    return folder


@pytest.fixture(scope="module")
def here():
    """The machine of one process."""
    return FeatureSVC(**COMMON).fit(X, Y)


@pytest.mark.parametrize("rows_in_memory", [N_ROWS, 100])
def test_array_gives_the_same_numbers(cluster, here, rows_in_memory):
    svc = FeatureSVC(**COMMON, rows_at_once=700, rows_in_memory=rows_in_memory)
    there = fit_there(svc, X, Y)
    assert_same_machine(here, there)
    assert there.n_passes_ == here.n_passes_
    np.testing.assert_array_equal(there.predict(X[:100]), here.predict(X[:100]))


@pytest.mark.parametrize("kind", ["parquet", "memmap", "dask", "dask frame"])
def test_workers_read_for_themselves(cluster, here, kind, tmp_path):
    source, y = X, Y
    if kind == "parquet":
        source, y = write_parquet(tmp_path, X, Y), "y"
    elif kind == "memmap":
        np.save(tmp_path / "x.npy", X)
        source = tmp_path / "x.npy"
    elif kind == "dask":
        source, y = (da.from_array(values, chunks=(1500, 5)[: values.ndim])
                     for values in (X, Y))  # fmt: skip
    else:  # nobody knows how many rows a partition has
        table = pd.DataFrame(X, columns=NAMES).assign(y=Y)
        frame = dd.from_pandas(table, npartitions=3)
        source, y = frame.map_partitions(lambda part: part), "y"
    svc = FeatureSVC(**COMMON, rows_at_once=700, rows_in_memory=100)
    assert_same_machine(here, fit_there(svc, source, y))


def test_three_classes_with_weights(cluster, rng):
    labels = np.array(["b", "a", "c"])[Y + (X[:, 1] > 1.0)]
    weight = rng.uniform(0.5, 2.0, N_ROWS)
    options = {**COMMON, "class_weight": "balanced", "rows_at_once": 1500}
    here = FeatureSVC(**options).fit(X, labels, sample_weight=weight)
    there = fit_there(FeatureSVC(**options), X, labels, sample_weight=weight)
    assert_same_machine(here, there)


@pytest.mark.parametrize("rows_in_memory", [N_ROWS, 100])
def test_killed_worker_changes_nothing(cluster, tmp_path, rows_in_memory):
    """Features that were kept are lost with it, and so are sums of the pass."""
    after = 5 if rows_in_memory == N_ROWS else 40
    features = TroubledFeatures(str(tmp_path), after, spared=os.getpid())
    options = {"C": COMMON["C"], "random_state": 0, "rows_at_once": 700}
    options |= {"rows_in_memory": rows_in_memory}
    before = set(cluster.run(os.getpid).values())
    there = fit_there(FeatureSVC(features, **options), X, Y)
    assert (tmp_path / "trouble").exists()
    cluster.wait_for_workers(2, timeout=300)
    assert set(cluster.run(os.getpid).values()) != before
    assert_same_machine(FeatureSVC(features, **options).fit(X, Y), there)


def test_missing_value_is_named(cluster, tmp_path):
    table = X.copy()
    table[4000, 2] = np.nan
    write_parquet(tmp_path, table, Y)
    match = r"NaN in row 1327 of '.*1.parquet' \(row 4000 of all.*column 'x2'"
    with pytest.raises(ValueError, match=match):
        fit_there(FeatureSVC(**COMMON), tmp_path, "y")


def test_row_of_other_width_is_named(cluster):
    ones = [dask.delayed(np.ones)((500, width)) for width in (5, 5, 4)]
    parts = [da.from_delayed(part, shape=(500, 5), dtype=float) for part in ones]
    table = da.concatenate(parts)
    labels = da.from_array(Y[:1500], chunks=500)
    match = r"X has 4 columns at row 0 of partition 2 .*\(row 1000 of all"
    with pytest.raises(ValueError, match=match):
        fit_there(FeatureSVC(**COMMON), table, labels)


def test_file_that_workers_do_not_see_is_named(cluster, tmp_path):
    source = open_rows(write_parquet(tmp_path, X, Y), "y")
    placed = DistributedRows.of(source, Cluster(cluster))
    (tmp_path / "2.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"2.parquet' on this machine. All wor"):
        placed.sum(CountClasses(0, 100))


def test_iterable_is_refused(cluster):
    blocks = [(X[:4000], Y[:4000]), (X[4000:], Y[4000:])]
    with pytest.raises(ValueError, match=r"read by one process only.*Parquet"):
        fit_there(FeatureSVC(**COMMON), blocks)


def test_fit_inside_of_a_task_stays_there(cluster):
    """Cells of a search are tasks already: no task may wait for others."""
    grid = {"n_components": [5, 10]}
    search = GridSearchCV(FeatureSVC(random_state=0), grid, cv=2)
    here = search.fit(X[:3000], Y[:3000]).cv_results_["mean_test_score"]
    there = fit_there(search, X[:3000], Y[:3000]).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(there, here)


@pytest.fixture
def two_processes(tmp_path):
    """A scheduler and a worker in processes of their own."""
    note = tmp_path / "scheduler.json"
    paths = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": paths}
    file = ["--scheduler-file", str(note)]
    commands = [
        ["distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", *file],
        ["distributed.cli.dask_worker", "--no-nanny", "--nthreads", "1", *file],
    ]
    processes = []
    try:
        for module, *options in commands:
            processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", module, *options], cwd=tmp_path,
                    env=environment, stderr=subprocess.DEVNULL,
                )
            )  # fmt: skip
            while not note.exists():
                assert processes[0].poll() is None
                time.sleep(0.05)
        yield note, processes[0].pid
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_lost_scheduler_is_told_and_the_fit_goes_on(two_processes, tmp_path):
    note, pid = two_processes
    folder = tmp_path / "features"
    folder.mkdir()
    features = TroubledFeatures(str(folder), 30, victim=pid, spared=os.getpid())
    kept = tmp_path / "fit.npz"
    options = {"C": COMMON["C"], "random_state": 0, "rows_at_once": 1000}
    svc = FeatureSVC(features, **options, rows_in_memory=100, checkpoint=kept)
    with Client(scheduler_file=str(note), timeout=30) as client:
        client._timeout = 1  # do not wait for a scheduler that will not come back
        backend = joblib.parallel_config("dask", client=client)
        with (
            backend,
            pytest.raises(
                ClusterLostError,
                match=r"scheduler tcp.* was lost.*\d passes are kept in .*fit.npz",
            ),
        ):
            svc.fit(X, Y)
    whole = FeatureSVC(features, **options).fit(X, Y)
    again = svc.fit(X, Y)
    assert again.n_passes_ < whole.n_passes_
    assert_same_machine(whole, again)
