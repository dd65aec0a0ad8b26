# SPDX-License-Identifier: BSD-3-Clause
"""Corrupt the checkpoint of a finished search, run it again, compare every bit.

``python tests/corrupt_checkpoints.py --trials 100 --seed 0`` prints one JSON line per
trial: how the file was corrupted, and whether the search refused it or gave the same
numbers.
"""

import argparse
import json
import random
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from faults import digest

from leaveout import SVC, CheckpointError, LooSearchCV
from leaveout.data import make_mixture

GRID = {"C": [0.5, 5.0], "gamma": np.logspace(-2, 1, 5)}


def search(checkpoint=None):
    """Fit the search that all trials share."""
    X, y = make_mixture(40, 3, random_state=0)
    return LooSearchCV(SVC(), GRID, checkpoint=checkpoint).fit(X, y)


def flip_bits(raw, chance):
    for _ in range(chance.choice([1, 1, 2, 8])):
        raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)


def truncate(raw, chance):
    del raw[chance.randrange(len(raw)) :]


def zero_block(raw, chance):
    """Zero a sector, as if it never reached the disk."""
    start = 512 * chance.randrange(len(raw) // 512)
    raw[start : start + 512] = bytes(512)


def append(raw, chance):
    raw += chance.randbytes(chance.choice([1, 100, 4096]))


def swap_blocks(raw, chance):
    starts = [512 * chance.randrange(len(raw) // 512) for _ in range(2)]
    one, two = (slice(start, start + 512) for start in starts)
    raw[one], raw[two] = raw[two], raw[one]


CORRUPTIONS = (flip_bits, flip_bits, truncate, zero_block, append, swap_blocks)


def run_trials(n_trials, seed, folder):
    """Yield how a copy of the file was corrupted, and the outcome of the search."""
    chance, path = random.Random(seed), folder / "trial.db"
    wanted = digest(search(path))
    whole = path.read_bytes()
    for _ in range(n_trials):
        corrupt, raw = chance.choice(CORRUPTIONS), bytearray(whole)
        corrupt(raw, chance)
        path.write_bytes(raw)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                outcome = "same" if digest(search(path)) == wanted else "DIFFERENT"
            except CheckpointError as error:
                outcome = "refused" if path.name in str(error) else "UNNAMED"
        yield {"kind": corrupt.__name__, "outcome": outcome}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for record in run_trials(arguments.trials, arguments.seed, Path(folder)):
            sys.stdout.write(json.dumps(record) + "\n")
