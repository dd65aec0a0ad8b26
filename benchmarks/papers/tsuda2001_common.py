# SPDX-License-Identifier: BSD-3-Clause
"""Cells of the grids of Tsuda, Rätsch, Mika & Müller (2001), and the choice on them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np
from common import RESULTS, print_table, write_rows

import leaveout as lo
from leaveout.adapt._prepare import fit_task
from leaveout.loo._leave_out import solve_task
from leaveout.methods._bounds import bound_jaakkola_haussler, bound_span, bound_sv_count

NAME = "tsuda2001"
FIGURES = Path(__file__).resolve().parents[2] / "docs" / "images"
CLASSIFIERS = {"SVM": lo.SVC, "LPM": lo.LPMClassifier}
# Criterion -> (units of the features, members): the shares of votes are averaged.
# Run 1 was fixed before it was used on the sets of the figures, run 2 after it.
PREDICTORS = {
    "Run 1": [("natural", 10)],
    "Run 2": [("natural", 5), ("relative", 5)],
    "Printed": [("printed", 10)],
}
COLOURS = {
    "OPT": "0.75", "LOO": "C0", "Span": "C1", "JH": "C2", "SVC": "C4",
    "Run 1": "C6", "Run 2": "C3", "Printed": "C5",
}  # fmt: skip


@dataclass
class Cell:
    """One machine of a grid: what the criteria say of it, and the truth."""

    machine: object
    X: np.ndarray
    y: np.ndarray
    wrong: np.ndarray
    ambiguous: np.ndarray
    scores: dict[str, float]
    loo_seconds: float


@dataclass
class Row:
    """One bar of a figure; errors in per cent."""

    figure: str
    data: str
    criterion: str
    error: float
    error_bar: float
    n: int


@dataclass
class Guess:
    """How well left-out errors are predicted, sample by sample."""

    figure: str
    data: str
    features: str
    accuracy: float
    majority: float
    rate_error: float
    seconds_share: float
    n_samples: int


def measure(kind: str, C: float, gamma: float, train, test) -> Cell:
    """Fit one machine, leave all samples out, test it."""
    machine = CLASSIFIERS[kind](C=C, gamma=gamma)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # anti-learning cells are part of the grid
        started = process_time()
        loo = lo.leave_one_out(machine, *train)
        seconds = process_time() - started
        machine.fit(*train)
    scores = {
        "OPT": float(np.mean(machine.predict(test[0]) != test[1])),
        "LOO": loo.error,
    }
    if kind == "SVM":
        scores |= bounds(machine, *train)
    wrong = loo.predictions != loo.y
    return Cell(machine, *train, wrong, loo.ambiguous, scores, seconds)


def bounds(machine: lo.SVC, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Span, JH and SVC of one machine."""
    (subproblem,), (solution,) = solve_task(fit_task(machine, X, y))
    problem = subproblem.problem
    return {
        "Span": bound_span(problem, solution).value,
        "JH": bound_jaakkola_haussler(problem, solution).value,
        "SVC": bound_sv_count(problem, solution).value,
    }


def learn(
    cells: list[Cell], name: str, quick: bool, seed: int = 0
) -> list[lo.LooPredictor]:
    """Train the predictors of a criterion on cells with known left-out labels."""
    tasks = [(cell.machine, cell.X, cell.y) for cell in cells]
    wrong = [np.ma.array(cell.wrong, mask=cell.ambiguous) for cell in cells]
    most = 500 if quick else 2000
    return [
        lo.LooPredictor(
            variant=variant, n_estimators=n, max_samples=most, random_state=seed
        ).fit(tasks, wrong)
        for variant, n in PREDICTORS[name]
    ]


def guess(
    cells: list[Cell],
    name: str,
    predictors: list[lo.LooPredictor],
    figure: str,
    data: str,
) -> Guess:
    """Add the predicted error of every cell to its scores; compare with the truth."""
    hits, most, misses, share = [], [], [], []
    for cell in cells:
        started = process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lo.PredictorWarning)
            values = [
                p.decision_values(cell.machine, cell.X, cell.y) for p in predictors
            ]
        votes = (np.vstack(values) < 0).mean(axis=0)
        share.append((process_time() - started) / cell.loo_seconds)
        cell.scores[name] = float(votes.mean())
        hits.append(np.mean((votes > 0.5) == cell.wrong))
        most.append(max(cell.wrong.mean(), 1 - cell.wrong.mean()))
        misses.append(abs(votes.mean() - cell.wrong.mean()))
    return Guess(
        figure,
        data,
        name,
        100 * float(np.mean(hits)),
        100 * float(np.mean(most)),
        100 * float(np.mean(misses)),
        100 * float(np.median(share)),
        sum(cell.y.size for cell in cells),
    )


def selected(cells: list[Cell], criterion: str) -> float:
    """Test error of the cell a criterion chooses; of equal ones the first."""
    values = np.round([cell.scores[criterion] for cell in cells], 12)
    return cells[int(np.argmin(values))].scores["OPT"]


def summarise(
    figure: str, data: str, groups: list[list[Cell]], criteria: list[str]
) -> list[Row]:
    """Mean model selection error of every criterion, with its standard error."""
    rows = []
    for criterion in criteria:
        errors = 100 * np.array([selected(cells, criterion) for cells in groups])
        bar = errors.std(ddof=1) / np.sqrt(errors.size) if errors.size > 1 else np.nan
        rows.append(
            Row(figure, data, criterion, errors.mean(), float(bar), errors.size)
        )
    return rows


def show(rows: list[Row], guesses: list[Guess]) -> None:
    """Print the figures as tables, and how well single errors are predicted."""
    print("\nTest error of the chosen model in per cent, ± standard error")
    criteria = list(dict.fromkeys(row.criterion for row in rows))
    bars = {(row.figure, row.data, row.criterion): row for row in rows}
    table = []
    for place in dict.fromkeys((row.figure, row.data) for row in rows):
        found = [bars.get((*place, name)) for name in criteria]
        texts = [f"{r.error:.1f}±{r.error_bar:.1f}" if r else "" for r in found]
        table.append([*place, *texts])
    print_table(["figure", "data", *criteria], table, n_left=2)
    print(
        "The paper draws bars without numbers. It says that Pred is almost as good as "
        "LOO in\nmost cases, and for LPMs slightly worse on heart.\n\n"
        "Predicted errors of single samples, in per cent; time in per cent of LOO"
    )
    print_table(
        ["figure", "data", "features", "right", "majority", "rate off", "time"],
        [
            [g.figure, g.data, g.features, f"{g.accuracy:.1f}", f"{g.majority:.1f}",
             f"{g.rate_error:.1f}", f"{g.seconds_share:.0f}"]
            for g in guesses
        ],
        n_left=3,
    )  # fmt: skip


def store(part: str, rows: list[Row], guesses: list[Guess]) -> None:
    """Write both tables and the figure of one part."""
    write_rows(NAME, rows, f"{part}.csv")
    write_rows(NAME, guesses, f"{part}_samples.csv")
    draw(rows, FIGURES / f"tsuda2001_{part}.png")
    print(f"stored in {RESULTS.parent.name}/{RESULTS.name}/{NAME} and {FIGURES.name}/")


def draw(rows: list[Row], path: Path) -> None:
    """Draw a panel for each figure and data set, a bar for each criterion."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figures = list(dict.fromkeys(row.figure for row in rows))
    sets = list(dict.fromkeys(row.data for row in rows))
    fig, axes = plt.subplots(
        len(figures), len(sets), squeeze=False,
        figsize=(3.6 * len(sets), 2.6 * len(figures)), layout="constrained",
    )  # fmt: skip
    for i, figure in enumerate(figures):
        for j, data in enumerate(sets):
            here = [row for row in rows if (row.figure, row.data) == (figure, data)]
            ax = axes[i, j]
            bars = ax.bar(
                [row.criterion for row in here],
                [row.error for row in here],
                yerr=[row.error_bar for row in here],
                color=[COLOURS[row.criterion] for row in here],
                capsize=3,
            )
            ax.bar_label(bars, fmt="%.1f", fontsize=7, padding=2)
            # The paper's own features can choose cells at chance level: cut them off.
            ax.set_ylim(0, 1.6 * max(r.error for r in here if r.criterion != "Printed"))
            ax.set_title(f"{figure}: {data}", fontsize=10)
            ax.tick_params(labelsize=8)
            ax.spines[["top", "right"]].set_visible(False)
            if j == 0:
                ax.set_ylabel("test error of the choice (%)", fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, dpi=110)
    plt.close(fig)
