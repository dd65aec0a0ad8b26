# SPDX-License-Identifier: BSD-3-Clause
"""The public API: names, parameters and commands as in ``api.json``, and examples.

``python tests/test_api.py --write`` rewrites the file.
"""

import doctest
import inspect
import json
import re
import sys
import tempfile
from importlib.metadata import entry_points
from pathlib import Path
from unittest.mock import patch

import pytest
import typer
from pinned_calls import run_cli, write_table
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin

import leaveout
import leaveout.data

API = Path(__file__).with_name("api.json")
ROOT = Path(__file__).parents[1]
SKLEARN = (BaseEstimator, ClassifierMixin, MetaEstimatorMixin)
PARTS = ("names", "callables", "classes", "data", "commands", "exit_codes")


def describe_parameters(function):
    """Return name, kind and default of each parameter; no annotations."""
    parameters = inspect.signature(function).parameters.values()
    return [describe_parameter(parameter) for parameter in parameters]


def describe_parameter(parameter):
    """Return one parameter as text, without the module of its default."""
    text = f"{parameter.kind.name.lower()} {parameter.name}"
    if parameter.default is inspect.Parameter.empty:
        return text
    default = re.sub(r" at 0x[0-9a-f]+", "", repr(parameter.default))
    default = re.sub(r"leaveout\.(?:\w+\.)*(\w+)", r"\1", default)
    return f"{text} = {default}"


def describe_class(kind):
    """Return bases, parameters, properties and methods defined in leaveout."""
    found = {"bases": [b.__name__ for b in kind.__mro__[1:] if _is_public(b)]}
    if issubclass(kind, Exception):
        return found
    make = kind.__new__ if issubclass(kind, tuple) else kind.__init__
    names = [n for n in dir(kind) if not n.startswith("_") and _is_ours(kind, n)]
    members = {name: inspect.getattr_static(kind, name) for name in sorted(names)}
    properties = [n for n, m in members.items() if isinstance(m, property)]
    methods = [n for n in members if callable(getattr(kind, n, None))]
    return {
        **found,
        "init": describe_parameters(make),
        "properties": properties,
        "methods": {n: describe_parameters(getattr(kind, n)) for n in methods},
    }


def _is_public(base):
    """Return whether a base class is public; private bases may change."""
    ours = getattr(leaveout, base.__name__, None) is base
    built_in = base.__module__ == "builtins" and base is not object
    return ours or built_in or base in SKLEARN


def _is_ours(kind, name):
    """Return whether a member is defined in the package, not by scikit-learn."""
    owner = next(base for base in kind.__mro__ if name in vars(base))
    added = type(inspect.getattr_static(kind, name)).__name__ == "RequestMethod"
    return owner.__module__.split(".")[0] == "leaveout" and not added


def find_commands():
    """Return the commands of the command line, from its entry point."""
    (script,) = entry_points(group="console_scripts", name="leaveout")
    with patch.object(typer.Typer, "__call__", autospec=True) as called:
        script.load()()
    group = typer.main.get_command(called.call_args.args[0])
    found = {name: list_options(command) for name, command in group.commands.items()}
    return {"leaveout": list_options(group), **found}


def list_options(command):
    """Return arguments and options of a command that its help lists, sorted."""
    shown = [param for param in command.params if not getattr(param, "hidden", False)]
    options = [name for param in shown for name in param.opts + param.secondary_opts]
    return sorted(options)


def find_exit_codes():
    """Return the exit codes of some commands."""
    with tempfile.TemporaryDirectory() as folder:
        table, bad = write_table(folder), Path(folder, "bad.csv")
        bad.write_text("a,colour\n1,red\n2,red\n")
        calls = {
            "--help": ["--help"],
            "-h": ["-h"],
            "--version": ["--version"],
            "select --help": ["select", "--help"],
            "loo --help": ["loo", "--help"],
            "audit --help": ["audit", "--help"],
            "bounds --help": ["bounds", "--help"],
            "predict --help": ["predict", "--help"],
            "unknown command": ["choose", table],
            "unknown option": ["select", table, "--fast"],
            "option without value": ["select", table, "--target"],
            "unknown kernel": ["loo", table, "--target", "colour", "--kernel", "gauss"],
            "gamma is a word": ["loo", table, "--target", "colour", "--gamma", "wide"],
            "no workers": ["select", table, "--target", "colour", "--n-jobs", "0"],
            "missing file": ["loo", Path(folder, "none.csv"), "--target", "colour"],
            "missing model": ["predict", Path(folder, "none.skops"), table],
            "missing column": ["loo", table, "--target", "color"],
            "one class": ["loo", bad, "--target", "colour"],
            "negative C": [
                *("loo", table, "--target", "colour"),
                *("--C", "-1", "--gamma", "1"),
            ],
            "bad grid": ["select", table, "--target", "colour", "--grid", "D=1"],
        }
        return {name: run_cli(*arguments)[0] for name, arguments in calls.items()}


def describe():
    """Return everything that is pinned, by part."""
    public = {name: getattr(leaveout, name) for name in sorted(leaveout.__all__)}
    classes = {n: value for n, value in public.items() if inspect.isclass(value)}
    return {
        "names": list(public),
        "callables": {
            name: describe_parameters(value)
            for name, value in public.items()
            if name not in classes
        },
        "classes": {name: describe_class(kind) for name, kind in classes.items()},
        "data": {
            name: describe_parameters(getattr(leaveout.data, name))
            for name in sorted(leaveout.data.__all__)
            if callable(getattr(leaveout.data, name))
        },
        "commands": find_commands(),
        "exit_codes": find_exit_codes(),
    }


def read():
    return json.loads(API.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found():
    return describe()


@pytest.mark.parametrize("part", PARTS)
def test_api_is_as_stored(part, found):
    assert found[part] == read()[part]


def test_only_public_names_are_visible():
    public = {*leaveout.__all__, "data"}
    assert {name for name in dir(leaveout) if not name.startswith("__")} == public
    own = {name for name, v in vars(leaveout).items() if not inspect.ismodule(v)}
    assert {name for name in own if not name.startswith("_")} <= public


@pytest.mark.parametrize("name", leaveout.__all__)
def test_examples(name):
    """Pytest's own doctests skip classes whose ``__module__`` is "leaveout"."""
    value = getattr(leaveout, name)
    for example in doctest.DocTestFinder().find(
        value, name, module=False, globs={name: value}
    ):
        report = []
        doctest.DocTestRunner().run(example, out=report.append)
        assert not report, "".join(report)


def listed_in_meson(name):
    text = (ROOT / "meson.build").read_text()
    listed = re.search(rf"^{name} = \[(.*?)\]", text, re.M | re.S)[1]
    return set(re.findall(r"'([\w/]+)'", listed))


def test_meson_lists_every_kernel():
    sources = ROOT / "src" / "leaveout"
    found = sources.rglob("*.pyx")
    names = {path.relative_to(sources).with_suffix("").as_posix() for path in found}
    assert listed_in_meson("kernels") == names
    assert listed_in_meson("finite_only") <= names


def test_commands_know_the_definite_kernels():
    from leaveout.cli import _options
    from leaveout.kernel._gram import KERNELS

    definite = {name for name, spec in KERNELS.items() if spec.always_psd(0.0)}
    assert set(_options.KERNELS) == definite - {"precomputed"}


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python tests/test_api.py --write")
    text = json.dumps(describe(), indent=1, ensure_ascii=False)
    API.write_text(text + "\n", encoding="utf-8")
