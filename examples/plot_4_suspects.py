"""
Find labels that may be wrong
=============================

A sample whose label the rest of the data contradict may be mislabelled. Here the
labels of ten samples are flipped, and ``suspects`` ranks the samples.
"""

# %%
# Flip ten of 200 labels.

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from sklearn.svm import SVC

import leaveout as lo

X, y = load_breast_cancer(return_X_y=True)
X, y = scale(X[:200]), y[:200].copy()
flipped = np.random.default_rng(0).choice(200, size=10, replace=False)
y[flipped] = 1 - y[flipped]

# %%
# The ranking, most suspicious first.

svc = SVC(C=1, gamma=0.02)
found = lo.suspects(svc, X, y, top=20)
print(found)
top = found.rows[:10]
print(f"{np.isin(top, flipped).sum()} of the first ten have flipped labels.")

# %%
# The sorted margins; rings mark the first ten suspects.

result = lo.leave_one_out(svc, X, y)
lo.LooMarginDisplay.from_result(result, suspects=top)
