# SPDX-License-Identifier: BSD-3-Clause
"""Report: results as text and figures. Imports data to select, and run."""

from leaveout.report._display_curve import LooCurveDisplay
from leaveout.report._display_grid import LooGridDisplay
from leaveout.report._display_margins import LooMarginDisplay
from leaveout.report._text import format_choice, format_dataset, format_grid

__all__ = [
    "LooCurveDisplay",
    "LooGridDisplay",
    "LooMarginDisplay",
    "format_choice",
    "format_dataset",
    "format_grid",
]
