# SPDX-License-Identifier: BSD-3-Clause
"""Formulas drawn when the pages are built: no script, no font, nothing fetched."""

from __future__ import annotations

import re
from html import escape
from typing import Any

import ziamath
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.math import get_node_equation_number

# What the parser does not know, in words that it does.
SYNONYMS = {
    r"\bigl": r"\big",
    r"\bigr": r"\big",
    r"\Bigl": r"\Big",
    r"\Bigr": r"\Big",
    r"\lVert": r"\|",
    r"\rVert": r"\|",
    r"\arg": r"\operatorname{arg}",
}
# Pixels; letters of text are 16.
SIZE = 18


def draw(latex: str, *, inline: bool) -> str:
    """Return a formula as SVG on the line of the text; unknown commands are errors."""
    for word, known in SYNONYMS.items():
        latex = re.sub(re.escape(word) + r"(?![A-Za-z])", lambda _, k=known: k, latex)
    # \mathbf 1 without braces would lose its shape.
    latex = re.sub(r"\\(mathbf|mathbb|mathcal)\s+(\w)", r"\\\1{\2}", latex)
    formula = ziamath.Latex(latex, size=SIZE, inline=inline, color="currentColor")
    unknown = re.search(r"\\[A-Za-z]+", formula.mathmlstr())
    if unknown:
        raise ValueError(f"{unknown[0]} in ${latex}$ cannot be drawn.")
    style = f"vertical-align: {formula.getyofst():.2f}px; max-width: none"
    label = escape(" ".join(latex.split()), quote=True)
    return formula.svg().replace(
        "<svg ", f'<svg role="img" aria-label="{label}" style="{style}" ', 1
    )


def write_inline(writer: Any, node: nodes.math) -> None:
    """Put a formula into a line."""
    writer.body.append(draw(node.astext(), inline=True))
    raise nodes.SkipNode


def write_block(writer: Any, node: nodes.math_block) -> None:
    """Put a formula on a line of its own; wide ones scroll."""
    writer.body.append('<div style="overflow-x: auto; text-align: center">')
    writer.body.append(draw(node.astext(), inline=False))
    if node["number"]:
        writer.body.append(f" ({get_node_equation_number(writer, node)})")
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer under the name "drawn"."""
    ziamath.config.svg2 = False  # no ids that several formulas of a page would share
    app.add_html_math_renderer("drawn", (write_inline, None), (write_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
