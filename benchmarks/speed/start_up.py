# SPDX-License-Identifier: BSD-3-Clause
"""Imports and commands ÷ imports of scikit-learn, each in a fresh process.

The package loads a name on first use, so the class is imported, too. Run:
``python benchmarks/speed/start_up.py [--quick] [--cpu]``
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from measure import Benchmark, Row, plain_install
from sklearn.datasets import load_iris

PEER, WITH_PANDAS = "import sklearn.svm", "import sklearn.svm, pandas"
# Name of the row, statement, words of the command, peer, must, goal.
WORKLOADS = (
    ("import leaveout", "import leaveout", "", PEER, "≤ 1.10", "≤ 1.05"),
    ("import SVC", "from leaveout import SVC", "", PEER, "≤ 1.10", "≤ 1.05"),
    ("--help", "import leaveout.cli as c; c.main()", "--help", PEER, "≤ 0.3", "≤ 0.15"),
    ("select, 150 rows", "import leaveout.cli as c; c.main()",
     "select TABLE --target species", WITH_PANDAS, "≤ 1.5", "≤ 1.2"),
)  # fmt: skip


def run_seconds(
    statement: str, words: list[str], folders: list[str], cpu: bool
) -> float:
    """Time one process from start to end, or its CPU time."""
    # Without site (-S) no editable install is on the path.
    code = f"import sys; sys.path[:0] = {folders!r}\n{statement}"
    before, started = cpu_seconds_of_children(), perf_counter()
    subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, *words],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    if cpu:
        return cpu_seconds_of_children() - before
    return perf_counter() - started


def cpu_seconds_of_children() -> float:
    """Return the CPU time of all finished child processes, to a microsecond."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    bench = Benchmark("speed_start_up", __doc__)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    runs = {PEER: (PEER, ""), WITH_PANDAS: (WITH_PANDAS, "")}
    runs |= {name: (code, words) for name, code, words, *_ in WORKLOADS}
    found: dict[str, list[float]] = {name: [] for name in runs}
    with plain_install() as folders, tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "iris.csv")
        data = load_iris(as_frame=True)
        species = data.target_names[data.target]
        data.data.assign(species=species).to_csv(table, index=False)
        for _ in range(bench.repeats(15) + 1):
            for name, (code, words) in runs.items():
                parts = words.replace("TABLE", str(table)).split()
                found[name].append(run_seconds(code, parts, folders, bench.args.cpu))
    medians = {name: statistics.median(times[1:]) for name, times in found.items()}
    for name, _, _, peer, must, goal in WORKLOADS:
        ratio = medians[name] / medians[peer]
        bench.add(Row(name, medians[peer], medians[name], ratio, must, goal))
    bench.note("complete processes, start of Python included; the first is not counted")
    bench.close()


if __name__ == "__main__":
    main()
