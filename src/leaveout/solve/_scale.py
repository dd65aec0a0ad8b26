# SPDX-License-Identifier: BSD-3-Clause
"""Machines of any scale, brought to one where fixed tolerances mean what they say.

Two changes of a problem that change its optimum in a known way, both by powers of two,
so that nothing is rounded:

- ``K -> s K, C -> C / s``: f stays, beta becomes beta / s.
- A tiny box. If ``max_i K_ii * sum(C) < 1/2`` then ``|g_i| < 1/2`` for every feasible
  beta. With an intercept all breakpoints y_i - g_i of one class lie before those of the
  other, so b is a breakpoint of the heavier class, the lighter one is bounded as a
  whole, and what is left, ``min beta' K beta`` over the boxes of the heavier class with
  a given sum, is homogeneous: beta and g are proportional to C, and f is a label plus a
  multiple of C. Without an intercept all are bounded, and f is proportional to C. So
  a tiny box may be made larger and the deviations smaller again. Else all of them
  drown in the tolerance, and with them the answer which b are optimal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from leaveout._typing import FloatArray
from leaveout.kernel import Problem
from leaveout.solve._optimality import duality_gap
from leaveout.solve._solution import Solution

# Kernel values whose largest K_ii is within 2^-20 ... 2^20 stay as they are.
KERNEL_RANGE = 20
# max K_ii * sum(C) below 2^-16 is brought to about 2^-3; proportional up to 2^-1.
TINY, PROPORTIONAL = -16, -3
# Larger boxes than this, with K_ii near 1, are never reached by a coefficient.
LARGEST_BOX = 2.0**100


@dataclass(frozen=True)
class Rescaled:
    """A problem at a better scale, and the way back.

    Parameters
    ----------
    problem : Problem
        The machine with ``2^kernel K`` and ``2^(magnified - kernel) C``.
    kernel : int
        Exponent of the change of K.
    magnified : int
        Exponent by which deviations of f from a label are larger; 0 but for tiny boxes.
    """

    problem: Problem
    kernel: int = 0
    magnified: int = 0

    @property
    def changed(self) -> bool:
        """Whether anything was done."""
        return self.kernel != 0 or self.magnified != 0

    def coefficients(self, beta: FloatArray) -> FloatArray:
        """Return coefficients of the problem at hand for those of the original."""
        return np.ldexp(beta, self.magnified - self.kernel)

    def shrink(self, ends: FloatArray) -> FloatArray:
        """Return values f at an end of the interval of b, as the original has them."""
        if not self.magnified:
            return ends
        label = np.sign(ends) if self.problem.fit_intercept else 0.0
        with np.errstate(invalid="ignore"):  # an infinite end stays
            small = label + np.ldexp(ends - label, -self.magnified)
        return np.where(np.isinf(ends), ends, small)

    def restore(self, solution: Solution, original: Problem) -> Solution:
        """Return the solution of the original problem."""
        beta = np.ldexp(solution.beta, self.kernel - self.magnified)
        interval, b = solution.intercept_interval, solution.intercept
        f = solution.decision_values
        if self.magnified:
            low, high = self.shrink(np.array(interval))
            interval = (float(low), float(high))
            middle = low if np.isinf(high) else high if np.isinf(low) else None
            b = float(0.5 * (low + high) if middle is None else middle)
            f = np.ldexp(f - solution.intercept, -self.magnified) + b
        with np.errstate(over="ignore"):
            objective, _ = duality_gap(original, beta, f, b)
        return replace(
            solution,
            beta=beta,
            intercept=b,
            intercept_interval=interval,
            decision_values=f,
            objective=objective,
        )


def rescale(problem: Problem, *, magnify: bool = True) -> Rescaled:
    """Bring kernel values near 1 and tiny boxes out of the tolerances' reach.

    Parameters
    ----------
    problem : Problem
        The machine.
    magnify : bool, default=True
        Whether tiny boxes are made larger, which changes f.

    Returns
    -------
    Rescaled
        The problem itself if there is nothing to do, which is nearly always so.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.kernel import Problem
    >>> x = np.array([[-1.0], [1.0], [3.0]])
    >>> rescale(Problem(x @ x.T, np.sign(x[:, 0]), np.ones(3))).changed
    False
    >>> x *= 1e100
    >>> rescaled = rescale(Problem(x @ x.T, np.sign(x[:, 0]), np.ones(3)))
    >>> rescaled.kernel, float(rescaled.problem.K.max()) <= 1.0
    (-668, True)
    """
    top = float(problem.K.diagonal().max(initial=0.0))
    most = min(float(problem.C.max(initial=0.0)), np.finfo(float).max)
    if not top > 0.0 or not most > 0.0:
        return Rescaled(problem)
    exponent = _exponent(top)
    kernel = -exponent if abs(exponent) > KERNEL_RANGE else 0
    size = exponent + _exponent(most) + problem.n_samples.bit_length()
    magnified = PROPORTIONAL - size if magnify and size < TINY else 0
    if not kernel and not magnified and most <= LARGEST_BOX:
        return Rescaled(problem)
    K = np.ldexp(problem.K, kernel) if kernel else problem.K
    with np.errstate(over="ignore"):
        C = np.minimum(np.ldexp(problem.C, magnified - kernel), LARGEST_BOX)
    return Rescaled(Problem(K, problem.y, C, problem.fit_intercept), kernel, magnified)


def _exponent(value: float) -> int:
    """Return the smallest e with value < 2^e."""
    return int(np.frexp(value)[1])
