# SPDX-License-Identifier: BSD-3-Clause
"""A part of benchmarks/exactness_fold.py: all pairs of settings on random data."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from exactness_fold import FACTORS, MODELS, check, covering_design, load

RANDOM = {**FACTORS, "data": ("random_2", "random_3", "random_r")}
CELLS = list(covering_design(RANDOM, np.random.default_rng(0)))


def test_design_covers_all_pairs():
    for a, b in combinations(RANDOM, 2):
        found = {(cell[a], cell[b]) for cell in CELLS}
        wanted = {(x, y) for x in RANDOM[a] for y in RANDOM[b]}
        if {a, b} == {"data", "model"}:
            wanted = {(data, name) for data, name in wanted if data in MODELS[name]}
        assert found == wanted


@pytest.mark.parametrize("number", range(0, len(CELLS), 2))
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
def test_left_out_values_equal_refits(number):
    cell = CELLS[number]
    X, y = load(Path(), cell["data"])
    row = check(cell, X, y, 2, number)
    assert (row["wrong"], row["beyond"]) == (0, 0), row
