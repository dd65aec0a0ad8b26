# SPDX-License-Identifier: BSD-3-Clause
"""One line on stderr that says how far a long loop is."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from time import monotonic
from typing import TypeVar

T = TypeVar("T")


def show_progress(
    items: Iterable[T], total: int, label: str, *, verbose: bool = True
) -> Iterator[T]:
    """Yield the items, writing done, total and time left to stderr as they are used.

    Parameters
    ----------
    items : iterable
        What to go through.
    total : int
        How many there are.
    label : str
        What is being done.
    verbose : bool, default=True
        Whether to write anything.

    Examples
    --------
    >>> from leaveout.run import show_progress
    >>> list(show_progress("ab", 2, "letters", verbose=False))
    ['a', 'b']
    """
    started = monotonic()
    try:
        for done, item in enumerate(items):
            if verbose and done:
                left = (monotonic() - started) / done * (total - done)
                sys.stderr.write(f"\r{label}: {done} of {total}, {left:.0f} s left ")
                sys.stderr.flush()
            yield item
    except BaseException:
        if verbose:  # whatever is said next begins a line
            sys.stderr.write("\n")
        raise
    if verbose:
        seconds = monotonic() - started
        sys.stderr.write(f"\r{label}: {total} of {total}, {seconds:.1f} s      \n")
        sys.stderr.flush()
