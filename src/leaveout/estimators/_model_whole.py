# SPDX-License-Identifier: BSD-3-Clause
"""Whether the arrays of a model from a file fit together.

Compiled code of scikit-learn and SciPy takes for granted that they do: with a support
vector too few or a column too far it reads memory that is not its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import sklearn.svm
from scipy import sparse

from leaveout.estimators._svc import SVC
from leaveout.exceptions import ModelFileError

# Kinds of machine in scikit-learn's LIBSVM that are classifiers.
LIBSVM_CLASSIFIERS = ("c_svc", "nu_svc")


def check_whole(model: Any, what: str) -> None:
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
    >>> from leaveout.estimators import check_whole
    >>> model = lo.SVC(kernel="linear").fit([[0.0], [1.0]], ["no", "yes"])
    >>> model.n_support_[0] = 1000
    >>> check_whole(model, "This is no model file")
    Traceback (most recent call last):
    ...
    leaveout.exceptions.ModelFileError: This is no model file: n_support_ of its SVC \
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
