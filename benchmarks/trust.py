# SPDX-License-Identifier: BSD-3-Clause
"""Count faults survived and files refused; store the counts for the docs.

- Corrupt checkpoints: ``tests/corrupt_checkpoints.py`` flips bits of, truncates and
  shuffles the file of a finished search, and searches again.
- Untrusted files: ``tests/fuzz_files.py`` mutates tables and model files.
- Faults: the tests of signals, full disks, read-only folders, too little memory,
  killed workers and threads, with what became of each.
- Kills: what ``benchmarks/faults.py`` has stored.

One file is stored, ``benchmarks/results/trust/counts.json``. Run:
``python benchmarks/trust.py [--trials N] [--seconds S] [--seed K]``
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections import Counter
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

import joblib
import numpy as np
import pandas as pd
import skops
import yaml

import leaveout

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
# File of tests, and what they are about.
FAULTS = {
    "tests/cli/test_faults.py": "signals, disks, folders, memory, workers",
    "tests/run/test_checkpoint.py": "checkpoints",
    "tests/run/test_files.py": "half-written files",
    "tests/cli/test_untrusted_names.py": "scripts and formulas in names",
    "tests/tables/test_files.py": "formulas in cells",
    "tests/test_model_file.py": "model files",
    "tests/run/test_parallel.py": "threads",
}


def run_lines(script: str, *options: object) -> list[dict[str, object]]:
    """Run a script of the tests; return the JSON lines it prints."""
    command = [sys.executable, str(ROOT / "tests" / script), *map(str, options)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def count_corruptions(n_trials: int, seed: int) -> dict[str, object]:
    """Count corrupt checkpoints by kind and outcome."""
    records = run_lines("corrupt_checkpoints.py", "--trials", n_trials, "--seed", seed)
    pairs = Counter((str(r["kind"]), str(r["outcome"])) for r in records)
    return {
        "trials": len(records),
        "same numbers": sum(r["outcome"] == "same" for r in records),
        "refused": sum(r["outcome"] == "refused" for r in records),
        "other": sum(r["outcome"] not in ("same", "refused") for r in records),
        "by injury": {f"{a}: {b}": n for (a, b), n in sorted(pairs.items())},
    }


def count_files(seconds: float, seed: int) -> dict[str, object]:
    """Count files by kind and outcome; a failure ends the script with its file."""
    records = run_lines("fuzz_files.py", "--seconds", seconds, "--seed", seed)
    kinds = {str(record.pop("kind")): record for record in records}
    return {"files": sum(sum(found.values()) for found in kinds.values()), **kinds}


def count_tests() -> dict[str, dict[str, object]]:
    """Run the tests of faults; count them by file."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        for file, subject in FAULTS.items():
            command = [sys.executable, "-m", "pytest", "-q", file]
            command += ["-p", "no:cacheprovider", f"--junitxml={report}"]
            subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
            suite = ElementTree.parse(report).getroot()[0].attrib
            failed = int(suite["failures"]) + int(suite["errors"])
            skipped, n_tests = int(suite["skipped"]), int(suite["tests"])
            found[file] = {
                "about": subject,
                "passed": n_tests - failed - skipped,
                "failed": failed,
                "skipped": skipped,
            }
    return found


def read_kills() -> dict[str, object]:
    """Return what the last run of ``benchmarks/faults.py`` has counted."""
    config = yaml.safe_load((RESULTS / "faults" / "config.yaml").read_text())
    return {"date": config["date"], **config["summary"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--skip-tests", action="store_true")
    args = parser.parse_args()
    counts = {
        "date": date.today().isoformat(),
        "arguments": vars(args),
        "versions": {
            "leaveout": leaveout.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "pandas": pd.__version__,
            "joblib": joblib.__version__,
            "skops": skops.__version__,
        },
        "kills": read_kills(),
        "damaged checkpoints": count_corruptions(args.trials, args.seed),
        "files from strangers": count_files(args.seconds, args.seed),
        "tests": {} if args.skip_tests else count_tests(),
    }
    (RESULTS / "trust").mkdir(parents=True, exist_ok=True)
    text = json.dumps(counts, indent=2)
    (RESULTS / "trust" / "counts.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
