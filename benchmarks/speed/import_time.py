# SPDX-License-Identifier: BSD-3-Clause
"""Importing our SVC ÷ importing scikit-learn's, each in a fresh process.

The package loads a name on first use, so the class is imported, not the package.

Run:
``python benchmarks/speed/import_time.py [--quick]``
"""

from __future__ import annotations

import statistics
import subprocess
import sys

from measure import Benchmark, Row, plain_install

# Without site (-S) no editable install is on the path; the clock starts after start-up.
CODE = """
import sys
sys.path[:0] = {folders!r}
from time import {clock} as clock
started = clock()
from {module} import SVC
print(clock() - started)
"""


def import_seconds(module: str, folders: list[str], clock: str) -> float:
    """Time one import in a process of its own."""
    code = CODE.format(module=module, folders=folders, clock=clock)
    command = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    bench = Benchmark("speed_import_time", __doc__)
    with plain_install() as folders:
        seconds: dict[str, list[float]] = {"sklearn.svm": [], "leaveout": []}
        for _ in range(bench.repeats(15) + 1):
            for module, found in seconds.items():
                found.append(import_seconds(module, folders, bench.clock.__name__))
    medians = {m: statistics.median(found[1:]) for m, found in seconds.items()}
    peer, ours = medians["sklearn.svm"], medians["leaveout"]
    bench.add(Row("import", peer, ours, ours / peer, "≤ 1.15", "≤ 1.05"))
    bench.close()


if __name__ == "__main__":
    main()
