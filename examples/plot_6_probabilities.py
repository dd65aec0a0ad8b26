"""
Probabilities from left-out values
==================================

``SVCCV`` tunes an SVM and calibrates its probabilities. The sigmoid is fitted to
left-out decision values, not to those of the training samples.
"""

# %%
# One call tunes, fits and calibrates.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.frozen import FrozenEstimator

import leaveout as lo
from leaveout.data import make_mixture, make_mixture_centers

centers = make_mixture_centers(10, random_state=0)
X, y = make_mixture(200, centers=centers, random_state=1)
clf = lo.SVCCV().fit(X, y)
print(f"C={clf.C_:g}, gamma={clf.gamma_:.3g}")
print(clf.loo_result_)

# %%
# Calibration on 20,000 new samples: of those with probability 0.8, 80 % should be of
# class 1. A sigmoid fitted to the decision values of the training samples is
# overconfident.

X_new, y_new = make_mixture(20_000, centers=centers, random_state=2)
naive = CalibratedClassifierCV(FrozenEstimator(clf.best_estimator_)).fit(X, y)
curves = {
    "left-out values": (clf.predict_proba(X_new)[:, 1], "#0072B2", "o"),
    "training values": (naive.predict_proba(X_new)[:, 1], "#D55E00", "s"),
}

figure, ax = plt.subplots(figsize=(5, 4.5), layout="constrained")
ax.plot([0, 1], [0, 1], color="#595959", linewidth=1)
for label, (p, color, marker) in curves.items():
    share, mean = calibration_curve(y_new, p, n_bins=10)
    brier = np.mean((p - y_new) ** 2)
    ax.plot(
        mean, share, color=color, marker=marker, label=f"{label}, Brier {brier:.3f}"
    )
ax.set(
    xlim=(0, 1),
    ylim=(0, 1),
    xlabel="predicted probability of class 1",
    ylabel="share of class 1 among new samples",
)
ax.legend(frameon=False, loc="upper left")
ax.spines[["top", "right"]].set_visible(False)

# %%
# Without a signal, left-out values rank the classes the wrong way round. The
# probabilities are then the class frequencies, and a warning says so.

rng = np.random.default_rng(0)
noise, labels = rng.standard_normal((60, 5)), np.arange(60) % 3 == 0
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    nothing = lo.SVCCV(Cs=[10, 100], gammas=[0.1, 1.0]).fit(noise, labels)
print(*(warning.message for warning in caught), sep="\n")
print(nothing.predict_proba(noise[:2]).round(3))
