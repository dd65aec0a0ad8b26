# SPDX-License-Identifier: BSD-3-Clause
"""The rows that every kind of source is tested with, and what must come back."""

import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from leaveout.large._rows import Block

N, P = 53, 4
X = np.random.default_rng(3).normal(size=(N, P)).round(2)
X[np.abs(X) < 0.4] = 0.0
Y = np.array(list("abc"))[np.arange(N) % 3]
WEIGHT = np.arange(N) % 5 / 2.0
NAMES = ["age", "dose", "height", "pulse"]


def joined(blocks):
    """The rows of blocks in one Block, after a check of what each must be."""
    blocks = list(blocks)
    for block in blocks:
        assert block.X.dtype == np.float64
        assert block.X.flags.c_contiguous
        assert type(block.X) is np.ndarray
        assert block.weight is None or block.weight.dtype == np.float64
    weights = [block.weight for block in blocks]
    return Block(
        blocks[0].start,
        np.concatenate([block.X for block in blocks]),
        np.concatenate([block.y for block in blocks]),
        None if weights[0] is None else np.concatenate(weights),
    )


def assert_all_rows(blocks, X=X):
    start, found, y, weight = joined(blocks)
    assert start == 0
    np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(y, Y)
    np.testing.assert_array_equal(weight, WEIGHT)


def assert_parts_are_blocks(rows):
    """Parts read in threads, or after a journey to others, give the same blocks."""
    whole = list(rows.blocks())
    with ThreadPoolExecutor(4) as pool:
        parts = pool.map(lambda part: list(part.read()), rows.parts)
        found = [block for part in parts for block in part]
    travelled = pickle.loads(pickle.dumps(rows.parts))
    far = [block for part in travelled for block in part.read()]
    for others in (found, far):
        assert len(others) == len(whole)
        for one, other in zip(whole, others, strict=True):
            assert one.start == other.start
            np.testing.assert_array_equal(one.X, other.X)
            np.testing.assert_array_equal(one.y, other.y)
            np.testing.assert_array_equal(one.weight, other.weight)


def peak_bytes(rows):
    """Most bytes that numpy and Python held at a time during a pass."""
    tracemalloc.start()
    try:
        for _ in rows.blocks():
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
