# SPDX-License-Identifier: BSD-3-Clause
"""From a user's estimator to the model inside it, or to an error with advice."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import sklearn.svm
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline

from leaveout.loo._family import FAMILIES
from leaveout.loo._task import Params

# scikit-learn's classes; leaveout's have the attribute ``_family``.
SKLEARN_FAMILIES = {sklearn.svm.SVC: "svc", sklearn.svm.SVR: "svr"}
# Parameters of scikit-learn's classes that control LIBSVM but not the optimum.
IGNORED = {"tol", "max_iter", "verbose", "nu"}
NAMES = {field.name for field in fields(Params)} - {"family", "one_vs_rest"}
SVM_ONLY = ("svc",)
WITH_C_PATH = ("svc", "svr")
ALL_FAMILIES = tuple(FAMILIES)
# By class name, so that no import is needed for a message.
ADVICE = {
    "LinearSVC": "it squares the hinge loss and regularises the intercept. "
    "Use SVC(kernel='linear', C=...).",
    "NuSVC": "its nu implies a different C for each left-out sample. Use SVC(C=...).",
    "LinearSVR": "it regularises the intercept. Use SVR(kernel='linear', C=...).",
    "SVR": "it is a regressor, and only classifiers are possible here. An SVR works "
    "with leave_one_out, loo_path and LooSearchCV, alone or at the end of a Pipeline.",
    "NuSVR": "its nu implies a different epsilon for each left-out sample. "
    "Use SVR(epsilon=...).",
    "OneClassSVM": "it has only one class. Label the outliers and use an SVC.",
    "SGDClassifier": "it stops short of the optimum. Use SVC(kernel='linear', C=...).",
    "Pipeline": "each class would get its own steps. Put the steps first: "
    "make_pipeline(..., OneVsRestClassifier(SVC())).",
    "BaseSearchCV": "it is a search. Pass an SVC with fixed parameters. honest_loo "
    "estimates the error with tuning included.",
    "SVCCV": "it is a search. After fit, it has loo_error_ and loo_decision_values_; "
    "honest_loo estimates the error with tuning included.",
    "OneVsRestClassifier": "nesting two of them has no effect. "
    "Use OneVsRestClassifier(SVC()).",
    "FeatureSVC": "its fit already leaves every row out. Call fit, then use "
    "loo_error_, loo_labels_ and path_; it chooses among several C itself.",
    "LPMClassifier": "it works with leave_one_out, LooSearchCV and loo_bounds, alone "
    "or at the end of a Pipeline. Use an SVC here.",
    "LOOMClassifier": "it works with leave_one_out and LooSearchCV, alone or at the "
    "end of a Pipeline. Use an SVC here.",
    "LLWClassifier": "it works with leave_one_out, LooSearchCV and llw_bounds, alone "
    "or at the end of a Pipeline. Use an SVC here.",
    "OneVsOneClassifier": "SVC is already one-vs-one for more than two classes. "
    "Pass the SVC.",
}
OTHERWISE = (
    "it is not a support vector machine. Use "
    "sklearn.model_selection.cross_val_predict(estimator, X, y, cv=LeaveOneOut())."
)


@dataclass(frozen=True)
class Model:
    """A classifier or regressor, and the Pipeline steps before it."""

    estimator: Any  # the user's; it is not changed
    params: Params
    prefix: str = ""  # of its parameters in the user's estimator: prefix + "C"
    steps: tuple[tuple[str, Any], ...] = ()  # without "passthrough" and None
    in_pipeline: bool = False  # also if there are no steps before the model


def family_of(estimator: Any) -> str | None:
    """Return the family of an estimator, None if it is not supported."""
    for kind, family in SKLEARN_FAMILIES.items():
        if isinstance(estimator, kind):
            return family
    return getattr(type(estimator), "_family", None)


def read_params(estimator: Any, one_vs_rest: bool = False) -> Params:
    """Return the parameters of a classifier or regressor."""
    family = family_of(estimator)
    assert family is not None
    foreign = isinstance(estimator, tuple(SKLEARN_FAMILIES))
    names = NAMES - IGNORED if foreign else NAMES
    own = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}
    return Params(family=family, one_vs_rest=one_vs_rest, **own)


def unwrap(
    estimator: Any,
    families: tuple[str, ...] = SVM_ONLY,
    *,
    around: str = "",
    one_vs_rest: bool = False,
) -> Model:
    """Return the model inside Pipelines and a OneVsRestClassifier.

    TypeError if it is of none of the ``families``. ``around`` and ``one_vs_rest`` say
    what was unwrapped already: words for messages, and whether a OneVsRestClassifier
    was.
    """
    if family_of(estimator) in (SVM_ONLY if one_vs_rest else families):
        return Model(estimator, read_params(estimator, one_vs_rest))
    if isinstance(estimator, Pipeline) and not one_vs_rest:
        return _unwrap_pipeline(estimator, families, around)
    if isinstance(estimator, OneVsRestClassifier) and not one_vs_rest:
        around = f"{around}{type(estimator).__name__} of "
        inside = unwrap(estimator.estimator, families, around=around, one_vs_rest=True)
        return replace(inside, prefix=f"estimator__{inside.prefix}")
    if isinstance(estimator, type):
        raise TypeError(
            f"estimator must be an object, not the class {estimator.__name__}. "
            f"Pass {estimator.__name__}()."
        )
    if hasattr(estimator, "__array__") or isinstance(estimator, list):
        raise TypeError(
            "estimator must be the first argument, before X and y; got "
            f"{type(estimator).__name__}."
        )
    names = [base.__name__ for base in type(estimator).__mro__]
    reason = next((ADVICE[name] for name in names if name in ADVICE), OTHERWISE)
    raise _refusal(f"{around}{type(estimator).__name__}", reason, families)


def has_exact_method(estimator: Any) -> bool:
    """Return whether ``leave_one_out`` takes the estimator."""
    try:
        unwrap(estimator, ALL_FAMILIES)
    except TypeError:
        return False
    return True


def predicts_numbers(estimator: Any) -> bool:
    """Return whether it is a regressor that ``leave_one_out`` takes."""
    try:
        model = unwrap(estimator, ALL_FAMILIES)
    except TypeError:
        return False
    return FAMILIES[model.params.family].target == "numbers"


def _unwrap_pipeline(
    pipeline: Pipeline, families: tuple[str, ...], around: str
) -> Model:
    """Return the model at the end of a pipeline, with the steps before it."""
    kind = type(pipeline).__name__
    last = pipeline.steps[-1][1] if pipeline.steps else None
    if last is None or isinstance(last, str):
        raise _refusal(
            f"{around}{kind} without a classifier",
            "nothing in it predicts. End it with SVC(...).",
            families,
        )
    inside = unwrap(last, families, around=f"{around}{kind} ending in ")
    name = pipeline.steps[-1][0]
    own = [step for step in pipeline.steps[:-1] if step[1] not in (None, "passthrough")]
    for step_name, step in own:
        _check_transformer(step_name, step)
    below = [(f"{name}__{step_name}", step) for step_name, step in inside.steps]
    return replace(
        inside,
        prefix=f"{name}__{inside.prefix}",
        steps=(*own, *below),
        in_pipeline=True,
    )


def _check_transformer(name: str, step: Any) -> None:
    """Refuse a step without transform, such as a sampler."""
    if isinstance(step, type):
        raise TypeError(
            f"Step {name!r} of the Pipeline must be an object, not the class "
            f"{step.__name__}. Pass {step.__name__}()."
        )
    can_transform = hasattr(step, "transform") or hasattr(step, "fit_transform")
    if not (hasattr(step, "fit") and can_transform):
        raise TypeError(
            f"Step {name!r} of the Pipeline is not a transformer: {step!r} lacks fit "
            "or transform. Every step but the last must be a transformer."
        )


def _refusal(what: str, reason: str, families: tuple[str, ...]) -> TypeError:
    """Return an error that names the supported estimators and the reason."""
    if "svc" not in families:
        names = " or ".join(FAMILIES[family].name for family in families)
        return TypeError(
            f"estimator must be an {names}, or a Pipeline that ends in one; {what} "
            "is not supported."
        )
    kinds = "SVC or SVR" if "svr" in families else "SVC"
    others = [FAMILIES[name].name for name in families if name not in ("svc", "svr")]
    listed = "".join(f", {name}" for name in others)
    return TypeError(
        f"estimator must be an {kinds} (scikit-learn's or leaveout's){listed}, a "
        "Pipeline that ends in one, or OneVsRestClassifier(SVC()). "
        f"{what} is not supported: {reason}"
    )
