# SPDX-License-Identifier: BSD-3-Clause
"""``leaveout loo``, ``audit`` and ``bounds``: one classifier, typed or chosen."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import LeaveOneGroupOut, LeaveOneOut, cross_val_predict
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import leaveout as lo

MACHINE = ("--C", "10", "--gamma", "0.5")


def left_out_values(frame):
    """Decision values by scikit-learn's refits, red positive."""
    X = StandardScaler().fit_transform(frame[["a", "b"]])
    return cross_val_predict(
        SVC(C=10, gamma=0.5, tol=1e-12),
        X,
        frame["colour"],
        cv=LeaveOneOut(),
        method="decision_function",
    )


def test_loo_agrees_with_refits(run, table, frame, tmp_path):
    path = tmp_path / "samples.csv"
    result = run("loo", table, "--target", "colour", *MACHINE, "-o", path)
    assert result.exit_code == 0, result.stderr
    assert "SVC(kernel='rbf', C=10, gamma=0.5)" in result.stdout
    samples = pd.read_csv(path)
    values = left_out_values(frame)
    sign = np.where(frame["colour"] == "red", 1, -1)
    assert samples["row"].tolist() == list(range(1, 25))
    assert np.allclose(samples["margin"], sign * values, atol=1e-6)
    wrong = samples["prediction"] != samples["y"]
    assert np.array_equal(wrong, sign * values < 0)
    assert f"  wrong         {wrong.sum()}" in result.stdout


def test_gamma_in_words_stays_where_c_is_chosen(run, table):
    result = run("loo", table, "--target", "colour", "--gamma", "scale", "--json")
    model = json.loads(result.stdout)["model"]
    assert model.startswith("SVC(kernel='rbf', C=")
    assert model.endswith(", gamma='scale')")


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("loo --C 1 --gamma 1 --kernel linear", 1, "--gamma has no meaning for --ke"),
        ("loo --C 1 --degree 2", 1, "--degree has no meaning for --kernel rbf."),
        ("loo --C 1 --coef0 2", 1, "--coef0 has no meaning for --kernel rbf."),
        ("loo --C -1 --gamma 1", 1, "C must be a finite number > 0; got -1.0"),
        ("loo --gamma wide", 2, "'wide' is not a number, nor 'scale' or 'auto'"),
        ("bounds --C 1 --groups pair", 1, "for single samples; omit --groups"),
    ],
)
def test_mistakes(run, full_table, command, code, message):
    name, *options = command.split()
    result = run(name, full_table, "--target", "colour", *options)
    assert result.exit_code == code
    assert message in result.stderr


def test_poly_has_degree_and_constant(run, table):
    how = ("--target", "colour", "--kernel", "poly", *MACHINE, "--json")
    found = json.loads(run("loo", table, *how).stdout)["parameters"]
    assert found == {"C": 10.0, "gamma": 0.5, "degree": 3, "coef0": 0.0}
    more = ("--degree", "2", "--coef0", "1")
    found = json.loads(run("loo", table, *how, *more).stdout)["parameters"]
    assert found == {"C": 10.0, "gamma": 0.5, "degree": 2, "coef0": 1.0}


@pytest.mark.parametrize("command", ["loo", "audit", "bounds"])
def test_chosen_parameters_have_every_digit(run, table, command):
    how = (table, "--target", "colour", "--json")
    chosen = json.loads(run("select", *how).stdout)["best"]
    found = json.loads(run(command, *how).stdout)["parameters"]
    assert found == {name: chosen[name] for name in ("C", "gamma")}


def test_suspects_have_every_digit(run, table, frame):
    result = run("audit", table, "--target", "colour", *MACHINE, "--json")
    found = json.loads(result.stdout)["suspects"]
    X = StandardScaler().fit_transform(frame[["a", "b"]])
    truth = lo.suspects(lo.SVC(C=10, gamma=0.5), X, frame["colour"], verbose=0)
    assert [row["margin"] for row in found] == truth.margins[:20].tolist()


@pytest.mark.parametrize("command", ["loo", "audit"])
def test_headings_differ_whatever_the_id_is_called(run, frame, tmp_path, command):
    path, out = tmp_path / "ids.csv", tmp_path / "out.csv"
    named = frame.rename(columns={"name": "margin"})[["margin", "a", "b", "colour"]]
    named.to_csv(path, index=False)
    how = ("--target", "colour", "--id", "margin", *MACHINE, "-o", out)
    assert run(command, path, *how).exit_code == 0
    headings = out.read_text().splitlines()[0].split(",")
    assert headings[0] == "margin (id)"
    assert len(set(headings)) == len(headings)


def test_audit_lists_the_samples_with_the_least_margin(
    run, full_table, frame, tmp_path
):
    path = tmp_path / "suspects.csv"
    result = run(
        "audit", full_table, "--target", "colour", "--id", "name", "--drop", "site",
        "--drop", "pair", *MACHINE, "--top", "3", "-o", path,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    margins = np.where(frame["colour"] == "red", 1, -1) * left_out_values(frame)
    expected = np.argsort(margins)[:3]
    found = pd.read_csv(path)
    assert found["name"].tolist() == frame["name"][expected].tolist()
    assert found["row"].tolist() == (expected + 1).tolist()
    assert np.allclose(found["margin"], margins[expected], atol=1e-6)
    assert all(name in result.stdout for name in found["name"])


def test_audit_leaves_groups_out_together(run, full_table, frame):
    result = run(
        "audit", full_table, "--target", "colour", "--groups", "pair", "--drop", "name",
        "--drop", "site", *MACHINE, "--top", "24", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    found = pd.DataFrame(json.loads(result.stdout)["suspects"]).set_index("row")
    X = StandardScaler().fit_transform(frame[["a", "b"]])
    values = cross_val_predict(
        SVC(C=10, gamma=0.5, tol=1e-12), X, frame["colour"], groups=frame["pair"],
        cv=LeaveOneGroupOut(), method="decision_function",
    )  # fmt: skip
    margins = np.where(frame["colour"] == "red", 1, -1) * values
    assert np.allclose(found["margin"], margins[found.index - 1], atol=1e-6)


def test_ids_keep_all_their_digits(run, frame, tmp_path):
    ids = [9007199254740993 + 2 * k for k in range(24)]  # odd, beyond 2^53: no float is
    path, out = tmp_path / "ids.csv", tmp_path / "out.csv"
    frame[["a", "b", "colour"]].assign(pid=ids).to_csv(path, index=False)
    how = ["--target", "colour", "--id", "pid", *MACHINE]
    assert run("loo", path, *how, "-o", out).exit_code == 0
    assert pd.read_csv(out, dtype=str)["pid"].tolist() == [str(i) for i in ids]
    result = run("audit", path, *how, "--json")
    found = json.loads(result.stdout)["suspects"]
    assert {int(row["id"]) for row in found} <= set(ids)
    holes = pd.read_csv(path, dtype=str)
    holes.loc[3, "pid"] = ""
    holes.to_csv(path, index=False)
    assert run("loo", path, *how, "-o", out).exit_code == 0
    named = pd.read_csv(out, dtype=str)["pid"].drop(3).tolist()
    assert named == [str(i) for k, i in enumerate(ids) if k != 3]


@pytest.mark.parametrize("more", [[], ["--no-standardize"]])
def test_numbers_too_large_to_square_are_named(run, frame, tmp_path, more):
    path = tmp_path / "large.csv"
    frame.loc[3, "b"] = -1e200
    frame[["a", "b", "site", "colour"]].to_csv(path, index=False)
    result = run("loo", path, "--target", "colour", *MACHINE, *more)
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: Column 'b' has -1e+200 in row 4, too large to be")
    path.write_text("1 1:1\n2 1:2\n1 2:1e300\n")
    result = run("loo", path, *MACHINE, *more)
    assert "Column '2' has 1e+300 in row 3" in result.stderr


def test_classes_beyond_64_bits_are_words(run, frame, tmp_path):
    path = tmp_path / "huge.csv"
    labels = ["1" + 20 * "0" if c == "red" else "3" for c in frame["colour"]]
    frame[["a", "b"]].assign(colour=labels).to_csv(path, index=False)
    result = run("loo", path, "--target", "colour", *MACHINE)
    assert result.exit_code == 0, result.stderr
    assert f"Classes (colour): {labels[0]} (12), 3 (12)" in result.stdout


def test_bounds_agree_with_the_function(run, table, frame):
    done = run(
        "bounds", table, "--target", "colour", "--C", 2, "--gamma", 0.3, "--json"
    )
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    X = StandardScaler().fit_transform(frame[["a", "b"]])
    truth = lo.loo_bounds(lo.SVC(C=2.0, gamma=0.3), X, frame["colour"])
    assert list(found["bounds"]) == [row.name for row in truth.rows]
    for row in truth.rows:
        told = found["bounds"][row.name]
        assert told["kind"] == row.kind
        assert told["value"] == pytest.approx(row.value, rel=1e-6)


def test_audit_counts_all_samples_not_those_listed(run, table):
    found = run("audit", table, "--target", "colour", "--top", "1", *MACHINE, "--json")
    report = json.loads(found.stdout)
    assert report["n_flagged"] == round(24 * report["error"]) > 1
