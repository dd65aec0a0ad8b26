# SPDX-License-Identifier: BSD-3-Clause
"""Run the tests on kernels that watch their memory: once checked, once sanitised.

    python tools/check_kernels.py [bounds] [sanitizer]

``bounds``     Cython's own bounds checks compiled in, the whole suite.
``sanitizer``  GCC's AddressSanitizer and UndefinedBehaviorSanitizer compiled in, the
               tests that call kernels.

Before each run a fault is planted in one kernel, a loop one step too long: a watch that
does not see it proves nothing. Counts, findings and the end of each output are stored
in ``benchmarks/results/kernel_safety``. Needed: GCC, and ``make check-kernels``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from environments import (
    CHECKS,
    RESULTS,
    Environment,
    copy_sources,
    make_environment,
    read_project,
    requirements,
    store,
)

NAME = "kernel_safety"
# Those that call compiled kernels.
KERNEL_TESTS = [
    "tests/solve",
    "tests/loo",
    "tests/estimators/test_feature_svc.py",
    "tests/estimators/test_extremes.py",
    "tests/estimators/test_threads.py",
    # ASan keeps what is freed for a while.
    "--deselect=tests/estimators/test_threads.py::test_memory_does_not_grow_over_a_thousand_calls",
]
# The plant: the gradient of a machine without intercept updated one sample too far.
PLANT_IN = "src/leaveout/engine/_smo_fast.pyx"
PLANT = ("for k in range(n):\n                F[k] -=", "range(n)", "range(n + 1)")
PLANT_TEST = ["tests/solve/test_svc_oracle.py"]
LINES_OF_LOG = 40
WORKERS = 2


@dataclass(frozen=True)
class Watch:
    """How kernels are built and run so that they watch their memory."""

    options: tuple[str, ...]
    tests: list[str]
    marks: tuple[str, ...]  # words of a finding
    build_env: dict[str, str] = field(default_factory=dict)
    run_env: dict[str, str] = field(default_factory=dict)


def gcc_library(name: str) -> str:
    """Path of a library that comes with GCC."""
    command = ["gcc", f"-print-file-name={name}"]
    return subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()


def sanitizer() -> Watch:
    """ASan ends the process at its first finding, UBSan reports and goes on."""
    findings = CHECKS / "findings"
    return Watch(
        options=("-Db_sanitize=address,undefined", "-Db_lundef=false"),
        tests=KERNEL_TESTS,
        marks=("ERROR: AddressSanitizer", "runtime error"),
        build_env={"CFLAGS": "-g -fno-omit-frame-pointer"},
        run_env={
            # Python itself is not instrumented: the run-time libraries come first.
            "LD_PRELOAD": f"{gcc_library('libasan.so')} {gcc_library('libubsan.so')}",
            # What Python never gives back is no leak of ours.
            "ASAN_OPTIONS": f"detect_leaks=0:log_path={findings}",
            "UBSAN_OPTIONS": f"print_stacktrace=1:log_path={findings}",
            # Every object its own block with guards around it, no pools.
            "PYTHONMALLOC": "malloc",
        },
    )


def bounds() -> Watch:
    """Let Cython raise IndexError; pytest sees it even where it cannot be raised."""
    return Watch(
        options=("-Dkernel_checks=true",),
        tests=["tests"],
        marks=("IndexError: Out of bounds", "Exception ignored in"),
    )


WATCHES = {"bounds": bounds, "sanitizer": sanitizer}


def install(environment: Environment, sources: Path, name: str, watch: Watch) -> None:
    """Build the sources with the watch compiled in, and install them."""
    options = [f"--config-settings=setup-args={option}" for option in watch.options]
    environment.install(
        "--no-build-isolation", "--no-deps", "--no-cache", "--reinstall",
        *options, f"--config-settings=build-dir={CHECKS / f'build_{name}'}", sources,
        env=watch.build_env,
    )  # fmt: skip


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
    environment: Environment,
    watch: Watch,
    sources: Path,
    tests: list[str],
    *options: str,
) -> tuple[dict[str, Any], list[str], str]:
    """Return the counts, the findings and the output."""
    for path in CHECKS.glob("findings.*"):
        path.unlink()
    outcome, output = environment.test(
        *tests, *options, cwd=sources, env=watch.run_env, workers=WORKERS
    )
    reports = "".join(path.read_text() for path in sorted(CHECKS.glob("findings.*")))
    findings = [
        line
        for line in (output + reports).splitlines()
        if any(mark in line for mark in watch.marks)
    ]
    return outcome, findings, reports + output


def check(name: str, tests: list[str] | None = None) -> tuple[dict[str, Any], str]:
    """Plant a fault and see it; then run the tests on the kernels as they are."""
    watch = WATCHES[name]()
    environment = make_environment(f"venv_{name}")
    tools = read_project()["build-system"]["requires"]
    environment.install(*tools, "ninja", *requirements("test"))
    sources = copy_sources(f"sources_{name}")

    original = plant(sources)
    install(environment, sources, name, watch)
    outcome, seen, _ = run_tests(environment, watch, sources, PLANT_TEST, "-x")
    if not seen or not outcome["exit_code"]:
        raise SystemExit(f"{name}: the planted fault was not seen")
    print(f"{name}: planted fault seen: {seen[0]}", flush=True)

    (sources / PLANT_IN).write_text(original)
    install(environment, sources, name, watch)
    tests = tests or watch.tests
    outcome, findings, output = run_tests(environment, watch, sources, tests)
    print(f"{name}: {outcome}, {len(findings)} findings", flush=True)
    result = {
        "options": list(watch.options),
        "tests": tests,
        "planted_fault_seen": True,
        **outcome,
        "findings": len(findings),
        "versions": environment.versions(("cython", "numpy", "scipy")),
    }
    head = f"planted fault seen: {seen[0]}\nthen, without it:\n"
    return result, head + "\n".join(output.splitlines()[-LINES_OF_LOG:]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("watches", nargs="*", default=sorted(WATCHES))
    parser.add_argument("--tests", nargs="+", help="instead of those named above")
    args = parser.parse_args()
    path = RESULTS / NAME / "results.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    logs = {}
    for name in args.watches:
        results[name], logs[name] = check(name, args.tests)
        store(NAME, results, logs)
    if any(results[name]["exit_code"] or results[name]["findings"] for name in logs):
        raise SystemExit("not clean: see the logs")


if __name__ == "__main__":
    main()
