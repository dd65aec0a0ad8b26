# SPDX-License-Identifier: BSD-3-Clause
"""SVMs on approximate kernel features, for any number of rows."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from leaveout._messages import did_you_mean, list_names
from leaveout._typing import FloatArray
from leaveout.adapt._checks import (
    check_class_weight,
    check_count,
    check_features,
    check_labels,
    check_number,
    check_penalties,
    check_sample_weight,
)
from leaveout.exceptions import AntiLearningWarning
from leaveout.large._dask import DistributedRows
from leaveout.large._features import FeatureMap
from leaveout.large._fit import FitCheckpoint, FitRun, check_digits
from leaveout.large._loo import LinearLoo, label_rows, leave_one_out_linear
from leaveout.large._rows import RowSource
from leaveout.large._small_c import LinearPath
from leaveout.large._solve import Sizes, solve_linear
from leaveout.large._sources import is_in_memory, open_rows
from leaveout.loo._multiclass import one_value_per_class, vote

FEATURES = ("fourier", "nystroem", "linear")


class FeatureSVC(ClassifierMixin, BaseEstimator):
    r"""Support vector classifier in a space of explicit features, with leave-one-out.

    For more rows than fit in a Gram matrix. The kernel is approximated by a map
    :math:`z(x)` to ``n_components`` features. In their space the classifier is that of
    :class:`~leaveout.SVC`, with hinge loss and an unregularised intercept, and is
    solved to its exact optimum. One pass over the rows serves all values of C.

    Every row is left out, with the map fixed: most labels follow from bounds at the
    optimum, the others from exact walks (docs/method/large). Of several values of C the
    one with the smallest leave-one-out error is chosen.

    Parameters
    ----------
    features : {"fourier", "nystroem", "linear"} or transformer, default="fourier"
        Random Fourier features of the RBF kernel
        (:class:`~sklearn.kernel_approximation.RBFSampler`), its Nyström approximation
        (:class:`~sklearn.kernel_approximation.Nystroem`), the columns themselves, or
        your own transformer, which is cloned and fitted on a sample of the rows.
    n_components : int, default=300
        Number of features of "fourier" and "nystroem".
    C : float or array-like of shape (n_C,), default=1.0
        Weight of the hinge loss, or several values to choose from.
    gamma : {"scale", "auto"} or float, default="scale"
        Width of the RBF kernel, as in :class:`~leaveout.SVC`.
    class_weight : dict or "balanced", default=None
        Factor of C per class.
    max_walks : int, default=2000
        Largest number of walks at each C. Rows without a proof widen ``loo_error_``.
    tol : float, default=1e-6
        Largest relative duality gap without a warning. A gap remains only if the
        optimum could not be proved.
    rows_at_once : int, default=8192
        Rows per block.
    rows_in_memory : int, default=200_000
        Up to this many rows, all features are kept in memory (on a cluster, in that of
        all workers). With more rows, memory holds only a sample of 131,072, some blocks
        and the rows next to the margins.
    n_jobs : int or None, default=None
        Threads; -1 for all processors. The results do not depend on it. The rows of a
        dask collection are computed by the workers of the cluster (docs/clusters).
    random_state : int, RandomState or None, default=None
        Seed of the features and of the sample.
    checkpoint : str or path-like, default=None
        A file that stores the state of the fit after each pass. If the fit is
        interrupted, a fit with the same data and parameters resumes from there. The
        file is not deleted.
    verbose : bool, default=False
        Whether to write a line for each pass to stderr.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    C_ : float
        The chosen value of C.
    coef_ : ndarray of shape (n_pairs, n_components)
        Weights of the features, one row per pair of classes.
    intercept_ : ndarray of shape (n_pairs,)
        Intercepts.
    transformer_ : transformer or None
        The fitted transformer; None for features="linear".
    loo_error_ : ProvedError
        Interval (low, high) of the leave-one-out error at ``C_``; a point if proved.
    loo_labels_ : ndarray of shape (n_rows,)
        Label of each row by the classifier without it.
    loo_proved_ : ndarray of bool, shape (n_rows,)
        Whether that label is proved, for all optimal intercepts. If not, it is the
        label by the classifier of all rows.
    path_ : dict of ndarray
        For each C: "C", "loo_low", "loo_high", "n_open" (rows without proof),
        "objective", "duality_gap" (largest of the pairs, relative).
    objective_ : ndarray of shape (n_pairs,)
        Primal values at ``C_``.
    duality_gap_ : ndarray of shape (n_pairs,)
        Relative duality gaps at ``C_``, over all rows.
    n_passes_ : int
        How often all rows were read, from the first count to the last label.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X has them and all are strings.

    See Also
    --------
    SVC : The classifier with an exact kernel.

    Notes
    -----
    Leave-one-out is conditional on the features: the landmarks of "nystroem" and the
    directions of "fourier" are not drawn again without a row.

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

    __module__ = "leaveout"

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

    _sizes = Sizes()  # tests lower these, to solve few rows like millions

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> FeatureSVC:
        """Solve the SVMs and leave every row out.

        Parameters
        ----------
        X : array, table, sparse matrix, path, dataset, dask collection or iterable
            Rows: an array or table of shape (n_rows, n_features), a
            ``numpy.memmap``, the path of a Parquet, Arrow or ``.npy`` file or of a
            folder of them, a ``pyarrow`` dataset, a dask array or dataframe, or an
            iterable of blocks (X, y) that can be iterated over repeatedly.
        y : array-like of shape (n_rows,), str or None
            Labels, or the name of their column; None if X is an iterable of blocks.
        sample_weight : array-like of shape (n_rows,), str or None
            Factor of C per row, or the name of its column.

        Returns
        -------
        FeatureSVC
            The fitted estimator.
        """
        Cs = self._check_parameters()
        kept = FitCheckpoint(self)
        source = self._open(X, y, sample_weight)
        drawn = int(check_random_state(self.random_state).randint(2**31 - 1))
        seed = kept.choose_seed(drawn, free=self.random_state is None)
        with kept.report_loss():
            self._solve(FitRun(self, source, kept, seed), Cs)
        return self

    def _solve(self, fit: FitRun, Cs: FloatArray) -> None:
        """Solve the problems, leave every row out, store the results."""
        path = solve_linear(
            fit.rows, fit.problems(Cs), samples=fit.samples,
            progress=fit.progress, sizes=fit.sizes, after_pass=fit.after_pass,
        )  # fmt: skip
        radius = max(each.radius for each in path.optima)
        check_digits(Cs, fit.largest_weight, radius)
        path, loos, thresholds, hinge = leave_one_out_linear(
            fit.rows, path, class_weight=fit.class_weight,
            class_sizes=np.array([part.n_weighted for part in fit.parts]),
            largest_weight=fit.largest_weight, max_walks=self.max_walks,
            sizes=fit.sizes,
        )  # fmt: skip
        # Smallest error, with open rows labelled by the full classifier; then smallest
        # C.
        k = min(np.argsort(Cs, kind="stable"), key=lambda c: loos[c].estimate)
        self._store(fit, path, loos, hinge, int(k))
        codes, self.loo_proved_ = label_rows(
            fit.rows, path, thresholds, loos[k], int(k), len(self.classes_)
        )
        self.loo_labels_ = self.classes_[codes]
        self.n_passes_ = fit.rows.n_passes

    def decision_function(self, X: Any) -> FloatArray:
        """Return the values that decide the label, by their sign or the largest.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows; features are computed ``rows_at_once`` rows at a time.

        Returns
        -------
        ndarray
            Two classes: f, (n_rows,), positive for ``classes_[1]``; more: one column
            per class, (n_rows, n_classes).
        """
        values = self._pair_values(X)
        if len(self.classes_) == 2:
            return values[:, 0]
        return one_value_per_class(values)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted label of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows, as in :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels, of the same type as y.
        """
        values = self._pair_values(X)
        return self.classes_[vote(values)]

    def _pair_values(self, X: Any) -> FloatArray:
        """Value of each pair of classes, (n_rows, n_pairs)."""
        check_is_fitted(self)
        m = self.rows_at_once
        if isinstance(X, np.memmap):  # only one block at a time is in memory
            starts = range(0, X.shape[0], m)
            blocks = (check_features(self, X[i : i + m], reset=False) for i in starts)
        else:
            X = check_features(self, X, reset=False)
            blocks = (X[i : i + m] for i in range(0, X.shape[0], m))
        features = FeatureMap(self.transformer_, np.zeros(self.coef_.shape[1]))
        points = np.column_stack([self.coef_, self.intercept_])
        dense = (b.toarray() if sparse.issparse(b) else b for b in blocks)
        return np.concatenate([features(block) @ points.T for block in dense])

    def _check_parameters(self) -> FloatArray:
        """Raise if a parameter is invalid; return the values of C."""
        if isinstance(self.features, str) and self.features not in FEATURES:
            raise ValueError(
                f"features must be {list_names(FEATURES)} or a transformer; got "
                f"{self.features!r}.{did_you_mean(self.features, FEATURES)}"
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

    def _open(self, X: Any, y: Any, sample_weight: Any) -> RowSource | DistributedRows:
        """Open the rows; check arrays in memory as in any scikit-learn classifier."""
        if is_in_memory(X):
            X = check_features(self, X, reset=True)
            y = check_labels(y, X.shape[0])
            if sample_weight is not None:
                sample_weight = check_sample_weight(sample_weight, X.shape[0])
            return open_rows(X, y, sample_weight, rows_at_once=self.rows_at_once)
        source = open_rows(X, y, sample_weight, rows_at_once=self.rows_at_once)
        self.n_features_in_ = source.schema.n_features
        if source.schema.names is not None:
            self.feature_names_in_ = source.schema.names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return source

    def _store(
        self,
        fit: FitRun,
        path: LinearPath,
        loos: list[LinearLoo],
        hinge: FloatArray,
        k: int,
    ) -> None:
        """Set the fitted attributes to those of the k-th C."""
        problems = path.problems
        W, b = problems.points[:, :-1], problems.points[:, -1]
        Cs = problems.C[:: len(fit.pairs)].copy()
        self.classes_ = fit.classes
        self.class_weight_ = fit.class_weight
        primal = 0.5 * (W**2).sum(axis=1) + problems.C * hinge
        dual = np.array([optimum.window_dual for optimum in path.optima])
        # A window omits hinges that are zero or linear: its optimum is below that of
        # all rows, and the difference bounds the distance to the optimum.
        gaps = np.maximum(primal - dual, 0.0) / np.maximum(primal, 1e-300)
        shape = (len(Cs), len(fit.pairs))
        self.path_ = {
            "C": Cs,
            "loo_low": np.array([loo.error.low for loo in loos]),
            "loo_high": np.array([loo.error.high for loo in loos]),
            "n_open": np.array([loo.n_open for loo in loos]),
            "objective": primal.reshape(shape).sum(axis=1),
            "duality_gap": gaps.reshape(shape).max(axis=1),
        }
        chosen = slice(k * shape[1], (k + 1) * shape[1])
        self.C_ = float(Cs[k])
        self.loo_error_ = loos[k].error
        self.transformer_ = fit.feature_map.transformer
        self.coef_ = W[chosen].copy()
        self.intercept_ = b[chosen] - self.coef_ @ fit.feature_map.center
        self.objective_ = primal[chosen]
        self.duality_gap_ = gaps[chosen]
        self._warn(fit, path, gaps)

    def _warn(self, fit: FitRun, path: LinearPath, gaps: FloatArray) -> None:
        """Warn of large gaps, and of classifiers that ignore the features."""
        problems = path.problems
        if gaps.max() > self.tol:
            worst = int(np.argmax(gaps))
            warnings.warn(
                f"The optimum is not proved at C={problems.C[worst]:g}: the duality "
                f"gap is {gaps[worst]:.1e}, above tol={self.tol:g}. "
                f"{int((gaps > self.tol).sum())} of {gaps.size} SVMs have such gaps. "
                "Scale the columns of X, or use a smaller C.",
                ConvergenceWarning,
                stacklevel=5,
            )
        # ||w|| is at most C light times the distance of the class means.
        largest = problems.C * problems.light * path.optima[0].radius
        ignored = np.linalg.norm(problems.points[:, :-1], axis=1) <= 1e-9 * largest
        n_pairs = len(fit.pairs)
        for p in np.flatnonzero(ignored.reshape(-1, n_pairs).all(axis=0)):
            codes = np.array([problems.negative[p], problems.positive[p]])
            chosen = self.classes_.tolist()[codes[int(problems.points[p, -1] > 0.0)]]
            pair = f" between {self.classes_[np.sort(codes)].tolist()}"
            warnings.warn(
                f"The SVM{pair if n_pairs > 1 else ''} predicts {chosen!r} for every "
                "row at every C: that class is heavier, and the classes overlap. Set "
                "class_weight, for example to 'balanced'.",
                AntiLearningWarning,
                stacklevel=5,
            )
