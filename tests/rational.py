# SPDX-License-Identifier: BSD-3-Clause
"""Old name of oracles.rational; to be removed."""

from oracles.rational import *  # noqa: F403
