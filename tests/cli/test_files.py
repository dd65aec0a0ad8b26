# SPDX-License-Identifier: BSD-3-Clause
"""Files that commands are given: none overwrites another, and pipes are read."""

import json
import os
import subprocess
import sys
import threading

import pytest

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
        (["select", *CELL, "--report", "DATA"], "DATA", "--report"),
        (["select", *CELL, "--checkpoint", "DATA"], "DATA", "--checkpoint"),
        (
            ["select", *CELL, "--report", "OUT", "--checkpoint", "OUT"],
            "--report",
            "--checkpoint",
        ),
        (
            ["select", *CELL, "--honest", "--save", "r.honest", "--checkpoint", "r"],
            "--save",
            "--checkpoint of --honest",
        ),
        (["loo", *MACHINE, "-o", "DATA"], "DATA", "--output"),
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


@pytest.mark.parametrize("name", ["MODEL", "DATA"])
def test_predictions_overwrite_neither_model_nor_data(run, table, tmp_path, name):
    model = tmp_path / "model.skops"
    assert (
        run("select", table, "--target", "colour", *CELL, "--save", model).exit_code
        == 0
    )
    path = {"MODEL": model, "DATA": table}[name]
    before = path.read_bytes()
    result = run("predict", model, table, "-o", path)
    assert result.exit_code == 2
    assert f"{name} and --output name the same file" in plain(result.stderr)
    assert path.read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="no /dev/stdin")
def test_data_may_come_through_a_pipe(run, table):
    command = [sys.executable, "-m", "leaveout.cli", "loo", "/dev/stdin", "--json"]
    done = subprocess.run(
        [*command, "--target", "colour", *MACHINE],
        input=table.read_bytes(),
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["data"] == "stdin"
    expected = run("loo", table, "--target", "colour", *MACHINE, "--json")
    assert report["error"] == json.loads(expected.stdout)["error"]


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
