# SPDX-License-Identifier: BSD-3-Clause
"""All leave-one-out values ÷ one LIBSVM fit, on a grid where the fit is hard.

C = 0.1 … 1000 on the simulation of Wang & Yang (2022): many free support vectors.
Run: ``python benchmarks/speed/hard_grid.py [--quick]``
"""

from grid import run
from measure import HARD_C

if __name__ == "__main__":
    run("speed_hard_grid", __doc__, lambda n: HARD_C, must="≤ 4", goal="≤ 2")
