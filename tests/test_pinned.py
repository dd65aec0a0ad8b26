# SPDX-License-Identifier: BSD-3-Clause
"""Outputs of the public API equal ``pinned.json``, up to differences of BLAS."""

import pytest
from pinned import STEPS, compare, is_close, read, run, say_difference
from pinned_calls import CALLS

STORED = read()


def test_every_call_is_stored():
    assert list(STORED) == list(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_outputs_equal_stored(name):
    stored, found = STORED[name], run(name)
    assert stored.keys() == found.keys()
    moved = {
        key: say_difference(stored[key], found[key])
        for key in stored
        if not key.split(".")[0] == STEPS and not is_close(stored[key], found[key])
    }
    assert moved == {}


def test_describes_what_changed():
    one = {"shape": [2], "hex": [(1.0).hex(), "inf"]}
    other = {"shape": [2], "hex": [(1.0 + 2**-40).hex(), "inf"]}
    assert compare({"a": one, "b": "x"}, {"a": one, "b": "x"}) == {}
    assert "1 of 2 moved, at most 9.1e-13" in compare({"a": one}, {"a": other})["a"]
    assert is_close(one, other)
    assert not is_close(one, {"shape": [2], "hex": [(1.1).hex(), "inf"]})
    assert compare({"a": 1}, {"b": True}) == {"a": "missing", "b": "new"}
    assert compare({"a": "x"}, {"a": "y"}) == {"a": 'was "x", is "y"'}
