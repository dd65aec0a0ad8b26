# SPDX-License-Identifier: BSD-3-Clause
"""Old name of nightly.stress; to be removed."""

from nightly.stress import *  # noqa: F403
