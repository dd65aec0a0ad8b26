# SPDX-License-Identifier: BSD-3-Clause
"""Exact leave-one-out cross-validation of support vector machines.

Public names are loaded from their modules on first use (PEP 562). CONTRIBUTING.md
lists what each folder does.
"""

from importlib import import_module as _import_module

_NAMES_OF_MODULE = {
    "_model_file": "ModelCard load_model read_model_card save_model",
    "adapt._fitted": "KernelExpansion",
    "assess._bounds": "LooBounds llw_bounds loo_bounds",
    "assess._leave_one_out": "leave_one_out loo_path",
    "assess._loo_curve": "LooCurve loo_curve",
    "assess._loo_predictor": "LooPredictor",
    "assess._pair_auc": "PairAUC leave_pair_out_auc",
    "assess._permutation": "PermutationTest loo_permutation_test",
    "assess._suspects": "Suspects suspects",
    "estimators._llw": "LLWClassifier",
    "estimators._lp": "LOOMClassifier LPMClassifier",
    "estimators._svc": "SVC",
    "estimators._svr": "SVR",
    "exceptions": (
        "AntiLearningWarning CalibrationWarning CertificateWarning CheckpointError "
        "CheckpointWarning ClusterLostError DataFileError GramTooLargeError "
        "LeaveoutError LeaveoutWarning ModelFileError NotSeparableError "
        "PooledScoreWarning PredictorWarning PreprocessingWarning "
        "SingletonClassWarning WorkerKilledError"
    ),
    "large._feature_svc": "FeatureSVC",
    "large._loo": "ProvedError",
    "loo._regression": "LooRegressionPath LooRegressionResult",
    "loo._result": "LooPath LooResult",
    "llw._bounds": "LlwGeometry",
    "methods._bounds": "Bound",
    "report._displays": "LooCurveDisplay LooGridDisplay LooMarginDisplay",
    "report._prediction_display": "LooPredictionDisplay",
    "tune._honest": "HonestLoo honest_loo",
    "tune._search": "LooSearchCV",
    "tune._svccv": "SVCCV",
}
_MODULE_OF_NAME = {
    name: module for module, names in _NAMES_OF_MODULE.items() for name in names.split()
}
__all__ = sorted(_MODULE_OF_NAME)


def __getattr__(name: str) -> object:
    if name == "data":
        return _import_module("leaveout.data")
    if name == "__version__":
        return _import_module("importlib.metadata").version("leaveout")
    if name not in _MODULE_OF_NAME:
        raise AttributeError(f"module 'leaveout' has no attribute {name!r}")
    value = getattr(_import_module(f"leaveout.{_MODULE_OF_NAME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    dunders = {name for name in globals() if name.startswith("__")}
    return sorted({*__all__, "data", "__version__", *dunders})
