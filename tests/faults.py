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
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import numpy as np
from forks import Fork

from leaveout import SVC, LooSearchCV
from leaveout.data import make_mixture
from leaveout.run._checkpoint import Checkpoint

GRID = {"C": np.logspace(-1, 2, 4), "gamma": np.logspace(-3, 0, 10)}
RESULT_ARRAYS = (
    "decision_values", "predictions", "margins", "lower", "upper", "ambiguous",
    "certified", "settled_by",
)  # fmt: skip


def search(checkpoint, n_jobs):
    """Fit the search that all trials share."""
    X, y = make_mixture(150, 5, random_state=0)
    found = LooSearchCV(SVC(), GRID, checkpoint=checkpoint, n_jobs=n_jobs)
    return found.fit(X, y)


def digest(found):
    """Return the SHA-256 of all numbers of a fitted search, except times."""
    table = found.cv_results_
    arrays = [np.ma.getdata(table[key]) for key in sorted(table) if "_time" not in key]
    arrays += [getattr(found.best_loo_result_, name) for name in RESULT_ARRAYS]
    arrays += [found.best_estimator_.dual_coef_, found.best_estimator_.intercept_]
    total = hashlib.sha256(repr((found.best_index_, found.best_score_)).encode())
    for array in arrays:
        array = np.asarray(array)
        is_object = array.dtype == object
        total.update(repr(array.tolist()).encode() if is_object else array.tobytes())
    return total.hexdigest()


def inspect(checkpoint):
    """Return the number of stored cells and SQLite's integrity check."""
    if not checkpoint.exists() or checkpoint.stat().st_size == 0:
        return 0, "absent"
    with closing(sqlite3.connect(checkpoint)) as database:
        (health,) = database.execute("PRAGMA integrity_check").fetchone()
        tables = database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
        if not tables:
            return 0, health
        return database.execute("SELECT COUNT(*) FROM cells").fetchone()[0], health


def search_and_tell(checkpoint, n_jobs):
    """Search, write a dot per stored cell, and finally the digest."""
    put = Checkpoint.put

    def put_and_tell(self, *cell):
        put(self, *cell)
        os.write(1, b".")

    Checkpoint.put = put_and_tell
    os.write(1, digest(search(checkpoint, n_jobs)).encode())


def run_trials(n_kills, seed, n_jobs, folder):
    """Yield a record for each kill and each finished search.

    Each search is killed again and again, a random number of cells and a random part
    of a cell after its start, until it reaches its end.
    """
    chance, wanted = random.Random(seed), digest(search(None, 1))
    n_done = trial = 0
    while n_done < n_kills:
        checkpoint, kept, killed = folder / f"trial{trial}.db", 0, True
        while killed:
            running = Fork(partial(search_and_tell, checkpoint, n_jobs), folder)
            n_cells = min(chance.randint(0, 4), len(GRID["gamma"]) - kept)
            if n_done < n_kills:
                running.wait_for(running.out, "." * n_cells)
                time.sleep(chance.uniform(0.0, 0.1))
                running.signal(signal.SIGKILL)
            code = running.wait()
            with suppress(ProcessLookupError):  # no workers
                os.killpg(running.pid, signal.SIGKILL)
            killed, before = code == -signal.SIGKILL, kept
            kept, health = inspect(checkpoint)
            record = {"trial": trial, "kept_before": before, "kept": kept}
            if killed:
                n_done += 1
                record |= {"after_cells": n_cells, "file": health}
            elif code:
                raise RuntimeError(f"The search failed: {running.read_err()}")
            else:
                record["identical"] = running.read_out().endswith(wanted)
            yield {"event": "killed" if killed else "finished", **record}
        trial += 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--n-jobs", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for record in run_trials(args.kills, args.seed, args.n_jobs, Path(folder)):
            os.write(1, (json.dumps(record) + "\n").encode())
