# SPDX-License-Identifier: BSD-3-Clause
"""All leave-one-out values at one C, fit included, ÷ one LIBSVM fit (tol 1e-3).

Mean over the 50 lambda of the simulation of Wang & Yang (2022), C = 1 / (2 n lambda);
the Gram matrix is given to both, and the checks of the public call are not included.
Run: ``python benchmarks/speed/one_c.py [--quick]``
"""

from grid import run
from measure import easy_grid

if __name__ == "__main__":
    run("speed_one_c", __doc__, easy_grid, must="≤ 0.9", goal="≤ 0.6")
