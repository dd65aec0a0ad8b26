# SPDX-License-Identifier: BSD-3-Clause
import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import (
    LeaveOneGroupOut,
    LeaveOneOut,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from solved import count_calls

import leaveout as lo
from leaveout.adapt import _prepare
from leaveout.cli._grid import parse_grid
from leaveout.engine import _solve
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


@pytest.mark.nightly
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


def test_honest_and_curve(run, table, frame):
    result = run(
        "select", table, "--target", "colour", "--grid", "C=0.1,1,10", "--grid",
        "gamma=0.1,1", "--honest", "--curve", "--json",
    )  # fmt: skip
    assert result.exit_code == 0
    assert "Honest error: 24 searches\n" in result.stderr
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


def test_honest_error_with_a_category_of_one_group(run, frame, tmp_path):
    frame.loc[frame["pair"] == 5, "site"] = "w"
    path = tmp_path / "rare.csv"
    frame.drop(columns="name").to_csv(path, index=False)
    report = select_json(
        run, path, "--target", "colour", "--groups", "pair", "--grid", "C=1",
        "--grid", "gamma=0.1", "--honest",
    )  # fmt: skip
    numbers, y = frame[["a", "b"]].to_numpy(), frame["colour"].to_numpy()
    words = pd.get_dummies(frame["site"]).to_numpy(float)
    folds = frame["pair"].to_numpy()
    wrong = 0
    for fold in np.unique(folds):
        rest = folds != fold
        scaler = StandardScaler().fit(numbers[rest])
        X = np.hstack([words, scaler.transform(numbers)])
        model = SVC(C=1, gamma=0.1, tol=1e-10).fit(X[rest], y[rest])
        wrong += np.sum(model.predict(X[~rest]) != y[~rest])
    assert report["honest"]["error"] == wrong / len(y)


def test_time_is_split_if_asked(run, table, tmp_path):
    how = ["--target", "colour", "--grid", "C=1", "--report", tmp_path / "page.html"]
    result = run("select", table, *how, "--verbose")
    last = result.stderr.splitlines()[-1]
    names = ("start-up", "reading", "preparing", "leave-one-out", "page", "total")
    for part in names:
        assert part in last


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.csv", "--target", "y"], "No file 'nothing.csv'."),
        (["{table}"], "Name the column of classes: --target. The"),
        (["{table}", "--target", "color"], "Did you mean 'colour'?"),
        (["{table}", "--target", "a"], "'a' has 24 different values"),
        (["{table}", "--target", "colour", "--drop", "aa"], "Did you mean 'a'?"),
        (["--target", "y"], "--target is about DATA, but no file is given."),
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
        (["--grid", "C=1,x"], "'C=1,x' is not a list of numbers."),
        (["--grid", "C=-1"], "'C=-1' has a value that is not positive."),
        (["--grid", "C"], "'C' has no values."),
        (["--grid", "C=1,inf"], "'C=1,inf' has a value that is not finite."),
        (["--grid", "C=0:1:3"], "'C=0:1:3' has an end that is not positive, so"),
        (["--grid", "C=1:2:0"], "'C=1:2:0' asks for 0 values; a range has 1 to 1000"),
        (["--grid", "degree=2.5"], "has a degree that is not a whole number"),
        (["--grid", "C=1", "--grid", "C=2"], "'C=2' gives C a second time."),
    ],
)
def test_usage_errors(run, arguments, message):
    result = run("select", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in plain(result.stderr)


def test_page_agrees_with_json(run, table, tmp_path):
    path = tmp_path / "page.html"
    result = run("select", table, "--target", "colour", "--report", path, "--json")
    assert result.exit_code == 0, result.stderr
    best = json.loads(result.stdout)["best"]
    page = path.read_text(encoding="utf-8").replace("\u00a0%", " %")
    share = (
        f"{100 * best['error']:.1f} %&nbsp;±&nbsp;{100 * best['standard_error']:.1f} %"
    )
    assert share in page
    assert len(re.findall(r'<tr class="(?:right|wrong|ambiguous)">', page)) == 24
    assert "Ranking" in page


def test_nothing_is_solved_twice(run, table, tmp_path, monkeypatch):
    """Each of four cells once; pairs, bounds and the model take the winner's."""
    solves = count_calls(monkeypatch, _solve, "_solve")
    grams = count_calls(monkeypatch, _prepare, "make_gram")
    grid = ["--grid", "C=1,10", "--grid", "gamma=0.1,1"]
    files = ["--report", tmp_path / "page.html", "--save", tmp_path / "m.skops"]
    result = run("select", table, "--target", "colour", *grid, *files)
    assert result.exit_code == 0
    assert len(solves) == 4 + 1  # one bound is that of an SVM with squared losses
    assert len(grams) == 2 + 1


def test_three_classes_have_no_curves(run, tmp_path):
    table = tmp_path / "three.csv"
    rows = [f"{k % 3 + 0.1 * (k % 5)},{k % 7},{'abc'[k % 3]}" for k in range(30)]
    table.write_text("\n".join(["u,v,kind", *rows]))
    path = tmp_path / "page.html"
    result = run("select", table, "--target", "kind", "--report", path)
    assert result.exit_code == 0, result.stderr
    assert f"Page written to {path}" in result.stdout
    assert "Ranking" not in path.read_text(encoding="utf-8")
    result = run("select", table, "--target", "kind", "--curve")
    assert result.exit_code == 1
    assert "--curve is for two classes; 'kind' has 3." in result.stderr
