# SPDX-License-Identifier: BSD-3-Clause
"""Try the properties of the public API on new seeds until the time is up.

    make fuzz SECONDS=600
    python benchmarks/fuzz.py --only stressed --seed 123456    # one failure again

A seed is all there is to a case: a failure prints the command that repeats it, and is
kept in results/fuzz/results.json, with the number of cases tried, of samples compared
and of disagreements by property. Each case runs in a worker process; one that takes
longer than --timeout is ended and counts as a hang.
"""

from __future__ import annotations

import argparse
import json
import platform
import secrets
import sys
import warnings
from collections import Counter
from datetime import date
from importlib.metadata import version
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))


def work(pipe: Connection) -> None:
    """Answer (name, seed) with (samples compared, what went wrong or "")."""
    from nightly.properties import PROPERTIES

    import leaveout as lo

    warnings.simplefilter("error")
    warnings.simplefilter("ignore", lo.LeaveoutWarning)
    while True:
        name, seed = pipe.recv()
        try:
            pipe.send((PROPERTIES[name](seed), ""))
        except Exception as error:
            pipe.send((0, f"{type(error).__name__}: {error}"))


class Worker:
    """A process that tries cases, and is replaced if it hangs or dies."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._start()

    def _start(self) -> None:
        context = get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=work, args=(other,), daemon=True)
        self.process.start()
        other.close()

    def attempt(self, name: str, seed: int) -> tuple[int, str]:
        """Try a case; return (samples compared, what went wrong or "")."""
        self.pipe.send((name, seed))
        problem = f"hang: more than {self.timeout:g} s"
        try:
            if self.pipe.poll(self.timeout):
                return self.pipe.recv()
        except EOFError:
            problem = f"the process died with code {self.process.exitcode}"
        self.process.kill()
        self.process.join()
        self._start()
        return 0, problem


def fuzz(names: list[str], first: int, seconds: float, timeout: float) -> dict:
    """Go round the properties, a new seed each time, until the time is up."""
    cases, compared = Counter[str](), Counter[str]()
    failures: list[dict[str, object]] = []
    worker, started, k = Worker(timeout), monotonic(), 0
    while monotonic() - started < seconds:
        name, seed = names[k % len(names)], first + k // len(names)
        n_samples, problem = worker.attempt(name, seed)
        cases[name] += 1
        compared[name] += n_samples
        if problem:
            failures.append({"property": name, "seed": seed, "problem": problem[:300]})
            print(f"{name}, seed {seed}: {problem[:300]}")
            print(
                f"  python benchmarks/fuzz.py --only {name} --seed {seed}", flush=True
            )
        k += 1
    worker.process.kill()
    by_property = {
        name: {
            "cases": cases[name],
            "samples_compared": compared[name],
            "disagreements": sum(f["property"] == name for f in failures),
        }
        for name in names
    }
    return {"properties": by_property, "failures": failures}


def repeat(names: list[str], seed: int) -> None:
    """Run one seed here, with its traceback."""
    from nightly.properties import PROPERTIES

    for name in names:
        print(name, seed, PROPERTIES[name](seed), "samples agree")


def main() -> None:
    from nightly.properties import PROPERTIES

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--timeout", type=float, default=120.0, help="of one case")
    parser.add_argument("--only", nargs="+", choices=list(PROPERTIES))
    parser.add_argument("--first-seed", type=int, default=secrets.randbits(32))
    parser.add_argument("--seed", type=int, help="repeat this seed only")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "fuzz")
    args = parser.parse_args()
    names = args.only or list(PROPERTIES)
    if args.seed is not None:
        repeat(names, args.seed)
        return
    print(f"First seed: {args.first_seed}", flush=True)
    found = fuzz(names, args.first_seed, args.seconds, args.timeout)
    totals = {
        key: sum(row[key] for row in found["properties"].values())
        for key in ("cases", "samples_compared", "disagreements")
    }
    packages = ("leaveout", "numpy", "scipy", "scikit-learn", "clarabel")
    results = {
        "date": date.today().isoformat(),
        "first_seed": args.first_seed,
        "seconds": args.seconds,
        "totals": totals,
        **found,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in packages},
        },
    }
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    print(totals)
    sys.exit(bool(found["failures"]))


if __name__ == "__main__":
    main()
