# SPDX-License-Identifier: BSD-3-Clause
"""Small C: multiples of one solution, and classifiers that are constant."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from many_rows import ManyRows, assert_no_proof_is_wrong, draw

import leaveout as lo
from leaveout.data import make_mixture
from leaveout.engine._problem import Problem
from leaveout.engine._solve import solve_svc
from leaveout.large import _feature_svc
from leaveout.large._small_c import ConstantOptimum

CONSTANT = "ignore::leaveout.AntiLearningWarning"


@pytest.fixture
def paths(monkeypatch):
    """All paths that were solved."""
    found, solve = [], _feature_svc.solve_linear

    def keep(*args, **options):
        found.append(solve(*args, **options))
        return found[-1]

    monkeypatch.setattr(_feature_svc, "solve_linear", keep)
    return found


def primal(Z, y, C, w, b):
    hinge = np.maximum(0.0, 1.0 - (2.0 * y - 1.0) * (Z @ w + b))
    return 0.5 * w @ w + C * hinge.sum()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("share", [0.5, 0.52, 0.7, 0.9])
def test_one_solution_gives_those_of_all_smaller_c(paths, share, seed):
    X, y = draw(np.random.default_rng(seed), 200, 3, noise=0.5, first=1.0 - share)
    Cs = np.geomspace(1e-7, 1e-1, 13)
    clf = ManyRows("linear", C=Cs)
    # Let the sample hold all rows, so that these are centred at their mean.
    clf._sizes = replace(clf._sizes, largest_sample=1000)
    clf.fit(X, y)
    (path,) = paths
    assert path.solved.size < 10
    Z = X - X.mean(axis=0)
    for k, C in enumerate(Cs):
        best = solve_svc(Problem(Z @ Z.T, 2.0 * y - 1.0, np.full(200, C)))
        *W, b = path.problems.points[k]
        found = primal(Z, y, C, np.array(W), b)
        np.testing.assert_allclose(found, best.objective, rtol=1e-12)
        np.testing.assert_allclose(clf.path_["objective"][k], found, rtol=1e-12)
        np.testing.assert_allclose(W, best.beta @ Z, atol=1e-10 * C * 200)
        np.testing.assert_allclose(b, best.intercept, atol=1e-9)


def overlapping(seed, n_heavy=90, n_light=20, far=0.3):
    """The lighter class lies within the heavier one, or at its border."""
    rng = np.random.default_rng(seed)
    heavy, light = rng.normal(size=(n_heavy, 2)), 0.4 * rng.normal(size=(n_light, 2))
    light[:, 0] += far * (seed % 6)
    return np.vstack([heavy, light]), np.repeat([0, 1], [n_heavy, n_light])


@pytest.mark.filterwarnings(CONSTANT)
@pytest.mark.parametrize("seed", range(18))
def test_constant_classifiers_are_found_and_only_these(paths, seed):
    X, y = overlapping(seed)
    weights = np.random.default_rng(seed).uniform(0.5, 1.5, len(y))
    weights = weights if seed % 2 else None
    for C in (1e-3, 1.0, 30.0):
        clf = ManyRows("linear", C=C).fit(X, y, weights)
        svc = lo.SVC(kernel="linear", C=C)
        how = {"sample_weight": weights, "score_sample_weight": weights}
        loo = lo.leave_one_out(svc, X, y, method="refit", **how)
        w = svc.fit(X, y, weights).coef_
        constant = isinstance(paths[-1].optima[0], ConstantOptimum)
        assert constant == (np.abs(w).max() < 1e-9)
        np.testing.assert_allclose(clf.coef_, w, atol=1e-7)
        assert_no_proof_is_wrong(clf, y, loo, weights)
        if constant:
            # The loss is that of b = s; rows without which it changes may stay open.
            light = paths[-1].problems.light[0]
            assert clf.objective_[0] == pytest.approx(2.0 * C * light)
            assert clf.loo_proved_[y == 1].all()
            assert clf.loo_proved_.mean() > 0.9


@pytest.mark.filterwarnings(CONSTANT)
def test_resumed_fit_keeps_its_constant_pair(paths, tmp_path):
    X, y = overlapping(0, 200, 30)
    far = np.random.default_rng(0).normal(size=(60, 2)) + 4.0
    X, y = np.vstack([X, far]), np.append(y, np.full(60, 2))
    svc = ManyRows("linear", C=[0.01, 0.1, 1.0], checkpoint=tmp_path / "fit.db")
    first = svc.fit(X, y)
    coef, labels, n_passes = first.coef_, first.loo_labels_, first.n_passes_
    again = svc.fit(X, y)
    assert again.n_passes_ < n_passes
    np.testing.assert_allclose(again.coef_, coef, atol=1e-9)
    np.testing.assert_array_equal(again.loo_labels_, labels)
    for path in paths:
        kinds = [isinstance(optimum, ConstantOptimum) for optimum in path.optima]
        assert kinds == [True, False, False] * 3


@pytest.mark.filterwarnings(CONSTANT)
def test_constant_classifier_is_found_although_a_sample_is_separated(paths):
    rng, n = np.random.default_rng(1), 6000
    y = (np.arange(n) >= 0.8 * n).astype(int)
    X = rng.normal(size=(n, 10))
    X[:, 0] += 1.3 * y
    order = rng.permutation(n)
    svc = lo.FeatureSVC(n_components=30, C=[1e-3, 1e-2], random_state=0)
    clf = svc.fit(X[order], y[order])
    assert all(isinstance(each, ConstantOptimum) for each in paths[0].optima)
    assert clf.loo_error_ == (0.2, 0.2)
    assert clf.n_passes_ <= 20


def test_message_names_the_class_and_the_way_out():
    X, y = overlapping(0, 400, 40)
    names = np.array(["benign", "malignant"])[y]
    match = r"predicts 'benign' for every row at every C: .* Set class_weight"
    for make in (ManyRows, lo.FeatureSVC):
        with pytest.warns(lo.AntiLearningWarning, match=match) as told:
            clf = make("linear", C=[0.1, 1.0]).fit(X, names)
        assert told[0].filename == __file__
        assert (clf.predict(X) == "benign").all()
        assert clf.loo_error_ == (40 / 440, 40 / 440)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lo.FeatureSVC("linear", C=[0.1, 1.0], class_weight="balanced").fit(X, names)


@pytest.mark.filterwarnings(CONSTANT)
@pytest.mark.parametrize("share", [0.5, 0.5006, 0.52, 0.7, 0.95])
def test_passes_do_not_depend_on_the_class_proportions(share):
    n, n_first = 10_000, round(10_000 * share)
    X, y = make_mixture(20_000, random_state=0)
    keep = [np.flatnonzero(y == 1)[:n_first], np.flatnonzero(y == 0)[: n - n_first]]
    keep = np.sort(np.concatenate(keep))
    Cs = 1.0 / (2.0 * n * np.exp(np.linspace(6.0, -6.0, 20)))
    clf = lo.FeatureSVC(n_components=30, C=Cs, random_state=0).fit(X[keep], y[keep])
    assert clf.n_passes_ <= 20
    assert clf.path_["duality_gap"].max() < 1e-12
