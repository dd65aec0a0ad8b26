# SPDX-License-Identifier: BSD-3-Clause
"""Two processes of dask: the numbers of one process, also if a worker dies."""

import os
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import joblib
import numpy as np
import pyarrow as pa
import pytest
from dask.distributed import Client, LocalCluster
from faults import digest
from on_workers import FatalKernel, TracingKernel, TroubledFeatures, rbf
from pyarrow import parquet

import leaveout as lo
from leaveout.data import make_mixture
from leaveout.run._parallel import count_workers, runs_here

pytestmark = pytest.mark.nightly
CS = [0.1, 1.0, 10.0]
FEW_X, FEW_Y = make_mixture(60, 4, random_state=0)
N_ROWS = 8000
X, Y = make_mixture(N_ROWS, 5, random_state=0)
NAMES = [f"x{j}" for j in range(5)]
COMMON = {"n_components": 20, "C": [0.001, 0.01], "random_state": 0}


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


@contextmanager
def command_line_cluster(folder):
    """Start scheduler and workers as one does on several machines."""
    note = folder / "scheduler.json"
    paths = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
    commands = [
        ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"],
        ["worker", "--nworkers", "2", "--nthreads", "1"],
    ]
    processes = []
    try:
        for words in commands:
            command = [sys.executable, "-m", "dask", *words]
            processes.append(
                subprocess.Popen(
                    [*command, "--scheduler-file", str(note)], cwd=folder,
                    env={**os.environ, "PYTHONPATH": paths}, stderr=subprocess.DEVNULL,
                )
            )  # fmt: skip
            while not note.exists():
                assert processes[0].poll() is None
                time.sleep(0.05)
        yield str(note), processes[0]
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(30)


# Searches


def search(kernels, **options):
    grid = {"kernel": kernels, "C": CS}
    found = lo.LooSearchCV(lo.SVC(), grid, refit=False, **options)
    return found.fit(FEW_X, FEW_Y)


def assert_equal_searches(one, other):
    """Compare every number but times; the kernels of two runs differ."""
    names = [k for k in one.cv_results_ if "time" not in k and "param" not in k]
    for name in names:
        np.testing.assert_array_equal(one.cv_results_[name], other.cv_results_[name])
    np.testing.assert_array_equal(
        one.best_loo_result_.decision_values, other.best_loo_result_.decision_values
    )


@pytest.mark.parametrize("n_kernels", [1, 4])
def test_candidates_run_on_the_workers_and_give_the_same(client, tmp_path, n_kernels):
    with joblib.parallel_config("dask"):
        assert not runs_here()
        assert count_workers(None) == 2
        there = search([TracingKernel(str(tmp_path)) for _ in range(n_kernels)])
    pids = {int(path.name) for path in tmp_path.iterdir()}
    assert pids <= set(client.run(os.getpid).values())
    assert_equal_searches(search([rbf] * n_kernels), there)


def test_killed_worker_does_not_change_a_search(client, tmp_path):
    kernels = [FatalKernel(str(tmp_path), os.getpid()) for _ in range(4)]
    with joblib.parallel_config("dask"):
        there = search(kernels)
    assert (tmp_path / "killed").exists()
    assert_equal_searches(search([rbf] * 4), there)


def test_search_with_checkpoint_and_last_fit(client, tmp_path):
    grid, path = {"C": CS, "gamma": [0.05, 0.2, 1.0]}, tmp_path / "run.db"
    here = lo.LooSearchCV(lo.SVC(), grid).fit(FEW_X, FEW_Y)
    with joblib.parallel_config("dask"):
        there = lo.LooSearchCV(lo.SVC(), grid, checkpoint=path).fit(FEW_X, FEW_Y)
    again = lo.LooSearchCV(lo.SVC(), grid, checkpoint=path).fit(FEW_X, FEW_Y)
    assert digest(here) == digest(there) == digest(again)


def test_other_loops_on_the_cluster(client):
    svc = lo.SVC(gamma=0.2)
    inner = lo.LooSearchCV(svc, {"C": CS})

    def numbers():
        test = lo.loo_permutation_test(
            svc, FEW_X, FEW_Y, n_permutations=20, random_state=0
        )
        honest = lo.honest_loo(inner, FEW_X[:20], FEW_Y[:20], verbose=0)
        return [*test.permutation_errors, *honest.predictions]

    here = numbers()
    with joblib.parallel_config("dask"):
        there = numbers()
    np.testing.assert_array_equal(here, there)


def count_cells(path):
    with closing(sqlite3.connect(path, timeout=10)) as database:
        try:
            return database.execute("SELECT COUNT(*) FROM cells").fetchone()[0]
        except sqlite3.OperationalError:  # not written yet
            return 0


def test_killed_scheduler_leaves_a_checkpoint_to_go_on_from(tmp_path, capsys):
    path = tmp_path / "run.db"
    table, labels = make_mixture(200, 10, random_state=0)
    grid = {"gamma": np.logspace(-3, -1, 200)}

    def kill_when_some_are_kept(scheduler):
        while not path.exists() or count_cells(path) < 5:
            time.sleep(0.01)
        scheduler.kill()

    with command_line_cluster(tmp_path) as (file, scheduler):
        killer = threading.Thread(
            target=kill_when_some_are_kept, args=[scheduler], daemon=True
        )
        with Client(scheduler_file=file, timeout=60) as client:
            client.wait_for_workers(2, timeout=60)
            killer.start()
            with (
                joblib.parallel_config("dask"),
                pytest.raises(lo.ClusterLostError, match="cluster was lost"),
            ):
                lo.LooSearchCV(lo.SVC(), grid, checkpoint=path).fit(table, labels)
    assert "are kept in" in capsys.readouterr().err
    resumed = lo.LooSearchCV(lo.SVC(), grid, checkpoint=path, verbose=1)
    resumed.fit(table, labels)
    assert "Resumed: " in capsys.readouterr().err
    assert digest(resumed) == digest(lo.LooSearchCV(lo.SVC(), grid).fit(table, labels))


def test_ray():
    ray = pytest.importorskip("ray")
    from ray.util.joblib import register_ray

    grid = {"C": CS, "gamma": [0.05, 0.2, 1.0]}
    here = lo.LooSearchCV(lo.SVC(), grid).fit(FEW_X, FEW_Y)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        register_ray()
        with joblib.parallel_config("ray"):
            assert not runs_here()
            there = lo.LooSearchCV(lo.SVC(), grid, n_jobs=-1).fit(FEW_X, FEW_Y)
    finally:
        ray.shutdown()
    assert digest(here) == digest(there)


# FeatureSVC


def dask_rows(chunk=700):
    return da.from_array(X, chunks=(chunk, 5)), da.from_array(Y, chunks=chunk)


def assert_same_model(here, there):
    """Equal to 1e-10 of the largest entry; labels and errors are equal."""
    for name in ("coef_", "intercept_", "objective_"):
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
    return dd.read_parquet(folder, split_row_groups=False)


@pytest.fixture(scope="module")
def here():
    """The model of one process."""
    return lo.FeatureSVC(**COMMON).fit(X, Y)


@pytest.mark.filterwarnings("ignore:The inplace keyword")
@pytest.mark.parametrize("rows_in_memory", [N_ROWS, 100])
@pytest.mark.parametrize("kind", ["array", "Parquet"])
def test_workers_give_the_same_model(client, here, tmp_path, kind, rows_in_memory):
    source, y = dask_rows()
    if kind == "Parquet":
        source, y = write_parquet(tmp_path, X, Y), "y"
    svc = lo.FeatureSVC(**COMMON, rows_at_once=700, rows_in_memory=rows_in_memory)
    there = svc.fit(source, y)
    assert_same_model(here, there)
    assert there.n_passes_ == here.n_passes_


def test_arrays_stay_here(client, here):
    assert_same_model(here, lo.FeatureSVC(**COMMON).fit(X, Y))


def test_fit_inside_of_a_task(client, here):
    """A task that waits for others does not keep its thread from them."""

    def fit_there():
        return lo.FeatureSVC(**COMMON).fit(*dask_rows(3000))

    assert_same_model(here, client.submit(fit_there, pure=False).result(timeout=120))


@pytest.mark.parametrize("rows_in_memory", [N_ROWS, 100])
def test_killed_worker_does_not_change_a_fit(client, tmp_path, rows_in_memory):
    """Features that were kept are lost with it, and so are sums of the pass."""
    after = 5 if rows_in_memory == N_ROWS else 40
    features = TroubledFeatures(str(tmp_path), after, spared=os.getpid())
    options = {"C": COMMON["C"], "random_state": 0, "rows_at_once": 700}
    options |= {"rows_in_memory": rows_in_memory}
    before = set(client.run(os.getpid).values())
    there = lo.FeatureSVC(features, **options).fit(*dask_rows())
    assert (tmp_path / "trouble").exists()
    client.wait_for_workers(2, timeout=300)
    assert set(client.run(os.getpid).values()) != before
    assert_same_model(lo.FeatureSVC(features, **options).fit(X, Y), there)


@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_missing_value_is_named(client, tmp_path):
    table = X.copy()
    table[4000, 2] = np.nan
    frame = write_parquet(tmp_path, table, Y)
    match = r"NaN in row 1327 of partition 1 .*\(row 4000 of all.*column 'x2'"
    with pytest.raises(ValueError, match=match):
        lo.FeatureSVC(**COMMON).fit(frame, "y")


def test_row_of_other_width_is_named(client):
    ones = [dask.delayed(np.ones)((500, width)) for width in (5, 5, 4)]
    parts = [da.from_delayed(part, shape=(500, 5), dtype=float) for part in ones]
    match = r"X has 4 columns at row 0 of partition 2 .*\(row 1000 of all"
    with pytest.raises(ValueError, match=match):
        lo.FeatureSVC(**COMMON).fit(da.concatenate(parts), Y[:1500])


def test_lost_scheduler_is_reported_and_the_fit_goes_on(tmp_path):
    folder = tmp_path / "features"
    folder.mkdir()
    kept = tmp_path / "fit.npz"
    options = {"C": COMMON["C"], "random_state": 0, "rows_at_once": 1000}
    with command_line_cluster(tmp_path) as (note, scheduler):
        features = TroubledFeatures(
            str(folder), 30, victim=scheduler.pid, spared=os.getpid()
        )
        svc = lo.FeatureSVC(features, **options, rows_in_memory=100, checkpoint=kept)
        with Client(scheduler_file=note, timeout=30) as client:
            client._timeout = 1  # do not wait for a scheduler that will not come back
            with pytest.raises(
                lo.ClusterLostError,
                match=r"scheduler was lost.*\d passes are kept in .*fit.npz",
            ):
                svc.fit(*dask_rows(1000))
    whole = lo.FeatureSVC(features, **options).fit(X, Y)
    again = svc.fit(X, Y)
    assert again.n_passes_ < whole.n_passes_
    assert_same_model(whole, again)
