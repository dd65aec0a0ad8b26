# SPDX-License-Identifier: BSD-3-Clause
"""What all commands share: mistakes, help, files, messages, warnings."""

import gzip
import json
import os
import subprocess
import sys
import threading
import warnings

import pytest
from typer.testing import CliRunner

import leaveout as lo
from leaveout.cli import _data
from leaveout.cli._app import app
from leaveout.cli._command import collect_warnings, write_options


@pytest.mark.parametrize(
    ("code", "command", "message"),
    [
        (1, "select nothing.csv --target y", "No file 'nothing.csv'."),
        (1, "select TABLE", "Name the column of classes: --target. The"),
        (1, "select TABLE --target color", "Did you mean 'colour'?"),
        (1, "select --target y", "--target needs a table; give its path as DATA."),
        (1, "select TABLE --target colour --sep ;", "'a,b,colour'. There is only one"),
        (2, "select --kernel linear --grid gamma=1",
         "--grid gamma=… does not apply to --kernel linear, which has C."),
        (1, "select TABLE --target colour --groups a --curve",
         "--curve leaves out single samples; omit --groups."),
        (2, "loo --C 1 --gamma 1 --kernel linear", "--gamma does not apply to --ker"),
        (2, "loo --C 1 --coef0 2", "--coef0 does not apply to --kernel rbf, which has"),
        (2, "loo --sep ab", "'--sep': expected one character; got 'ab'."),
        (2, "bounds TABLE --target colour --groups a", "No such option: --groups"),
        (2, "loo --C wide", "'--C': expected a positive number; got 'wide'."),
        (2, "loo --C -1", "'--C': expected a positive number; got '-1'."),
        (2, "loo --C nan", "'--C': expected a positive number; got 'nan'."),
        (2, "loo --gamma w", "'--gamma': expected a number >= 0, 'scale' or 'auto'; g"),
        (2, "loo --gamma inf", "'scale' or 'auto'; got 'inf'."),
        (2, "loo --degree 2.5", "'--degree': expected a whole number >= 0; got '2.5'."),
        (2, "loo --coef0 x", "'--coef0': expected a number; got 'x'."),
        (2, "loo --kernel rfb", "expected 'rbf', 'linear', 'poly', 'laplacian' or 'c"),
        (2, "loo --class-weight no", "expected 'balanced'; got 'no'."),
        (2, "loo TABLE --decimal x", "'--decimal': expected '.' or ','; got 'x'."),
        (2, "audit --top 0", "'--top': expected a positive whole number; got '0'."),
        (2, "select --n-jobs two", "'--n-jobs': expected a positive whole number, or"),
        (2, "select --n-jobs 0", "or -1 for one per core; got '0'."),
        (2, "loo --output a.pdf", "'a.pdf': --output writes CSV, not .pdf. Write"),
        (2, "predict m.skops x.csv --json -o a.csv", "--output writes JSON, not .csv."),
        (2, "select --save /no/such/folder/m", "is no folder '/no/such/folder'"),
        (2, "select --save .", "'.': is a folder."),
        (2, "loo --output -", "'-': is not a file. Give the path of a file to"),
        (2, "loo --output /dev/null", "'/dev/null': is not a file."),
        (2, "select --save a/m.pkl", "as .skops, not .pkl. Write 'a/m.skops'."),
        (2, "select --report x.pdf", "an HTML page, not .pdf. Write 'x.html'."),
        (2, "select --C 10", "select takes lists of values: --grid C=1,10,100"),
        (2, "select --gamma 1 --json", "leaveout loo takes single values."),
        (2, "select --grid c=1", "'c=1' does not name a parameter of the grid. Did"),
        (2, "select --grid C=1,x", "'C=1,x' is not a list of numbers."),
        (2, "select --grid C=-1", "'C=-1' has a value that is not positive."),
        (2, "select --grid C", "'C' has no values."),
        (2, "select --grid C=1,inf", "'C=1,inf' has a value that is not finite."),
        (2, "select --grid C=0:1:3", "'C=0:1:3' has an end that is not positive;"),
        (2, "select --grid C=1:2:0", "'C=1:2:0' has 0 values; a range has 1 to"),
        (2, "select --grid degree=2.5", "has a degree that is not a whole number"),
        (2, "select --grid C=1 --grid C=2", "'C=2' gives C a second time."),
    ],
)  # fmt: skip
def test_mistake_ends_with_its_message_alone(run, table, code, command, message):
    parts = command.replace("TABLE", str(table)).split()
    result = run(*parts, code=code)
    assert result.stdout == ""
    assert message in result.stderr
    assert code == 2 or len(result.stderr.splitlines()) == 1


def test_debug_shows_the_error_itself(run, table):
    result = run("select", table, "--target", "color", "--debug", code=1)
    assert isinstance(result.exception, ValueError)


def test_out_of_memory_is_told_in_one_line(run, table, monkeypatch):
    def fail(*_, **__):
        raise MemoryError("the table of 9 characters")

    monkeypatch.setattr(_data, "read_dataset", fail)
    told = run("loo", table, "--target", "colour", code=1).stderr
    reason = "Out of memory: the table of 9 characters"
    assert told == f"Error: {reason}. Use fewer samples or a smaller --n-jobs.\n"


@pytest.mark.parametrize(
    ("command", "first", "second"),
    [
        ("select DATA --save OUT --report OUT", "--save", "--report"),
        ("select DATA --checkpoint DATA", "DATA", "--checkpoint"),
        ("select DATA --honest --save r.honest.skops --checkpoint r.skops",
         "--save", "--checkpoint of --honest"),
        ("loo DATA --output LINK", "DATA", "--output"),
        ("predict OUT DATA --output OUT", "MODEL", "--output"),
    ],
)  # fmt: skip
def test_no_file_overwrites_another(
    run, table, tmp_path, monkeypatch, command, first, second
):
    monkeypatch.chdir(tmp_path)
    before = table.read_bytes()
    os.link(table, "link.csv")
    places = {"DATA": table.name, "OUT": "same", "LINK": "link.csv"}
    result = run(*(places.get(part, part) for part in command.split()), code=2)
    assert f"{first} and {second} name the same file" in result.stderr
    assert table.read_bytes() == before
    assert sorted(os.listdir()) == ["link.csv", table.name]


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes")
def test_messages_name_the_pipe_that_was_read(run, table, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[table.read_bytes()])
    writer.start()
    result = run("loo", pipe, "--target", "color", code=1)
    writer.join()
    assert f"No column 'color' in '{pipe}'. Did you mean 'colour'?" in result.stderr


def test_gzip_and_stdin_are_read(run, table):
    how = ["--target", "colour", "--C", "1", "--gamma", "1", "--json"]
    packed = table.with_suffix(".csv.gz")
    packed.write_bytes(gzip.compress(table.read_bytes()))
    piped = CliRunner().invoke(app, ["loo", "-", *how], input=table.read_bytes())
    read = [json.loads(run("loo", path, *how).stdout) for path in (table, packed)]
    for found in (*read, json.loads(piped.stdout)):
        assert found["error"] == read[0]["error"]
    assert json.loads(piped.stdout)["data"] == "stdin"


def test_letters_that_stdout_lacks_are_written_as_codes(table):
    table.write_text(table.read_text().replace("red", "αrot"), encoding="utf-8")
    command = ["loo", str(table), "--target", "colour", "--C", "1", "--gamma", "1"]
    result = CliRunner(charset="cp1252").invoke(app, command)
    assert result.exit_code == 0, result.stderr
    assert "\\u03b1rot" in result.stdout


def test_read_only_folder_is_told_before_the_work(run, table, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    result = run("select", table, "--save", tmp_path / "model", code=2)
    assert "is not writable" in result.stderr


def test_version_and_help(run):
    assert run("--version").stdout == f"leaveout {lo.__version__}\n"
    for command in ("select", "loo", "audit", "bounds", "predict"):
        assert f"Example: leaveout {command}" in run(command, "--help").stdout


@pytest.mark.parametrize(
    ("words", "completed", "answer"),
    [
        ("--help", "", "--install-completion"),
        ("--version", "", lo.__version__),
        ("select --fast", "", "No such option: --fast"),
        ("select --grid C=1,x", "", "'C=1,x' is not a list of numbers"),
        ("", "leaveout sel", "select"),
    ],
)
def test_first_answers_import_nothing_heavy(words, completed, answer):
    code = (
        "import sys; from leaveout.cli import main\n"
        "try: main()\n"
        "finally: print({'numpy', 'scipy', 'sklearn', 'pandas'} & {*sys.modules})"
    )
    shell = {"COMP_WORDS": completed, "COMP_CWORD": "1"}
    if completed:
        shell["_LEAVEOUT_COMPLETE"] = "complete_bash"
    done = subprocess.run(
        [sys.executable, "-c", code, *words.split()],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | shell,
    )
    assert answer in done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "set()"


def test_a_search_imports_no_steps_of_pipelines(table):
    code = (
        "import sys; from leaveout.cli import main\n"
        "try: main()\n"
        "finally: print({'sklearn.feature_selection', 'skops'} & {*sys.modules})"
    )
    words = ["select", str(table), "--target", "colour", "--grid", "C=1"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("set()\n")


def test_deprecations_of_dependencies_are_hidden(capsys):
    """Python 3.12 warns of fork in a process with threads, pandas and pyparsing too."""
    with collect_warnings() as warned:
        warnings.warn("oneOf deprecated - use one_of", DeprecationWarning, stacklevel=1)
        warnings.warn("two classes of one sample", UserWarning, stacklevel=1)
    assert warned == ["two classes of one sample"]
    assert capsys.readouterr().err == "Warning: two classes of one sample\n"


def test_keywords_are_written_as_options():
    message = "Use (categorical=), both id_column= and checkpoint='a' or sep=\";\"."
    written = "Use (--categorical), both --id and --checkpoint 'a' or --sep \";\"."
    assert write_options(message) == written
