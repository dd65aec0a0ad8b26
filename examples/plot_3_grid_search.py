"""
Choose C and gamma on a grid
============================

``LooSearchCV`` gives the result of ``GridSearchCV(cv=LeaveOneOut())``, faster. The heat
map shows whether the grid is wide enough and how many grid points are equally good.
"""

# %%
# Two banana-shaped classes and 7 × 6 grid points: 42 × 150 fits with GridSearchCV.

import numpy as np
from sklearn.svm import SVC

import leaveout as lo
from leaveout.data import make_banana

X, y = make_banana(150, random_state=0)
grid = {"C": np.logspace(-3, 3, 7), "gamma": np.logspace(-3, 2, 6)}
search = lo.LooSearchCV(SVC(), grid).fit(X, y)
C, gamma = search.best_params_["C"], search.best_params_["gamma"]
print(f"C = {C:g}, gamma = {gamma:g}, error {100 * (1 - search.best_score_):.1f} %")

# %%
# Light colours are small errors. Crosses mark anti-learning points: C is too small,
# so class proportions alone decide, and leaving a sample out makes its own class the
# smaller one. The search prefers other points at an equal score, and warns if such a
# point is the best.

lo.LooGridDisplay.from_estimator(search)

# %%
# How many grid points are within one standard error of the best?

errors = 1 - search.cv_results_["mean_test_score"]
best = errors[search.best_index_]
width = np.sqrt(best * (1 - best) / len(y))
print(
    f"{np.sum(errors <= best + width)} of {errors.size} grid points have an error of "
    f"at most {100 * best:.1f} % + {100 * width:.1f} %"
)
