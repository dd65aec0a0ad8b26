# SPDX-License-Identifier: BSD-3-Clause
"""Figures 1 to 3 of Weston (1999): toy problems, and thyroid over the kernel width."""

from __future__ import annotations

import argparse
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
from common import load, print_table, write_rows

import leaveout as lo

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
LOG_WIDTHS = np.arange(-6.0, 3.01, 0.5)
DOT, CROSS = -1.0, 1.0


def run_figure1(args: argparse.Namespace) -> list[str]:
    """Draw the LOOM and SVMs with C = 1 and 100 on two problems."""
    problems = [with_outlier(), overlapping()]
    models = {
        "LOOM": lo.LOOMClassifier(gamma=1.0),
        "SVM, C = 1": lo.SVC(C=1.0, gamma=1.0, fit_intercept=False),
        "SVM, C = 100": lo.SVC(C=100.0, gamma=1.0, fit_intercept=False),
    }
    figure, axes = panels(3, 2)
    for row, (name, model) in enumerate(models.items()):
        for column, (X, y) in enumerate(problems):
            model.fit(X, y)
            draw(axes[row, column], model, X, y, name)
            wrong = int((model.predict(X) != y).sum())
            print(f"figure 1 problem {column + 1}: {name}: {wrong} training errors, "
                  f"{model.support_.size} support vectors")  # fmt: skip
    save(figure, "weston1999_figure1", args)
    return ["Figures 1 and 2: our own points, made after the paper's text"]


def run_figure2(args: argparse.Namespace) -> list[str]:
    """Draw how an outlier becomes a cluster when two more samples join it."""
    figure, axes = panels(1, 2)
    for axis, joined in zip(axes[0], (False, True), strict=True):
        X, y = clusters(joined)
        model = lo.LOOMClassifier(gamma=1.0).fit(X, y)
        title = "two more join it: a cluster" if joined else "one cross: an outlier"
        draw(axis, model, X, y, title)
        lonely = model.predict(X[[5]])[0] == CROSS
        print(f"figure 2 {'right' if joined else 'left'}: slack of the lonely cross "
              f"{model.slack_[0, 5]:.2f}, classified as a cross: {lonely}")  # fmt: skip
    save(figure, "weston1999_figure2", args)
    return []


@dataclass
class Row:
    """One width; per cent, means over the splits."""

    log_width: float
    share_sv: float
    train_error: float
    test_error: float
    mean_slack: float
    bound: float


def run_figure3(args: argparse.Namespace) -> list[str]:
    """Trace thyroid over the width: support vectors, errors, slacks, bound."""
    data = load(args.data, "thyroid", args.seed)
    splits = data.splits[:2] if args.quick else data.splits
    rows = []
    for log_width in LOG_WIDTHS:
        found = []
        for split in splits:
            X, y = data.X[split.train], data.y[split.train]
            model = lo.LOOMClassifier(gamma=float(np.exp(log_width))).fit(X, y)
            found.append(
                [
                    model.support_.size / len(y),
                    np.mean(model.predict(X) != y),
                    np.mean(model.predict(data.X[split.test]) != data.y[split.test]),
                    model.objective_[0] / len(y),
                    model.loo_bound_[0],
                ]
            )
        rows.append(Row(float(log_width), *(100 * np.mean(found, axis=0)).tolist()))
    print("\nFigure 3, thyroid, in per cent; paper: all are smallest near log λ = -1")
    header = ["log λ", "SVs", "train", "test", "slacks", "bound"]
    print_table(header, [[f"{v:.1f}" for v in astuple(row)] for row in rows])
    plot_thyroid(rows, args)
    if not args.quick:
        write_rows("weston1999", rows, "figure3.csv")
    return [f"Figure 3: mean over {len(splits)} splits of our own; log is natural"]


def with_outlier() -> tuple[np.ndarray, np.ndarray]:
    """Two classes side by side, and one dot far among the crosses."""
    rng = np.random.default_rng(3)
    dots = rng.normal([-1.2, 0.0], [0.5, 0.9], size=(14, 2))
    crosses = rng.normal([1.0, 0.0], [0.5, 0.9], size=(14, 2))
    X = np.vstack([dots, crosses, [[1.3, 0.1]]])
    return X, np.array([DOT] * 14 + [CROSS] * 14 + [DOT])


def overlapping() -> tuple[np.ndarray, np.ndarray]:
    """Two classes on opposite sides that slightly overlap."""
    rng = np.random.default_rng(8)
    dots = rng.normal([-0.8, 0.0], [0.75, 1.0], size=(22, 2))
    crosses = rng.normal([0.8, 0.0], [0.75, 1.0], size=(22, 2))
    return np.vstack([dots, crosses]), np.array([DOT] * 22 + [CROSS] * 22)


def clusters(joined: bool) -> tuple[np.ndarray, np.ndarray]:
    """Five crosses, a sixth far from them and, if joined, two more beside it."""
    rng = np.random.default_rng(1)
    crosses = np.array([-1.4, 1.4]) + 0.25 * rng.normal(size=(5, 2))
    lonely = np.array([[1.4, -1.4], [1.15, -1.55], [1.6, -1.2]])
    grid = np.array(
        [[x, z] for x in np.arange(-2, 2.1, 0.8) for z in (-2, -1, 0, 1, 2)]
    )
    far = np.hypot(*(grid - [-1.4, 1.4]).T) > 0.8
    near = np.hypot(*(grid - [1.4, -1.4]).T) > 0.35
    dots = grid[far & near] + 0.1 * rng.normal(size=(int((far & near).sum()), 2))
    X = np.vstack([crosses, lonely[: 3 if joined else 1], dots])
    n_crosses = 8 if joined else 6
    return X, np.array([CROSS] * n_crosses + [DOT] * len(dots))


def panels(n_rows: int, n_columns: int):
    """Return figure and axes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt.subplots(
        n_rows,
        n_columns,
        figsize=(3.3 * n_columns, 2.9 * n_rows),
        squeeze=False,
        layout="constrained",
    )


def draw(axis, model, X: np.ndarray, y: np.ndarray, title: str) -> None:
    """Draw samples, rings around support vectors, f = 0 thick and f = ±1 dotted."""
    low, high = X.min(axis=0) - 0.5, X.max(axis=0) + 0.5
    x, z = np.meshgrid(
        np.linspace(low[0], high[0], 200), np.linspace(low[1], high[1], 200)
    )
    f = model.decision_function(np.column_stack([x.ravel(), z.ravel()])).reshape(
        x.shape
    )
    axis.contour(x, z, f, levels=[0.0], colors="black", linewidths=2.0)
    axis.contour(x, z, f, levels=[-1.0, 1.0], colors="grey", linestyles="dotted")
    for sign, marker in ((DOT, "."), (CROSS, "x")):
        axis.plot(*X[y == sign].T, marker, color="black", markersize=6)
    rings = X[model.support_]
    axis.scatter(*rings.T, s=90, facecolors="none", edgecolors="tab:red")
    axis.set(title=title, xticks=[], yticks=[])


def plot_thyroid(rows: list[Row], args: argparse.Namespace) -> None:
    """Draw both graphs of Figure 3."""
    figure, axes = panels(2, 1)
    top, bottom = axes[:, 0]
    figure.set_size_inches(5.5, 5.5)
    x = [row.log_width for row in rows]
    top.plot(x, [row.share_sv for row in rows], "k-o", markersize=3)
    top.set(ylabel="support vectors (%)", ylim=(0, None))
    lines = {
        "slacks": ("mean_slack", ":"),
        "l-o-o bound": ("bound", "--"),
        "test error": ("test_error", "-"),
        "train error": ("train_error", "-."),
    }
    for label, (name, style) in lines.items():
        bottom.plot(x, [getattr(row, name) for row in rows], style, label=label)
    bottom.set(ylabel="per cent", xlabel="log λ", ylim=(0, 40))
    bottom.legend()
    save(figure, "weston1999_figure3", args)


def save(figure, name: str, args: argparse.Namespace) -> None:
    """Write a small PNG among the images of the docs; nothing if quick."""
    import matplotlib.pyplot as plt

    if not args.quick:
        IMAGES.mkdir(exist_ok=True)
        figure.savefig(IMAGES / f"{name}.png", dpi=80)
    plt.close(figure)
