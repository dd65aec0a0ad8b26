# SPDX-License-Identifier: BSD-3-Clause
"""Array types used throughout the package."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
StateArray = NDArray[np.int8]
