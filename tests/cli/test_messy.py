# SPDX-License-Identifier: BSD-3-Clause
"""Tables as people have them: the right result, or one line that helps."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.preprocessing import scale
from sklearn.svm import SVC

CELL = ("--grid", "C=10", "--grid", "gamma=0.05", "--json")


def refits(table, target):
    """The number of errors by scikit-learn's leave-one-out."""
    y = table[target]
    svc = SVC(C=10, gamma=0.05, tol=1e-8)
    X = scale(table.drop(columns=target))
    return int((cross_val_predict(svc, X, y, cv=LeaveOneOut()) != y).sum())


def messy(frame, kind):
    """The table with one habit or fault, as bytes."""
    table = frame[["a", "b", "colour"]].rename(columns={"a": "größe"})
    how = {"index": False}
    if kind == "missing values":
        table.loc[[3, 7], "b"] = None
    if kind == "text among numbers":
        table["b"] = table["b"].astype(object)
        table.loc[4, "b"] = "<0.1"
    if kind == "one class":
        table["colour"] = "red"
    if kind == "three classes":
        table["colour"] = np.where(np.arange(24) % 4, table["colour"], "green")
    if kind == "equal names":
        table.columns = ["b", "b", "colour"]
    if kind == "thousands":
        how |= {"sep": ";", "decimal": ","}
        table["b"] = [f"{100 * k // 1000}.{100 * k % 1000:03}" for k in range(13, 37)]
    if kind == "prices":
        table["b"] = [f"${k}.50" for k in range(24)]
    if kind in ("semicolons", "decimal commas"):
        how |= {"sep": ";", "decimal": "," if kind == "decimal commas" else "."}
    text = "" if kind == "empty" else table.to_csv(**how)
    return table, text.encode("utf-8-sig" if kind == "byte-order mark" else "utf-8")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            "missing values",
            "in 1 of 3 columns: 'b' (2), in 2 of 24 rows. Fill",
        ),
        ("text among numbers", "'b' (row 5: '<0.1'). Correct the values"),
        ("one class", "'colour' has one class only, 'red' in all 24 rows"),
        ("equal names", "more than one column named 'b' ('b': columns 1, 2)"),
        ("empty", "is empty"),
        ("thousands", "Thousands or decimals? 'b' (row 1: '1.300') has a point, but"),
        ("prices", "'b' (row 1: '$0.50'). Correct the values"),
    ],
)
@pytest.mark.parametrize("command", ["select", "loo", "audit"])
def test_faults_are_told_in_one_line(run, frame, tmp_path, command, kind, message):
    path = tmp_path / "messy.csv"
    path.write_bytes(messy(frame, kind)[1])
    result = run(command, path, "--target", "colour")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "kind", ["byte-order mark", "semicolons", "decimal commas", "three classes"]
)
def test_habits_change_nothing(run, frame, tmp_path, kind):
    path = tmp_path / "messy.csv"
    table, content = messy(frame, kind)
    path.write_bytes(content)
    result = run("select", path, "--target", "colour", *CELL)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["n_features"] == 2
    assert found["best"]["n_wrong"] == refits(table, "colour")
    missing = run("select", path, "--target", "colour", "--drop", "grösse").stderr
    assert "Did you mean 'größe'?" in missing


def test_twenty_thousand_columns(run, rng, tmp_path):
    X, y = rng.normal(size=(16, 20_000)).round(3), np.repeat(["u", "v"], 8)
    X[:8, :2000] += 1.0
    table = pd.DataFrame(X, columns=[f"g{k}" for k in range(20_000)]).assign(y=y)
    path = tmp_path / "wide.csv"
    table.to_csv(path, index=False)
    how = ["--grid", "C=10", "--grid", "gamma=0.00005", "--json"]
    result = run("select", path, "--target", "y", *how)
    assert result.exit_code == 0, result.stderr
    svc = SVC(C=10, gamma=0.00005, tol=1e-8)
    wrong = cross_val_predict(svc, scale(X), y, cv=LeaveOneOut()) != y
    assert json.loads(result.stdout)["best"]["n_wrong"] == wrong.sum() < 8
    assert "Did you mean 'g777'?" in run("loo", path, "--target", "g 777").stderr


def test_replicates_do_not_leak_by_blanks(run, frame, tmp_path):
    patients = np.repeat([f"p{k}" for k in range(12)], 2)
    path, samples = tmp_path / "replicates.csv", tmp_path / "samples.csv"
    found = []
    for blank in ("", " "):
        table = frame[["a", "b", "colour"]].assign(p=patients)
        table.loc[1::2, "p"] += blank
        table.to_csv(path, index=False)
        how = ["--groups", "p", "--C", "10", "--gamma", "0.05", "--output", samples]
        assert run("loo", path, "--target", "colour", *how).exit_code == 0
        found.append(samples.read_text())
    assert found[0] == found[1]
