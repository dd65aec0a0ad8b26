# SPDX-License-Identifier: BSD-3-Clause
"""Formulas as MathML, which browsers draw themselves: no script, nothing fetched."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.math import get_node_equation_number

# What latex2mathml does not know, in words that it does.
SYNONYMS = {
    r"\tfrac": r"\frac",
    r"\dfrac": r"\frac",
    r"\bigl": r"\big",
    r"\bigr": r"\big",
    r"\Bigl": r"\Big",
    r"\Bigr": r"\Big",
    r"\lVert": r"\|",
    r"\rVert": r"\|",
    r"\arg": r"\operatorname{arg}",
}


def to_mathml(latex: str, display: str) -> str:
    """Return a formula as a math element; a command that is not known is an error."""
    for word, known in SYNONYMS.items():
        latex = re.sub(re.escape(word) + r"(?![A-Za-z])", lambda _, k=known: k, latex)
    found = convert(latex, display=display)
    unknown = re.search(r"\\[A-Za-z]+", re.sub(r"&#x[0-9A-F]+;", "", found))
    if unknown:
        raise ValueError(f"{unknown[0]} in ${latex}$ has no MathML.")
    return found


def write_inline(writer: Any, node: nodes.math) -> None:
    """Put a formula into a line."""
    writer.body.append(to_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def write_block(writer: Any, node: nodes.math_block) -> None:
    """Put a formula on a line of its own; wide ones scroll."""
    writer.body.append('<div class="math">')
    if node["number"]:
        number = get_node_equation_number(writer, node)
        writer.body.append(f'<span class="eqno">({number})</span>')
    writer.body.append(to_mathml(node.astext(), "block"))
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer under the name "mathml"."""
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
