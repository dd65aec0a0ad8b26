# SPDX-License-Identifier: BSD-3-Clause
"""Use an installed leaveout once: the import, leave_one_out, and the command line.

Run with the Python of an environment that has ``leaveout[cli]`` and nothing else.
"""

import platform
import subprocess
import sys
from time import perf_counter

STARTED = perf_counter()

import leaveout as lo  # noqa: E402

X, y = [[0], [1], [3], [4]], [0, 0, 1, 1]
result = lo.leave_one_out(lo.SVC(kernel="linear"), X, y)
assert result.certified.all()
assert result.error == 0.0
print(f"leave_one_out: {perf_counter() - STARTED:.1f} s from the import on")

message = ""
try:
    lo.LPMClassifier().fit(X, y)
except ImportError as error:
    message = str(error)
assert message.endswith("pip install 'leaveout[lp]'."), message

command = [sys.executable, "-m", "leaveout.cli", "select"]
started = perf_counter()
done = subprocess.run(command, capture_output=True, text=True, check=True)
assert "Chosen: SVC" in done.stdout
print(f"leaveout select: {perf_counter() - started:.1f} s")
print(f"leaveout {lo.__version__} works on Python {platform.python_version()}")
