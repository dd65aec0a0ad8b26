# SPDX-License-Identifier: BSD-3-Clause
"""Fresh environments for the checks of this folder: made, filled, tests run in them.

All of them live in ``build/checks``, which git ignores; nothing outside it is touched.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
CHECKS = ROOT / "build" / "checks"
RESULTS = ROOT / "benchmarks" / "results"
# What decides numbers and files; the rest of an environment is not recorded.
RECORDED = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "highspy")
RECORDED_CLI = (
    "pandas",
    "pyarrow",
    "dask",
    "skops",
    "typer",
    "rich",
    "jinja2",
    "matplotlib",
)
QUIET = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "UV_NATIVE_TLS": "1",  # the certificates of this machine
    "UV_NO_CONFIG": "1",
    "UV_PYTHON_DOWNLOADS": "never",
}


@dataclass(frozen=True)
class Environment:
    """A virtual environment in a folder of its own."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def install(self, *args: str | Path, env: Mapping[str, str] | None = None) -> None:
        """Install by uv; arguments as for ``uv pip install``."""
        uv("pip", "install", "--python", self.python, *args, env=env, path=self.folder)

    def run(
        self, *args: str | Path, env: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run its Python; the output is text, standard error among it."""
        return subprocess.run(
            [str(self.python), *map(str, args)],
            env=os.environ | QUIET | search_path(self.folder) | dict(env or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **options,
        )

    def versions(self, names: Iterable[str] = RECORDED) -> dict[str, str]:
        """Return the version of Python and of packages in it."""
        code = (
            "import json, sys, platform; from importlib.metadata import version; "
            "print(json.dumps({'python': platform.python_version()} "
            "| {name: version(name) for name in sys.argv[1:]}))"
        )
        return json.loads(self.run("-c", code, *names, check=True).stdout)

    def test(
        self,
        *args: str | Path,
        cwd: Path = ROOT,
        env: Mapping[str, str] | None = None,
        workers: int = 0,
    ) -> tuple[dict[str, Any], str]:
        """Run pytest; return the counts and the output."""
        report = self.folder / "pytest.xml"
        report.unlink(missing_ok=True)
        command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", str(workers)]
        done = self.run(*command, f"--junitxml={report}", *args, cwd=cwd, env=env)
        return {"exit_code": done.returncode, **counts_of(report)}, done.stdout


def make_environment(name: str, python: str = sys.executable) -> Environment:
    """Make an empty environment in ``build/checks``, in place of one of that name."""
    folder = CHECKS / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    uv("venv", "--python", python, folder)
    return Environment(folder)


def uv(
    *args: str | Path, env: Mapping[str, str] | None = None, path: Path | None = None
) -> str:
    """Run uv, with the programs of an environment before those of the system."""
    done = subprocess.run(
        [sys.executable, "-m", "uv", "--quiet", *map(str, args)],
        env=os.environ | QUIET | (search_path(path) if path else {}) | dict(env or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
    )
    if done.returncode:
        raise SystemExit(f"uv {' '.join(map(str, args))}\n{done.stdout}")
    return done.stdout


def search_path(folder: Path) -> dict[str, str]:
    """PATH on which the programs of an environment come first."""
    return {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def counts_of(report: Path) -> dict[str, Any]:
    """Return tests passed, failed and skipped, and seconds; zeros if pytest crashed."""
    if not report.exists():
        return {"passed": 0, "failed": 0, "skipped": 0, "seconds": 0.0}
    suite = ElementTree.parse(report).getroot()[0]
    number = {
        name: int(suite.get(name, 0))
        for name in ("tests", "failures", "errors", "skipped")
    }
    failed = number["failures"] + number["errors"]
    return {
        "passed": number["tests"] - failed - number["skipped"],
        "failed": failed,
        "skipped": number["skipped"],
        "seconds": round(float(suite.get("time", 0))),
    }


def copy_sources(name: str) -> Path:
    """Copy the files that git knows, as they are now, to a folder of that name."""
    folder = CHECKS / name
    shutil.rmtree(folder, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    for file in filter(None, listed.stdout.split("\0")):
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, target)
    return folder


def read_project() -> dict[str, Any]:
    """Return the tables of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def requirements(*extras: str) -> list[str]:
    """Return what the package needs with some extras, and with those they name."""
    project = read_project()["project"]
    found, wanted = list(project["dependencies"]), list(extras)
    for extra in wanted:  # grows on the way
        for line in project["optional-dependencies"][extra]:
            own = re.fullmatch(rf"{project['name']}\[(.*)\]", line)
            if own:
                wanted += own[1].split(",")
            else:
                found.append(line)
    return list(dict.fromkeys(found))


def without_paths(text: str) -> str:
    """Take the folders of this machine and the colours out of an output."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = re.sub(r"==\d+==|0x[0-9a-f]{6,}", "…", text)
    for folder, name in ((CHECKS, "CHECKS"), (ROOT, "."), (Path.home(), "~")):
        text = text.replace(str(folder), name)
    return text


def store(name: str, result: dict[str, Any], logs: Mapping[str, str]) -> None:
    """Write results.json and logs to ``benchmarks/results/NAME``."""
    folder = RESULTS / name
    folder.mkdir(parents=True, exist_ok=True)
    made = {"date": date.today().isoformat(), "machine": platform.machine()}
    (folder / "results.json").write_text(json.dumps(result | made, indent=2) + "\n")
    for log, text in logs.items():
        (folder / f"{log}.log").write_text(without_paths(text))
