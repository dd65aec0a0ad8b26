# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import pytest

from leaveout.data import read_csv


@pytest.fixture
def write(tmp_path):
    """Write a CSV file, return its path."""

    def write_text(text):
        path = tmp_path / "table.csv"
        path.write_text(text)
        return path

    return write_text


def test_features_in_order_and_text_classes(write):
    dataset = read_csv(write("b,kind,a\n1,x,2\n3,y,4.5\n"), "kind")
    assert np.array_equal(dataset.X, [[1, 2], [3, 4.5]])
    assert dataset.X.flags.c_contiguous
    assert dataset.y.tolist() == ["x", "y"]
    assert dataset.feature_names == ["b", "a"]
    assert (dataset.name, dataset.target_name) == ("table.csv", "kind")


@pytest.mark.parametrize(
    ("values", "expected"),
    [("1,0", [1, 0]), ("True,False", [True, False]), ("1.0,2.0", [1.0, 2.0])],
)
def test_classes_of_other_kinds(write, values, expected):
    first, second = values.split(",")
    dataset = read_csv(write(f"a,y\n1,{first}\n2,{second}\n"), "y")
    assert dataset.y.tolist() == expected


def test_boolean_feature_is_a_number(write):
    dataset = read_csv(write("a,y\nTrue,0\nFalse,1\n"), "y")
    assert np.array_equal(dataset.X, [[1], [0]])


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No file '.*nothing.csv'. Give the"):
        read_csv(tmp_path / "nothing.csv", "y")


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        ("a,kind\n1,x\n", "knd", r"No column 'knd' in .* Did you mean 'kind'\?"),
        (
            "a,kind\n1,x\n",
            "zzz",
            r"No column 'zzz' in '.*'. The columns are 'a', 'kind'",
        ),
        ("a,kind\n1,x\n", None, r"--target COL. The columns of .* are 'a', 'kind'"),
        ("kind\nx\ny\n", "kind", r"has no column besides 'kind': no features"),
        ("a,b,y\n1,,0\n,,1\n", "y", r"2 of 3 columns: 'a' \(1\), 'b' \(2\)\. Fill"),
        ("a,y\n1,0\n2,\n", "y", r"missing values in 1 of 2 columns: 'y' \(1\)"),
        ("a,b,y\n1,2,0\n2,low,1\n", "y", r"'b' \(row 2: 'low'\). Encode"),
        ("a,y\ninf,0\n2,1\n", "y", r"Infinite values in 'a'"),
        ("a,y\n1,0\n2,0\n", "y", r"'y' has one class only, '0' in all 2 rows"),
        (
            "a,y\n1,0.5\n2,1.7\n3,2.2\n",
            "y",
            r"'y' has 3 different values with decimals",
        ),
        ("", "y", r"table.csv' is not a CSV table: No columns"),
        ("a,y\n1,2\n1,2,3\n", "y", r"is not a CSV table: .*Expected 2 fields"),
        ("a,y\n", "y", r"has a header but no rows"),
    ],
)
def test_mistakes(write, text, target, message):
    with pytest.raises(ValueError, match=message):
        read_csv(write(text), target)


def test_long_lists_are_cut(write):
    names = [f"c{i}" for i in range(20)]
    text = ",".join(names) + "\n" + ",".join("1" * 20) + "\n"
    with pytest.raises(ValueError, match=r"'c0', .*'c7' and 12 more\."):
        read_csv(write(text), None)
