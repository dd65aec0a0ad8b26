# SPDX-License-Identifier: BSD-3-Clause
"""Kill a search with SIGKILL at random moments, resume it, and compare every bit.

``python tests/faults.py --kills 5 --seed 0 --n-jobs 1`` prints one JSON line per kill
and per finished search. The searches run in forks, so that the libraries load once.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import sqlite3
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
from joblib.externals.loky import reusable_executor

from leaveout import SVC, LooSearchCV
from leaveout.data import make_mixture
from leaveout.run._checkpoint import Checkpoint

N_SAMPLES = 150
GRID = {"C": np.logspace(-1, 2, 4), "gamma": np.logspace(-3, 0, 10)}
RESULT_ARRAYS = (
    "decision_values", "predictions", "margins", "lower", "upper", "ambiguous",
    "certified", "settled_by",
)  # fmt: skip


def search(checkpoint, n_jobs):
    """Fit the search all trials share."""
    X, y = make_mixture(N_SAMPLES, 5, random_state=0)
    found = LooSearchCV(SVC(), GRID, checkpoint=checkpoint, n_jobs=n_jobs)
    return found.fit(X, y)


def digest(found):
    """SHA-256 of every number a fitted search has, but for times."""
    table = found.cv_results_
    arrays = [np.ma.getdata(table[key]) for key in sorted(table) if "_time" not in key]
    arrays += [getattr(found.best_loo_result_, name) for name in RESULT_ARRAYS]
    arrays += [found.best_estimator_.dual_coef_, found.best_estimator_.intercept_]
    total = hashlib.sha256(repr((found.best_index_, found.best_score_)).encode())
    for array in arrays:
        array = np.asarray(array)
        plain = repr(array.tolist()) if array.dtype == object else array.tobytes()
        total.update(plain.encode() if isinstance(plain, str) else plain)
    return total.hexdigest()


def start(checkpoint, answer, n_jobs):
    """Fork a search that writes a byte for each kept cell, and at last its digest.

    Returns the process id and the end of the pipe to read the bytes from.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    code = 1
    try:
        os.close(reading)
        os.setsid()  # so that its workers can be found
        reusable_executor._executor = None  # its threads did not come along
        _write_after(Checkpoint, "put", writing)
        answer.write_text(digest(search(checkpoint, n_jobs)))
        code = 0
    finally:
        os._exit(code)


def _write_after(owner, name, descriptor):
    """Let a method write a byte after each call."""
    method = getattr(owner, name)

    def call(self, *arguments):
        method(self, *arguments)
        os.write(descriptor, b".")

    setattr(owner, name, call)


def kill(child, reading, n_cells, seconds):
    """Kill a search and its workers some seconds after n_cells more cells are kept.

    Returns whether it was still running.
    """
    for _ in range(n_cells):
        if not os.read(reading, 1):  # the search is at its end
            break
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.close(reading)
    return wait(child) == -signal.SIGKILL


def wait(child):
    """Return the exit code of a search, negative if a signal has ended it."""
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with suppress(ProcessLookupError):  # it had no workers
        os.killpg(child, signal.SIGKILL)
    if code > 0:
        raise RuntimeError(f"The search failed with exit code {code}.")
    return code


def inspect(checkpoint):
    """(cells kept, what SQLite says of the file), by SQLite alone."""
    if not checkpoint.exists() or checkpoint.stat().st_size == 0:
        return 0, "absent"
    database = sqlite3.connect(checkpoint)
    try:
        (health,) = database.execute("PRAGMA integrity_check").fetchone()
        tables = database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
        if not tables:
            return 0, health
        return database.execute("SELECT COUNT(*) FROM cells").fetchone()[0], health
    finally:
        database.close()


def seconds_per_cell(folder, answer, n_jobs):
    """Run a search to its end; return the median time between two kept cells."""
    child, reading = start(folder / "whole.db", answer, n_jobs)
    times = []
    while os.read(reading, 1):
        times.append(time.monotonic())
    os.close(reading)
    wait(child)
    return float(np.median(np.diff(times)))


def run_trials(n_kills, seed, n_jobs, folder):
    """Yield a record for each kill and each finished search.

    Each search is killed again and again, a random number of cells and a random part
    of a cell after its start, until it reaches its end.
    """
    chance = random.Random(seed)
    search(None, 1)  # what is loaded at first use is loaded before the forks
    answer = folder / "answer"
    seconds = seconds_per_cell(folder, answer, n_jobs)
    wanted = answer.read_text()
    n_done = trial = 0
    while n_done < n_kills:
        answer.unlink()
        checkpoint, before, killed = folder / f"trial{trial}.db", 0, True
        while killed:
            child, reading = start(checkpoint, answer, n_jobs)
            cells, part = chance.randint(0, 4), chance.uniform(0.0, 1.5)
            if n_done < n_kills:
                killed = kill(child, reading, cells, part * seconds)
            else:
                killed = wait(child) != 0
            if killed:
                n_done += 1
                kept, health = inspect(checkpoint)
                yield {
                    "event": "killed", "trial": trial, "after_cells": cells,
                    "part_of_cell": round(part, 3), "kept_before": before,
                    "kept": kept, "file": health,
                }  # fmt: skip
                before = kept
        yield {
            "event": "finished", "trial": trial, "kept_before": before,
            "kept": inspect(checkpoint)[0], "identical": answer.read_text() == wanted,
        }  # fmt: skip
        trial += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--n-jobs", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for record in run_trials(
            arguments.kills, arguments.seed, arguments.n_jobs, Path(folder)
        ):
            os.write(1, (json.dumps(record) + "\n").encode())


if __name__ == "__main__":
    main()
