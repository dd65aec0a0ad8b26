# SPDX-License-Identifier: BSD-3-Clause
"""loo_permutation_test: leave-one-out errors under permuted labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from leaveout._typing import FloatArray, IntArray
from leaveout.adapt._checks import check_count
from leaveout.adapt._prepare import prepare
from leaveout.loo._leave_out import Plan, leave_out
from leaveout.loo._summary import Summary, as_percent
from leaveout.loo._task import Target, Task, make_target, make_task
from leaveout.run._parallel import count_workers, map_parallel, show_progress

# Permutations per batch of a worker.
AT_A_TIME = 10


@dataclass(frozen=True, repr=False)
class PermutationTest(Summary):
    """A leave-one-out error beside those under permuted labels.

    Parameters
    ----------
    error : float
        Error with the original labels.
    permutation_errors : ndarray of shape (n_permutations,)
        Error with each permutation of the labels.
    exchanged : str
        What was permuted: "samples", "samples within groups" or "whole groups".
    seconds : float
        Computing time.

    Examples
    --------
    >>> import numpy as np
    >>> test = PermutationTest(0.2, np.array([0.5, 0.4, 0.2, 0.6]), "samples", 0.1)
    >>> test.p_value
    0.4
    """

    __module__ = "leaveout"

    error: float
    permutation_errors: FloatArray
    exchanged: str
    seconds: float

    @property
    def n_permutations(self) -> int:
        """Number of permutations."""
        return self.permutation_errors.shape[0]

    @property
    def n_as_good(self) -> int:
        """Number of permutations with an error as small as ``error``, or smaller."""
        return int(np.count_nonzero(self.permutation_errors <= self.error))

    @property
    def p_value(self) -> float:
        """(1 + n_as_good) / (1 + n_permutations), as in scikit-learn.

        The original labels count as one of the permutations, so p is never 0 and
        P(p <= a) <= a for exchangeable labels (Phipson & Smyth 2010).
        """
        return (1 + self.n_as_good) / (1 + self.n_permutations)

    _title = "Leave-one-out permutation test"

    def _verdict(self) -> str:
        return f"p = {self.p_value:.4g} for the error {as_percent(self.error)}"

    def _rows(self) -> list[tuple[str, Any]]:
        low, middle, high = np.quantile(self.permutation_errors, [0.025, 0.5, 0.975])
        span = f"{100 * low:.1f} to {as_percent(high)}"
        chance = f"{as_percent(middle)} ({span} in 95 % of the permutations)"
        return [
            ("error", as_percent(self.error)),
            ("by chance", chance),
            ("p-value", f"{self.p_value:.4g}"),
            ("permutations", f"{self.n_permutations} of {self.exchanged}"),
            ("as small", self.n_as_good),
            ("seconds", f"{self.seconds:.3g}"),
        ]


def loo_permutation_test(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    n_permutations: int = 1000,
    sample_weight: Any = None,
    groups: Any = None,
    preprocessing: str = "fold",
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> PermutationTest:
    """Test whether the leave-one-out error is better than chance, by permuting labels.

    If y does not depend on X, permuting the labels does not change the distribution of
    the error; p is the fraction of permutations with an error as small. All errors are
    exact. If one Gram matrix serves all folds, it is computed once, and each
    permutation costs about two fits; otherwise, as :func:`leave_one_out` does.

    Parameters
    ----------
    estimator : SVC, Pipeline that ends in one, or OneVsRestClassifier of one
        scikit-learn's SVC or leaveout's. It does not need to be fitted and is not
        changed. Its parameters must not have been tuned on these labels; otherwise p is
        too small. The steps of a Pipeline are fitted to the permuted labels, too.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Samples; the symmetric Gram matrix if kernel="precomputed". For a Pipeline,
        any input of its first step.
    y : array-like of shape (n_samples,)
        Class labels.
    n_permutations : int, default=1000
        Number of permutations; the smallest possible p is 1 / (1 + n_permutations).
    sample_weight : array-like of shape (n_samples,), default=None
        Rescales C per sample. The weights stay with the rows of X; labels are permuted
        separately among the rows with weight > 0 and among those with weight 0.
    groups : array-like of shape (n_samples,), default=None
        Samples with equal entries are left out together. Labels are permuted within
        the groups, as in scikit-learn; if every group has a single label, the labels
        of whole groups are permuted.
    preprocessing : {"fold", "frozen"}, default="fold"
        As in :func:`leave_one_out`.
    random_state : int, RandomState instance or None, default=None
        Controls the permutations. They equal those of scikit-learn's
        ``permutation_test_score`` with the same seed, except for whole groups. The
        result does not depend on n_jobs.
    n_jobs : int, default=None
        Number of joblib workers. None means 1, -1 means all cores.
    verbose : int, default=0
        If positive, show progress on stderr.

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
    prepared = partial(
        prepare,
        estimator,
        X,
        sample_weight=sample_weight,
        groups=groups,
        preprocessing=preprocessing,
        labels_only=True,
        n_jobs=1,
    )
    task, plan = prepared(y)
    error = leave_out(task, plan).result.error
    exchanged, orders = _draw(task.target, plan.groups, n_permutations, rng)
    remake: Callable[..., tuple[Task, Plan]]
    if plan.source is None:  # the labels do not change the Gram matrix
        remake = partial(_relabel, task, plan)
    else:
        remake = partial(prepared, singletons=False)
    labels = task.target.labels
    batches = iter(lambda: [labels[order] for order in islice(orders, AT_A_TIME)], [])
    found = map_parallel(
        _permuted_errors,
        ((remake, batch) for batch in batches),
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


def _relabel(task: Task, plan: Plan, labels: NDArray[Any]) -> tuple[Task, Plan]:
    """Return the task with other labels and the same Gram matrix."""
    target = make_target(labels, task.target.weights)
    return make_task(target, task.gram, task.params, task.X), plan


def _permuted_errors(
    remake: Callable[..., tuple[Task, Plan]], permuted: list[NDArray[Any]]
) -> FloatArray:
    """Return the error for each of some permutations of the labels."""
    return np.array([leave_out(*remake(y)).result.error for y in permuted])


def _draw(
    target: Target,
    groups: IntArray | None,
    n_permutations: int,
    rng: np.random.RandomState,
) -> tuple[str, Iterator[IntArray]]:
    """Return what is permuted, and the permutations as arrays of row numbers.

    Row r gets the label of row ``order[r]``. Within blocks the same seed gives the same
    permutations as scikit-learn's ``permutation_test_score``.
    """
    n, labels = target.labels.size, target.labels
    present = target.weights > 0
    codes = np.zeros(n, dtype=np.intp) if groups is None else groups
    first = np.unique(codes, return_index=True)[1]
    if groups is not None and np.array_equal(labels[first][groups], labels):
        present = np.bincount(groups, target.weights)[groups] > 0
        if not present.all():
            raise ValueError(
                "Every group has a single label, so labels of whole groups are "
                f"permuted, but the group of row {np.argmin(present)} has no "
                "sample_weight > 0. Drop the rows of such groups."
            )
        draws = (first[rng.permutation(first.size)] for _ in range(n_permutations))
        return "whole groups", (rows[groups] for rows in draws)
    codes = 2 * codes + present
    blocks = [np.flatnonzero(codes == code) for code in np.unique(codes)]
    name = "samples" if groups is None else "samples within groups"
    return name, (_permute_within(blocks, n, rng) for _ in range(n_permutations))


def _permute_within(
    blocks: list[IntArray], n: int, rng: np.random.RandomState
) -> IntArray:
    """Return a permutation of n rows that keeps every row in its block."""
    order = np.arange(n)
    for rows in blocks:
        order[rows] = rng.permutation(rows)
    return order
