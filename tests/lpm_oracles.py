# SPDX-License-Identifier: BSD-3-Clause
"""Old name of oracles.programs; to be removed."""

from oracles.programs import *  # noqa: F403
