# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import pandas as pd
import pytest
from datasets import make_class_blobs
from typer.testing import CliRunner

from leaveout.cli._app import app


@pytest.fixture
def run():
    """Run a command in this process: ``run("select", path, "--json")``."""

    def invoke(*arguments):
        return CliRunner().invoke(app, [str(a) for a in arguments])

    return invoke


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
