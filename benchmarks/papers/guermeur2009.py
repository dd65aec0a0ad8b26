# SPDX-License-Identifier: BSD-3-Clause
"""Check every statement of Guermeur & Monfrini (2009), and see what its bound is worth.

    python benchmarks/papers/guermeur2009.py --data DIR [--quick]
                                  [--parts random data selection comparison]

DIR holds mc_glass.npz and mc_vowel.npz; iris and wine come with scikit-learn. Features
are standardised on all rows. The paper has no experiments; these are ours.

random      1,000 random machines (Q = 2 ... 6, hard margin or quadratic loss), each
            with its exact leave-one-out: Lemma 1, Theorem 2, the sharper lemma and its
            two bounds, and both sides of Proposition 2.
data        The same on the four sets: number of errors beside the bounds.
selection   C and gamma (quadratic loss) chosen on half of the rows by each bound and by
            the exact error; error on the other half.
comparison  Hinge loss against one-vs-one and one-vs-rest SVC, each with C and gamma by
            exact leave-one-out on the half; error on the other half.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np
from common import print_table, write_config, write_rows
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import scale
from sklearn.svm import SVC

import leaveout as lo
from leaveout.llw._bounds import bound_llw, llw_geometry
from leaveout.llw._solve import LlwProblem, solve_llw
from leaveout.llw._walk import loo_llw_walk
from leaveout.run._parallel import limit_blas

NAME = "guermeur2009"
# Part -> title and columns of its printed table.
TABLES = {
    "random": (
        "Random models; the paper says: both ratios are 1 or more at an error, the\n"
        "errors are 0 to 1 times each bound, and Proposition 2 holds (difference 0)",
        {
            "classes": "n_classes", "models": "machines", "errors": "errors",
            "Lemma 1 ratio": "lemma1_smallest_ratio",
            "sharper": "sharp_smallest_ratio",
            "/ Theorem 2": "largest_share_of_theorem2",
            "/ sum": "largest_share_of_sharp_sum",
            "/ count": "largest_share_of_sharp_count",
            "Prop. 2": "proposition2_difference",
        },
    ),
    "data": (
        "Real sets: left-out errors and bounds, numbers of samples",
        {
            "set": "data", "model": "machine", "n": "n", "errors": "errors",
            "SVs": "support_vectors", "sharp_count": "sharp_count",
            "lemma_count": "lemma1_count", "sharp_sum": "sharp_sum",
            "Theorem 2": "theorem2",
        },
    ),
    "selection": (
        "C and gamma by each criterion (quadratic loss)",
        {
            "set": "data", "criterion": "criterion", "C": "C", "gamma": "gamma",
            "LOO error": "loo_error", "test error": "test_error",
        },
    ),
    "comparison": (
        "Hinge loss: three multi-class SVMs",
        {
            "set": "data", "classifier": "classifier", "C": "C", "gamma": "gamma",
            "LOO error": "loo_error", "test error": "test_error", "seconds": "seconds",
        },
    ),
}  # fmt: skip
GAMMAS = (0.01, 0.03, 0.1, 0.3, 1.0)
PENALTIES = (0.1, 1.0, 10.0, 100.0)


@dataclass
class RandomRow:
    """All random machines with Q classes."""

    n_classes: int
    machines: int
    errors: int
    lemma1_smallest_ratio: float
    sharp_smallest_ratio: float
    largest_share_of_theorem2: float
    largest_share_of_sharp_sum: float
    largest_share_of_sharp_count: float
    mean_errors: float
    mean_theorem2: float
    mean_sharp_sum: float
    mean_sharp_count: float
    proposition2_difference: float


@dataclass
class DataRow:
    """One machine on one set: numbers of samples."""

    data: str
    machine: str
    gamma: float
    n: int
    n_classes: int
    errors: int
    support_vectors: int
    sharp_count: int
    sharp_sum: float
    theorem2: float
    lemma1_count: int
    seconds: float


@dataclass
class ChoiceRow:
    """What a criterion chooses on one set."""

    data: str
    n_train: int
    criterion: str
    C: float
    gamma: float
    loo_error: float
    test_error: float


@dataclass
class ComparisonRow:
    """One classifier on one set."""

    data: str
    n_train: int
    classifier: str
    C: float
    gamma: float
    loo_error: float
    test_error: float
    seconds: float


def load(folder: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the four sets; of vowel the published training part."""
    sets = {"iris": load_iris(return_X_y=True), "wine": load_wine(return_X_y=True)}
    glass, vowel = (np.load(folder / f"mc_{name}.npz") for name in ("glass", "vowel"))
    sets["glass"] = glass["X"], glass["y"]
    rows = vowel["train_idx"][0]
    sets["vowel"] = vowel["X"][rows], vowel["y"][rows]
    return {name: (scale(X), np.asarray(y)) for name, (X, y) in sets.items()}


def random_machine(rng: np.random.Generator, Q: int) -> LlwProblem:
    """Return a hard margin, or a quadratic loss, with two samples a class or more."""
    n = int(rng.integers(2 * Q, 2 * Q + 12))
    codes = np.append(np.tile(np.arange(Q), 2), rng.integers(0, Q, n - 2 * Q))
    X = rng.normal(size=(n, 2)) + rng.uniform(0, 4) * rng.normal(size=(Q, 2))[codes]
    K = np.exp(-rng.uniform(0.1, 2.0) * ((X[:, None] - X) ** 2).sum(axis=2))
    if rng.random() < 0.5:
        return LlwProblem(K, codes, np.full(n, np.inf), Q)
    soft = LlwProblem(K, codes, np.full(n, 10 ** rng.uniform(-1, 3)), Q)
    return soft.as_hard_margin()


def left_out_errors(problem: LlwProblem, solution) -> np.ndarray:
    """Return who is wrong when left out; a tie is an error, as in the paper."""
    found = loo_llw_walk(problem, solution)
    values = found.values.copy()
    if problem.n_classes == 2:
        values = np.hstack([-values, values])
    rows = np.arange(problem.codes.size)
    own = values[rows, problem.codes].copy()
    values[rows, problem.codes] = -np.inf
    assert found.certified.all()
    return own <= values.max(axis=1) + 1e-9


def proposition2(problem: LlwProblem, solution) -> float:
    """Return the largest relative difference among the four sides."""
    Q, W = problem.n_classes, solution.coef
    gram = W.T @ problem.K @ W
    h = problem.K @ W + solution.intercept
    pairs = [(k, m) for k in range(Q) for m in range(k)]
    gaps = np.array(
        [
            np.abs(h[:, k] - h[:, m])[np.isin(problem.codes, (k, m))].min()
            for k, m in pairs
        ]
    )
    d = gaps.min()
    lengths = np.array([gram[k, k] + gram[m, m] - 2 * gram[k, m] for k, m in pairs])
    gammas = gaps / np.sqrt(lengths)  # geometrical margins, d (1 + d_kl) = gap
    margins = d**2 / Q * float((((gaps / d) / gammas) ** 2).sum())
    sides = np.array(
        [margins, np.trace(gram), solution.squared_norm, solution.alpha.sum() / (Q - 1)]
    )
    return float(np.ptp(sides) / sides.max())


def run_random(args: argparse.Namespace) -> None:
    """Check the statements on random machines."""
    rng = np.random.default_rng(args.seed)
    rows = []
    for Q in range(2, 7):
        cells, lemma1, sharp, difference = [], [np.inf], [np.inf], 0.0
        while len(cells) < (20 if args.quick else 200):
            problem = random_machine(rng, Q)
            solution = solve_llw(problem)
            if not solution.separable:
                continue
            wrong = left_out_errors(problem, solution)
            numbers = llw_geometry(problem, solution)
            lemma1 += numbers.paper_ratio[wrong].tolist()
            sharp += numbers.sharp_ratio[wrong].tolist()
            cells.append((wrong.sum(), *bound_counts(numbers)))
            difference = max(difference, proposition2(problem, solution))
        errors, paper, total, count, _ = np.array(cells).T
        rows.append(
            RandomRow(
                Q,
                len(cells),
                int(errors.sum()),
                min(lemma1),
                min(sharp),
                float((errors / paper).max()),
                float((errors / total).max()),
                float((errors / np.maximum(count, 1e-9)).max()),
                float(errors.mean()),
                float(paper.mean()),
                float(total.mean()),
                float(count.mean()),
                difference,
            )
        )
    report(args, rows, "random")


def bound_counts(numbers) -> tuple[float, float, float, float]:
    """Return Theorem 2, the sharper sum, the sharper count, the count of Lemma 1."""
    n = len(numbers.alpha)
    paper, lemma, total, count = (n * row.value for row in bound_llw(numbers))
    return paper, total, round(count), round(lemma)


def run_data(args: argparse.Namespace) -> None:
    """Show errors and bounds on the sets."""
    rows = []
    for name, (X, y) in load(args.data).items():
        codes = np.unique(y, return_inverse=True)[1]
        Q = int(codes.max()) + 1
        for gamma, C in ((1.0, np.inf), (0.1, 10.0)):
            started = process_time()
            K = np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))
            problem = LlwProblem(K, codes, np.full(len(y), C), Q)
            machine = "hard margin" if np.isinf(C) else f"quadratic, C={C:g}"
            problem = problem if np.isinf(C) else problem.as_hard_margin()
            solution = solve_llw(problem)
            if not solution.separable:
                print(name, machine, "not separable")
                continue
            wrong = left_out_errors(problem, solution)
            numbers = llw_geometry(problem, solution)
            paper, total, count, lemma1 = bound_counts(numbers)
            rows.append(
                DataRow(
                    name,
                    machine,
                    gamma,
                    len(y),
                    Q,
                    int(wrong.sum()),
                    int(solution.alpha.any(axis=1).sum()),
                    int(count),
                    total,
                    paper,
                    int(lemma1),
                    process_time() - started,
                )
            )
            assert wrong.sum() <= count
        if args.quick and name == "wine":
            break
    report(args, rows, "data")


def halves(args: argparse.Namespace, name: str, X: np.ndarray, y: np.ndarray):
    """Return training and test half, each class in both."""
    return train_test_split(X, y, test_size=0.5, stratify=y, random_state=args.seed)


def run_selection(args: argparse.Namespace) -> None:
    """Choose C and gamma by each criterion; not on vowel, where it takes minutes."""
    rows = []
    for name, (X, y) in load(args.data).items():
        if name == "vowel" or (args.quick and name != "iris"):
            continue
        train, test, y_train, y_test = halves(args, name, X, y)
        cells = []
        for gamma in GAMMAS:
            for C in PENALTIES:
                llw = lo.LLWClassifier(C=C, loss="quadratic", gamma=gamma)
                bounds = lo.llw_bounds(llw, train, y_train)
                error = np.mean(llw.fit(train, y_train).predict(test) != y_test)
                values = {row.name: row.value for row in bounds.rows}
                cells.append((C, gamma, values, float(error)))
        for criterion in ("exact", "sharp_count", "sharp_sum", "radius_margin"):
            C, gamma, values, error = min(
                cells, key=lambda cell, by=criterion: (cell[2][by], cell[0], cell[1])
            )
            rows.append(
                ChoiceRow(name, len(train), criterion, C, gamma, values["exact"], error)
            )
        C, gamma, values, error = min(cells, key=lambda cell: cell[3])
        rows.append(
            ChoiceRow(
                name, len(train), "best on test", C, gamma, values["exact"], error
            )
        )
    report(args, rows, "selection")


def run_comparison(args: argparse.Namespace) -> None:
    """Compare with one-vs-one and one-vs-rest."""
    rows = []
    for name, (X, y) in load(args.data).items():
        if args.quick and name != "iris":
            continue
        train, test, y_train, y_test = halves(args, name, X, y)
        gammas = GAMMAS[1:4] if name == "vowel" else GAMMAS
        penalties = (1.0, 10.0) if name == "vowel" else PENALTIES
        for label, model, prefix in (
            ("LLW", lo.LLWClassifier(), ""),
            ("one-vs-one", SVC(), ""),
            ("one-vs-rest", OneVsRestClassifier(SVC()), "estimator__"),
        ):
            started = process_time()
            grid = {f"{prefix}gamma": list(gammas), f"{prefix}C": list(penalties)}
            search = lo.LooSearchCV(model, grid).fit(train, y_train)
            best = search.best_params_
            error = float(np.mean(search.predict(test) != y_test))
            rows.append(
                ComparisonRow(
                    name,
                    len(train),
                    label,
                    best[f"{prefix}C"],
                    best[f"{prefix}gamma"],
                    1.0 - search.best_score_,
                    error,
                    process_time() - started,
                )
            )
    report(args, rows, "comparison")


def report(args: argparse.Namespace, rows: list, part: str) -> None:
    """Print the rows and, of a whole run, store them."""
    title, columns = TABLES[part]
    print(f"\n{title}")
    values = [[getattr(row, name) for name in columns.values()] for row in rows]
    texts = [[v if isinstance(v, str) else f"{v:.3g}" for v in row] for row in values]
    print_table(list(columns), texts, n_left=sum(isinstance(v, str) for v in values[0]))
    if not args.quick:
        write_rows(NAME, rows, f"{part}.csv")


PARTS = {
    "random": run_random,
    "data": run_data,
    "selection": run_selection,
    "comparison": run_comparison,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of .npz sets")
    parser.add_argument("--quick", action="store_true", help="a part, not stored")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with limit_blas(1):
        for part in args.parts:
            PARTS[part](args)
    notes = ["vowel: the published training part"]
    if not args.quick:
        write_config(NAME, __file__, args, notes)


if __name__ == "__main__":
    main()
