# SPDX-License-Identifier: BSD-3-Clause

"""Tables and what becomes of their columns: features, classes, or a reason why not."""

import csv
import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from leaveout.data import read_dataset
from leaveout.exceptions import DataFileError
from leaveout.tables._files import read_svmlight


@pytest.fixture
def read(tmp_path):
    """Read a dataset from text, or from a DataFrame by way of CSV."""

    def read_text(content, target="y", **roles):
        path = tmp_path / "table.csv"
        if isinstance(content, pd.DataFrame):
            content = content.to_csv(index=False)
        path.write_text(content, encoding="utf-8")
        return read_dataset(path, target, **roles)

    return read_text


def column(cells):
    """A table of 24 rows with these cells again and again, and two classes."""
    return pd.DataFrame({"v": np.resize(cells, 24), "y": ["r", "s"] * 12})


def test_features_in_order_and_text_classes(read):
    dataset = read("b,kind,a\n1,x,2\n3, y,4.5\n5,x,2\n7,y,4.5\n", "kind")
    assert np.array_equal(dataset.X.to_numpy(), [[1, 2], [3, 4.5], [5, 2], [7, 4.5]])
    assert set(dataset.X.dtypes) == {np.dtype("float64")}
    assert dataset.y.tolist() == ["x", "y", "x", "y"]
    assert dataset.feature_names == ["b", "a"]
    assert (dataset.name, dataset.target_name) == ("table.csv", "kind")
    assert dataset.notes == ()
    for values in [[1, 0], [True, False], [1.0, 2.0]]:
        dataset = read(pd.DataFrame({"a": values, "y": values}))
        assert repr(dataset.y.tolist()) == repr(values)
        assert np.array_equal(dataset.X["a"], np.array(values, dtype=float))
    beyond_64_bits = read(f"a,y\n1,{10**20}\n2,3\n")
    assert beyond_64_bits.y.tolist() == [str(10**20), "3"]


def test_text_and_numbers_as_categories(read):
    dataset = read("sex,age,y\nf,31,0\n m,44,1\nf ,50,1\nm,3,0\n")
    features = {"sex": ["f", "m", "f", "m"], "age": [31, 44, 50, 3]}
    assert dataset.X.to_dict("list") == features
    assert dataset.text_features == ("sex",)
    assert dataset.notes == ("One-hot encoded: 'sex' (2 categories).",)
    dataset = read("site,y\n3,0\n7,1\n3,1\n", categorical=["site"])
    assert dataset.X.to_dict("list") == {"site": ["3", "7", "3"]}
    assert dataset.text_features == ("site",)
    # Two notations do not matter where dropped.
    dataset = read("dose;n;y\n0,14;999;r\n0,5;1.234;b\n", drop=["n"])
    assert dataset.X.to_dict("list") == {"dose": [0.14, 0.5]}
    assert "Decimal commas recognised in 'dose'." in dataset.notes


def test_roles_of_columns(read):
    text = "n;p;site;a;y\n0042;p0;s;1,5;u\n;p0 ;;2;v\nNA; p1;t;0,5;u\n1,50;P1;s;3;v\n"
    roles = {"id_column": "n", "group_column": "p", "drop": ["site"]}
    dataset = read(text, **roles)
    assert dataset.X.to_dict("list") == {"a": [1.5, 2, 0.5, 3]}
    assert dataset.ids.tolist() == ["0042", "", "NA", "1,50"]
    assert dataset.groups.tolist() == ["p0", "p0", "p1", "P1"]
    assert (
        "Some groups differ only in upper and lower case: 'P1', 'p1'." in dataset.notes
    )
    same = read("a,b,y\n1,2,0\n2,3,1\n", id_column="b", group_column="b")
    assert same.groups.tolist() == same.ids.tolist() == ["2", "3"]
    with pytest.raises(ValueError, match="'y' cannot be both target= and drop="):
        read("a,b,y\n1,2,0\n2,3,1\n", drop=["y"])
    for cell, ids in (("", None), ('"  "', "p"), ("NA ", "p")):
        with pytest.raises(DataFileError, match=r"1 of 3 columns: 'p' \(1\), in 1 of"):
            read(f"p,a,y\nq,1,u\n{cell},2,v\n", id_column=ids, group_column="p")


def test_blank_text_is_missing(tmp_path):
    frame = pd.DataFrame({"a": [1, 2, 3], "site": ["u", "? ", "u"], "y": list("rsr")})
    frame.to_csv(tmp_path / "csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
    frame.to_parquet(tmp_path / "parquet")
    for path in (tmp_path / "csv", tmp_path / "parquet"):
        with pytest.raises(DataFileError, match=r"missing values in .*: 'site' \(1\)"):
            read_dataset(path, "y")
        with pytest.raises(DataFileError, match="no class in 1 of 3 rows, first in ro"):
            read_dataset(path, "site")


@pytest.mark.parametrize(
    "cells",
    [
        ["−1", "−2"], ["4\xa0477,5", "3\u202f000,5"], ["4’477.5"], ["(1.5)", "(2.5)"],
        ["-£3"], ["€ 3,5", "€ 4"], ["<0.5", "0.7"], ['="3"', '="4"'], ["1.5E−3"],
        ["3.5D+02"], ["5 %", "6 %"], ["1,234.5"], ["2021-03-04"], ["3/4/2021"],
        ["12.03.2021"], [f"{i}.5 mg" for i in range(24)], ["9" * 400], ["0.5", "low"],
        # A regular expression that goes back takes a minute for this.
        ["1" * 100_000 + "x", "2"],
    ],
    ids=lambda cells: cells[0][:12],
)  # fmt: skip
def test_columns_that_look_like_numbers_are_refused(read, cells):
    with pytest.raises(DataFileError) as caught:
        read(column(cells))
    assert re.search("as numbers: .* in row .* of column 'v'", str(caught.value))
    assert "Correct the values, give decimal= or sep=" in str(caught.value)
    assert len(str(caught.value)) < 400
    assert read(column(cells).assign(a=range(24)), drop=["v"]).feature_names == ["a"]
    assert read(column(cells), categorical=["v"]).text_features == ("v",)


@pytest.mark.parametrize(
    "words",
    [
        ["MAR1", "SEPT2"], ["2021-A", "2021-B"], ["A549", "MCF-7"], ["3T3", "22Rv1"],
        ["1D", "2D"], ["0a", "1a", "2a"], ["-", "+"], ["$", "€"], ["(a)", "(b)"],
        # A regular expression that goes back takes hours for these.
        ["1" * 100_000 + "x"], ["<" + " " * 100_000 + "x"], ["1." * 50_000 + "x", "2"],
    ],
    ids=lambda words: words[0][:8],
)  # fmt: skip
def test_words_are_categories(read, words):
    assert read(column([*words, "n"])).text_features == ("v",)


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        ("a,kind\n1,x\n", "knd", r"No column 'knd' in .* Did you mean 'kind'\?"),
        ("a,b\n1,x\n", "z", r"No column 'z' in '.*'. The columns are 'a', 'b'"),
        ("1.5,2\n1,2\n", "y", r"first row looks like data: add a row of col"),
        ("1.5,2,a\n1,2,b\n", "y", r"The columns are '1.5', '2', 'a'\.$"),
        ("2,1.5,a\n1,2,b\n", "y", r"'a'\. The first row looks like data: add"),
        ("2,1.5,a\n1,2,b\n", None, r"'a'\. The first row looks like data: add"),
        ("7,f,x\n1,f,x\n2,m,z\n", "y", r"'x'\. The first row looks like data: add"),
        ("7,f,x\n1,f,x\n2,,z\n", "x", r"\(drop=\)\. The first row looks like data"),
        ("g,s1,s2\nTP53,4,5\ny,u,v\n", "y", r"one row per sample: transpose"),
        ("1\n2\n3\n", None, r"target="),  # not svmlight
        ("a,kind\n1,x\n", None, r"target=. The columns of .* are 'a', 'kind'"),
        (",".join(f"c{i}" for i in range(20)) + "\n1\n", None, r"… 12 more …, .*'c19'"),
        ("kind\nx\ny\n", "kind", r"no column besides 'kind'"),
        ("a,b,y\n1,,0\n,,1\n2,3,0\n", "y",
         r"columns: 'a' \(1\), 'b' \(2\), in 2 of 3 rows, first in row 1 .*\(drop=\)"),
        ("a;y\n1.234;0\n0,5;1\n", "y", r"'0,5' in row 2 of column 'a'.*give decimal="),
        ('a,y\n"1,234",0\n"5,678",1\n', "y", "'1,234' in row 1 of column 'a'"),
        ("a,y\ninf,0\n2,1\n", "y", r"infinite values in 'a'"),
        ("a,y\n1,0\n2,0\n", "y", r"csv': column 'y' has one class only, '0'\. At"),
        ("a,y\n1,0.5\n2,1.7\n3,2.2\n", "y", r"regression target: it has the value 0.5"),
        (column([1]).assign(y=range(24)), "y", r"24 distinct values in 24"),
        (column([1]).assign(y=[f"p{max(i, 3)}" for i in range(24)]), "y",
         r"'y' has 21 distinct values in 24 rows. It looks like an id: choose"),
        (pd.DataFrame({"a": range(60), "y": np.arange(60) % 25}), "y",
         r"'y' has 25 distinct values in 60 rows. It looks like a regression target"),
        (pd.DataFrame({"a": range(270), "y": [99, *np.arange(269) % 40]}), "y",
         r"'y' has 41 .*: choose another column, .* If the numbers name classes"),
        ("1 1:2 2:3\n-1 x:y\n", None, "table.csv': corrupt svmlight file"),
        ("1 1:inf\n-1 1:2\n", None, "not finite"),
        ("1 1:2\n-1 99999999999999999999:3\n", None, "corrupt svmlight file"),
        ("1 1:2\n-1 20000000:3\n", None, "an index 20000000; at most 10,000,000 col"),
        ("1 1:2\ninf 1:3\n", None, "a class that is not finite"),
        ("1 1:2\n1e300 1:3\n", None, r"or larger than 2\*\*53"),
        ("1 1:2\n-1 1:3\n", "y", "each line starts with its class"),
    ],
)  # fmt: skip
def test_mistakes(read, text, target, message):
    with pytest.raises(ValueError, match=message):
        read(text, target)


def test_columns_that_are_pointed_out_or_left_out(read):
    n = np.arange(12)
    frame = pd.DataFrame({"name": [f"P{i}" for i in n], "place": n + 1})
    frame = frame.assign(sample_id=n * n + 1, same=7, word="w", note="", a=0.5 * n)
    frame = frame.assign(day=20210411 + n // 2, code=7 * n % 40, b=n % 5, c=n / 3)
    frame["y"] = np.where(n == 3, "s", np.where(n % 2, "r", "t"))
    dataset = read(frame)
    assert dataset.feature_names == [
        *("place", "sample_id", "same", "word", "a", "day", "code", "b", "c")
    ]
    notes = " ".join(dataset.notes)
    for note in (
        "Empty, left out: 'note'.",
        "Text that is different in every row, left out: 'name'.",
        "Constant columns: 'same', 'word'. They carry no information;",
        "looks like a row number, id or date: 'place', 'sample_id', 'day', 'code'. If",
        "Classes with one sample: 's'. Such a sample is always predicted wrongly",
    ):
        assert note in notes
    copied = read(pd.concat([frame, frame.iloc[[2]]]), drop=["name"])
    assert "(row 13 of the file equals row 3)" in copied.notes[-1]
    named = read(frame.to_csv())
    assert "The first column has no name: left out." in named.notes
    assert named.feature_names == dataset.feature_names


@pytest.mark.parametrize(
    ("header", "is_data"),
    [("5.1,3.5,a", True), ("9,8,7,6,a", False), ("x1,x2,a", False)],
)
def test_table_without_header_is_noted(read, header, is_data):
    row = ",".join(["1", *"2345"][: header.count(",")])
    notes = " ".join(read(f"{header}\n{row},b\n{row}6,c\n", "a").notes)
    assert ("The column names look like data" in notes) == is_data


@pytest.mark.parametrize("first", [0, 1])
def test_svmlight(tmp_path, rng, first):
    X = sparse.random(20, 7, density=0.5, random_state=rng, format="csr")
    y = np.tile([1, -1], 10)
    path = tmp_path / "data.txt"
    dump_svmlight_file(X, y, str(path), zero_based=first == 0)
    dataset = read_dataset(path)
    assert np.allclose(dataset.X.toarray(), X.toarray())
    assert dataset.y.tolist() == y.tolist()
    names = dataset.feature_names
    assert names == [str(k) for k in range(first, first + 7)]
    # A later file without the first column keeps its place.
    later, _, _ = read_svmlight(f"1 {first + 2}:5\n".encode(), path, names)
    assert later.toarray().tolist() == [[0, 0, 5, 0, 0, 0, 0]]
    with pytest.raises(DataFileError, match=f"column 99; those .* {first}"):
        read_svmlight(b"1 99:5\n", path, names)


def test_first_rows_of_svmlight(read):
    for first in ("1", " -1 # nothing", "+1.E+0 qid:3 2:1"):
        dataset = read(f"# by hand\n\n{first}\n1\n-1 1:0.5 # x\r\n1 1:2\n", None)
        assert dataset.X.shape[0] == 4
        assert set(dataset.y.tolist()) == {-1, 1}
