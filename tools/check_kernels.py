# SPDX-License-Identifier: BSD-3-Clause
"""Run the tests on kernels that watch their memory.

    python tools/check_kernels.py [bounds] [sanitizer]

``bounds`` compiles Cython's bounds checks in and runs the default tests; ``sanitizer``
compiles GCC's address and undefined-behaviour sanitizers in and runs the tests that
call kernels. Before each run a fault is planted in one kernel, a loop one step too
long: a watch that misses it proves nothing. Counts and findings are stored in
``benchmarks/results/kernel_safety``. Everything is built in ``build/checks``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CHECKS = ROOT / "build" / "checks"
RESULTS = ROOT / "benchmarks" / "results" / "kernel_safety" / "results.json"
KERNEL_TESTS = [
    "kernel", "engine", "methods", "lp", "llw", "loo", "adapt/test_folds.py",
    "large/test_feature_svc.py",
]  # fmt: skip
# The plant: the gradient of an SVM without intercept, updated one sample too far.
PLANT_IN = "src/leaveout/engine/_smo_fast.pyx"
PLANT = ("for k in range(n):\n                F[k] -=", "range(n)", "range(n + 1)")
PLANT_TEST = ["tests/engine/test_solve.py"]


@dataclass(frozen=True)
class Watch:
    """How kernels are built and run so that they watch their memory."""

    options: tuple[str, ...]
    tests: list[str]
    marks: tuple[str, ...]  # words of a finding
    build_env: dict[str, str] = field(default_factory=dict)
    run_env: dict[str, str] = field(default_factory=dict)


def bounds() -> Watch:
    """Let Cython raise IndexError; pytest sees it even where it cannot be raised."""
    return Watch(
        options=("-Dkernel_checks=true",),
        tests=["tests"],
        marks=("IndexError: Out of bounds", "Exception ignored in"),
    )


def sanitizer() -> Watch:
    """ASan ends the process at its first finding, UBSan reports and goes on."""
    libraries = [
        subprocess.check_output(["gcc", f"-print-file-name={name}"], text=True).strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    findings = CHECKS / "findings"
    return Watch(
        options=("-Db_sanitize=address,undefined", "-Db_lundef=false"),
        tests=[f"tests/{name}" for name in KERNEL_TESTS],
        marks=("ERROR: AddressSanitizer", "runtime error"),
        build_env={"CFLAGS": "-g -fno-omit-frame-pointer"},
        run_env={
            # Python itself is not instrumented: the run-time libraries come first.
            "LD_PRELOAD": " ".join(libraries),
            # What Python never gives back is not a leak of ours.
            "ASAN_OPTIONS": f"detect_leaks=0:log_path={findings}",
            "UBSAN_OPTIONS": f"print_stacktrace=1:log_path={findings}",
            # Every object in its own block with guards around it, no pools.
            "PYTHONMALLOC": "malloc",
        },
    )


WATCHES = {"bounds": bounds, "sanitizer": sanitizer}


def run(python: Path, *args: object, env: dict[str, str] | None = None, **options: Any):
    """Run a Python of ours; its programs, such as ninja, come first on the PATH."""
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [str(part) for part in (python, *args)]
    environment = os.environ | threads | {"PATH": path} | (env or {})
    return subprocess.run(command, env=environment, text=True, **options)


def make_environment(name: str) -> Path:
    """Return the Python of a new environment with build and test tools."""
    folder = CHECKS / f"venv_{name}"
    run(Path(sys.executable), "-m", "venv", "--clear", folder, check=True)
    python = folder / "bin" / "python"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    tools = [*project["build-system"]["requires"], "ninja"]
    run(python, "-m", "pip", "install", "-q", *tools, check=True)
    return python


def copy_sources(name: str) -> Path:
    """Copy the files that git knows, as they are now."""
    folder = CHECKS / f"sources_{name}"
    shutil.rmtree(folder, ignore_errors=True)
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
    for file in filter(None, listed.split("\0")):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, folder / file)
    return folder


def install(python: Path, sources: Path, watch: Watch) -> None:
    """Build the sources with the watch compiled in, and install them."""
    options = [f"--config-settings=setup-args={option}" for option in watch.options]
    pip = ("-m", "pip", "install", "-q", "--no-build-isolation", "--no-cache-dir")
    run(python, *pip, *options, f"{sources}[test]", env=watch.build_env, check=True)


def plant(sources: Path) -> str:
    """Make one loop of a kernel a step too long; return the file as it was."""
    path = sources / PLANT_IN
    text = path.read_text()
    where, old, new = PLANT
    if text.count(where) != 1:
        raise SystemExit(f"the loop to plant a fault in is not in {PLANT_IN}")
    path.write_text(text.replace(where, where.replace(old, new)))
    return text


def run_tests(
    python: Path, watch: Watch, sources: Path, *tests: str
) -> tuple[int, str, list[str]]:
    """Return the exit code, the last line of pytest and the findings."""
    for path in CHECKS.glob("findings.*"):
        path.unlink()
    done = run(
        python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", *tests,
        env=watch.run_env, cwd=sources,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    text = done.stdout + "".join(path.read_text() for path in CHECKS.glob("findings.*"))
    found = [line for line in text.splitlines() if any(m in line for m in watch.marks)]
    print(*done.stdout.splitlines()[-40:], *found, sep="\n", flush=True)
    ends = re.findall(r"^\d+ (?:passed|failed).*", done.stdout, re.M)
    return done.returncode, ends[-1] if ends else "crashed", found


def check(name: str, tests: list[str] | None) -> dict[str, Any]:
    """Plant a fault and see it; then run the tests on the kernels as they are."""
    watch, python, sources = WATCHES[name](), make_environment(name), copy_sources(name)
    original = plant(sources)
    install(python, sources, watch)
    code, _, seen = run_tests(python, watch, sources, *PLANT_TEST, "-x")
    if not seen or not code:
        raise SystemExit(f"{name}: the planted fault was not seen")
    (sources / PLANT_IN).write_text(original)
    install(python, sources, watch)
    code, outcome, findings = run_tests(python, watch, sources, *(tests or watch.tests))
    return {
        "options": list(watch.options),
        "tests": tests or watch.tests,
        "planted_fault_seen": True,
        "exit_code": code,
        "outcome": outcome,
        "findings": len(findings),
        "date": date.today().isoformat(),
        "machine": platform.machine(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("watches", nargs="*", default=sorted(WATCHES))
    parser.add_argument("--tests", nargs="+", help="instead of those named above")
    args = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in args.watches:
        results[name] = check(name, args.tests)
        RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    if any(results[n]["exit_code"] or results[n]["findings"] for n in args.watches):
        raise SystemExit("not clean: see above")


if __name__ == "__main__":
    main()
