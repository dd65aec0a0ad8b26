# SPDX-License-Identifier: BSD-3-Clause
"""Samples with the names that messages and tables need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaveout._typing import FloatArray


@dataclass(frozen=True)
class Dataset:
    """Features and classes, with the names of both.

    Parameters
    ----------
    name : str
        What to call the data in a report.
    X : ndarray of shape (n, p)
        Features.
    y : ndarray of shape (n,)
        Classes, of any type.
    feature_names : list of str
        Names of the p columns.
    target_name : str
        Name of y.
    """

    name: str
    X: FloatArray
    y: NDArray[Any]
    feature_names: list[str]
    target_name: str


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
    >>> from leaveout.data import load_example
    >>> dataset = load_example()
    >>> dataset.X.shape, sorted(set(dataset.y.tolist()))
    ((569, 30), ['benign', 'malignant'])
    """
    # Here, not above: sklearn.datasets takes as long to import as the rest of leaveout.
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    return Dataset(
        name="breast cancer (Wisconsin)",
        X=np.asarray(bunch.data, dtype=np.float64),
        y=bunch.target_names[bunch.target],
        feature_names=[str(name) for name in bunch.feature_names],
        target_name="diagnosis",
    )
