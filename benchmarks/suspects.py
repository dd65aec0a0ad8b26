# SPDX-License-Identifier: BSD-3-Clause
"""Are flipped labels found? Leave-one-out margins against confident learning.

    python benchmarks/suspects.py [--quick] [--data DIR]

In each set 5 % of the labels are changed to another class at random. Features are
standardised; C and gamma are chosen on the changed labels by ``LooSearchCV``, and all
methods take them. The methods rank the samples, the most suspicious first:

- loo margin: ``leaveout.suspects``;
- loo influence: the same list by descending influence;
- kfold margin: the margin with five folds left out in turn;
- self-confidence: out-of-fold probability of the given label, five folds, Platt
  calibration inside each training part;
- confident learning (Northcutt, Jiang & Chuang 2021): samples that the class thresholds
  say belong to another class come first, each part by self-confidence.

``precision_at_k``: share of changed labels among the first k, k their number (recall
at k is the same). ``recall_at_2k``: share found among the first 2k. ``auc`` and
``average_precision``: of the whole ranking. ``flagged``: how many samples the method
calls wrong outright, with the precision and recall of that set. ``seconds``: CPU time,
one thread. Each row is one set, seed and method. With --data, every ``.npz`` file of
DIR that holds X and y is a set.
"""

from __future__ import annotations

import argparse
import csv
import platform
from collections.abc import Iterator
from datetime import date
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import yaml
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_moons
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.preprocessing import scale
from sklearn.svm import SVC

import leaveout as lo

FOLDER = Path(__file__).resolve().parent / "results" / "suspects"
SHARE = 0.05
N_SEEDS = 10
N_FOLDS = 5
Cs = np.logspace(-1, 3, 5).tolist()
# Times 1 / (number of features), which is gamma="scale" after standardising.
GAMMAS = (0.03, 0.1, 0.3, 1.0)


class Ranking(NamedTuple):
    """Suspicion of each sample, which are called wrong, and the time it took."""

    suspicion: np.ndarray
    flagged: np.ndarray
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one seed, not stored")
    parser.add_argument("--data", type=Path, help="folder with .npz files of X and y")
    args = parser.parse_args()
    rows = []
    for name, X, y in read_sets(args.data) if args.data else bundled_sets():
        for seed in range(1 if args.quick else N_SEEDS):
            rows += run(name, X, y, seed)
        summarise([row for row in rows if row["set"] == name])
    if not args.quick:
        store(rows, "--data DIR" if args.data else "")


def bundled_sets() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Two and more classes, real and made up."""
    yield "breast cancer", *load_breast_cancer(return_X_y=True)
    yield "wine", *load_wine(return_X_y=True)
    X, y = load_digits(return_X_y=True)
    yield "digits, first 500", X[:500], y[:500]
    yield "moons, noise 0.25", *make_moons(400, noise=0.25, random_state=0)


def read_sets(folder: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Every file that has X and y."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as file:
            if {"X", "y"} <= set(file.files):
                yield path.stem, file["X"], file["y"]


def flip(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Change labels at random; return them and the mask of the changed."""
    rng = np.random.default_rng(seed)
    classes, codes = np.unique(y, return_inverse=True)
    rows = rng.choice(y.size, round(SHARE * y.size), replace=False)
    codes[rows] += rng.integers(1, classes.size, rows.size)
    changed = np.zeros(y.size, dtype=bool)
    changed[rows] = True
    return classes[codes % classes.size], changed


def run(name: str, X: np.ndarray, y: np.ndarray, seed: int) -> list[dict[str, Any]]:
    """All methods on one set with one draw of changed labels."""
    labels, changed = flip(y, seed)
    X = scale(X[:, X.std(axis=0) > 0])
    gammas = [factor / X.shape[1] for factor in GAMMAS]
    search = lo.LooSearchCV(SVC(), {"C": Cs, "gamma": gammas}).fit(X, labels)
    svc = SVC(**search.best_params_)
    folds = np.empty(labels.size, dtype=int)
    splits = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
    for number, (_, test) in enumerate(splits.split(X, labels)):
        folds[test] = number
    rankings = {
        **by_leave_one_out(svc, X, labels),
        "kfold margin": by_folds(svc, X, labels, folds),
        **by_probabilities(svc, X, labels, splits),
    }
    about = {"set": name, "n": y.size, "classes": np.unique(y).size, "seed": seed}
    return [
        {**about, "method": method, **search.best_params_, **judge(ranking, changed)}
        for method, ranking in rankings.items()
    ]


def by_leave_one_out(svc: SVC, X: np.ndarray, y: np.ndarray) -> dict[str, Ranking]:
    """Margins and influences of ``suspects``, back in the order of the rows."""
    started = process_time()
    found = lo.suspects(svc, X, y)
    seconds = process_time() - started
    order = np.argsort(found.rows)
    flagged = found.flagged[order]
    return {
        "loo margin": Ranking(-found.margins[order], flagged, seconds),
        "loo influence": Ranking(
            found.influence[order], found.influence[order] > 0, seconds
        ),
    }


def by_folds(svc: SVC, X: np.ndarray, y: np.ndarray, folds: np.ndarray) -> Ranking:
    """Margins with folds left out: what the last sample more brings."""
    started = process_time()
    found = lo.leave_one_out(svc, X, y, groups=folds)
    return Ranking(-found.margins, found.wrong, process_time() - started)


def by_probabilities(
    svc: SVC, X: np.ndarray, y: np.ndarray, splits: StratifiedKFold
) -> dict[str, Ranking]:
    """Self-confidence, and confident learning with its class thresholds.

    A sample counts to the class k of largest probability p_k among those with
    p_k >= t_k, t_k the mean of p_k over the samples labelled k (Northcutt et al. 2021,
    section 3.1).
    """
    started = process_time()
    model = CalibratedClassifierCV(svc, ensemble=False, cv=N_FOLDS)
    p = cross_val_predict(model, X, y, cv=splits, method="predict_proba")
    codes = np.unique(y, return_inverse=True)[1]
    own = p[np.arange(y.size), codes]
    thresholds = np.array([p[codes == k, k].mean() for k in range(p.shape[1])])
    confident = np.where(p >= thresholds, p, -1.0)
    elsewhere = (confident.max(axis=1) >= 0) & (confident.argmax(axis=1) != codes)
    seconds = process_time() - started
    return {
        "self-confidence": Ranking(-own, p.argmax(axis=1) != codes, seconds),
        "confident learning": Ranking(elsewhere - own, elsewhere, seconds),
    }


def judge(ranking: Ranking, changed: np.ndarray) -> dict[str, Any]:
    """How well a ranking finds the changed labels."""
    k = int(changed.sum())
    order = np.argsort(-ranking.suspicion, kind="stable")
    hit = int((ranking.flagged & changed).sum())
    flagged = int(ranking.flagged.sum())
    found = {
        "precision_at_k": changed[order[:k]].mean(),
        "recall_at_2k": changed[order[: 2 * k]].sum() / k,
        "auc": roc_auc_score(changed, ranking.suspicion),
        "average_precision": average_precision_score(changed, ranking.suspicion),
        "flagged_precision": hit / max(1, flagged),
        "flagged_recall": hit / k,
        "seconds": ranking.seconds,
    }
    rounded = {name: round(float(value), 4) for name, value in found.items()}
    return {"changed": k, "flagged": flagged, **rounded}


def summarise(rows: list[dict[str, Any]]) -> None:
    """Print means over the seeds of one set, with standard errors."""
    shown = ("precision_at_k", "recall_at_2k", "auc", "average_precision")
    shown += ("flagged_precision", "flagged_recall", "seconds")
    print(f"{rows[0]['set']} ({rows[0]['n']} samples) | {' | '.join(shown)}")
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        cells = []
        for name in shown:
            values = np.array([row[name] for row in own])
            spread = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else 0
            cells.append(f"{values.mean():.3f} ± {spread:.3f}")
        print(f"{method} | {' | '.join(cells)}", flush=True)


def store(rows: list[dict[str, Any]], arguments: str) -> None:
    """Write the rows and what made them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    packages = ("leaveout", "numpy", "scipy", "scikit-learn")
    config = {
        "command": f"python benchmarks/suspects.py {arguments}".strip(),
        "date": date.today().isoformat(),
        "share changed": SHARE,
        "seeds": N_SEEDS,
        "folds": N_FOLDS,
        "grid": {"C": Cs, "gamma times features": list(GAMMAS)},
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }
    (FOLDER / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))


if __name__ == "__main__":
    main()
