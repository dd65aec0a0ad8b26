# SPDX-License-Identifier: BSD-3-Clause
"""Paths of a search: parallel runs, checkpoints, interruptions and failures."""

import os
import re
import signal
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leaveout as lo
from leaveout import SVC, LooSearchCV
from leaveout.data import make_mixture
from leaveout.exceptions import SingletonClassWarning

if sys.platform != "win32":
    import forks

GRID = {"C": [0.5, 5.0, 50.0], "gamma": [0.1, 1.0]}


def test_two_processes_give_identical_results_and_warnings(rng):
    X = rng.normal(size=(60, 2500))  # above 1 MB joblib maps arrays read-only
    y = (X[:, :20].sum(axis=1) > 0).astype(int)
    y[0] = 2
    pipeline = make_pipeline(StandardScaler(), SVC())
    grid = {"svc__C": [100, 1000], "svc__gamma": [1e-5, 1e-4]}
    values = []
    for n_jobs in (1, 2):
        with pytest.warns(SingletonClassWarning, match="Class 2 has only 1") as caught:
            search = LooSearchCV(pipeline, grid, n_jobs=n_jobs).fit(X, y)
        assert [w.filename for w in caught] == [__file__]
        values.append(search.best_loo_result_.decision_values.tobytes())
    assert values[0] == values[1]


def test_second_run_uses_the_checkpoint(data, tmp_path, capsys):
    X, labels = data[0], np.array(["no", "yes"], dtype=object)[data[1]]
    pipeline = make_pipeline(StandardScaler(), SVC())
    grid = {f"svc__{name}": values for name, values in GRID.items()}
    first = LooSearchCV(pipeline, grid, checkpoint=tmp_path / "run.db", verbose=1)
    second = clone(first).set_params(scoring="f1_macro")
    labels[3] = "maybe"
    for search in (first, second):
        with pytest.warns(SingletonClassWarning, match="only 1 sample"):  # repeated
            search.fit(X, labels)
    shown = capsys.readouterr().err
    n_cells = len(first.cv_results_["params"])
    assert f"\r{n_cells} cells, paths: 1 of 1, " in shown
    assert shown.endswith("\nResumed with 1 of 1 paths done.\n")
    predictions = second.best_loo_result_.predictions
    assert predictions.dtype == labels.dtype
    assert second.best_score_ == f1_score(labels, predictions, average="macro")


def test_checkpoint_of_another_run_names_the_difference(data, tmp_path):
    X, y = data
    search = LooSearchCV(SVC(), GRID, checkpoint=tmp_path / "run.db").fit(X, y)
    for what, params, changed in (
        ("data", {}, {"X": X + 1e-12}),
        ("data", {}, {"y": 1 - y}),
        ("data", {}, {"sample_weight": np.full(30, 2.0)}),
        ("data", {}, {"groups": np.arange(30) // 2}),
        ("estimator", {"estimator__tol": 1e-8}, {}),
        ("grid", {"param_grid": {"C": [1.0]}}, {}),
        ("estimator", {"preprocessing": "frozen"}, {}),
        ("estimator", {"method_params": {"eps": 1e-3}}, {}),
    ):
        with pytest.raises(lo.CheckpointError, match=rf"differs: {what}\."):
            clone(search).set_params(**params).fit(**{"X": X, "y": y, **changed})


def test_failing_candidates(data, tmp_path):
    grid = {"C": [-1.0, 1.0, 10.0], "gamma": [0.5, -3.0]}
    search = LooSearchCV(SVC(), grid, checkpoint=tmp_path / "run.db")
    good = LooSearchCV(SVC(), {"C": [1.0, 10.0], "gamma": [0.5]}).fit(*data)
    # They are not stored, and a good error_score does not make one the best.
    for error_score in (np.nan, 2.0):
        search.set_params(error_score=error_score)
        with pytest.warns(FitFailedWarning, match="4 of 6 candidates failed") as caught:
            search.fit(*data)
        assert "C must be a finite number > 0; got -1.0" in str(caught[0].message)
        assert caught[0].filename == __file__
        scores = search.cv_results_["mean_test_score"][[0, 1, 3, 5]]
        np.testing.assert_array_equal(scores, error_score)
        assert search.cv_results_["n_ambiguous"].mask.sum() == 4
        assert search.best_params_ == good.best_params_
    for wrong, how, match in (
        (grid, {"error_score": "raise"}, "C must be a finite number > 0"),
        ({"C": [-1.0]}, {}, "C must be a finite number > 0; got -1"),
        ({"C": [-1.0, -2.0]}, {}, r"All 2 candidates failed:\n  1 with"),
    ):
        with pytest.raises(ValueError, match=match):
            LooSearchCV(SVC(), wrong, **how).fit(*data)


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.filterwarnings("ignore:This process")  # is multi-threaded
def test_ctrl_c_keeps_the_finished_paths(tmp_path):
    X, y = make_mixture(300, 3, random_state=0)
    path, grid = tmp_path / "run.db", {"gamma": np.logspace(-2, 1, 200)}
    how = {"checkpoint": path, "n_jobs": 2, "verbose": 2}
    running = forks.Fork(lambda: LooSearchCV(SVC(), grid, **how).fit(X, y), tmp_path)
    running.wait_for(running.err, "Path 4 of 200")
    os.killpg(running.pid, signal.SIGINT)  # a terminal signals the workers, too
    assert running.wait() == 1
    assert "\nKeyboardInterrupt\n" in running.read_err()
    line = rf"Interrupted: (\d+) of 200 paths are saved in {path}; run again to con"
    assert 3 <= int(re.search(line, running.read_err())[1]) < 200
    assert not running.has_workers()
