# SPDX-License-Identifier: BSD-3-Clause
"""Old name of oracles.problems; to be removed."""

from oracles.problems import *  # noqa: F403
