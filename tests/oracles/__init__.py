# SPDX-License-Identifier: BSD-3-Clause
"""Independent truth for the tests; nothing here uses the package's own solvers."""

from oracles.binary import *  # noqa: F403  (old name of oracles.binary; to be removed)
