# SPDX-License-Identifier: BSD-3-Clause
"""Encoding and scaling of features, and the same for new rows.

A table is typed by its own content: a column 1, 2, x is text, but a column 1, 2 is
numbers. So a model's words are matched by value if all of them are numbers or booleans
(1, 1.0 and 01 are equal then), and letter by letter if they are text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from leaveout._messages import did_you_mean, list_items, list_names, name_cell
from leaveout.tables._columns import as_words, check_not_missing
from leaveout.tables._dataset import Dataset
from leaveout.tables._files import text_columns

if TYPE_CHECKING:
    from pandas import DataFrame, Series

TRUTH = {"true": True, "false": False}


def make_preparation(dataset: Dataset, *, standardize: bool = True) -> Any:
    """Return a transformer that makes numbers of the features, or None; not fitted.

    Text is one-hot encoded (one column for two categories). Numbers get mean 0 and
    variance 1 or, if they are sparse, only variance 1.
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
    """Say in a sentence what :func:`make_preparation` does."""
    scaled = "standardised"
    if sparse.issparse(dataset.X):
        scaled = "scaled to variance 1, not centred,"
    if not dataset.text_features:
        done = f"Features {scaled}" if standardize else ""
    elif standardize and len(dataset.text_features) < len(dataset.feature_names):
        done = f"Numbers {scaled} and categories one-hot encoded"
    else:
        done = "Categories one-hot encoded"
    if not done:
        return "Features used as they are, not standardised."
    return f"{done} once on all rows, not within each fold."


def known_categories(transformer: Any) -> dict[str, list[str]]:
    """Return the categories of each text column that a fitted transformer knows."""
    if isinstance(transformer, OneHotEncoder):
        names = getattr(transformer, "feature_names_in_", ())
        pairs = zip(names, transformer.categories_, strict=False)
        return {str(name): [str(c) for c in found] for name, found in pairs}
    parts = getattr(transformer, "transformers_", getattr(transformer, "steps", ()))
    found: dict[str, list[str]] = {}
    for _, part, *_ in parts:
        found |= known_categories(part)
    return found


def match_columns(
    frame: DataFrame,
    feature_names: Sequence[str],
    categories: Mapping[str, Sequence[str]],
) -> tuple[DataFrame, list[str]]:
    """Return the columns a model was trained on, in its order, and the others' names.

    Columns in ``categories`` are text, the others numbers.
    """
    columns = [str(name) for name in frame.columns]
    wanted, known = set(feature_names), set(columns)
    missing = [name for name in feature_names if name not in known]
    if missing:
        hint = did_you_mean(missing[0], [c for c in columns if c not in wanted])
        raise ValueError(
            f"lacks {len(missing)} of the {len(feature_names)} columns of the "
            f"model: {list_names(missing)}.{hint} It has {list_names(columns)}."
        )
    rows = frame[list(feature_names)]
    check_not_missing(rows)
    numbers = _to_numbers(rows.drop(columns=list(categories)))
    words = {name: as_words(rows[name]) for name in categories}
    for name, column in words.items():
        _check_categories(name, column, categories[name])
    full = numbers.assign(**words)[list(feature_names)]
    return full, [name for name in columns if name not in wanted]


def _to_numbers(frame: DataFrame) -> DataFrame:
    """Return float64 columns, or name the first value of each that is not a number."""
    import pandas as pd

    bad = []
    for name in text_columns(frame):
        wrong = pd.to_numeric(frame[name], errors="coerce").isna().to_numpy()
        row = int(np.argmax(wrong))
        bad.append(name_cell(name, row, frame[name].iloc[row]))
    if bad:
        raise ValueError(
            f"text where the model has numbers: {list_items(bad)}. Correct these "
            "values, or give decimal= or sep=."
        )
    numbers = frame.astype(np.float64)
    infinite = ~np.isfinite(numbers.to_numpy()).all(axis=0)
    if infinite.any():
        names = list_names(frame.columns[infinite])
        raise ValueError(f"infinite values in {names}. Correct them.")
    return numbers


def _check_categories(name: str, words: Series, known: Sequence[str]) -> None:
    """Refuse categories that the training data did not have."""
    unknown = words[~words.isin(list(known))]
    if len(unknown):
        raise ValueError(
            f"column '{name}' has categories the model has not seen: "
            f"{list_names(unknown.unique())}, first in row {int(unknown.index[0]) + 1} "
            f"of the file. It knows {list_names(known)}. Correct or remove these rows."
        )


def are_text(known: Sequence[str]) -> bool:
    """Whether some word is not how Python writes a number or a boolean."""
    return any(
        isinstance(_value(word), str) or str(_value(word)) != word for word in known
    )


def spell_as(column: Series, known: Sequence[str]) -> Series:
    """Return a column as text, in the spelling of the known words; gaps stay."""
    words = as_words(column)
    if not are_text(known):
        by_value = {_value(word): word for word in known}
        words = words.map(
            lambda word: by_value.get(_value(word), word), na_action="ignore"
        )
    return words.where(column.notna())


def _value(word: str) -> bool | int | float | str:
    """Return the number or boolean that a word spells, else the word."""
    if word.casefold() in TRUTH:
        return TRUTH[word.casefold()]
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word
