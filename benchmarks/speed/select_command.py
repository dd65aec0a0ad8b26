# SPDX-License-Identifier: BSD-3-Clause
"""Where ``leaveout select --report`` spends its time: breast cancer, default grid.

Each run is a process of its own, timed from outside and by its own clock (what
``--verbose`` prints). Run: ``python benchmarks/speed/select_command.py [--quick]``
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from measure import Benchmark, Row, plain_install

CODE = """
import sys
sys.path[:0] = {folders!r}
from leaveout.cli import main
main()
"""


def split_command(folders: list[str], page: Path) -> dict[str, float]:
    """Run the command once; return the seconds of its parts, and of the whole."""
    code = CODE.format(folders=folders)
    options = ["select", "--report", str(page), "--json"]
    started = perf_counter()
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, *options],
        capture_output=True,
        text=True,
        check=True,
    )
    whole = perf_counter() - started
    parts = json.loads(done.stdout)["seconds"]
    # Start-up is the process's CPU time; waiting for the disk and the end of Python
    # are in no part.
    return parts | {"not counted": whole - sum(parts.values()), "whole": whole}


def main() -> None:
    bench = Benchmark("speed_select_command", __doc__)
    with plain_install() as folders, tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        split_command(folders, page)  # files into the cache, and fonts
        for _ in range(bench.repeats(9)):
            bench.cells.append(split_command(folders, page))
    whole = statistics.median(cell["whole"] for cell in bench.cells)
    for part in bench.cells[0]:
        if part != "whole":
            spent = statistics.median(cell[part] for cell in bench.cells)
            bench.add(Row(part, whole, spent, spent / whole))
    bench.note("peer: the whole command; ours: the part; medians")
    bench.close()


if __name__ == "__main__":
    main()
