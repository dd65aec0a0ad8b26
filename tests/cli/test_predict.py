# SPDX-License-Identifier: BSD-3-Clause
import re
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris

import leaveout as lo

CELL = ("--grid", "C=1", "--grid", "gamma=0.1")


def read(result):
    return pd.read_csv(StringIO(result.stdout))


def test_columns_are_matched_by_name(run, ask, model, frame, tmp_path):
    path, out = tmp_path / "new.tsv", tmp_path / "out.csv"
    new = frame[["colour", "site", "b", "name", "a"]].iloc[::-1].assign(more=1)
    new.to_csv(path, index=False, sep="\t")
    result = run("predict", model, path, "--sep", r"\t", "-v")
    found, classifier = read(result), lo.load_model(model)
    assert found["name"].tolist() == new["name"].tolist()
    expected = classifier.predict(new[["a", "b", "site"]])
    assert found["prediction"].tolist() == expected.tolist()
    assert "Not used by the model: 'more'" in result.stderr
    assert "Time: start-up" in result.stderr
    wrong = int(np.sum(expected != new["colour"]))
    assert f"The model is wrong on {wrong} of 24 rows with a class" in result.stderr
    shares = classifier.predict_proba(new[["a", "b", "site"]])[:, 1]
    assert found["probability red"].tolist() == [float(f"{p:.6g}") for p in shares]
    new.drop(columns="name").to_csv(path, index=False)
    records = ask("predict", model, path)
    assert [row["probability red"] for row in records] == shares.tolist()
    assert [row["row"] for row in records] == list(range(1, 25))
    assert run("predict", model, path, "-o", out).stdout == ""
    assert pd.read_csv(out)["prediction"].tolist() == expected.tolist()


@pytest.fixture
def trained(run, tmp_path):
    """Train on a table and ask for new rows: ``trained(table, rows)``."""

    def ask(old, new, *options, code=0):
        model, seen, asked = (tmp_path / name for name in ("m", "old", "new"))
        old.to_csv(seen, index=False)
        new.to_csv(asked, index=False)
        run("select", seen, "--target", "colour", *options, *CELL, "--save", model)
        return run("predict", model, asked, code=code)

    return ask


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["01", "02", "X"], ["01", "02"]),
        ([True, False], ["TRUE", "FALSE"]),
        ([10**17, 10**17 + 1], [10**17, 10**17 + 1]),
    ],
)
def test_classes_are_compared_by_value(trained, frame, old, new):
    kinds = np.where(frame["colour"] == "red", 0, 1)
    numbers = frame[["a", "b"]]
    seen = numbers.assign(colour=[old[k] for k in kinds])
    seen.loc[:1, "colour"] = old[-1]
    result = trained(seen, numbers.assign(colour=[new[k] for k in kinds]))
    found = pd.read_csv(StringIO(result.stdout), dtype=str)
    labels = [name.removeprefix("probability ") for name in list(found)[2:]]
    truth = [labels[sorted(old).index(old[k])] for k in kinds]
    told = int(re.search(r"wrong on (\d+) of 24 rows", result.stderr)[1])
    assert told == np.sum(found["prediction"] != truth) < 12


def test_classes_the_model_does_not_know_are_told(trained, frame):
    new = frame[["a", "b", "colour"]].copy()
    new.loc[[0, 3], "colour"] = "Red"
    new.loc[5, "colour"] = None
    told = trained(frame[["a", "b", "colour"]], new).stderr
    assert " of 21 rows with a class" in told
    assert "2 of 24 rows with classes that the model does not know: 'Red'. Did" in told
    assert "Not compared: 1 of 24 rows without a class." in told


@pytest.mark.parametrize(
    ("old", "new", "unknown"),
    [(["01", "02", "A3"], ["01", "02"], "1"), ([0.0, 1, 2.5], ["00", "01"], "1.5")],
)
def test_known_categories_in_another_type(trained, frame, old, new, unknown):
    how, rows = ("--categorical", "site"), np.arange(24) % 3 < 2
    table = frame[["a", "b", "colour"]]
    seen = table.assign(site=[old[i % 3] for i in range(24)])
    asked = table.assign(site=[(*new, None)[i % 3] for i in range(24)])[rows]
    expected = read(trained(seen, seen, *how))[rows].drop(columns="row")
    found = read(trained(seen, asked, *how)).drop(columns="row")
    assert found.equals(expected.reset_index(drop=True))
    told = trained(seen, seen.assign(site=unknown), *how, code=1).stderr
    assert f"categories the model has not seen: '{unknown}', first in row 1" in told


def test_model_made_in_python_without_names(run, frame, tmp_path):
    X, y, path = frame[["a", "b"]].to_numpy(), frame["colour"], tmp_path / "new.csv"
    model = lo.SVC(gamma=1e-6).fit(X, y)
    lo.save_model(model, tmp_path / "m")
    frame[["a", "b"]].to_csv(path, index=False)
    found = read(run("predict", tmp_path / "m", path))
    assert list(found) == ["row", "prediction", "decision red"]
    assert np.allclose(found["decision red"], model.decision_function(X))
    frame[["a"]].to_csv(path, index=False)
    told = run("predict", tmp_path / "m", path, code=1).stderr
    assert "trained on 2 columns without names" in told
    frame[["a", "b"]].to_csv(path, index=False)
    model.gamma_ = "wide"
    lo.save_model(model, tmp_path / "m")
    told = run("predict", tmp_path / "m", path, code=1).stderr
    assert "m' is corrupt, its model cannot predict: " in told


def test_svmlight(run, model, tmp_path):
    X, y = load_iris(return_X_y=True)
    data, own = tmp_path / "iris.svm", tmp_path / "own.skops"
    dump_svmlight_file(X, y, str(data), zero_based=False)
    result = run("select", data, "--grid", "C=1,10", "--save", own)
    assert "scaled to variance 1, not centred" in result.stdout
    assert np.mean(read(run("predict", own, data))["prediction"] == y) > 0.95
    told = run("predict", own, data, "--id", "name", code=1).stderr
    assert "whose columns have no names: omit --id" in told
    told = run("predict", model, data, code=1).stderr
    assert "svmlight file are numbered; those of the model are 'a', 'b', 'site'" in told
