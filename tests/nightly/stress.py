# SPDX-License-Identifier: BSD-3-Clause
"""Problems made to break floating point, and a judge that uses none.

Each problem has Gram values that are positive semi-definite to the last bit, so that
:mod:`oracles.rational` knows its left-out intervals without rounding. What may be
found for a sample:

- ``exact``: certified, the right label, the right interval;
- ``ambiguous``: flagged, and some optimum does give another label;
- ``cautious``: flagged as ambiguous although all optima agree, or with an interval
  that is longer than it is;
- ``uncertified``: no certificate, so nothing is promised;

and what may not: ``wrong`` (certified, not flagged, and another label than the truth,
or the truth has none), ``value`` (the label is right, an end of the interval is not),
``nan``.
"""

from __future__ import annotations

import numpy as np
from oracles.problems import Case, gram
from oracles.rational import is_exactly_psd, leave_out_exactly

METHODS = ("walk", "refit", "stopping", "consolidated", "magic")
ALLOWED = ("exact", "ambiguous", "cautious", "uncertified")
# Certified values: relative to max(1, |f|), or what the result says of rounding if that
# is more. Calls whose answers do not say it have some digits less.
ACCURACY = 1e-6
NEAR_ACCURACY = 1e-5


def _labels(rng, X):
    n = len(X)
    signal = np.where(X[:, 0] + 3 * rng.normal(size=n) > 0, 1.0, -1.0)
    y = signal if rng.random() < 0.5 else rng.choice([-1.0, 1.0], n)
    y[:2] = [1.0, -1.0]
    return y


def _whole(rng, n):
    return rng.integers(-8, 9, size=(n, int(rng.integers(1, 5)))).astype(float)


def _nearly_equal(rng, n):
    """Points in a few places, moved by powers of two down to 2^-21."""
    X = _whole(rng, n)[rng.integers(0, max(1, n // 2), n)]
    steps = rng.integers(-2, 3, size=X.shape)
    return X + steps * 2.0 ** -int(rng.integers(1, 22))


KINDS = {
    "whole": lambda rng, n: (X := _whole(rng, n), X @ X.T),
    "nearly_equal": lambda rng, n: (X := _nearly_equal(rng, n), X @ X.T),
    "rank_one": lambda rng, n: (X := _whole(rng, n)[:, :1], X @ X.T),
    "identical": lambda rng, n: (X := np.tile(_whole(rng, 1), (n, 1)), X @ X.T),
    "far_from_origin": lambda rng, n: (
        X := _whole(rng, n),
        X @ X.T + 2.0 ** int(rng.integers(10, 45)),
    ),
    "rbf": lambda rng, n: (
        X := _whole(rng, n),
        np.exp(-(10.0 ** rng.uniform(-4, 2)) * ((X[:, None] - X) ** 2).sum(axis=2)),
    ),
    "real": lambda rng, n: (X := rng.normal(size=(n, 3)), gram(X, "linear")),
}
# Exponents of two by which K is multiplied: features of 1e-149 to 1e147.
SCALES = (0, 0, 0, 0, 0, -990, -500, -100, -20, 20, 100, 500, 980)


def draw(seed, kind=None):
    """Return (kind, Case), or None if rounding made K indefinite."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(list(KINDS))) if kind is None else kind
    n = int(rng.integers(2, 9))
    X, K = KINDS[kind](rng, n)
    y = _labels(rng, X)
    scale = int(rng.choice(SCALES))
    C = np.full(n, 10.0 ** rng.uniform(-12, 12))
    if rng.random() < 0.4:  # the same classifier at another scale
        C = np.ldexp(C, max(-scale, -900) if scale > 0 else min(-scale, 900))
    spread = rng.random()
    if spread < 0.3:
        C = C * 10.0 ** rng.uniform(-6, 6, n)
    elif spread < 0.5:
        C = C * rng.integers(1, 4, n)
    case = Case(np.ldexp(K, scale), y, C, bool(rng.random() < 0.7))
    return (kind, case) if is_exactly_psd(case.K) else None


def truth_of(case):
    """Exact intervals of y_r f(x_r) for all r."""
    return leave_out_exactly(*case)


def judge(result, truths, near=False):
    """Return one word a sample for a LooResult; see the head of this file."""
    accuracy = NEAR_ACCURACY if near else ACCURACY
    accuracy = max(accuracy, result.counts.get("rounding", 0.0))
    values = result.method != "stopping"  # which proves signs alone
    return [_judge(result, r, t, accuracy, values) for r, t in enumerate(truths)]


def _judge(result, r, truth, accuracy, values):
    low, margin, high = result.lower[r], result.margins[r], result.upper[r]
    if np.isnan([low, margin, high]).any():
        return "nan"
    if not result.certified[r]:
        return "uncertified"
    if result.ambiguous[r]:
        return "cautious" if truth.sign else "ambiguous"
    if truth.sign == 0 or margin * truth.sign <= 0:
        return "wrong"
    if values and max(_apart(low, truth.low), _apart(high, truth.high)) > accuracy:
        return "cautious" if covers(result, r, truth) else "value"
    return "exact"


def _apart(found, wanted):
    """Distance relative to max(1, |wanted|); None is an infinite end."""
    if wanted is None or not np.isfinite(found):
        return 0.0 if wanted is None and not np.isfinite(found) else np.inf
    return float(abs(found - wanted) / max(1, abs(wanted)))


def covers(found, r, truth):
    """Whether the interval found is not shorter than the true one."""
    return (
        found.lower[r] <= (-np.inf if truth.low is None else truth.low) + ACCURACY
        and found.upper[r] >= (np.inf if truth.high is None else truth.high) - ACCURACY
    )
