# SPDX-License-Identifier: BSD-3-Clause
"""The Python blocks of the README run, in order, in one namespace."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_python_blocks_run():
    text = README.read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.M | re.S))
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        # As many empty lines as stand before it: a traceback shows the right line.
        lines_before = text.count("\n", 0, block.start(1))
        code = "\n" * lines_before + block[1]
        exec(compile(code, str(README), "exec"), names)
