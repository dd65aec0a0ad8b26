# SPDX-License-Identifier: BSD-3-Clause
"""Leave-one-out methods in one call: solve the problem, leave out samples.

``SVC_METHODS`` and ``loo_groups`` also withdraw certificates for rounding, as
``loo/_leave_out.py`` does; the functions by name are the bare methods.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from leaveout.engine._problem import Folds
from leaveout.engine._solve import solve_svc
from leaveout.loo._family import FAMILIES
from leaveout.loo._leave_out import scale_bounds
from leaveout.lp._loom import LoomProblem
from leaveout.methods import METHODS


def leave_out(family, name, problem, *, solution=None, folds=None, **options):
    """Solve a problem and leave out samples."""
    family = FAMILIES[family]
    solution = family.solve(problem) if solution is None else solution
    return family.methods[name].function(problem, solution, folds, **options)


def leave_out_svc(name, problem, *, solution=None, folds=None, **options):
    """Do the same for an SVC, with rounding checks."""
    family = FAMILIES["svc"]
    solution = family.solve(problem) if solution is None else solution
    problem, solution = family.tighten(problem, solution)
    found = family.methods[name].function(problem, solution, folds, **options)
    return family.certify(problem, solution, found, folds)


def solve_path(problem, Cs):
    """Solve a problem with C = 1 at each of some C, each from the last solution."""
    before = None
    for C in Cs:
        scaled, start = scale_bounds(problem, C, before)
        before = scaled, solve_svc(scaled, start=start)
        yield before


loo_walk = partial(leave_out, "svc", "walk")
loo_refit = partial(leave_out, "svc", "refit")
loo_stopping = partial(leave_out, "svc", "stopping")
loo_consolidated = partial(leave_out, "svc", "consolidated")
loo_magic = partial(leave_out, "svc", "magic")
loo_lpm_walk = partial(leave_out, "lpm", "walk")
loo_lpm_refit = partial(leave_out, "lpm", "refit")
loo_llw_walk = partial(leave_out, "llw", "walk")
loo_llw_refit = partial(leave_out, "llw", "refit")
SVC_METHODS = {name: partial(leave_out_svc, name) for name in METHODS}


def wrong_and_ambiguous(problem, loo):
    """Return the samples that are wrong for every, and for some, optimal intercept."""
    low, high = np.sort([problem.y * loo.lower, problem.y * loo.upper], axis=0)
    return high < -1e-10, (high >= -1e-10) & (low <= 1e-10)


def loo_groups(problem, codes, *, method="walk", factors=None, **options):
    """Leave out every group; return values in the order of the samples."""
    folds = Folds.of_groups(np.asarray(codes))
    if factors is not None:
        folds = Folds(folds.members, folds.begin, factors)
    found = leave_out_svc(method, problem, folds=folds, **options)
    inside = type(found).empty(folds.members.size)
    inside.write(folds.members, found)
    return replace(inside, counts=found.counts)


def as_loom(problem, nu=1.0):
    """Return a LOOM problem with nu."""
    return LoomProblem(problem.K, problem.y, problem.C, problem.fit_intercept, nu=nu)


def solve_loom(problem, *, nu=1.0):
    """Solve a LOOM."""
    return FAMILIES["loom"].solve(as_loom(problem, nu))


def loo_loom_refit(problem, *, nu=1.0, **options):
    """Leave out every sample of a LOOM."""
    return leave_out("loom", "refit", as_loom(problem, nu), **options)


def loo_loom_bound(problem, *, nu=1.0, **options):
    """Evaluate every sample without its own term."""
    return leave_out("loom", "bound", as_loom(problem, nu), **options)


def count_calls(monkeypatch, module, name):
    """Return a list that gets one entry per call of a function."""
    calls, function = [], getattr(module, name)

    def counted(*args, **kwargs):
        calls.append(name)
        return function(*args, **kwargs)

    monkeypatch.setattr(module, name, counted)
    return calls
