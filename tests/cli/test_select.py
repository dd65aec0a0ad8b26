# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from datasets import make_class_blobs
from sklearn.model_selection import (
    LeaveOneGroupOut,
    LeaveOneOut,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import leaveout as lo
from leaveout.cli._command import warnings_told
from leaveout.cli._grid import parse_grid
from leaveout.tune._choice import default_Cs, default_gammas


def select_json(run, *arguments):
    result = run("select", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_json_agrees_with_refits_by_scikit_learn(run, table, frame):
    report = select_json(run, table, "--target", "colour")
    X = StandardScaler().fit_transform(frame[["a", "b"]])
    assert report["grid"]["C"] == default_Cs().tolist()
    assert np.allclose(report["grid"]["gamma"], default_gammas(X))
    # One cell is enough here: that all agree is the business of tests/loo.
    cell = report["cells"][13]
    model = SVC(C=cell["C"], gamma=cell["gamma"], tol=1e-10)
    predictions = cross_val_predict(model, X, frame["colour"], cv=LeaveOneOut())
    assert cell["error"] == pytest.approx(np.mean(predictions != frame["colour"]))
    assert report["best"]["error"] == min(c["error"] for c in report["cells"])
    assert report["majority_error"] == 0.5
    assert report["class_counts"] == {"blue": 12, "red": 12}


def test_groups_are_left_out_together(run, full_table, frame):
    report = select_json(
        run, full_table, "--target", "colour", "--groups", "pair", "--drop", "site",
        "--id", "name", "--grid", "C=1", "--grid", "gamma=0.5",
    )  # fmt: skip
    X = StandardScaler().fit_transform(frame[["a", "b"]])
    predictions = cross_val_predict(
        SVC(C=1, gamma=0.5, tol=1e-10),
        X,
        frame["colour"],
        cv=LeaveOneGroupOut(),
        groups=frame["pair"],
    )
    assert report["n_groups"] == 12
    assert report["n_features"] == 2
    assert report["best"]["error"] == np.mean(predictions != frame["colour"])


def test_text_on_stdout_alone(run, table):
    result = run("select", table, "--target", "colour")
    assert result.exit_code == 0
    assert "points.csv: 24 samples, 2 features" in result.stdout
    assert "standardised once on all rows" in result.stdout
    assert result.stdout.count("*") == 1
    assert "Chosen: SVC(kernel='rbf', C=" in result.stdout
    assert "Wrong by class: " in result.stdout
    assert "Optimistic: the smallest of" in result.stdout
    assert result.stderr == ""


def test_messy_table_is_explained(run, full_table):
    result = run("select", full_table, "--target", "colour", "--grid", "C=1")
    assert result.exit_code == 0
    notes = [line for line in result.stdout.splitlines() if line.startswith("Note: ")]
    assert notes == [
        "Note: Columns are separated by semicolons.",
        "Note: Decimal commas read as such: 'a', 'b'.",
        "Note: Text, one-hot encoded: 'site' (2 categories).",
        "Note: Text that is different in every row, left out: 'name'.",
    ]
    assert "Numbers standardised and text one-hot encoded" in result.stdout


def test_three_classes(run, tmp_path):
    X, y = make_class_blobs(30, n_classes=3, separation=4, random_state=0)
    path = tmp_path / "three.csv"
    pd.DataFrame(X, columns=["a", "b"]).assign(y=y).to_csv(path, index=False)
    report = select_json(run, path, "--target", "y", "--grid", "C=1,10")
    assert report["class_counts"] == {"0": 10, "1": 10, "2": 10}
    assert report["best"]["error"] < 0.3
    result = run("select", path, "--target", "y", "--curve")
    assert result.exit_code == 1
    assert "--curve is for two classes; 'y' has 3." in result.stderr


def test_linear_kernel_has_no_gamma(run, table):
    report = select_json(run, table, "--target", "colour", "--kernel", "linear")
    assert list(report["grid"]) == ["C"]
    assert "gamma" not in report["best"]
    text = run("select", table, "--target", "colour", "--kernel", "linear").stdout
    assert "       C     error" in text


def test_grid_from_the_command_line(run, table):
    report = select_json(
        run, table, "--target", "colour", "--kernel", "poly", "--grid", "C=10,1",
        "--grid", "gamma=0.01:1:3", "--grid", "degree=2,3",
    )  # fmt: skip
    assert report["grid"]["C"] == [1, 10]
    assert np.allclose(report["grid"]["gamma"], [0.01, 0.1, 1])
    assert report["grid"]["degree"] == [2, 3]
    assert len(report["cells"]) == 12


@pytest.mark.parametrize(
    ("typed", "values"),
    [
        ("degree=2:4:2", [2, 4]),
        ("degree=1:10:4", [1, 2, 5, 10]),
        ("degree=2.0", [2]),
        ("coef0=-0.5,0,1", [-0.5, 0, 1]),
    ],
)
def test_degrees_are_whole_and_constants_of_any_sign(typed, values):
    name = typed.partition("=")[0]
    found = parse_grid([typed])[name]
    assert found == values
    if name == "degree":
        assert all(isinstance(value, int) for value in found)


def test_class_weight_and_raw_features(run, table, frame):
    report = select_json(
        run, table, "--target", "colour", "--class-weight", "balanced",
        "--no-standardize", "--grid", "C=1", "--grid", "gamma=1e-6",
    )  # fmt: skip
    predictions = cross_val_predict(
        SVC(C=1, gamma=1e-6, tol=1e-10, class_weight={"red": 1, "blue": 1}),
        frame[["a", "b"]].to_numpy(),
        frame["colour"],
        cv=LeaveOneOut(),
    )
    assert report["class_weight"] == "balanced"
    assert report["preparation"] == "Features as they are, not standardised."
    assert report["best"]["error"] == np.mean(predictions != frame["colour"])


def test_two_jobs_give_the_same(run, table):
    reports = [
        select_json(run, table, "--target", "colour", *extra)
        for extra in ([], ["--n-jobs", "2"])
    ]
    for report in reports:
        del report["seconds"]
    assert reports[0] == reports[1]


def test_checkpoint_is_used_again_and_refused_for_other_data(run, table, tmp_path):
    path = tmp_path / "run.db"
    arguments = (table, "--target", "colour", "--grid", "C=1,10", "--checkpoint", path)
    first = select_json(run, *arguments)
    again = run("select", *arguments, "--verbose")
    assert "Resumed: 5 of 5" in again.stderr
    assert select_json(run, *arguments)["cells"] == first["cells"]
    other = run("select", *arguments, "--no-standardize")
    assert other.exit_code == 1
    assert "run.db" in other.stderr


def test_honest_and_curve_say_how_long_they_take(run, table, frame):
    result = run(
        "select", table, "--target", "colour", "--grid", "C=0.1,1,10", "--grid",
        "gamma=0.1,1", "--honest", "--curve", "--json",
    )  # fmt: skip
    assert result.exit_code == 0
    assert "Honest error: 24 searches, about" in result.stderr
    report = json.loads(result.stdout)
    # The same by hand: tune on the others with the package, ask scikit-learn.
    y, X = frame["colour"].to_numpy(), frame[["a", "b"]]
    grid = {"svc__C": [0.1, 1, 10], "svc__gamma": [0.1, 1]}
    wrong = []
    for r in range(24):
        rest = np.arange(24) != r
        scaler = StandardScaler().fit(X[rest])
        search = lo.LooSearchCV(SVC(), {k[5:]: v for k, v in grid.items()})
        search.fit(scaler.transform(X[rest]), y[rest])
        model = make_pipeline(StandardScaler(), SVC(tol=1e-10, **search.best_params_))
        wrong.append(model.fit(X[rest], y[rest]).predict(X[~rest])[0] != y[r])
    assert report["honest"]["error"] == np.mean(wrong)
    curve = report["curve"]
    assert (curve["C"][0], curve["C"][-1]) == (0.1, 10)
    assert min(curve["errors"]) <= report["best"]["error"]


@pytest.mark.parametrize("groups", [[], ["--groups", "pair"]])
def test_honest_error_with_a_category_of_one_sample(run, frame, tmp_path, groups):
    frame.loc[frame["pair"] == 5, "site"] = "w"  # a group; without groups one sample
    if not groups:
        frame = frame.drop(columns="pair").drop(index=11)
    path = tmp_path / "rare.csv"
    frame.drop(columns="name").to_csv(path, index=False)
    report = select_json(
        run, path, "--target", "colour", *groups, "--grid", "C=1", "--grid",
        "gamma=0.1", "--honest",
    )  # fmt: skip
    numbers, y = frame[["a", "b"]].to_numpy(), frame["colour"].to_numpy()
    words = pd.get_dummies(frame["site"]).to_numpy(float)
    folds = frame["pair"].to_numpy() if groups else np.arange(len(y))
    wrong = 0
    for fold in np.unique(folds):
        rest = folds != fold
        scaler = StandardScaler().fit(numbers[rest])
        X = np.hstack([words, scaler.transform(numbers)])
        model = SVC(C=1, gamma=0.1, tol=1e-10).fit(X[rest], y[rest])
        wrong += np.sum(model.predict(X[~rest]) != y[~rest])
    assert report["honest"]["error"] == wrong / len(y)


def test_curve_of_more_samples_is_estimated_first(run, tmp_path):
    X, y = make_class_blobs(300, n_classes=2, separation=3, random_state=0)
    path = tmp_path / "many.csv"
    pd.DataFrame(X, columns=["a", "b"]).assign(y=y).to_csv(path, index=False)
    result = run("select", path, "--target", "y", "--grid", "C=1,2", "--curve")
    assert result.exit_code == 0
    assert "Error for every C from 1 to 2: about" in result.stderr
    assert "Over every C from 1 to 2 the least error is" in result.stdout


def test_time_is_split_if_asked(run, table, tmp_path):
    how = ["--target", "colour", "--grid", "C=1", "--report", tmp_path / "page.html"]
    result = run("select", table, *how, "--verbose")
    last = result.stderr.splitlines()[-1]
    names = ("start-up", "reading", "preparing", "leave-one-out", "page", "together")
    for part in names:
        assert part in last


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.csv", "--target", "y"], "No file 'nothing.csv'."),
        (["{table}"], "Name the column of classes: --target COL."),
        (["{table}", "--target", "color"], "Did you mean 'colour'?"),
        (["{table}", "--target", "a"], "'a' has 24 different values"),
        (["{table}", "--target", "colour", "--drop", "aa"], "Did you mean 'a'?"),
        (["--target", "y"], "--target names a column of DATA, but no file is given."),
        (
            ["--kernel", "linear", "--grid", "gamma=1"],
            "--grid gamma=… has no meaning for --kernel linear, which has C.",
        ),
    ],
)
def test_mistake_ends_with_its_message_alone(run, table, arguments, message):
    result = run("select", *(a.format(table=table) for a in arguments))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def plain(text):
    """A message without the box around it."""
    return " ".join(text.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--n-jobs", "0"], "'--n-jobs': must be positive, or -1"),
        (["--traget", "y"], "--target"),
        (["--kernel", "rfb"], "'rfb' is not one of 'rbf', 'linear'"),
        (["--save", "/no/such/folder/m.skops"], "no folder '/no/such/folder'"),
        (["--grid", "c=1"], "'--grid': 'c=1' names no parameter of the grid. Did you"),
        (["--grid", "C=1,x"], "'C=1,x' is no list of numbers."),
        (["--grid", "C=-1"], "'C=-1' has a value that is not positive."),
        (["--grid", "C"], "'C' has no values."),
        (["--grid", "C=1:2"], "'C=1:2' is no list of numbers."),
        (["--grid", "C=1,inf"], "'C=1,inf' has a value that is not finite."),
        (["--grid", "C=0:1:3"], "'C=0:1:3' has an end that is not positive, so"),
        (["--grid", "C=1:2:0"], "'C=1:2:0' asks for 0 values; a range has 1 to 1000"),
        (["--grid", "C=1:2:1000000000"], "asks for 1000000000 values; a range has 1"),
        (["--grid", "degree=2.5"], "'degree=2.5' has a degree that is no whole number"),
        (["--grid", "C=1", "--grid", "C=2"], "'C=2' gives C a second time."),
    ],
)
def test_usage_errors(run, arguments, message):
    result = run("select", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in plain(result.stderr)


def test_wrong_command_and_version(run):
    assert "Did you mean 'select'" in plain(run("selects").stderr)
    assert run("--version").stdout == f"leaveout {lo.__version__}\n"


def test_debug_shows_the_error_itself(run, table):
    result = run("select", table, "--target", "color", "--debug")
    assert isinstance(result.exception, ValueError)


def test_as_a_program(table):
    command = [sys.executable, "-m", "leaveout.cli", "select", table, "--target"]
    done = subprocess.run(
        [*command, "colour", "--json"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["n_samples"] == 24
    assert report["command"].startswith("leaveout select ")
    failed = subprocess.run([*command, "wrong"], capture_output=True, text=True)
    assert failed.returncode == 1
    assert "Traceback" not in failed.stderr


def test_letters_that_stdout_lacks_are_written_as_codes(table):
    text = table.read_text().replace("red", "αrot")
    table.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "leaveout.cli", "select", table, "--target"]
    done = subprocess.run(
        [*command, "colour", "--grid", "C=1"],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "cp1252"},
    )
    assert done.returncode == 0, done.stderr
    assert b"\\u03b1rot" in done.stdout
    assert done.stderr == b""


def test_help_has_an_example_and_no_values_for_flags(run):
    for command in ("select", "loo", "audit", "bounds", "predict"):
        shown = run(command, "--help").stdout
        assert f"Example: leaveout {command}" in shown
        flags = [line for line in shown.splitlines() if "--debug" in line]
        assert flags
        assert "bool" not in flags[0]


def test_what_packages_tell_of_each_other_is_not_told(capsys):
    """Python 3.12 warns of fork in a process with threads, pandas and pyparsing too."""
    with warnings_told() as warned:
        warnings.warn("oneOf deprecated - use one_of", DeprecationWarning, stacklevel=1)
        warnings.warn("two classes of one sample", UserWarning, stacklevel=1)
    assert warned == ["two classes of one sample"]
    assert capsys.readouterr().err == "Warning: two classes of one sample\n"
