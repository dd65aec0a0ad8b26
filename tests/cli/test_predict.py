# SPDX-License-Identifier: BSD-3-Clause
import json
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris
from sklearn.preprocessing import StandardScaler

import leaveout as lo

ROLES = ("--target", "colour", "--id", "name", "--drop", "pair")


@pytest.fixture
def model(run, full_table, tmp_path):
    """A model file from ``full_table``."""
    path = tmp_path / "model.skops"
    result = run("select", full_table, *ROLES, "--grid", "C=1", "--save", path)
    assert result.exit_code == 0, result.stderr
    assert f"Model written to {path}" in result.stdout
    return path


def predictions(result):
    assert result.exit_code == 0, result.stderr
    return pd.read_csv(StringIO(result.stdout))


def test_columns_are_matched_by_name(run, model, frame, tmp_path):
    path = tmp_path / "new.tsv"
    new = frame[["colour", "site", "b", "name", "a"]].iloc[::-1].assign(more=1)
    new.to_csv(path, index=False, sep="\t")
    result = run("predict", model, path, "--id", "name")
    found = predictions(result)
    assert found["name"].tolist() == new["name"].tolist()
    classifier = lo.load_model(model)
    expected = classifier.predict(new[["a", "b", "site"]])
    assert found["prediction"].tolist() == expected.tolist()
    shares = classifier.predict_proba(new[["a", "b", "site"]])
    assert np.allclose(found["probability red"], shares[:, 1])
    assert "Not used by the model: 'more'" in result.stderr
    wrong = int(np.sum(expected != new["colour"]))
    assert f"Classes are in the file too: {wrong} of 24 wrong" in result.stderr


def test_card_tells_where_the_model_is_from(model, frame):
    card = lo.read_model_card(model)
    assert card.model == "ColumnTransformer + SVCCV"
    assert card.feature_names == ["a", "b", "site"]
    assert card.classes == ["blue", "red"]
    assert card.details["target"] == "colour"
    assert card.details["n_samples"] == 24
    assert card.loo_error == pytest.approx(lo.load_model(model).steps[-1][1].loo_error_)


def test_model_of_groups_gives_decision_values(run, full_table, tmp_path):
    path = tmp_path / "model.skops"
    arguments = ("--target", "colour", "--groups", "pair", "--drop", "site")
    run("select", full_table, *arguments, "--grid", "C=1", "--save", path)
    found = predictions(run("predict", path, full_table))
    assert list(found) == ["row", "prediction", "decision red"]
    assert ((found["decision red"] > 0) == (found["prediction"] == "red")).all()


def test_json_and_output(run, model, full_table, tmp_path):
    records = json.loads(run("predict", model, full_table, "--json").stdout)
    assert records[0]["row"] == 1
    path = tmp_path / "out.csv"
    result = run("predict", model, full_table, "-o", path)
    assert result.stdout == ""
    assert pd.read_csv(path)["prediction"].tolist() == [
        r["prediction"] for r in records
    ]


def test_model_made_in_python_without_names(run, tmp_path):
    X, y = load_iris(return_X_y=True)
    lo.save_model(lo.SVC().fit(StandardScaler().fit_transform(X), y), tmp_path / "m")
    path = tmp_path / "new.csv"
    pd.DataFrame(X).to_csv(path, index=False)
    found = predictions(run("predict", tmp_path / "m", path))
    assert list(found) == ["row", "prediction", *(f"decision {k}" for k in range(3))]
    pd.DataFrame(X[:, :3]).to_csv(path, index=False)
    result = run("predict", tmp_path / "m", path)
    assert result.exit_code == 1
    assert "trained on 4 columns without names" in result.stderr


def test_svmlight_in_and_out(run, tmp_path):
    X, y = load_iris(return_X_y=True)
    data, model = tmp_path / "iris.svm", tmp_path / "m.skops"
    dump_svmlight_file(X, y, str(data), zero_based=False)
    result = run("select", data, "--grid", "C=1,10", "--save", model)
    assert result.exit_code == 0, result.stderr
    assert "scaled to variance 1, not centred" in result.stdout
    again = run("predict", model, data)
    assert np.mean(predictions(again)["prediction"] == y) > 0.95


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("a", "?!", "has text where the model has numbers: 'a' (row 1: '?!')"),
        ("a", np.nan, "has missing values in 1 of 3 columns: 'a' (24)"),
        ("site", "z", "has categories the model has not seen: 'z', first in row 1"),
        ("a", None, "lacks 1 of the 3 columns of the model: 'a'"),
    ],
)
def test_new_rows_that_do_not_fit(run, model, frame, tmp_path, column, values, message):
    path = tmp_path / "new.csv"
    if values is None:
        frame = frame.drop(columns=column)
    else:
        frame[column] = values
    frame.to_csv(path, index=False)
    result = run("predict", model, path)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_damaged_model(run, model, full_table):
    model.write_bytes(model.read_bytes()[:-100])
    result = run("predict", model, full_table)
    assert result.exit_code == 1
    assert "is no model file of leaveout, or damaged" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_model_that_trips_when_it_predicts_is_named(run, tmp_path):
    path, data = tmp_path / "model.skops", tmp_path / "new.csv"
    model = lo.LPMClassifier(C=100, gamma=1.0).fit(np.eye(4), [0, 0, 1, 1])
    model.classes_, model.gamma_ = model.classes_[:1], "wide"
    lo.save_model(model, path)
    data.write_text("a,b,c,d\n1,0,0,0\n0,0,1,0\n0,0,0,9\n")
    result = run("predict", path, data)
    assert result.exit_code == 1
    assert (
        "model.skops' is damaged, its model cannot predict: TypeError" in result.stderr
    )
