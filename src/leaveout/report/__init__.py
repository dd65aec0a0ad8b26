# SPDX-License-Identifier: BSD-3-Clause
"""Report: results as text. Imports data to select, and run."""

from leaveout.report._text import format_choice, format_dataset, format_grid

__all__ = ["format_choice", "format_dataset", "format_grid"]
