# SPDX-License-Identifier: BSD-3-Clause
"""Samples with their names, the bundled example, and notes on leakage."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leaveout._messages import list_names
from leaveout._typing import IntArray

if TYPE_CHECKING:
    from pandas import DataFrame

# More categories than this, and one per three rows or more, are pointed out.
N_CATEGORIES = 20
_GROUP_NAME = re.compile(
    r"subject|patient|person|participant|donor|animal|batch|plate", re.IGNORECASE
)
# With fewer rows a column agrees with the classes by chance.
N_ROWS_FOR_PURITY = 20


@dataclass(frozen=True)
class Dataset:
    """Features and classes, with the names of both.

    Parameters
    ----------
    name : str
        Name of the file or of the data.
    X : DataFrame or CSR matrix of shape (n_samples, n_features)
        Features, float64 and text.
    y : ndarray of shape (n_samples,)
        Classes.
    feature_names : list of str
        Names of the columns of X.
    target_name : str
        Name of the column of classes.
    text_features : tuple of str
        Columns that need one-hot encoding.
    ids : ndarray of shape (n_samples,) or None
        Names of the samples.
    id_name : str or None
        Name of the column of these names.
    groups : ndarray of shape (n_samples,) or None
        Samples with equal entries belong together.
    group_name : str or None
        Name of the column of groups.
    notes : tuple of str
        What was done to the data, and what to check.
    """

    name: str
    X: Any
    y: NDArray[Any]
    feature_names: list[str]
    target_name: str
    text_features: tuple[str, ...] = ()
    ids: NDArray[Any] | None = None
    id_name: str | None = None
    groups: NDArray[Any] | None = None
    group_name: str | None = None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return name and size in one line."""
        n_samples, n_features = self.X.shape
        return f"<Dataset: {self.name}, {n_samples} samples, {n_features} features>"


def load_example() -> Dataset:
    """Load the data of the demo: scikit-learn's copy of Wisconsin breast cancer.

    569 tumours, 30 measurements, 212 malignant and 357 benign; nothing is downloaded.

    Examples
    --------
    >>> from leaveout.data import load_example
    >>> load_example()
    <Dataset: breast cancer (Wisconsin), 569 samples, 30 features>
    """
    # Here, not above: sklearn.datasets takes as long to import as the rest of leaveout.
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer(as_frame=True)
    return Dataset(
        name="breast cancer (Wisconsin)",
        X=bunch.data,
        y=bunch.target_names[bunch.target],
        feature_names=[str(name) for name in bunch.feature_names],
        target_name="diagnosis",
    )


def warn_duplicate_rows(
    frame: DataFrame, y: NDArray[Any], groups: NDArray[Any] | None = None
) -> list[str]:
    """Return notes on rows and columns that reveal classes of left-out samples."""
    notes = _note_copies(frame, y, groups)
    if len(frame) >= N_ROWS_FOR_PURITY:
        classes = np.unique(y, return_inverse=True)[1]
        notes += _note_subjects(frame, classes, grouped=groups is not None)
    return notes


def _note_copies(
    frame: DataFrame, y: NDArray[Any], groups: NDArray[Any] | None
) -> list[str]:
    """Count rows that equal an earlier one of another group in features and class."""
    first: dict[Any, int] = {}
    copies = []
    for row, key in enumerate(zip(_row_keys(frame), y.tolist(), strict=True)):
        earlier = first.setdefault(key, row)
        if earlier != row and (groups is None or groups[earlier] != groups[row]):
            copies.append((row + 1, earlier + 1))
    if not copies:
        return []
    verb = "is a copy" if len(copies) == 1 else "are copies"
    row, earlier = copies[0]
    way_out = "leave them out together with group_column="
    if groups is not None:
        way_out = "put copies into the same group"
    return [
        f"{len(copies)} of {len(frame)} rows {verb} of another, class included (row "
        f"{row} of the file equals row {earlier}). Duplicates are never truly left "
        f"out, so the error may be underestimated: delete them, or {way_out}."
    ]


def _row_keys(frame: DataFrame) -> list[tuple[bytes, ...]]:
    """Return a key per row that equal rows have in common."""
    numbers = frame.select_dtypes("number").to_numpy(dtype=np.float64) + 0.0  # no -0.0
    words = frame.select_dtypes(exclude="number").astype(str).to_numpy(dtype=object)
    return [
        (number.tobytes(), *(word.encode("utf-8", "replace") for word in own))
        for number, own in zip(numbers, words, strict=True)
    ]


def _note_subjects(frame: DataFrame, classes: IntArray, *, grouped: bool) -> list[str]:
    """Name columns whose entries repeat, and may be subjects, or give the class."""
    pure, many = [], []
    for name, values in _columns_of_entries(frame):
        entries, codes = np.unique(values, return_inverse=True)
        if not 2 <= len(entries) <= len(values) / 2:
            continue
        both = codes.astype(np.int64) * (int(classes.max()) + 1) + classes
        if len(np.unique(both)) == len(entries):
            pure.append(name)
        elif len(entries) > N_CATEGORIES and (
            values.dtype.kind == "U" or _GROUP_NAME.search(str(name))
        ):
            many.append(name)
    advice = (
        'If it identifies a patient, site or batch, use group_column="{}"; otherwise '
        "the error is underestimated."
    )
    leaks = "was recorded after the class was known"
    notes = []
    if pure:
        first = f"{advice.format(pure[0])} If it {leaks}"
        if grouped:
            first = f"If it identifies the groups, or {leaks}"
        notes.append(
            f"Rows with the same entry always have the same class: {list_names(pure)}. "
            f"{first}, leave it out with drop=."
        )
    if many and not grouped:
        notes.append(
            f"Many entries, each in several rows: {list_names(many)}. "
            f"{advice.format(many[0])}"
        )
    return notes


def _columns_of_entries(frame: DataFrame) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the columns of whole numbers and of words, each as an array."""
    numbers = frame.select_dtypes("number")
    values = numbers.to_numpy()
    for k in np.flatnonzero((values == np.rint(values)).all(axis=0)):
        yield numbers.columns[k], values[:, k]
    for name, words in frame.select_dtypes(exclude="number").items():
        yield str(name), words.to_numpy(dtype=str)
