"""
Where the errors are
====================

Decision boundaries of two models in the plane, with the samples that each model
misclassifies when they are left out.
"""

# %%
# One model fits its training set almost perfectly, the other is smoother.

import matplotlib.pyplot as plt
from matplotlib.colors import ListedColormap
from sklearn.inspection import DecisionBoundaryDisplay

import leaveout as lo
from leaveout.data import make_banana

X, y = make_banana(120, random_state=1)
models = {
    "C = 1000, gamma = 2": lo.SVC(C=1000, gamma=2),
    "C = 1, gamma = 0.1": lo.SVC(C=1, gamma=0.1),
}

# %%
# Crosses mark training errors, rings leave-one-out errors. Where the boundary bends
# around a single sample, the ring shows that the model without it does not.

BLUE, ORANGE = "#0072B2", "#E69F00"
figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained", sharey=True)
for ax, (name, svc) in zip(axes, models.items(), strict=True):
    svc.fit(X, y)
    wrong_in_training = svc.predict(X) != y
    result = lo.leave_one_out(svc, X, y)
    DecisionBoundaryDisplay.from_estimator(
        svc,
        X,
        response_method="predict",
        cmap=ListedColormap([ORANGE, BLUE]),
        alpha=0.15,
        ax=ax,
    )
    for label, color, marker in [(0, ORANGE, "^"), (1, BLUE, "o")]:
        ax.scatter(
            *X[y == label].T, c=color, marker=marker, s=18, label=f"class {label}"
        )
    ax.scatter(
        *X[wrong_in_training].T, c="black", marker="x", s=30, label="training error"
    )
    ax.scatter(
        *X[result.wrong].T,
        facecolors="none",
        edgecolors="black",
        s=90,
        label="leave-one-out error",
    )
    ax.set(
        title=f"{name}\ntraining error {100 * wrong_in_training.mean():.1f} %, "
        f"leave-one-out error {100 * result.error:.1f} %",
        xticks=[],
        yticks=[],
    )
figure.legend(
    *axes[0].get_legend_handles_labels(),
    loc="outside lower center",
    ncols=4,
    frameon=False,
)

# %%
# The training error prefers the left model, the leave-one-out error the right one.
