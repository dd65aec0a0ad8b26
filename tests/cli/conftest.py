# SPDX-License-Identifier: BSD-3-Clause
import json

import numpy as np
import pandas as pd
import pytest
from datasets import make_class_blobs
from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict
from sklearn.preprocessing import scale
from sklearn.svm import SVC
from typer.testing import CliRunner

from leaveout.cli._app import app


@pytest.fixture
def run():
    """Run a command in this process: ``run("select", path, "--json")``."""

    def invoke(*arguments, code=0):
        result = CliRunner().invoke(app, [str(a) for a in arguments])
        assert result.exit_code == code, result.stderr
        return result

    return invoke


@pytest.fixture
def ask(run):
    """Run a command and return the JSON that it prints."""
    return lambda *arguments: json.loads(run(*arguments, "--json").stdout)


@pytest.fixture
def frame():
    """24 samples: two features of different scale, a text, an id, red and blue."""
    X, y = make_class_blobs(24, n_classes=2, separation=1.5, random_state=0)
    return pd.DataFrame(
        {
            "name": [f"s{i}" for i in range(24)],
            "a": X[:, 0],
            "b": 1000 * X[:, 1],
            "site": np.where(np.arange(24) % 3, "x", "y"),
            "pair": np.arange(24) // 2,
            "colour": np.where(y, "red", "blue"),
        }
    )


@pytest.fixture
def left_out_margins(frame):
    """Margins by scikit-learn's refits on a and b."""

    def refit(C, gamma, *, grouped=False):
        values = cross_val_predict(
            SVC(C=C, gamma=gamma, tol=1e-12),
            scale(frame[["a", "b"]]),
            frame["colour"],
            groups=frame["pair"] if grouped else frame["name"],
            cv=LeaveOneGroupOut(),
            method="decision_function",
        )
        return np.where(frame["colour"] == "red", values, -values)

    return refit


@pytest.fixture
def table(tmp_path, frame):
    """The numbers and classes of ``frame`` as a CSV file."""
    path = tmp_path / "points.csv"
    frame[["a", "b", "colour"]].to_csv(path, index=False)
    return path


@pytest.fixture
def full_table(tmp_path, frame):
    """All of ``frame`` as a file of semicolons and decimal commas."""
    path = tmp_path / "full.csv"
    frame.to_csv(path, index=False, sep=";", decimal=",")
    return path


@pytest.fixture
def model(run, full_table, tmp_path):
    """A model file from ``full_table``."""
    path = tmp_path / "model.skops"
    roles = ("--target", "colour", "--id", "name", "--drop", "pair")
    result = run("select", full_table, *roles, "--grid", "C=1", "--save", path)
    assert f"Model written to {path}" in result.stdout
    return path
