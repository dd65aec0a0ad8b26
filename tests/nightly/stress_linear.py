# SPDX-License-Identifier: BSD-3-Clause
"""The stress set put to the other classifiers, against whole-number arithmetic.

The linear programs of LPMClassifier and LOOMClassifier are written out over (p, q, b+,
b-, xi) or (a, b+, b-, xi), all >= 0, and solved by `oracles.rational` in as many stages
as they have; LLWClassifier with two classes is an SVC with half the C.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from nightly.stress import ALLOWED, judge
from oracles.rational import (
    ExactInterval,
    leave_out_exactly,
    range_over_optima,
    to_fractions,
)

import leaveout as lo

# Largest coefficient of LOOMClassifier, for kernel values whose largest is about 1.
LOOM_CAP = 10**6
# Slacks that differ by less, in units of the largest weight, are one to it: rounding.
LOOM_TIE = 1e-12


def _signed(ends, sign):
    low, high = (None if v is None else sign * v for v in ends)
    return ExactInterval(*((low, high) if sign > 0 else (high, low)))


def _without(case, r):
    K, y, C = to_fractions(*case[:3])
    kept = [i for i in range(len(y)) if i != r and C[i] > 0]
    one_class = case.fit_intercept and len({y[i] for i in kept}) == 1
    part = [[K[i][j] for j in kept] for i in kept]
    point = [K[r][j] for j in kept]
    return part, [y[i] for i in kept], [C[i] for i in kept], point, y[r], one_class


def _one_class(sign, other):
    """b at or beyond the label of those that are left."""
    ends = (Fraction(1), None) if other > 0 else (None, Fraction(-1))
    return _signed(ends, sign)


def lpm_exactly(case, r):
    """Interval of y_r f(x_r) over all optima of the linear programming machine."""
    K, y, C, point, sign, one_class = _without(case, r)
    if one_class:
        return _one_class(sign, y[0])
    n, b = len(y), int(case.fit_intercept)
    eye = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    A = [
        [y[i] * v for v in K[i]]
        + [-y[i] * v for v in K[i]]
        + [y[i], -y[i]] * b
        + eye[i]
        for i in range(n)
    ]
    cost = [Fraction(1)] * (2 * n) + [Fraction(0)] * (2 * b) + C
    value = [*point, *(-v for v in point), *[Fraction(1), Fraction(-1)] * b]
    value += [Fraction(0)] * n
    return _signed(range_over_optima(value, [cost], A, [Fraction(1)] * n), sign)


def loom_exactly(case, r, tie=0.0):
    """The same for the leave-one-out machine, whose optima have the least sum of a.

    ``tie`` is what slacks may be above the least, a share of the largest weight.
    """
    K, y, C, point, sign, one_class = _without(case, r)
    if one_class:
        return _one_class(sign, y[0])
    n, b = len(y), int(case.fit_intercept)
    largest = float(np.abs(case.K).max())
    scale = Fraction(2) ** int(np.ceil(np.log2(largest))) if largest else Fraction(1)
    eye = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    zeros = [Fraction(0)] * n
    A = [
        [y[i] * y[j] * K[i][j] if i != j else Fraction(0) for j in range(n)]
        + [y[i], -y[i]] * b
        + eye[i]
        for i in range(n)
    ]
    A += [[-v for v in eye[j]] + [Fraction(0)] * (2 * b) + zeros for j in range(n)]
    right = [Fraction(1)] * n + [-LOOM_CAP / scale] * n
    slack = [*zeros, *[Fraction(0)] * (2 * b), *C]
    size = [Fraction(1)] * n + [Fraction(0)] * (2 * b + n)
    value = [v * s for v, s in zip(point, y, strict=True)]
    value += [Fraction(1), Fraction(-1)] * b + zeros
    tie = Fraction(tie) * max(C)
    return _signed(range_over_optima(value, [slack, size], A, right, tie), sign)


def _judged(model, case, truths):
    found = lo.leave_one_out(model, case.K, case.y, sample_weight=case.C)
    return judge(found, truths, near=True)


def _lpm(case):
    model = lo.LPMClassifier(kernel="precomputed", fit_intercept=case.fit_intercept)
    return _judged(model, case, [lpm_exactly(case, r) for r in range(len(case.y))])


def _loom(case):
    """Two optima whose slacks differ in the last digits are both taken for optimal."""
    model = lo.LOOMClassifier(kernel="precomputed", fit_intercept=case.fit_intercept)
    found = lo.leave_one_out(model, case.K, case.y, sample_weight=case.C)
    words = judge(found, _loom_truths(case), near=True)
    if set(words) <= set(ALLOWED):
        return words
    tied = judge(found, _loom_truths(case, LOOM_TIE), near=True)
    return [
        other if other in ALLOWED and word not in ALLOWED else word
        for word, other in zip(words, tied, strict=True)
    ]


def _loom_truths(case, tie=0.0):
    return [loom_exactly(case, r, tie) for r in range(len(case.y))]


def _llw(case):
    case = case._replace(fit_intercept=True)
    truths = leave_out_exactly(case.K, case.y, 0.5 * case.C)
    return _judged(lo.LLWClassifier(kernel="precomputed"), case, truths)


CLASSIFIERS = {"LPMClassifier": _lpm, "LOOMClassifier": _loom, "LLWClassifier": _llw}


def _shrink(case):
    """The first samples only: the truth takes long where numbers have many digits."""
    largest = np.abs(case.K).max()
    n = 5 if 1e-10 < largest < 1e10 else 3
    return case._replace(K=case.K[:n, :n].copy(), y=case.y[:n], C=case.C[:n])


def judge_classifier(name, case):
    """Words of a classifier; one word "refused" if it refuses."""
    case = _shrink(case)
    try:
        return CLASSIFIERS[name](case)
    except (ValueError, lo.LeaveoutError):
        return ["refused"]
