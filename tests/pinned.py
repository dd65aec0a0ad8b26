# SPDX-License-Identifier: BSD-3-Clause
"""Outputs of the public API, stored to the last bit.

``python tests/pinned.py`` runs the calls of ``pinned_calls`` again and lists what has
moved since ``pinned.json`` was written; ``--write`` writes it again, ``--only NAME``
runs one call. Bits depend on the computer; ``test_pinned`` allows for another BLAS.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from pinned_calls import CALLS
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from leaveout import LeaveoutWarning

PINNED = Path(__file__).with_name("pinned.json")
RTOL, ATOL = 1e-7, 1e-9
# Outputs with this name count steps, which may differ with another BLAS.
STEPS = "steps"


def run(name):
    """Make a call; return its outputs as JSON values, with its warnings."""
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1, "blas"):
        warnings.simplefilter("always")
        outputs = dict(flatten(CALLS[name]()))
    ours = (LeaveoutWarning, ConvergenceWarning)
    names = {w.category.__name__ for w in caught if issubclass(w.category, ours)}
    return {**outputs, "warned": sorted(names)}


def read():
    """Return the stored outputs of all calls."""
    return json.loads(PINNED.read_text(encoding="utf-8"))


def write(calls):
    """Store the outputs, one per line."""
    blocks = []
    for name, outputs in calls.items():
        lines = [f"  {json.dumps(key)}: {_line(v)}" for key, v in outputs.items()]
        blocks.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
    PINNED.write_text("{\n" + ",\n".join(blocks) + "\n}\n", encoding="utf-8")


def _line(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def flatten(outputs, prefix=""):
    """Yield name and JSON value of each output; nested names are joined by dots."""
    for key, value in outputs.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from flatten(value, f"{name}.")
        elif isinstance(value, list | tuple) and not _is_plain(value):
            yield from flatten(dict(enumerate(value)), f"{name}.")
        else:
            yield name, encode(value)


def _is_plain(values):
    """Return whether a list has only floats, or only strings, bools and integers."""
    return _is_numeric(values) or all(isinstance(v, bool | int | str) for v in values)


def _is_numeric(values):
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)


def encode(value):
    """Return a value for JSON, with floats by their bits."""
    if issparse(value):
        value = value.toarray()
    if isinstance(value, np.ma.MaskedArray):
        value = value.filled(np.nan if value.dtype.kind == "f" else None)
    if isinstance(value, list | tuple):
        value = list(value)
        has_float = _is_numeric(value) and any(isinstance(v, float) for v in value)
        value = np.array(value) if has_float else value
    if isinstance(value, float):
        value = np.float64(value)
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind == "f":
            found = [float(v).hex() for v in value.ravel()]
            return {"shape": list(value.shape), "hex": found}
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str | list):
        return value
    raise TypeError(f"{type(value).__name__} cannot be pinned: {value!r}")


def decode(value):
    """Return the floats of a stored value, or None if it has none."""
    if not isinstance(value, dict):
        return None
    numbers = [float.fromhex(text) for text in value["hex"]]
    return np.array(numbers).reshape(value["shape"])


def is_close(stored, found):
    """Return whether two outputs are equal, floats up to differences of BLAS."""
    a, b = decode(stored), decode(found)
    if a is None or b is None:
        return _line(stored) == _line(found)
    return a.shape == b.shape and np.allclose(b, a, RTOL, ATOL, equal_nan=True)


def say_difference(stored, found):
    """Describe how an output has changed."""
    a, b = decode(stored), decode(found)
    if a is None or b is None or a.shape != b.shape:
        return f"was {_line(stored)[:200]}, is {_line(found)[:200]}"
    moved = (a != b) & ~(np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        gap = np.abs(a - b)[moved].max(initial=0.0)
    return f"{moved.sum()} of {a.size} moved, at most {gap:.1e}"


def compare(stored, found):
    """Return a description of each output that has changed, by name."""
    said = {key: "missing" for key in stored.keys() - found.keys()}
    said |= {key: "new" for key in found.keys() - stored.keys()}
    for key in stored.keys() & found.keys():
        if _line(stored[key]) != _line(found[key]):  # True is not 1
            said[key] = say_difference(stored[key], found[key])
    return dict(sorted(said.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the results")
    parser.add_argument("--only", metavar="NAME", choices=sorted(CALLS))
    options = parser.parse_args()
    stored = read() if PINNED.exists() else {}
    found, n_moved, say = {}, 0, sys.stdout.write
    for name in [options.only] if options.only else CALLS:
        found[name] = run(name)
        said = compare(stored.get(name, {}), found[name])
        n_moved += len(said)
        say(f"{name}: {f'{len(said)} outputs moved' if said else 'bit-equal'}\n")
        for key, difference in said.items():
            say(f"    {key}: {difference}\n")
    if options.write:
        merged = {**stored, **found}
        write({name: merged[name] for name in CALLS if name in merged})
        say(f"{PINNED.name} written\n")
        return 0
    return int(n_moved > 0)


if __name__ == "__main__":
    sys.exit(main())
