# SPDX-License-Identifier: BSD-3-Clause
"""Categories as columns, standardised columns, and the same for new rows.

What happens to features before a kernel sees them, as a scikit-learn transformer.

New samples for a fitted model: the same columns by name, or what differs.

Words of a new table as a model spells them.

A table is typed by its own content: a column 1, 2, x is text, and numbers without the
last row. So a model's words are told by their value where all of them are numbers or
all truth values (1, 1.0 and 01 are one then), and letter by letter where they are text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from leaveout._messages import did_you_mean, list_items, list_names, name_cell
from leaveout.tables._columns import check_not_missing
from leaveout.tables._dataset import Dataset

if TYPE_CHECKING:
    from pandas import DataFrame, Series

TRUTH = {"true": True, "false": False}


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
    >>> from leaveout.tables._dataset import load_example
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
    >>> from leaveout.tables._dataset import load_example
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


class NewRows(NamedTuple):
    """Features in the order of the model, and the columns not used."""

    frame: DataFrame
    unused: list[str]


def match_columns(
    frame: DataFrame,
    feature_names: Sequence[str],
    categories: Mapping[str, Sequence[str]],
    path: str | Path,
) -> NewRows:
    """Take the columns a model was trained on out of a table.

    Parameters
    ----------
    frame : DataFrame
        Table with at least these columns, in any order.
    feature_names : sequence of str
        Columns of the model.
    categories : mapping of str to sequence of str
        Categories of the text columns; the other columns are numbers.
    path : str or Path
        What to call the table in messages.

    Raises
    ------
    ValueError
        A column is missing, a cell empty, a category unknown, a number no number.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"b": [1], "c": [2], "a": [3]})
    >>> rows = match_columns(frame, ["a", "b"], {}, "new.csv")
    >>> list(rows.frame), rows.unused
    (['a', 'b'], ['c'])
    """
    columns = [str(name) for name in frame.columns]
    known = set(columns)
    missing = [name for name in feature_names if name not in known]
    if missing:
        hint = did_you_mean(missing[0], columns) if len(missing) == 1 else ""
        raise ValueError(
            f"'{path}' lacks {len(missing)} of the {len(feature_names)} columns of the "
            f"model: {list_names(missing)}.{hint} It has {list_names(columns)}."
        )
    rows = frame[list(feature_names)]
    check_not_missing(rows, f"'{path}'")
    numbers = _to_numbers(rows.drop(columns=list(categories)), path)
    words = {name: rows[name].astype(str).str.strip() for name in categories}
    _check_categories(words, categories, path)
    full = numbers.assign(**{name: w.astype(object) for name, w in words.items()})
    wanted = set(feature_names)
    return NewRows(
        full[list(feature_names)], [name for name in columns if name not in wanted]
    )


def _to_numbers(frame: DataFrame, path: str | Path) -> DataFrame:
    """Return float64 columns, or name the first value of each that is no number."""
    import pandas as pd

    kinds = {kind: pd.api.types.is_numeric_dtype(kind) for kind in set(frame.dtypes)}
    bad = []
    for name in [name for name, kind in frame.dtypes.items() if not kinds[kind]]:
        wrong = pd.to_numeric(frame[name], errors="coerce").isna().to_numpy()
        row = int(np.argmax(wrong))
        bad.append(name_cell(name, row, frame[name].iloc[row]))
    if bad:
        raise ValueError(
            f"'{path}' has text where the model has numbers: {list_items(bad)}. "
            "Correct these values."
        )
    numbers = frame.astype(np.float64)
    infinite = ~np.isfinite(numbers.to_numpy()).all(axis=0)
    if infinite.any():
        names = list_names(frame.columns[infinite])
        raise ValueError(f"'{path}' has infinite values in {names}. Correct them.")
    return numbers


def _check_categories(
    words: Mapping[str, Series],
    categories: Mapping[str, Sequence[str]],
    path: str | Path,
) -> None:
    """Refuse categories that were not there when the model was trained."""
    for name, column in words.items():
        unknown = column[~column.isin(list(categories[name]))]
        if len(unknown):
            raise ValueError(
                f"Column '{name}' of '{path}' has categories the model has not seen: "
                f"{list_names(unknown.unique())}, first in row "
                f"{int(unknown.index[0]) + 1}. It knows "
                f"{list_names(categories[name])}. Correct or remove these rows."
            )


def are_text(known: Sequence[str]) -> bool:
    """Whether some word is not how Python writes a number or a truth value."""
    return any(
        isinstance(_value(word), str) or str(_value(word)) != word for word in known
    )


def spell_as(column: Series, known: Sequence[str]) -> Series:
    """Return a column as text, in the spelling of the known words; gaps stay."""
    words = column.astype(str).str.strip().astype(object)
    if not are_text(known):
        by_value = {_value(word): word for word in known}
        words = words.map(lambda word: by_value.get(_value(word), word))
    return words.where(column.notna())


def _value(word: str) -> bool | int | float | str:
    """Return the number or truth value that a word spells, else the word."""
    if word.casefold() in TRUTH:
        return TRUTH[word.casefold()]
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word
