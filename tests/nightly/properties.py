# SPDX-License-Identifier: BSD-3-Clause
"""What must hold for every data set, over the public API; each takes a seed.

tests/test_properties.py tries a few seeds, and more every night; ``make fuzz`` draws
new ones until its time is up. A check returns how many samples it compared.
"""

from __future__ import annotations

import warnings

import numpy as np
import sklearn.svm
from nightly.stress import ALLOWED, METHODS, draw, judge, truth_of
from oracles.agreement import deviation
from oracles.binary import loo_intervals
from oracles.problems import random_case
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score

import leaveout as lo

# Ends of an interval nearer to 0 than this have no sign that rounding leaves alone.
ROUNDING = 1e-8


def _samples(seed, n_classes=2):
    """X, y and an SVC: numbers or a grid with ties, any kernel, C over 7 decades."""
    rng = np.random.default_rng([seed, 13])
    n = int(rng.integers(2 * n_classes + 2, 26))
    X = rng.normal(size=(n, int(rng.integers(1, 4))))
    if rng.random() < 0.4:
        X = np.round(X)
    y = rng.permutation(np.arange(n) % n_classes)
    y = np.where(
        rng.random(n) < 0.6, np.argsort(np.argsort(X[:, 0])) * n_classes // n, y
    )
    y[: 2 * n_classes] = np.arange(2 * n_classes) % n_classes
    svc = lo.SVC(
        C=float(10 ** rng.uniform(-3, 4)),
        kernel=str(rng.choice(["linear", "rbf", "laplacian"])),
        gamma=float(10 ** rng.uniform(-2, 1)),
        fit_intercept=bool(rng.random() < 0.75),
    )
    return rng, X, y, svc


def _leave_out(svc, *data, **options):
    return lo.leave_one_out(svc, *data, **options)


def _with_penalty(svc, C):
    return lo.SVC(**{**svc.get_params(), "C": C})


def _decided(result):
    """Samples whose label neither another optimum nor rounding changes."""
    return result.certified & ~result.ambiguous & (np.abs(result.margins) > ROUNDING)


def _assert_same(found, wanted, what):
    """Labels where both are decided, margins and intervals everywhere."""
    both = _decided(found) & _decided(wanted)
    assert (found.wrong == wanted.wrong)[both].all(), f"{what}: another label"
    for name in ("margins", "lower", "upper"):
        apart = deviation(getattr(found, name), getattr(wanted, name))
        assert apart.max() <= 1e-6, f"{what}: {name} differ by {apart.max():.1e}"
    return int(both.sum())


def _rows(result, rows):
    """Return the same result in another order, or of some rows."""
    parts = ("decision_values", "predictions", "y", "margins", "lower", "upper")
    flags = ("ambiguous", "settled_by", "uncertified_by")
    taken = {name: getattr(result, name)[rows] for name in (*parts, *flags)}
    return lo.LooResult(**taken, method=result.method, counts=result.counts)


def labels_renamed(seed):
    """Another name for each class, in the other order: the same margins."""
    _, X, y, svc = _samples(seed)
    flipped = _leave_out(svc, X, np.where(y == 0, "z", "a"))
    return _assert_same(flipped, _leave_out(svc, X, y), "labels flipped")


def features_scaled(seed):
    """x -> s x with gamma or C to match: the same classifier."""
    rng, X, y, svc = _samples(seed)
    s = float(10.0 ** rng.uniform(-30, 30))
    scaled = svc.get_params()
    if svc.kernel == "linear":
        scaled["C"] = svc.C / s / s
    else:
        scaled["gamma"] = svc.gamma / (s * s if svc.kernel == "rbf" else s)
    return _assert_same(
        _leave_out(lo.SVC(**scaled), s * X, y), _leave_out(svc, X, y), "features scaled"
    )


def rows_permuted(seed):
    """The order of the samples, for three classes."""
    rng, X, y, svc = _samples(seed, 3)
    order = rng.permutation(len(y))
    found = _leave_out(svc, X[order], y[order])
    wanted = _rows(_leave_out(svc, X, y), order)
    both = _decided(found) & _decided(wanted)
    assert (found.predictions == wanted.predictions)[both].all()
    return int(both.sum())


def weights_are_boxes(seed):
    """Weights times s with C / s: the same upper bounds. Weight 0: as if absent."""
    rng, X, y, svc = _samples(seed)
    weights = 10.0 ** rng.uniform(-2, 2, len(y))
    zero = rng.random(len(y)) < 0.2
    zero[:4] = False
    kept = np.flatnonzero(~zero)
    s = float(2.0 ** rng.integers(-30, 30))
    whole = _leave_out(
        _with_penalty(svc, svc.C / s),
        X,
        y,
        sample_weight=np.where(zero, 0.0, s * weights),
    )
    part = _leave_out(svc, X[kept], y[kept], sample_weight=weights[kept])
    return _assert_same(_rows(whole, kept), part, "weights")


def copies_share_a_box(seed):
    """A sample given twice with half its weight: the others see no difference."""
    _, X, y, svc = _samples(seed)
    twice = np.append(np.arange(len(y)), len(y) - 1)
    weights = np.ones(len(twice))
    weights[-2:] = 0.5
    found = _leave_out(svc, X[twice], y[twice], sample_weight=weights)
    others = np.arange(len(y) - 1)
    return _assert_same(
        _rows(found, others), _rows(_leave_out(svc, X, y), others), "copies"
    )


def margins_fall(seed):
    """h without r is at most h with r, for support vectors; equal if alpha is 0."""
    _, X, y, svc = _samples(seed)
    found = _leave_out(svc, X, y)
    svc.fit(X, y)
    sign = np.where(y == 1, 1.0, -1.0)
    full = sign * svc.decision_function(X)
    support = np.zeros(len(y), dtype=bool)
    support[svc.support_] = True
    unique = found.lower == found.upper
    slack = 1e-7 * np.maximum(1.0, np.abs(full))
    assert (found.lower <= full + slack)[support].all()
    if unique.all():
        assert (np.abs(found.margins - full) <= slack)[~support].all()
    return len(y)


def methods_agree(seed):
    """All methods: the same decided labels; those with values, the same values."""
    _, X, y, svc = _samples(seed)
    results = {m: _leave_out(svc, X, y, method=m) for m in METHODS}
    compared = 0
    for name, found in results.items():
        both = _decided(found) & _decided(results["walk"])
        assert (found.wrong == results["walk"].wrong)[both].all(), name
        if name != "stopping":
            compared += _assert_same(found, results["walk"], name)
    return compared


def three_classes_agree(seed):
    """The same for one-vs-one votes, and against refits by LIBSVM."""
    _, X, y, svc = _samples(seed, 3)
    svc = lo.SVC(**{**svc.get_params(), "fit_intercept": True})
    found = _leave_out(svc, X, y)
    for name in ("stopping", "consolidated"):
        other = _leave_out(svc, X, y, method=name)
        both = _decided(found) & _decided(other)
        assert (found.predictions == other.predictions)[both].all(), name
    if svc.kernel == "laplacian" or svc.C > 100:
        return len(y)
    peer = sklearn.svm.SVC(
        C=svc.C, kernel=svc.kernel, gamma=svc.gamma, tol=1e-6, max_iter=20_000
    )
    compared = 0
    for r in np.flatnonzero(_decided(found)):
        near = np.abs(found.binary_values[r]).min() < 1e-4
        rest = np.delete(np.arange(len(y)), r)
        if near or len(np.unique(y[rest])) < 3:
            continue  # LIBSVM's own accuracy decides
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            peer.fit(X[rest], y[rest])
        if peer.fit_status_ == 0:  # else it stalled, which it does on ties
            assert peer.predict(X[r : r + 1])[0] == found.predictions[r], r
            compared += 1
    return compared


def intervals_hold_refits(seed):
    """Every interval is that of an interior point's refit."""
    case = random_case(np.random.default_rng([seed, 17]), max_n=14)
    svc = lo.SVC(kernel="precomputed", fit_intercept=case.fit_intercept)
    found = _leave_out(svc, case.K, case.y, sample_weight=case.C)
    truth = loo_intervals(*case)
    sure = truth.kkt <= 1e-11
    for name, wanted in (("lower", truth.low), ("upper", truth.high)):
        assert deviation(getattr(found, name)[sure], wanted[sure]).max(initial=0) < 1e-6
    return int(sure.sum())


def bounds_bound(seed):
    """What is called a bound is not smaller than the exact error."""
    _, X, y, svc = _samples(seed)
    table = lo.loo_bounds(svc, X, y)
    found = _leave_out(svc, X, y)
    certain = float(np.mean(found.wrong & ~found.ambiguous))
    for row in table.rows:
        if row.kind == "bound":
            assert row.value >= certain - 1e-12, row.name
    return len(y)


def path_is_its_points(seed):
    """loo_path and LooSearchCV: at each C what leave_one_out says."""
    rng, X, y, svc = _samples(seed)
    Cs = np.sort(10.0 ** rng.uniform(-4, 4, 4))
    path = lo.loo_path(svc, X, y, Cs=Cs)
    compared = sum(
        _assert_same(path[k], _leave_out(_with_penalty(svc, float(C)), X, y), f"C={C}")
        for k, C in enumerate(Cs)
    )
    search = lo.LooSearchCV(svc, {"C": Cs.tolist()}, refit=False).fit(X, y)
    scores = [accuracy_score(y, result.predictions) for result in path.results]
    assert np.allclose(search.cv_results_["mean_test_score"], scores)
    return compared


def stressed(seed):
    """Extreme problems against exact arithmetic: never a wrong certificate."""
    drawn = draw(seed)
    if drawn is None:
        return 0
    kind, case = drawn
    truths = truth_of(case)
    svc = lo.SVC(kernel="precomputed", fit_intercept=case.fit_intercept)
    for method in METHODS:
        found = _leave_out(svc, case.K, case.y, sample_weight=case.C, method=method)
        words = judge(found, truths, near=kind == "nearly_equal")
        assert set(words) <= set(ALLOWED), f"{kind}, {method}: {words}"
    return len(METHODS) * len(truths)


PROPERTIES = {
    check.__name__: check
    for check in (
        labels_renamed,
        features_scaled,
        rows_permuted,
        weights_are_boxes,
        copies_share_a_box,
        margins_fall,
        methods_agree,
        three_classes_agree,
        intervals_hold_refits,
        bounds_bound,
        path_is_its_points,
        stressed,
    )
}
