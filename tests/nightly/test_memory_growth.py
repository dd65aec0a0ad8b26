# SPDX-License-Identifier: BSD-3-Clause
import subprocess
import sys

import pytest

pytestmark = pytest.mark.nightly
GROWTH = """
import gc, sys
from pathlib import Path
import numpy as np
import leaveout as lo
from leaveout.data import make_mixture

X, y = make_mixture(30, 3, random_state=0)
model = lo.SVC(gamma=0.1).fit(X, y)

def call(k):
    lo.SVC(C=1.0 + k % 7, gamma=0.1).fit(X, y)
    if k % 4 < 2:
        lo.leave_one_out(lo.SVC(C=1.0 + k, gamma=0.1), X + k % 3, y, n_jobs=1 + k % 2)
    model.predict(X + k % 3)

def resident():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

for k in range(100):  # pools, caches and the allocator fill up first
    call(k)
first = resident()
for k in range(1000):
    call(k)
print(resident() - first)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_over_a_thousand_calls():
    command = [sys.executable, "-c", GROWTH]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # A Gram matrix of 30 x 30 kept by each call would be 7 MB.
    assert int(done.stdout) < 3_000_000
