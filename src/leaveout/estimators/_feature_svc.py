# SPDX-License-Identifier: BSD-3-Clause
"""SVMs on approximate kernel features, for as many rows as there are."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from leaveout._typing import BoolArray, FloatArray
from leaveout.data import (
    Census,
    CensusJob,
    PlacedRows,
    RowSource,
    did_you_mean,
    open_rows,
)
from leaveout.estimators._check import (
    check_class_weight,
    check_count,
    check_features,
    check_labels,
    check_number,
    check_penalties,
    check_sample_weight,
)
from leaveout.estimators._kept_progress import KeptProgress
from leaveout.estimators._pairs import class_pairs, one_value_per_class, vote
from leaveout.kernel import (
    DaskRows,
    Encode,
    FeatureMap,
    FeatureRows,
    RowsInMemory,
    StreamedRows,
)
from leaveout.loo import LinearLoo, ProvedError, label_rows, leave_one_out_linear
from leaveout.run import Cluster, count_threads, sum_in_order
from leaveout.solve import LinearMachines, LinearOptimum, sample_sizes, solve_linear

FEATURES = ("fourier", "nystroem", "linear")
# Rows of the largest sample: it stays in memory, so that passes over it are cheap.
LARGEST_SAMPLE = 131_072
# Largest C times squared length of features; f is a sum of terms of this size, and
# beyond it what is called optimal need not be.
MOST_DIGITS = 1e10
# Largest C times the weight of all rows; narrow bands divide it until it overflows.
MOST_LOSS = 1e200
# Parameters that decide what machine comes out; a checkpoint is one of them all.
DECISIVE = ("features", "n_components", "C", "gamma", "class_weight")


class FeatureSVC(ClassifierMixin, BaseEstimator):
    r"""Support vector classifier in a space of explicit features, with leave-one-out.

    For more rows than a Gram matrix has room for. The kernel is approximated by a map
    :math:`z(x)` to ``n_components`` features; in their space the machine is that of
    :class:`~leaveout.SVC`, with the hinge and an intercept that is not regularised, and
    is solved to its exact optimum. Rows may be in memory, in files or on a cluster,
    and are gone through in passes; one pass serves all values of C.

    Every row is left out, for the map as it is: most labels follow from what the
    optimum proves, the others from exact walks (docs/method/large). With several values
    of C the one with the smallest leave-one-out error is taken.

    Parameters
    ----------
    features : {"fourier", "nystroem", "linear"} or transformer, default="fourier"
        Random Fourier features of the RBF kernel
        (:class:`~sklearn.kernel_approximation.RBFSampler`), its Nyström approximation
        (:class:`~sklearn.kernel_approximation.Nystroem`), the columns as they are, or a
        transformer of your own, which is cloned and fitted on a sample of the rows.
    n_components : int, default=300
        Number of features of "fourier" and "nystroem".
    C : float or array-like of shape (n_C,), default=1.0
        Weight of the hinge losses, or several to choose from.
    gamma : {"scale", "auto"} or float, default="scale"
        Width of the RBF kernel, as in :class:`~leaveout.SVC`.
    class_weight : dict or "balanced", default=None
        Factor of C per class.
    max_walks : int, default=2000
        Rows that may be walked at each C. What is then still open widens
        ``loo_error_``.
    tol : float, default=1e-6
        Largest relative duality gap without a warning. The solver always aims at the
        exact optimum; a gap is left only if it could not prove it.
    rows_at_once : int, default=8192
        Rows per block.
    rows_in_memory : int, default=200_000
        Up to this many rows keep their features in memory; on a cluster, in that of
        all workers together. Of more rows only a sample of 131,072, some blocks and the
        rows next to the margins are there at a time.
    n_jobs : int or None, default=None
        Threads; -1 for all processors. The results do not depend on it. Inside of
        ``joblib.parallel_config("dask")`` the workers of the cluster go through the
        rows, and these threads do the rest (docs/clusters).
    random_state : int, RandomState or None, default=None
        Seed of the features and of the sample.
    checkpoint : str or path-like, default=None
        A file that keeps how far the fit is, from pass to pass. If the fit is cut
        short, one with the same data and parameters goes on from there. The file
        stays.
    verbose : bool, default=False
        Whether to write a line for each pass to stderr.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    C_ : float
        The value of C that was taken.
    coef_ : ndarray of shape (n_machines, n_components)
        Weights of the features, one row per pair of classes.
    intercept_ : ndarray of shape (n_machines,)
        Intercepts.
    transformer_ : transformer or None
        What makes the features; None for features="linear".
    loo_error_ : ProvedError
        Interval (low, high) of the leave-one-out error at ``C_``; one point if every
        left-out label is proved.
    loo_labels_ : ndarray of shape (n_rows,)
        Label of each row by the machine without it.
    loo_proved_ : ndarray of bool, shape (n_rows,)
        Whether that label is proved, for all optimal intercepts of that machine; where
        it is not, it is that of the full machine.
    path_ : dict of ndarray
        For each C: "C", "loo_low", "loo_high", "n_open" (rows without proof),
        "objective", "duality_gap" (largest of the machines, relative).
    objective_ : ndarray of shape (n_machines,)
        Primal values at ``C_``.
    duality_gap_ : ndarray of shape (n_machines,)
        Relative duality gaps at ``C_``, over all rows.
    n_passes_ : int
        Passes over all rows.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X has them and all are strings.

    See Also
    --------
    SVC : The machine on an exact kernel.

    Notes
    -----
    Leave-one-out is conditional on the features: the landmarks of "nystroem" and the
    directions of "fourier" are not drawn anew without a row.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout import FeatureSVC
    >>> from leaveout.data import make_mixture
    >>> X, y = make_mixture(5000, random_state=0)
    >>> clf = FeatureSVC(n_components=50, C=[0.001, 0.01, 0.1], random_state=0)
    >>> clf = clf.fit(X, y)
    >>> clf.C_
    0.1
    >>> clf.loo_error_.proved
    True
    >>> clf.predict(X[:3])
    array([1, 1, 1])
    """

    def __init__(
        self,
        features: Any = "fourier",
        *,
        n_components: int = 300,
        C: Any = 1.0,
        gamma: str | float = "scale",
        class_weight: Any = None,
        max_walks: int = 2000,
        tol: float = 1e-6,
        rows_at_once: int = 8192,
        rows_in_memory: int = 200_000,
        n_jobs: int | None = None,
        random_state: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        verbose: bool = False,
    ) -> None:
        self.features = features
        self.n_components = n_components
        self.C = C
        self.gamma = gamma
        self.class_weight = class_weight
        self.max_walks = max_walks
        self.tol = tol
        self.rows_at_once = rows_at_once
        self.rows_in_memory = rows_in_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        """Declare sparse input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> FeatureSVC:
        """Solve the machines and leave every row out.

        Parameters
        ----------
        X : array, table, sparse matrix, path, dataset, dask collection or iterable
            Rows: an array or table of shape (n_rows, n_features), a
            ``numpy.memmap``, the path of a Parquet, Arrow or ``.npy`` file or of a
            folder of them, a ``pyarrow`` dataset, a dask array or dataframe, or an
            iterable of blocks (X, y) that can be iterated over again.
        y : array-like of shape (n_rows,), str or None
            Labels, or the name of their column in files and tables. None if X is an
            iterable of blocks.
        sample_weight : array-like of shape (n_rows,), str or None
            Factor of C per row, or the name of its column.

        Returns
        -------
        FeatureSVC
            Itself.
        """
        Cs = self._check_parameters()
        kept = KeptProgress(
            self.checkpoint, {name: getattr(self, name) for name in DECISIVE}
        )
        source = self._open(X, y, sample_weight)
        drawn = int(check_random_state(self.random_state).randint(2**31 - 1))
        seed = kept.choose_seed(drawn, free=self.random_state is None)
        with kept.told():
            self._solve(_Fit(self, source, kept, seed), Cs)
        return self

    def _solve(self, fit: _Fit, Cs: FloatArray) -> None:
        """Solve the machines, leave every row out, store all there is."""
        n_threads = fit.n_threads
        _check_losses(Cs, fit.total_weight)
        machines = fit.machines(Cs)
        optima = solve_linear(
            fit.rows, machines, samples=fit.samples, progress=fit.progress,
            n_threads=n_threads, after_pass=fit.after_pass,
        )  # fmt: skip
        _check_digits(Cs, fit.largest_weight, max(each.radius for each in optima))
        machines = machines.moved(
            np.array([optimum.point[:-1] for optimum in optima]),
            np.array([optimum.point[-1] for optimum in optima]),
        )
        loos, thresholds, hinge = leave_one_out_linear(
            fit.rows, machines, optima, class_weight=fit.class_weight,
            class_sizes=np.array([part.n_weighted for part in fit.parts]),
            largest_weight=fit.largest_weight, max_walks=self.max_walks,
            n_threads=n_threads,
        )  # fmt: skip
        self._store(fit, machines, optima, loos, hinge)
        k = self._best(loos)
        codes, proved = label_rows(
            fit.rows, machines, thresholds, loos, k, len(self.classes_)
        )
        self.loo_labels_ = self.classes_[codes]
        self.loo_proved_: BoolArray = proved

    def decision_function(self, X: Any) -> FloatArray:
        """Return the values whose sign, or whose largest, decides the label.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows; features are made ``rows_at_once`` at a time.

        Returns
        -------
        ndarray
            Two classes: f, (n_rows,), positive for ``classes_[1]``; more: one column
            per class, (n_rows, n_classes).
        """
        values = self._machine_values(X)
        if len(self.classes_) == 2:
            return values[:, 0]
        return one_value_per_class(values)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label each row gets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows, as in :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels, as they were in y.
        """
        values = self._machine_values(X)
        return self.classes_[vote(values)]

    def _machine_values(self, X: Any) -> FloatArray:
        """Value of each pair of classes, (n_rows, n_machines)."""
        check_is_fitted(self)
        if isinstance(X, np.memmap):
            parts = range(0, X.shape[0], self.rows_at_once)
            return np.concatenate(
                [self._values_in_memory(X[i : i + self.rows_at_once]) for i in parts]
            )
        return self._values_in_memory(X)

    def _values_in_memory(self, X: Any) -> FloatArray:
        X = check_features(self, X, reset=False)
        values = np.empty((X.shape[0], len(self.coef_)))
        features = FeatureMap(self.transformer_, np.zeros(self.coef_.shape[1]))
        for start in range(0, X.shape[0], self.rows_at_once):
            part = slice(start, start + self.rows_at_once)
            block = X[part]
            block = block.toarray() if hasattr(block, "toarray") else block
            values[part] = features(block) @ self.coef_.T
        return values + self.intercept_

    def _check_parameters(self) -> FloatArray:
        """Raise if a parameter is wrong; return the values of C."""
        if isinstance(self.features, str) and self.features not in FEATURES:
            names = ", ".join(repr(name) for name in FEATURES)
            raise ValueError(
                f"features must be {names} or a transformer; got {self.features!r}."
                f"{did_you_mean(self.features, FEATURES)}"
            )
        if not isinstance(self.features, str) and not hasattr(self.features, "fit"):
            raise TypeError(
                "features must be a name or a transformer with fit and transform; got "
                f"{self.features!r}."
            )
        for name in ("n_components", "rows_at_once", "rows_in_memory"):
            check_count(name, getattr(self, name))
        check_count("max_walks", self.max_walks, least=0)
        check_number("tol", self.tol, above=0.0)
        check_class_weight(self.class_weight)
        return check_penalties(self.C, "C")

    def _open(self, X: Any, y: Any, sample_weight: Any) -> RowSource:
        """Open the rows; arrays in memory are checked as in every classifier."""
        if _is_in_memory(X):
            if y is None:
                raise ValueError(
                    "FeatureSVC requires y to be passed, but the target y is None."
                )
            X = check_features(self, X, reset=True)
            y = check_labels(y, X.shape[0])
            if sample_weight is not None:
                sample_weight = check_sample_weight(sample_weight, X.shape[0])
            return open_rows(X, y, sample_weight, rows_at_once=self.rows_at_once)
        source = open_rows(X, y, sample_weight, rows_at_once=self.rows_at_once)
        self.n_features_in_ = source.n_features
        if source.feature_names is not None:
            self.feature_names_in_ = source.feature_names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return source

    def _best(self, loos: list[LinearLoo]) -> int:
        """Smallest error, open rows counted as the full machine has them; first C."""
        order = np.argsort(self._Cs, kind="stable")
        return int(min(order, key=lambda c: loos[c].estimate))

    def _store(
        self,
        fit: _Fit,
        machines: LinearMachines,
        optima: list[LinearOptimum],
        loos: list[LinearLoo],
        hinge: FloatArray,
    ) -> None:
        """Set the fitted attributes."""
        self._Cs = machines.C[:: len(fit.pairs)]
        self.classes_ = fit.classes
        self.class_weight_ = fit.class_weight
        primal = 0.5 * (machines.W**2).sum(axis=1) + machines.C * hinge
        dual = np.array([optimum.window_dual for optimum in optima])
        # A window leaves out hinges that are zero or linear: its optimum is below that
        # of all rows, and the difference bounds the distance to the optimum.
        gaps = np.maximum(primal - dual, 0.0) / np.maximum(primal, 1e-300)
        shape = (len(self._Cs), len(fit.pairs))
        self.path_ = {
            "C": self._Cs.copy(),
            "loo_low": np.array([loo.error.low for loo in loos]),
            "loo_high": np.array([loo.error.high for loo in loos]),
            "n_open": np.array([loo.n_open for loo in loos]),
            "objective": primal.reshape(shape).sum(axis=1),
            "duality_gap": gaps.reshape(shape).max(axis=1),
        }
        k = self._best(loos)
        chosen = slice(k * shape[1], (k + 1) * shape[1])
        self.C_ = float(self._Cs[k])
        self.loo_error_: ProvedError = loos[k].error
        self.transformer_ = fit.feature_map.transformer
        self.coef_ = machines.W[chosen].copy()
        self.intercept_ = machines.b[chosen] - self.coef_ @ fit.feature_map.center
        self.objective_ = primal[chosen]
        self.duality_gap_ = gaps[chosen]
        self.n_passes_ = fit.n_passes
        if gaps.max() > self.tol:
            worst = machines.C[int(np.argmax(gaps))]
            warnings.warn(
                f"The duality gap is {gaps.max():.1e} at C={worst:g}, above "
                f"tol={self.tol:g}. Scale the columns of X, or take a smaller C.",
                ConvergenceWarning,
                stacklevel=3,
            )


class _Fit:
    """What a fit knows of the rows after the census."""

    def __init__(
        self, svc: FeatureSVC, source: RowSource, kept: KeptProgress, seed: int
    ) -> None:
        self.svc, self.source, self.kept, self.seed = svc, source, kept, seed
        self.n_threads = count_threads(svc.n_jobs)
        cluster = Cluster.active()
        self.placed = None if cluster is None else PlacedRows.of(source, cluster)
        self.census = census = self._take_census()
        self.n_passes = 1
        self.classes = census.labels()
        if len(self.classes) < 2:
            raise ValueError(
                "y needs two classes or more with weight; it has one class: "
                f"{self.classes.tolist()}."
            )
        self.pairs = class_pairs(len(self.classes))
        self.parts = list(census.samples(self.classes))
        self.class_weight = self._class_weights()
        self.largest_weight = census.largest_weight * float(self.class_weight.max())
        totals = np.array([part.total_weight for part in self.parts])
        self.total_weight = float(totals @ self.class_weight)
        self.feature_map = self._make_map()
        encode = Encode(self.feature_map, self.classes, self.class_weight)
        self.rows = self._make_rows(encode)
        probe = self.feature_map(self.parts[0].X[:16])
        self.progress = kept.resume(
            census.n_rows, self.classes.tolist(), self.parts, probe
        )
        self.samples = [] if self.progress else self._samples()

    def _take_census(self) -> Census:
        """Go through all rows for the first time."""
        job = CensusJob(self.seed, LARGEST_SAMPLE)
        if self.placed is not None:
            return self.placed.sum(job)
        return sum_in_order(job, self.source.blocks(), self.n_threads)

    def _make_rows(self, encode: Encode) -> FeatureRows:
        """Return all rows as features, here or on the cluster."""
        n_rows = self.census.n_rows
        rows = (
            StreamedRows(self.source, encode, n_rows, self.n_threads)
            if self.placed is None
            else DaskRows(self.placed, encode)
        )
        return rows.in_memory() if n_rows <= self.svc.rows_in_memory else rows

    def machines(self, Cs: FloatArray) -> LinearMachines:
        """One machine for each C and pair of classes; two classes: the second is +1."""
        two = len(self.classes) == 2
        positive = [j if two else i for i, j in self.pairs]
        negative = [i if two else j for i, j in self.pairs]
        return LinearMachines.zero(
            np.repeat(Cs, len(self.pairs)),
            np.tile(positive, len(Cs)),
            np.tile(negative, len(Cs)),
            self.feature_map.n_components,
        )

    def after_pass(self, progress: Any) -> None:
        """Count the pass, keep what it gave, and say so."""
        self.n_passes += 1
        self.kept.put(progress, self.n_passes)
        if self.svc.verbose:
            left = int((~progress.done).sum())
            sys.stderr.write(
                f"FeatureSVC: pass {self.n_passes} over {self.census.n_rows} rows; "
                f"{left} of {len(progress.done)} machines on their way\n"
            )

    def _class_weights(self) -> FloatArray:
        given = self.svc.class_weight
        if given is None:
            return np.ones(len(self.classes))
        if isinstance(given, str):  # "balanced"
            counts = np.array([part.n_rows for part in self.parts], dtype=np.float64)
            return counts.sum() / (len(counts) * counts)
        labels = self.classes.tolist()
        unknown = [label for label in given if label not in labels]
        if unknown:
            raise ValueError(
                f"class_weight has {unknown[0]!r}, which is no class of y: {labels}."
            )
        return np.array([float(given.get(label, 1.0)) for label in labels])

    def _make_map(self) -> FeatureMap:
        """Fit the transformer on the sample."""
        X = np.concatenate([part.X for part in self.parts])
        return FeatureMap.around(self._fit_transformer(X), X[:: max(1, len(X) // 4096)])

    def _fit_transformer(self, X: FloatArray) -> Any:
        svc = self.svc
        if isinstance(svc.features, str) and svc.features == "linear":
            return None
        if not isinstance(svc.features, str):
            return clone(svc.features).fit(X)
        from sklearn.kernel_approximation import Nystroem, RBFSampler  # slow to import

        gamma = self._gamma(X.shape[1])
        if svc.features == "fourier":
            return RBFSampler(
                gamma=gamma, n_components=svc.n_components, random_state=self.seed
            ).fit(X)
        n_components = min(svc.n_components, len(X))
        return Nystroem(
            gamma=gamma, n_components=n_components, random_state=self.seed
        ).fit(X)

    def _gamma(self, n_features: int) -> float:
        gamma = self.svc.gamma
        if gamma == "scale":
            variance = self.census.variance
            if not np.isfinite(variance):
                raise ValueError(
                    "gamma='scale' needs the variance of X, which is too large for a "
                    "double. Divide the columns by their size "
                    "(sklearn.preprocessing.StandardScaler), or give gamma a number."
                )
            return 1.0 / (n_features * variance) if variance > 0.0 else 1.0
        if gamma == "auto":
            return 1.0 / n_features
        return check_number("gamma", gamma, above=0.0)

    def _samples(self) -> list[FeatureRows]:
        """Take samples of growing size."""
        sizes = sample_sizes(
            self.census.n_rows, self.feature_map.n_components, LARGEST_SAMPLE
        )
        return [self._sample(size) for size in sizes]

    def _sample(self, size: int) -> FeatureRows:
        """Take as many rows of each class, with weights as if they were all rows."""
        X, codes, weights = [], [], []
        for code, part in enumerate(self.parts):
            rows = slice(0, max(1, size // len(self.parts)))
            weight = part.weight[rows] * self.class_weight[code]
            total = part.total_weight * self.class_weight[code]
            if weight.sum() > 0.0:
                weight *= total / weight.sum()
            X.append(self.feature_map(part.X[rows]))
            codes.append(np.full(weight.size, code))
            weights.append(weight)
        return RowsInMemory.of(
            np.concatenate(X), np.concatenate(codes), np.concatenate(weights),
            n_threads=self.n_threads,
        )  # fmt: skip


def _check_losses(Cs: FloatArray, total_weight: float) -> None:
    """Raise if sums of losses are beyond what the solver computes with."""
    C = float(Cs.max())
    if not C <= MOST_LOSS / total_weight:
        raise ValueError(
            f"C={C:.3g} is too large for rows of weight {total_weight:.3g} in all: "
            f"above a product of {MOST_LOSS:.0e} losses overflow. Lower C."
        )


def _check_digits(Cs: FloatArray, largest_weight: float, radius: float) -> None:
    """Raise if losses, C times what a weight moves, have too few digits."""
    C = float(Cs.max())
    product = C * largest_weight * radius * radius
    if product > MOST_DIGITS:
        weight = f", weights up to {largest_weight:.3g}" if largest_weight != 1 else ""
        raise ValueError(
            f"C={C:.3g} is too large for features of length up to {radius:.3g} from "
            f"their mean{weight}: C times the squared length is {product:.1e}, and "
            f"above {MOST_DIGITS:.0e} rounding decides. Scale the features, for "
            "example by a StandardScaler, or lower C."
        )


def _is_in_memory(X: Any) -> bool:
    """Whether X is what scikit-learn calls array-like, and in memory."""
    if isinstance(X, np.memmap | str | Path) or callable(X):
        return False
    if isinstance(X, list | tuple):
        return not (X and isinstance(X[0], tuple | str | Path))
    module = type(X).__module__.split(".")[0]
    return module not in ("dask", "pyarrow", "dask_expr")
