"""
Choose C: a list, or every C
============================

``loo_path`` computes the leave-one-out error for a list of C, ``loo_curve`` for every C
of an interval, as a step function.
"""

# %%
# Two banana-shaped classes, 150 samples.

import numpy as np

import leaveout as lo
from leaveout.data import make_banana

X, y = make_banana(150, random_state=3)
svc = lo.SVC(gamma=0.05)

# %%
# Ten values of C, four of them with the smallest error. The band is the 95 % interval.

path = lo.loo_path(svc, X, y, Cs=np.logspace(-1.5, 3, 10))
print(path)
lo.LooCurveDisplay.from_path(path)

# %%
# Every C. The list shows the error at its own points only, not the steps in between.

curve = lo.loo_curve(svc, X, y, C_min=10**-1.5, C_max=1000)
print(curve)
lo.LooCurveDisplay.from_curve(curve, path=path)

# %%
# The hatched strip marks values of C at which the label of some sample is ambiguous: it
# depends on which of several optimal intercepts is used.
#
# The smallest error is reached on an interval of C. If there are several, as here,
# ``best_interval`` is the one with the smallest C.

low, high = curve.best_interval
print(f"{100 * curve.best_error:.1f} % for every C from {low:.3g} to {high:.3g}")

# %%
# This error is optimistic as an estimate, because it is the smallest of many.
