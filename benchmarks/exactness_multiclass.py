# SPDX-License-Identifier: BSD-3-Clause
"""Leave-one-out of three classes and more against scikit-learn's own loop.

iris, wine and glass (six classes), one-vs-one and one-vs-rest, four C each: labels of
``leave_one_out`` and of ``cross_val_predict(SVC(tol=1e-10), cv=LeaveOneOut())``.
Run: ``python benchmarks/exactness_multiclass.py --data DIR``, DIR with mc_glass.npz
"""

from __future__ import annotations

import argparse
import csv
from datetime import date
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import scale
from sklearn.svm import SVC

import leaveout as lo

RESULTS = Path(__file__).parent / "results" / "exactness_multiclass"


def compare(name: str, X: np.ndarray, y: np.ndarray, C: float, rest: bool) -> dict:
    """Count the labels that differ where the answer is unique."""
    svc = SVC(C=C, gamma=1.0 / X.shape[1], tol=1e-10)
    model = OneVsRestClassifier(svc) if rest else svc
    started = perf_counter()
    result = lo.leave_one_out(model, X, y)
    ours = perf_counter() - started
    started = perf_counter()
    labels = cross_val_predict(model, X, y, cv=LeaveOneOut())
    peer = perf_counter() - started
    return {
        "date": date.today().isoformat(),
        "data": name,
        "machines": "one-vs-rest" if rest else "one-vs-one",
        "C": C,
        "n": len(y),
        "error": round(result.error, 4),
        "ambiguous": result.n_ambiguous,
        "wrong_labels": int(((result.predictions != labels) & ~result.ambiguous).sum()),
        "peer_seconds": round(peer, 3),
        "ours_seconds": round(ours, 4),
        "ratio": round(peer / ours, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    glass = np.load(parser.parse_args().data / "mc_glass.npz")
    sets = {
        "iris": load_iris(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "glass": (glass["X"].astype(float), glass["y"]),
    }
    rows = [
        compare(name, scale(X), y, C, rest)
        for name, (X, y) in sets.items()
        for rest in (False, True)
        for C in (0.1, 1.0, 10.0, 100.0)
    ]
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        print(" | ".join(str(value) for value in row.values()))
    print(sum(row["wrong_labels"] for row in rows), "wrong labels")


if __name__ == "__main__":
    main()
