"""
Tuning makes the error optimistic
=================================

The smallest of many errors is optimistic, even if each of them is exact. ``honest_loo``
estimates the error with tuning included: nested leave-one-out.
"""

# %%
# Pure noise: the true error is one half for every choice of parameters.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

import leaveout as lo

# On noise the smallest C is the best of some folds, which gives a warning.
warnings.simplefilter("ignore", lo.AntiLearningWarning)
grid = {"C": [0.1, 1, 10, 100], "gamma": [0.01, 0.1, 1]}
naive, honest = [], []
for seed in range(8):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(24, 5)), np.repeat([0, 1], 12)
    search = lo.LooSearchCV(SVC(), grid)
    result = lo.honest_loo(search, X, y, verbose=0)
    naive.append(result.naive_error)
    honest.append(result.error)
print(f"mean of the smallest errors {np.mean(naive):.2f}, honest {np.mean(honest):.2f}")

# %%
# Each line is one data set: the error of the best grid point, and the nested error. On
# noise with equal classes the nested error is somewhat above one half, because a
# left-out sample makes its own class the smaller one.

figure, ax = plt.subplots(figsize=(5, 4), layout="constrained")
ax.axhline(0.5, color="#595959", linewidth=1)
ax.plot([0, 1], [naive, honest], color="0.75", linewidth=1, zorder=1)
ax.scatter(np.zeros(8), naive, color="#D55E00", marker="s", zorder=2)
ax.scatter(np.ones(8), honest, color="#0072B2", marker="o", zorder=2)
ax.text(1.3, 0.505, "chance", ha="right", va="bottom", color="#595959")
ax.set(
    xlim=(-0.3, 1.3),
    ylim=(0, 1),
    xticks=[0, 1],
    xticklabels=["error of the best grid point", "honest error"],
    ylabel="leave-one-out error on noise",
)
ax.spines[["top", "right"]].set_visible(False)
