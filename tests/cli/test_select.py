# SPDX-License-Identifier: BSD-3-Clause
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC
from solved import count_calls

import leaveout as lo
from leaveout.adapt import _prepare
from leaveout.cli._grid import parse_grid
from leaveout.engine import _short, _solve
from leaveout.tune._choice import default_Cs, default_gammas


def test_default_grid_agrees_with_refits(ask, table, frame, left_out_margins):
    report = ask("select", table, "--target", "colour")
    assert report["grid"]["C"] == default_Cs().tolist()
    X = scale(frame[["a", "b"]])
    assert np.allclose(report["grid"]["gamma"], default_gammas(X))
    # One cell is enough here: that all agree is the business of tests/loo.
    cell = report["cells"][13]
    margins = left_out_margins(cell["C"], cell["gamma"])
    assert cell["error"] == np.mean(margins < 0)
    assert report["best"]["error"] == min(c["error"] for c in report["cells"])
    assert report["majority_error"] == 0.5
    assert report["class_counts"] == {"blue": 12, "red": 12}


def test_grid_from_the_command_line(ask, table):
    grid = "--kernel poly --grid C=10,1 --grid gamma=0.01:1:3 --grid degree=2,3"
    report = ask("select", table, "--target", "colour", *grid.split())
    assert np.allclose(report["grid"]["gamma"], [0.01, 0.1, 1])
    assert report["grid"] | {"gamma": 0} == {"C": [1, 10], "gamma": 0, "degree": [2, 3]}
    assert len(report["cells"]) == 12


def test_default_grid_of_a_polynomial_kernel(ask, table, frame):
    how = ("--kernel", "poly", "--grid", "C=1")  # pandas stores X by columns
    report = ask("select", table, "--target", "colour", *how)
    X = scale(frame[["a", "b"]])
    assert np.allclose(report["grid"]["gamma"], default_gammas(X, "poly"))


def test_a_wide_grid_fits_80_columns(run, table):
    grid = "--grid C=1 --grid gamma=0.0001:10:16"
    told = run("select", table, "--target", "colour", *grid.split()).stdout
    assert told.count("gamma ") >= 2  # in two parts
    assert max(map(len, told.splitlines())) <= 80


def test_degrees_are_whole_and_constants_of_any_sign():
    assert repr(parse_grid(["degree=1:10:4"])["degree"]) == "[1, 2, 5, 10]"
    assert parse_grid(["coef0=-0.5,0"])["coef0"] == [-0.5, 0.0]


def test_checkpoint_is_used_again_and_refused_for_other_data(run, ask, table, tmp_path):
    path = tmp_path / "run.db"
    how = ("select", table, "--target", "colour", "--grid", "C=1,10")
    how = (*how, "--checkpoint", path)
    first = ask(*how)
    assert "Resumed with 5 of 5" in run(*how, "--verbose").stderr
    assert ask(*how)["cells"] == first["cells"]
    assert "run.db" in run(*how, "--no-standardize", code=1).stderr


def test_honest_error_with_a_category_of_one_group(run, frame, tmp_path):
    frame.loc[frame["pair"] == 5, "site"] = "w"
    path, checkpoint = tmp_path / "rare.csv", tmp_path / "run.db"
    frame.drop(columns="name").to_csv(path, index=False)
    cell = ("--grid", "C=1", "--grid", "gamma=0.1", "--checkpoint", checkpoint)
    how = ("--target", "colour", "--groups", "pair", *cell, "--honest", "--json")
    result = run("select", path, *how)
    assert "Nested leave-one-out: 12 searches\n" in result.stderr
    assert (tmp_path / "run.honest.db").exists()
    numbers, y = frame[["a", "b"]].to_numpy(), frame["colour"].to_numpy()
    words = pd.get_dummies(frame["site"]).to_numpy(float)
    folds, wrong = frame["pair"].to_numpy(), 0
    for fold in np.unique(folds):
        rest = folds != fold
        scaler = StandardScaler().fit(numbers[rest])
        X = np.hstack([words, scaler.transform(numbers)])
        model = SVC(C=1, gamma=0.1, tol=1e-10).fit(X[rest], y[rest])
        wrong += np.sum(model.predict(X[~rest]) != y[~rest])
    assert json.loads(result.stdout)["honest"]["error"] == wrong / len(y)


@pytest.mark.filterwarnings("ignore::leaveout.PreprocessingWarning")
def test_curve_and_honest_error(ask, table, frame):
    grid = ["--grid", "C=1,10", "--grid", "gamma=0.1,1", "--curve", "--honest"]
    report = ask("select", table, "--target", "colour", *grid)
    curve = report["curve"]
    assert (curve["C"][0], curve["C"][-1]) == (1, 10)
    assert min(curve["errors"]) <= report["best"]["error"]
    steps = make_pipeline(StandardScaler(), lo.SVC())
    search = lo.LooSearchCV(steps, {"svc__C": [1, 10], "svc__gamma": [0.1, 1]})
    X, y = frame[["a", "b"]].to_numpy(), frame["colour"]
    expected = lo.honest_loo(search, X, y, verbose=0)
    assert report["honest"]["error"] == expected.error


def test_page_and_model_without_another_solve(run, table, tmp_path, monkeypatch):
    """Each of four cells once; pairs, bounds and the model take the winner's."""
    monkeypatch.setattr(_short, "ALL_NEAR", 0)  # else its solves are not counted
    solves = count_calls(monkeypatch, _solve, "_solve")
    grams = count_calls(monkeypatch, _prepare, "make_gram")
    path, model = tmp_path / "page.html", tmp_path / "m.skops"
    how = ["--target", "colour", "--grid", "C=1,10", "--grid", "gamma=0.1,1", "--json"]
    result = run("select", table, *how, "--report", path, "--save", model, "--verbose")
    assert len(solves) == 4 + 1  # one bound is that of an SVM with squared losses
    assert len(grams) == 2 + 1
    assert model.exists()
    last = result.stderr.splitlines()[-1]
    names = ("start-up", "reading", "preparing", "leave-one-out", "page", "total")
    assert all(part in last for part in names)
    best = json.loads(result.stdout)["best"]
    page = path.read_text(encoding="utf-8").replace("\u00a0%", " %")
    low, high = (100 * end for end in best["interval"])
    assert f"{100 * best['error']:.1f} % (optimistic)</strong>" in page
    assert f"(95&nbsp;% interval {low:.1f} to {high:.1f} %;" in page
    assert len(re.findall(r'<tr class="(?:right|wrong|ambiguous)">', page)) == 24
    assert "ROC curve" in page


def test_three_classes_have_no_curves(run, tmp_path):
    table, path = tmp_path / "three.csv", tmp_path / "page.html"
    rows = [f"{k % 3 + 0.1 * (k % 5)},{k % 7},{'abc'[k % 3]}" for k in range(30)]
    table.write_text("\n".join(["u,v,kind", *rows]))
    run("select", table, "--target", "kind", "--report", path)
    assert "ROC curve" not in path.read_text(encoding="utf-8")
    told = run("select", table, "--target", "kind", "--curve", code=1).stderr
    assert "--curve needs two classes; 'kind' has 3." in told
    told = run("bounds", table, "--target", "kind", code=1).stderr  # before tuning
    assert told.startswith("Error: leaveout bounds needs two classes; 'kind' has 3. ")


def test_the_page_shows_what_the_command_prints(run):
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    shown = re.search(r"^```text\n(breast cancer.*?)^```", page, re.M | re.S)[1]
    assert run("select").stdout == shown
