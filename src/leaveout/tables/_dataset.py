# SPDX-License-Identifier: BSD-3-Clause
"""Samples with the names that messages and tables need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True)
class Dataset:
    """Features and classes, with the names of both.

    Parameters
    ----------
    name : str
        What to call the data in a report.
    X : DataFrame or CSR matrix of shape (n, p)
        Features. A DataFrame has columns of float64, and of text where
        ``text_features`` says so.
    y : ndarray of shape (n,)
        Classes, of any type.
    feature_names : list of str
        Names of the p columns.
    target_name : str
        Name of y.
    text_features : tuple of str, default=()
        Columns of X that hold categories, to be one-hot encoded.
    ids : ndarray of shape (n,), optional
        What the samples are called.
    id_name : str, optional
        Name of the column the ids are from.
    groups : ndarray of shape (n,), optional
        Samples with equal entries belong together.
    group_name : str, optional
        Name of the column the groups are from.
    notes : tuple of str, default=()
        What was done to the data, and what its owner should know.
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


def load_example() -> Dataset:
    """Load the data of the demo: scikit-learn's copy of Wisconsin breast cancer.

    569 tumours, 30 measurements, 212 malignant and 357 benign. The data come with
    scikit-learn; nothing is downloaded.

    Returns
    -------
    dataset : Dataset
        With y as words.

    Examples
    --------
    >>> dataset = load_example()
    >>> dataset.X.shape, sorted(set(dataset.y.tolist()))
    ((569, 30), ['benign', 'malignant'])
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
