# SPDX-License-Identifier: BSD-3-Clause
"""docs/promises.md says what the stored results say, and names tests that exist."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "promises.md"


@pytest.fixture
def promises():
    """``tools/write_promises.py`` as a module of its own, so that it can be changed."""
    path = ROOT / "tools" / "write_promises.py"
    spec = importlib.util.spec_from_file_location("write_promises", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_is_up_to_date(promises):
    page = PAGE.read_text()
    assert promises.fill(page) == page, "run: python tools/write_promises.py"


def test_every_table_is_on_the_page(promises):
    assert [m[2] for m in promises.BLOCK.finditer(PAGE.read_text())] == list(
        promises.TABLES
    )


def test_every_file_named_exists():
    names = set(re.findall(r"`((?:tests|tools)/[\w/]+\.py)", PAGE.read_text()))
    assert len(names) > 20
    assert not [name for name in sorted(names) if not (ROOT / name).exists()]


def test_what_was_not_run_is_not_invented(promises, tmp_path, monkeypatch):
    monkeypatch.setattr(promises, "RESULTS", tmp_path)
    filled = promises.fill(PAGE.read_text())
    assert filled.count(promises.NOT_RUN) == len(promises.COUNTS) + 5


def test_new_counts_are_taken_up(promises, tmp_path, monkeypatch):
    rows = [{"what": "W", "cases": 1234, "unit": "trials", "wrong": "0 labels"}]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "promises.json").write_text(json.dumps(rows))
    monkeypatch.setattr(promises, "RESULTS", tmp_path)
    assert "| W | 1,234 trials | 0 labels | `mine` |" in promises.counts_table()
