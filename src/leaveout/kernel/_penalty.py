# SPDX-License-Identifier: BSD-3-Clause
"""The two ways to write how much a machine is regularised: C and lambda.

We have ``1/2 ||w||^2 + C sum_i hinge_i``, Wang & Yang (2022) have ``(1/n) sum_i hinge_i
+ lambda ||f||^2``: the same minimiser for C = 1 / (2 n lambda). Their left-out problems
keep the factor 1/n, so leaving out keeps C.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leaveout._typing import FloatArray


def penalty_from_lambda(lambdas: Any, n_samples: int) -> FloatArray:
    """Return C = 1 / (2 n lambda).

    Examples
    --------
    >>> penalty_from_lambda([0.01, 0.001], 50)
    array([ 1., 10.])
    """
    return 1.0 / (2.0 * n_samples * np.asarray(lambdas, dtype=np.float64))


def lambda_from_penalty(penalties: Any, n_samples: int) -> FloatArray:
    """Return lambda = 1 / (2 n C).

    Examples
    --------
    >>> lambda_from_penalty([1.0, 10.0], 50)
    array([0.01 , 0.001])
    """
    return 1.0 / (2.0 * n_samples * np.asarray(penalties, dtype=np.float64))
