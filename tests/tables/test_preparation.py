# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from leaveout.data import Dataset
from leaveout.tables._preparation import (
    describe_preparation,
    known_categories,
    make_preparation,
    match_columns,
    spell_as,
)

FRAME = pd.DataFrame(
    {"sex": list("fmfm"), "a": [1.0, 2, 3, 6], "site": ["x", "y", "z", "x"]}
)
MIXED = Dataset("t", FRAME, np.arange(4) % 2, list(FRAME), "y", ("sex", "site"))


def test_numbers_standardised_and_text_one_hot():
    found = make_preparation(MIXED).fit_transform(FRAME)
    a = FRAME["a"].to_numpy()
    words = np.transpose([[0, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]])
    assert np.allclose(found, np.column_stack([words, (a - a.mean()) / a.std()]))
    plain = make_preparation(MIXED, standardize=False).fit_transform(FRAME)
    assert np.allclose(plain, np.column_stack([words, a]))
    told = describe_preparation(MIXED)
    assert told.startswith("Numbers standardised and categories one-hot encoded once")
    told = describe_preparation(MIXED, standardize=False)
    assert told.startswith("Categories one-hot encoded once")


def test_sparse_data_are_scaled_not_centred(rng):
    X = sparse.random(30, 5, density=0.5, random_state=rng, format="csr")
    dataset = Dataset("t", X, np.arange(30) % 2, list("12345"), "y")
    found = make_preparation(dataset).fit_transform(X)
    assert sparse.issparse(found)
    assert np.allclose(found.toarray().var(axis=0), 1)
    assert "scaled to variance 1" in describe_preparation(dataset)


def match(**columns):
    """Match a new row with other columns than these to the model's."""
    rows = {"site": ["z"], "extra": [9], "a": [5], "sex": ["m "]} | columns
    frame = pd.DataFrame({k: v for k, v in rows.items() if v is not None})
    categories = known_categories(make_preparation(MIXED).fit(FRAME))
    return match_columns(frame, MIXED.feature_names, categories)


def test_new_rows_are_matched_by_name_or_do_not_fit():
    rows, unused = match()
    assert unused == ["extra"]
    assert rows.to_dict("list") == {"sex": ["m"], "a": [5.0], "site": ["z"]}
    for columns, message in [
        ({"a": None, "A": [5]}, r"lacks 1 of the 3 columns of the model: 'a'. Did you"),
        ({"a": None}, r"lacks 1 of the 3 columns of the model: 'a'. It has"),
        ({"a": [np.nan]}, r"missing values in 1 of 3 columns: 'a' \(1\)"),
        ({"a": ["?!"]}, r"text where the model has numbers: '\?!' in row 1 of"),
        ({"a": [np.inf]}, r"infinite values in 'a'"),
        (
            {"site": ["w"]},
            r"column 'site' .* 'w', first in row 1 of the file. It knows",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            match(**columns)


def test_words_are_matched_by_value_if_all_are_numbers():
    column = pd.Series(["1.0", " 01", "TRUE", None])
    assert spell_as(column, ["1", "2"])[:3].tolist() == ["1", "1", "1"]
    assert spell_as(column, ["True", "False"])[2] == "True"
    assert spell_as(column, ["01", "02"])[:3].tolist() == ["1.0", "01", "TRUE"]
    assert spell_as(column, ["1", "x"])[1] == "01"
    assert pd.isna(spell_as(column, ["1"])[3])
