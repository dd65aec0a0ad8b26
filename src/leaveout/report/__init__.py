# SPDX-License-Identifier: BSD-3-Clause
"""Report: results as text, JSON, figures and pages. Imports data to select, and run."""

from leaveout.report._display_curve import LooCurveDisplay
from leaveout.report._display_grid import LooGridDisplay
from leaveout.report._display_margins import LooMarginDisplay
from leaveout.report._html import render_page, write_page
from leaveout.report._json import (
    describe_bounds,
    describe_dataset,
    describe_result,
    describe_select,
)
from leaveout.report._select_report import SelectReport
from leaveout.report._text import (
    format_choice,
    format_dataset,
    format_grid,
    format_model,
    format_seconds,
    format_select,
)

__all__ = [
    "LooCurveDisplay",
    "LooGridDisplay",
    "LooMarginDisplay",
    "SelectReport",
    "describe_bounds",
    "describe_dataset",
    "describe_result",
    "describe_select",
    "format_choice",
    "format_dataset",
    "format_grid",
    "format_model",
    "format_seconds",
    "format_select",
    "render_page",
    "write_page",
]
