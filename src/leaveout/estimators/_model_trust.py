# SPDX-License-Identifier: BSD-3-Clause
"""Which objects a model file may hold; everything else is refused unread.

A skops file is a tree of nodes, each with the kind of node (its loader) and a type to
be made of it. Before skops sees a file, every node must be in the list below. skops
then applies its own list, which for scikit-learn are the public estimators.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from leaveout.data import printable
from leaveout.exceptions import ModelFileError

OWN_TYPES = frozenset(
    {
        "leaveout.estimators._feature_svc.FeatureSVC",
        "leaveout.estimators._llw.LLWClassifier",
        "leaveout.estimators._loom.LOOMClassifier",
        "leaveout.estimators._lpm.LPMClassifier",
        "leaveout.estimators._svc.SVC",
        "leaveout.estimators._svccv.SVCCV",
        "leaveout.loo._result.LooResult",
    }
)
_PROVED_ERROR = "leaveout.loo._linear_loo.ProvedError"
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
    >>> from leaveout.estimators import check_schema
    >>> node = {"__loader__": "FunctionNode", "__module__": "os", "__class__": "system"}
    >>> check_schema(node, "This is no model file")
    Traceback (most recent call last):
    ...
    leaveout.exceptions.ModelFileError: This is no model file: it has os.system inside.
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
