# SPDX-License-Identifier: BSD-3-Clause
"""Loops over threads and processes: order, errors, Ctrl-C, BLAS, the same bits."""

import multiprocessing
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass

import joblib
import numpy as np
import pytest
from datasets import make_class_blobs
from threadpoolctl import threadpool_info, threadpool_limits

import leaveout as lo
from leaveout.data import make_mixture
from leaveout.methods import METHODS
from leaveout.run._parallel import (
    count_threads,
    count_workers,
    limit_blas,
    map_chunks,
    map_in_order,
    map_parallel,
    runs_here,
    show_progress,
    shrinking_parts,
    sum_in_order,
)

needs_fork = pytest.mark.skipif(sys.platform == "win32", reason="no fork")


def count(n, n_threads, size):
    """How often each index is seen."""
    seen = np.zeros(n, dtype=int)
    lock = threading.Lock()

    def add(part):
        with lock:
            seen[part] += 1

    map_chunks(add, n, n_threads, size)
    return seen


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_each_part_once(n_threads):
    for n in (0, 1, 7, 100):
        np.testing.assert_array_equal(count(n, n_threads, size=3), 1)


def test_shrinking_parts():
    sizes = [p.stop - p.start for p in shrinking_parts(100, 2, most=64, least=8)]
    assert sizes == [25, 18, 14, 10, 8, 8, 8, 8, 1]
    parts = [slice(0, 64), slice(64, 100)]
    assert shrinking_parts(100, 1, most=64, least=8) == parts


def test_two_threads_work_at_a_time():
    both = threading.Barrier(2, timeout=20)
    map_chunks(lambda part: both.wait(), 2, n_threads=2, size=1)


@pytest.mark.parametrize("where", ["caller", "helper"])
def test_error_reaches_the_caller(where):
    both = threading.Barrier(2, timeout=20)
    done = []

    def fail(part):
        if part.start < 2:
            both.wait()
            in_caller = threading.current_thread() is threading.main_thread()
            if in_caller == (where == "caller"):
                raise ValueError("no")
        done.append(part.start)
        time.sleep(0.01)

    with pytest.raises(ValueError, match="no"):
        map_chunks(fail, 50, n_threads=2, size=1)
    assert len(done) < 49


def test_after_ctrl_c_nothing_more_is_started():
    done = []

    def work(part):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        done.append(part.start)
        time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        map_chunks(work, 100, n_threads=2, size=1)
    so_far = len(done)
    assert count(20, 2, size=1).all()
    assert len(done) == so_far < 99


def test_loops_within_loops_end():
    total = []

    def outer(part):
        map_chunks(total.append, 4, n_threads=3, size=1)

    map_chunks(outer, 8, n_threads=3, size=1)
    assert len(total) == 32


@needs_fork
@pytest.mark.filterwarnings("ignore:This process")
def test_fork_has_its_own_threads_and_limits():
    def work():
        with limit_blas(1):
            count(10, 2, size=1)

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


def test_sums_are_taken_in_order(rng):
    parts = list(rng.standard_normal((30, 7)) * 10.0 ** rng.integers(-8, 8, (30, 1)))
    sums = [sum_in_order(Total, parts, n).value for n in (1, 2, 3)]
    np.testing.assert_array_equal(sums[0], sums[1])
    np.testing.assert_array_equal(sums[0], sums[2])
    assert list(map_in_order(lambda x: -x, range(40), 3)) == [-x for x in range(40)]
    with pytest.raises(ValueError, match="no rows"):
        sum_in_order(Total, [], 1)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_error_ends_the_sum(n_threads):
    seen = []

    def fail(x):
        seen.append(x)
        if x == 3:
            raise ValueError("row 3")
        return Total(x)

    with pytest.raises(ValueError, match="row 3"):
        sum_in_order(fail, range(1000), n_threads)
    assert len(seen) < 20


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_parallel_results_in_order(n_jobs):
    tasks = [(base, 2) for base in range(20)]
    assert list(map_parallel(pow, tasks, n_jobs=n_jobs)) == [i**2 for i in range(20)]


def test_results_come_as_they_are_ready():
    started = []
    results = map_parallel(started.append, [(i,) for i in range(5)])
    next(results)
    assert len(started) < 5
    results.close()


def test_number_of_workers_follows_joblib():
    assert count_workers(None) == 1
    with joblib.parallel_config("loky", n_jobs=3):
        assert (count_workers(None), count_workers(2)) == (3, 2)
        assert runs_here()


def test_progress_on_stderr(capsys):
    assert list(show_progress("ab", 2, "letters", verbose=False)) == ["a", "b"]
    assert capsys.readouterr().err == ""
    assert list(show_progress("ab", 2, "letters")) == ["a", "b"]
    assert "letters: 1 of 2, 0 s left" in capsys.readouterr().err


def blas_now():
    """Threads of each BLAS in this process."""
    return [i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"]


def test_limits_of_blas_may_overlap_in_any_order():
    with threadpool_limits(2, user_api="blas"):
        before = blas_now()
        first, second = limit_blas(2), limit_blas(1)
        first.__enter__()
        second.__enter__()
        assert set(blas_now()) == {1}  # the smallest holds
        first.__exit__(None, None, None)
        assert set(blas_now()) == {1}
        second.__exit__(None, None, None)
        assert blas_now() == before


def test_many_threads_leave_blas_as_it_was():
    def limit(seed):
        for k in range(50):
            with limit_blas(1 + (seed + k) % 2):
                pass

    with threadpool_limits(2, user_api="blas"):
        before = blas_now()
        in_threads([lambda k=k: limit(k) for k in range(8)])
        assert blas_now() == before


def test_limit_in_another_thread_holds_after_one_in_this():
    """threadpoolctl 3.8 obeys only the first thread that sets a limit."""
    with limit_blas(1):
        pass
    seen = []

    def work():
        with limit_blas(1):
            seen.extend(blas_now())

    with threadpool_limits(2, user_api="blas"):
        before = blas_now()
        in_threads([work])
        assert set(seen) == {1}
        assert blas_now() == before


def in_threads(functions):
    """Run functions at the same time; return what they gave, or raise."""
    found, errors = [None] * len(functions), []
    start = threading.Barrier(len(functions), timeout=60)

    def work(k):
        try:
            start.wait()
            found[k] = functions[k]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return found


X, Y = make_mixture(90, 12, random_state=0)
X3, Y3 = make_class_blobs(60, n_classes=3, separation=1.5, random_state=0)
SVC = lo.SVC(C=3.0, gamma=0.05)
FUNCTIONS = {
    **{
        f"leave_one_out {name}": lambda n, name=name: lo.leave_one_out(
            SVC, X, Y, method=name, n_jobs=n
        )
        for name in METHODS
    },
    "three classes": lambda n: lo.leave_one_out(SVC, X3, Y3, n_jobs=n),
    "groups": lambda n: lo.leave_one_out(
        SVC, X, Y, groups=np.arange(90) // 2, n_jobs=n
    ),
    "loo_path": lambda n: lo.loo_path(SVC, X, Y, Cs=[0.1, 1.0, 10.0], n_jobs=n),
    "loo_curve": lambda n: lo.loo_curve(SVC, X, Y, C_min=0.1, C_max=10.0, n_jobs=n),
    "leave_pair_out_auc": lambda n: lo.leave_pair_out_auc(SVC, X, Y, n_jobs=n),
    "loo_bounds": lambda n: lo.loo_bounds(SVC, X, Y, n_jobs=n),
    "suspects": lambda n: lo.suspects(SVC, X, Y, n_jobs=n),
    "LPM": lambda n: lo.leave_one_out(
        lo.LPMClassifier(C=3.0, gamma=0.05), X[:50], Y[:50], n_jobs=n
    ),
    "LLW": lambda n: lo.leave_one_out(
        lo.LLWClassifier(C=3.0, gamma=0.05), X3[:9], Y3[:9], n_jobs=n
    ),
    "one cell": lambda n: (
        lo.LooSearchCV(SVC, {"C": [1.0, 10.0]}, n_jobs=n).fit(X, Y).best_loo_result_
    ),
    "SVCCV": lambda n: lo.SVCCV(Cs=[1.0], gammas=[0.1], n_jobs=n).fit(X, Y).loo_result_,
}


def bits(thing):
    """Every number of a result as bytes, but for times."""
    if isinstance(thing, np.ndarray):
        if thing.dtype == object:
            return [bits(item) for item in thing.ravel().tolist()]
        return str(thing.dtype), thing.shape, thing.tobytes()
    if isinstance(thing, dict):
        return {k: bits(v) for k, v in thing.items() if "seconds" not in str(k)}
    if isinstance(thing, list | tuple):
        return [bits(item) for item in thing]
    if is_dataclass(thing):
        return bits({field.name: getattr(thing, field.name) for field in fields(thing)})
    return repr(thing)


@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_same_bits_for_any_n_jobs(name):
    one = bits(FUNCTIONS[name](1))
    with threadpool_limits(2, user_api="blas"):
        assert bits(FUNCTIONS[name](3)) == one


MODELS = {
    "SVC": lo.SVC(gamma=0.1),
    "SVCCV": lo.SVCCV(Cs=[1.0], gammas=[0.1]),
    "LPM": lo.LPMClassifier(gamma=0.1),
    "LOOM": lo.LOOMClassifier(gamma=0.1),
    "LLW": lo.LLWClassifier(gamma=0.1),
}


@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
@pytest.mark.parametrize("name", MODELS)
def test_fitted_model_predicts_in_several_threads(name):
    model = MODELS[name].fit(X[:40], Y[:40])

    def predict(k):
        values = model.decision_function(X[k::4])
        return model.predict(X[k::4]).tobytes(), values.tobytes()

    wanted = [predict(k) for k in range(4)]
    assert in_threads([lambda k=k: predict(k) for k in range(4)]) == wanted


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_leave_one_out_in_several_threads_at_once(n_jobs):
    tasks = [
        lambda C=C: bits(lo.leave_one_out(lo.SVC(C=C, gamma=0.05), X, Y, n_jobs=n_jobs))
        for C in (1.0, 3.0, 10.0, 1.0)
    ]
    wanted = [task() for task in tasks]
    blas = threadpool_info()
    assert in_threads(tasks) == wanted
    assert threadpool_info() == blas  # limits are restored


def threads_inside():
    """The threads in a worker of joblib: ours, and those of BLAS."""
    lo.leave_one_out(SVC, X[:20], Y[:20], n_jobs=-1)
    ours = sum(t.name.startswith("leaveout") for t in threading.enumerate())
    return count_threads(-1), max(blas_now()), ours


def test_workers_of_joblib_start_no_threads_of_their_own():
    n_workers = joblib.cpu_count()
    tasks = [joblib.delayed(threads_inside)() for _ in range(2)]
    for wanted, blas, ours in joblib.Parallel(n_jobs=n_workers)(tasks):
        assert wanted == 1
        assert blas * n_workers <= max(n_workers, joblib.cpu_count())
        assert ours == 0


def test_blas_has_one_thread_while_ours_work(monkeypatch):
    seen = []

    class Watched(ThreadPoolExecutor):
        def submit(self, work):
            def watched():
                seen.extend(blas_now())
                work()

            return super().submit(watched)

    pool = Watched(2)
    monkeypatch.setattr("leaveout.run._parallel._pool", lambda: pool)
    with threadpool_limits(2, user_api="blas"):
        for name in ("leave_one_out walk", "loo_curve", "suspects", "LPM"):
            FUNCTIONS[name](2)
    pool.shutdown()
    assert set(seen) == {1}
