# SPDX-License-Identifier: BSD-3-Clause
"""What a model file says about its model, readable without loading the model."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from sklearn.pipeline import Pipeline

from leaveout.loo import ProvedError

# Files of a later format are refused, not guessed at.
FORMAT = 1


@dataclass(frozen=True)
class ModelCard:
    """Where a model comes from, and what it takes and gives.

    Parameters
    ----------
    model : str
        Its class, or those of the steps of a Pipeline.
    feature_names : list of str
        Columns it was trained on; empty if they had no names.
    n_features : int or None
        Number of columns.
    classes : list
        Labels it predicts.
    loo_error : float or None
        Leave-one-out error, if one was computed.
    created : str
        Date and time, UTC.
    versions : mapping of str to str
        Of Python and the packages that matter.
    details : mapping
        Whatever else was passed to :func:`save_model`.
    format : int
        Version of the file format.

    Examples
    --------
    >>> import leaveout as lo
    >>> from leaveout.estimators import make_card
    >>> model = lo.SVC(kernel="linear").fit([[0.0], [1.0]], ["no", "yes"])
    >>> make_card(model, loo_error=0.5).classes
    ['no', 'yes']
    """

    model: str
    feature_names: list[str]
    n_features: int | None
    classes: list[Any]
    loo_error: float | None
    created: str
    versions: Mapping[str, str]
    details: Mapping[str, Any] = field(default_factory=dict)
    format: int = FORMAT

    def to_json(self) -> str:
        """Return the card as JSON."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False)


def make_card(
    model: Any,
    *,
    loo_error: float | None = None,
    feature_names: list[str] | None = None,
    details: Mapping[str, Any] | None = None,
) -> ModelCard:
    """Return the card of a fitted classifier."""
    if feature_names is None:
        feature_names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    if loo_error is None:
        loo_error = getattr(_last_step(model), "loo_error_", None)
        if isinstance(loo_error, ProvedError):  # a number only if it is one
            loo_error = loo_error.low if loo_error.proved else None
    return ModelCard(
        model=_describe(model),
        feature_names=feature_names,
        n_features=getattr(model, "n_features_in_", None),
        classes=model.classes_.tolist(),
        loo_error=None if loo_error is None else float(loo_error),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=installed_versions(),
        details=dict(details or {}),
    )


def wrong_fields(card: ModelCard) -> list[str]:
    """Return the names of the fields whose content is of another kind than theirs.

    Examples
    --------
    >>> from leaveout.estimators import ModelCard
    >>> from leaveout.estimators._model_card import wrong_fields
    >>> wrong_fields(ModelCard("SVC", "abc", 3, [0, 1], None, "2025-01-01", {}))
    ['feature_names']
    """
    kinds: dict[str, Any] = {
        "model": str,
        "feature_names": list,
        "n_features": int | None,
        "classes": list,
        "loo_error": float | int | None,
        "created": str,
        "versions": dict,
        "details": dict,
        "format": int,
    }
    fields = vars(card)
    wrong = [name for name in kinds if not isinstance(fields[name], kinds[name])]
    if not wrong and not all(isinstance(name, str) for name in card.feature_names):
        wrong = ["feature_names"]
    return wrong


def _last_step(model: Any) -> Any:
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def _describe(model: Any) -> str:
    if isinstance(model, Pipeline):
        return " + ".join(_describe(step) for _, step in model.steps)
    return type(model).__name__


def installed_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that matter."""
    found = {"python": platform.python_version()}
    for package in ("leaveout", "scikit-learn", "numpy", "skops"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # run from a source tree
            found[package] = "unknown"
    return found
