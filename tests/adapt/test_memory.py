# SPDX-License-Identifier: BSD-3-Clause
"""Gram matrices that do not fit are refused before they are made."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leaveout as lo
from leaveout.adapt import _memory
from leaveout.exceptions import GramTooLargeError, LeaveoutError

N = 50_000
X = np.random.default_rng(0).normal(size=(N, 3))
Y = np.arange(N) % 2
GIB_PER_MATRIX = 8 * N**2 / 2**30
SVC = lo.SVC(gamma=0.3, C=2)
PIPELINE = make_pipeline(StandardScaler(), SVC)


@pytest.fixture
def memory(monkeypatch):
    """Set the memory that is found, in GiB."""

    def set_memory(gib):
        monkeypatch.setenv("LEAVEOUT_MEMORY_GIB", str(gib))

    set_memory(16)
    return set_memory


CALLS = {
    "fit": (lambda: lo.SVC().fit(X, Y), 2),
    "sparse fit": (lambda: lo.SVC().fit(sparse.csr_array(X), Y), 2),
    "LPM": (lambda: lo.LPMClassifier(gamma=0.3).fit(X, Y), 2),
    "LOOM": (lambda: lo.LOOMClassifier(gamma=0.3).fit(X, Y), 2),
    "leave_one_out": (lambda: lo.leave_one_out(SVC, X, Y), 3),
    "refit": (lambda: lo.leave_one_out(SVC, X, Y, method="refit"), 2),
    "consolidated": (lambda: lo.leave_one_out(SVC, X, Y, method="consolidated"), 12),
    "pipeline": (lambda: lo.leave_one_out(PIPELINE, X, Y), 3),
    "loo_path": (lambda: lo.loo_path(SVC, X, Y, Cs=[1, 2]), 3),
    "suspects": (lambda: lo.suspects(SVC, X, Y), 3),
    "search": (lambda: lo.LooSearchCV(PIPELINE, {"svc__C": [2]}).fit(X, Y), 3),
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
    assert "16.0 GiB are available. Use leaveout.FeatureSVC" in message
    assert peak < 2e8 < GIB_PER_MATRIX * 2**30


def test_limit_is_what_is_said(memory):
    n = 3000
    memory(2 * 8 * n**2 / 2**30 + 1e-6)
    lo.SVC(gamma=0.3).fit(X[:n], Y[:n])
    memory(2 * 8 * n**2 / 2**30 - 1e-6)
    with pytest.raises(GramTooLargeError):
        lo.SVC(gamma=0.3).fit(X[:n], Y[:n])


def test_precomputed_matrix_is_there_already(memory):
    K = np.eye(3000)
    memory(1.5 * 8 * 3000**2 / 2**30)
    lo.SVC(kernel="precomputed").fit(K, Y[:3000])
    memory(0.5 * 8 * 3000**2 / 2**30)
    with pytest.raises(GramTooLargeError, match=r"\(1 matrices of 3000 x 3000\)"):
        lo.SVC(kernel="precomputed").fit(K, Y[:3000])


def test_nothing_is_refused_where_memory_is_unknown(monkeypatch):
    monkeypatch.setattr(_memory, "available_memory", lambda: None)
    _memory.check_memory(SVC, X, "walk")


def test_too_many_candidates_at_a_time(memory):
    memory(2.5 * 3 * 8 * 5000**2 / 2**30)
    grid = {"gamma": [0.1, 0.2, 0.3, 0.4]}
    search = lo.LooSearchCV(lo.SVC(), grid, n_jobs=8, refit=False)
    with pytest.raises(GramTooLargeError, match=r"4 cand.* need 2.2 GiB .*n_jobs=2"):
        search.fit(X[:5000], Y[:5000])


def test_candidates_on_a_cluster_are_not_counted_here(memory, monkeypatch):
    monkeypatch.setattr(_memory, "runs_here", lambda: False)
    how = {"n_paths": 4, "n_jobs": 4}
    _memory.check_search_memory(SVC, N, "auto", refit=False, **how)
    with pytest.raises(GramTooLargeError, match=r"\(2 matrices"):
        _memory.check_search_memory(SVC, N, "auto", refit=True, **how)
