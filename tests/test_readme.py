# SPDX-License-Identifier: BSD-3-Clause
"""The Python blocks of the README run, in order, as one session."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_python_blocks_run():
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.M | re.S)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
