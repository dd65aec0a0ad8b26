# SPDX-License-Identifier: BSD-3-Clause
"""Loops over threads and processes: order, errors, Ctrl-C, BLAS, same bits.

Dask and Ray are tested in tests/nightly/test_clusters.py.
"""

import multiprocessing
import os
import sys
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from datasets import make_class_blobs
from threadpoolctl import threadpool_info, threadpool_limits

import leaveout as lo
from leaveout.data import make_mixture
from leaveout.methods import METHODS
from leaveout.run import _parallel
from leaveout.run._parallel import (
    limit_blas,
    map_chunks,
    map_parallel,
    map_worthwhile,
    sum_in_order,
)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("where", ["caller", "helper"])
def test_error_and_ctrl_c_reach_the_caller_and_end_the_loop(where, error):
    both = threading.Barrier(2, timeout=20)
    done = []

    def fail(part):
        if part.start < 2:
            both.wait()
            in_caller = threading.current_thread() is threading.main_thread()
            if in_caller == (where == "caller"):
                raise error
        done.append(part.start)
        time.sleep(0.01)

    with pytest.raises(error):
        map_chunks(fail, 50, n_threads=2, size=1)
    so_far = len(done)
    time.sleep(0.05)
    assert len(done) == so_far < 49


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.filterwarnings("ignore:This process")
def test_fork_has_its_own_threads_and_limits():
    def work():
        both = threading.Barrier(2, timeout=20)  # two threads work at a time
        with limit_blas(1):
            map_chunks(lambda part: both.wait(), 2, n_threads=2, size=1)

    work()
    with limit_blas(1):
        child = multiprocessing.get_context("fork").Process(target=work)
        child.start()
        child.join(20)
    assert child.exitcode == 0


class Total:
    def __init__(self, value):
        self.value = value

    def add(self, other):
        self.value = self.value + other.value


def test_sums_are_taken_in_order_up_to_an_error(rng):
    parts = list(rng.standard_normal((30, 7)) * 10.0 ** rng.integers(-8, 8, (30, 1)))
    sums = [sum_in_order(Total, parts, n).value.tobytes() for n in (1, 2, 3)]
    assert sums[0] == sums[1] == sums[2]
    with pytest.raises(ValueError, match="no rows"):
        sum_in_order(Total, [], 1)
    seen = []
    with pytest.raises(ZeroDivisionError):
        sum_in_order(lambda x: seen.append(x) or Total(6 // (x - 3)), range(1000), 2)
    assert len(seen) < 20


def test_cancelled_work_is_reported_as_a_lost_cluster():
    def lose(i):
        raise CancelledError("scheduler-connection-lost.")

    with (
        joblib.parallel_config("threading"),
        pytest.raises(lo.ClusterLostError, match=r"connection-lost\. Start it"),
    ):
        list(map_parallel(lose, [(1,), (2,)], n_jobs=2))


def test_backend_without_generators_works_in_rounds(monkeypatch):
    """Ray's backend, for example, returns results only in a list."""
    backend = joblib.parallel.ThreadingBackend
    monkeypatch.setattr(backend, "supports_return_generator", False)
    done = []
    with joblib.parallel_config("threading", n_jobs=2):
        results = map_parallel(done.append, [(i,) for i in range(10)], n_jobs=2)
        next(results)
        assert sorted(done) == list(range(4))
        assert len(list(results)) == 9


def blas_now():
    """Return the number of threads of each BLAS in this process."""
    return [i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"]


def test_limits_of_blas_overlap_in_any_order_and_any_thread():
    def work(_):
        with limit_blas(1):
            return blas_now()

    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(1) as pool:
        first, second = limit_blas(2), limit_blas(1)
        first.__enter__()
        second.__enter__()
        assert set(blas_now()) == {1}  # the smallest limit holds
        first.__exit__(None, None, None)
        assert set(blas_now()) == {1}
        second.__exit__(None, None, None)
        assert set(blas_now()) == {2}
        # threadpoolctl 3.8 obeys only the first thread that sets a limit.
        assert set(*pool.map(work, [0])) == {1}
        assert set(blas_now()) == {2}


X, Y = make_mixture(90, 12, random_state=0)
X3, Y3 = make_class_blobs(60, n_classes=3, separation=1.5, random_state=0)
SVC = lo.SVC(C=3.0, gamma=0.05)
LPM = lo.LPMClassifier(C=3.0, gamma=0.05)
LLW = lo.LLWClassifier(C=3.0, gamma=0.05)


def leave_out(model, X, y, **how):
    return lo.leave_one_out(model, X, y, **how).decision_values


FUNCTIONS = {
    **{m: lambda n, m=m: leave_out(SVC, X, Y, method=m, n_jobs=n) for m in METHODS},
    "classes": lambda n: leave_out(SVC, X3, Y3, n_jobs=n),
    "groups": lambda n: leave_out(SVC, X, Y, groups=np.arange(90) // 2, n_jobs=n),
    "LPM": lambda n: leave_out(LPM, X[:50], Y[:50], n_jobs=n),
    "LLW": lambda n: leave_out(LLW, X3[:9], Y3[:9], n_jobs=n),
    "curve": lambda n: lo.loo_curve(SVC, X, Y, C_min=0.1, n_jobs=n).breakpoints,
    "pairs": lambda n: lo.leave_pair_out_auc(SVC, X, Y, n_jobs=n).wins,
    "suspects": lambda n: lo.suspects(SVC, X, Y, n_jobs=n).influence,
}


@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_same_bits_for_any_n_jobs(name):
    one = np.asarray(FUNCTIONS[name](1)).tobytes()
    with threadpool_limits(2, user_api="blas"):
        assert np.asarray(FUNCTIONS[name](3)).tobytes() == one


def test_leave_one_out_in_several_threads_at_once():
    start = threading.Barrier(4, timeout=60)

    def task(C):
        start.wait()
        return leave_out(lo.SVC(C=C), X, Y, n_jobs=2).tobytes()

    blas, Cs = threadpool_info(), [1.0, 3.0, 10.0, 1.0]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(task, Cs))
    assert found == [leave_out(lo.SVC(C=C), X, Y).tobytes() for C in Cs]
    assert threadpool_info() == blas  # limits are restored


def threads_inside():
    lo.leave_one_out(SVC, X[:20], Y[:20], n_jobs=-1)
    ours = sum(t.name.startswith("leaveout") for t in threading.enumerate())
    return _parallel.count_threads(-1), ours, max(blas_now())


def test_workers_of_joblib_start_no_threads():
    tasks = [joblib.delayed(threads_inside)() for _ in range(2)]
    assert joblib.Parallel(n_jobs=max(2, joblib.cpu_count()))(tasks) == [(1, 0, 1)] * 2


def test_blas_uses_one_thread_while_the_pool_works(monkeypatch):
    seen = []

    class Watched(ThreadPoolExecutor):
        def submit(self, work):
            return super().submit(lambda: (seen.extend(blas_now()), work()))

    with Watched(2) as pool, threadpool_limits(2, user_api="blas"):
        monkeypatch.setattr(_parallel, "_pool", lambda: pool)
        for name in ("walk", "curve", "suspects", "LPM"):
            FUNCTIONS[name](2)
    assert set(seen) == {1}


@pytest.mark.parametrize(("seconds", "n_here"), [(60.0, 6), (0.0, 1)])
def test_workers_start_only_for_long_work(monkeypatch, seconds, n_here):
    monkeypatch.setattr(_parallel, "SECONDS_WORTH_WORKERS", seconds)
    found = list(map_worthwhile(os.getpid, [()] * 6, n_jobs=2))
    assert found.count(os.getpid()) == n_here
    assert len(found) == 6


def wait_and_tell(seconds):
    time.sleep(seconds)
    return os.getpid()


def test_waiting_for_a_busy_computer_is_not_work(monkeypatch):
    monkeypatch.setattr(_parallel, "SECONDS_WORTH_WORKERS", 0.2)
    found = list(map_worthwhile(wait_and_tell, [(0.1,)] * 6, n_jobs=2))
    assert found == [os.getpid()] * 6
