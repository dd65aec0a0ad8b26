# SPDX-License-Identifier: BSD-3-Clause
"""How optimistic is the smallest error of a grid? Nested leave-one-out on pure noise.

    python benchmarks/noise.py [--quick] [--plot]

X is standard normal with 10 features and y a fair coin: every classifier is wrong on
half of the samples it has not seen. For each size and seed, ``honest_loo`` gives the
error of tuning by leave-one-out and then fitting, and beside it the naive one, the
smallest leave-one-out error of the 30 candidates. Each row of results.csv is one seed.
``--plot`` draws docs/images/honest_noise.png from the stored rows, without running.
"""

from __future__ import annotations

import argparse
import csv
import platform
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
import yaml

import leaveout as lo

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks" / "results" / "noise"
PLOT = ROOT / "docs" / "images" / "honest_noise.png"

SIZES = (20, 40, 80)
N_FEATURES = 10
N_SEEDS = 24
GRID = {"C": np.logspace(-2, 3, 6).tolist(), "gamma": np.logspace(-3, 1, 5).tolist()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three seeds, not stored")
    parser.add_argument("--plot", action="store_true", help="draw the stored rows only")
    args = parser.parse_args()
    if args.plot:
        draw(read())
        return
    rows = [
        run(n, seed)
        for n in (SIZES[:2] if args.quick else SIZES)
        for seed in range(3 if args.quick else N_SEEDS)
    ]
    summarise(rows)
    if not args.quick:
        store(rows)
        draw(rows)


def run(n: int, seed: int) -> dict[str, float]:
    """One draw of noise."""
    rng = np.random.default_rng([n, seed])
    X, y = rng.normal(size=(n, N_FEATURES)), rng.integers(0, 2, n)
    result = lo.honest_loo(lo.LooSearchCV(lo.SVC(), GRID), X, y, verbose=0)
    row = {
        "n": n,
        "seed": seed,
        "minority": min(y.mean(), 1 - y.mean()),
        "naive_error": result.naive_error,
        "honest_error": result.error,
        "standard_error": result.standard_error,
        "n_choices": len(result.choices),
        "seconds": result.seconds,
    }
    return {name: round(float(value), 6) for name, value in row.items()}


def summarise(rows: list[dict[str, float]]) -> None:
    """Print the means over seeds, with their standard errors."""
    print("n | naive error | honest error")
    for n in sorted({row["n"] for row in rows}):
        cells = []
        for name in ("naive_error", "honest_error"):
            values = np.array([row[name] for row in rows if row["n"] == n])
            error = values.std(ddof=1) / np.sqrt(values.size)
            cells.append(f"{values.mean():.3f} ± {error:.3f}")
        print(f"{n:g} | {' | '.join(cells)}")


def store(rows: list[dict[str, float]]) -> None:
    """Write the rows and what made them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    packages = ("leaveout", "numpy", "scipy", "scikit-learn")
    config = {
        "command": "python benchmarks/noise.py",
        "date": date.today().isoformat(),
        "sizes": list(SIZES),
        "features": N_FEATURES,
        "seeds": N_SEEDS,
        "grid": GRID,
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }
    (FOLDER / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))


def read() -> list[dict[str, float]]:
    """Return the stored rows."""
    with (FOLDER / "results.csv").open(newline="") as file:
        return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]


def draw(rows: list[dict[str, float]]) -> None:
    """Both errors of every seed, by size, with their means."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
    kinds = (
        ("naive_error", -0.16, "tab:orange", "o", "smallest error of the grid (naive)"),
        ("honest_error", 0.16, "tab:blue", "s", "nested leave-one-out (honest)"),
    )
    sizes = sorted({row["n"] for row in rows})
    rng = np.random.default_rng(0)
    for name, offset, colour, marker, label in kinds:
        for at, n in enumerate(sizes):
            values = [row[name] for row in rows if row["n"] == n]
            x = at + offset + rng.uniform(-0.07, 0.07, len(values))
            ax.plot(x, values, marker, color=colour, ms=4, alpha=0.5, mew=0)
            ends = [at + offset - 0.12, at + offset + 0.12]
            mean = label if at == 0 else None
            ax.plot(ends, [np.mean(values)] * 2, color=colour, lw=2.5, label=mean)
    ax.axhline(0.5, color="0.3", lw=1, ls="--", label="truth: 0.5", zorder=0)
    ax.set_xticks(range(len(sizes)), [f"{n:g} samples" for n in sizes])
    ax.set_ylabel("error")
    ax.set_ylim(0, 1.05)
    ax.set_title("Pure noise, 30 candidates; bars are means", fontsize=10)
    ax.legend(fontsize=8, loc="lower right")
    PLOT.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PLOT, dpi=110)
    print(f"wrote {PLOT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
