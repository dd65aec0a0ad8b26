# SPDX-License-Identifier: BSD-3-Clause
"""Are the probabilities good? SVCCV against calibration by five-fold cross-validation.

    python benchmarks/calibration.py [--data DIR] [--quick]

For each set and each of ten splits, SVCCV is fitted on the training half. The peer is
scikit-learn's CalibratedClassifierCV(SVC(C, gamma), ensemble=False, cv=5) with the same
C and gamma, so that only the calibration differs: Platt's sigmoid on the left-out
values of all n samples, or on those of five folds, whose models have seen a fifth
less. Both are judged on the other half by the log-loss and the Brier score (sum over
classes). ``prior`` is the log-loss of the class shares of the training half.

The sets are bundled with scikit-learn or made here; with --data, five more are read
from ``ida_*.npz`` files with arrays X and y. The noise sets have labels that have
nothing to do with X: no probability can beat the class shares there. ``worse`` counts
splits with a log-loss above that of the shares by more than a tenth, ``falls`` splits
where the probability falls with the decision value (two classes).
"""

from __future__ import annotations

import argparse
import csv
import platform
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from datetime import date
from importlib.metadata import version
from pathlib import Path
from time import process_time

import numpy as np
import yaml
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from leaveout import SVCCV, LeaveoutWarning
from leaveout.data import make_mixture, make_twonorm
from leaveout.run._parallel import limit_blas

RESULTS = Path(__file__).parent / "results" / "calibration"
DATA_SETS = ("ida_heart", "ida_diabetis", "ida_german", "ida_thyroid", "ida_banana")
N_SPLITS = 10
N_TRAIN = 200  # at most; small samples are what leave-one-out is for


@dataclass(frozen=True)
class Row:
    """Means over the splits of one set."""

    data: str
    n_train: int
    n_classes: int
    prior: float
    log_loss_ours: float
    log_loss_peer: float
    brier_ours: float
    brier_peer: float
    better: str
    worse_ours: int
    worse_peer: int
    falls_ours: int
    falls_peer: int
    seconds_ours: float
    seconds_peer: float


def noise(share: float) -> Callable[[int], tuple[np.ndarray, np.ndarray]]:
    """Return a maker of 400 samples whose labels are drawn by their share alone."""

    def make(seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        return rng.standard_normal((400, 10)), (rng.random(400) < share).astype(int)

    return make


def sets(folder: Path | None) -> Iterator[tuple[str, Callable]]:
    """Name each set and how to get it for a split."""
    for load in (load_breast_cancer, load_iris, load_wine, load_digits):
        X, y = load(return_X_y=True)
        yield load.__name__.removeprefix("load_"), lambda seed, d=(X, y): d
    yield "mixture", lambda seed: make_mixture(400, random_state=seed)
    yield "twonorm", lambda seed: make_twonorm(400, random_state=seed)
    for name in DATA_SETS if folder else ():
        with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
            X, y = file["X"], file["y"]
        yield name, lambda seed, d=(X, y): d
    yield "noise, even", noise(0.5)
    yield "noise, 1 in 5", noise(0.2)


def falls(values: np.ndarray, p: np.ndarray) -> bool:
    """Whether the probability falls somewhere as the decision value rises."""
    return bool((np.diff(p[np.argsort(values)]) < -1e-9).any())


def run_split(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, float]:
    """Fit both on one half; return their scores on the other."""
    n_train = min(N_TRAIN, len(y) // 2)
    X, X_test, y, y_test = train_test_split(
        X, y, train_size=n_train, stratify=y, random_state=seed
    )
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    started = process_time()
    ours = SVCCV().fit(X, y)
    tuned = process_time()
    gamma = {} if ours.gamma_ is None else {"gamma": ours.gamma_}
    peer = CalibratedClassifierCV(
        SVC(C=ours.C_, **gamma, tol=1e-5), ensemble=False, cv=5
    ).fit(X, y)
    done = process_time()
    classes, counts = np.unique(y, return_counts=True)
    shares = np.tile(counts / counts.sum(), (len(y_test), 1))
    scores = {
        "n_train": n_train,
        "n_classes": len(classes),
        "prior": log_loss(y_test, shares, labels=classes),
        "seconds_ours": tuned - started,
        "seconds_peer": done - tuned,
    }
    inner = peer.calibrated_classifiers_[0].estimator
    for name, clf, svm in (("ours", ours, ours), ("peer", peer, inner)):
        p = clf.predict_proba(X_test)
        scores[f"log_loss_{name}"] = log_loss(y_test, p, labels=classes)
        hits = y_test[:, None] == classes
        scores[f"brier_{name}"] = float(((p - hits) ** 2).sum(axis=1).mean())
        scores[f"worse_{name}"] = scores[f"log_loss_{name}"] > 1.1 * scores["prior"]
        scores[f"falls_{name}"] = len(classes) == 2 and falls(
            svm.decision_function(X_test), p[:, 1]
        )
    return scores


def summarise(name: str, splits: list[dict[str, float]]) -> Row:
    """Average the splits; count those where ours has the smaller log-loss."""
    counted = {"n_train", "n_classes"}
    values: dict[str, float] = {}
    for key in splits[0]:
        column = [split[key] for split in splits]
        if key in counted:
            values[key] = int(column[0])
        elif key.startswith(("worse", "falls")):
            values[key] = int(sum(column))
        else:
            values[key] = round(float(np.mean(column)), 4)
    better = sum(s["log_loss_ours"] < s["log_loss_peer"] for s in splits)
    return Row(data=name, better=f"{better} of {len(splits)}", **values)


def store(rows: list[Row], with_data: bool) -> None:
    """Write results.csv and config.yaml."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    config = {
        "command": "python benchmarks/calibration.py" + " --data DIR" * with_data,
        "date": date.today().isoformat(),
        "splits": N_SPLITS,
        "n_train": N_TRAIN,
        "seconds": "CPU, one thread",
        "python": platform.python_version(),
        **{name: version(name) for name in ("leaveout", "numpy", "scikit-learn")},
    }
    (RESULTS / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))


def main() -> None:
    """Run all sets, print and store the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with ida_*.npz")
    parser.add_argument("--quick", action="store_true", help="two splits, not stored")
    arguments = parser.parse_args()
    # Fallbacks to the class shares on noise are what is measured here.
    warnings.simplefilter("ignore", LeaveoutWarning)
    rows = []
    head = f"{'set':<14}{'prior':>8}{'ours':>8}{'peer':>8}{'Brier':>8}{'peer':>8}"
    print(head + f"{'better':>10}{'worse':>8}{'falls':>8}")
    with limit_blas(1):
        for name, get in sets(arguments.data):
            seeds = range(2 if arguments.quick else N_SPLITS)
            row = summarise(name, [run_split(*get(seed), seed) for seed in seeds])
            rows.append(row)
            print(
                f"{row.data:<14}{row.prior:>8.3f}{row.log_loss_ours:>8.3f}"
                f"{row.log_loss_peer:>8.3f}{row.brier_ours:>8.3f}{row.brier_peer:>8.3f}"
                f"{row.better:>10}{row.worse_ours:>4}/{row.worse_peer:<3}"
                f"{row.falls_ours:>4}/{row.falls_peer:<3}",
                flush=True,
            )
    if not arguments.quick:
        store(rows, arguments.data is not None)


if __name__ == "__main__":
    main()
