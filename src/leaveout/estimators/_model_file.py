# SPDX-License-Identifier: BSD-3-Clause
"""Fitted classifiers in files, without pickle: a file is data, never a program.

A model file is what skops writes for the estimator, a zip archive, plus one member
with the card (leaveout.json).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from sklearn.base import is_classifier
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.utils.validation import check_is_fitted

from leaveout.estimators._model_card import FORMAT, ModelCard, make_card, wrong_fields
from leaveout.estimators._model_trust import TRUSTED, check_schema
from leaveout.estimators._model_whole import check_whole
from leaveout.estimators._search import LooSearchCV
from leaveout.exceptions import ModelFileError
from leaveout.run import write_atomically

CARD = "leaveout.json"
SCHEMA = "schema.json"
# Lists of names shrink to a hundredth, arrays hardly; beyond this it is a trap.
N_BYTES_FREE, MAX_RATIO = 2**28, 50


def save_model(
    model: Any,
    path: str | Path,
    *,
    loo_error: float | None = None,
    feature_names: list[str] | None = None,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Write a fitted classifier to a file, by skops, whole or not at all.

    Parameters
    ----------
    model : classifier
        Fitted: an SVC (scikit-learn's or ours), SVCCV, LPMClassifier, LOOMClassifier,
        ``LooSearchCV.best_estimator_``, or a Pipeline of scikit-learn's steps that ends
        in one.
    path : str or Path
        The file, ``.skops`` by habit. An older one is replaced.
    loo_error : float, optional
        Leave-one-out error to note; that of an SVCCV is known.
    feature_names : list of str, optional
        Names of the columns, if the model does not know them.
    details : mapping, optional
        What else to note: anything JSON can hold.

    Raises
    ------
    ModelFileError
        The model holds what a model file may not, a function of yours for example.

    Notes
    -----
    Needs skops, which comes with ``pip install "leaveout[cli]"``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import leaveout as lo
    >>> model = lo.SVC(kernel="linear").fit([[0.0], [1.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lo.save_model(model, Path(folder, "model.skops"))
    ...     again = lo.load_model(Path(folder, "model.skops"))
    >>> again.predict([[2.0]])
    array(['yes'], dtype='<U3')
    """
    _check_model(model)
    card = make_card(
        model, loo_error=loo_error, feature_names=feature_names, details=details
    )
    raw = _import_skops().dumps(model, compression=ZIP_DEFLATED, compresslevel=1)
    with ZipFile(BytesIO(raw)) as archive:
        schema = json.loads(archive.read(SCHEMA))
    check_schema(schema, "This model cannot be kept in a model file")
    buffer = BytesIO(raw)
    with ZipFile(buffer, "a", ZIP_DEFLATED) as archive:
        archive.writestr(CARD, card.to_json())
    write_atomically(path, buffer.getvalue())


def load_model(path: str | Path) -> Any:
    """Read a classifier that :func:`save_model` wrote. Nothing in the file is run.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    model : classifier
        Fitted, as it was saved.

    Raises
    ------
    OSError
        The file is missing or cannot be read.
    ModelFileError
        The file is damaged, of another kind, or holds types that are not known to be
        harmless.

    Examples
    --------
    See :func:`save_model`.
    """
    raw = _read(path)
    with _as_model_file(path) as what, ZipFile(BytesIO(raw)) as archive:
        _check_size(archive, len(raw), what)
        _read_card(archive, what)
        check_schema(json.loads(archive.read(SCHEMA)), what)
        model = _import_skops().loads(raw, trusted=TRUSTED)
        if not is_classifier(model):
            raise ModelFileError(f"{what}: it holds no classifier.")
        check_whole(model, what)
    return model


def read_model_card(path: str | Path) -> ModelCard:
    """Read what a model file says about its model, without making the model.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    ModelCard
        Feature names, classes, leave-one-out error, date, versions.

    Raises
    ------
    OSError, ModelFileError
        As :func:`load_model`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import leaveout as lo
    >>> model = lo.SVC(kernel="linear").fit([[0.0], [1.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lo.save_model(model, Path(folder, "model.skops"), loo_error=0.25)
    ...     lo.read_model_card(Path(folder, "model.skops")).loo_error
    0.25
    """
    raw = _read(path)
    with _as_model_file(path) as what, ZipFile(BytesIO(raw)) as archive:
        _check_size(archive, len(raw), what)
        return _read_card(archive, what)


def _check_model(model: Any) -> None:
    """Refuse what is no fitted classifier, with the way out."""
    if isinstance(model, LooSearchCV | GridSearchCV | RandomizedSearchCV):
        raise TypeError(
            f"A {type(model).__name__} holds more than a model. Save its "
            "best_estimator_."
        )
    if not is_classifier(model):
        raise TypeError(
            f"model must be a classifier; got {type(model).__name__}. Model files hold "
            "an SVC, an SVCCV, or a Pipeline that ends in one."
        )
    check_is_fitted(model)


def _import_skops() -> Any:
    try:
        import skops.io
    except ModuleNotFoundError as missing:
        if missing.name != "skops":
            raise
        raise ModuleNotFoundError(
            "Model files need skops: pip install 'leaveout[cli]'.", name="skops"
        ) from missing
    return skops.io


def _read(path: str | Path) -> bytes:
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"No file '{path}'. Give the path of a model file.")
    return path.read_bytes()


@contextmanager
def _as_model_file(path: str | Path) -> Iterator[str]:
    """Turn whatever a broken archive raises into one error that names the file."""
    what = f"'{path}' is no model file of leaveout, or damaged"
    try:
        yield what
    except ModelFileError:
        raise
    except ModuleNotFoundError as missing:
        if missing.name == "skops":
            raise
        raise ModelFileError(f"{what}: {missing}.") from missing
    except Exception as why:  # zipfile, json, numpy and skops raise nearly everything
        reason = str(why).strip().splitlines()[0] if str(why).strip() else ""
        raise ModelFileError(
            f"{what}: {reason or type(why).__name__}. Save the model again."
        ) from why


def _check_size(archive: ZipFile, n_bytes: int, what: str) -> None:
    """Refuse a small file that unpacks to a huge one."""
    unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > N_BYTES_FREE + MAX_RATIO * n_bytes:
        raise ModelFileError(f"{what}: it unpacks to {unpacked:,} bytes.")


def _read_card(archive: ZipFile, what: str) -> ModelCard:
    if CARD not in archive.namelist():
        raise ModelFileError(f"{what}: it has no {CARD} inside.")
    card = ModelCard(**json.loads(archive.read(CARD)))
    wrong = wrong_fields(card)
    if wrong:
        raise ModelFileError(f"{what}: {', '.join(wrong)} in {CARD} cannot be.")
    if card.format > FORMAT:
        raise ModelFileError(
            f"{what}: it was written by leaveout {card.versions.get('leaveout')}, in a "
            "later format. Upgrade leaveout."
        )
    return card
