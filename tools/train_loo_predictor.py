# SPDX-License-Identifier: BSD-3-Clause
"""Train the predictors that ``LooPredictor.load_default`` returns, on generated data.

Run: ``python tools/train_loo_predictor.py``. It writes one JSON file for SVMs and one
for linear programming machines beside the class; the same data, grid and seeds give the
same files up to rounding.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import scale

import leaveout as lo
from leaveout.data import make_banana, make_mixture, make_twonorm

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from datasets import make_class_blobs, make_ringnorm, make_waveform

FOLDER = Path(lo.__file__).parent / "assess"
CLASSIFIERS = {"svm": lo.SVC, "lpm": lo.LPMClassifier}
GENERATORS = {
    "banana": make_banana,
    "blobs": partial(make_class_blobs, n_classes=2, separation=2.0),
    "mixture": make_mixture,
    "ringnorm": make_ringnorm,
    "twonorm": make_twonorm,
    "waveform": partial(make_waveform, n_classes=2),
    # More features than samples.
    "mixture200": partial(make_mixture, n_features=200),
    "mixture1000": partial(make_mixture, n_features=1000),
    "blobs500": partial(make_class_blobs, n_classes=2, separation=4.0, n_features=500),
    "blobs2000": partial(
        make_class_blobs, n_classes=2, separation=4.0, n_features=2000
    ),
}
SIZES = (60, 100)
PENALTIES = (0.1, 1.0, 10.0, 100.0)
GAMMAS = (0.05, 0.3, 1.5)  # times the number of features
FLIPPED = (0.0, 0.1)  # share of labels turned over: real data have errors
N_ESTIMATORS, MAX_SAMPLES = 5, 3000


def make_tasks(kind: str) -> list[tuple[Any, np.ndarray, np.ndarray]]:
    """Return all classifiers with their data, the same ones every time."""
    tasks = []
    for make in GENERATORS.values():
        for seed, n in enumerate(SIZES):
            X, y = make(n, random_state=seed)
            X, labels = scale(X), np.unique(y)
            random = np.random.default_rng(seed)
            for share in FLIPPED:
                turned = random.random(n) < share
                noisy = np.where(turned, labels[0] + labels[1] - y, y)
                for C in PENALTIES:
                    for gamma in GAMMAS:
                        model = CLASSIFIERS[kind](C=C, gamma=gamma / X.shape[1])
                        tasks.append((model, X, noisy))
    return tasks


def train(kind: str) -> lo.LooPredictor:
    """Train the default predictor of one kind."""
    predictor = lo.LooPredictor(
        n_estimators=N_ESTIMATORS, max_samples=MAX_SAMPLES, random_state=0
    )
    return predictor.fit(make_tasks(kind))


def main() -> None:
    for kind in CLASSIFIERS:
        predictor = train(kind)
        text = predictor.to_json(
            script="tools/train_loo_predictor.py",
            classifier=CLASSIFIERS[kind].__name__,
            generators=list(GENERATORS),
            sizes=SIZES,
            C=PENALTIES,
            gamma_times_features=GAMMAS,
            flipped=FLIPPED,
            leaveout=lo.__version__,
        )
        path = FOLDER / f"_loo_predictor_{kind}.json"
        path.write_text(text + "\n")
        for member in predictor.estimators_:
            kept = int(np.count_nonzero(member.coef))
            print(
                f"{path.name}, {member.variant}: {member.n_samples} samples, "
                f"{member.error_rate:.1%} errors, {kept} of {member.coef.size} "
                "monomials kept"
            )


if __name__ == "__main__":
    main()
