# SPDX-License-Identifier: BSD-3-Clause
"""Standard error of any score of pooled predictions, by leaving rows out of the score.

For a mean theta of x_1 … x_n, theta - theta_(-b) = (sum_b x - m theta) / (n - m) for a
block b of m rows, so (n - m) (theta - theta_(-b)) is the sum of x - theta over b. For
other scores this is the jackknife's linear term. The squares add up to n^2 times the
variance if rows are independent. For the accuracy p it gives sqrt(p (1 - p) / n).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaveout._typing import IntArray

# Blocks if every row is different: 50 fix a standard error to a tenth.
N_BLOCKS = 50


@dataclass(frozen=True)
class Block:
    """Rows that are left out of the score together, and how many blocks are like it."""

    rows: IntArray
    n_alike: int = 1


def alike_blocks(*columns: NDArray[Any]) -> list[Block]:
    """One row for all rows that agree in every column: their effect is the same.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.select import alike_blocks
    >>> blocks = alike_blocks(np.array([0, 1, 0]), np.array(["a", "a", "a"]))
    >>> [(block.rows.tolist(), block.n_alike) for block in blocks]
    [([0], 2), ([1], 1)]
    """
    codes = [np.unique(column, return_inverse=True)[1] for column in columns]
    _, first, counts = np.unique(
        np.column_stack(codes), axis=0, return_index=True, return_counts=True
    )
    return [
        Block(np.array([row]), int(count))
        for row, count in zip(first, counts, strict=True)
    ]


def random_blocks(n: int, groups: IntArray | None = None) -> list[Block]:
    """Return all rows in at most 50 blocks, always the same; groups stay together.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.select import random_blocks
    >>> blocks = random_blocks(4, np.array([0, 1, 0, 1]))
    >>> sorted(block.rows.tolist() for block in blocks)
    [[0, 2], [1, 3]]
    """
    groups = np.arange(n) if groups is None else groups
    n_groups = int(groups.max()) + 1
    order, n_blocks = (
        np.random.default_rng(0).permutation(n_groups),
        min(n_groups, N_BLOCKS),
    )
    block = np.empty(n_groups, dtype=np.intp)
    for k, some in enumerate(np.array_split(order, n_blocks)):
        block[some] = k
    return [Block(np.flatnonzero(block[groups] == k)) for k in range(n_blocks)]


def standard_errors(
    score: Callable[[IntArray], Mapping[str, float]],
    scores: Mapping[str, float],
    blocks: list[Block],
    n: int,
) -> dict[str, float]:
    """Return the standard error of each score.

    Parameters
    ----------
    score : callable
        Scores on some of the rows.
    scores : mapping
        Scores on all rows.
    blocks : list of Block
        Together, all rows.
    n : int
        Number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.select import random_blocks, standard_errors
    >>> x = np.array([1.0, 0.0, 1.0, 1.0])
    >>> mean = lambda rows: {"mean": x[rows].mean()}
    >>> found = standard_errors(mean, {"mean": 0.75}, random_blocks(4), 4)["mean"]
    >>> bool(np.isclose(found, np.sqrt(0.75 * 0.25 / 4)))
    True
    """
    squares = dict.fromkeys(scores, 0.0)
    for block in blocks:
        rest = np.delete(np.arange(n), block.rows)
        without = score(rest) if rest.size else dict.fromkeys(scores, np.nan)
        for name in scores:
            effect = rest.size * (scores[name] - without[name])
            squares[name] += block.n_alike * effect**2
    return {name: float(np.sqrt(square)) / n for name, square in squares.items()}
