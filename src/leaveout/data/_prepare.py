# SPDX-License-Identifier: BSD-3-Clause
"""What happens to features before a kernel sees them, as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from leaveout.data._dataset import Dataset


def make_preparation(dataset: Dataset, *, standardize: bool = True) -> Any:
    """Return a transformer that makes numbers of the features, not fitted yet.

    Text is one-hot encoded (one column for two categories), numbers are standardised:
    mean 0 and variance 1, or, where they are sparse, variance 1 alone. The categories
    are those of all samples, also where it is fitted on some of them.

    Parameters
    ----------
    dataset : Dataset
        The samples it is for.
    standardize : bool, default=True
        Whether to standardise the numbers.

    Returns
    -------
    transformer or None
        None if nothing is to be done. Inside a Pipeline it travels with the model.

    Examples
    --------
    >>> from leaveout.data import load_example, make_preparation
    >>> make_preparation(load_example())
    StandardScaler()
    >>> make_preparation(load_example(), standardize=False) is None
    True
    """
    numbers: Any = "passthrough"
    if standardize:
        numbers = StandardScaler(with_mean=not sparse.issparse(dataset.X))
    if not dataset.text_features:
        return numbers if standardize else None
    # Listed, not found by each fit: a category of one sample would be unknown without
    # it. Categories that no sample has stay refused.
    categories = [np.unique(dataset.X[name]) for name in dataset.text_features]
    encoder = OneHotEncoder(
        categories=categories, drop="if_binary", sparse_output=False
    )
    # Numbers are the rest, not named: scikit-learn looks p names up in p^2 steps.
    return ColumnTransformer(
        [("text", encoder, list(dataset.text_features))], remainder=numbers
    )


def describe_preparation(dataset: Dataset, *, standardize: bool = True) -> str:
    """Say in a sentence what :func:`make_preparation` does.

    Examples
    --------
    >>> from leaveout.data import describe_preparation, load_example
    >>> describe_preparation(load_example())
    'Features standardised once on all rows, not anew in every fold.'
    """
    scaled = "standardised"
    if sparse.issparse(dataset.X):
        scaled = "scaled to variance 1, not centred,"
    if not dataset.text_features:
        done = f"Features {scaled}" if standardize else ""
    elif standardize and len(dataset.text_features) < len(dataset.feature_names):
        done = f"Numbers {scaled} and text one-hot encoded"
    else:
        done = "Text one-hot encoded"
    if not done:
        return "Features as they are, not standardised."
    return f"{done} once on all rows, not anew in every fold."


def known_categories(transformer: Any) -> dict[str, list[str]]:
    """Return the categories of each text column that a fitted transformer knows.

    Parameters
    ----------
    transformer : object
        A fitted transformer, Pipeline or ColumnTransformer with OneHotEncoders inside.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> from leaveout.data import known_categories
    >>> encoder = OneHotEncoder().fit(pd.DataFrame({"sex": ["m", "f"]}))
    >>> known_categories(encoder)
    {'sex': ['f', 'm']}
    """
    if isinstance(transformer, OneHotEncoder):
        names = getattr(transformer, "feature_names_in_", ())
        pairs = zip(names, transformer.categories_, strict=False)
        return {str(name): [str(c) for c in found] for name, found in pairs}
    parts = getattr(transformer, "transformers_", getattr(transformer, "steps", ()))
    found: dict[str, list[str]] = {}
    for _, part, *_ in parts:
        found |= known_categories(part)
    return found
