# SPDX-License-Identifier: BSD-3-Clause
"""``loo_permutation_test``: leave-one-out errors under permuted labels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from leaveout._typing import FloatArray, IntArray
from leaveout.estimators._adapt import adapt_model
from leaveout.estimators._check import check_count
from leaveout.estimators._leave_one_out import make_plan, summarise, values_decide
from leaveout.estimators._machines import Plan
from leaveout.estimators._one_vs_rest import build_one_vs_rest_task
from leaveout.estimators._svc import SVC
from leaveout.estimators._task import Target, Task, build_task, make_target
from leaveout.estimators._unwrap import Model, unwrap
from leaveout.loo import PermutationTest, permute_groups, permute_within
from leaveout.run import blas_threads, count_workers, map_parallel, show_progress

# Permutations a worker takes over at a time.
AT_A_TIME = 10


def loo_permutation_test(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    n_permutations: int = 1000,
    sample_weight: Any = None,
    groups: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> PermutationTest:
    """Compare the leave-one-out error with those under permuted labels, all exact.

    If X says nothing about y, the labels may change places: the error is then one draw
    out of many alike, and p says how far out it lies. Preprocessing and Gram matrix do
    not depend on y and are made once; each permutation costs about two fits.

    Parameters
    ----------
    estimator : SVC, Pipeline that ends in one, or OneVsRestClassifier of one
        scikit-learn's SVC or ours. It need not be fitted and is not changed. Its
        parameters must not have been chosen by these labels, else p is too small. A
        step of a Pipeline that uses y is refused.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Samples; the symmetric Gram matrix if kernel="precomputed". With a Pipeline,
        whatever its first step takes.
    y : array-like of shape (n_samples,)
        Class labels.
    n_permutations : int, default=1000
        Number of permutations; the smallest p is 1 / (1 + n_permutations).
    sample_weight : array-like of shape (n_samples,), default=None
        Factor of C per sample. The weights stay with the rows of X; labels change
        places among the rows with a weight > 0, and among those without.
    groups : array-like of shape (n_samples,), default=None
        Samples with equal entries are left out together. Labels are permuted within
        the groups, as in scikit-learn; if every group has one label only, the labels
        of whole groups are permuted.
    random_state : int, RandomState instance or None, default=None
        Seed of the permutations: those of scikit-learn's ``permutation_test_score``
        with the same seed (but for whole groups). The result does not depend on n_jobs.
    n_jobs : int, default=None
        joblib's workers over permutations; None means 1, -1 all cores.
    verbose : int, default=0
        Above 0, how far it is is written to stderr.

    Returns
    -------
    PermutationTest
        ``error``, ``permutation_errors``, ``p_value``.

    References
    ----------
    .. [1] M. Ojala and G. C. Garriga, "Permutation tests for studying classifier
       performance", Journal of Machine Learning Research 11, 2010.
    .. [2] B. Phipson and G. K. Smyth, "Permutation p-values should never be zero",
       Statistical Applications in Genetics and Molecular Biology 9(1), 2010.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> test = lo.loo_permutation_test(lo.SVC(C=1, gamma=0.1), X[50:], y[50:],
    ...                                n_permutations=99, random_state=0)
    >>> test.error, test.p_value
    (0.04, 0.01)
    """
    started = perf_counter()
    check_count("n_permutations", n_permutations)
    rng = check_random_state(random_state)
    model = unwrap(estimator)
    svc, task = adapt_model(model, X, y, sample_weight, stacklevel=3)
    labels_only = not values_decide(model, svc, task)
    plan, _ = make_plan(svc, task, "auto", groups, "frozen", 1, labels_only=labels_only)
    case = _Case(model, svc, task, plan)
    with blas_threads(1):
        error = case.error(task)
    exchanged, orders = _draw(task, plan.groups, n_permutations, rng)
    batches = iter(lambda: list(islice(orders, AT_A_TIME)), [])
    found = map_parallel(
        _permuted_errors,
        ((case, batch) for batch in batches),
        n_jobs=count_workers(n_jobs),
    )
    errors = show_progress(
        (error for batch in found for error in batch),
        n_permutations,
        "permutations",
        verbose=verbose > 0,
    )
    return PermutationTest(
        error, np.array(list(errors)), exchanged, perf_counter() - started
    )


class _Case(NamedTuple):
    """What all permutations share."""

    model: Model
    svc: SVC
    task: Task
    plan: Plan

    def error(self, task: Task) -> float:
        """Leave everybody out of one task."""
        machines = self.plan.leave_out_all(task)
        return summarise(
            self.model,
            self.svc,
            task,
            machines,
            self.plan.name,
            True,
            0.0,
            groups=self.plan.groups,
        ).error

    def with_labels(self, order: IntArray) -> Task:
        """Return the task with the labels in another order; the Gram matrix stays."""
        task = self.task
        target = make_target(task.labels[order], order.size, task.weights)
        build = build_one_vs_rest_task if self.model.one_vs_rest else build_task
        return build(self.svc, task.X, target, (task.K, task.gamma))


def _permuted_errors(case: _Case, orders: list[IntArray]) -> FloatArray:
    """Return the error under each of some permutations."""
    with blas_threads(1):
        return np.array([case.error(case.with_labels(order)) for order in orders])


def _draw(
    target: Target,
    groups: IntArray | None,
    n_permutations: int,
    rng: np.random.RandomState,
) -> tuple[str, Iterator[IntArray]]:
    """Say what is permuted, and draw the permutations."""
    n = target.labels.size
    present = target.weights > 0
    if groups is not None and _one_label_each(target, groups):
        present = np.bincount(groups, target.weights)[groups] > 0
        if present.all():
            return "whole groups", permute_groups(n_permutations, groups, rng)
        raise ValueError(
            "Every group has one label, so those of whole groups are to be permuted; "
            f"but that of row {np.flatnonzero(~present)[0]} has no sample_weight > 0. "
            "Drop the rows of such groups."
        )
    blocks = groups
    if not present.all():
        blocks = 2 * (np.zeros(n, dtype=np.intp) if groups is None else groups)
        blocks = blocks + present
    name = "samples" if groups is None else "samples within groups"
    return name, permute_within(n_permutations, blocks, n, rng)


def _one_label_each(target: Target, groups: IntArray) -> bool:
    """Whether no group has two labels."""
    _, codes = np.unique(target.labels, return_inverse=True)
    found = np.unique(np.column_stack([groups, codes]), axis=0)
    return found.shape[0] == int(groups.max()) + 1
