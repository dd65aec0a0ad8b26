# SPDX-License-Identifier: BSD-3-Clause
"""Run: loops over many tasks. Used by all steps; imports none of them."""

from leaveout.run._atomic import write_atomically
from leaveout.run._parallel import map_parallel
from leaveout.run._progress import show_progress
from leaveout.run._threads import blas_threads, count_threads, map_chunks

__all__ = [
    "blas_threads",
    "count_threads",
    "map_chunks",
    "map_parallel",
    "show_progress",
    "write_atomically",
]
