# SPDX-License-Identifier: BSD-3-Clause
"""Comparisons of leave-one-out results with those of :mod:`oracles.binary`."""

from __future__ import annotations

import numpy as np

# Largest deviation of a margin that still counts as equal, relative to max(1, |f|).
EXACT = 1e-7
# Within this distance of 0, the sign of an interval end depends on rounding.
ROUNDING = 1e-8


def margin_interval(loo, y):
    """Return (low, value, high) of y f from a LooIntervals, whose values are f."""
    low = np.where(y > 0, loo.lower, -loo.upper)
    high = np.where(y > 0, loo.upper, -loo.lower)
    return low, y * loo.values, high


def deviation(found, wanted):
    """Return |found - wanted| / max(1, |wanted|); 0 for equal infinities."""
    finite = np.isfinite(found) & np.isfinite(wanted)
    apart = np.where(found == wanted, 0.0, np.inf)
    found, wanted = found[finite], wanted[finite]
    apart[finite] = np.abs(found - wanted) / np.maximum(1.0, np.abs(wanted))
    return apart


def assert_intervals(loo, y, truth, where="", atol=EXACT):
    """Assert that value and interval of every sample equal the reference."""
    assert truth.kkt.max() <= 1e-10, f"{where}: the oracle itself failed"
    pairs = zip(
        margin_interval(loo, y), (truth.low, truth.value, truth.high), strict=True
    )
    for name, (found, wanted) in zip(("low", "value", "high"), pairs, strict=True):
        apart = deviation(found, wanted)
        worst = int(np.argmax(apart))
        assert apart[worst] <= atol, (
            f"{where}: {name} of sample {worst} is {found[worst]}, not {wanted[worst]}"
        )


def decided(truth):
    """Return masks (correct, error) of the samples whose label is certain."""
    return truth.low > ROUNDING, truth.high < -ROUNDING


def assert_signs(margins, truth, where=""):
    """Assert that all certain labels are correct."""
    correct, error = decided(truth)
    wrong = (correct & (margins <= 0)) | (error & (margins >= 0))
    assert not wrong.any(), f"{where}: wrong labels at {np.flatnonzero(wrong)}"


def assert_ambiguous(ambiguous, truth, where=""):
    """Assert that samples are flagged exactly if their interval contains 0.

    If only one end is 0 up to rounding, both flags are correct. f = 0 is flagged.
    """
    ends = np.abs([truth.low, truth.high]) <= ROUNDING
    tie = (np.abs([truth.low, truth.high]) <= 1e-12).all(axis=0)
    wrong = (ambiguous != truth.ambiguous) & ~ends.any(axis=0)
    wrong |= tie & ~ambiguous
    assert not wrong.any(), f"{where}: ambiguity wrong at {np.flatnonzero(wrong)}"
