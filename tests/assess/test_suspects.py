# SPDX-License-Identifier: BSD-3-Clause
"""Suspects: ranking, table, and influence against refits."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

import leaveout as lo


def noisy(n=40, seed=0):
    return make_classification(n, 4, n_informative=2, flip_y=0.2, random_state=seed)


def iris_part():
    X, y = load_iris(return_X_y=True)
    rows = np.r_[0:8, 50:64, 100:114]
    return X[rows], np.array(["setosa", "versicolor", "virginica"])[y[rows]]


def margins_by_scikit_learn(model, X, y, at, labels):
    """Return margins at some samples: y f, or true class minus best other."""
    model.fit(X, y)
    values = model.decision_function(at)
    codes = np.searchsorted(model.classes_, labels)
    if values.ndim == 1:
        return np.where(codes == 1, 1, -1) * values
    rows = np.arange(len(at))
    own = values[rows, codes]
    values[rows, codes] = -np.inf
    return own - values.max(axis=1)


def brute_influence(model, X, y, rows):
    """Refit by LIBSVM without each row; mean change of the margins of the others."""
    found = []
    for r in rows:
        others = np.delete(np.arange(len(y)), r)
        X_o, y_o = X[others], y[others]
        with_r = margins_by_scikit_learn(model, X, y, X_o, y_o)
        without = margins_by_scikit_learn(model, X_o, y_o, X_o, y_o)
        found.append(np.mean(without - with_r))
    return np.array(found)


@pytest.mark.parametrize("C", [0.3, 20.0])
@pytest.mark.parametrize("case", ["binary", "one_vs_one", "one_vs_rest"])
def test_influence_equals_refits(case, C, monkeypatch):
    X, y = noisy() if case == "binary" else iris_part()
    model = SVC(C=C, gamma=0.4, tol=1e-10)
    if case == "one_vs_rest":
        model = OneVsRestClassifier(model)
    found = lo.suspects(model, X, y)
    wanted = brute_influence(model, X, y, found.rows)
    np.testing.assert_allclose(found.influence, wanted, atol=1e-6)
    assert np.abs(wanted).max() > 1e-3
    monkeypatch.setattr("leaveout.assess._suspects.VALUES_AT_A_TIME", 500)
    parts = lo.suspects(model, X, y, n_jobs=2)
    np.testing.assert_allclose(parts.influence, found.influence, atol=1e-10)


@pytest.mark.parametrize("one_vs_rest", [False, True])
def test_a_class_that_vanishes(one_vs_rest):
    X, y = iris_part()
    X, y = np.delete(X, range(1, 8), axis=0), np.delete(y, range(1, 8))
    model = SVC(C=2, gamma=0.4, tol=1e-10)
    model = OneVsRestClassifier(model) if one_vs_rest else model
    with pytest.warns(lo.SingletonClassWarning):
        found = lo.suspects(model, X, y)
    assert np.isfinite(found.influence).all()
    # Without row 0 scikit-learn has two classes and margins on another scale.
    others = np.flatnonzero(found.rows != 0)
    wanted = brute_influence(model, X, y, found.rows[others])
    np.testing.assert_allclose(found.influence[others], wanted, atol=1e-6)
    if one_vs_rest:  # two values of opposite sign remain; their difference is 2 f
        before = margins_by_scikit_learn(model, X, y, X[1:], y[1:])
        after = 2 * margins_by_scikit_learn(model, X[1:], y[1:], X[1:], y[1:])
        own = found.influence[found.rows == 0]
        np.testing.assert_allclose(own, np.mean(after - before), atol=1e-6)


def indefinite(A, B):
    return rbf_kernel(A, B, gamma=0.3) - 0.05 * (A[:, None] == B).all(axis=2)


def test_influence_by_refits_for_an_indefinite_kernel():
    X, y = noisy(30, 3)
    svc = SVC(kernel=indefinite, C=0.5, tol=1e-10)
    with pytest.warns(lo.CertificateWarning, match="not positive semi-definite"):
        found = lo.suspects(svc, X, y, top=6)
    wanted = brute_influence(svc, X, y, found.rows)
    np.testing.assert_allclose(found.influence, wanted, atol=1e-6)


def test_ranking_and_table():
    X, y = noisy(60, 4)
    result = lo.leave_one_out(SVC(gamma=0.2), X, y)
    found = lo.suspects(SVC(gamma=0.2), X, y)
    assert (np.diff(found.margins) >= 0).all()
    np.testing.assert_array_equal(np.sort(found.rows), np.arange(60))
    for name in ("margins", "lower", "upper", "ambiguous", "predictions"):
        wanted = getattr(result, name)[found.rows]
        np.testing.assert_array_equal(getattr(found, name), wanted)
    np.testing.assert_array_equal(found.labels, y[found.rows])
    np.testing.assert_array_equal(found.flagged, result.wrong[found.rows])
    assert found.error == result.error
    two = lo.suspects(SVC(gamma=0.2), X, y, top=2)
    assert two.n_flagged == result.wrong.sum() > 2
    assert f"contradicts {two.n_flagged} of 60 labels; 2 samples listed" in str(two)
    assert str(found).endswith("\n… 40 more")  # no marks to be explained
    first = np.arange(60) == 0
    marked = str(replace(found, ambiguous=first, certified=~first))
    assert "\n* ambiguous: another optimal intercept gives another label" in marked
    assert "\n? not certified: rounding may have changed the label" in marked


def test_ids():
    X, y = noisy(20, 6)
    svc = SVC(gamma=0.2)
    names = [f"patient {i}" for i in range(20)]
    plain = lo.suspects(svc, X, y)
    np.testing.assert_array_equal(plain.ids, plain.rows)
    wanted = [names[r] for r in plain.rows]
    named = lo.suspects(svc, pd.DataFrame(X, index=names), y)
    assert named.ids.tolist() == wanted
    assert named.to_frame().loc[wanted[3], "margin"] == plain.margins[3]
    assert lo.suspects(svc, X, y, ids=names).ids.tolist() == wanted
    pairs = pd.DataFrame(X, index=pd.MultiIndex.from_product([list("ab"), range(10)]))
    assert lo.suspects(svc, pairs, y).ids[0] == pairs.index[plain.rows[0]]
    with pytest.raises(ValueError, match="ids has 3 entries, but X has 20 rows"):
        lo.suspects(svc, X, y, ids=[1, 2, 3])
    with pytest.raises(ValueError, match="top must be at least 1; got 0"):
        lo.suspects(svc, X, y, top=0)


def test_absent_samples_do_not_count_as_others():
    X, y = noisy(30, 9)
    present = ~np.isin(np.arange(30), [2, 9])
    found = lo.suspects(SVC(C=2, gamma=0.3), X, y, sample_weight=present)
    part = lo.suspects(SVC(C=2, gamma=0.3), X[present], y[present])
    wanted = np.zeros(30)
    wanted[np.flatnonzero(present)[part.rows]] = part.influence
    np.testing.assert_allclose(found.influence, wanted[found.rows], atol=1e-9)


def test_groups_are_left_out_together():
    X, y = noisy(20, 11)
    X, y, pair = np.repeat(X, 2, axis=0), np.repeat(y, 2), np.repeat(np.arange(20), 2)
    X[1::2] += 0.01
    y[:2] = 1 - y[0]  # two replicates with the same wrong label
    model = SVC(C=100, gamma=1.0, tol=1e-10)
    alone = lo.suspects(model, X, y)
    found = lo.suspects(model, X, y, groups=pair)
    values = cross_val_predict(
        model, X, y, groups=pair, cv=LeaveOneGroupOut(), method="decision_function"
    )
    margins = np.where(y == 1, 1, -1) * values
    # LIBSVM stores kernel values in single precision.
    np.testing.assert_allclose(found.margins, margins[found.rows], rtol=1e-5)
    assert {0, 1} <= set(found.rows[found.flagged])
    assert not {0, 1} & set(alone.rows[alone.flagged])
    one_by_one = dict(zip(alone.rows, alone.influence, strict=True))
    assert found.influence.tolist() == [one_by_one[r] for r in found.rows]
