# SPDX-License-Identifier: BSD-3-Clause
"""Model files without pickle: save_model, load_model, ModelCard.

A model file is the zip archive that skops writes for the estimator, plus a member with
the card (leaveout.json). skops describes a model as a tree of nodes, each with a loader
and a type. Files may be untrusted, so every pair of loader and type must be in a list
before skops reads the file. skops then applies its own list of types. Finally, the
shapes of the loaded arrays are checked before any code uses them.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from leaveout._messages import printable
from leaveout.exceptions import ModelFileError
from leaveout.run._files import write_atomically

# Files with a later format are refused.
FORMAT = 1
CARD, SCHEMA = "leaveout.json", "schema.json"
_NAMES = "FeatureSVC LLWClassifier LOOMClassifier LPMClassifier SVC SVCCV"
CLASSIFIERS = {f"leaveout.{name}" for name in _NAMES.split()}
RESULTS = {"leaveout.LooResult", "leaveout.ProvedError"}
# Steps of a Pipeline. Not sklearn.svm: its compiled code trusts the shapes of arrays.
SKLEARN_PACKAGES = (
    "compose", "decomposition", "feature_extraction", "feature_selection", "frozen",
    "impute", "kernel_approximation", "pipeline", "preprocessing", "random_projection",
)  # fmt: skip
_PLAIN = {f"builtins.{name}" for name in ("str", "int", "float", "bool", "NoneType")}
_SCALARS = {f"numpy.{kind.__name__}" for kind in np.sctypeDict.values()}
_MATRICES = {
    "scipy.sparse._csr.csr_matrix", "scipy.sparse._csr.csr_array",
    "scipy.sparse._csc.csc_matrix", "scipy.sparse._csc.csc_array",
}  # fmt: skip
# The module of ufuncs has different names in NumPy 1 and 2.
_UFUNCS = ("numpy", "numpy.core._multiarray_umath", "numpy._core._multiarray_umath")
_FUNCTIONS = {
    "sklearn.feature_selection._univariate_selection.f_classif",
    "sklearn.feature_selection._univariate_selection.chi2",
    "sklearn.feature_selection._mutual_info.mutual_info_classif",
} | {
    f"{module}.{name}"
    for module in _UFUNCS
    for name, function in vars(np).items()
    if isinstance(function, np.ufunc)
}
# Allowed types by loader; CachedNode and ObjectNode are in _is_allowed.
TYPES = {
    "DictNode": {"builtins.dict"},
    "ListNode": {"builtins.list"},
    "TupleNode": {"builtins.tuple", "leaveout.ProvedError"},
    "SetNode": {"builtins.set"},
    "SliceNode": {"builtins.slice"},
    "JsonNode": _PLAIN,
    "TypeNode": _PLAIN | _SCALARS,
    "NdArrayNode": _SCALARS | {"numpy.ndarray"},
    "DTypeNode": {"numpy.dtype"},
    "MaskedArrayNode": {"numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray"},
    "SparseMatrixNode": _MATRICES,
    "FunctionNode": _FUNCTIONS,
}
# In fitted ColumnTransformers of scikit-learn 1.6.
_COLUMNS = "sklearn.compose._column_transformer._RemainderColsList"
# Those of the above that skops does not trust by default.
TRUSTED = sorted(
    CLASSIFIERS | RESULTS | _FUNCTIONS | _MATRICES | {"numpy.dtype", _COLUMNS}
)
# Limit of the unpacked size: MAX_BYTES plus MAX_RATIO times the size of the file. Lists
# of names compress to a hundredth, arrays hardly at all.
MAX_BYTES, MAX_RATIO = 2**28, 50
# Nodes may refer to others; this limits the number of nodes that skops visits.
MAX_NODES, MAX_EXPANSION = 10_000, 10


@dataclass(frozen=True)
class ModelCard:
    """Origin, inputs and classes of a saved model.

    Parameters
    ----------
    model : str
        Class of the model, or of the steps of a Pipeline.
    feature_names : list of str
        Names of the features; empty if they had no names.
    n_features : int or None
        Number of features.
    classes : list
        Class labels.
    loo_error : float or None
        Leave-one-out error, if it was computed.
    created : str
        Date and time, UTC.
    versions : mapping of str to str
        Versions of Python and the main packages.
    details : mapping
        Further entries passed to :func:`save_model`.
    format : int
        Version of the file format.
    """

    __module__ = "leaveout"

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


def save_model(
    model: Any,
    path: str | Path,
    *,
    loo_error: float | None = None,
    feature_names: list[str] | None = None,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Write a fitted classifier to a file, with skops.

    An existing file is replaced only when the new one is complete.

    Parameters
    ----------
    model : classifier
        A fitted classifier of leaveout, or a Pipeline of scikit-learn transformers that
        ends in one. For a LooSearchCV, save its ``best_estimator_``.
    path : str or Path
        Path of the file, usually ``.skops``.
    loo_error : float, optional
        Leave-one-out error for the card; taken from the model for SVCCV and FeatureSVC.
    feature_names : list of str, optional
        Names of the features, if the model does not have them.
    details : mapping, optional
        Further entries of the card; must be JSON serialisable.

    Raises
    ------
    ModelFileError
        The model contains an object that is not allowed in a model file, for example a
        user-defined function.

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
    ...     lo.save_model(model, Path(folder, "model.skops"), loo_error=0.25)
    ...     again = lo.load_model(Path(folder, "model.skops"))
    ...     card = lo.read_model_card(Path(folder, "model.skops"))
    >>> again.predict([[2.0]]), card.loo_error
    (array(['yes'], dtype='<U3'), 0.25)
    """
    _check_model(model)
    card = _make_card(model, loo_error, feature_names, details)
    raw = _import_skops().dumps(model, compression=ZIP_DEFLATED, compresslevel=1)
    buffer = BytesIO(raw)
    with ZipFile(buffer, "a", ZIP_DEFLATED) as archive:
        schema = json.loads(archive.read(SCHEMA))
        _check_schema(schema, "This model cannot be saved in a model file")
        archive.writestr(CARD, card.to_json())
    write_atomically(path, buffer.getvalue())


def load_model(path: str | Path) -> Any:
    """Read a classifier written by :func:`save_model`. No code in the file is run.

    Raises
    ------
    OSError
        The file is missing or cannot be read.
    ModelFileError
        The file is corrupt, has another format, or contains types that are not allowed.

    See Also
    --------
    save_model : Write the file; with an example.
    """
    with _open(path) as (archive, raw, _, what):
        _check_schema(json.loads(archive.read(SCHEMA)), what)
        model = _import_skops().loads(raw, trusted=TRUSTED)
        if not _is_ours(model):
            raise ModelFileError(f"{what}: it contains no classifier of leaveout.")
        _check_arrays(model, what)
    return model


def read_model_card(path: str | Path) -> ModelCard:
    """Read the card of a model file without loading the model.

    The card has feature names, classes, leave-one-out error, date and versions. Errors
    are those of :func:`load_model`.

    See Also
    --------
    save_model : Write the file; with an example.
    """
    with _open(path) as (_, _, card, _):
        return card


def _make_card(
    model: Any, loo_error: Any, feature_names: list[str] | None, details: Any
) -> ModelCard:
    """Return the card of a fitted classifier."""
    if feature_names is None:
        feature_names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    if loo_error is None:
        loo_error = getattr(_steps(model)[-1], "loo_error_", None)
    if hasattr(loo_error, "proved"):  # FeatureSVC's bounds, which may be equal
        loo_error = loo_error.low if loo_error.proved else None
    return ModelCard(
        model=" + ".join(type(step).__name__ for step in _steps(model)),
        feature_names=feature_names,
        n_features=getattr(model, "n_features_in_", None),
        classes=model.classes_.tolist(),
        loo_error=None if loo_error is None else float(loo_error),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=installed_versions(),
        details=dict(details or {}),
    )


def installed_versions() -> dict[str, str]:
    """Return the versions of Python and the main packages."""
    found = {"python": platform.python_version()}
    for package in ("leaveout", "scikit-learn", "numpy", "skops"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # run from a source tree
            found[package] = "unknown"
    return found


def _steps(model: Any) -> list[Any]:
    """Return the steps of a Pipeline, or the model alone."""
    return [step for _, step in getattr(model, "steps", [("", model)])]


def _is_ours(model: Any) -> bool:
    """Return whether the last step is a classifier of leaveout."""
    last = type(_steps(model)[-1])
    return f"{last.__module__}.{last.__name__}" in CLASSIFIERS


def _check_model(model: Any) -> None:
    """Refuse anything but a fitted classifier of leaveout, with advice."""
    if _is_ours(model):
        check_is_fitted(model)
        return
    last = _steps(model)[-1]
    reason = "use a classifier of leaveout, or a Pipeline that ends in one"
    if hasattr(last, "best_estimator_"):
        reason = "it is a search. Save its best_estimator_"
    elif type(last).__module__.startswith("sklearn.svm"):
        reason = (
            "its compiled code does not check the shapes of arrays, so an untrusted "
            "file could crash it. Use leaveout.SVC instead"
        )
    kind = type(last).__name__
    if type(last).__module__.startswith("sklearn."):
        kind = f"scikit-learn's {kind}"
    raise TypeError(f"{kind} cannot be saved: {reason}.")


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


@contextmanager
def _open(path: str | Path) -> Iterator[tuple[ZipFile, bytes, ModelCard, str]]:
    """Open a model file; convert errors of a corrupt one into ModelFileError."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"No file '{path}'. Pass the path of a model file.")
    raw = path.read_bytes()
    what = f"'{path}' is not a leaveout model file, or is corrupt"
    try:
        with ZipFile(BytesIO(raw)) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
            if unpacked > MAX_BYTES + MAX_RATIO * len(raw):
                raise ModelFileError(f"{what}: it unpacks to {unpacked:,} bytes.")
            yield archive, raw, _read_card(archive, what), what
    except ModelFileError:
        raise
    except Exception as why:  # zipfile, json, numpy and skops raise many types
        if isinstance(why, ModuleNotFoundError) and why.name == "skops":
            raise
        reason = printable(str(why).strip().split("\n")[0])
        raise ModelFileError(
            f"{what}: {reason or type(why).__name__}. Save the model again."
        ) from why


def _read_card(archive: ZipFile, what: str) -> ModelCard:
    if CARD not in archive.namelist():
        raise ModelFileError(f"{what}: it does not contain {CARD}.")
    card = ModelCard(**json.loads(archive.read(CARD)))
    number, whole = float | int | None, int | None
    kinds: Any = (str, list, whole, list, number, str, dict, dict, int)
    pairs = zip(vars(card).items(), kinds, strict=True)
    invalid = [name for (name, value), kind in pairs if not isinstance(value, kind)]
    if not invalid and not all(isinstance(name, str) for name in card.feature_names):
        invalid = ["feature_names"]
    if invalid:
        raise ModelFileError(f"{what}: {CARD} has an invalid {', '.join(invalid)}.")
    if card.format > FORMAT:
        raise ModelFileError(
            f"{what}: it was written by leaveout {card.versions.get('leaveout')} in a "
            "later format. Upgrade leaveout."
        )
    return card


def _check_schema(schema: Any, what: str) -> None:
    """Refuse a tree with a node that is not in the lists; nothing is imported."""
    branches = list(_walk(schema, _children))
    nodes = [
        (node.get("__loader__"), f"{node.get('__module__')}.{node.get('__class__')}")
        for node in branches
        if isinstance(node, dict) and node.keys() & {"__loader__", "__class__"}
    ]
    foreign = sorted({name for loader, name in nodes if not _is_allowed(loader, name)})
    if foreign:
        names = printable(", ".join(foreign[:5]))
        raise ModelFileError(f"{what}: it contains {names}.")
    if _expanded_size(schema, branches) > MAX_NODES + MAX_EXPANSION * len(branches):
        raise ModelFileError(f"{what}: its {len(branches):,} nodes expand to too many.")


def _is_allowed(loader: Any, name: str) -> bool:
    if loader == "CachedNode":  # refers to another node
        return True
    if loader == "ObjectNode":
        root, package = [*name.split("."), ""][:2]
        in_sklearn = root == "sklearn" and package in SKLEARN_PACKAGES
        return in_sklearn or name in CLASSIFIERS | RESULTS
    return name in TYPES.get(str(loader), ())


def _walk(root: Any, children: Callable[[Any], Iterable[Any]]) -> Iterator[Any]:
    """Yield an object and all objects below it once, without recursion."""
    stack, seen = [root], set()
    while stack:
        part = stack.pop()
        if id(part) not in seen:
            seen.add(id(part))
            yield part
            stack += children(part)


def _children(branch: Any) -> list[Any]:
    """Return the child nodes of a JSON node."""
    if isinstance(branch, dict):
        return list(branch.values())
    return branch if isinstance(branch, list) else []


def _expanded_size(tree: Any, branches: list[Any]) -> int:
    """Count the nodes that skops visits, with references expanded.

    A chain of 60 lists, each containing the previous one twice, would keep skops busy
    forever. A deep tree, or a cyclic reference, raises RecursionError.
    """
    nodes = [b for b in branches if isinstance(b, dict) and "__id__" in b]
    original = {b["__id__"]: b for b in nodes if b.get("__loader__") != "CachedNode"}
    sizes: dict[int, int] = {}

    def size(branch: Any) -> int:
        if isinstance(branch, dict) and branch.get("__loader__") == "CachedNode":
            branch = original.get(branch.get("__id__"))
        if id(branch) not in sizes:
            sizes[id(branch)] = 1 + sum(size(part) for part in _children(branch))
        return sizes[id(branch)]

    return size(tree)


def _check_arrays(model: Any, what: str) -> None:
    """Refuse sparse matrices and classifiers with inconsistent arrays."""
    for part in _walk(model, _parts):
        if sparse.issparse(part):
            part.check_format(full_check=True)
        elif hasattr(part, "support_vectors_"):
            wrong = [name for name, fits in _fitting(part) if not fits]
            if wrong:
                name = f"{wrong[0]} of its {type(part).__name__}"
                raise ModelFileError(f"{what}: {name} has an inconsistent shape.")


def _parts(part: Any) -> Iterable[Any]:
    """Return the parts of an object in a model."""
    if isinstance(part, dict):
        return [*part.keys(), *part.values()]
    if isinstance(part, list | tuple | set | frozenset):
        return part
    if isinstance(part, np.ndarray):
        return part.ravel().tolist() if part.dtype == object else []
    is_object = hasattr(part, "__dict__") and not isinstance(part, type)
    return [vars(part)] if is_object else []


def _fitting(svm: Any) -> Iterator[tuple[str, bool]]:
    """Yield attributes of a kernel classifier, and whether they are consistent."""
    n_classes, n_support = len(svm.classes_), len(svm.support_)
    n_samples, n_features = svm.shape_fit_
    yield "classes_", np.ndim(svm.classes_) == 1 and n_classes >= 2
    yield "support_", svm.support_.shape == (n_support,)
    yield "support_", bool(((svm.support_ >= 0) & (svm.support_ < n_samples)).all())
    shape = (0, 0) if svm.kernel == "precomputed" else (n_support, n_features)
    yield "support_vectors_", svm.support_vectors_.shape == shape
    if hasattr(svm, "expansion_coef_"):
        shape = svm.expansion_coef_.shape
        yield "expansion_coef_", shape[0] == n_classes or shape[0] + 1 == n_classes == 2
        yield "expansion_coef_", shape[1:] == (n_samples,)
        yield "intercept_", svm.intercept_.shape == shape[:1]
        return
    counts = np.asarray(svm.n_support_)
    yield "n_support_", counts.shape == (n_classes,) and bool((counts >= 0).all())
    yield "n_support_", int(counts.sum(dtype=np.int64)) == n_support
    yield "intercept_", svm.intercept_.shape == (n_classes * (n_classes - 1) // 2,)
    yield "dual_coef_", svm.dual_coef_.shape == (n_classes - 1, n_support)
