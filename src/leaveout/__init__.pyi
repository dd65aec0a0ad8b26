# The public names, for type checkers and editors; __init__.py loads them on first use.

from leaveout import data as data
from leaveout._model_file import (
    ModelCard as ModelCard,
)
from leaveout._model_file import (
    load_model as load_model,
)
from leaveout._model_file import (
    read_model_card as read_model_card,
)
from leaveout._model_file import (
    save_model as save_model,
)
from leaveout.adapt._fitted import KernelExpansion as KernelExpansion
from leaveout.assess._bounds import (
    LooBounds as LooBounds,
)
from leaveout.assess._bounds import (
    llw_bounds as llw_bounds,
)
from leaveout.assess._bounds import (
    loo_bounds as loo_bounds,
)
from leaveout.assess._leave_one_out import (
    leave_one_out as leave_one_out,
)
from leaveout.assess._leave_one_out import (
    loo_path as loo_path,
)
from leaveout.assess._loo_curve import LooCurve as LooCurve
from leaveout.assess._loo_curve import loo_curve as loo_curve
from leaveout.assess._loo_predictor import LooPredictor as LooPredictor
from leaveout.assess._pair_auc import (
    PairAUC as PairAUC,
)
from leaveout.assess._pair_auc import (
    leave_pair_out_auc as leave_pair_out_auc,
)
from leaveout.assess._permutation import (
    PermutationTest as PermutationTest,
)
from leaveout.assess._permutation import (
    loo_permutation_test as loo_permutation_test,
)
from leaveout.assess._suspects import Suspects as Suspects
from leaveout.assess._suspects import suspects as suspects
from leaveout.estimators._llw import LLWClassifier as LLWClassifier
from leaveout.estimators._lp import (
    LOOMClassifier as LOOMClassifier,
)
from leaveout.estimators._lp import (
    LPMClassifier as LPMClassifier,
)
from leaveout.estimators._svc import SVC as SVC
from leaveout.exceptions import (
    AntiLearningWarning as AntiLearningWarning,
)
from leaveout.exceptions import (
    CalibrationWarning as CalibrationWarning,
)
from leaveout.exceptions import (
    CertificateWarning as CertificateWarning,
)
from leaveout.exceptions import (
    CheckpointError as CheckpointError,
)
from leaveout.exceptions import (
    CheckpointWarning as CheckpointWarning,
)
from leaveout.exceptions import (
    ClusterLostError as ClusterLostError,
)
from leaveout.exceptions import (
    DataFileError as DataFileError,
)
from leaveout.exceptions import (
    GramTooLargeError as GramTooLargeError,
)
from leaveout.exceptions import (
    LeaveoutError as LeaveoutError,
)
from leaveout.exceptions import (
    LeaveoutWarning as LeaveoutWarning,
)
from leaveout.exceptions import (
    ModelFileError as ModelFileError,
)
from leaveout.exceptions import (
    NotSeparableError as NotSeparableError,
)
from leaveout.exceptions import (
    PooledScoreWarning as PooledScoreWarning,
)
from leaveout.exceptions import (
    PredictorWarning as PredictorWarning,
)
from leaveout.exceptions import (
    PreprocessingWarning as PreprocessingWarning,
)
from leaveout.exceptions import (
    SingletonClassWarning as SingletonClassWarning,
)
from leaveout.exceptions import (
    WorkerKilledError as WorkerKilledError,
)
from leaveout.large._feature_svc import FeatureSVC as FeatureSVC
from leaveout.large._loo import ProvedError as ProvedError
from leaveout.llw._bounds import LlwGeometry as LlwGeometry
from leaveout.loo._result import LooPath as LooPath
from leaveout.loo._result import LooResult as LooResult
from leaveout.methods._bounds import Bound as Bound
from leaveout.report._displays import (
    LooCurveDisplay as LooCurveDisplay,
)
from leaveout.report._displays import (
    LooGridDisplay as LooGridDisplay,
)
from leaveout.report._displays import (
    LooMarginDisplay as LooMarginDisplay,
)
from leaveout.tune._honest import HonestLoo as HonestLoo
from leaveout.tune._honest import honest_loo as honest_loo
from leaveout.tune._search import LooSearchCV as LooSearchCV
from leaveout.tune._svccv import SVCCV as SVCCV

__version__: str
__all__: list[str]
