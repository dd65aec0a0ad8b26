"""
Choose C and gamma on a grid
============================

``LooSearchCV`` is ``GridSearchCV(cv=LeaveOneOut())`` the fast way. The heat map shows
whether the best cell lies in a valley, and whether the grid is wide enough.
"""

# %%
# Two banana-shaped classes, and a grid of 7 × 6 cells: 42 × 150 fits for a loop.

import numpy as np
from sklearn.svm import SVC

import leaveout as lo
from leaveout.data import make_banana

X, y = make_banana(150, random_state=0)
grid = {"C": np.logspace(-3, 3, 7), "gamma": np.logspace(-3, 2, 6)}
search = lo.LooSearchCV(SVC(), grid).fit(X, y)
print(search.best_params_, f"error {1 - search.best_score_:.3f}")

# %%
# Light is good. Hatched cells are anti-learning: C is so small that the machine answers
# with the larger class, and leaving a sample out makes its own class the smaller one.
# They say nothing about the features, and the search does not choose them.

lo.LooGridDisplay.from_estimator(search)

# %%
# Near the best cell many are as good, within one standard error.

errors = 1 - search.cv_results_["mean_test_score"]
best = errors[search.best_index_]
width = np.sqrt(best * (1 - best) / len(y))
print(
    f"{np.sum(errors <= best + width)} of {errors.size} cells are within "
    f"{best:.3f} + {width:.3f}"
)
