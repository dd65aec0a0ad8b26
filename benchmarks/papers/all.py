# SPDX-License-Identifier: BSD-3-Clause
"""Remake the tables and figures of all five papers, the papers' numbers beside ours.

    python benchmarks/papers/all.py --data DIR [--quick] [--papers franc2008 ...]

Each paper is a script of its own, whose docstring says what DIR must hold and what is
smaller than in the paper. ``--quick`` runs small settings, two minutes of CPU time, and
stores nothing. Without it, each script runs in full, for hours, and stores its results
in ``benchmarks/results``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from time import perf_counter

# Script -> its arguments for a quick run, besides --quick.
PAPERS = {
    "weston1999": ["--parts", "table1", "splits", "figure3"],
    "tsuda2001": ["--parts", "two_class", "multi_class", "warning"],
    "franc2008": ["--parts", "table2", "table3", "wide", "figure1"],
    "guermeur2009": [],
    "wang2022": [],
}


def run(script: str, data: Path, quick: bool) -> int:
    """Run one script; return its exit code."""
    path = Path(__file__).with_name(f"{script}.py")
    small = ["--quick", *PAPERS[script]] if quick else []
    title = next(line for line in path.read_text().splitlines() if '"""' in line)
    print("=" * 88, title.strip('" '), "=" * 88, sep="\n", flush=True)
    started = perf_counter()
    command = [sys.executable, str(path), "--data", str(data), *small]
    code = subprocess.run(command, check=False).returncode
    print(f"{script}: {perf_counter() - started:.0f} s, exit code {code}", flush=True)
    return code


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of .npz sets")
    parser.add_argument("--quick", action="store_true", help="small; nothing is stored")
    parser.add_argument("--papers", nargs="+", choices=PAPERS, default=list(PAPERS))
    args = parser.parse_args()
    failed = [name for name in args.papers if run(name, args.data, args.quick)]
    if failed:
        sys.exit(f"Failed: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
