# SPDX-License-Identifier: BSD-3-Clause
"""One ``leave_one_out`` call ÷ one ``fit`` of scikit-learn's SVC, on few samples.

Fixed gamma, from X: the price of everything around the numbers. Breast cancer, scaled.
Run: ``python benchmarks/speed/one_call.py [--quick]``
"""

from __future__ import annotations

from functools import partial

import numpy as np
from measure import Benchmark, Row, one_thread
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from sklearn.svm import SVC

import leaveout as lo

MUSTS = {20: "≤ 0.6", 50: "≤ 0.6", 100: "≤ 1"}


def main() -> None:
    bench = Benchmark("speed_one_call", __doc__, sizes=MUSTS)
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(bench.args.seed).permutation(y.size)
    X, y = scale(X)[order], y[order]
    svc = SVC(C=1.0, gamma=0.02)
    for n in bench.sizes:
        calls = {
            "peer": partial(svc.fit, X[:n], y[:n]),
            "ours": partial(lo.leave_one_out, svc, X[:n], y[:n]),
        }
        for call in calls.values():
            call()  # the first call loads libraries
        times = bench.seconds(calls, 200)
        ratio = times["ours"] / times["peer"]
        bench.add(Row(f"n={n}", *times.values(), ratio, MUSTS.get(n, "")))
    bench.close()


if __name__ == "__main__":
    with one_thread():
        main()
