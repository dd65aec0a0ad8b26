# SPDX-License-Identifier: BSD-3-Clause
"""Solve a family of machines exactly, by smoothing: tau <- tau / 8 until it is proved.

Wang & Yang (2022), end of section 2.3. Each round minimises the smoothed machines with
one shared factorisation, then tries the exactness step. Machines that are solved leave;
what is left after the last round is the caller's to solve otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.run import map_chunks
from leaveout.solve._family import Family
from leaveout.solve._interpolate import finish
from leaveout.solve._majorise import Iterate, Majoriser, minimise

# tau of the rounds. The paper begins with 1; from the full solution 1/8 is near enough
# and its exactness steps are a third of the work (n = 200, easy and hard C).
TAUS = tuple(8.0**-k for k in range(1, 6))
# How far from the smoothed optimum a round may end, in boxes: the exactness step needs
# the sets, not the point.
TOL = 1e-2
MAX_STEPS = 100
# Machines worked on at a time: enough for BLAS-3, few enough for the cache.
BLOCK = 128


@dataclass(frozen=True)
class Smoothed:
    """What smoothing made of a family.

    Parameters
    ----------
    eta : ndarray of shape (n_machines, n)
        Coefficients within their boxes.
    solved : ndarray of bool, shape (n_machines,)
        Whether the optimality conditions hold.
    n_steps : int
        Majorise-minimise steps of all machines.
    rounds : ndarray of int, shape (n_machines,)
        Values of tau each machine went through.
    """

    eta: FloatArray
    solved: BoolArray
    n_steps: int
    rounds: IntArray


def solve_family(
    family: Family, C: FloatArray, start: Iterate, *, n_threads: int = 1
) -> Smoothed:
    """Solve machines that share a kernel matrix, all at once.

    Parameters
    ----------
    family : Family
        The machines.
    C : ndarray of shape (n,)
        Largest box of each sample over the machines; > 0.
    start : Iterate
        Where to start; overwritten.
    n_threads : int, default=1
        Threads over blocks of machines.

    Returns
    -------
    Smoothed
        Check ``solved``.
    """
    k = len(family)
    eta, solved = start.eta.copy(), np.zeros(k, dtype=bool)
    rounds, steps = np.zeros(k, dtype=np.intp), np.zeros(k, dtype=np.intp)
    if family.boxes.size == 0:
        return Smoothed(eta, ~solved, 0, rounds)
    open_ = np.arange(k)
    reach = _reach(family, start)
    for tau in TAUS:
        majoriser = Majoriser.of(family.K, C, tau * reach, family.fit_intercept)
        run = partial(_run_block, family, majoriser, start, open_, eta, solved, steps)
        map_chunks(run, open_.size, n_threads, BLOCK)
        rounds[open_] += 1
        open_ = np.flatnonzero(~solved)
        if open_.size == 0:
            break
    return Smoothed(eta, solved, int(steps.sum()), rounds)


def _run_block(
    family: Family,
    majoriser: Majoriser,
    start: Iterate,
    open_: IntArray,
    eta: FloatArray,
    solved: BoolArray,
    steps: IntArray,
    block: slice,
) -> None:
    """One round of some of the open machines; writes start, eta, solved, steps."""
    rows = open_[block]
    part, at = family.take(rows), start.take(rows)
    steps[rows[0]] += minimise(part, majoriser, at, TOL, MAX_STEPS)
    start.put(rows, at)
    eta[rows], solved[rows] = finish(part, at, majoriser.tau)


def _reach(family: Family, start: Iterate) -> float:
    """Spread of the decision values, at most 1: the scale that tau is measured in.

    With a small C and an intercept all of the heavier class is next to the margin, at
    distances of the order of C: tau must tell them apart.
    """
    if not family.fit_intercept:
        return 1.0
    spread = float(np.ptp(start.values[0] + family.offsets[0]))
    return min(1.0, spread) or 1.0
