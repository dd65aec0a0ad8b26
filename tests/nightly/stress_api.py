# SPDX-License-Identifier: BSD-3-Clause
"""The stress set put to everything else that leaves samples out of an SVC.

Each call takes (case, rng) and returns one word per answer, as in `nightly.stress`:
groups, samples of weight 0, several classes, balanced weights of the fold, pairs, lists
of C, the curve over C, and the influence of suspects.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from nightly.stress import NEAR_ACCURACY, judge
from oracles.rational import fit_exactly, fit_without, leave_out_exactly, to_fractions

import leaveout as lo


def _svc(case, **options):
    return lo.SVC(kernel="precomputed", fit_intercept=case.fit_intercept, **options)


def _leave_out(case, y=None, svc=None, **options):
    options.setdefault("sample_weight", case.C)
    svc = _svc(case) if svc is None else svc
    return lo.leave_one_out(svc, case.K, case.y if y is None else y, **options)


def _groups(case, rng, method):
    codes = rng.integers(0, max(2, len(case.y) // 2), len(case.y))
    codes[:2] = [0, 1]
    truths = leave_out_exactly(*case, groups=codes)
    return judge(_leave_out(case, groups=codes, method=method), truths, near=True)


def _weightless(case, rng):
    """Samples of weight 0 are not trained on, and asked all the same."""
    absent = np.arange(len(case.y)) >= 2
    absent &= rng.random(len(case.y)) < 0.4
    case = case._replace(C=np.where(absent, 0.0, case.C))
    return judge(_leave_out(case), leave_out_exactly(*case), near=True)


def _votes(case, rng):
    """Three classes, one SVM per pair, trained on two of them only."""
    n = len(case.y)
    if n < 3:
        return []
    codes = rng.integers(0, 3, n)
    codes[:3] = [0, 1, 2]
    found = _leave_out(case, codes)
    words = []
    for r in range(n):
        votes = np.zeros(3, dtype=int)
        unique = True
        for i, j in combinations(range(3), 2):
            kept = (codes == i) | (codes == j)
            signs = np.where(codes == i, 1.0, -1.0)
            bounds = np.where(kept, case.C, 0.0)
            model = fit_without(case.K, signs, bounds, {r}, case.fit_intercept)
            sign = model.margin(r, 1).sign
            unique &= sign != 0
            votes[i if sign > 0 else j] += 1
        words.append(_label_word(found, r, int(np.argmax(votes)), unique))
    return words


def _label_word(found, r, label, unique):
    if np.isnan(found.margins[r]) or np.isnan(found.decision_values[r]).any():
        return "nan"
    if not found.certified[r]:
        return "uncertified"
    if found.ambiguous[r]:
        return "cautious" if unique else "ambiguous"
    # A tie in one pair need not change the elected class.
    return "exact" if found.predictions[r] == label else "wrong" if unique else "exact"


def _fold(case, rng):
    """Class weights that follow the counts of the fold."""
    codes = rng.integers(0, max(2, len(case.y) // 2), len(case.y))
    codes[:2] = [0, 1]
    found = _leave_out(case, svc=_svc(case, class_weight="balanced"), groups=codes)
    truths = [None] * len(codes)
    for group in np.unique(codes):
        out = codes == group
        C = case.C.copy()
        for sign in (-1.0, 1.0):
            count = np.count_nonzero((case.y == sign) & ~out)
            present = np.unique(case.y[~out]).size
            C[case.y == sign] *= np.count_nonzero(~out) / (present * max(count, 1))
        rows = set(np.flatnonzero(out))
        model = fit_without(case.K, case.y, C, rows, case.fit_intercept)
        for r in rows:
            truths[r] = model.margin(r, int(case.y[r]))
    return judge(found, truths, near=True)


def _pairs(case, rng):
    if len(case.y) < 3:
        return []
    found = lo.leave_pair_out_auc(_svc(case), case.K, case.y, sample_weight=case.C)
    if np.isnan(found.auc) or np.isnan(found.wins).any():
        return ["nan"]
    if not found.certified:
        return ["uncertified"]
    won = []
    for i in np.flatnonzero(case.y > 0):
        for j in np.flatnonzero(case.y < 0):
            model = fit_without(*case[:3], {i, j}, case.fit_intercept)
            apart = model.values[i] - model.values[j]
            won.append(0.5 if apart == 0 else float(apart > 0))
    off = abs(found.auc - np.mean(won)) * len(won)
    if off < 1e-9:
        return ["exact"]
    spare = found.n_ties - won.count(0.5)  # said to be equal to rounding
    return ["cautious" if 0 <= off <= 0.5 * spare + 1e-9 else "wrong"]


def _path(case, rng):
    Cs = 10.0 ** rng.uniform(-6, 6, 3)
    path = lo.loo_path(_svc(case), case.K, case.y, Cs=Cs, sample_weight=case.C)
    words = []
    for C, found in zip(Cs, path.results, strict=True):
        truths = leave_out_exactly(case.K, case.y, case.C * C, case.fit_intercept)
        words += judge(found, truths, near=True)
    return words


def _curve(case, rng):
    """Counts of errors at some C; each uncertified or ambiguous sample may be off."""
    low = 10.0 ** rng.uniform(-8, 3)
    high = low * 10.0 ** rng.uniform(1, 8)
    curve = lo.loo_curve(
        _svc(case), case.K, case.y, C_min=low, C_max=high, sample_weight=case.C
    )
    if np.isnan(curve.errors).any() or np.isnan(curve.breakpoints).any():
        return ["nan"]
    words = []
    for C in low * (high / low) ** rng.uniform(0.01, 0.99, 3):
        truths = leave_out_exactly(case.K, case.y, case.C * C, case.fit_intercept)
        signs = np.array([truth.sign for truth in truths])
        n_wrong = round(float(curve.error_at(C)) * len(signs))
        least = np.count_nonzero(signs < 0)
        most = least + np.count_nonzero(signs == 0)
        slack = int(curve.n_ambiguous_at(C))
        if curve.n_uncertified:
            words.append("uncertified")
        elif least <= n_wrong <= most:
            words.append("ambiguous" if slack else "exact")
        else:
            off = max(least - n_wrong, n_wrong - most)
            words.append("cautious" if off <= slack else "wrong")
    return words


def _influence(case, rng):
    """Margins and influence of suspects."""
    found = lo.suspects(_svc(case), case.K, case.y, sample_weight=case.C)
    K, y, C = to_fractions(*case[:3])
    full = fit_exactly(K, y, C, case.fit_intercept)
    words = []
    for k, r in enumerate(found.rows):
        if np.isnan([found.margins[k], found.influence[k]]).any():
            words.append("nan")
            continue
        without = fit_without(*case[:3], {r}, case.fit_intercept)
        sign = without.margin(r, int(y[r])).sign
        if hasattr(found, "certified") and not found.certified[k]:
            words.append("uncertified")
        elif found.ambiguous[k]:
            words.append("cautious" if sign else "ambiguous")
        elif sign == 0 or found.margins[k] * sign <= 0:
            words.append("wrong")
        else:
            change = [
                float(y[j] * (_value(without, j) - _value(full, j)))
                for j in range(len(y))
                if j != r
            ]
            wanted = float(np.mean(change))
            off = abs(found.influence[k] - wanted) / max(1, abs(wanted))
            words.append("value" if off > NEAR_ACCURACY else "exact")
    return words


def _value(model, j):
    """f with b in the middle, or at its finite end."""
    ends = [b for b in model[1:] if b is not None]
    return model.values[j] + sum(ends) / len(ends)


def _bounds(case, rng):
    """What is called a bound, and the range of the exact error."""
    table = lo.loo_bounds(_svc(case), case.K, case.y, sample_weight=case.C)
    signs = np.array([truth.sign for truth in leave_out_exactly(*case)])
    wrong, either = np.mean(signs < 0), np.mean(signs <= 0)
    words = []
    for row in table.rows:
        if np.isnan([row.value, row.lower]).any():
            words.append("nan")
        elif row.kind == "estimate" or "L2" in row.name:
            words.append("uncertified")
        else:
            least = wrong if row.kind == "weak bound" else either
            holds = row.value >= least - 1e-9 and row.lower <= either + 1e-9
            words.append("exact" if holds else f"wrong {row.name}")
    return words


CALLS = {
    "groups, walk": lambda case, rng: _groups(case, rng, "walk"),
    "groups, refit": lambda case, rng: _groups(case, rng, "refit"),
    "weight 0": _weightless,
    "three classes": _votes,
    "balanced by fold": _fold,
    "pairs": _pairs,
    "loo_path": _path,
    "loo_curve": _curve,
    "suspects": _influence,
    "loo_bounds": _bounds,
}


def judge_call(call, case, seed):
    """Words of a call; one word "refused" if it refuses."""
    try:
        return CALLS[call](case, np.random.default_rng(seed))
    except (ValueError, lo.LeaveoutError):
        return ["refused"]
