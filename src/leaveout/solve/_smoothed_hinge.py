# SPDX-License-Identifier: BSD-3-Clause
"""The hinge made smooth: a parabola of half-width tau in the place of the corner.

Wang & Yang (2022), section 2.3, with u = y f(x)::

    L_tau(u) = 0                        u >= 1 + tau
               (u - 1 - tau)^2 / 4 tau  in between
               1 - u                    u <= 1 - tau

``L <= L_tau <= L + tau / 4`` and ``|L_tau''| <= 1 / (2 tau)``. At the smoothed optimum
``alpha_i = -C_i L_tau'(u_i)``, so tau says which samples may be on the margin.
"""

from __future__ import annotations

import numpy as np

from leaveout._typing import FloatArray


def smoothed_hinge(u: FloatArray, tau: float) -> FloatArray:
    """Return L_tau(u).

    Examples
    --------
    >>> import numpy as np
    >>> smoothed_hinge(np.array([-1.0, 0.5, 1.0, 1.5, 2.0]), 0.5)
    array([2.   , 0.5  , 0.125, 0.   , 0.   ])
    """
    inside = np.clip(1.0 + tau - u, 0.0, 2.0 * tau)
    beyond = np.maximum(1.0 - tau - u, 0.0)
    return inside**2 / (4.0 * tau) + beyond


def box_share(u: FloatArray, tau: float, out: FloatArray | None = None) -> FloatArray:
    """Return -L_tau'(u): the share of its box that alpha takes, between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> box_share(np.array([-1.0, 0.5, 1.0, 1.5, 2.0]), 0.5)
    array([1. , 1. , 0.5, 0. , 0. ])
    """
    share = np.subtract(1.0 + tau, u, out=out)
    share /= 2.0 * tau
    return np.clip(share, 0.0, 1.0, out=share)
