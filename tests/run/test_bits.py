# SPDX-License-Identifier: BSD-3-Clause
"""What is promised of threads: the same bits for any n_jobs, and from any thread.

Also that no loop starts threads inside the workers of another, and that memory does not
grow over a thousand calls.
"""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass

import joblib
import numpy as np
import pytest
from datasets import make_class_blobs
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

import leaveout as lo
from leaveout.data import make_mixture
from leaveout.methods import METHODS
from leaveout.run._parallel import count_threads

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
    "sparse": lambda n: lo.leave_one_out(SVC, sparse.csr_array(X), Y, n_jobs=n),
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
def test_the_same_bits_for_any_n_jobs(name):
    one = bits(FUNCTIONS[name](1))
    assert bits(FUNCTIONS[name](2)) == one
    with threadpool_limits(2, user_api="blas"):
        assert bits(FUNCTIONS[name](3)) == one


def ask(model, features):
    return model.predict(features).tobytes(), model.decision_function(
        features
    ).tobytes()


MODELS = {
    "SVC": lambda: lo.SVC(gamma=0.1),
    "linear": lambda: lo.SVC(kernel="linear"),
    "SVCCV": lambda: lo.SVCCV(Cs=[1.0], gammas=[0.1]),
    "pipeline": lambda: make_pipeline(StandardScaler(), lo.SVC()),
    "LPM": lambda: lo.LPMClassifier(gamma=0.1),
    "LOOM": lambda: lo.LOOMClassifier(gamma=0.1),
    "LLW": lambda: lo.LLWClassifier(gamma=0.1),
    "search": lambda: lo.LooSearchCV(lo.SVC(), {"gamma": [0.1, 1.0]}),
}


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


@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
@pytest.mark.parametrize("name", MODELS)
def test_a_fitted_model_may_be_asked_from_several_threads(name):
    n = 40
    model = MODELS[name]().fit(X[:n], Y[:n])
    wanted = [ask(model, X[k::4]) for k in range(4)]
    for _ in range(3):
        asked = in_threads([lambda k=k: ask(model, X[k::4]) for k in range(4)])
        assert asked == wanted


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_leave_one_out_in_several_threads_at_once(n_jobs):
    tasks = [
        lambda C=C: bits(lo.leave_one_out(lo.SVC(C=C, gamma=0.05), X, Y, n_jobs=n_jobs))
        for C in (1.0, 3.0, 10.0, 1.0)
    ]
    wanted = [task() for task in tasks]
    blas = threadpool_info()
    assert in_threads(tasks) == wanted
    assert threadpool_info() == blas  # limits of BLAS are given back


def threads_of_blas():
    return [i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"]


def threads_inside():
    """What a worker of joblib sees: our threads, and those of BLAS."""
    lo.leave_one_out(SVC, X[:20], Y[:20], n_jobs=-1)
    ours = sum(t.name.startswith("leaveout") for t in threading.enumerate())
    return count_threads(-1), max(threads_of_blas()), ours


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
                seen.extend(threads_of_blas())
                work()

            return super().submit(watched)

    pool = Watched(2)
    monkeypatch.setattr("leaveout.run._parallel._pool", lambda: pool)
    with threadpool_limits(2, user_api="blas"):
        for name in ("leave_one_out walk", "loo_curve", "suspects", "LPM"):
            FUNCTIONS[name](2)
    pool.shutdown()
    assert set(seen) == {1}


GROWTH = """
import gc, sys
from pathlib import Path
import numpy as np
import leaveout as lo
from leaveout.data import make_mixture

X, y = make_mixture(30, 3, random_state=0)
model = lo.SVC(gamma=0.1).fit(X, y)

def call(k):
    lo.SVC(C=1.0 + k % 7, gamma=0.1).fit(X, y)
    if k % 4 < 2:
        lo.leave_one_out(lo.SVC(C=1.0 + k, gamma=0.1), X + k % 3, y, n_jobs=1 + k % 2)
    model.predict(X + k % 3)

def resident():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

for k in range(100):  # pools, caches and the allocator fill up first
    call(k)
first = resident()
for k in range(1000):
    call(k)
print(resident() - first)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_over_a_thousand_calls():
    command = [sys.executable, "-c", GROWTH]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # A Gram matrix of 30 x 30 kept by each call would be 7 MB.
    assert int(done.stdout) < 3_000_000
