# SPDX-License-Identifier: BSD-3-Clause
"""Gram matrices that do not fit into memory are refused before allocation."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leaveout as lo
from leaveout.adapt import _checks
from leaveout.exceptions import GramTooLargeError, LeaveoutError

N = 50_000
X = np.random.default_rng(0).normal(size=(N, 3))
Y = np.arange(N) % 2
GIB_PER_MATRIX = 8 * N**2 / 2**30
SVC = lo.SVC(gamma=0.3, C=2)
PIPELINE = make_pipeline(StandardScaler(), SVC)


@pytest.fixture
def memory(monkeypatch):
    """Set the available memory, in GiB."""
    return lambda gib: monkeypatch.setenv("LEAVEOUT_MEMORY_GIB", str(gib))


CALLS = {
    "sparse fit": (lambda: lo.SVC().fit(sparse.csr_array(X), Y), 2),
    "consolidated": (lambda: lo.leave_one_out(SVC, X, Y, method="consolidated"), 12),
    "pipeline": (lambda: lo.leave_one_out(PIPELINE, X, Y), 3),
    "SVCCV": (lambda: lo.SVCCV(Cs=[2], gammas=[0.3]).fit(X, Y), 3),
}


@pytest.mark.parametrize("name", CALLS)
def test_refused_before_allocation(memory, name):
    call, n_matrices = CALLS[name]
    memory(16)
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


@pytest.mark.parametrize(("kernel", "n_matrices"), [("rbf", 2), ("precomputed", 1)])
def test_limit_equals_the_message(memory, kernel, n_matrices):
    svc, samples = lo.SVC(kernel=kernel), X[:3000] if kernel == "rbf" else np.eye(3000)
    needed = n_matrices * 8 * 3000**2 / 2**30
    memory(needed + 1e-6)
    svc.fit(samples, Y[:3000])
    memory(needed - 1e-6)
    with pytest.raises(GramTooLargeError, match=rf"\({n_matrices} matrices of 3000 x"):
        svc.fit(samples, Y[:3000])


def test_too_many_parallel_candidates(memory):
    memory(2.5 * 3 * 8 * 5000**2 / 2**30)
    grid = {"gamma": [0.1, 0.2, 0.3, 0.4]}
    search = lo.LooSearchCV(lo.SVC(), grid, n_jobs=8, refit=False)
    with pytest.raises(
        GramTooLargeError, match=r"4 parallel cand.* need 2.2 GiB .*n_jobs=2"
    ):
        search.fit(X[:5000], Y[:5000])


def test_candidates_on_a_cluster_are_not_counted(memory, monkeypatch):
    memory(16)
    monkeypatch.setattr(_checks, "runs_here", lambda: False)
    how = {"n_paths": 4, "n_jobs": 4}
    _checks.check_search_memory(SVC, N, "auto", refit=False, **how)
    with pytest.raises(GramTooLargeError, match=r"\(2 matrices"):
        _checks.check_search_memory(SVC, N, "auto", refit=True, **how)
    monkeypatch.setattr(_checks, "available_memory", lambda: None)  # unknown
    _checks.check_memory(SVC, X, "walk")
