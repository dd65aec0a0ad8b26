# SPDX-License-Identifier: BSD-3-Clause
"""Two processes of dask: the numbers of one process, also if a worker dies."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import dask.array as da
import joblib
import pytest
from dask.distributed import Client
from faults import digest
from on_workers import Trouble, TroubledFeatures, TroubledKernel, assert_same_model

import leaveout as lo
from leaveout.data import make_mixture

pytestmark = pytest.mark.nightly
FEW_X, FEW_Y = make_mixture(60, 4, random_state=0)
N_ROWS = 8000
X, Y = make_mixture(N_ROWS, 5, random_state=0)
ROWS = (da.from_array(X, chunks=(700, 5)), da.from_array(Y, chunks=700))
COMMON = {"C": [0.001, 0.01], "random_state": 0, "rows_at_once": 700}


@contextmanager
def start_cluster(folder):
    """Start scheduler and workers as one does on several machines."""
    note = folder / "scheduler.json"
    paths = [str(Path(__file__).parents[1]), *filter(None, sys.path)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    processes = []
    try:
        for words in (
            ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"],
            ["worker", "--nworkers", "2", "--nthreads", "1", "--no-dashboard"],
        ):
            command = [sys.executable, "-m", "dask", *words, "--scheduler-file", note]
            options = {"cwd": folder, "env": env, "stderr": subprocess.DEVNULL}
            processes.append(subprocess.Popen(command, **options))
            while not note.exists():
                assert processes[0].poll() is None
                time.sleep(0.05)
        with Client(scheduler_file=str(note), timeout=60) as client:
            client.wait_for_workers(2, timeout=60)
            client._timeout = 1  # do not wait for a scheduler that will not come back
            yield client, processes[0].pid
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(30)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with start_cluster(tmp_path_factory.mktemp("cluster")) as (client, _):
        yield client


def search(grid, **options):
    return lo.LooSearchCV(lo.SVC(), grid, **options).fit(FEW_X, FEW_Y)


def test_killed_worker_does_not_change_a_search(client, tmp_path):
    grid = {"kernel": [TroubledKernel(k, Trouble(str(tmp_path))) for k in range(4)]}
    with joblib.parallel_config("dask"):
        there = search(grid, checkpoint=tmp_path / "run.db")
    assert (tmp_path / "trouble").exists()
    again = search(grid, checkpoint=tmp_path / "run.db")
    assert digest(there) == digest(search(grid)) == digest(again)


def test_killed_scheduler_leaves_a_checkpoint_to_go_on_from(tmp_path, capsys):
    path = tmp_path / "run.db"
    with start_cluster(tmp_path) as (_, scheduler):
        trouble = Trouble(str(tmp_path), 40, scheduler)
        grid = {"kernel": [TroubledKernel(k, trouble) for k in range(100)]}
        lost = pytest.raises(lo.ClusterLostError, match="cluster was lost")
        with joblib.parallel_config("dask"), lost:
            search(grid, checkpoint=path)
    assert "are saved in" in capsys.readouterr().err
    resumed = search(grid, checkpoint=path, verbose=1)
    assert "Resumed with " in capsys.readouterr().err
    assert digest(resumed) == digest(search(grid))


@pytest.mark.parametrize("rows_in_memory", [N_ROWS, 100])
def test_workers_give_the_same_model(client, rows_in_memory):
    """Inside of a task, which does not keep its thread from those it waits for."""
    svc = lo.FeatureSVC(**COMMON, n_components=20, rows_in_memory=rows_in_memory)
    there = client.submit(lambda: svc.fit(*ROWS), pure=False).result(120)
    here = svc.fit(X, Y)
    assert_same_model(here, there)
    assert there.n_passes_ == here.n_passes_


@pytest.mark.parametrize(("rows_in_memory", "after"), [(N_ROWS, 5), (100, 40)])
def test_killed_worker_does_not_change_a_fit(client, tmp_path, rows_in_memory, after):
    """Features that were kept are lost with it, and so are sums of the pass."""
    features = TroubledFeatures(Trouble(str(tmp_path), after))
    svc = lo.FeatureSVC(features, **COMMON, rows_in_memory=rows_in_memory)
    there = svc.fit(*ROWS)
    assert (tmp_path / "trouble").exists()
    assert_same_model(lo.FeatureSVC(features, **COMMON).fit(X, Y), there)


def test_lost_scheduler_is_reported_and_the_fit_goes_on(tmp_path):
    with start_cluster(tmp_path) as (_, scheduler):
        features = TroubledFeatures(Trouble(str(tmp_path), 30, scheduler))
        kept = {"rows_in_memory": 100, "checkpoint": tmp_path / "fit.db"}
        svc = lo.FeatureSVC(features, **COMMON, **kept)
        match = r"scheduler was lost.*\d passes are saved in .*fit.db"
        with pytest.raises(lo.ClusterLostError, match=match):
            svc.fit(*ROWS)
    whole = lo.FeatureSVC(features, **COMMON).fit(X, Y)
    again = svc.fit(X, Y)
    assert again.n_passes_ < whole.n_passes_
    assert_same_model(whole, again)
