# SPDX-License-Identifier: BSD-3-Clause
"""Which weights of ``fit`` reach the SVC inside an estimator, and its refit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import process_routing

from leaveout.estimators._unwrap import Model


@dataclass(frozen=True)
class Metadata:
    """What ``fit`` was given beside X and y.

    Parameters
    ----------
    sample_weight : array-like or None
        Weights for the SVC.
    fit_params : dict
        What the best estimator is fitted with.
    """

    sample_weight: Any
    fit_params: dict[str, Any]


def plain_metadata(params: Mapping[str, Any], model: Model) -> Metadata:
    """Take ``sample_weight``, or in a Pipeline ``svc__sample_weight``.

    Raises
    ------
    TypeError
        For anything else, and for weights that could not be passed on.
    """
    inside = f"{model.prefix}sample_weight"
    given = {name: value for name, value in params.items() if value is not None}
    weights = given.pop("sample_weight", given.pop(inside, None))
    if given:
        raise TypeError(
            f"fit got {', '.join(map(repr, given))}; without metadata routing it takes "
            f"groups and {' or '.join(dict.fromkeys(('sample_weight', inside)))}. "
            "Enable it by sklearn.set_config(enable_metadata_routing=True)."
        )
    if weights is None:
        return Metadata(None, {})
    if model.one_vs_rest:
        raise TypeError(
            "OneVsRestClassifier takes sample_weight only with metadata routing: call "
            "sklearn.set_config(enable_metadata_routing=True) and "
            "OneVsRestClassifier(SVC().set_fit_request(sample_weight=True))."
        )
    return Metadata(weights, {inside: weights})


def route_metadata(estimator: Any, params: Mapping[str, Any], model: Model) -> Metadata:
    """Follow scikit-learn's metadata routing down to the SVC.

    Parameters
    ----------
    estimator : object
        A candidate.
    params : mapping
        What is routed to its ``fit``.
    model : Model
        The SVC inside it.
    """
    own, holder = dict(params), estimator
    for name in model.prefix.split("__")[:-1]:
        if not own:
            break
        routed = process_routing(holder, "fit", **own)
        for other, methods in routed.items():
            asked = {key for values in methods.values() for key in values}
            if other != name and asked:
                raise ValueError(
                    f"Step {other!r} of the Pipeline requests {', '.join(asked)}, but "
                    "steps before the SVC are fitted without metadata when samples are "
                    "left out. Take the request back."
                )
        own = dict(routed[name]["fit"])
        inner = holder.named_steps if isinstance(holder, Pipeline) else vars(holder)
        holder = inner[name]
    unknown = own.keys() - {"sample_weight"}
    if unknown:
        raise TypeError(f"SVC.fit takes sample_weight only; got {', '.join(unknown)}.")
    return Metadata(own.get("sample_weight"), dict(params))
