"""
A first leave-one-out
=====================

What does the classifier trained on all other samples say of each sample? One call
answers that for all of them, with the numbers that n refits would give.
"""

# %%
# The data: 569 tumours, 30 measurements of each, malignant (0) or benign (1).

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from sklearn.svm import SVC

import leaveout as lo

X, y = load_breast_cancer(return_X_y=True)
X = scale(X)

# %%
# One call. The table says what the error is, how far to trust it, and what it cost.

result = lo.leave_one_out(SVC(C=10, gamma=0.01), X, y)
print(result)

# %%
# How the samples were settled. Most are no support vectors: without them the machine
# is the same, and its answer is the answer. The others needed a short walk.

for how, count in zip(*np.unique(result.settled_by, return_counts=True), strict=True):
    print(f"{how:15}{count:4d}")

# %%
# The left-out margins, sorted. Below zero is an error. The three worst are ringed.

worst = np.argsort(result.margins)[:3]
lo.LooMarginDisplay.from_result(result, suspects=worst)

# %%
# A closer look at the left end.

lo.LooMarginDisplay.from_result(result, suspects=worst, n_smallest=60)
