# SPDX-License-Identifier: BSD-3-Clause
"""``leaveout loo``, ``audit`` and ``bounds``: one classifier, typed or chosen."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import scale

import leaveout as lo

MODEL = ("--C", "10", "--gamma", "0.5")


def test_loo_agrees_with_refits(run, table, frame, left_out_margins, tmp_path):
    path = tmp_path / "samples.csv"
    result = run("loo", table, "--target", "colour", *MODEL, "-o", path, "--verbose")
    assert "SVC(kernel='rbf', C=10, gamma=0.5)" in result.stdout
    assert "Time: start-up" in result.stderr
    samples, margins = pd.read_csv(path), left_out_margins(10, 0.5)
    assert samples["row"].tolist() == list(range(1, 25))
    assert np.allclose(samples["margin"], margins, atol=1e-6)
    wrong = samples["prediction"] != samples["label"]
    assert np.array_equal(wrong, margins < 0)
    counts = samples["label"][wrong].value_counts()
    by_class = [f"{label}: {n} of 12" for label, n in counts.items()]
    expected = f"Wrong: {wrong.sum()} of 24 ({', '.join(by_class)})"
    assert expected in result.stdout.replace("\n  ", " ")
    assert "Always predicting 'red' would be wrong on 50.0 %" in result.stdout


def test_audit_lists_the_samples_with_the_least_margin(
    run, ask, full_table, frame, left_out_margins, tmp_path
):
    path, margins = tmp_path / "suspects.csv", left_out_margins(10, 0.5)
    how = (full_table, "--target", "colour", "--id", "name", "--drop", "site", *MODEL)
    result = run("audit", *how, "--drop", "pair", "--top", 3, "-o", path)
    expected, found = np.argsort(margins)[:3], pd.read_csv(path)
    assert found["name"].tolist() == frame["name"][expected].tolist()
    assert found["row"].tolist() == (expected + 1).tolist()
    assert np.allclose(found["margin"], margins[expected], atol=1e-6)
    assert all(name in result.stdout for name in found["name"])
    result = run("audit", *how, "--drop", "pair", "--top", 1)
    assert "labels; 1 sample listed\n" in result.stdout
    assert "\ninfluence: mean change of the margins" in result.stdout
    report = ask("audit", *how, "--drop", "pair", "--top", 1)
    assert report["n_flagged"] == round(24 * report["error"]) > 1  # not those listed
    together = ask("audit", *how, "--groups", "pair", "--top", 24)
    found = pd.DataFrame(together["suspects"]).set_index("row")["margin"]
    margins = left_out_margins(10, 0.5, grouped=True)
    assert np.allclose(found, margins[found.index - 1], atol=1e-6)


def test_long_names_fit_80_columns(run, frame, tmp_path):
    path = tmp_path / "long.csv"
    frame["colour"] = frame["colour"].map("of the second reading: {}".format)
    frame["name"] = frame["name"].map("sample {} of the second plate".format)
    frame[["name", "a", "b", "colour"]].to_csv(path, index=False)
    told = run("audit", path, "--target", "colour", "--id", "name", *MODEL).stdout
    assert "sample s…nd plate  of the s…ing: red" in told
    assert max(map(len, told.splitlines())) <= 80


def test_a_c_too_small_is_explained(run, table):
    told = run("loo", table, "--target", "colour", "--C", "1e-9", "--gamma", "1").stdout
    assert "\nAnti-learning: C is so small" in told


def test_bounds_of_the_chosen_classifier(ask, table, frame):
    report = ask("bounds", table, "--target", "colour")
    best = ask("select", table, "--target", "colour")["best"]
    chosen = {name: best[name] for name in ("C", "gamma")}
    assert report["parameters"] == chosen  # with every digit
    X, y = scale(frame[["a", "b"]]), frame["colour"]
    truth = lo.loo_bounds(lo.SVC(**chosen), X, y)
    found = {name: row["value"] for name, row in report["bounds"].items()}
    assert found == pytest.approx({row.name: row.value for row in truth.rows}, rel=1e-6)


def test_parameters_that_are_words_or_defaults(ask, table):
    how = ("loo", table, "--target", "colour")
    assert ask(*how, "--gamma", "scale")["model"].endswith(", gamma='scale')")
    how = (*how, "--kernel", "poly", *MODEL)
    found = ask(*how)["parameters"]
    assert found == {"C": 10.0, "gamma": 0.5, "degree": 3, "coef0": 0.0}
    found = ask(*how, "--degree", "2", "--coef0", "1")["parameters"]
    assert found == {"C": 10.0, "gamma": 0.5, "degree": 2, "coef0": 1.0}


@pytest.mark.parametrize("command", ["loo", "audit"])
def test_ids_keep_their_digits_and_a_heading_of_their_own(
    run, frame, tmp_path, command
):
    ids = ["", *(str(9007199254740993 + 2 * k) for k in range(23))]  # beyond 2^53
    path, out = tmp_path / "ids.csv", tmp_path / "out.csv"
    frame[["a", "b", "colour"]].assign(margin=ids).to_csv(path, index=False)
    run(command, path, "--target", "colour", "--id", "margin", *MODEL, "-o", out)
    found = pd.read_csv(out, dtype=str, keep_default_na=False)
    assert found.columns.is_unique
    assert set(found["margin (id)"]) <= set(ids)


@pytest.mark.parametrize("more", [[], ["--no-standardize"]])
def test_numbers_too_large_to_square_are_named(run, frame, tmp_path, more):
    path = tmp_path / "large.csv"
    frame.loc[3, "b"] = -1e200
    frame[["a", "b", "site", "colour"]].to_csv(path, index=False)
    told = run("loo", path, "--target", "colour", *MODEL, *more, code=1).stderr
    assert told.startswith("Error: Column 'b' has -1e+200 in row 4 of the file, too")
    path.write_text("1 1:1\n2 1:2\n1 2:1e300\n")
    told = run("loo", path, *MODEL, *more, code=1).stderr
    assert "Column '2' has 1e+300 in row 3" in told
