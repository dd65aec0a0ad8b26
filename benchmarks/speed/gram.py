# SPDX-License-Identifier: BSD-3-Clause
"""The RBF Gram matrix of n samples, ``rbf_kernel`` of scikit-learn ÷ leaveout's.

Twenty features, gamma = 1/20; leaveout's includes the search for equal samples. The
cells hold the largest relative difference between the two matrices.
Run: ``python benchmarks/speed/gram.py [--quick]``
"""

from __future__ import annotations

from functools import partial

import numpy as np
from measure import Benchmark, Row, one_thread
from sklearn.metrics.pairwise import rbf_kernel

from leaveout.data import make_mixture
from leaveout.kernel._gram import make_gram

SIZES = (50, 100, 200, 500, 1000, 2000, 5000)
GAMMA = 0.05


def main() -> None:
    bench = Benchmark("speed_gram", __doc__, sizes=SIZES)
    for n in bench.sizes:
        X, _ = make_mixture(n, 20, random_state=bench.args.seed)
        peer = partial(rbf_kernel, X, gamma=GAMMA)
        ours = partial(make_gram, X, kernel="rbf", gamma=GAMMA)
        difference = float(np.abs(ours().K / peer() - 1.0).max())
        bench.cells.append({"n": n, "difference": difference})
        times = bench.seconds(
            {"peer": peer, "ours": ours}, int(np.clip(2e5 / n, 15, 500))
        )
        ratio = times["peer"] / times["ours"]
        bench.add(Row(f"n={n}", *times.values(), ratio, "≥ 1"))
    bench.close()


if __name__ == "__main__":
    with one_thread():
        main()
