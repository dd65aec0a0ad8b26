# SPDX-License-Identifier: BSD-3-Clause
"""Exact leave-one-out for support vector machines, for about the price of one fit.

The folders tell the story: ``data`` → ``kernel`` → ``solve`` → ``loo`` → ``select`` →
``report``; ``estimators`` is its scikit-learn face, ``cli`` its terminal face.
"""

from typing import TYPE_CHECKING, Any

from leaveout.estimators import (
    SVC,
    SVCCV,
    FeatureSVC,
    LLWClassifier,
    LOOMClassifier,
    LooPredictor,
    LooSearchCV,
    LPMClassifier,
    ModelCard,
    honest_loo,
    leave_one_out,
    leave_pair_out_auc,
    llw_bounds,
    load_model,
    loo_bounds,
    loo_curve,
    loo_path,
    loo_permutation_test,
    read_model_card,
    save_model,
    suspects,
)
from leaveout.exceptions import (
    AntiLearningWarning,
    CalibrationWarning,
    CertificateWarning,
    CheckpointError,
    CheckpointWarning,
    ClusterLostError,
    DataFileError,
    GramTooLargeError,
    LeaveoutError,
    LeaveoutWarning,
    ModelFileError,
    NotSeparableError,
    PooledScoreWarning,
    PreprocessingWarning,
    SingletonClassWarning,
    WorkerKilledError,
)
from leaveout.loo import (
    Bound,
    LooBounds,
    LooCurve,
    LooPath,
    LooResult,
    PairAUC,
    PermutationTest,
    ProvedError,
    Suspects,
)
from leaveout.select import HonestLoo

if TYPE_CHECKING:
    from leaveout.report import LooCurveDisplay, LooGridDisplay, LooMarginDisplay

__version__ = "0.1.0"

__all__ = [
    "SVC",
    "SVCCV",
    "AntiLearningWarning",
    "Bound",
    "CalibrationWarning",
    "CertificateWarning",
    "CheckpointError",
    "CheckpointWarning",
    "ClusterLostError",
    "DataFileError",
    "FeatureSVC",
    "GramTooLargeError",
    "HonestLoo",
    "LLWClassifier",
    "LOOMClassifier",
    "LPMClassifier",
    "LeaveoutError",
    "LeaveoutWarning",
    "LooBounds",
    "LooCurve",
    "LooCurveDisplay",
    "LooGridDisplay",
    "LooMarginDisplay",
    "LooPath",
    "LooPredictor",
    "LooResult",
    "LooSearchCV",
    "ModelCard",
    "ModelFileError",
    "NotSeparableError",
    "PairAUC",
    "PermutationTest",
    "PooledScoreWarning",
    "PreprocessingWarning",
    "ProvedError",
    "SingletonClassWarning",
    "Suspects",
    "WorkerKilledError",
    "honest_loo",
    "leave_one_out",
    "leave_pair_out_auc",
    "llw_bounds",
    "load_model",
    "loo_bounds",
    "loo_curve",
    "loo_path",
    "loo_permutation_test",
    "read_model_card",
    "save_model",
    "suspects",
]


def __getattr__(name: str) -> Any:
    """Import the displays when they are asked for: most programs draw nothing."""
    if name in ("LooCurveDisplay", "LooGridDisplay", "LooMarginDisplay"):
        from leaveout import report

        return getattr(report, name)
    raise AttributeError(f"module 'leaveout' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
