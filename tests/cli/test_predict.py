# SPDX-License-Identifier: BSD-3-Clause
import json
import re
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris
from sklearn.preprocessing import StandardScaler

import leaveout as lo
from leaveout.tables._files import read_table

CELL = ("--grid", "C=1", "--grid", "gamma=0.1")
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


@pytest.fixture
def trained(run, tmp_path):
    """Train on a table and ask for new rows: ``trained(table, rows)``."""

    def ask(old, new, *options, target="colour", predicting=()):
        model = tmp_path / "trained.skops"
        paths = [write(tmp_path / name, f) for name, f in (("o", old), ("n", new))]
        options = ("--target", target, *options, *CELL, "--save", model)
        made = run("select", paths[0], *options)
        assert made.exit_code == 0, made.stderr
        return run("predict", model, paths[1], *predicting)

    return ask


def write(path, frame):
    """Write a table: as Parquet where text could not tell its values."""
    if any(isinstance(v, bytes | pd.Timestamp) for v in frame.iloc[0]):
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return path


def n_wrong(result):
    """The number of wrong predictions that was told."""
    assert result.exit_code == 0, result.stderr
    return int(re.search(r"too: (\d+) of 24 wrong", result.stderr)[1])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ([1.0, 2.0], [1, 2]),
        (["01", "02", "X"], ["01", "02"]),
        ([True, False], ["TRUE", "FALSE"]),
        ([10**17, 10**17 + 1], [10**17, 10**17 + 1]),
        ([pd.Timestamp(2021, 1, 1), pd.Timestamp(2022, 1, 1)],) * 2,
    ],
)
def test_classes_are_compared_by_value(trained, frame, old, new):
    kinds = np.where(frame["colour"] == "red", 0, 1)
    numbers = frame[["a", "b"]]
    seen = numbers.assign(colour=[old[k] for k in kinds])
    if len(old) == 3:
        seen.loc[[0, 1], "colour"] = old[2]
    result = trained(seen, numbers.assign(colour=[new[k] for k in kinds]))
    found = pd.read_csv(StringIO(result.stdout), dtype=str)
    labels = [name.removeprefix("probability ") for name in list(found)[2:]]
    truth = [labels[sorted(old).index(old[k])] for k in kinds]
    assert n_wrong(result) == np.sum(found["prediction"] != truth) < 12


def test_classes_the_model_does_not_know_are_told(trained, frame):
    new = frame[["a", "b", "colour"]].copy()
    new.loc[[0, 3], "colour"] = "Red"
    new.loc[5, "colour"] = None
    told = trained(frame[["a", "b", "colour"]], new).stderr
    assert " of 21 wrong" in told
    assert (
        "Not compared: 2 of 24 rows, whose class the model does not know: 'Red'. Did "
        "you mean 'red'?" in told
    )
    assert "Not compared: 1 of 24 rows, which have no class." in told


def test_id_may_be_called_as_a_column_of_the_answer(trained, frame):
    frame = frame.rename(columns={"name": "prediction"})[
        ["prediction", "a", "b", "colour"]
    ]
    how = ("--id", "prediction")
    plain = trained(frame, frame, *how)
    result = trained(frame, frame, *how, predicting=how)
    assert n_wrong(result) == n_wrong(plain)
    assert list(predictions(result))[:2] == ["prediction (id)", "prediction"]
    records = json.loads(
        trained(frame, frame, *how, predicting=(*how, "--json")).stdout
    )
    assert records[0]["prediction (id)"] == "s0"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["true", "false", "unknown"], ["true", "false"]),
        (["01", "02", "A3"], ["01", "02"]),
        ([0.0, 1.0, 2.5], [0, 1]),
        ([0, 1, 2], ["00", "01"]),
    ],
)
def test_known_categories_in_another_type(trained, frame, old, new):
    table = frame[["a", "b", "colour"]]
    seen = table.assign(site=[old[i % 3] for i in range(24)])
    whole = predictions(trained(seen, seen, "--categorical", "site"))
    rows = np.arange(24) % 3 < 2
    asked = table.assign(site=[(*new, None)[i % 3] for i in range(24)])[rows]
    result = trained(seen, asked, "--categorical", "site")
    expected = whole[rows].drop(columns="row").reset_index(drop=True)
    assert predictions(result).drop(columns="row").equals(expected)


def test_text_codes_are_told_letter_by_letter(trained, frame):
    table = frame[["a", "b", "colour"]]
    seen = table.assign(site=[("1", "2", "A3")[i % 3] for i in range(24)])
    result = trained(seen, seen.assign(site="01"), "--categorical", "site")
    assert result.exit_code == 1
    assert "categories the model has not seen: '01', first in row 1" in result.stderr


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
    frame = read_table(full_table.read_bytes(), full_table).frame
    shares = lo.load_model(model).predict_proba(frame)
    assert [row["probability red"] for row in records] == shares[:, 1].tolist()
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


def test_svmlight_does_not_fit_columns_with_names(run, model, tmp_path):
    data = tmp_path / "new.svm"
    data.write_text("1 1:0.5 2:3\n-1 1:2\n")
    result = run("predict", model, data)
    assert result.exit_code == 1
    assert (
        "the columns of an svmlight file are numbered; those of the model are 'a', "
        "'b', 'site'. Give a table with these columns." in result.stderr
    )
    result = run("predict", model, data, "--id", "name")
    assert result.exit_code == 1
    assert "whose columns have no names: omit --id" in result.stderr


def test_new_rows_that_do_not_fit(run, model, frame, tmp_path):
    path = tmp_path / "new.csv"
    frame.assign(site="z").to_csv(path, index=False)
    result = run("predict", model, path)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "categories the model has not seen: 'z', first in row 1" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_model_that_trips_when_it_predicts_is_named(run, tmp_path):
    path, data = tmp_path / "model.skops", tmp_path / "new.csv"
    model = lo.LPMClassifier(C=100, gamma=1.0).fit(np.eye(4), [0, 0, 1, 1])
    model.gamma_ = "wide"
    lo.save_model(model, path)
    data.write_text("a,b,c,d\n1,0,0,0\n0,0,1,0\n0,0,0,9\n")
    result = run("predict", path, data)
    assert result.exit_code == 1
    assert (
        "model.skops' is damaged, its model cannot predict: TypeError" in result.stderr
    )
