# SPDX-License-Identifier: BSD-3-Clause
"""Run: loops over many tasks. Used by all steps; imports none of them."""

from leaveout.run._parallel import map_parallel

__all__ = ["map_parallel"]
