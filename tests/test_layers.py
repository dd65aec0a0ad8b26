# SPDX-License-Identifier: BSD-3-Clause
"""Imports go only leftwards in data -> kernel -> solve -> loo -> select -> report."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import leaveout

PACKAGE = Path(leaveout.__file__).parent
STORY = ["data", "kernel", "solve", "loo", "select", "report"]
GROUND = {"_typing", "exceptions"}
MAY_IMPORT = {
    **{name: {*STORY[:step], "run"} | GROUND for step, name in enumerate(STORY)},
    "run": GROUND,
    "estimators": {*STORY[:-1], "run"} | GROUND,
    "cli": {*STORY, "run", "estimators"} | GROUND,
    "__init__": {*STORY, "run", "estimators"} | GROUND,
    **{name: set() for name in GROUND},
}
SOURCES = sorted(
    path for pattern in ("*.py", "*.pyi", "*.pyx") for path in PACKAGE.rglob(pattern)
)


def layer_of(path):
    """First part of the path inside the package: a folder, or a module at its top."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_modules(path):
    """Absolute names of the modules that a source file imports."""
    if path.suffix == ".pyx":
        return re.findall(r"^\s*(?:from|c?import)\s+([\w.]+)", path.read_text(), re.M)
    modules = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write it in full"
            modules += [f"{node.module}.{alias.name}" for alias in node.names]
    return modules


def imported_layers(path):
    parts = [module.split(".") for module in imported_modules(path)]
    return {names[1] for names in parts if names[0] == "leaveout" and len(names) > 1}


def test_sources_are_found():
    assert {"data", "kernel", "solve"} <= {layer_of(path) for path in SOURCES}


@pytest.mark.parametrize(
    "path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_imports_go_leftwards(path):
    layer = layer_of(path)
    assert imported_layers(path) - {layer} <= MAY_IMPORT[layer]


@pytest.mark.parametrize(
    "module", ["matplotlib", "sklearn.datasets", "highspy", "dask"]
)
def test_import_is_light(module):
    code = f"import leaveout, sys; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
