# SPDX-License-Identifier: BSD-3-Clause
"""Estimators: the scikit-learn face. Validate, call, store; no mathematics here.

Imports everything but report and cli; nothing but those imports it.
"""

from leaveout.estimators._adapt import adapt_svc
from leaveout.estimators._feature_svc import FeatureSVC
from leaveout.estimators._honest import honest_loo
from leaveout.estimators._leave_one_out import leave_one_out
from leaveout.estimators._llw import LLWClassifier
from leaveout.estimators._llw_bounds import llw_bounds
from leaveout.estimators._loo_bounds import loo_bounds
from leaveout.estimators._loo_curve import loo_curve
from leaveout.estimators._loo_path import loo_path
from leaveout.estimators._loo_predictor import LooPredictor
from leaveout.estimators._loom import LOOMClassifier
from leaveout.estimators._lpm import LPMClassifier
from leaveout.estimators._model_card import ModelCard, installed_versions, make_card
from leaveout.estimators._model_file import load_model, read_model_card, save_model
from leaveout.estimators._model_trust import check_schema
from leaveout.estimators._model_whole import check_whole
from leaveout.estimators._pair_out import leave_pair_out_auc
from leaveout.estimators._permutation import loo_permutation_test
from leaveout.estimators._search import LooSearchCV
from leaveout.estimators._suspects import suspects
from leaveout.estimators._svc import SVC
from leaveout.estimators._svccv import SVCCV
from leaveout.estimators._task import Task, make_task
from leaveout.estimators._unwrap import find_svc

__all__ = [
    "SVC",
    "SVCCV",
    "FeatureSVC",
    "LLWClassifier",
    "LOOMClassifier",
    "LPMClassifier",
    "LooPredictor",
    "LooSearchCV",
    "ModelCard",
    "Task",
    "adapt_svc",
    "check_schema",
    "check_whole",
    "find_svc",
    "honest_loo",
    "installed_versions",
    "leave_one_out",
    "leave_pair_out_auc",
    "llw_bounds",
    "load_model",
    "loo_bounds",
    "loo_curve",
    "loo_path",
    "loo_permutation_test",
    "make_card",
    "make_task",
    "read_model_card",
    "save_model",
    "suspects",
]
