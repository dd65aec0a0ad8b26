# SPDX-License-Identifier: BSD-3-Clause
"""Two worker processes of dask: what is computed there is what is computed here."""

import os
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError
from contextlib import closing

import dask
import dask.array as da
import joblib
import numpy as np
import pyarrow as pa
import pytest
from dask.distributed import Client, LocalCluster, wait
from faults import digest
from on_workers import FatalKernel, TracingKernel, rbf, sums_of
from pyarrow import parquet

import leaveout as lo
from leaveout.data import make_mixture
from leaveout.large._sources import open_rows
from leaveout.run._parallel import count_workers, map_parallel, runs_here

X, Y = make_mixture(60, 4, random_state=0)
CS = [0.1, 1.0, 10.0]


@pytest.fixture(scope="module")
def client():
    """Two processes with one thread each; Dask gives up one that is long to return."""
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "600s"}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def search(kernels, **options):
    grid = {"kernel": kernels, "C": CS}
    return lo.LooSearchCV(lo.SVC(), grid, refit=False, **options).fit(X, Y)


def numbers(found):
    """Every number of a search but times; the kernels of two runs differ."""
    table = found.cv_results_
    names = [k for k in sorted(table) if "time" not in k and "param" not in k]
    result = found.best_loo_result_
    return [*(np.asarray(table[k]) for k in names), result.decision_values]


def assert_equal_searches(one, other):
    for here, there in zip(numbers(one), numbers(other), strict=True):
        np.testing.assert_array_equal(here, there)


def test_cells_run_on_the_workers_and_give_the_same_numbers(client, tmp_path):
    kernels = [TracingKernel(str(tmp_path)) for _ in range(4)]
    with joblib.parallel_config("dask"):
        assert not runs_here()
        assert count_workers(None) == 2
        there = search(kernels)
    pids = {int(path.name) for path in tmp_path.iterdir()}
    assert pids <= set(client.run(os.getpid).values())
    assert_equal_searches(search([rbf] * 4), there)


def test_checkpoint_is_written_here(client, tmp_path):
    path = tmp_path / "run.db"
    with joblib.parallel_config("dask"):
        there = lo.LooSearchCV(lo.SVC(), {"gamma": [0.1, 0.3]}, checkpoint=path)
        there.fit(X, Y)
    again = lo.LooSearchCV(lo.SVC(), {"gamma": [0.1, 0.3]}, checkpoint=path).fit(X, Y)
    assert digest(there) == digest(again)


def test_killed_worker_changes_nothing(client, tmp_path):
    kernels = [FatalKernel(str(tmp_path), os.getpid()) for _ in range(4)]
    with joblib.parallel_config("dask"):
        there = search(kernels)
    assert (tmp_path / "killed").exists()
    assert_equal_searches(search([rbf] * 4), there)


def test_other_loops_on_the_cluster(client):
    svc = lo.SVC(gamma=0.2)
    here = lo.loo_permutation_test(svc, X, Y, n_permutations=20, random_state=0)
    inner = lo.LooSearchCV(svc, {"C": CS})
    honest = lo.honest_loo(inner, X[:20], Y[:20], verbose=0)
    with joblib.parallel_config("dask"):
        there = lo.loo_permutation_test(svc, X, Y, n_permutations=20, random_state=0)
        far = lo.honest_loo(inner, X[:20], Y[:20], verbose=0)
    np.testing.assert_array_equal(here.permutation_errors, there.permutation_errors)
    np.testing.assert_array_equal(honest.predictions, far.predictions)


@pytest.mark.parametrize("kind", ["array", "memmap", "parquet", "dask"])
def test_workers_read_their_own_parts(client, tmp_path, kind):
    rng = np.random.default_rng(0)
    table, labels = rng.normal(size=(1000, 3)), rng.integers(0, 2, 1000)
    source, y = table, labels
    if kind == "memmap":
        np.save(tmp_path / "x.npy", table)
        source = tmp_path / "x.npy"
    if kind == "parquet":
        columns = {f"x{j}": table[:, j] for j in range(3)}
        source, y = tmp_path / "x.parquet", "y"
        parquet.write_table(
            pa.table({**columns, "y": labels}), source, row_group_size=300
        )
    if kind == "dask":
        source = da.from_array(table, chunks=(300, 3))
    rows = open_rows(source, y, rows_at_once=130)
    here = [sums_of(part) for part in rows.parts]
    futures = client.map(sums_of, rows.parts, pure=False)
    wait(futures, timeout=100)
    there = client.gather(futures)
    for one, other in zip(here, there, strict=True):
        for (start, gram, n), (far_start, far_gram, far_n) in zip(
            one, other, strict=True
        ):
            assert (start, n) == (far_start, far_n)
            # In another process BLAS may round differently.
            np.testing.assert_allclose(gram, far_gram, rtol=1e-13)
    total = sum(gram for part in there for _, gram, _ in part)
    np.testing.assert_allclose(total, table.T @ table, rtol=1e-12)


# The scheduler is lost


def test_cancelled_work_is_a_lost_cluster():
    def lose(i):
        raise CancelledError("scheduler-connection-lost.")

    with (
        joblib.parallel_config("threading"),
        pytest.raises(lo.ClusterLostError, match=r"connection-lost\. Start it and run"),
    ):
        list(map_parallel(lose, [(1,), (2,)], n_jobs=2))


def start_cluster(folder):
    """Start scheduler and workers as one does on several machines."""
    file = str(folder / "scheduler.json")

    def start(*words):
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *words, "--scheduler-file", file],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
        )

    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0")
    workers = start("worker", "--nworkers", "2", "--nthreads", "1")
    return scheduler, workers, file


def count_cells(path):
    with closing(sqlite3.connect(path, timeout=10)) as database:
        try:
            return database.execute("SELECT COUNT(*) FROM cells").fetchone()[0]
        except sqlite3.OperationalError:  # not written yet
            return 0


@pytest.mark.nightly
def test_killed_scheduler_leaves_a_checkpoint_to_go_on_from(tmp_path, capsys):
    path = tmp_path / "run.db"
    grid = {"gamma": np.logspace(-3, -1, 200)}
    table, labels = make_mixture(200, 10, random_state=0)

    def make(checkpoint):
        return lo.LooSearchCV(lo.SVC(), grid, checkpoint=checkpoint)

    scheduler, workers, file = start_cluster(tmp_path)

    def kill_when_some_are_kept():
        while not path.exists() or count_cells(path) < 5:
            time.sleep(0.01)
        scheduler.kill()

    killer = threading.Thread(target=kill_when_some_are_kept, daemon=True)
    try:
        with Client(scheduler_file=file, timeout=60) as client:
            client.wait_for_workers(2, timeout=60)
            killer.start()
            with (
                joblib.parallel_config("dask"),
                pytest.raises(lo.ClusterLostError, match="cluster was lost"),
            ):
                make(path).fit(table, labels)
    finally:
        for process in (workers, scheduler):
            process.terminate()
            process.wait(30)
    assert "of 200 paths are kept in" in capsys.readouterr().err
    resumed = make(path).set_params(verbose=1).fit(table, labels)
    assert "Resumed: " in capsys.readouterr().err
    assert digest(resumed) == digest(make(None).fit(table, labels))


# Ray: its backend gives no result before it has all. The rounds are tested without it.


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


@pytest.mark.nightly
def test_ray():
    ray = pytest.importorskip("ray")
    from ray.util.joblib import register_ray

    grid = {"C": CS, "gamma": [0.05, 0.2, 1.0]}
    here = lo.LooSearchCV(lo.SVC(), grid).fit(X, Y)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        register_ray()
        with joblib.parallel_config("ray"):
            assert not runs_here()
            there = lo.LooSearchCV(lo.SVC(), grid, n_jobs=-1).fit(X, Y)
    finally:
        ray.shutdown()
    assert digest(here) == digest(there)
