# SPDX-License-Identifier: BSD-3-Clause
"""Build the sdist and, from it, the wheel; install it elsewhere, and use it.

    python tools/check_packages.py

The sdist must hold the files that git knows and no others, the wheel the package with
all its kernels and nothing else. The wheel is installed in an environment that has
seen nothing of this repository: alone, with [cli], and with the test tools for some
tests out of the unpacked sdist. All run in a folder that is not this one. The last
commit is what is packed. Stored in ``benchmarks/results/packages``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

from environments import (
    CHECKS,
    ROOT,
    Environment,
    make_environment,
    requirements,
    store,
    uv,
)

NAME = "packages"
TESTS = ["tests/kernel", "tests/test_layers.py", "tests/cli/test_predict.py"]
LEAVE_OUT = """
import leaveout as lo
result = lo.leave_one_out(lo.SVC(kernel="linear"), [[0], [1], [3], [4]], [0, 0, 1, 1])
assert result.certified.all() and result.error == 0.0
"""


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a command; return what it writes."""
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd, stdout=subprocess.PIPE, text=True, check=True,
    ).stdout  # fmt: skip


def build() -> tuple[Path, Path]:
    """Return the sdist and the wheel made of it."""
    folder = CHECKS / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    uv("build", "--no-cache", "--out-dir", folder, ROOT)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def differences(found: set[str], wanted: set[str]) -> list[str]:
    """Name what is there and should not be, and the reverse."""
    extra = [f"too much: {name}" for name in sorted(found - wanted)]
    return extra + [f"missing: {name}" for name in sorted(wanted - found)]


def faults_of_sdist(path: Path) -> tuple[int, list[str]]:
    """Compare the sdist with the last commit."""
    with tarfile.open(path) as archive:
        found = {member.name.partition("/")[2] for member in archive if member.isfile()}
    listed = run("git", "ls-tree", "-r", "--name-only", "HEAD").splitlines()
    return len(found), differences(found, {*listed, "PKG-INFO"})


def faults_of_wheel(path: Path) -> tuple[int, list[str]]:
    """Compare the wheel with src/leaveout and the list of kernels."""
    names = set(zipfile.ZipFile(path).namelist())
    package = {name for name in names if ".dist-info/" not in name}
    kernels = {re.sub(r"\.[^/]*\.so$", "", n) for n in package if n.endswith(".so")}
    sources = run("git", "ls-files", "src/leaveout").splitlines()
    wanted = {name.removeprefix("src/") for name in sources}
    wanted_kernels = {n.removesuffix(".pyx") for n in wanted if n.endswith("_fast.pyx")}
    rest = {name for name in package if not name.endswith(".so")}
    return len(names), differences(rest, wanted) + differences(kernels, wanted_kernels)


def use(environment: Environment, *args: str, ok: bool = True) -> str:
    """Run Python far from the repository; it must succeed (or, not ok, fail)."""
    elsewhere = CHECKS / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    done = environment.run(*args, cwd=elsewhere)
    if (done.returncode == 0) != ok:
        raise SystemExit(f"python {' '.join(args)}: {done.returncode}\n{done.stdout}")
    return done.stdout


def try_out(sdist: Path, wheel: Path) -> tuple[list[str], dict[str, Any]]:
    """Install and use; return what was done, and the counts of the tests."""
    environment = make_environment("venv_packages")
    environment.install(wheel)
    use(environment, "-c", LEAVE_OUT)
    told = use(environment, "-m", "leaveout.cli", "--help", ok=False)
    if "leaveout[cli]" not in told or "Traceback" in told:
        raise SystemExit(f"without [cli] the command does not say what to do:\n{told}")
    environment.install(f"leaveout[cli] @ {wheel.as_uri()}")
    if "select" not in use(environment, "-m", "leaveout.cli", "--help"):
        raise SystemExit("leaveout --help does not name select")
    shown = use(environment, "-m", "leaveout.cli", "select")
    if "leave-one-out" not in shown.lower():
        raise SystemExit(f"the demo shows no leave-one-out error:\n{shown}")
    environment.install(*requirements("test"))
    unpacked = CHECKS / "unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    (folder,) = unpacked.iterdir()
    outcome, output = environment.test(*TESTS, cwd=folder)
    print(output[-2000:])
    steps = ["import and leave_one_out", "command without [cli]", "help", "demo"]
    return steps, outcome


def main() -> None:
    sdist, wheel = build()
    run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)
    n_sdist, faults = faults_of_sdist(sdist)
    n_wheel, more = faults_of_wheel(wheel)
    faults += more
    print(*faults, sep="\n")
    steps, outcome = try_out(sdist, wheel)
    result = {
        "sdist": {"files": n_sdist, "kilobytes": sdist.stat().st_size // 1000},
        "wheel": {"files": n_wheel, "kilobytes": wheel.stat().st_size // 1000},
        "faults": faults,
        "twine": "passed",
        "steps": steps,
        "tests": TESTS,
        **outcome,
    }
    store(NAME, result, {})
    print(result)
    if faults or outcome["exit_code"]:
        raise SystemExit("the packages are not what they should be")


if __name__ == "__main__":
    main()
