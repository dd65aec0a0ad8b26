# SPDX-License-Identifier: BSD-3-Clause
"""Paths of a search: split, in parallel, from a checkpoint, interrupted."""

import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import f1_score
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import leaveout as lo
from leaveout import SVC, LooSearchCV
from leaveout.adapt._unwrap import unwrap
from leaveout.exceptions import PreprocessingWarning
from leaveout.tune._paths import set_candidate, split_paths

GRID = {"C": [0.5, 5.0, 50.0], "gamma": [0.1, 1.0]}


@pytest.fixture
def data():
    return make_moons(40, noise=0.35, random_state=3)


def split(grid, estimator):
    candidates = list(ParameterGrid(grid))
    models = [unwrap(set_candidate(estimator, own)) for own in candidates]
    return candidates, split_paths(candidates, models)


def test_every_candidate_is_on_one_path():
    scalers = [StandardScaler(), MinMaxScaler()]
    weights = [{0: 1, 1: 2}, "balanced", None]  # no hash, a text, nothing
    candidates, paths = split(
        [
            {
                "svc__C": np.logspace(0, 2, 3),
                "scale": scalers,
                "svc__class_weight": weights,
            },
            {"svc__kernel": ["linear"], "svc__C": [1, 10]},
        ],
        Pipeline([("scale", StandardScaler()), ("svc", SVC())]),
    )
    assert [path.number for path in paths] == list(range(2 * 3 + 1))
    positions = [position for path in paths for position in path.positions]
    assert sorted(positions) == list(range(len(candidates)))
    for path in paths:
        assert "svc__C" not in path.params
        for position, C in zip(path.positions, path.Cs, strict=True):
            assert candidates[position] == {**path.params, "svc__C": C}


def test_a_grid_without_c_has_one_path_per_candidate():
    _, paths = split({"gamma": [0.1, 0.2]}, SVC(C=3.0))
    assert [path.Cs for path in paths] == [(3.0,), (3.0,)]
    assert len(split({}, SVC())[1]) == 1


def test_processes_threads_and_one_give_the_same(data):
    one = LooSearchCV(SVC(), GRID).fit(*data).cv_results_
    for gammas, same in ((GRID["gamma"], slice(None)), ([1.0], slice(1, None, 2))):
        search = LooSearchCV(SVC(), {**GRID, "gamma": gammas}, n_jobs=2).fit(*data)
        scores = search.cv_results_["mean_test_score"]
        assert (scores == one["mean_test_score"][same]).all()


@pytest.mark.filterwarnings("ignore::leaveout.AntiLearningWarning")  # noise
def test_large_data_reach_other_processes_read_only(rng):
    X = rng.normal(size=(60, 2500))  # beyond 1 MB joblib maps the file
    y = rng.integers(0, 2, 60)
    grid = {"C": [1.0], "gamma": [1e-4, 1e-3]}
    one, two = (LooSearchCV(SVC(), grid, n_jobs=n).fit(X, y) for n in (1, 2))
    values = [search.best_loo_result_.decision_values for search in (one, two)]
    assert (values[0] == values[1]).all()


def test_warnings_of_workers_come_once_and_name_the_line_of_the_user(data):
    pipeline = make_pipeline(StandardScaler(), SVC(gamma=0.5))
    grid = {"svc__C": [1, 10], "svc__gamma": [0.1, 1.0]}
    for n_jobs in (1, 2):
        with pytest.warns(PreprocessingWarning, match="'standardscaler'") as caught:
            LooSearchCV(pipeline, grid, n_jobs=n_jobs).fit(*data)
        assert len(caught) == 1
        assert caught[0].filename == __file__


def test_progress_goes_to_stderr(data, capsys):
    LooSearchCV(SVC(), GRID, verbose=1).fit(*data)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Paths: 2 of 2" in captured.err
    LooSearchCV(SVC(), GRID, verbose=2).fit(*data)
    captured = capsys.readouterr().err.splitlines()
    assert captured[0].startswith("Path 1 of 2: {'gamma': 0.1}, 3 C, lowest error 0.")
    LooSearchCV(SVC(), GRID).fit(*data)
    assert capsys.readouterr().err == ""


def test_a_second_run_takes_all_from_the_checkpoint(data, tmp_path, capsys):
    path = tmp_path / "run.db"
    X, y = data
    labels = np.array(["no", "yes"], dtype=object)[y]
    pipeline = make_pipeline(StandardScaler(), SVC())
    grid = {f"svc__{name}": values for name, values in GRID.items()}
    with pytest.warns(PreprocessingWarning):
        first = LooSearchCV(pipeline, grid, checkpoint=path).fit(X, labels)
    second = LooSearchCV(pipeline, grid, checkpoint=path, verbose=1, scoring="f1_macro")
    with pytest.warns(PreprocessingWarning, match="fitted once"):  # given again
        second.fit(X, labels)
    assert capsys.readouterr().err == "Resumed: 2 of 2 paths are done.\n"
    assert second.best_loo_result_.predictions.dtype == labels.dtype
    f1 = f1_score(labels, second.best_loo_result_.predictions, average="macro")
    assert second.best_score_ == f1
    for key in ("n_ambiguous", "anti_learning", "mean_fit_time"):
        assert (first.cv_results_[key] == second.cv_results_[key]).all()


def test_a_checkpoint_of_another_run_says_what_differs(data, tmp_path):
    X, y = data
    path = tmp_path / "run.db"
    search = LooSearchCV(SVC(), GRID, checkpoint=path).fit(X, y)
    for change, what in (
        (lambda s: s.fit(X + 1e-12, y), "data"),
        (lambda s: s.fit(X, 1 - y), "data"),
        (lambda s: s.fit(X, y, sample_weight=np.full(40, 2.0)), "data"),
        (lambda s: s.fit(X, y, groups=np.arange(40) // 2), "data"),
        (lambda s: s.set_params(estimator__tol=1e-8).fit(X, y), "estimator"),
        (lambda s: s.set_params(param_grid={"C": [1.0]}).fit(X, y), "grid"),
        (lambda s: s.set_params(balanced="fold").fit(X, y), "estimator"),
    ):
        with pytest.raises(lo.CheckpointError, match=rf"differs: {what}\."):
            change(clone(search))


def test_failing_candidates(data):
    X, y = data
    grid = {"C": [-1.0, 1.0, 10.0], "gamma": [0.5, -3.0]}
    with pytest.warns(FitFailedWarning, match="4 of 6 candidates failed") as caught:
        search = LooSearchCV(SVC(), grid).fit(X, y)
    assert "C must be a finite number > 0; got -1.0" in str(caught[0].message)
    assert caught[0].filename == __file__
    scores = search.cv_results_["mean_test_score"]
    assert np.isnan(scores).tolist() == [True, True, False, True, False, True]
    good = LooSearchCV(SVC(), {"C": [1.0, 10.0], "gamma": [0.5]}).fit(X, y)
    assert search.best_params_ == good.best_params_
    assert search.cv_results_["n_ambiguous"].mask.sum() == 4
    with pytest.warns(FitFailedWarning):  # a good score does not make it the best
        search = LooSearchCV(SVC(), grid, error_score=2.0).fit(X, y)
    assert search.best_params_ == good.best_params_
    with pytest.raises(ValueError, match="C must be a finite number > 0"):
        LooSearchCV(SVC(), grid, error_score="raise").fit(X, y)
    with pytest.raises(ValueError, match="C must be a finite number > 0; got -1"):
        LooSearchCV(SVC(), {"C": [-1.0]}).fit(X, y)
    with pytest.raises(ValueError, match=r"All 2 candidates failed:\n  1 with"):
        LooSearchCV(SVC(), {"C": [-1.0, -2.0]}).fit(X, y)


def test_failed_candidates_are_not_kept(data, tmp_path):
    path = tmp_path / "run.db"
    grid = [{"C": [1.0, 2.0]}, {"C": [-1.0], "gamma": [0.1]}]
    for _ in range(2):
        with pytest.warns(FitFailedWarning, match="1 of 3 candidates"):
            LooSearchCV(SVC(gamma=0.5), grid, checkpoint=path).fit(*data)


LONG_SEARCH = """
import signal, sys
import numpy as np
from leaveout import SVC, LooSearchCV
from leaveout.data import make_mixture

# pytest may have been started with it ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
X, y = make_mixture(300, 3, random_state=0)
LooSearchCV(SVC(), {"gamma": np.logspace(-2, 1, 200)}, checkpoint=sys.argv[1],
            n_jobs=2, verbose=2).fit(X, y)
"""


def test_ctrl_c_leaves_a_line_and_the_finished_paths(tmp_path):
    path = tmp_path / "run.db"
    running = subprocess.Popen(
        [sys.executable, "-c", LONG_SEARCH, str(path)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not running.stderr.readline().startswith("Path 4 of 200"):
        assert running.poll() is None
    os.killpg(running.pid, signal.SIGINT)  # a terminal signals the workers, too
    _, err = running.communicate()
    assert running.returncode == -signal.SIGINT
    assert err.splitlines()[-1] == "KeyboardInterrupt"
    line = rf"Interrupted: (\d+) of 200 paths are kept in {path}; run again to go on."
    found = re.search(line, err)  # workers may complain before
    assert found is not None
    assert 3 <= int(found[1]) < 200
