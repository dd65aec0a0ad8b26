# SPDX-License-Identifier: BSD-3-Clause
"""Is leave-one-out exact with everything inside the fold? Refits of whole Pipelines.

Steps, data sets, kernels, models (two classes and more, one-vs-rest, balanced weights,
regression), C, sample weights and groups are combined so that every pair of values
occurs together (pairwise covering design). For some rows of each combination, or all
with ``--rows 0``, scikit-learn fits a clone of the Pipeline without the row or its
group. On the features of this clone each binary subproblem is solved in double
precision: LIBSVM, its support vectors polished to 1e-12, or else an interior point
(``clarabel``). Nothing of a reference is our code.

A line of results.csv is one combination. ``wrong``: labels that differ from those of
the polished values although the sample is not ambiguous. ``loop``: labels that differ
from those that scikit-learn's clone predicts, although LIBSVM, whose kernel values have
single precision, agrees with the polished values to 1e-3. ``beyond``: values of a
subproblem that differ by more than 1e-7 max(1, |f|), or lie that far outside the
interval of all optimal values. ``deviation``: the largest of these differences. Not
compared are samples that are not certified (``uncertified``), and subproblems that no
reference solves to 1e-9 (``unsolved``). Run:
``python benchmarks/exactness_fold.py --data DIR [--quick]``
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from collections.abc import Iterator
from datetime import date
from itertools import combinations
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import sklearn
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification, make_regression
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import (
    SelectFpr,
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
    f_classif,
    f_regression,
)
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, SVR

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from exactness_svr import Case, polish, solve_by_libsvm
from oracles.binary import svc_clarabel, svc_refit
from oracles.regression import optimal_intercepts, svr_clarabel

import leaveout as lo
from leaveout.run._parallel import limit_blas

RESULTS = Path(__file__).parent / "results" / "exactness_fold"
BINARY = (
    "bio_parkinsons", "ccv_sonar", "ccv_heart_statlog", "ida_breast_cancer",
    "bio_breast_wisconsin", "ida_thyroid", "ida_titanic", "ida_flare_solar",
    "ccv_australian", "chem_dhfr", "bio_colon", "bio_golub", "random_2",
)  # fmt: skip
MULTI = ("mc_glass", "mc_vowel", "mc_khan_srbct", "random_3")
REGRESSION = ("reg_autoprice", "reg_pharynx", "reg_cpu", "random_r")
LARGEST = 300  # rows of a set, drawn from all
SAME, SOLVED = 1e-7, 1e-9
ROUGH = 1e-3  # with features of very different scales, LIBSVM is less precise
N_CANDIDATES = 40  # combinations among which the one with most new pairs is taken


def steps_of(name: str, regression: bool) -> list[Any]:
    """Return the steps with a name; selections score by the kind of target."""
    best = f_regression if regression else f_classif
    one_hot = OneHotEncoder(handle_unknown="ignore")
    return {
        "none": ["passthrough"],
        "standard": [StandardScaler()],
        "min-max": [MinMaxScaler()],
        "robust": [RobustScaler()],
        "max-abs": [MaxAbsScaler()],
        "standard, k best": [StandardScaler(), SelectKBest(best, k=4)],
        "percentile, min-max": [
            SelectPercentile(best, percentile=60),
            MinMaxScaler(),
        ],
        "min-max, variance": [MinMaxScaler(), VarianceThreshold(0.004)],
        "mean, standard": [SimpleImputer(), StandardScaler()],
        "median with indicators, robust": [
            SimpleImputer(strategy="median", add_indicator=True),
            RobustScaler(),
        ],
        "mode, min-max": [SimpleImputer(strategy="most_frequent"), MinMaxScaler()],
        "constant, standard, k best": [
            SimpleImputer(strategy="constant", fill_value=1.0),
            StandardScaler(),
            SelectKBest(best, k=3),
        ],
        "PCA": [PCA(3, svd_solver="full")],
        "standard, PCA": [StandardScaler(), PCA(0.9, svd_solver="full")],
        "PCA whitened": [PCA(2, whiten=True, svd_solver="full"), MinMaxScaler()],
        "standard, normalizer": [StandardScaler(), Normalizer()],
        "function, standard": [FunctionTransformer(np.arctan), StandardScaler()],
        "k best, polynomial": [
            SelectKBest(best, k=3),
            PolynomialFeatures(2),
            StandardScaler(),
        ],
        "union of scaler and PCA": [
            make_union(MinMaxScaler(), PCA(1, svd_solver="full"))
        ],
        "union of scaler and k best": [
            StandardScaler(),
            make_union(RobustScaler(), SelectKBest(best, k=1)),
        ],
        "columns one-hot": [
            ColumnTransformer([("a", one_hot, [0, 1])], remainder=StandardScaler())
        ],
        "columns nested": [
            ColumnTransformer(
                [
                    (
                        "a",
                        make_pipeline(SimpleImputer(strategy="most_frequent"), one_hot),
                        [0],
                    )
                ],
                remainder=make_pipeline(SimpleImputer(), StandardScaler()),
            ),
            MaxAbsScaler(),
        ],
        "nested": [
            make_pipeline(SimpleImputer(), make_pipeline(StandardScaler())),
            make_pipeline(SelectKBest(best, k=3), RobustScaler()),
        ],
        "unknown quantile": [
            SelectKBest(best, k=4),
            QuantileTransformer(n_quantiles=20),
            StandardScaler(),
        ],
        "unknown bins": [
            StandardScaler(),
            SelectKBest(best, k=4),
            KBinsDiscretizer(4, encode="onehot-dense", strategy="uniform"),
        ],
        "unknown power": [
            SelectKBest(best, k=2), MinMaxScaler(), PowerTransformer()
        ],
        "unknown neighbours": [
            VarianceThreshold(), KNNImputer(n_neighbors=3), StandardScaler()
        ],
        "unknown selection": [RobustScaler(), SelectFpr(best, alpha=0.2)],
    }[name]  # fmt: skip


STEPS = (
    "none", "standard", "min-max", "robust", "max-abs", "standard, k best",
    "percentile, min-max", "min-max, variance", "mean, standard",
    "median with indicators, robust", "mode, min-max", "constant, standard, k best",
    "PCA", "standard, PCA", "PCA whitened", "standard, normalizer",
    "function, standard", "k best, polynomial", "union of scaler and PCA",
    "union of scaler and k best", "columns one-hot", "columns nested", "nested",
    "unknown quantile", "unknown bins", "unknown power", "unknown neighbours",
    "unknown selection",
)  # fmt: skip
WITH_HOLES = (
    "mean", "median", "mode", "constant", "columns nested", "nested", "unknown n"
)  # fmt: skip
KERNELS = {
    "linear": {"kernel": "linear"},
    "rbf, scale": {"gamma": "scale"},
    "rbf": {"gamma": 0.3},
    "poly, scale": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "poly": {"kernel": "poly", "degree": 3, "coef0": 1.0, "gamma": 0.1},
}
MODELS = {
    "SVC": BINARY + MULTI,
    "SVC balanced": BINARY + MULTI,
    "one-vs-rest": BINARY[:2] + MULTI,
    "one-vs-rest balanced": BINARY[2:4] + MULTI,
    "SVR": REGRESSION,
}
FACTORS: dict[str, tuple[Any, ...]] = {
    "steps": STEPS,
    "data": BINARY + MULTI + REGRESSION,
    "kernel": tuple(KERNELS),
    "model": tuple(MODELS),
    "C": (0.1, 1.0, 30.0),
    "weights": (False, True),
    "groups": (False, True),
}


class LeftOut(NamedTuple):
    """Answers of a model about rows it was fitted without.

    Ends of the values of each subproblem (n_rows, n_subproblems), NaN where the fold
    lacks a class, and scikit-learn's predictions, or None if LIBSVM stalled.
    """

    low: np.ndarray
    high: np.ndarray
    predictions: np.ndarray | None  # where LIBSVM is precise
    precise: np.ndarray  # rows where LIBSVM agrees with the polished values
    sources: list[str]
    residual: float


def covering_design(
    factors: dict[str, tuple[Any, ...]], rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Yield combinations in which all possible pairs of values occur, greedily."""

    def possible(cell: dict[str, Any]) -> bool:
        if "model" in cell and "data" in cell:
            return cell["data"] in MODELS[cell["model"]]
        return True

    def pairs(cell: dict[str, Any]) -> set[Any]:
        return set(combinations(sorted(cell.items()), 2))

    missing = {
        pair
        for a, b in combinations(factors, 2)
        for value in factors[a]
        for other in factors[b]
        if possible({a: value, b: other})
        for pair in pairs({a: value, b: other})
    }
    while missing:
        first = dict(min(missing, key=str))
        best, most = first, -1
        for _ in range(N_CANDIDATES):
            cell = dict(first)
            for name in rng.permutation(list(factors)):
                values = [
                    value
                    for value in factors[name]
                    if name not in cell and possible({**cell, name: value})
                ]
                if values:
                    cell[str(name)] = values[rng.integers(len(values))]
            count = len(pairs(cell) & missing) if len(cell) == len(factors) else -1
            if count > most:
                best, most = cell, count
        missing -= pairs(best)
        yield {name: best[name] for name in factors}


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return at most LARGEST rows of a set, or random data of that kind."""
    rng = np.random.default_rng(0)
    if name == "random_r":
        X, y = make_regression(60, 8, n_informative=4, noise=10.0, random_state=0)
    elif name.startswith("random"):
        n_classes = int(name[-1])
        X, y = make_classification(
            70, 8, n_informative=4, n_classes=n_classes, flip_y=0.1, random_state=0
        )
        X[:, 0] = rng.integers(0, 3, 70)  # few values: ties
    else:
        with np.load(folder / f"{name}.npz") as file:
            X, y = file["X"].astype(np.float64), file["y"]
    rows = np.sort(rng.permutation(y.size)[:LARGEST])
    X, y = X[rows], y[rows]
    return X, (y - y.mean()) / y.std() if name in REGRESSION else y


def prepare(X: np.ndarray, steps: str) -> np.ndarray:
    """Make the first columns categories, or holes, where the steps need them."""
    X, rng = X.copy(), np.random.default_rng(1)
    if steps.startswith("columns"):
        for column in (0, 1):
            ends = np.quantile(X[:, column], [0.3, 0.6])
            X[:, column] = np.searchsorted(ends, X[:, column])
        X[5, 0] = 7.0  # a category that vanishes without this row
    if steps.startswith(WITH_HOLES):
        X[rng.random(X.shape) < 0.04] = np.nan
    return X


def make_model(cell: dict[str, Any]) -> Pipeline:
    """Return the Pipeline of a combination."""
    options = {**KERNELS[cell["kernel"]], "C": cell["C"]}
    svm: Any = SVR(**options, epsilon=0.1)
    if cell["model"] != "SVR":
        weight = "balanced" if cell["model"].endswith("balanced") else None
        svm = SVC(**options, class_weight=weight)
    if cell["model"].startswith("one"):
        svm = OneVsRestClassifier(svm)
    return make_pipeline(*steps_of(cell["steps"], cell["model"] == "SVR"), svm)


def gram(svm: Any, A: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the kernel values of A, and of B with A, in double precision."""
    gamma = svm.gamma
    if isinstance(gamma, str):
        spread = A.var() if gamma == "scale" else 1.0
        gamma = 1.0 / (A.shape[1] * spread) if spread else 1.0
    if svm.kernel == "linear":  # the intercept makes up for the origin
        centre = A.mean(axis=0)
        A, B = A - centre, B - centre
        return A @ A.T, B @ A.T
    if svm.kernel == "rbf":
        return tuple(np.exp(-gamma * cdist(Z, A, "sqeuclidean")) for Z in (A, B))
    return tuple((gamma * Z @ A.T + svm.coef0) ** svm.degree for Z in (A, B))


def leave_rows_out(
    model: Pipeline,
    X: np.ndarray,
    y: np.ndarray,
    rows: np.ndarray,
    weights: np.ndarray | None = None,
) -> LeftOut:
    """Fit a clone without some rows, and return the values of all subproblems."""
    kept = np.setdiff1d(np.arange(y.size), rows)
    (name, svm), w = model.steps[-1], np.ones(y.size) if weights is None else weights
    one_vs_rest = hasattr(svm, "estimator")
    path = f"{name}__estimator__" if one_vs_rest else f"{name}__"
    own = clone(model).set_params(**{f"{path}tol": 1e-10, f"{path}max_iter": 10**6})
    given = {f"{name}__sample_weight": w[kept]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if not one_vs_rest and not isinstance(svm, SVR):
            own.set_params(**{f"{path}decision_function_shape": "ovo"})
        own.fit(X[kept], y[kept], **({} if one_vs_rest else given))
        predictions = own.predict(X[rows])
        rough = [] if isinstance(svm, SVR) else own.decision_function(X[rows])
    stalled = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    if stalled or (weights is not None and one_vs_rest):
        predictions = None  # OneVsRestClassifier does not pass the weights on
    A, B = X[kept], X[rows]
    for _, step in model.steps[:-1]:  # of the rows it is fitted on, as a Pipeline does
        if step != "passthrough":
            fitted = clone(step)
            A, B = fitted.fit_transform(A, y[kept]), fitted.transform(B)
    A, B = (Z.toarray() if hasattr(Z, "toarray") else Z for Z in (A, B))
    fitted = own.steps[-1][1]
    K, k = gram(svm.estimator if one_vs_rest else svm, A, B)
    size = K.diagonal().mean() or 1.0  # the solvers see K / size and C size
    K, k, w = K / size, k / size, w * size
    if isinstance(svm, SVR):
        ends, source, residual = solve_svr(K, y[kept], svm.C * w[kept], svm.epsilon, k)
        return LeftOut(ends[:, :1], ends[:, 1:], None, rows < 0, [source], residual)
    lows, highs, sources, residual = [], [], [], 0.0
    for members, signs, C in subproblems(fitted, np.unique(y), y[kept], w[kept]):
        if np.unique(signs).size < 2:
            lows.append(np.full(rows.size, np.nan))
            highs.append(lows[-1])
            continue
        problem = K[np.ix_(members, members)], signs, C
        source, fit = "libsvm", svc_refit(*problem)
        if fit is None:
            source, fit = "clarabel", svc_clarabel(*problem)
        if fit.kkt > SOLVED:
            lows.append(np.full(rows.size, np.nan))
            highs.append(lows[-1])
            sources.append("unsolved")
            continue
        g = k[:, members] @ fit.beta
        lows.append(g + fit.b_low)
        highs.append(g + fit.b_high)
        sources.append(source)
        residual = max(residual, fit.kkt)
    low, high = np.column_stack(lows), np.column_stack(highs)
    rough, precise = np.reshape(rough, (rows.size, -1)), np.zeros(rows.size, dtype=bool)
    if rough.shape == low.shape:  # not if a class has vanished
        near = ROUGH * np.maximum(1.0, np.abs(low))
        precise = ((rough > low - near) & (rough < high + near)).all(axis=1)
    return LeftOut(low, high, predictions, precise, sources, residual)


def subproblems(
    fitted: Any, classes: np.ndarray, y: np.ndarray, w: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield rows, signs and upper bounds of the binary subproblems, in our order."""
    everyone = np.arange(y.size)
    if hasattr(fitted, "estimators_"):
        wanted = classes[1:] if classes.size == 2 else classes
        for label in wanted:
            signs = np.where(y == label, 1.0, -1.0)
            C = np.full(y.size, fitted.estimator.C)
            if fitted.estimator.class_weight == "balanced":
                sizes = np.where(signs > 0, *(np.sum(signs == s) for s in (1, -1)))
                C *= y.size / (2 * sizes)
            yield everyone, signs, C * w
        return
    names = fitted.classes_
    C = fitted.C * fitted.class_weight_[np.searchsorted(names, y)] * w
    for first, second in combinations(classes, 2):
        members = everyone[(y == first) | (y == second)]
        positive = second if classes.size == 2 else first
        yield members, np.where(y[members] == positive, 1.0, -1.0), C[members]


def solve_svr(
    K: np.ndarray, y: np.ndarray, C: np.ndarray, epsilon: float, k: np.ndarray
) -> tuple[np.ndarray, str, float]:
    """Return the ends of the predictions at new rows, and how they were found."""
    case = Case(K, y, C, epsilon)
    source, beta = "libsvm", polish(case, solve_by_libsvm(case))
    if beta is None:
        source = "clarabel"
        rough = svr_clarabel(*case)[0]
        beta = polish(case, rough)
    if beta is None:
        return np.full((len(k), 2), np.nan), "unsolved", 0.0
    ends = np.array(optimal_intercepts(y - K @ beta, C, epsilon))
    return (k @ beta)[:, None] + ends, source, 1e-11


def labels_of(values: np.ndarray, classes: np.ndarray, one_vs_rest: bool) -> np.ndarray:
    """Return the labels that values of subproblems give, as scikit-learn does."""
    if classes.size == 2:
        return classes[(values[:, 0] > 0).astype(int)]
    if one_vs_rest:
        return classes[values.argmax(axis=1)]
    votes = np.zeros((values.shape[0], classes.size))
    for column, (i, j) in enumerate(combinations(range(classes.size), 2)):
        winners = np.where(values[:, column] > 0, i, j)
        votes[np.arange(winners.size), winners] += np.isfinite(values[:, column])
    return classes[votes.argmax(axis=1)]


def check(
    cell: dict[str, Any], X: np.ndarray, y: np.ndarray, n_rows: int, seed: int
) -> dict[str, Any]:
    """Compare some left-out rows of one combination with refits."""
    rng, model = np.random.default_rng(seed), make_model(cell)
    X = prepare(X, cell["steps"])
    weights = rng.choice([0.5, 1.0, 3.0], y.size) if cell["weights"] else None
    groups = np.arange(y.size) // 3 if cell["groups"] else None
    if groups is not None:
        rng.shuffle(groups)
    started = process_time()
    result = lo.leave_one_out(model, X, y, sample_weight=weights, groups=groups)
    ours = process_time() - started
    regression = cell["model"] == "SVR"
    values = result.predictions if regression else result.binary_values
    values = values.reshape(y.size, -1)
    classes, row = np.unique(y), dict(cell)
    counts = ("checked", "libsvm", "clarabel", "unsolved", "uncertified")
    total = dict.fromkeys((*counts, "wrong", "loop", "beyond"), 0)
    deviation = residual = 0.0
    ordered = rng.permutation(y.size)
    if not regression:  # those nearest to zero first
        ordered = np.argsort(np.abs(values).min(axis=1))
        ordered = np.r_[ordered[: n_rows // 3], rng.permutation(ordered[n_rows // 3 :])]
    for r in ordered[: n_rows or None]:
        rows = np.array([r]) if groups is None else np.flatnonzero(groups == groups[r])
        truth = leave_rows_out(model, X, y, rows, weights)
        found = values[rows]
        middle = 0.5 * (truth.low + truth.high)
        with np.errstate(invalid="ignore"):
            outside = np.maximum(truth.low - found, found - truth.high)
        apart = np.maximum(outside, 0.0) / np.maximum(1.0, np.abs(middle))
        certified = result.certified[rows]
        apart = np.where(certified[:, None], np.nan_to_num(apart), 0.0)
        if not regression and "unsolved" not in truth.sources:
            sure = certified & ~result.ambiguous[rows]
            labels = labels_of(middle, classes, cell["model"].startswith("one"))
            total["wrong"] += int(((labels != result.predictions[rows]) & sure).sum())
            if truth.predictions is not None:
                sure &= truth.precise & (truth.predictions != result.predictions[rows])
                total["loop"] += int(sure.sum())
        total["checked"] += rows.size
        total["uncertified"] += int((~certified).sum())
        for source in truth.sources:
            total[source] += 1
        total["beyond"] += int((apart > SAME).sum())
        deviation = max(deviation, float(apart.max()))
        residual = max(residual, truth.residual)
    row |= {"n": y.size, "p": X.shape[1], **total}
    row |= {"deviation": f"{deviation:.1e}", "residual": f"{residual:.1e}"}
    row |= {"refits": int(result.counts["refits"]), "ours": round(ours, 3)}
    return row | {"seconds": round(process_time() - started, 2)}


def store(rows: list[dict[str, Any]], args: argparse.Namespace) -> None:
    """Write the table, and what it was made with."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    config = f"date: {date.today().isoformat()}\nrows: {args.rows}\nseed: {args.seed}\n"
    config += f"leaveout: {lo.__version__}\nscikit-learn: {sklearn.__version__}\n"
    (RESULTS / "config.yaml").write_text(config)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of .npz sets")
    parser.add_argument("--quick", action="store_true", help="small sets, not stored")
    parser.add_argument("--rows", type=int, default=3, help="checked per combination")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="part of a combination, to repeat it")
    args = parser.parse_args()
    cells = list(covering_design(FACTORS, np.random.default_rng(args.seed)))
    if args.quick:
        cells = [cell for cell in cells if cell["data"].startswith("random")][::4]
    rows: list[dict[str, Any]] = []
    for seed, cell in enumerate(cells):
        what = " | ".join(map(str, cell.values()))
        if args.only and args.only not in what:
            continue
        X, y = load(args.data, cell["data"])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows.append(check(cell, X, y, args.rows, seed))
        except Exception as error:  # of ours or of a reference: both must be read
            print(f"{what}: {type(error).__name__}: {error}", flush=True)
            continue
        print(" | ".join(map(str, rows[-1].values())), flush=True)
        if not (args.quick or args.only):
            store(rows, args)
    counts = ("checked", "wrong", "loop", "beyond")
    print(
        {key: sum(row[key] for row in rows) for key in counts},
        "failed:",
        len(cells) - len(rows),
    )


if __name__ == "__main__":
    with limit_blas(1):
        main()
