# SPDX-License-Identifier: BSD-3-Clause
"""Features of every fold: steps fitted without the rows that the fold leaves out.

A *state* holds the features of all rows in every fold after some steps. Known steps
turn a state into the next one for all folds together. Of other steps clones are fitted
in each fold, and of all steps before that depend on the fold: what an unknown step does
may depend on the rounding of its input. For the same reason clones of all steps are
fitted in a fold in which rounding decides what a known step does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.feature_selection import (
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils import get_tags

from leaveout._typing import FloatArray, IntArray
from leaveout.adapt._columns import FoldRows, variance_of, variances_of_rest
from leaveout.adapt._fold_states import (
    Columns,
    InDoubtError,
    Joined,
    Mapped,
    State,
    Table,
    join_columns,
)
from leaveout.adapt._known_steps import (
    FoldError,
    max_abs_scaler,
    min_max_scaler,
    one_hot_encoder,
    robust_scaler,
    simple_imputer,
    standard_scaler,
)
from leaveout.adapt._pipeline import fit_transform, take_columns, take_rows
from leaveout.adapt._selection import (
    PrincipalComponents,
    pca,
    select_best,
    variance_threshold,
)
from leaveout.engine._problem import Folds

Steps = Sequence[tuple[str, Any]]
CLOSED_FORM, STATELESS, FITTED = "closed form", "stateless", "fitted in each fold"
# Transformers of one row at a time, whatever they are fitted on.
ROW_BY_ROW = (Binarizer, FrozenEstimator, Normalizer, PolynomialFeatures)
# Those whose output changes little if their input does, without a function.
CONTINUOUS = (FunctionTransformer, Normalizer, PolynomialFeatures)
# Rows with a smaller norm, relative to the largest, may be 0 but for rounding.
SMALL_ROW = 1e-7
# By exact type: a subclass may do something else.
KNOWN: dict[type, Callable[[Any, Columns], Any]] = {
    StandardScaler: standard_scaler,
    MinMaxScaler: min_max_scaler,
    MaxAbsScaler: max_abs_scaler,
    RobustScaler: robust_scaler,
    SimpleImputer: simple_imputer,
    VarianceThreshold: variance_threshold,
    SelectKBest: select_best,
    SelectPercentile: select_best,
    OneHotEncoder: one_hot_encoder,
    PCA: pca,
}
# Steps that accept columns of text.
TAKE_TEXT = (OneHotEncoder, SimpleImputer)


class FoldSteps:
    """Features of all rows under steps fitted without each fold.

    The parameters of all folds take a few arrays of shape (g, p); the features are
    computed one fold at a time.

    Attributes
    ----------
    paths : dict
        For each step, how it is fitted: "closed form", "stateless" or "fitted in each
        fold".
    """

    def __init__(self, state: Any, clones: Clones, paths: dict[str, str]) -> None:
        self._state, self._clones, self.paths = state, clones, paths
        self._rows: FoldRows = state.rows

    @classmethod
    def of(cls, steps: Steps, X: Any, y: NDArray[Any], folds: Folds) -> FoldSteps:
        """Prepare the steps of a Pipeline for all folds.

        Parameters
        ----------
        steps : sequence of (name, transformer)
            Unfitted steps. They are not changed.
        X, y : array-like
            The rows and their labels or targets.
        folds : Folds
            Rows that are left out together.

        Raises
        ------
        ValueError
            A step fails in a fold. The message names the fold, the step and the reason.
            Steps that are fitted in each fold raise it in ``features``.
        """
        begin = np.append(folds.begin, folds.begin[-1])
        rows = FoldRows(len(y), Folds(folds.members, begin), np.asarray(y))
        state: Any = Table(X, rows)
        clones = Clones(state, steps)
        paths = dict.fromkeys((name for name, _ in steps), FITTED)
        if any(_has_output_config(step) for _, step in steps):
            return cls(clones, clones, paths)
        for i, (name, step) in enumerate(steps):
            after = apply_step(name, step, state)
            if after is None and isinstance(state, Table):
                return cls(Clones(state, steps[i:]), clones, paths)
            if after is None:
                return cls(clones, clones, dict.fromkeys(paths, FITTED))
            state = after
            if not state.fitted_in_folds:
                alike = isinstance(state, Table) or _is_stateless(step)
                paths[name] = STATELESS if alike else CLOSED_FORM
        return cls(state, clones, paths)

    def features(self, k: int) -> Any:
        """Transform all rows by the steps fitted without fold k.

        Returns
        -------
        ndarray of shape (n, p_k), or CSR matrix
            C-contiguous float64. A sparse matrix only after steps that are fitted in
            each fold and return one.
        """
        Z = self._features(k)
        if sparse.issparse(Z):
            return Z.tocsr().astype(np.float64)
        return np.ascontiguousarray(Z, dtype=np.float64)

    def _features(self, k: int) -> Any:
        if k not in self._rows.in_doubt:
            try:
                return self._state.features(k)
            except InDoubtError:
                self._rows.in_doubt.add(k)
        return self._clones.features(k)

    def describe(self, k: int) -> str:
        """Name fold k in a message."""
        return self._rows.describe(k)

    @cached_property
    def base(self) -> Any:
        """All rows transformed by the steps fitted on all rows, (n, p)."""
        return self.features(len(self._rows) - 1)

    @cached_property
    def factors(self) -> FloatArray | None:
        """What the columns of ``base`` are multiplied by in each fold, (g, p).

        This, and a shift, leads to the features of the fold. None if nothing else does.
        """
        factors: FloatArray | None = self._state.factors()
        return None if self._rows.in_doubt else factors

    def unshifted(self, k: int) -> tuple[FloatArray, Any, Any] | None:
        """Return columns that differ from the features of fold k only by a shift.

        Columns (n, p_k), what replaces NaN (p_k,) and their factors (p_k,), the last
        two or None. None if the features are not of this form.
        """
        found = None if k in self._rows.in_doubt else self._state.unshifted(k)
        if found is None:
            return None
        values, fill, factor = (
            None if a is None else np.ascontiguousarray(a) for a in found
        )
        assert values is not None
        return values, fill, factor

    def kept(self, k: int) -> IntArray:
        """Rows that remain in fold k, in order."""
        return self._rows.kept(k)

    def group_of(self, k: int) -> Any:
        """Return a key of fold k: folds with equal keys have equal features."""
        return k if k in self._rows.in_doubt else self._state.key(k)

    @cached_property
    def are_alike(self) -> bool:
        """Whether no fold changes a feature."""
        key = self.group_of(0)
        return all(self.group_of(k) == key for k in range(1, len(self._rows)))

    def variance(self, k: int, Z: Any = None) -> float:
        """Variance of all entries of the kept rows, for gamma="scale".

        Z are the features of the fold, if they are known.
        """
        variances = None if k in self._rows.in_doubt else self._variances
        if variances is not None and not np.isnan(variances[k]):
            return float(variances[k])
        Z = self.features(k) if Z is None else Z
        return variance_of(take_rows(Z, self._rows.kept(k)))

    @cached_property
    def _variances(self) -> FloatArray | None:
        if self.are_alike:
            return variances_of_rest(self.base, self._rows)
        if isinstance(self._state, Columns) and self._state.source.complete:
            return self._state.variances()
        own: FloatArray | None = self._state.own_variances
        return own

    @property
    def clones(self) -> dict[str, int]:
        """Number of folds, so far, in which a step was fitted as a clone, by class."""
        return dict(self._rows.clones)


class InEachFold(State):
    """Features after a known step whose input differs between folds.

    Parameters
    ----------
    parent : state
        The features before.
    name : str
        Name of the step.
    step : transformer
        The step, which is applied to one fold at a time.
    """

    fitted_in_folds = True

    def __init__(self, parent: Any, name: str, step: Any) -> None:
        self.parent, self.name, self.step = parent, name, step
        self.rows, self.signed = parent.rows, False

    def features(self, k: int) -> Any:
        """Features of all rows in fold k."""
        rows = self.rows.only(k)
        state = apply_step(self.name, self.step, Table(self.parent.features(k), rows))
        if state is None or rows.in_doubt:
            raise InDoubtError
        if self.signed:
            _fix_signs(state)
        return state.features(0)


class Clones(State):
    """Features after clones of some steps, which are fitted in each fold.

    Parameters
    ----------
    table : Table
        The features before, which are the same in all folds.
    steps : sequence of (name, transformer)
        The steps.
    """

    fitted_in_folds = True

    def __init__(self, table: Table, steps: Steps) -> None:
        self.table, self.steps, self.rows = table, steps, table.rows

    def features(self, k: int) -> Any:
        """Features of all rows in fold k."""
        kept, left = self.rows.kept(k), self.rows.folds[k]
        A: Any = take_rows(self.table.X, kept)
        B: Any = take_rows(self.table.X, left) if left.size else None
        for name, step in self.steps:
            if step is None or isinstance(step, str):  # "passthrough"
                continue
            self.rows.count_clone(step, k)
            try:
                own = clone(step)
                if get_tags(own).input_tags.pairwise:
                    A, B = (
                        None if Z is None else take_columns(Z, kept) for Z in (A, B)
                    )
                A = fit_transform(own, A, self.rows.y[kept])
                B = None if B is None else own.transform(B)
            except Exception as error:
                raise step_error(name, step, self.rows.describe(k), error) from error
        if B is None:
            return A
        order = np.argsort(np.r_[kept, left])
        if sparse.issparse(A):
            return sparse.vstack([A, B], format="csr")[order]
        return np.concatenate([np.asarray(A), np.asarray(B)])[order]


def apply_step(name: str, step: Any, state: Any) -> Any:
    """Return the state after a step, None if clones of it have to be fitted."""
    if step is None or isinstance(step, str):  # "passthrough"
        return state
    _fix_signs(state)
    kind = type(step)
    try:
        if kind in (Pipeline, FeatureUnion, ColumnTransformer):
            return COMPOSITES[kind](step, state)
        if _is_stateless(step):
            return _apply_stateless(step, state)
        if kind is FunctionTransformer and _acts_on_rows(step, state):
            return _apply_stateless(step, state)
        if kind not in KNOWN:
            return None
        columns = state
        if isinstance(state, Table):
            columns = state.numbers
            if columns is None and kind in TAKE_TEXT:
                columns = state.codes
        elif not isinstance(state, Columns) or (kind is PCA and state.varies):
            if kind is OneHotEncoder:  # rounding decides which numbers are equal
                return None
            return InEachFold(state, name, step)
        if not isinstance(columns, Columns) or not _fits(step, columns):
            return None
        return KNOWN[kind](step, columns)
    except FoldError as error:
        raise step_error(name, step, state.rows.describe(error.k), error) from error


def _fix_signs(state: Any) -> None:
    """Give principal components scikit-learn's signs: a step may depend on them."""
    for part in getattr(state, "parts", (state,)):
        if isinstance(part, PrincipalComponents | InEachFold):
            part.signed = True
        elif part is not state:
            _fix_signs(part)


def _fits(step: Any, columns: Columns) -> bool:
    """Whether the statistics of a known step exist in every fold."""
    source = columns.source
    if columns.categories is not None and type(step) not in TAKE_TEXT:
        return False
    if type(step) is SimpleImputer or source.complete:
        return columns.n_columns > 0 and bool((columns.rows.n_kept > 0).all())
    return bool((source.counts > 0).all())


def _is_stateless(step: Any) -> bool:
    """Whether a step is known to transform each row by itself.

    The function of a FunctionTransformer may use other rows; a ufunc does not.
    """
    if type(step) is FunctionTransformer:
        return step.func is None or isinstance(step.func, np.ufunc)
    return type(step) in ROW_BY_ROW


def _acts_on_rows(step: FunctionTransformer, state: Any) -> bool:
    """Try whether a function gives each row alone what it gives all rows together."""
    if not isinstance(state, Table) or len(state.rows) == 1:
        return False
    try:
        own = clone(step)
        Z = np.asarray(own.fit_transform(state.X), dtype=np.float64)
        rows = [take_rows(state.X, np.array([row])) for row in range(state.rows.n)]
        alone = np.concatenate([np.asarray(own.transform(row)) for row in rows])
        return bool(np.allclose(alone, Z, rtol=1e-13, atol=0, equal_nan=True))
    except Exception:  # it does not accept one row
        return False


def _apply_stateless(step: Any, state: Any) -> Any:
    """Apply a step that transforms each row by itself."""
    plain = isinstance(state, Table)
    if state.fitted_in_folds or not (plain or type(step) in CONTINUOUS):
        return None
    if not plain and type(step) is FunctionTransformer and step.func is not None:
        return None
    base = len(state.rows) - 1
    try:
        fitted = clone(step)
        Z = fit_transform(fitted, state.features(base), state.rows.y)
    except Exception as error:
        raise FoldError(base, str(error)) from error
    if isinstance(state, Table):
        return Table(Z, state.rows)
    return Mapped(state, partial(_transform, fitted))


def _transform(fitted: Any, Z: Any) -> Any:
    """Transform by a step that needs to know no more than the number of columns."""
    if isinstance(fitted, Normalizer):
        norms = np.linalg.norm(Z, axis=1)
        if norms.min() < SMALL_ROW * norms.max():
            raise InDoubtError
    same = getattr(fitted, "n_features_in_", Z.shape[1]) == Z.shape[1]
    return (fitted if same else clone(fitted).fit(Z)).transform(Z)


def _pipeline(step: Pipeline, state: Any) -> Any:
    """Apply the steps of a Pipeline inside a Pipeline."""
    return run_steps(step.steps, state)


def _feature_union(step: FeatureUnion, state: Any) -> Any:
    """Put the features of several transformers side by side."""
    if step.transformer_weights is not None:
        return None
    pairs = [(name, part) for name, part in step.transformer_list if part != "drop"]
    return _join([run_steps([pair], state) for pair in pairs])


def _column_transformer(step: ColumnTransformer, state: Any) -> Any:
    """Apply transformers to some of the columns each."""
    plain = isinstance(state, Table | Columns) and hasattr(state, "take")
    if step.transformer_weights is not None or not plain:
        return None
    if isinstance(state, Columns) and state.mask is not None:
        return None
    X = state.X if isinstance(state, Table) else state.source.values
    if not hasattr(X, "shape") or sparse.issparse(X):
        return None
    parts, rest = [], np.arange(X.shape[1])
    for name, part, selector in step.transformers:
        columns = _resolve_columns(X, selector)
        if columns is None:
            return None
        parts.append((name, part, columns))
        rest = np.setdiff1d(rest, columns)
    parts.append(("remainder", step.remainder, rest))
    return _join(
        [
            run_steps([(name, part)], state.take(columns))
            for name, part, columns in parts
            if columns.size and not (isinstance(part, str) and part == "drop")
        ]
    )


def _resolve_columns(X: Any, selector: Any) -> IntArray | None:
    """Return positions of the selected columns, None if they are not a plain list."""
    names = list(getattr(X, "columns", ()))
    if type(selector) is make_column_selector:
        selector = selector(X)
    if isinstance(selector, slice):
        if any(isinstance(end, str) for end in (selector.start, selector.stop)):
            return None
        return np.arange(X.shape[1])[selector]
    if callable(selector) or isinstance(selector, str) or np.ndim(selector) != 1:
        return None
    if len(selector) and all(isinstance(column, str) for column in selector):
        known = all(names.count(column) == 1 for column in selector)
        return np.array([names.index(c) for c in selector]) if known else None
    selector = np.asarray(selector)
    if selector.dtype == bool and selector.size != X.shape[1]:
        return None
    if selector.size and selector.dtype.kind not in "biu":
        return None
    try:
        return np.arange(X.shape[1])[selector if selector.size else []]
    except IndexError:
        return None


COMPOSITES = {
    Pipeline: _pipeline,
    FeatureUnion: _feature_union,
    ColumnTransformer: _column_transformer,
}


def _join(states: list[Any]) -> Any:
    """Put states side by side, in one block of columns if possible."""
    states = [_numeric(state) for state in states]
    if not states or any(state is None for state in states):
        return None
    if all(isinstance(state, Columns) for state in states):
        joined = join_columns(states)
        if joined is not None:
            return joined
    return Joined(states) if len(states) > 1 else states[0]


def _numeric(state: Any) -> Any:
    """Return a table as columns, None if it is not numeric."""
    if isinstance(state, Table):
        if sparse.issparse(state.X):
            return state
        return state.numbers
    return state


def run_steps(steps: Steps, state: Any) -> Any:
    """Apply steps to the features of all folds, None if clones of all are needed."""
    for i, (name, step) in enumerate(steps):
        after = apply_step(name, step, state)
        if after is None:
            return Clones(state, steps[i:]) if isinstance(state, Table) else None
        state = after
    return state


def step_error(name: str, step: Any, where: str, error: Exception) -> ValueError:
    """Return an error that names the fold, the step and the reason."""
    return ValueError(f"Step {name!r} ({type(step).__name__}) failed {where}: {error}")


def _has_output_config(step: Any) -> bool:
    """Whether a step returns tables, whose column names later steps may use."""
    if sklearn.get_config()["transform_output"] != "default":
        return True
    inner = step.get_params().values() if hasattr(step, "get_params") else ()
    return any(hasattr(part, "_sklearn_output_config") for part in (step, *inner))
