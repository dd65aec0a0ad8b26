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
FUNCTIONS = frozenset(
    {f"numpy.{name}" for name, f in vars(np).items() if isinstance(f, np.ufunc)}
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
# What of the above skops would not take by itself.
TRUSTED = sorted(OWN_TYPES | FUNCTIONS | _MATRICES | {"numpy.dtype", _PROVED_ERROR})


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
        raise ModelFileError(f"{what}: it has {', '.join(foreign[:5])} inside.")


def _nodes(tree: Any) -> Iterator[tuple[Any, str]]:
    """Yield loader and type of every node, at any depth, without recursion."""
    stack = [tree]
    while stack:
        branch = stack.pop()
        if isinstance(branch, dict):
            if "__loader__" in branch or "__class__" in branch:
                name = f"{branch.get('__module__')}.{branch.get('__class__')}"
                yield branch.get("__loader__"), name
            stack.extend(branch.values())
        elif isinstance(branch, list):
            stack.extend(branch)


def _is_allowed(loader: Any, name: str) -> bool:
    if loader == "CachedNode":  # stands for a node seen before
        return True
    if loader == "ObjectNode":
        root, _, rest = name.partition(".")
        package = rest.split(".")[0]
        return name in OWN_TYPES or (root == "sklearn" and package in SKLEARN_PACKAGES)
    return name in BY_LOADER.get(str(loader), ())
