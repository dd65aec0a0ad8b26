# SPDX-License-Identifier: BSD-3-Clause
"""Exact leave-one-out for support vector machines, for about the price of one fit.

The folders tell the story: ``data`` → ``kernel`` → ``solve`` → ``loo`` → ``select`` →
``report``; ``estimators`` is its scikit-learn face, ``cli`` its terminal face.
"""

from leaveout.estimators import (
    SVC,
    leave_one_out,
    leave_pair_out_auc,
    loo_curve,
    loo_path,
)
from leaveout.exceptions import (
    CertificateWarning,
    LeaveoutError,
    LeaveoutWarning,
    PreprocessingWarning,
    SingletonClassWarning,
)
from leaveout.loo import LooCurve, LooPath, LooResult, PairAUC
from leaveout.report import LooCurveDisplay, LooGridDisplay, LooMarginDisplay

__version__ = "0.1.0"

__all__ = [
    "SVC",
    "CertificateWarning",
    "LeaveoutError",
    "LeaveoutWarning",
    "LooCurve",
    "LooCurveDisplay",
    "LooGridDisplay",
    "LooMarginDisplay",
    "LooPath",
    "LooResult",
    "PairAUC",
    "PreprocessingWarning",
    "SingletonClassWarning",
    "leave_one_out",
    "leave_pair_out_auc",
    "loo_curve",
    "loo_path",
]
