# SPDX-License-Identifier: BSD-3-Clause
"""Model files: save_model, load_model and the card that describes a model.

What a model file says about its model, readable without loading the model.

Which objects a model file may hold; everything else is refused unread.

A skops file is a tree of nodes, each with the kind of node (its loader) and a type to
be made of it. Before skops sees a file, every node must be in the list below. skops
then applies its own list, which for scikit-learn are the public estimators.

Whether the arrays of a model from a file fit together.

Compiled code of scikit-learn and SciPy takes for granted that they do: with a support
vector too few or a column too far it reads memory that is not its own.

Fitted classifiers in files, without pickle: a file is data, never a program.

A model file is what skops writes for the estimator, a zip archive, plus one member
with the card (leaveout.json).
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import sklearn.svm
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from leaveout._messages import printable
from leaveout.estimators._svc import SVC
from leaveout.exceptions import ModelFileError
from leaveout.large._loo import ProvedError
from leaveout.run._files import write_atomically
from leaveout.tune._search import LooSearchCV

# Files of a later format are refused, not guessed at.
FORMAT = 1
OWN_TYPES = frozenset(
    {
        "leaveout.FeatureSVC",
        "leaveout.LLWClassifier",
        "leaveout.LOOMClassifier",
        "leaveout.LPMClassifier",
        "leaveout.SVC",
        "leaveout.SVCCV",
        "leaveout.LooResult",
    }
)
_PROVED_ERROR = "leaveout.ProvedError"
SKLEARN_PACKAGES = (
    "calibration", "compose", "decomposition", "feature_extraction",
    "feature_selection", "frozen", "impute", "kernel_approximation", "multiclass",
    "pipeline", "preprocessing", "random_projection", "svm",
)  # fmt: skip
_SCORES = "sklearn.feature_selection._univariate_selection"
# The second as NumPy 1 names them, the third as 2.0 and 2.1 do.
_UFUNC_MODULES = (
    "numpy",
    "numpy.core._multiarray_umath",
    "numpy._core._multiarray_umath",
)
FUNCTIONS = frozenset(
    {
        f"{module}.{name}"
        for name, function in vars(np).items()
        if isinstance(function, np.ufunc)
        for module in _UFUNC_MODULES
    }
    | {f"{_SCORES}.{name}" for name in ("f_classif", "chi2")}
    | {"sklearn.feature_selection._mutual_info.mutual_info_classif"}
)
_SCALARS = frozenset(f"numpy.{kind.__name__}" for kind in np.sctypeDict.values())
_PLAIN = frozenset(
    f"builtins.{name}" for name in ("str", "int", "float", "bool", "NoneType")
)
_MATRICES = frozenset(
    f"{kind.__module__}.{kind.__name__}"
    for kind in (
        sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.csc_array,
    )
)  # fmt: skip
BY_LOADER = {
    "DictNode": frozenset({"builtins.dict"}),
    "ListNode": frozenset({"builtins.list"}),
    "TupleNode": frozenset({"builtins.tuple", _PROVED_ERROR}),
    "SetNode": frozenset({"builtins.set"}),
    "SliceNode": frozenset({"builtins.slice"}),
    "JsonNode": _PLAIN,
    "TypeNode": _PLAIN | _SCALARS,
    "NdArrayNode": _SCALARS | {"numpy.ndarray"},
    "DTypeNode": frozenset({"numpy.dtype"}),
    "MaskedArrayNode": frozenset({"numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray"}),
    "SparseMatrixNode": _MATRICES,
    "FunctionNode": FUNCTIONS,
}
# Nodes may stand for others; so many times the nodes there are may come of it.
MAX_EXPANSION, N_NODES_FREE = 10, 10_000
# In fitted ColumnTransformers of scikit-learn 1.6: a list of column names.
_COLUMN_LIST = "sklearn.compose._column_transformer._RemainderColsList"
# What of the above skops would not take by itself.
TRUSTED = sorted(
    OWN_TYPES | FUNCTIONS | _MATRICES | {"numpy.dtype", _COLUMN_LIST, _PROVED_ERROR}
)
# Kinds of machine in scikit-learn's LIBSVM that are classifiers.
LIBSVM_CLASSIFIERS = ("c_svc", "nu_svc")
CARD = "leaveout.json"
SCHEMA = "schema.json"
# Lists of names shrink to a hundredth, arrays hardly; beyond this it is a trap.
N_BYTES_FREE, MAX_RATIO = 2**28, 50


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
    >>> model = lo.SVC(kernel="linear").fit([[0.0], [1.0]], ["no", "yes"])
    >>> from leaveout._model_file import make_card
    >>> make_card(model, loo_error=0.5).classes
    ['no', 'yes']
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


def check_schema(schema: Any, what: str) -> None:
    """Refuse a schema with a node that is not in the list; nothing is imported.

    Parameters
    ----------
    schema : object
        Content of schema.json.
    what : str
        Start of the message: "'model.skops' is no model file", for example.

    Raises
    ------
    ModelFileError
        Names the types.

    Examples
    --------
    >>> node = {"__loader__": "FunctionNode", "__module__": "os", "__class__": "system"}
    >>> check_schema(node, "This is no model file")
    Traceback (most recent call last):
    ...
    leaveout.ModelFileError: This is no model file: it has os.system inside.
    """
    foreign = sorted(
        {name for loader, name in _nodes(schema) if not _is_allowed(loader, name)}
    )
    if foreign:
        names = printable(", ".join(foreign[:5]))
        raise ModelFileError(f"{what}: it has {names} inside.")
    n_nodes = sum(1 for _ in _branches(schema))
    if _expanded_size(schema) > N_NODES_FREE + MAX_EXPANSION * n_nodes:
        raise ModelFileError(f"{what}: its {n_nodes:,} nodes unfold to far more.")


def _branches(tree: Any) -> Iterator[Any]:
    """Yield every dict, list and leaf of a tree, without recursion."""
    stack = [tree]
    while stack:
        branch = stack.pop()
        yield branch
        stack.extend(_below(branch))


def _below(branch: Any) -> list[Any]:
    if isinstance(branch, dict):
        return list(branch.values())
    return branch if isinstance(branch, list) else []


def _nodes(tree: Any) -> Iterator[tuple[Any, str]]:
    """Yield loader and type of every node, at any depth."""
    for branch in _branches(tree):
        if isinstance(branch, dict) and branch.keys() & {"__loader__", "__class__"}:
            name = f"{branch.get('__module__')}.{branch.get('__class__')}"
            yield branch.get("__loader__"), name


def _expanded_size(tree: Any) -> int:
    """Count the nodes that skops visits: one that stands for another counts as it.

    Each of a chain of lists may hold the one before twice; sixty of them would keep
    skops busy for ever.

    Raises
    ------
    RecursionError
        If the tree is deep, or a node stands for one it is part of.
    """
    original = {
        branch["__id__"]: branch
        for branch in _branches(tree)
        if isinstance(branch, dict)
        and "__id__" in branch
        and branch.get("__loader__") != "CachedNode"
    }
    sizes: dict[int, int] = {}

    def size(branch: Any) -> int:
        if isinstance(branch, dict) and branch.get("__loader__") == "CachedNode":
            branch = original.get(branch.get("__id__"))
        if id(branch) not in sizes:
            sizes[id(branch)] = 1 + sum(size(part) for part in _below(branch))
        return sizes[id(branch)]

    return size(tree)


def _is_allowed(loader: Any, name: str) -> bool:
    if loader == "CachedNode":  # stands for a node seen before
        return True
    if loader == "ObjectNode":
        root, _, rest = name.partition(".")
        package = rest.split(".")[0]
        return name in OWN_TYPES or (root == "sklearn" and package in SKLEARN_PACKAGES)
    return name in BY_LOADER.get(str(loader), ())


def check_array_shapes(model: Any, what: str) -> None:
    """Refuse a model with a part whose arrays do not fit together.

    Parameters
    ----------
    model : object
        As it came out of a file.
    what : str
        Start of the message: "'model.skops' is no model file", for example.

    Raises
    ------
    ModelFileError
        Names the attribute.

    Examples
    --------
    >>> import leaveout as lo
    >>> model = lo.SVC(kernel="linear").fit([[0.0], [1.0]], ["no", "yes"])
    >>> model.n_support_[0] = 1000
    >>> check_array_shapes(model, "This is no model file")
    Traceback (most recent call last):
    ...
    leaveout.ModelFileError: This is no model file: n_support_ of its SVC \
does not fit the rest.
    """
    for part in _parts(model):
        if sparse.issparse(part):
            _check_sparse(part, what)
        elif isinstance(part, SVC | sklearn.svm.SVC | sklearn.svm.NuSVC):
            for name, fits in _svm_fits(part):
                if not fits:
                    kind = type(part).__name__
                    raise ModelFileError(
                        f"{what}: {name} of its {kind} does not fit the rest."
                    )
        elif isinstance(part, sklearn.svm.OneClassSVM | sklearn.svm.SVR):
            raise ModelFileError(f"{what}: it has {type(part).__name__} inside.")


def _parts(model: Any) -> Iterator[Any]:
    """Yield all objects in a model once, at any depth, without recursion."""
    stack, seen = [model], set()
    while stack:
        part = stack.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, dict):
            stack += [*part.keys(), *part.values()]
        elif isinstance(part, list | tuple | set | frozenset):
            stack += part
        elif isinstance(part, np.ndarray):
            stack += part.ravel().tolist() if part.dtype == object else []
        elif hasattr(part, "__dict__") and not isinstance(part, type):
            stack.append(vars(part))


def _check_sparse(matrix: Any, what: str) -> None:
    """Refuse row starts that go back, and columns that are not there."""
    if matrix.format not in ("csr", "csc"):
        raise ModelFileError(f"{what}: it has a {matrix.format} matrix inside.")
    try:
        matrix.check_format(full_check=True)
    except ValueError as why:
        raise ModelFileError(f"{what}: a sparse matrix is broken, {why}.") from why


def _svm_fits(svm: Any) -> Iterator[tuple[str, bool]]:
    """Yield the names of attributes, and whether their shapes are those of a fit."""
    if not any(name.endswith("_") for name in vars(svm)):
        return  # not fitted, as the model inside a OneVsRestClassifier is
    ours = isinstance(svm, SVC)
    n_classes, n_support = len(svm.classes_), len(svm.support_)
    n_pairs = n_classes * (n_classes - 1) // 2
    n_samples, n_features = svm.shape_fit_
    counts = np.asarray(svm.n_support_ if ours else svm._n_support)
    yield "classes_", np.ndim(svm.classes_) == 1 and n_classes >= 2
    yield "n_support_", counts.shape == (n_classes,) and bool((counts >= 0).all())
    yield "n_support_", int(counts.sum(dtype=np.int64)) == n_support
    yield "support_", svm.support_.shape == (n_support,)
    yield "support_", bool(((svm.support_ >= 0) & (svm.support_ < n_samples)).all())
    yield "intercept_", svm.intercept_.shape == (n_pairs,)
    yield "dual_coef_", _is_full(svm.dual_coef_, (n_classes - 1, n_support))
    if svm.kernel == "precomputed":
        yield "support_vectors_", svm.support_vectors_.shape == (0, 0)
    else:
        yield "support_vectors_", svm.support_vectors_.shape == (n_support, n_features)
    if not ours:
        is_sparse = sparse.issparse(svm.support_vectors_)
        yield "_impl", svm._impl in LIBSVM_CLASSIFIERS
        yield "_sparse", svm._sparse is is_sparse
        yield "_intercept_", svm._intercept_.shape == (n_pairs,)
        yield "_dual_coef_", _is_full(svm._dual_coef_, (n_classes - 1, n_support))
        yield "_dual_coef_", sparse.issparse(svm._dual_coef_) == is_sparse
        yield "_probA", svm._probA.shape in ((0,), (n_pairs,))
        yield "_probB", svm._probB.shape == svm._probA.shape


def _is_full(coefficients: Any, shape: tuple[int, int]) -> bool:
    """Whether there is a number for each entry; LIBSVM reads the data of a CSR so."""
    n_stored = coefficients.nnz if sparse.issparse(coefficients) else coefficients.size
    return coefficients.shape == shape and n_stored == shape[0] * shape[1]


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
        check_array_shapes(model, what)
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
        reason = printable(str(why).strip().split("\n")[0])
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
