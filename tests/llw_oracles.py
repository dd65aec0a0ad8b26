# SPDX-License-Identifier: BSD-3-Clause
"""Old name of oracles.llw; to be removed."""

from oracles.llw import *  # noqa: F403
