# SPDX-License-Identifier: BSD-3-Clause
"""When a walk fails it is noticed, mended by a refit, and counted: never silent."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.agreement import assert_intervals
from oracles.binary import loo_intervals
from oracles.problems import gram
from solved import loo_walk

from leaveout.engine import _walk
from leaveout.engine._problem import SETTLED_BY, Problem
from leaveout.engine._solve import solve_svc
from leaveout.engine._walk import Tableau

REFIT = SETTLED_BY.index("refit")
# Where the outputs of run_walks stand among its arguments.
STATUS, ROWS_VALUE = -3, -6


@pytest.fixture(scope="module")
def case_and_truth():
    """Noisy points without copies: every support vector has a walk of its own."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 2))
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=40) > 0, 1.0, -1.0)
    case = (gram(X, "rbf"), y, np.full(40, 2.0), True)
    return case, loo_intervals(*case)


@pytest.fixture
def columns_by_product(monkeypatch):
    """All columns come from Tableau.write_columns, none from inside the kernel."""
    monkeypatch.setattr(_walk, "ON_DEMAND", 0)


def assert_mended(case_and_truth, n_refits):
    """Answers as ever, n_refits of them by refit and said so."""
    (K, y, C, fit_intercept), truth = case_and_truth
    loo = loo_walk(Problem(K, y, C, fit_intercept))
    assert_intervals(loo, y, truth)
    assert loo.certified.all()
    assert loo.counts["refits"] == n_refits
    assert (loo.settled_by == REFIT).sum() == n_refits
    return loo


def count_walks(case):
    loo = loo_walk(Problem(*case))
    assert loo.counts["refits"] == 0
    return int(loo.counts["walks"])


def fail_with(monkeypatch, status, every=1):
    """Make every so-many-th walk end with a status, its value spoilt."""
    original = _walk.run_walks

    def run(*args):
        original(*args)
        done = np.flatnonzero(args[STATUS] == _walk.Status.DONE)
        args[STATUS][done[::every]] = status
        args[ROWS_VALUE][done[::every]] = np.nan

    monkeypatch.setattr(_walk, "run_walks", run)


@pytest.mark.parametrize("status", [_walk.Status.FAILED, _walk.Status.STUCK])
def test_failed_walks_are_refitted(monkeypatch, case_and_truth, status):
    n_walks = count_walks(case_and_truth[0])
    fail_with(monkeypatch, status)
    loo = assert_mended(case_and_truth, n_walks)
    assert loo.counts["walks"] == 0


def test_some_failed_walks_are_refitted(monkeypatch, case_and_truth):
    n_walks = count_walks(case_and_truth[0])
    fail_with(monkeypatch, _walk.Status.FAILED, every=3)
    loo = assert_mended(case_and_truth, -(-n_walks // 3))
    assert loo.counts["walks"] == n_walks - loo.counts["refits"]


def test_walks_without_room_get_more_room(monkeypatch, case_and_truth):
    monkeypatch.setattr(_walk, "CAPACITIES", (1, 512))
    assert_mended(case_and_truth, 0)


def test_walks_that_stay_too_long_are_refitted(monkeypatch, case_and_truth):
    monkeypatch.setattr(_walk, "CAPACITIES", (1,))
    loo = loo_walk(Problem(*case_and_truth[0]))
    assert loo.counts["refits"] > 0
    assert_mended(case_and_truth, loo.counts["refits"])


def test_singular_tableau_refits_everything(monkeypatch, case_and_truth):
    n_walks = count_walks(case_and_truth[0])

    def build(*args):
        raise np.linalg.LinAlgError("singular")

    monkeypatch.setattr(_walk, "build_tableau", build)
    assert_mended(case_and_truth, n_walks)


@pytest.mark.usefixtures("columns_by_product")
@pytest.mark.parametrize("size", [1e-2, 1e-5, 1e-7])
def test_wrong_columns_are_noticed(monkeypatch, case_and_truth, size):
    """Noise in the tableau cannot pass the check at the end of a walk."""
    original = Tableau.write_columns
    noise = np.random.default_rng(0)

    def write(self, indices, out, n_threads):
        original(self, indices, out, n_threads)
        out += size * noise.normal(size=out.shape)

    monkeypatch.setattr(Tableau, "write_columns", write)
    (K, y, C, fit_intercept), truth = case_and_truth
    loo = loo_walk(Problem(K, y, C, fit_intercept))
    assert_intervals(loo, y, truth)
    assert loo.counts["refits"] > 0
    assert loo.certified.all()


def test_wrong_start_is_not_certified(case_and_truth):
    """From a solution that is no optimum nothing is called certified."""
    problem = Problem(*case_and_truth[0])
    solution = replace(solve_svc(problem), converged=False)
    loo = loo_walk(problem, solution=solution)
    assert not loo.certified.any()


def test_start_with_a_singular_margin(rng):
    """Both copies of a point free: an optimum, but not one to walk from."""
    rows = np.append(np.arange(20), np.arange(20))
    X, y = rng.normal(size=(20, 2)), np.resize([1.0, -1.0], 20)
    K = gram(X, "rbf")
    half = solve_svc(Problem(K, y, np.full(20, 4.0)))
    case = (K[np.ix_(rows, rows)], y[rows], np.full(40, 2.0), True)
    solution = replace(
        half,
        beta=half.beta[rows] / 2,
        state=half.state[rows],
        decision_values=half.decision_values[rows],
    )
    assert half.free.sum() > 2
    loo = loo_walk(Problem(*case), solution=solution)
    assert_intervals(loo, case[1], loo_intervals(*case))
    assert loo.certified.all()
