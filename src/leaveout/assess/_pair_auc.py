# SPDX-License-Identifier: BSD-3-Clause
"""leave_pair_out_auc: the AUC from pairs of samples left out together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from leaveout._typing import FloatArray, IntArray
from leaveout.adapt._checks import check_flag
from leaveout.adapt._prepare import prepare, task_on_all_rows
from leaveout.engine._certificate import cap_unreachable_bounds, rounding_bound
from leaveout.engine._problem import TIE, Folds, LooIntervals, Problem, Solution
from leaveout.engine._solve import solve_svc
from leaveout.engine._walk import Walker
from leaveout.loo._leave_out import Plan
from leaveout.loo._summary import Summary
from leaveout.loo._task import Task, svm_subproblems
from leaveout.run._parallel import limit_blas, show_progress

# The end of a walk is verified to 1e-9: smaller differences may not be real.
CHECKED = 1e-8
# Pairs per batch; progress and Python's signals are handled between batches.
PAIRS_AT_A_TIME = 20_000
# The same if steps are fitted without each pair: bounds the memory of their statistics.
FOLDS_AT_A_TIME = 2000


@dataclass(frozen=True, repr=False)
class PairAUC(Summary):
    """Area under the ROC curve from pairs that were left out together.

    Parameters
    ----------
    auc : float
        Fraction of pairs in which the positive sample has the larger value; ties count
        one half.
    wins : ndarray of shape (n,)
        Per sample, the fraction of its pairs in which it has the larger value. As a
        score, it gives a ROC curve with this area.
    n_pairs : int
        Number of pairs, positives times negatives.
    n_ties : int
        Number of pairs whose values are equal up to rounding.
    certified : bool
        Whether every pair passed its check and rounding cannot have reversed any pair.
    counts : dict
        Number of pivots, walks and refits; seconds.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two classes
    >>> lo.leave_pair_out_auc(lo.SVC(C=1, gamma=0.1), X, y)
    <PairAUC: AUC 0.9952 from 2500 left-out pairs>
    """

    __module__ = "leaveout"

    auc: float
    wins: FloatArray
    n_pairs: int
    n_ties: int
    certified: bool
    counts: dict[str, float]

    def __float__(self) -> float:
        """Return the area."""
        return self.auc

    _title = "Leave-pair-out"

    def _verdict(self) -> str:
        return f"AUC {self.auc:.4f} from {self.n_pairs} left-out pairs"

    def _rows(self) -> list[tuple[str, Any]]:
        return [
            ("AUC", f"{self.auc:.4f}"),
            ("pairs", self.n_pairs),
            ("ties", self.n_ties),
            ("refits", int(self.counts["refits"])),
            ("seconds", f"{self.counts['seconds']:.3g}"),
        ]


def loo_pairs(
    problem: Problem,
    solution: Solution,
    leave_out: Callable[[Folds], LooIntervals] | None = None,
    *,
    n_threads: int = 1,
    verbose: bool = False,
) -> PairAUC:
    """Leave out every pair of a positive and a negative sample, exactly.

    Both values of a pair come from one solution trained on neither sample. They share
    its intercept, so their order does not depend on it and no pair is ambiguous. Pooled
    leave-one-out values come from n solutions, and their AUC is biased (Airola et al.
    2011). ``leave_out`` replaces the walks if every pair has a kernel of its own.
    """
    started = perf_counter()
    walker, at_a_time = None, FOLDS_AT_A_TIME
    if leave_out is None:
        problem = cap_unreachable_bounds(problem, solution)
        walker = Walker(problem, solution, n_threads=n_threads)
        leave_out, at_a_time = walker.leave_out, PAIRS_AT_A_TIME
    sides = [(problem.y == sign) & (problem.C > 0.0) for sign in (1.0, -1.0)]
    grid = np.meshgrid(*map(np.flatnonzero, sides), indexing="ij")
    pairs = np.column_stack([axis.ravel() for axis in grid]).astype(np.intp)
    above, certified = np.zeros(pairs.shape[0]), True
    # If every pair contains all samples of a class, f is the constant b.
    one_class_left = problem.fit_intercept and min(side.sum() for side in sides) == 1
    starts = range(0, 0 if one_class_left else pairs.shape[0], at_a_time)
    counts: Counter[str] = Counter(refits=0)  # update adds
    for start in show_progress(starts, len(starts), "pair batches", verbose=verbose):
        some = slice(start, start + at_a_time)
        found = leave_out(_folds(pairs[some]))
        above[some] = found.values[::2] - found.values[1::2]
        certified &= bool(found.certified.all())
        counts.update(found.counts)
    counts.update({} if walker is None else walker.counts)
    rounding = rounding_bound(problem, solution, _folds(pairs[:1]))
    own = {**counts, "seconds": perf_counter() - started, "rounding": rounding}
    return _summary(problem, rounding, pairs, above, certified, own)


def _folds(pairs: IntArray) -> Folds:
    """Make a fold of each pair."""
    begin = np.arange(0, 2 * pairs.shape[0] + 1, 2, dtype=np.intp)
    return Folds(pairs.ravel(), begin)


def _summary(
    problem: Problem,
    rounding: float,
    pairs: IntArray,
    above: FloatArray,
    certified: bool,
    counts: dict[str, float],
) -> PairAUC:
    """Count the wins; certify them if rounding cannot change a count."""
    apart = np.abs(above)
    smallest = TIE * (apart.max(initial=0.0) + problem.fit_intercept)
    if rounding <= TIE:
        smallest = max(smallest, rounding)
    tie = apart <= smallest
    won = np.where(tie, 0.5, above > 0.0)
    clear = apart > max(rounding, CHECKED)
    equal = tie if rounding <= smallest else apart == 0.0
    certified &= bool(np.all(clear | equal))
    n = problem.n_samples
    played = np.bincount(pairs.ravel(), minlength=n)
    wins = np.bincount(pairs[:, 0], won, n) + np.bincount(pairs[:, 1], 1.0 - won, n)
    return PairAUC(
        auc=float(won.mean()),
        wins=wins / np.maximum(played, 1),
        n_pairs=pairs.shape[0],
        n_ties=int(tie.sum()),
        certified=certified,
        counts=counts,
    )


def leave_pair_out_auc(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    preprocessing: str = "fold",
    n_jobs: int | None = None,
    verbose: bool = False,
) -> PairAUC:
    """Estimate the area under the ROC curve from pairs that are left out together.

    Every pair of a positive and a negative sample is left out in turn, exactly, and
    both samples are scored by the classifier trained on neither. The *pooled* AUC ranks
    the left-out values of all samples together and is biased: each value comes from a
    different classifier, whose intercept has moved away from the class of the left-out
    sample (Airola et al. 2011).

    Parameters
    ----------
    estimator : SVC, or Pipeline that ends in one
        scikit-learn's SVC or leaveout's. It does not need to be fitted and is not
        changed.
    y : array-like of shape (n_samples,)
        Labels of two classes; the second in sorted order is the positive class.
    sample_weight : array-like of shape (n_samples,), default=None
        Rescales C per sample; samples with weight 0 are not paired.
    preprocessing : {"fold", "frozen"}, default="fold"
        Whether the steps of a Pipeline, ``gamma="scale"`` and
        ``class_weight="balanced"`` are fitted without each pair, or once on all rows,
        which takes less time.
    X, n_jobs
        As in :func:`leave_one_out`.
    verbose : bool, default=False
        Whether to show progress on stderr.

    Returns
    -------
    PairAUC
        ``auc``, ``wins`` per sample, ``n_pairs``, ``counts``.

    References
    ----------
    .. [1] A. Airola, T. Pahikkala, W. Waegeman, B. De Baets and T. Salakoski, "An
       experimental comparison of cross-validation techniques for estimating the area
       under the ROC curve", Computational Statistics & Data Analysis 55(4), 2011.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> lo.leave_pair_out_auc(lo.SVC(C=1, gamma=0.1), X[50:], y[50:]).auc
    0.9952
    """
    check_flag("verbose", verbose)
    task, plan = prepare(
        estimator,
        X,
        y,
        sample_weight=sample_weight,
        preprocessing=preprocessing,
        n_jobs=n_jobs,
        singletons=False,
        psd_for="leave_pair_out_auc",
    )
    n_classes = len(task.target.classes)
    if n_classes != 2:
        raise ValueError(
            f"y has {n_classes} classes, but the AUC is for two. Pass two of "
            "them, or one against the rest: y == label."
        )
    if np.count_nonzero(task.target.weights) == 2:
        raise ValueError(
            "X has 2 samples with weight, so leaving out a pair leaves none to train "
            "on. leave_pair_out_auc needs at least 3 samples."
        )
    leave_out = None if plan.source is None else partial(_leave_folds, task, plan)
    with limit_blas(1):
        if leave_out is not None:
            task = task_on_all_rows(estimator, X, y, sample_weight)
        [sub] = svm_subproblems(task, whole=True)
        return loo_pairs(
            sub.problem,
            solve_svc(sub.problem),
            leave_out,
            n_threads=plan.n_threads,
            verbose=verbose,
        )


def _leave_folds(task: Task, plan: Plan, folds: Folds) -> LooIntervals:
    """Leave pairs out of a task whose steps are fitted without them."""
    assert plan.source is not None
    pairs = folds.members.reshape(-1, 2)
    order = np.argsort(pairs, axis=1)
    ascending = _folds(np.take_along_axis(pairs, order, axis=1))
    [[[left]]] = plan.source([task], plan, np.ones(1), folds=ascending)
    return left.found.take((2 * np.arange(len(folds))[:, None] + order).ravel())
