# SPDX-License-Identifier: BSD-3-Clause
"""Steps before an SVC, fitted once on all rows, and refused if they look at y."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from leaveout.estimators._check import check_labels, count_rows
from leaveout.exceptions import PreprocessingWarning

# A step that uses y shows it under the first of these, nearly always. A choice of 5 out
# of 6 features may by chance be the same once, hardly five times.
N_PERMUTATIONS = 5
# Of scikit-learn, those whose fit is documented to ignore y. They need no such trial,
# which costs six fits, in a nested leave-one-out six for each sample.
IGNORE_LABELS = frozenset(
    "FrozenEstimator MaxAbsScaler MinMaxScaler MissingIndicator Normalizer "
    "OneHotEncoder OrdinalEncoder PolynomialFeatures RobustScaler SimpleImputer "
    "StandardScaler".split()
)


def transform_once(
    steps: Sequence[tuple[str, Any]], X: Any, y: Any, *, stacklevel: int
) -> Any:
    """Return X after all steps, each fitted on all rows; the steps are not changed.

    Warns that the left-out sample takes part in them, unless none was to be fitted.

    Parameters
    ----------
    steps : sequence of (str, transformer)
        At least one.
    X : object
        What the first step takes.
    y : array-like of shape (n,)
        Class labels.
    stacklevel : int
        Whose line the warning names.

    Raises
    ------
    ValueError
        If the output of a step depends on y, or changes from fit to fit.
    """
    labels = check_labels(y, count_rows(X))
    for name, step in steps:
        if not _known_to_ignore_labels(step):
            _check_ignores_labels(name, step, X, labels)
        X = fit_transform(clone(step), X, labels)
    fitted = [repr(name) for name, s in steps if not isinstance(s, FrozenEstimator)]
    if fitted:
        warnings.warn(
            f"The Pipeline's {', '.join(fitted)} {'is' if len(fitted) == 1 else 'are'} "
            "fitted once on all rows, also those left out later; "
            "preprocessing='refit', in leave_one_out and LooSearchCV, fits anew "
            "without each sample, which is slower.",
            PreprocessingWarning,
            stacklevel=stacklevel,
        )
    return X


def fit_transform(transformer: Any, X: Any, labels: NDArray[Any]) -> Any:
    """Fit and transform the way Pipeline does."""
    if hasattr(transformer, "fit_transform"):
        return transformer.fit_transform(X, labels)
    return transformer.fit(X, labels).transform(X)


def _known_to_ignore_labels(step: Any) -> bool:
    """Whether a step, and each one inside it, is of a listed class; not a subclass."""
    if isinstance(step, str):  # "passthrough" and "drop"
        return True
    kind = type(step)
    if not kind.__module__.startswith("sklearn."):
        return False
    if kind.__name__ == "ColumnTransformer":
        inner = [part for _, part, _ in step.transformers]
        return all(map(_known_to_ignore_labels, [*inner, step.remainder]))
    return kind.__name__ in IGNORE_LABELS


def _check_ignores_labels(name: str, step: Any, X: Any, labels: NDArray[Any]) -> None:
    """Raise if the output of a step depends on the labels.

    Tags do not tell: SelectKBest does not declare it. So the step is fitted on permuted
    labels, and its outputs are compared.
    """
    what = f"Step {name!r} ({type(step).__name__})"
    with warnings.catch_warnings(), _global_random_state_restored():
        warnings.simplefilter("ignore")  # the fit that counts gives them
        wanted = _fit_seeded(step, X, labels)
        for permuted in _permutations(labels):
            if _output_stays(step, X, permuted, wanted):
                continue
            if not _output_stays(step, X, labels, wanted):
                raise ValueError(
                    f"{what} gives another output at every fit on the same rows, so it "
                    "cannot be seen whether it uses y. Make it deterministic (set its "
                    "random_state), or use leave_one_out(..., preprocessing='refit')."
                )
            raise ValueError(
                f"{what} uses y: fitted once on all rows it has seen the labels of the "
                "samples left out later, and the error comes out too small. Use "
                "leave_one_out(..., preprocessing='refit'), which fits it without each "
                "left-out sample."
            )


def _output_stays(step: Any, X: Any, labels: NDArray[Any], wanted: Any) -> bool:
    """Whether a fit on these labels succeeds and gives the wanted output."""
    try:
        found = _fit_seeded(step, X, labels)
    except Exception:  # it worked on other labels: the labels matter
        return False
    return _same(found, wanted)


def _fit_seeded(step: Any, X: Any, labels: NDArray[Any]) -> Any:
    """Fit a clone; whatever random_state=None draws is the same in every call."""
    np.random.seed(0)  # noqa: NPY002, the generator behind random_state=None
    return fit_transform(clone(step), X, labels)


@contextmanager
def _global_random_state_restored() -> Iterator[None]:
    """Leave NumPy's global generator as it was."""
    state = np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002


def _permutations(labels: NDArray[Any]) -> list[NDArray[Any]]:
    """Return permutations of the labels that differ from them; none if all are one."""
    if (labels == labels[0]).all():
        return []
    rng = np.random.default_rng(0)
    found: list[NDArray[Any]] = []
    while len(found) < N_PERMUTATIONS:
        permuted = rng.permutation(labels)
        if (permuted != labels).any():
            found.append(permuted)
    return found


def _same(found: Any, wanted: Any) -> bool:
    """Whether two outputs are equal to rounding, NaN at the same places."""
    if isinstance(wanted, tuple):  # PLSRegression returns the scores of X and of y
        return isinstance(found, tuple) and all(map(_same, found, wanted))
    if sparse.issparse(wanted):
        return sparse.issparse(found) and _same_sparse(found, wanted)
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape:
        return False
    try:
        found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    except (TypeError, ValueError):
        return bool(np.all((found == wanted) | ((found != found) & (wanted != wanted))))
    return _close(found, wanted)


def _same_sparse(found: Any, wanted: Any) -> bool:
    """Compare what is stored, and where."""
    if found.shape != wanted.shape:
        return False
    found, wanted = sparse.csr_array(found), sparse.csr_array(wanted)
    for matrix in (found, wanted):
        matrix.sum_duplicates()
    places = np.array_equal(found.indptr, wanted.indptr) and np.array_equal(
        found.indices, wanted.indices
    )
    return places and _close(found.data, wanted.data)


def _close(found: NDArray[Any], wanted: NDArray[Any]) -> bool:
    """Equal up to 1e-6, and up to 1e-9 of the largest value of each column."""
    finite = np.where(np.isfinite(wanted), np.abs(wanted), 0.0)
    atol = 1e-9 * finite.max(axis=0, initial=0.0)
    return bool(np.isclose(found, wanted, rtol=1e-6, atol=atol, equal_nan=True).all())
