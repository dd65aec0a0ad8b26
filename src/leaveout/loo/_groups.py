# SPDX-License-Identifier: BSD-3-Clause
"""Groups of samples that are left out together, and what that gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from leaveout._typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Groups:
    """Some groups of samples; a sample may be in several.

    Parameters
    ----------
    members : ndarray of shape (n_members,)
        Samples, group by group.
    begin : ndarray of shape (n_groups + 1,)
        Where each group begins in ``members``.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.loo._groups import Groups
    >>> groups = Groups.of([np.array([0, 2]), np.array([1])])
    >>> len(groups), groups[0]
    (2, array([0, 2]))
    """

    members: IntArray
    begin: IntArray

    @classmethod
    def of(cls, groups: Iterable[IntArray]) -> Groups:
        """Put arrays of samples together."""
        parts = [np.asarray(group, dtype=np.intp) for group in groups]
        sizes = [part.size for part in parts]
        members = np.concatenate([*parts, np.empty(0, dtype=np.intp)])
        return cls(members, np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp))

    @classmethod
    def singles(cls, rows: IntArray) -> Groups:
        """Make a group of each sample."""
        rows = np.asarray(rows, dtype=np.intp)
        return cls(rows, np.arange(rows.size + 1, dtype=np.intp))

    def __len__(self) -> int:
        """Return the number of groups."""
        return self.begin.size - 1

    def __iter__(self) -> Iterator[IntArray]:
        """Go through the groups."""
        return (self[k] for k in range(len(self)))

    def __getitem__(self, k: int) -> IntArray:
        """Return the samples of a group."""
        return self.members[self.begin[k] : self.begin[k + 1]]

    def entries(self, which: IntArray) -> IntArray:
        """Positions in ``members`` of some groups, group by group."""
        starts, sizes = self.begin[which], np.diff(self.begin)[which]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.repeat(starts, sizes) + within

    def take(self, which: IntArray) -> Groups:
        """Return some of the groups."""
        if which.size == len(self) and np.array_equal(which, np.arange(which.size)):
            return self
        sizes = np.diff(self.begin)[which]
        begin = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        return Groups(self.members[self.entries(which)], begin)


class Ends(NamedTuple):
    """What leaving out each of some groups gives.

    ``values`` has f for each sample of each group; the others have one entry a group:
    how far b may go ``down`` (<= 0) and ``up``, whether the optimality conditions were
    verified, and how the group was settled. ``everywhere`` has f for all samples, one
    row a group, if it was asked for; else it has no columns.
    """

    values: FloatArray
    down: FloatArray
    up: FloatArray
    certified: BoolArray
    settled_by: np.ndarray
    everywhere: FloatArray
