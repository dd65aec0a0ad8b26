# SPDX-License-Identifier: BSD-3-Clause
"""Results as lines of plain text, for terminals and files alike."""

from __future__ import annotations

from collections import Counter

from leaveout.data import Dataset
from leaveout.select import GridErrors, needs_gamma


def format_dataset(dataset: Dataset) -> str:
    """Say in two lines what the data are.

    Examples
    --------
    >>> from leaveout.data import load_example
    >>> from leaveout.report import format_dataset
    >>> print(format_dataset(load_example()))
    breast cancer (Wisconsin): 569 samples, 30 features
    Classes (diagnosis): benign 357, malignant 212
    """
    n_samples, n_features = dataset.X.shape
    counts = Counter(dataset.y.tolist()).most_common()
    classes = ", ".join(f"{label} {count}" for label, count in counts)
    return (
        f"{dataset.name}: {n_samples} samples, {n_features} features\n"
        f"Classes ({dataset.target_name}): {classes}"
    )


def format_grid(grid: GridErrors, kernel: str) -> str:
    """Lay the errors out in percent, C downwards and gamma across; * marks the best.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.report import format_grid
    >>> from leaveout.select import GridErrors
    >>> n_wrong = np.array([[5, 3], [3, 4]])
    >>> grid = GridErrors(np.array([1.0, 10.0]), np.array([0.1, 0.2]), n_wrong,
    ...                   np.zeros_like(n_wrong), n_samples=50)
    >>> print(format_grid(grid, "rbf"))
    Leave-one-out error in percent
         C   gamma 0.1   gamma 0.2
         1      10.00        6.00*
        10       6.00        8.00
    """
    labels = [f"gamma {gamma:.3g}" for gamma in grid.gammas]
    if not needs_gamma(kernel):
        labels = ["error"]
    width = max(len(label) for label in labels)
    lines = ["     C   " + "   ".join(label.rjust(width) for label in labels)]
    for i, C in enumerate(grid.Cs):
        cells = [
            f"{100 * error:.2f}".rjust(width - 1) + "* "[(i, j) != grid.best_index]
            for j, error in enumerate(grid.errors[i])
        ]
        lines.append(f"{C:6g}   " + "   ".join(cells))
    return "\n".join(["Leave-one-out error in percent", *map(str.rstrip, lines)])


def format_choice(grid: GridErrors, kernel: str, dataset: Dataset) -> str:
    """Say which cell was chosen, how good it is, and against what.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.data import load_example
    >>> from leaveout.report import format_choice
    >>> from leaveout.select import GridErrors
    >>> grid = GridErrors(np.array([1.0]), np.array([0.1]), np.array([[57]]),
    ...                   np.array([[0]]), n_samples=569)
    >>> print(format_choice(grid, "rbf", load_example()))
    Chosen: SVC(kernel='rbf', C=1, gamma=0.1)
    Leave-one-out error 10.02 % +- 1.26 % (57 of 569 wrong, 0 ambiguous)
    Always 'benign' would be wrong on 37.26 %
    """
    gamma = f", gamma={grid.best_gamma:.6g}" if needs_gamma(kernel) else ""
    (label, count), *_ = Counter(dataset.y.tolist()).most_common()
    return "\n".join(
        [
            f"Chosen: SVC(kernel={kernel!r}, C={grid.best_C:g}{gamma})",
            f"Leave-one-out error {100 * grid.best_error:.2f} % "
            f"+- {100 * grid.best_standard_error:.2f} % "
            f"({grid.n_wrong[grid.best_index]} of {grid.n_samples} wrong, "
            f"{grid.n_ambiguous[grid.best_index]} ambiguous)",
            f"Always {label!r} would be wrong on "
            f"{100 * (1 - count / grid.n_samples):.2f} %",
        ]
    )
