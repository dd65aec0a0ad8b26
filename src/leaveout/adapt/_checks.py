# SPDX-License-Identifier: BSD-3-Clause
"""Checks of user input: each message names the argument, the problem and the fix."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import validate_data

from leaveout._typing import BoolArray, FloatArray
from leaveout.exceptions import GramTooLargeError
from leaveout.kernel._gram import is_plain
from leaveout.kernel._gram_fast import is_finite
from leaveout.loo._task import LARGEST_PENALTY, Params
from leaveout.run._memory import GIB, available_memory
from leaveout.run._parallel import count_workers, runs_here

# Within this range, products of three kernel values and a C of 1e12 do not overflow.
SMALLEST_KERNEL, LARGEST_KERNEL = 1e-90, 1e90
# Measured peak number of n x n matrices: the Gram matrix, the solver's copy, and those
# of the method. Walks store one column per sample they visit, 0.3 to 4 matrices; they
# count as one, so that nothing feasible is refused.
FIT = 2
MATRICES = {"auto": 3, "walk": 3, "consolidated": 12, "magic": 12}
# Smaller requests are not checked: reading the limits takes as long as a small fit.
SMALL = 2**26
# More classes than this, with fewer samples each, are not classes.
MANY_CLASSES, LEAST_CLASS_SIZE = 20, 3
# Kinds of arrays that are labels and cannot have missing entries.
LABELS = "biuUS"
# Squares of larger numbers would overflow.
LARGEST_NUMBER = 1e150


def check_number(
    name: str, value: Any, *, above: float, inclusive: bool = False
) -> float:
    """Return a finite number larger than ``above``, or equal to it if ``inclusive``."""
    real = type(value) is float or isinstance(value, Real)
    if not real or isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be a number; got {value!r}.")
    number = float(value)
    if not (above < number < np.inf or (inclusive and number == above)):
        sign = ">=" if inclusive else ">"
        raise ValueError(
            f"{name} must be a finite number {sign} {above:g}; got {value!r}."
        )
    return number


def check_penalty(C: Any, name: str = "C") -> float:
    """Return C, finite and positive."""
    if isinstance(C, Real) and float(C) > LARGEST_PENALTY:
        what = "finite" if C == np.inf else f"at most {LARGEST_PENALTY:g}"
        raise ValueError(
            f"{name} must be {what}; got {C!r}. For a hard margin use a large value "
            f"such as {name}=1e6."
        )
    return check_number(name, C, above=0.0)


def check_params(params: Params, *, hard_margin: bool = False) -> None:
    """Raise if a parameter is invalid; the kernel checks its own parameters."""
    if not (hard_margin and isinstance(params.C, Real) and params.C == np.inf):
        check_penalty(params.C)
    check_number("epsilon", params.epsilon, above=0.0, inclusive=True)
    check_number("nu", params.nu, above=0.0, inclusive=True)
    if params.loss not in ("hinge", "quadratic"):
        raise ValueError(f"loss must be 'hinge' or 'quadratic'; got {params.loss!r}.")
    check_number("tol", params.tol, above=0.0)
    check_count("max_iter", params.max_iter, least=-1)
    check_flag("fit_intercept", params.fit_intercept)
    shape = params.decision_function_shape
    if shape not in ("ovr", "ovo"):
        raise ValueError(
            f"decision_function_shape must be 'ovr' or 'ovo'; got {shape!r}."
        )
    if check_flag("break_ties", params.break_ties) and shape == "ovo":
        raise ValueError(
            "break_ties=True needs decision_function_shape='ovr': ties are broken by "
            "one value per class. Set break_ties=False or use 'ovr'."
        )
    check_class_weight(params.class_weight)


def check_penalties(Cs: Any, name: str = "Cs") -> FloatArray:
    """Return one or more values of C, finite and positive."""
    values = [check_penalty(C) for C in np.ravel(np.asarray(Cs, dtype=object))]
    if not values:
        raise ValueError(f"{name} is empty. Pass at least one value of C.")
    return np.array(values)


def middle_penalty(Cs: FloatArray) -> float:
    """Return the median C of a path; the others are expressed as multiples of it."""
    return float(np.sort(Cs)[(Cs.size - 1) // 2])


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Return an integer of at least ``least``."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer; got {value!r}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}; got {value}.")
    return int(value)


def check_flag(name: str, value: Any) -> bool:
    """Return a bool; refuse anything else."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; got {value!r}.")
    return bool(value)


def check_class_weight(class_weight: Any) -> None:
    """Refuse all but None, "balanced" and mappings to finite positive numbers."""
    if class_weight is None or class_weight == "balanced":
        return
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            "class_weight must be None, 'balanced' or a dict {label: weight}; "
            f"got {class_weight!r}."
        )
    for label, weight in class_weight.items():
        check_number(f"class_weight[{label!r}]", weight, above=0.0)


def check_kernel_size(K: FloatArray, who: str) -> None:
    """Raise if products of kernel values would be too large or too small."""
    top = float(max(K.max(initial=0.0), -K.min(initial=0.0)))
    if top and not SMALLEST_KERNEL <= top <= LARGEST_KERNEL:
        raise ValueError(
            f"{who} needs the largest kernel value to be between "
            f"{SMALLEST_KERNEL:g} and {LARGEST_KERNEL:g}; it is {top:.3g}. Standardise "
            "the features, or multiply the Gram matrix by s and divide C by s."
        )


def check_features(estimator: Any, X: Any, *, reset: bool | None) -> Any:
    """Return X as finite float64, dense and C-ordered or CSR.

    If ``reset`` is True, as in fit, the columns are stored in the estimator; if False,
    as in predict, they are compared with the stored ones; if None, neither.
    """
    if reset is None and is_plain(X) and is_finite(X):
        return X
    try:
        checked = check_array(
            X,
            accept_sparse="csr",
            dtype=np.float64,
            order="C",
            ensure_all_finite=False,  # _check_finite names row and column
            estimator=estimator,
            input_name="X",
        )
    except (TypeError, ValueError) as error:
        columns = _text_columns(X)
        if not columns:
            raise
        raise type(error)(
            f"X has values that are not numbers in {columns}: {error}. Encode such "
            "columns (sklearn.preprocessing.OneHotEncoder) or drop them."
        ) from error
    if sparse.issparse(checked):
        checked.check_format(full_check=True)  # SciPy's products trust the indices
    _check_finite(checked, getattr(X, "columns", None))
    owner = BaseEstimator() if reset is None else estimator
    validate_data(owner, X, reset=reset is not False, skip_check_array=True)
    return tidy_sparse(checked)


def check_preprocessing(preprocessing: Any) -> None:
    """Refuse all but "fold" and "frozen"."""
    if preprocessing not in ("fold", "frozen"):
        raise ValueError(
            "preprocessing must be 'fold' (steps fitted without each left-out sample) "
            f"or 'frozen' (fitted once on all rows); got {preprocessing!r}."
        )


def _check_column(y: Any, n_samples: int, model: str, entry: str) -> NDArray[Any]:
    """Return y as an array without missing entries, one per row of X."""
    if y is None:
        raise ValueError(
            f"The {model} requires y to be passed, but the target y is None. "
            f"Pass one {entry} per row of X."
        )
    if type(y) is not np.ndarray or y.ndim != 1 or y.dtype.kind == "c":
        y = column_or_1d(y, warn=True)
    if y.shape[0] != n_samples:
        raise ValueError(
            f"X has {n_samples} rows but y has {y.shape[0]} {entry}s. "
            f"Pass one {entry} per row of X."
        )
    missing = np.flatnonzero(is_missing(y)) if y.dtype.kind not in LABELS else y[:0]
    if missing.size:
        raise ValueError(
            f"y is missing (NaN, inf or None) in {missing.size} of {n_samples} rows, "
            f"first in row {missing[0]}. Drop these rows of X and y."
        )
    return y


def check_numbers(y: Any, n_samples: int) -> FloatArray:
    """Return a copy of y as an array of numbers to predict, one per row of X."""
    y = _check_column(y, n_samples, "regressor", "number")
    try:
        if y.dtype.kind in "cUSmM":  # text is refused, even if it reads as a number
            raise TypeError(f"they are of type {y.dtype}")
        numbers = y.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"y must hold real numbers for a regressor: {error}. For class labels use "
            "an SVC."
        ) from error
    largest = float(np.abs(numbers).max())
    if largest > LARGEST_NUMBER:
        raise ValueError(
            f"y must be at most {LARGEST_NUMBER:g} in absolute value; its largest is "
            f"{largest:g}. Divide y, C and epsilon by a common factor."
        )
    return numbers


def check_labels(y: Any, n_samples: int) -> NDArray[Any]:
    """Return a copy of y as an array of class labels, one per row of X.

    Results stay valid if the caller changes y later.
    """
    y = _check_column(y, n_samples, "classifier", "label")
    # Integers, bools and strings are labels; type_of_target would be slow.
    kind = "multiclass"
    if y.dtype.kind == "f":
        kind = "multiclass" if (y == np.trunc(y)).all() else "continuous"
    elif y.dtype.kind not in LABELS:
        kind = type_of_target(y, input_name="y")
    if kind not in ("binary", "multiclass"):
        advice = "It looks like a regression target: bin it, or use leaveout.SVR."
        if kind == "unknown":
            advice = "Use labels of one type: all text, or all whole numbers."
        raise ValueError(
            f"Unknown label type: {kind}. y must hold class labels; it has "
            f"{len(set(map(str, y)))} distinct values in {n_samples} rows, such as "
            f"{y[0]}. {advice}"
        )
    check_classes_repeat(Counter(y.tolist()))
    return y.copy()


def check_classes_repeat(counts: Mapping[Any, int]) -> None:
    """Refuse ids and numbers to predict: many classes, many of them with one sample.

    The mean class size alone does not decide: in a fold of 26 letters x 3 samples it
    is 2, as in 442 numbers of which 214 are distinct, but there 84 occur once.
    """
    n_rows, n_classes = sum(counts.values()), len(counts)
    if n_classes <= MANY_CLASSES:
        return
    n_single = sum(n == 1 for n in counts.values())
    few = n_rows < LEAST_CLASS_SIZE * n_classes and 3 * n_single > n_classes
    if few:
        raise ValueError(
            f"y has {n_classes} distinct values in {n_rows} rows, {n_single} of "
            "which occur only once. It looks like a regression target or an id: bin it "
            "into classes, or choose another target."
        )


def check_sample_weight(
    sample_weight: Any, n_samples: int, name: str = "sample_weight"
) -> FloatArray:
    """Return n_samples finite weights >= 0, not all of them 0."""
    if sample_weight is None:
        return np.ones(n_samples)
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must hold numbers: {error}. Pass one weight per row."
        ) from error
    if weights.ndim == 0:
        weights = np.full(n_samples, float(weights))
    if weights.shape != (n_samples,):
        raise ValueError(
            f"{name} has shape {weights.shape}, but X has {n_samples} rows. "
            "Pass one weight per row."
        )
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if bad.size:
        raise ValueError(
            f"{name} must be finite and >= 0; got {weights[bad[0]]:g} in row "
            f"{bad[0]} (such values: {bad.size}). Use 0 to ignore a row."
        )
    if not weights.any():
        raise ValueError(
            f"{name} is zero in all rows, so no row counts. "
            "Give some rows a weight > 0."
        )
    return weights


def check_groups(groups: Any, C: FloatArray) -> NDArray[np.intp]:
    """Return the group of each row as a number from 0; refuse a group of all rows."""
    n_samples = C.shape[0]
    names = _group_names(groups)
    if names.shape[0] != n_samples:
        raise ValueError(
            f"groups has {names.shape[0]} entries, but X has {n_samples} rows. Pass "
            "one entry per row."
        )
    missing = np.flatnonzero(is_missing(names))
    if missing.size:
        raise ValueError(
            f"groups is missing (NaN, inf or None) in {missing.size} of {n_samples} "
            f"rows, first in row {missing[0]}. Name the group of each row, or drop "
            "these rows."
        )
    codes = _number_groups(names)
    weight = np.bincount(codes, C > 0)
    whole = np.flatnonzero(weight == weight.sum())
    if whole.size:
        name = names[codes == whole[0]].tolist()[0]
        raise ValueError(
            f"groups: leaving out group {name!r} leaves no sample to train on. At "
            "least two groups are needed."
        )
    return codes


def _group_names(groups: Any) -> NDArray[Any]:
    """Return the groups unconverted: as floats, long integers could become equal."""
    names = np.asarray(groups, dtype=object if isinstance(groups, list) else None)
    if names.ndim == 2 and names.shape[1] == 1:
        names = names[:, 0]
    if names.ndim != 1:
        raise ValueError(
            f"groups has shape {names.shape}. Pass one entry per row of X."
        )
    return names


def _number_groups(names: NDArray[Any]) -> NDArray[np.intp]:
    """Return group numbers from 0, in sorted order if groups can be sorted."""
    try:
        return np.unique(names, return_inverse=True)[1].astype(np.intp)
    except TypeError:  # numbers and strings
        number_of: dict[Any, int] = {}
        numbers = [number_of.setdefault(name, len(number_of)) for name in names]
        return np.array(numbers, dtype=np.intp)


def check_ids(ids: Any, X: Any) -> NDArray[Any]:
    """Return one id per row: those passed, a DataFrame's index, or row numbers."""
    n_samples = count_rows(X)
    if ids is None:
        ids = X.index if hasattr(X, "iloc") else range(n_samples)
    found = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    # An object array keeps the tuples of a MultiIndex.
    names = np.empty(len(found), dtype=object)
    names[:] = found
    if names.shape[0] != n_samples:
        raise ValueError(
            f"ids has {names.shape[0]} entries, but X has {n_samples} rows. Pass one "
            "id per row."
        )
    return names


def _text_columns(X: Any) -> str:
    """Name the columns that cannot be read as numbers: "column 'sex'", or ""."""
    table = np.asarray(X, dtype=object) if not sparse.issparse(X) else np.empty(0)
    if table.ndim != 2:
        return ""
    names = getattr(X, "columns", range(table.shape[1]))
    bad = [
        repr(n) for n, column in zip(names, table.T, strict=True) if _is_text(column)
    ]
    more = f" and {len(bad) - 3} more" if len(bad) > 3 else ""
    return f"column {', '.join(bad[:3])}{more}" if bad else ""


def _is_text(column: NDArray[Any]) -> bool:
    try:
        column.astype(np.float64)
    except (TypeError, ValueError):
        return True
    return False


def tidy_sparse(X: Any) -> Any:
    """Return sparse X without duplicate entries, with 32-bit indices if possible."""
    if not sparse.issparse(X):
        return X
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    too_many = max(X.nnz, *X.shape) > np.iinfo(np.int32).max
    if X.indices.dtype == np.int32 or too_many:
        return X
    indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return type(X)((X.data, indices, indptr), shape=X.shape)


def _check_finite(X: Any, names: Any) -> None:
    """Raise if X has a NaN or an infinity, and say where the first one is."""
    values = X.data if sparse.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return
    bad = ~np.isfinite(values)
    if not bad.any():  # only the sum overflowed
        return
    k = int(np.argmax(bad))
    if sparse.issparse(X):
        row, column = np.searchsorted(X.indptr, k, side="right") - 1, X.indices[k]
    else:
        row, column = np.unravel_index(k, X.shape)
    label = column if names is None else repr(names[column])
    word = "infinity (inf)"
    advice = "Replace or drop such values, or rescale the column."
    if np.isnan(values.ravel()[k]):
        word = "NaN"
        advice = "Fill missing values (sklearn.impute.SimpleImputer) or drop the rows."
    raise ValueError(
        f"X contains {word} in row {row}, column {label}; values of X that are "
        f"not finite: {np.count_nonzero(bad)}. SVMs need finite numbers. {advice}"
    )


def count_rows(X: Any) -> int:
    """Return the number of rows of an array, a table or a list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def is_missing(labels: NDArray[Any]) -> BoolArray:
    """Return which labels are NaN, infinite, None or pandas' missing values."""
    if labels.dtype.kind in "fc":
        return ~np.isfinite(labels)
    if labels.dtype.kind in "mM":
        return np.isnat(labels)
    values = labels.tolist() if labels.dtype.kind == "O" else []
    if set(map(type, values)) <= {str, int, bool}:
        return np.zeros(labels.shape, dtype=np.bool_)
    return np.array([_is_missing(value) for value in values], dtype=np.bool_)


def _is_missing(label: Any) -> bool:
    if isinstance(label, float | np.floating):
        return not np.isfinite(label)
    return label is None or type(label).__name__ in ("NAType", "NaTType")


def check_memory(svc: Any, X: Any, method: str | None = None) -> None:
    """Raise if a fit (method None) or leave-one-out needs more than the free memory."""
    n_samples = count_rows(X) if hasattr(X, "__len__") or hasattr(X, "tocsr") else 0
    _check_gram_size(svc, n_samples, MATRICES.get(method or "", FIT))


def check_search_memory(
    svc: Any,
    n_samples: int,
    method: str,
    *,
    n_paths: int,
    n_jobs: int | None,
    refit: bool,
) -> None:
    """Raise if the paths that run at the same time need too much memory.

    On a cluster, each path checks the memory of its worker; only the refit runs here.
    """
    if runs_here():
        n_at_once = min(count_workers(n_jobs), n_paths)
        _check_gram_size(svc, n_samples, MATRICES.get(method, FIT), n_at_once)
    elif refit:
        _check_gram_size(svc, n_samples, FIT)


def _check_gram_size(
    svc: Any, n_samples: int, n_matrices: int, n_at_once: int = 1
) -> None:
    n_matrices -= svc.kernel == "precomputed"  # it exists already
    needed = 8 * n_samples**2 * n_matrices
    available: float | None = math.inf
    if n_at_once * needed >= SMALL:
        available = available_memory()
    if available is None or n_at_once * needed <= available:
        return
    if needed <= available:
        raise GramTooLargeError(
            f"{n_at_once} parallel candidates need {n_at_once * needed / GIB:.1f} GiB "
            f"for their Gram matrices; {available / GIB:.1f} GiB are available. Use "
            f"n_jobs={int(available // needed)}."
        )
    raise GramTooLargeError(
        f"The exact solution for {n_samples} rows needs {needed / GIB:.1f} GiB "
        f"({n_matrices} matrices of {n_samples} x {n_samples}); {available / GIB:.1f} "
        "GiB are available. Use leaveout.FeatureSVC, which works on approximate kernel "
        "features, or set LEAVEOUT_MEMORY_GIB if more memory is available."
    )
