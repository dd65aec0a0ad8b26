# SPDX-License-Identifier: BSD-3-Clause
"""Old name of oracles.agreement; to be removed."""

from oracles.agreement import *  # noqa: F403
