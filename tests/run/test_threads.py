# SPDX-License-Identifier: BSD-3-Clause
import multiprocessing
import sys
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from leaveout.run._parallel import limit_blas, map_chunks


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
@pytest.mark.parametrize("n", [0, 1, 7, 100])
def test_each_part_once(n, n_threads):
    np.testing.assert_array_equal(count(n, n_threads, size=3), 1)


def test_two_threads_work_at_a_time():
    both = threading.Barrier(2, timeout=20)
    map_chunks(lambda part: both.wait(), 2, n_threads=2, size=1)


@pytest.mark.parametrize("where", ["caller", "helper"])
def test_an_error_reaches_the_caller(where):
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


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_forked_child_has_its_own_threads():
    count(10, 2, size=1)
    child = multiprocessing.get_context("fork").Process(target=count, args=(10, 2, 1))
    child.start()
    child.join(20)
    assert child.exitcode == 0


def blas_now():
    """Threads of each BLAS in this process."""
    return [
        library["num_threads"]
        for library in threadpool_info()
        if library["user_api"] == "blas"
    ]


def test_limits_of_blas_may_overlap_in_any_order():
    with threadpool_limits(2, user_api="blas"):
        before = blas_now()
        first, second = limit_blas(1), limit_blas(1)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(blas_now()) == {1}  # the second block still runs
        second.__exit__(None, None, None)
        assert blas_now() == before


def test_the_smallest_wish_holds():
    with threadpool_limits(2, user_api="blas"):
        with limit_blas(2), limit_blas(1):
            assert set(blas_now()) == {1}
        before = blas_now()
        with limit_blas(1):
            pass
        assert blas_now() == before


def test_many_threads_leave_blas_as_it_was():
    def limit(seed):
        for k in range(50):
            with limit_blas(1 + (seed + k) % 2):
                pass

    with threadpool_limits(2, user_api="blas"):
        before = blas_now()
        workers = [threading.Thread(target=limit, args=(k,)) for k in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert blas_now() == before


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_fork_within_a_limit_has_its_own():
    def work():
        with limit_blas(1):
            pass

    with limit_blas(1):
        child = multiprocessing.get_context("fork").Process(target=work)
        child.start()
        child.join(20)
    assert child.exitcode == 0


def test_a_limit_in_another_thread_holds_after_one_in_this():
    """Of threadpoolctl 3.8 only the first thread that sets a limit is heard."""
    with limit_blas(1):
        pass
    seen = []

    def work():
        with limit_blas(1):
            seen.extend(blas_now())

    before = blas_now()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert set(seen) == {1}
    assert blas_now() == before
