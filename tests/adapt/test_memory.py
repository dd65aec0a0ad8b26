# SPDX-License-Identifier: BSD-3-Clause
"""Gram matrices that do not fit are refused before they are made."""

import math
import re
import tracemalloc

import numpy as np
import pytest
import sklearn
from joblib import parallel_config
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leaveout as lo
from leaveout.adapt import _memory as _room
from leaveout.exceptions import GramTooLargeError, LeaveoutError

N = 50_000
X = np.random.default_rng(0).normal(size=(N, 3))
Y = np.arange(N) % 2
GIB_PER_MATRIX = 8 * N**2 / 2**30


@pytest.fixture
def memory(monkeypatch):
    """Set the memory that is found, in GiB."""

    def set_memory(gib):
        monkeypatch.setattr(_room, "available_memory", lambda: int(gib * 2**30))

    set_memory(16)
    return set_memory


CALLS = {
    "fit": (lambda: lo.SVC(gamma=0.3, C=2).fit(X, Y), 2),
    "sparse fit": (lambda: lo.SVC(gamma=0.3, C=2).fit(sparse.csr_array(X), Y), 2),
    "leave_one_out": (lambda: lo.leave_one_out(lo.SVC(gamma=0.3, C=2), X, Y), 3),
    "refit": (
        lambda: lo.leave_one_out(lo.SVC(gamma=0.3, C=2), X, Y, method="refit"),
        2,
    ),
    "consolidated": (
        lambda: lo.leave_one_out(lo.SVC(gamma=0.3, C=2), X, Y, method="consolidated"),
        12,
    ),
    "loo_path": (lambda: lo.loo_path(lo.SVC(gamma=0.3, C=2), X, Y, Cs=[1, 2]), 3),
    "suspects": (lambda: lo.suspects(lo.SVC(gamma=0.3, C=2), X, Y), 2),
    "search": (
        lambda: lo.LooSearchCV(lo.SVC(gamma=0.3), {"C": [2]}).fit(X, Y),
        3,
    ),
    "SVCCV": (lambda: lo.SVCCV(Cs=[2], gammas=[0.3]).fit(X, Y), 3),
}


@pytest.mark.parametrize("name", CALLS)
def test_refused_before_anything_is_allocated(memory, name):
    call, n_matrices = CALLS[name]
    tracemalloc.start()
    try:
        with pytest.raises(MemoryError) as caught:
            call()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(caught.value, LeaveoutError)
    message = str(caught.value)
    assert f"50000 rows needs {n_matrices * GIB_PER_MATRIX:.1f} GiB" in message
    assert "16.0 GiB are available" in message
    assert (
        "lo.FeatureSVC(features='nystroem', n_components=300, gamma=0.3, C=2)"
        ".fit(X, y)" in message
    )
    assert peak < 2e8 < GIB_PER_MATRIX * 2**30


def test_pipeline_with_frozen_steps(memory):
    pipeline = make_pipeline(StandardScaler(), lo.SVC(gamma=0.3))
    with pytest.raises(GramTooLargeError, match=r"needs 55.9 GiB"):
        lo.leave_one_out(pipeline, X, Y)
    with pytest.raises(GramTooLargeError, match=r"needs 55.9 GiB"):
        lo.LooSearchCV(pipeline, {"svc__C": [1, 2]}).fit(X, Y)


@pytest.mark.parametrize("machine", [lo.LPMClassifier, lo.LOOMClassifier])
def test_other_machines(memory, machine):
    with pytest.raises(GramTooLargeError, match=r"50000 rows needs 37.3 GiB"):
        machine(gamma=0.3).fit(X, Y)


def small(n=3000):
    return X[:n], Y[:n]


@pytest.mark.parametrize(
    ("gib", "fits"), [(2 * 8 * 3000**2 / 2**30 + 1e-6, True), (0.13, False)]
)
def test_limit_is_what_is_said(memory, gib, fits):
    memory(gib)
    svc = lo.SVC(gamma=0.3)
    if fits:
        svc.fit(*small())
    else:
        with pytest.raises(GramTooLargeError):
            svc.fit(*small())


def test_precomputed_matrix_is_there_already(memory):
    K = np.eye(3000)
    memory(1.5 * 8 * 3000**2 / 2**30)
    lo.SVC(kernel="precomputed").fit(K, small()[1])
    memory(0.5 * 8 * 3000**2 / 2**30)
    with pytest.raises(GramTooLargeError, match=r"\(1 matrices of 3000 x 3000\)"):
        lo.SVC(kernel="precomputed").fit(K, small()[1])


def test_nothing_is_refused_where_memory_is_not_told(monkeypatch):
    monkeypatch.setattr(_room, "available_memory", lambda: None)
    _room.check_memory(lo.SVC(), X, "walk")
    assert _room._available(2**40) == math.inf


@pytest.mark.parametrize(
    ("svc", "call"),
    [
        (lo.SVC(kernel="linear"), "FeatureSVC(features='linear', C=1)"),
        (lo.SVC(gamma="scale"), "n_components=300, gamma='scale', C=1)"),
        (
            lo.SVC(kernel="poly", degree=2, gamma=0.1, coef0=1),
            "Nystroem(kernel='poly', gamma=0.1, degree=2, coef0=1, n_components=300), ",
        ),
        (
            lo.SVC(kernel="laplacian", gamma="auto"),
            "Nystroem(kernel='laplacian', gamma=1 / X.shape[1], n_components=300), C=1",
        ),
    ],
)
def test_advice_knows_the_kernel(memory, svc, call):
    with pytest.raises(GramTooLargeError) as caught:
        svc.fit(X, Y)
    message = str(caught.value)
    assert call in message
    advice = re.search(r"lo\.FeatureSVC\(.*\)\.fit\(X, y\)", message)[0]
    advice = advice.replace("=300", "=20")
    names = {"lo": lo, "sklearn": sklearn, "X": X[:200], "y": Y[:200]}
    assert eval(advice, names).coef_.shape[0] == 1


def test_advice_of_a_search_has_its_grid(memory):
    grid = {"C": [0.1, 1, 10], "gamma": [0.5, 2]}
    with pytest.raises(GramTooLargeError) as caught:
        lo.LooSearchCV(lo.SVC(), grid).fit(X, Y)
    message = str(caught.value)
    assert (
        "gamma=gamma, C=[0.1, 1, 10]).fit(X, y) for each gamma in [0.5, 2]" in message
    )


def search(n_jobs):
    grid = {"gamma": [0.1, 0.2, 0.3, 0.4]}
    return lo.LooSearchCV(lo.SVC(), grid, n_jobs=n_jobs, refit=False)


def test_too_many_cells_at_a_time(memory):
    memory(2.5 * 3 * 8 * 5000**2 / 2**30)
    with pytest.raises(GramTooLargeError, match=r"4 cells .* need 2.2 GiB .*n_jobs=2"):
        search(8).fit(*small(5000))


def test_cells_of_a_cluster_are_not_counted_here(memory, monkeypatch):
    svcs = [lo.SVC(gamma=0.3)]
    how = {"n_cells": 4, "n_jobs": 4}
    monkeypatch.setattr(_room, "runs_here", lambda: False)
    _room.check_search_room(svcs, N, "auto", refit=False, **how)
    with pytest.raises(GramTooLargeError, match=r"\(2 matrices"):
        _room.check_search_room(svcs, N, "auto", refit=True, **how)


@pytest.mark.parametrize("backend", ["loky", "threading", "sequential"])
def test_backends_that_run_here(backend):
    with parallel_config(backend, n_jobs=2):
        assert _room.runs_here()
