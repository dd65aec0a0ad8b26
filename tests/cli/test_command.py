# SPDX-License-Identifier: BSD-3-Clause
"""What all commands share: start-up, files, messages, warnings."""

import json
import os
import subprocess
import sys
import threading
import warnings

import pytest

import leaveout as lo
from leaveout.cli._command import collect_warnings, write_options

CELL = ["--grid", "C=1", "--grid", "gamma=0.1"]
MACHINE = ["--C", "1", "--gamma", "0.1"]


def plain(text):
    """A message without the box around it."""
    return " ".join(text.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "first", "second"),
    [
        (["select", *CELL, "--save", "OUT", "--report", "OUT"], "--save", "--report"),
        (["select", *CELL, "--save", "DATA"], "DATA", "--save"),
        (
            ["select", *CELL, "--honest", "--save", "r.honest", "--checkpoint", "r"],
            "--save",
            "--checkpoint of --honest",
        ),
        (["audit", *MACHINE, "-o", "DATA"], "DATA", "--output"),
        (["loo", *MACHINE, "-o", "LINK"], "DATA", "--output"),
    ],
)
def test_no_file_overwrites_another(
    run, table, tmp_path, monkeypatch, arguments, first, second
):
    monkeypatch.chdir(tmp_path)
    before = table.read_bytes()
    os.link(table, "link.csv")
    places = {"DATA": table.name, "OUT": "same.out", "LINK": "link.csv"}
    command, *options = [places.get(part, part) for part in arguments]
    result = run(command, table, "--target", "colour", *options)
    assert result.exit_code == 2
    assert f"{first} and {second} name the same file" in plain(result.stderr)
    assert table.read_bytes() == before
    assert sorted(os.listdir()) == ["link.csv", table.name]


def test_predictions_overwrite_neither_model_nor_data(run, table, tmp_path):
    model = tmp_path / "model.skops"
    made = run("select", table, "--target", "colour", *CELL, "--save", model)
    assert made.exit_code == 0
    for name, path in (("MODEL", model), ("DATA", table)):
        before = path.read_bytes()
        result = run("predict", model, table, "-o", path)
        assert result.exit_code == 2
        assert f"{name} and --output name the same file" in plain(result.stderr)
        assert path.read_bytes() == before


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform == "win32", reason="no /dev/stdin")
def test_data_may_come_through_a_pipe(run, table):
    command = [sys.executable, "-m", "leaveout.cli", "select", "/dev/stdin", "--json"]
    done = subprocess.run(
        [*command, "--target", "colour", *CELL],
        input=table.read_bytes(),
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["data"] == "stdin"
    assert report["command"].startswith("leaveout select ")
    expected = run("select", table, "--target", "colour", *CELL, "--json")
    assert report["best"] == json.loads(expected.stdout)["best"]


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes")
def test_messages_name_the_pipe(run, table, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[table.read_bytes()])
    writer.start()
    result = run("loo", pipe, "--target", "color")
    writer.join()
    assert result.exit_code == 1
    assert f"No column 'color' in '{pipe}'. Did you mean 'colour'?" in result.stderr


def test_wrong_command_and_version(run):
    assert "Did you mean 'select'" in plain(run("selects").stderr)
    assert run("--version").stdout == f"leaveout {lo.__version__}\n"


def test_debug_shows_the_error_itself(run, table):
    result = run("select", table, "--target", "color", "--debug")
    assert isinstance(result.exception, ValueError)


@pytest.mark.nightly
def test_letters_that_stdout_lacks_are_written_as_codes(table):
    text = table.read_text().replace("red", "αrot")
    table.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "leaveout.cli", "select", table, "--target"]
    done = subprocess.run(
        [*command, "colour", "--grid", "C=1"],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "cp1252"},
    )
    assert done.returncode == 0, done.stderr
    assert b"\\u03b1rot" in done.stdout
    assert done.stderr == b""


def test_help_has_an_example_and_no_values_for_flags(run):
    for command in ("select", "loo", "audit", "bounds", "predict"):
        shown = run(command, "--help").stdout
        assert f"Example: leaveout {command}" in shown
        flags = [line for line in shown.splitlines() if "--debug" in line]
        assert flags
        assert "bool" not in flags[0]


def test_deprecations_of_dependencies_are_hidden(capsys):
    """Python 3.12 warns of fork in a process with threads, pandas and pyparsing too."""
    with collect_warnings() as warned:
        warnings.warn("oneOf deprecated - use one_of", DeprecationWarning, stacklevel=1)
        warnings.warn("two classes of one sample", UserWarning, stacklevel=1)
    assert warned == ["two classes of one sample"]
    assert capsys.readouterr().err == "Warning: two classes of one sample\n"


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from leaveout.cli import main\n"
        "sys.argv = ['leaveout', '--help']\n"
        "try: main()\n"
        "finally: print([m for m in ('numpy', 'scipy', 'sklearn', 'pandas') "
        "if m in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("message", "written"),
    [
        ("Use drop=, or (categorical=).", "Use --drop, or (--categorical)."),
        ("'y' cannot be both target= and id_column=.",
         "'y' cannot be both --target and --id."),
        ("Give decimal=',' or encoding='cp1252'",
         "Give --decimal ',' or --encoding 'cp1252'"),
        ('use group_column="ward"', 'use --groups "ward"'),
    ],
)  # fmt: skip
def test_keywords_are_written_as_options(message, written):
    assert write_options(message) == written
