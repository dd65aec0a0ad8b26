# SPDX-License-Identifier: BSD-3-Clause
"""Threads over samples, for kernels that release the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import ThreadpoolController

_controller: ThreadpoolController | None = None


@contextmanager
def blas_threads(n_threads: int) -> Iterator[None]:
    """Limit BLAS to a number of threads inside the block."""
    global _controller
    if _controller is None:
        _controller = (
            ThreadpoolController()
        )  # scanning the libraries takes milliseconds
    with _controller.limit(limits=n_threads, user_api="blas"):
        yield


def count_threads(n_jobs: int | None) -> int:
    """Turn scikit-learn's n_jobs into a number of threads."""
    return int(effective_n_jobs(1 if n_jobs is None else n_jobs))


def map_chunks(function: Callable[[slice], None], n: int, n_threads: int) -> None:
    """Call ``function(slice)`` on interleaved parts of range(n), over threads.

    Interleaved, because neighbours in the data are often alike and so is their cost;
    four parts a thread even out the rest.

    Examples
    --------
    >>> import numpy as np
    >>> out = np.zeros(5)
    >>> def fill(part):
    ...     out[part] = 1.0
    >>> map_chunks(fill, 5, n_threads=2)
    >>> out
    array([1., 1., 1., 1., 1.])
    """
    if n_threads <= 1 or n <= n_threads:
        function(slice(0, n))
        return
    n_parts = min(n, 4 * n_threads)
    Parallel(n_jobs=n_threads, backend="threading")(
        delayed(function)(slice(start, n, n_parts)) for start in range(n_parts)
    )
