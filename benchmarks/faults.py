# SPDX-License-Identifier: BSD-3-Clause
"""Kill a search 50 times at random with SIGKILL, resume it, compare every bit.

Once with one process, once with two workers; ``tests/faults.py`` does the killing. One
line per kill and per finished search is stored in ``benchmarks/results/faults``. Run:
``python benchmarks/faults.py [--kills N]``
"""

from __future__ import annotations

import argparse
import csv
import json
import platform
import sqlite3
import subprocess
import sys
from datetime import date
from pathlib import Path

import joblib
import numpy as np
import yaml

import leaveout

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "faults"
FIELDS = (
    "n_jobs", "event", "trial", "after_cells", "kept_before", "kept",
    "file", "identical",
)  # fmt: skip


def run_trials(n_kills: int, n_jobs: int, seed: int) -> list[dict[str, object]]:
    """Let ``tests/faults.py`` kill searches; return what it saw."""
    command = [sys.executable, str(ROOT / "tests" / "faults.py")]
    command += ["--kills", str(n_kills), "--n-jobs", str(n_jobs), "--seed", str(seed)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    return [{"n_jobs": n_jobs, **record} for record in records]


def summarise(records: list[dict[str, object]], n_jobs: int) -> dict[str, int]:
    """Count kills and what became of them."""
    own = [record for record in records if record["n_jobs"] == n_jobs]
    kills = [record for record in own if record["event"] == "killed"]
    finished = [record for record in own if record["event"] == "finished"]
    return {
        "kills": len(kills),
        "damaged files": sum(r["file"] not in ("ok", "absent") for r in kills),
        "kept cells lost": sum(r["kept"] < r["kept_before"] for r in kills),
        "searches finished": len(finished),
        "bit-identical": sum(bool(r["identical"]) for r in finished),
    }


def store(records: list[dict[str, object]], config: dict[str, object]) -> None:
    """Write the table and what it was made with."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=FIELDS)
        writer.writeheader()
        writer.writerows(records)
    (RESULTS / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="per number of workers")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    records: list[dict[str, object]] = []
    summary = {}
    for n_jobs in (1, 2):
        records += run_trials(args.kills, n_jobs, args.seed)
        summary[f"n_jobs={n_jobs}"] = summarise(records, n_jobs)
        print(f"n_jobs={n_jobs}", summary[f"n_jobs={n_jobs}"], flush=True)
    store(
        records,
        {
            "date": date.today().isoformat(),
            "arguments": vars(args),
            "summary": summary,
            "versions": {
                "leaveout": leaveout.__version__,
                "python": platform.python_version(),
                "numpy": np.__version__,
                "joblib": joblib.__version__,
                "sqlite": sqlite3.sqlite_version,
            },
        },
    )


if __name__ == "__main__":
    main()
