# SPDX-License-Identifier: BSD-3-Clause
"""Allowed imports of each package, as listed in its docstring."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import leaveout

PACKAGE = Path(leaveout.__file__).parent
GROUND = {"_typing", "exceptions", "_messages"}
BELOW_ASSESS = {"run", "kernel", "engine", "methods", "lp", "llw", "loo", "adapt"}
BELOW_TUNE = BELOW_ASSESS | {"estimators", "assess"}
EVERYTHING = BELOW_TUNE | {"tune", "large", "tables", "report", "data", "_model_file"}
MAY_IMPORT = {
    "run": set(),
    "kernel": {"run"},
    "engine": {"run"},
    "methods": {"engine", "run"},
    "lp": {"engine", "run"},
    "llw": {"engine", "methods", "run"},
    "loo": {"kernel", "engine", "methods", "lp", "llw", "run"},
    "adapt": {"kernel", "engine", "methods", "loo", "run"},
    "estimators": {"kernel", "engine", "lp", "llw", "loo", "adapt", "run"},
    "assess": BELOW_ASSESS,
    "tune": BELOW_TUNE,
    "large": {"engine", "loo", "adapt", "run"},
    "tables": {"run"},
    "report": {"loo", "methods", "assess", "tune", "tables", "run"},
    "cli": EVERYTHING,
    "data": {"tables"},
    "_model_file": EVERYTHING,
    "__init__": EVERYTHING,
    **{name: set() for name in GROUND},
}
SOURCES = sorted(
    path for pattern in ("*.py", "*.pyi", "*.pyx") for path in PACKAGE.rglob(pattern)
)


def layer_of(path):
    """Return the first part of the path inside the package: a folder or a module."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_modules(path):
    """Return the absolute names of the modules that a source file imports."""
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


def test_packages_import_only_what_is_allowed():
    wrong = {}
    for path in SOURCES:
        layer = layer_of(path)
        beyond = imported_layers(path) - {layer} - MAY_IMPORT[layer] - GROUND
        if beyond:
            wrong[str(path.relative_to(PACKAGE))] = beyond
    assert wrong == {}


@pytest.mark.parametrize("package", sorted(set(MAY_IMPORT) - {"cli"}))
def test_docstrings_list_the_allowed_imports(package):
    path = PACKAGE / package / "__init__.py"
    if not path.exists():
        return
    said = re.search(r"^Imports: (.*?)\.$", path.read_text(), re.M | re.S)
    names = {"nothing from leaveout": ""}.get(said[1], said[1])
    found = set(names.replace("\n", " ").replace(" ", "").split(",")) - {""}
    assert found == MAY_IMPORT[package]


def test_every_folder_has_a_contract():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders <= set(MAY_IMPORT)


def test_import_is_light():
    code = "import leaveout as lo, sys; lo.SVC; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    heavy = {"matplotlib", "sklearn.datasets", "highspy", "dask"}
    heavy.add("leaveout.adapt._prepare")  # imported by the first fit
    assert "leaveout.estimators._svc" in run.stdout.split()
    assert not heavy & set(run.stdout.split())
