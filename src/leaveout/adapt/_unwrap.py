# SPDX-License-Identifier: BSD-3-Clause
"""From the estimator a user has to the SVC inside it, or to advice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import sklearn.svm
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline

from leaveout.estimators._base import KernelClassifier
from leaveout.estimators._svc import SVC

# What the walks take; and what leave_one_out and the search take besides.
SVMS = (SVC, sklearn.svm.SVC)
MACHINES = (*SVMS, KernelClassifier)
# By class name, so that nothing is imported for the sake of a message.
ADVICE = {
    "LinearSVC": "it squares the hinge loss and regularises the bias. "
    "Use SVC(kernel='linear', C=...).",
    "NuSVC": "its nu means another C whenever a sample is left out. Use SVC(C=...).",
    "LinearSVR": "it is a regressor. Use an SVC on class labels.",
    "SVR": "it is a regressor. Use an SVC on class labels.",
    "NuSVR": "it is a regressor. Use an SVC on class labels.",
    "OneClassSVM": "it knows one class only. Use an SVC, with the outliers labelled.",
    "SGDClassifier": "it stops short of the optimum. Use SVC(kernel='linear', C=...).",
    "Pipeline": "each class would get its own steps. Put the steps before it: "
    "make_pipeline(..., OneVsRestClassifier(SVC())).",
    "BaseSearchCV": "it is a search. Pass its best_estimator_ or an SVC(...).",
    "LooSearchCV": "it is a search. Pass its best_estimator_ or an SVC(...).",
    "SVCCV": "it is a search. Fitted, it has loo_error_ and loo_decision_values_; "
    "honest_loo tells the error of choosing and fitting together.",
    "OneVsRestClassifier": "one inside another adds nothing. "
    "Use OneVsRestClassifier(SVC()).",
    "FeatureSVC": "it leaves every row out while it is fitted. Fit it, and take its "
    "loo_error_, loo_labels_ and path_; it chooses among several C itself.",
    "LPMClassifier": "leave_one_out and LooSearchCV take it, and loo_bounds, as it is "
    "or at the end of a Pipeline. Here use an SVC.",
    "LOOMClassifier": "leave_one_out and LooSearchCV take it, as it is or at the "
    "end of a Pipeline. Here use an SVC.",
    "LLWClassifier": "leave_one_out, LooSearchCV and llw_bounds take it, as it is or "
    "at the end of a Pipeline. Here use an SVC.",
    "OneVsOneClassifier": "SVC itself treats more than two classes one-vs-one. "
    "Pass the SVC.",
}
OTHERWISE = (
    "it is not a support vector classifier. Use "
    "sklearn.model_selection.cross_val_predict(estimator, X, y, cv=LeaveOneOut())."
)


@dataclass(frozen=True)
class Model:
    """An SVC, or a classifier by linear programs, and what stands around it.

    Parameters
    ----------
    svc : sklearn.svm.SVC, leaveout.SVC, LPMClassifier or LOOMClassifier
        The user's own object.
    prefix : str, default=""
        What its parameters are called by: ``prefix + "C"``.
    steps : tuple of (str, transformer), default=()
        What X goes through first, "passthrough" and None omitted.
    in_pipeline : bool, default=False
        Whether there is a Pipeline, be it without steps before the SVC.
    one_vs_rest : bool, default=False
        Whether each class has its machine, rather than each pair of classes.
    """

    svc: Any
    prefix: str = ""
    steps: tuple[tuple[str, Any], ...] = ()
    in_pipeline: bool = False
    one_vs_rest: bool = False


def find_svc(estimator: Any) -> tuple[Any, str]:
    """Return the SVC inside an estimator, and the prefix of its parameters.

    Parameters
    ----------
    estimator : SVC, Pipeline that ends in one, or OneVsRestClassifier of one
        scikit-learn's SVC or ours; pipelines may be nested.

    Returns
    -------
    svc : sklearn.svm.SVC or leaveout.SVC
        The very object, not a copy.
    prefix : str
        ``estimator.set_params(**{prefix + "C": 3})`` sets its C.

    Raises
    ------
    TypeError
        For any other estimator, with advice on what to use instead.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVC
    >>> find_svc(make_pipeline(StandardScaler(), SVC(C=3)))
    (SVC(C=3), 'svc__')
    """
    model = unwrap(estimator)
    return model.svc, model.prefix


def unwrap(estimator: Any, kinds: tuple[type, ...] = SVMS) -> Model:
    """Take Pipelines and OneVsRestClassifier off; TypeError if no SVC is inside.

    ``kinds`` are the classes that will do.
    """
    return _unwrap(estimator, "", kinds, one_vs_rest=False)


def _unwrap(
    estimator: Any, around: str, kinds: tuple[type, ...], *, one_vs_rest: bool
) -> Model:
    """Return the model inside; ``around`` says in words what was taken off already."""
    if isinstance(estimator, SVMS if one_vs_rest else kinds):
        return Model(estimator, one_vs_rest=one_vs_rest)
    if isinstance(estimator, Pipeline) and not one_vs_rest:
        return _unwrap_pipeline(estimator, around, kinds)
    if isinstance(estimator, OneVsRestClassifier) and not one_vs_rest:
        around = f"{around}{type(estimator).__name__} of "
        inside = _unwrap(estimator.estimator, around, kinds, one_vs_rest=True)
        return replace(inside, prefix=f"estimator__{inside.prefix}")
    if isinstance(estimator, type):
        raise TypeError(
            f"estimator must be an object, not the class {estimator.__name__}. "
            f"Pass {estimator.__name__}()."
        )
    names = [base.__name__ for base in type(estimator).__mro__]
    reason = next((ADVICE[name] for name in names if name in ADVICE), OTHERWISE)
    raise _refusal(f"{around}{type(estimator).__name__}", reason, kinds)


def _unwrap_pipeline(pipeline: Pipeline, around: str, kinds: tuple[type, ...]) -> Model:
    """Return the model at the end of a pipeline, with the steps before it."""
    kind = type(pipeline).__name__
    last = pipeline.steps[-1][1] if pipeline.steps else None
    if last is None or isinstance(last, str):
        raise _refusal(
            f"{around}{kind} without a classifier",
            "nothing in it predicts. End it with SVC(...).",
            kinds,
        )
    inside = _unwrap(last, f"{around}{kind} ending in ", kinds, one_vs_rest=False)
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
    """Refuse a step that cannot transform, such as a sampler."""
    if isinstance(step, type):
        raise TypeError(
            f"Step {name!r} of the Pipeline must be an object, not the class "
            f"{step.__name__}. Pass {step.__name__}()."
        )
    can_transform = hasattr(step, "transform") or hasattr(step, "fit_transform")
    if not (hasattr(step, "fit") and can_transform):
        raise TypeError(
            f"Step {name!r} of the Pipeline is no transformer: {step!r} lacks fit or "
            "transform. Only the last step may be something else."
        )


def _refusal(what: str, reason: str, kinds: tuple[type, ...]) -> TypeError:
    """Say what will do, and why this will not."""
    if not set(SVMS) <= set(kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        return TypeError(
            f"estimator must be an {names}, or a Pipeline that ends in one; {what} "
            "will not do."
        )
    return TypeError(
        "estimator must be an SVC (scikit-learn's or leaveout's), a Pipeline that ends "
        f"in one, or OneVsRestClassifier(SVC()); {what} will not do: {reason}"
    )
