# SPDX-License-Identifier: BSD-3-Clause
"""Old name of oracles.refits; to be removed."""

from oracles.refits import *  # noqa: F403
