# SPDX-License-Identifier: BSD-3-Clause
"""Run the suite on the oldest and the newest packages, on every Python there is.

    python tools/check_versions.py [oldest] [newest] [--python 3.11 3.12 3.13]

One wheel a Python is built as a user's pip would build it, in isolation, with the
newest build tools; it is then installed beside

``oldest``   the lowest versions that pyproject.toml allows and that have wheels for
             this Python, of dependencies, extras for users and readers of data; test
             tools are new. Pages are not run, they print numbers as NumPy 2 does;
``newest``   what pip would take today.

A Python that is not on this machine is reported as such, not skipped in silence. Counts
and versions are stored in ``benchmarks/results/versions``.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from environments import (
    CHECKS,
    RECORDED,
    RECORDED_CLI,
    RESULTS,
    Environment,
    copy_sources,
    make_environment,
    requirements,
    store,
    uv,
)

NAME = "versions"
SETS = ("oldest", "newest")
PYTHONS = ("3.11", "3.12", "3.13")
FACES = ("cli", "plot", "dask", "parquet")
READERS = ("polars",)
# What old packages warn of in the company of new ones is not ours.
OLD = [
    "-W", "default::DeprecationWarning", "-W", "default::FutureWarning",
    "--ignore=tests/test_docs.py",
]  # fmt: skip


def build_wheel(python: str, sources: Path) -> Path:
    """Build a wheel in isolation, as pip does from the sdist."""
    folder = CHECKS / f"wheel_{python}"
    shutil.rmtree(folder, ignore_errors=True)
    uv("build", "--wheel", "--no-cache", "--python", python, "-o", folder, sources)
    (wheel,) = folder.glob("*.whl")
    return wheel


def lowest_versions(python: str) -> list[str]:
    """Resolve what we ask for to the lowest versions that have wheels."""
    asked = CHECKS / "asked.txt"
    readers = [line for line in requirements("test") if line.startswith(READERS)]
    asked.write_text("\n".join([*requirements(*FACES), *readers]) + "\n")
    return uv(
        "pip", "compile", "--python", python, "--resolution=lowest-direct",
        "--only-binary=:all:", "--no-annotate", "--no-header", asked,
    ).split()  # fmt: skip


def make_set(kind: str, python: str, wheel: Path) -> Environment:
    """Make an environment with the wheel and the oldest or newest packages."""
    environment = make_environment(f"venv_{kind}_{python}", python)
    pinned = lowest_versions(python) if kind == "oldest" else []
    environment.install("--only-binary=:all:", wheel, *pinned, *requirements("test"))
    return environment


def check(
    kind: str, python: str, sources: Path, tests: list[str], workers: int
) -> dict[str, Any]:
    """Run tests in one environment; print what failed."""
    environment = make_set(kind, python, build_wheel(python, sources))
    options = OLD if kind == "oldest" else []
    outcome, output = environment.test(*tests, *options, cwd=sources, workers=workers)
    print("\n".join(output.splitlines()[-60:]), flush=True)
    versions = environment.versions((*RECORDED, *RECORDED_CLI))
    return {"set": kind, "tests": tests, **outcome, "versions": versions}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--python", nargs="+", default=PYTHONS)
    parser.add_argument("--tests", nargs="+", default=["tests"])
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    path = RESULTS / NAME / "results.json"
    runs = json.loads(path.read_text())["runs"] if path.exists() else {}
    failed = []
    # Once: a stored run makes docs/promises.md out of date, which the suite tests.
    sources = copy_sources("sources_versions")
    for python in args.python:
        for kind in args.sets:
            name = f"{kind} {python}"
            runs[name] = check(kind, python, sources, args.tests, args.workers)
            print(name, runs[name], flush=True)
            store(NAME, {"runs": dict(sorted(runs.items()))}, {})
            failed += [name] * bool(runs[name]["exit_code"])
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
