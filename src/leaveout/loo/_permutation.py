# SPDX-License-Identifier: BSD-3-Clause
"""Permutations of the labels, the errors they give, and the p-value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from leaveout._typing import FloatArray, IntArray


@dataclass(frozen=True)
class PermutationTest:
    """A leave-one-out error beside those under permuted labels.

    Parameters
    ----------
    error : float
        Error with the labels as they are.
    permutation_errors : ndarray of shape (n_permutations,)
        Error with each permutation of the labels.
    exchanged : str
        What was permuted: "samples", "samples within groups" or "whole groups".
    seconds : float
        Time it took.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.loo import PermutationTest
    >>> test = PermutationTest(0.2, np.array([0.5, 0.4, 0.2, 0.6]), "samples", 0.1)
    >>> test.p_value
    0.4
    """

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
        """Number of permutations whose error is as small, or smaller."""
        return int(np.count_nonzero(self.permutation_errors <= self.error))

    @property
    def p_value(self) -> float:
        """(1 + as good) / (1 + permutations), as in scikit-learn.

        The labels as they are count as one of the permutations, so p is never 0 and
        P(p <= a) <= a for exchangeable labels (Phipson & Smyth 2010).
        """
        return (1 + self.n_as_good) / (1 + self.n_permutations)

    def __str__(self) -> str:
        """Small table: the error, what chance gives, and p."""
        low, middle, high = np.quantile(self.permutation_errors, [0.025, 0.5, 0.975])
        rows = [
            ("error", f"{self.error:.4f}"),
            ("by chance", f"{middle:.4f} (95 % in {low:.4f} to {high:.4f})"),
            ("p-value", f"{self.p_value:.4g}"),
            ("permutations", f"{self.n_permutations} of {self.exchanged}"),
            ("as good", self.n_as_good),
            ("seconds", f"{self.seconds:.3g}"),
        ]
        head = "Leave-one-out permutation test"
        return "\n".join([head, *(f"  {name:<14}{value}" for name, value in rows)])


def permute_within(
    n_permutations: int, blocks: IntArray | None, n: int, rng: np.random.RandomState
) -> Iterator[IntArray]:
    """Yield orders of n rows in which every row stays in its block.

    The draws from ``rng`` are those of scikit-learn's ``permutation_test_score``: the
    same seed gives the same permutations.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.RandomState(0)
    >>> [order.tolist() for order in permute_within(2, np.array([0, 0, 1]), 3, rng)]
    [[1, 0, 2], [0, 1, 2]]
    """
    for _ in range(n_permutations):
        if blocks is None:
            yield rng.permutation(n)
            continue
        order = np.arange(n)
        for block in np.unique(blocks):
            inside = blocks == block
            order[inside] = rng.permutation(order[inside])
        yield order


def permute_groups(
    n_permutations: int, groups: IntArray, rng: np.random.RandomState
) -> Iterator[IntArray]:
    """Yield, for each row, a row of the group whose label it takes over.

    For groups whose rows all have one label: the labels of whole groups are permuted.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.RandomState(0)
    >>> [order.tolist() for order in permute_groups(2, np.array([0, 0, 1]), rng)]
    [[2, 2, 0], [0, 0, 2]]
    """
    _, first = np.unique(groups, return_index=True)
    for _ in range(n_permutations):
        yield first[rng.permutation(first.size)][groups]
