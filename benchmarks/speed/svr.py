# SPDX-License-Identifier: BSD-3-Clause
"""Leave-one-out of epsilon-SVR, fit included, ÷ one LIBSVM fit (tol 1e-3).

Nine regression sets, five settings each, y and the features standardised, RBF with
gamma = 1 / p; the Gram matrix is given to both. Of sets with up to 260 samples, two
left-out predictions per model are also solved by an interior point (clarabel), without
our code; ``deviation`` in cells.csv is the largest difference, in standard deviations
of y. Run:
``python benchmarks/speed/svr.py --data DIR [--quick]``, DIR with reg_*.npz
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from measure import Benchmark, Row, one_thread
from oracles.regression import loo_predictions
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale
from sklearn.svm import SVR

import leaveout as lo
from leaveout.kernel._gram import gram_matrix

SETTINGS = [(1.0, 0.1), (10.0, 0.1), (100.0, 0.1), (10.0, 0.01), (10.0, 0.5)]
N_CHECKED, LARGEST_CHECKED = 2, 260


def data_sets(bench: Benchmark) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield name, Gram matrix and standardised y."""
    sets = {"diabetes": load_diabetes(return_X_y=True)}
    for path in sorted(bench.data.glob("reg_*.npz")):
        file = np.load(path)
        sets[path.stem.removeprefix("reg_")] = file["X"], file["y"]
    for name, (X, y) in list(sets.items())[: 2 if bench.quick else None]:
        X = scale(X.astype(float))
        yield name, gram_matrix(X, kernel="rbf"), scale(y.astype(float))


def main() -> None:
    bench = Benchmark("speed_svr", __doc__, with_data=True)
    rng = np.random.default_rng(bench.args.seed)
    for name, K, y in data_sets(bench):
        for C, epsilon in SETTINGS:
            svr = SVR(kernel="precomputed", C=C, epsilon=epsilon)
            times = bench.seconds(
                {
                    "peer": lambda: svr.fit(K, y),  # noqa: B023
                    "ours": lambda: lo.leave_one_out(svr, K, y),  # noqa: B023
                },
                5,
            )
            result = lo.leave_one_out(svr, K, y)
            count = N_CHECKED if y.size <= LARGEST_CHECKED else 0
            rows = rng.choice(y.size, count, replace=False)
            ends = loo_predictions(K, y, np.full(y.size, C), epsilon, rows)
            ends = ends.reshape(count, 2)
            found = result.predictions[rows]
            beyond = np.maximum(ends[:, 0] - found, found - ends[:, 1])
            bench.cells.append(
                {
                    "data": name,
                    "n": y.size,
                    "C": C,
                    "epsilon": epsilon,
                    "q2": result.q2,
                    "uncertified": int((~result.certified).sum()),
                    "refits": int(result.counts["refits"]),
                    "ratio": times["ours"] / times["peer"],
                    "deviation": float(beyond.max(initial=0.0)),
                    "peer": times["peer"],
                    "ours": times["ours"],
                }
            )
        here = bench.cells[-len(SETTINGS) :]
        peer, ours = (
            float(np.mean([cell[key] for cell in here])) for key in ("peer", "ours")
        )
        bench.add(Row(f"{name} n={y.size}", peer, ours, ours / peer))
    ratios = [cell["ratio"] for cell in bench.cells]
    bench.note(
        f"{len(ratios)} models: median ratio {np.median(ratios):.2f} (must 3), largest "
        f"{max(ratios):.2f} (must 8); largest deviation from clarabel "
        f"{max(cell['deviation'] for cell in bench.cells):.1e}"
    )
    bench.close()


if __name__ == "__main__":
    with one_thread():
        main()
