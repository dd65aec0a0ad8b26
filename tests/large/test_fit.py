# SPDX-License-Identifier: BSD-3-Clause
"""An interrupted FeatureSVC resumes from its checkpoint."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest
from on_workers import Trouble, TroubledFeatures, assert_same_model
from sklearn.kernel_approximation import RBFSampler

from leaveout import CheckpointError, FeatureSVC
from leaveout.data import make_mixture

X, Y = make_mixture(4000, 5, random_state=0)
COMMON = {"n_components": 20, "C": [0.001, 0.01], "random_state": 0}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished fit and its file."""
    path = tmp_path_factory.mktemp("finished") / "fit.db"
    return FeatureSVC(**COMMON, checkpoint=path).fit(X, Y), path


@pytest.mark.parametrize("calls", [4, 30])
def test_interrupted_fit_resumes(tmp_path, capsys, calls):
    """Each pass calls transform four times."""
    kept = tmp_path / "fit.db"
    features = TroubledFeatures(Trouble(str(tmp_path), calls, victim=0, spared=None))
    options = COMMON | {"rows_in_memory": 100, "rows_at_once": 1000}
    svc = FeatureSVC(features, **options, checkpoint=kept)
    with pytest.raises(KeyboardInterrupt):
        svc.fit(X, Y)
    message = capsys.readouterr().err
    began = kept.exists()
    assert began == (f"passes are saved in {kept}; run again" in message)
    svc.fit(X, Y)
    finished = FeatureSVC(features, **options).fit(X, Y)
    assert_same_model(finished, svc)
    assert (svc.n_passes_ < finished.n_passes_) == began


def test_finished_fit_is_not_repeated(finished):
    """Not even if parameters differ that do not change the classifier."""
    first, path = finished
    again = FeatureSVC(**COMMON, checkpoint=path, rows_at_once=999).fit(X, Y)
    assert_same_model(first, again)
    assert again.n_passes_ < first.n_passes_  # one last scan, and the labels


CHANGED = X + 1e-9 * (np.arange(4000) == 77)[:, None]
FEW = (X[:2], Y[:2])  # enough only to compare parameters


@pytest.mark.parametrize(
    ("change", "data", "differs"),
    [
        ({"C": [0.001, 0.02]}, FEW, "parameters"),
        ({"class_weight": "balanced"}, FEW, "parameters"),
        ({"features": "nystroem"}, FEW, "parameters"),
        ({"random_state": 1}, FEW, r"seed \(\d+ there, \d+ here\)"),
        ({}, (CHANGED, Y), "data"),
        ({}, (X, 1 - Y), "data"),
    ],
)
def test_other_fit_is_refused(finished, change, data, differs):
    other = FeatureSVC(**{**COMMON, **change}, checkpoint=finished[1])
    with pytest.raises(CheckpointError, match=f"another run; what differs: {differs}"):
        other.fit(*data)


@pytest.mark.parametrize("older", [None, "multiples and windows"])
def test_checkpoint_of_older_code_is_refused(tmp_path, older):
    """Older code stored other arrays; the oldest did not name its solver."""
    path = tmp_path / "fit.db"
    svc = FeatureSVC(**COMMON, checkpoint=path).fit(X, Y)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DELETE FROM meta WHERE name = 'solver'")
        if older:
            values = ("solver", older)
            database.execute("INSERT INTO meta VALUES (?, ?)", values)
    with pytest.raises(CheckpointError, match="what differs: solver"):
        svc.fit(X, Y)


def test_seed_of_the_file_is_used_if_none_is_given(tmp_path):
    free = {**COMMON, "random_state": None, "checkpoint": tmp_path / "fit.db"}
    first, again = FeatureSVC(**free).fit(X, Y), FeatureSVC(**free).fit(X, Y)
    assert_same_model(first, again)


def test_features_drawn_again_are_refused(tmp_path):
    options = {"C": COMMON["C"], "random_state": 0, "checkpoint": tmp_path / "fit.db"}
    svc = FeatureSVC(RBFSampler(n_components=20), **options).fit(X, Y)
    with pytest.raises(CheckpointError, match="features, which must have a random_st"):
        svc.fit(X, Y)
