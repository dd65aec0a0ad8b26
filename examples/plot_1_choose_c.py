"""
Choose C: a list, or every C
============================

``loo_path`` gives the leave-one-out error for a list of C, ``loo_curve`` for every C of
an interval, as a step function in which no C is missed.
"""

# %%
# Two banana-shaped classes, 150 samples.

import numpy as np

import leaveout as lo
from leaveout.data import make_banana

X, y = make_banana(150, random_state=3)
svc = lo.SVC(gamma=0.05)

# %%
# Ten values of C. The band is one standard error: most of these C are equally good.

path = lo.loo_path(svc, X, y, Cs=np.logspace(-1.5, 3, 10))
print(path)
lo.LooCurveDisplay.from_path(path)

# %%
# Every C. The list has met the steps where its points are, and nothing in between.

curve = lo.loo_curve(svc, X, y, C_min=10**-1.5, C_max=1000)
print(curve)
lo.LooCurveDisplay.from_curve(curve, path=path)

# %%
# The hatched strip marks C at which the label of some sample depends on which of
# several optimal intercepts is taken.
#
# What to take from it? The least error has its own interval of C:

low, high = curve.best_interval
print(f"{100 * curve.best_error:.1f} % for every C from {low:.3g} to {high:.3g}")

# %%
# It was chosen for being small, so it is optimistic as an estimate.
