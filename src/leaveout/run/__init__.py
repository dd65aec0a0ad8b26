# SPDX-License-Identifier: BSD-3-Clause
"""Run: loops over many tasks. Used by all steps; imports none of them."""

from leaveout.run._atomic import write_atomically
from leaveout.run._checkpoint import Checkpoint, interruption_told
from leaveout.run._cluster import Cluster
from leaveout.run._fingerprint import fingerprint
from leaveout.run._memory import available_memory
from leaveout.run._parallel import count_workers, map_parallel, runs_here
from leaveout.run._passes import Summable, map_in_order, sum_in_order
from leaveout.run._progress import show_progress
from leaveout.run._snapshot import Snapshot
from leaveout.run._threads import (
    blas_threads,
    count_threads,
    map_chunks,
    map_parts,
    shrinking_parts,
)

__all__ = [
    "Checkpoint",
    "Cluster",
    "Snapshot",
    "Summable",
    "available_memory",
    "blas_threads",
    "count_threads",
    "count_workers",
    "fingerprint",
    "interruption_told",
    "map_chunks",
    "map_in_order",
    "map_parallel",
    "map_parts",
    "runs_here",
    "show_progress",
    "shrinking_parts",
    "sum_in_order",
    "write_atomically",
]
