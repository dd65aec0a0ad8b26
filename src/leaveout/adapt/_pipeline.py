# SPDX-License-Identifier: BSD-3-Clause
"""Pipelines: steps fitted once on all rows, or again in each fold."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags

from leaveout._typing import FloatArray, IntArray
from leaveout.adapt._checks import check_features
from leaveout.engine._certificate import intervals_at_new_rows
from leaveout.engine._problem import INDEFINITE, REFIT, Folds, LooIntervals
from leaveout.exceptions import CertificateWarning, PreprocessingWarning
from leaveout.kernel._gram import (
    gram_matrix,
    kernel_parameters,
    make_gram,
    may_be_indefinite,
    resolve_gamma,
)
from leaveout.kernel._symmetric import is_psd
from leaveout.loo._family import FAMILIES, scale_bounds
from leaveout.loo._leave_out import Columns, LeftOut, Plan
from leaveout.loo._task import Params, Target, Task, make_task, resolve_class_weight
from leaveout.run._parallel import count_workers, map_parallel

if TYPE_CHECKING:
    from leaveout.adapt._unwrap import Model

# The first permutation nearly always reveals a step that uses y. A selection of 5 out
# of 6 features may agree once by chance, but hardly five times.
N_PERMUTATIONS = 5
# scikit-learn's transformers that are documented to ignore y. They are not tried on
# permuted labels, which costs six fits (per sample in nested leave-one-out).
IGNORE_LABELS = frozenset(
    "FrozenEstimator MaxAbsScaler MinMaxScaler MissingIndicator Normalizer "
    "OneHotEncoder OrdinalEncoder PolynomialFeatures RobustScaler SimpleImputer "
    "StandardScaler".split()
)
# Batches of folds per worker: enough to keep all workers busy until the end.
PARTS_PER_WORKER = 8
# Of each subproblem.
Intervals = list[LooIntervals]


def fit_steps_once(
    steps: Sequence[tuple[str, Any]],
    X: Any,
    labels: NDArray[Any],
    *,
    may_use_labels: bool = False,
) -> Any:
    """Return X transformed by all steps, each a clone fitted on all rows.

    Unless steps may use the labels (checked y, also that of a regression), raises
    ValueError if the output of a step depends on them, or differs between fits.
    """
    for name, step in steps:
        if not may_use_labels and not _known_to_ignore_labels(step):
            _check_ignores_labels(name, step, X, labels)
        X = fit_transform(clone(step), X, labels)
    return X


def warn_frozen(
    steps: Sequence[tuple[str, Any]], function: str, stacklevel: int
) -> None:
    """Warn that a function can only fit the steps on all rows."""
    fitted = [repr(name) for name, s in steps if not isinstance(s, FrozenEstimator)]
    if fitted:
        warnings.warn(
            f"{function} fits {', '.join(fitted)} once on all rows, including the row "
            "that is left out. leave_one_out and LooSearchCV fit the steps of a "
            "Pipeline without it.",
            PreprocessingWarning,
            stacklevel=stacklevel,
        )


def fit_transform(transformer: Any, X: Any, labels: NDArray[Any]) -> Any:
    """Fit and transform the way Pipeline does."""
    if hasattr(transformer, "fit_transform"):
        return transformer.fit_transform(X, labels)
    return transformer.fit(X, labels).transform(X)


def _known_to_ignore_labels(step: Any) -> bool:
    """Return whether a step and all its parts are of a listed class, not a subclass."""
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

    Tags do not suffice: SelectKBest has none for this. So the step is fitted on
    permuted labels, and the outputs are compared.
    """
    what = f"Step {name!r} ({type(step).__name__})"
    with warnings.catch_warnings(), _global_random_state_restored():
        warnings.simplefilter("ignore")  # the final fit gives them
        wanted = _fit_seeded(step, X, labels)
        for permuted in _permutations(labels):
            if _output_stays(step, X, permuted, wanted):
                continue
            if not _output_stays(step, X, labels, wanted):
                raise ValueError(
                    f"{what} gives a different output at every fit on the same rows, "
                    "so leaveout cannot detect whether it uses y. Set random_state, "
                    "or use leave_one_out(..., preprocessing='fold')."
                )
            raise ValueError(
                f"{what} uses y: fitted once on all rows, it has seen the labels of "
                "the samples left out later, so the error is underestimated. Use "
                "leave_one_out(..., preprocessing='fold'), which fits it without each "
                "left-out sample."
            )


def _output_stays(step: Any, X: Any, labels: NDArray[Any], wanted: Any) -> bool:
    """Return whether a fit on these labels succeeds with the expected output."""
    try:
        found = _fit_seeded(step, X, labels)
    except Exception:  # it succeeded with other labels, so it uses them
        return False
    return _same(found, wanted)


def _fit_seeded(step: Any, X: Any, labels: NDArray[Any]) -> Any:
    """Fit a clone; random_state=None draws the same numbers in every call."""
    np.random.seed(0)  # noqa: NPY002, the generator behind random_state=None
    return fit_transform(clone(step), X, labels)


@contextmanager
def _global_random_state_restored() -> Iterator[None]:
    """Restore the state of NumPy's global generator on exit."""
    state = np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002


def _permutations(labels: NDArray[Any]) -> list[NDArray[Any]]:
    """Return permutations that change the labels; none if all labels are equal."""
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
    """Return whether two outputs are equal up to rounding, with NaN in the same places.

    PLSRegression returns a tuple, the scores of X and of y.
    """
    if isinstance(wanted, tuple):
        return isinstance(found, tuple) and all(map(_same, found, wanted))
    if sparse.issparse(wanted):
        if not sparse.issparse(found) or found.shape != wanted.shape:
            return False
        (*places, found), (*wanted_places, wanted) = _stored(found), _stored(wanted)
        if not all(map(np.array_equal, places, wanted_places)):
            return False
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape:
        return False
    try:
        found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    except (TypeError, ValueError):
        return bool(np.all((found == wanted) | ((found != found) & (wanted != wanted))))
    # Equal up to 1e-6, and up to 1e-9 of the largest value of each column.
    finite = np.where(np.isfinite(wanted), np.abs(wanted), 0.0)
    atol = 1e-9 * finite.max(axis=0, initial=0.0)
    return bool(np.isclose(found, wanted, rtol=1e-6, atol=atol, equal_nan=True).all())


def _stored(matrix: Any) -> tuple[NDArray[Any], ...]:
    """Return the positions and values stored in a sparse matrix."""
    matrix = sparse.csr_array(matrix)
    matrix.sum_duplicates()
    return matrix.indptr, matrix.indices, matrix.data


def refit_folds(
    model: Model,
    X: Any,
    tasks: list[Task],
    plan: Plan,
    factors: FloatArray,
    *,
    n_jobs: int | None,
    stacklevel: int,
) -> list[Columns]:
    """Leave every sample or group out by fitting steps and models on the others.

    gamma and balanced class weights are resolved on the remaining rows. If a class
    loses its only member, its subproblems remain and predict their other class. The
    steps are fitted without weights. Bound to model and X, this function replaces
    ``solve_and_leave_out`` as the source of a plan.
    """
    target = tasks[0].target
    n = target.codes.shape[0]
    folds = Folds.singles(np.arange(n))
    if plan.groups is not None:
        folds = Folds.of_groups(plan.groups)
    g, n_workers = len(folds), count_workers(n_jobs)
    n_parts = 1 if n_workers == 1 else min(g, PARTS_PER_WORKER * n_workers)
    kernels = [task.params for task in tasks]
    leave_out: Callable[..., list[Intervals]] = _refit
    if not plan.family.leaves_groups_out:
        leave_out = partial(_leave_row_out, plan.method)
    jobs = (
        (leave_out, model, X, target, kernels, factors, folds.take(numbers))
        for numbers in np.array_split(np.arange(g), n_parts)
    )
    parts = [
        fold
        for part in map_parallel(_leave_some_out, jobs, n_jobs=n_workers)
        for fold in part
    ]
    found = [
        [
            [_gather(folds, own) for own in zip(*subs, strict=True)]
            for subs in zip(*columns, strict=True)
        ]
        for columns in zip(*parts, strict=True)
    ]
    _warn_indefinite(found, kernels, stacklevel + 2)
    return found


def _gather(folds: Folds, parts: Sequence[LooIntervals]) -> LeftOut:
    """Return the values of all samples by one subproblem from those of its folds."""
    order = np.argsort(folds.members)
    names = ("lower", "upper", "settled_by", "uncertified_by")
    own: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])[order]
        for name in names
    }
    counts = {"refits": float(len(folds))}
    chosen = np.concatenate([part.values for part in parts])[order]
    return LeftOut(LooIntervals(**own, counts=counts, chosen=chosen))


def _warn_indefinite(
    found: list[Columns], kernels: list[Params], stacklevel: int
) -> None:
    """Warn about kernels that are not positive semi-definite in some folds."""
    for params, columns in zip(kernels, found, strict=True):
        reasons = columns[0][0].found.uncertified_by
        n_indefinite = np.count_nonzero(reasons == INDEFINITE)
        if n_indefinite:
            warnings.warn(
                f"The kernel {params.kernel!r} is not positive semi-definite in "
                f"{n_indefinite} of {reasons.size} folds, so these are not "
                "certified. Use another kernel or other kernel parameters.",
                CertificateWarning,
                stacklevel=stacklevel,
            )


def take_rows(X: Any, rows: IntArray) -> Any:
    """Return some rows of an array, a sparse matrix, a table or a list."""
    if hasattr(X, "iloc"):  # pandas
        return X.iloc[rows]
    if sparse.issparse(X):
        return X.tocsr()[rows]
    if not hasattr(X, "shape"):
        return [X[row] for row in rows]
    if isinstance(X, np.ndarray) or not hasattr(X, "take"):
        return X[rows]
    return X.take(rows)  # pyarrow


def take_columns(X: Any, columns: IntArray) -> Any:
    """Return some columns of an array, a sparse matrix, a table or a list of rows."""
    if hasattr(X, "iloc"):  # pandas
        return X.iloc[:, columns]
    return (X if hasattr(X, "shape") else np.asarray(X))[:, columns]


def _leave_some_out(
    leave_out: Callable[..., list[Intervals]],
    model: Model,
    X: Any,
    target: Target,
    kernels: list[Params],
    factors: FloatArray,
    folds: Folds,
) -> list[list[list[Intervals]]]:
    """Return, for each fold in turn, the intervals by kernel, C and subproblem."""
    own = clone(model.estimator)  # check_features stores the columns in it
    found = []
    for rows in folds:
        kept = np.setdiff1d(np.arange(target.codes.shape[0]), rows)
        try:
            Z, z = _transform_fold(model, X, target.labels[kept], kept, rows)
            Z = check_features(own, Z, reset=True)
            z = check_features(own, z, reset=False)
            found.append(
                [leave_out(target, kept, rows, p, Z, z, factors) for p in kernels]
            )
        except Exception as error:
            names = ", ".join(str(row) for row in rows[:5])
            error.add_note(f"This fold left out row {names}{' …' * (rows.size > 5)}.")
            raise
    return found


def _refit(
    target: Target,
    kept: IntArray,
    rows: IntArray,
    params: Params,
    Z: Any,
    z: Any,
    factors: FloatArray,
) -> list[Intervals]:
    """Fit at each C on Z; return the intervals of each subproblem at z."""
    gram = make_gram(Z, **params.kernel_options)
    task = make_task(target.take(kept), gram, params, Z)
    definite = not may_be_indefinite(params.kernel, params.coef0) or is_psd(task.K)
    found: list[Intervals] = [[] for _ in factors]
    family = FAMILIES[params.family]
    for sub in family.make_problems(task, False):
        K = _kernel_values(task, sub.rows, z)
        largest = float(np.abs(K).max(initial=0.0))
        before = None
        for k in np.argsort(factors, kind="stable"):
            problem, start = scale_bounds(sub.problem, factors[k], before)
            solution = family.solve(problem, start=start)
            before = problem, solution
            products = K @ solution.beta
            values = intervals_at_new_rows(problem, solution, products, largest)
            values.settled_by[:] = REFIT
            if not definite:
                values.uncertified_by[:] = INDEFINITE
            found[k].append(values)
    return found


def _leave_row_out(
    method: str,
    target: Target,
    kept: IntArray,
    rows: IntArray,
    params: Params,
    Z: Any,
    z: Any,
    factors: FloatArray,
) -> list[Intervals]:
    """Leave one row out of the problem of all rows, with gamma and weights of others.

    For families that have intervals only for samples of the problem itself.
    """
    family, options = FAMILIES[params.family], params.kernel_options
    if "gamma" in kernel_parameters(params.kernel):
        options["gamma"] = resolve_gamma(params.gamma, Z)
    weights = resolve_class_weight(params.class_weight, target.take(kept))
    class_weight = dict(zip(target.classes.tolist(), weights.tolist(), strict=True))
    gram = make_gram(_put_back(Z, z, rows, kept), **options)
    params = replace(params, class_weight=class_weight)
    task = make_task(target, gram, params, kernel_range=family.kernel_range)
    found: list[Intervals] = [[] for _ in factors]
    for sub in family.make_problems(task, True):
        for own, factor in zip(found, factors, strict=True):
            problem, _ = scale_bounds(sub.problem, factor)
            solution = family.solve(problem)
            if family.tighten is not None:
                problem, solution = family.tighten(problem, solution)
            leave_out = family.methods[method].function
            values = leave_out(problem, solution, Folds.singles(rows))
            if family.certify is not None:
                values = family.certify(problem, solution, values, None)
            own.append(values.take(rows))
    return found


def _put_back(Z: Any, z: Any, rows: IntArray, kept: IntArray) -> Any:
    """Return kept and left-out rows in their original order."""
    order = np.argsort(np.concatenate([kept, rows]))
    if sparse.issparse(Z):
        return sparse.vstack([Z, z], format="csr")[order]
    return np.concatenate([Z, z])[order]


def _transform_fold(
    model: Model, X: Any, labels: NDArray[Any], kept: IntArray, rows: IntArray
) -> tuple[Any, Any]:
    """Transform the kept and the left-out rows by steps fitted on the kept ones."""
    Z, z = take_rows(X, kept), take_rows(X, rows)
    first = model.steps[0][1] if model.steps else model.estimator
    if get_tags(first).input_tags.pairwise:
        Z, z = take_columns(Z, kept), take_columns(z, kept)
    for _, step in model.steps:
        step = clone(step)
        Z = fit_transform(step, Z, labels)
        z = step.transform(z)
    return Z, z


def _kernel_values(task: Task, rows: IntArray, z: Any) -> FloatArray:
    """Return scaled kernel values between new samples and some rows of the task."""
    params = task.params
    if params.kernel == "precomputed":
        K = z[:, rows]
    else:
        options = {**params.kernel_options, "gamma": task.gram.gamma}
        K = gram_matrix(z, task.X[rows], **options)
    return np.ldexp(K, -task.gram.exponent) if task.gram.exponent else K
