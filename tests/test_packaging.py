# SPDX-License-Identifier: BSD-3-Clause
"""The conda recipe repeats the version and requirements of the package."""

import re
import tomllib
from pathlib import Path

import yaml

import leaveout

ROOT = Path(__file__).resolve().parents[1]
RECIPE = yaml.safe_load((ROOT / "packaging" / "recipe.yaml").read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def lowest(requirements: list[str]) -> dict[str, str]:
    """Return the lower bound of each requirement, by its name in the recipe."""
    found = {}
    for line in requirements:
        name, bound = re.split(r"\s*>=", line)
        found["matplotlib-base" if name == "matplotlib" else name] = bound
    return found


def test_recipe_has_the_version():
    assert RECIPE["context"]["version"] == leaveout.__version__


def test_recipe_has_the_requirements_of_library_and_command():
    extras = PROJECT["optional-dependencies"]
    needed = lowest(PROJECT["dependencies"] + extras["cli"])
    needed["python"] = PROJECT["requires-python"].removeprefix(">=")
    assert lowest(RECIPE["requirements"]["run"]) == needed
    optional = lowest(RECIPE["requirements"]["run_constraints"])
    assert optional == lowest(extras["lp"] + extras["parquet"])
