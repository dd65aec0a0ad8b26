# SPDX-License-Identifier: BSD-3-Clause
import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from typer.testing import CliRunner

from leaveout.cli._app import app
from leaveout.data import make_class_blobs, read_csv
from leaveout.select import default_Cs, default_gammas


def invoke(*arguments):
    return CliRunner().invoke(app, ["select", *map(str, arguments)])


@pytest.fixture
def table(tmp_path):
    """A small CSV file: two features of different scale, classes "red" and "blue"."""
    X, y = make_class_blobs(24, n_classes=2, separation=1.5, random_state=0)
    rows = [
        f"{a},{1000 * b},{'red' if label else 'blue'}"
        for (a, b), label in zip(X, y, strict=True)
    ]
    path = tmp_path / "points.csv"
    path.write_text("\n".join(["a,b,colour", *rows]) + "\n")
    return path


def test_json_agrees_with_refits_by_scikit_learn(table):
    result = invoke(table, "--target", "colour", "--json")
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    dataset = read_csv(table, "colour")
    X = StandardScaler().fit_transform(dataset.X)
    assert report["Cs"] == default_Cs().tolist()
    assert report["gammas"] == default_gammas(X).tolist()
    # One cell is enough here: that all agree is the business of tests/loo.
    model = SVC(C=report["Cs"][2], gamma=report["gammas"][2], tol=1e-10)
    predictions = cross_val_predict(model, X, dataset.y, cv=LeaveOneOut())
    assert report["errors"][2][2] == np.mean(predictions != dataset.y)
    assert report["best"]["error"] == np.min(report["errors"])
    assert report["majority_error"] == 0.5
    assert report["class_counts"] == {"blue": 12, "red": 12}


def test_text_on_stdout_alone(table):
    result = invoke(table, "--target", "colour")
    assert result.exit_code == 0
    assert "points.csv: 24 samples, 2 features" in result.stdout
    assert "standardised once on all rows" in result.stdout
    assert result.stdout.count("*") == 1
    assert "Chosen: SVC(kernel='rbf', C=" in result.stdout
    assert "Leaving one out" not in result.stdout


def test_linear_kernel_has_no_gamma(table):
    result = invoke(table, "--target", "colour", "--kernel", "linear", "--json")
    report = json.loads(result.stdout)
    assert report["gammas"] is None
    assert report["best"]["gamma"] is None
    assert np.shape(report["errors"]) == (len(report["Cs"]), 1)


def test_two_jobs_give_the_same(table):
    reports = [
        json.loads(invoke(table, "--target", "colour", "--json", *extra).stdout)
        for extra in ([], ["--n-jobs", "2"])
    ]
    for report in reports:
        del report["seconds"]
    assert reports[0] == reports[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.csv", "--target", "y"], "No file 'nothing.csv'."),
        (["{table}"], "Name the column of classes: --target COL."),
        (["{table}", "--target", "color"], "Did you mean 'colour'?"),
        (["{table}", "--target", "a"], "'a' has 24 different values with decimals"),
        (["--n-jobs", "0"], "--n-jobs must be a positive number, or -1"),
        (["--target", "y"], "--target names a column of DATA, but no file is given."),
    ],
)
def test_mistake_ends_with_its_message_alone(table, arguments, message):
    result = invoke(*(argument.format(table=table) for argument in arguments))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_as_a_program(table):
    command = [sys.executable, "-m", "leaveout.cli", "select", table, "--target"]
    done = subprocess.run(
        [*command, "colour", "--json"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_samples"] == 24
    failed = subprocess.run([*command, "wrong"], capture_output=True, text=True)
    assert failed.returncode == 2
    assert "Traceback" not in failed.stderr
