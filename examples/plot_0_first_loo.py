"""
A first leave-one-out
=====================

How well does a classifier predict a sample that it was not trained on? One call
computes this for every sample, with the same numbers as n refits.
"""

# %%
# The data: 569 tumours with 30 measurements each, malignant (0) or benign (1).

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from sklearn.svm import SVC

import leaveout as lo

X, y = load_breast_cancer(return_X_y=True)
X = scale(X)

# %%
# One call. The table shows the error, how certain it is, and the time it took.

result = lo.leave_one_out(SVC(C=10, gamma=0.01), X, y)
print(result)

# %%
# How the values were found. Most samples are not support vectors (``zero_alpha``):
# without them the model is the same, and so is its prediction. For the others leaveout
# followed the solution while the weight of the sample went to zero, a short walk. If no
# other sample changed its role on the way, the walk has only a ``first_segment``.

for how, count in zip(*np.unique(result.settled_by, return_counts=True), strict=True):
    print(f"{how:15}{count:4d}")

# %%
# The left-out margins, sorted. A negative margin is an error. Rings mark the three
# smallest.

worst = np.argsort(result.margins)[:3]
lo.LooMarginDisplay.from_result(result, suspects=worst)

# %%
# The 60 smallest margins.

lo.LooMarginDisplay.from_result(result, suspects=worst, n_smallest=60)
