# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's loop over a Pipeline ÷ ``leave_one_out(preprocessing="fold")``.

The loop fits a clone without one row and predicts that row, as ``cross_val_predict``
with ``LeaveOneOut()`` does, at scikit-learn's default tolerance; it is timed on 40 of
the rows and scaled to all. Its labels of these rows, at tol 1e-8, are compared with
ours. Run:
``python benchmarks/speed/fold.py --data DIR [--quick]``
"""

from __future__ import annotations

import numpy as np
from measure import Benchmark, Row, one_thread
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import leaveout as lo

N_SPLITS = 40
SETS = (
    "bio_parkinsons", "ccv_sonar", "ccv_heart_statlog", "chem_dhfr", "ccv_musk1",
    "bio_breast_wisconsin", "ida_german", "bio_colon", "bio_golub", "bio_prostate",
)  # fmt: skip
PIPELINES = {
    "scale + RBF": make_pipeline(StandardScaler(), SVC()),
    "scale + linear": make_pipeline(StandardScaler(), SVC(kernel="linear")),
    "impute + scale + RBF": make_pipeline(SimpleImputer(), StandardScaler(), SVC()),
    "scale + SelectKBest + RBF": make_pipeline(
        StandardScaler(), SelectKBest(k=8), SVC()
    ),
    "PCA + RBF": make_pipeline(PCA(5, svd_solver="full"), SVC()),
    "scale + RBF, balanced": make_pipeline(
        StandardScaler(), SVC(class_weight="balanced")
    ),
}


def with_holes(X: np.ndarray, seed: int) -> np.ndarray:
    """Return X with one of 20 entries missing."""
    holes = np.random.default_rng(seed).random(X.shape) < 0.05
    return np.where(holes, np.nan, X)


def loop(
    pipeline: Pipeline, X: np.ndarray, y: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """Return scikit-learn's left-out labels of some rows."""
    everything = np.arange(y.size)
    splits = [(np.delete(everything, row), np.array([row])) for row in rows]
    found = [clone(pipeline).fit(X[a], y[a]).predict(X[b]) for a, b in splits]
    return np.concatenate(found)


def main() -> None:
    bench = Benchmark("speed_fold", __doc__, with_data=True)
    for name in SETS[: 1 if bench.quick else None]:
        file = np.load(bench.data / f"{name}.npz")
        X, y = file["X"].astype(float), file["y"]
        rows = np.unique(np.linspace(0, y.size - 1, N_SPLITS).astype(int))
        loop(PIPELINES["scale + RBF"], X, y, rows[:1])  # the first calls load libraries
        lo.leave_one_out(PIPELINES["scale + RBF"], X, y, preprocessing="fold")
        for what, pipeline in PIPELINES.items():
            Z = with_holes(X, bench.args.seed) if "impute" in what else X
            times = bench.seconds(
                {
                    "peer": lambda p=pipeline, Z=Z, y=y, r=rows: loop(p, Z, y, r),
                    "ours": lambda p=pipeline, Z=Z, y=y: lo.leave_one_out(
                        p, Z, y, preprocessing="fold"
                    ),
                },
                5,
            )
            peer = times["peer"] * y.size / rows.size
            result = lo.leave_one_out(pipeline, Z, y, preprocessing="fold")
            tight = clone(pipeline).set_params(svc__tol=1e-8)
            clear = ~result.ambiguous[rows]
            other = (loop(tight, Z, y, rows) != result.predictions[rows])[clear]
            bench.cells.append(
                {
                    "data": name, "n": y.size, "p": X.shape[1], "pipeline": what,
                    "peer": peer, "ours": times["ours"], "ratio": peer / times["ours"],
                    "other labels": int(other.sum()), "compared": int(clear.sum()),
                    "refits": int(result.counts["refits"]),
                }
            )  # fmt: skip
            workload = f"{name} {y.size} x {X.shape[1]}, {what}"
            bench.add(Row(workload, peer, times["ours"], peer / times["ours"]))
    total, compared, refits = (
        sum(cell[key] for cell in bench.cells)
        for key in ("other labels", "compared", "refits")
    )
    bench.note(f"{total} of {compared} labels differ from scikit-learn's at tol 1e-8")
    bench.note(f"{refits} folds were solved from zero")
    bench.close()


if __name__ == "__main__":
    with one_thread():
        main()
