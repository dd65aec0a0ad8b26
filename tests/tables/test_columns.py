# SPDX-License-Identifier: BSD-3-Clause
import csv

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from leaveout.data import read_dataset
from leaveout.exceptions import DataFileError
from leaveout.tables._files import read_svmlight


@pytest.fixture
def write(tmp_path):
    """Write a CSV file, return its path."""

    def write_text(text):
        path = tmp_path / "table.csv"
        path.write_text(text)
        return path

    return write_text


def rows(header, *columns):
    """A CSV text from a header and columns."""
    lines = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    return "\n".join([header, *lines]) + "\n"


def test_features_in_order_and_text_classes(write):
    dataset = read_dataset(write("b,kind,a\n1,x,2\n3, y,4.5\n5,x,2\n7,y,4.5\n"), "kind")
    assert np.array_equal(dataset.X.to_numpy(), [[1, 2], [3, 4.5], [5, 2], [7, 4.5]])
    assert set(dataset.X.dtypes) == {np.dtype("float64")}
    assert dataset.y.tolist() == ["x", "y", "x", "y"]
    assert dataset.feature_names == ["b", "a"]
    assert (dataset.name, dataset.target_name) == ("table.csv", "kind")
    assert dataset.notes == ()


@pytest.mark.parametrize(
    ("values", "expected"),
    [("1,0", [1, 0]), ("True,False", [True, False]), ("1.0,2.0", [1.0, 2.0])],
)
def test_classes_of_other_kinds(write, values, expected):
    first, second = values.split(",")
    dataset = read_dataset(write(f"a,y\n1,{first}\n2,{second}\n"), "y")
    assert dataset.y.tolist() == expected


def test_boolean_feature_is_a_number(write):
    dataset = read_dataset(write("a,y\nTrue,0\nFalse,1\n"), "y")
    assert np.array_equal(dataset.X.to_numpy(), [[1], [0]])


def test_text_is_a_category(write):
    dataset = read_dataset(write("sex,age,y\nf,31,0\n m,44,1\nf ,50,1\nm,3,0\n"), "y")
    assert dataset.text_features == ("sex",)
    assert dataset.feature_names == ["sex", "age"]
    assert dataset.X["sex"].tolist() == ["f", "m", "f", "m"]
    assert dataset.notes == ("Text, one-hot encoded: 'sex' (2 categories).",)


def test_numbers_as_categories_if_asked(write):
    dataset = read_dataset(write("site,y\n3,0\n7,1\n3,1\n"), "y", categorical=["site"])
    assert dataset.X["site"].tolist() == ["3", "7", "3"]


def test_roles_of_columns(write):
    text = "name,patient,site,a,y\nu,1,s,5,0\nv,1,s,6,1\nw,2,t,7,1\n"
    dataset = read_dataset(
        write(text), "y", id_column="name", group_column="patient", drop=["site"]
    )
    assert dataset.feature_names == ["a"]
    assert dataset.ids.tolist() == ["u", "v", "w"]
    assert dataset.groups.tolist() == ["1", "1", "2"]


def test_missing_value_in_a_dropped_column_or_id_does_not_matter(write):
    text = "id,a,b,y\n,1,,0\nq,2,5,1\n"
    dataset = read_dataset(write(text), "y", id_column="id", drop=["b"])
    assert dataset.feature_names == ["a"]


def test_numbers_in_two_notations_do_not_matter_where_dropped(write):
    path = write("dose;cells;y\n0,14;999;r\n0,00;1.234;b\n")
    with pytest.raises(DataFileError, match=r"'cells' \(row 2: '1.234'\) has a point"):
        read_dataset(path, "y")
    assert read_dataset(path, "y", drop=["cells"]).feature_names == ["dose"]


def test_ids_are_kept_letter_by_letter(write):
    path = write("id;a;y\n0042;1,5;u\n;2,5;v\n9007199254740993;0,5;u\n1,50;3;v\n")
    dataset = read_dataset(path, "y", id_column="id")
    assert dataset.ids.tolist() == ["0042", "", "9007199254740993", "1,50"]
    assert dataset.X["a"].tolist() == [1.5, 2.5, 0.5, 3.0]


def test_ids_may_be_called_like_missing_values(write):
    path = write("id,a,y\nNA,1,u\nnull,2,v\n?,3,u\n,4,v\n")
    dataset = read_dataset(path, "y", id_column="id")
    assert dataset.ids.tolist() == ["NA", "null", "?", ""]


def test_blanks_around_groups_do_not_count_and_capitals_are_pointed_out(write):
    path = write("p,a,y\np0,1,u\np0 ,2,v\n p1,3,u\nP1,4,v\np2,5,u\n")
    dataset = read_dataset(path, "y", group_column="p")
    assert dataset.groups.tolist() == ["p0", "p0", "p1", "P1", "p2"]
    assert "Some groups differ in capitals only: 'P1', 'p1'." in dataset.notes


@pytest.mark.parametrize("cell", ["", '"  "', "NA", "NA "])
@pytest.mark.parametrize("id_column", [None, "p"])
def test_samples_without_a_group_are_refused(write, cell, id_column):
    path = write(f"p,a,y\nq,1,u\n{cell},2,v\n")
    with pytest.raises(DataFileError, match=r"1 of 3 columns: 'p' \(1\), in 1 of 2"):
        read_dataset(path, "y", id_column=id_column, group_column="p")


@pytest.mark.parametrize("blank", ["", "  ", "NA", "? "])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_blank_text_is_missing(tmp_path, kind, blank):
    frame = pd.DataFrame({"a": [1, 2, 3], "site": list("uvu"), "y": list("rsr")})
    path = tmp_path / "table"

    def read_with_blank(column):
        table = frame.copy()
        table.loc[1, column] = blank
        if kind == "csv":
            table.to_csv(path, index=False, quoting=csv.QUOTE_NONNUMERIC)
        else:
            table.to_parquet(path)
        return read_dataset(path, "y")

    with pytest.raises(DataFileError, match="no class in 1 of 3 rows, first in row 2"):
        read_with_blank("y")
    with pytest.raises(DataFileError, match=r"missing values in .*: 'site' \(1\)"):
        read_with_blank("site")


def test_id_like_and_constant_columns_are_pointed_out(write):
    n = 12
    text = rows(
        "name,row,sample_id,same,a,y",
        [f"P{i}" for i in range(n)],
        range(1, n + 1),
        [i * i + 1 for i in range(n)],
        [7] * n,
        [0.5 * i for i in range(n)],
        [i % 2 for i in range(n)],
    )
    dataset = read_dataset(write(text), "y")
    assert dataset.feature_names == ["row", "sample_id", "same", "a"]
    notes = " ".join(dataset.notes)
    assert "different in every row, left out: 'name'." in notes
    assert "The same in every row: 'same'." in notes
    assert "looks like a row number or id: 'row', 'sample_id'." in notes


def test_unnamed_first_column_is_left_out(tmp_path):
    path = tmp_path / "table.csv"
    pd.DataFrame({"a": [1, 2], "y": [0, 1]}).to_csv(path)
    dataset = read_dataset(path, "y")
    assert dataset.feature_names == ["a"]
    assert "The first column has no name: left out." in dataset.notes


def test_class_of_one_sample_is_pointed_out(write):
    dataset = read_dataset(write("a,y\n1,u\n2,u\n3,v\n"), "y")
    assert dataset.notes[0].startswith("Classes with one sample: 'v'.")


def test_numbers_with_units_are_refused_and_codes_are_not(write):
    doses = [f"{i}.5 mg" for i in range(30)]
    codes = [f"{i % 3}a" for i in range(30)]
    classes = [i % 2 for i in range(30)]
    with pytest.raises(ValueError, match=r"'dose' \(row 1: '0.5 mg'\)"):
        read_dataset(write(rows("dose,code,y", doses, codes, classes)), "y")
    dataset = read_dataset(
        write(rows("dose,code,y", doses, codes, classes)), "y", drop=["dose"]
    )
    assert dataset.text_features == ("code",)


SPELLINGS = ["−{}", "–{}", "4\xa0477,{}", "4\u202f{}", "4’477.{}", "({})", "3.{}D+02"]
OTHERS = ["${}", "€ {},5", "-£{}", '="{}"', "1.{}E−3"]


@pytest.mark.parametrize("spelling", SPELLINGS + OTHERS)
@pytest.mark.parametrize("n_different", [3, 24])
def test_numbers_in_other_spellings_are_refused(tmp_path, spelling, n_different):
    cells = [spelling.format(100 + i % n_different) for i in range(24)]
    path = tmp_path / "table.csv"
    table = pd.DataFrame({"v": cells, "y": ["r", "s"] * 12})
    table.to_csv(path, index=False)
    with pytest.raises(DataFileError) as caught:
        read_dataset(path, "y")
    assert f"'v' (row 1: {cells[0]!r}). Correct the values" in str(caught.value)


DAYS = ["{:02}-Mar-21", "Mar {}, 2021", "{} March 2021", "{:02}MAR2021", "3/{}/2021"]
TIMES = [
    "{}. März 2021",
    "Sept. {}th, 1999",
    "{}-Dez-2020 10:15",
    "2021-03-{:02}T10:15",
]
MONTHS = ["2021-{:02}", "2021/{:02}", "Mar-{:02}", "October 20{:02}"]


@pytest.mark.parametrize("date", DAYS + TIMES + MONTHS)
def test_dates_are_refused(tmp_path, date):
    cells = ["unknown", *(date.format(i % 12 + 1) for i in range(23))]
    path = tmp_path / "table.csv"
    pd.DataFrame({"day": cells, "y": ["r", "s"] * 12}).to_csv(path, index=False)
    with pytest.raises(DataFileError) as caught:
        read_dataset(path, "y")
    assert f"'day' (dates such as {cells[1]!r})" in str(caught.value)


@pytest.mark.parametrize(
    "words",
    [
        ["MAR1", "SEPT2", "OCT4", "DEC1"],
        ["Oct-4", "MARCH5", "March"],
        ["2021-A", "2021-B"],
        ["2021-13", "2021-44"],
        ["Marker 12", "Decoy-12", "Augsburg 2021"],
        ["A549", "MCF-7", "T-47D", "U-2 OS"],
        ["3T3", "4T1", "22Rv1"],
        ["1D", "2D"],
        ["(a)", "(b)"],
        ["-", "+"],
        ["$", "€"],
        ["may", "jun"],
    ],
    ids=" ".join,
)
def test_words_are_neither_numbers_nor_dates(tmp_path, words):
    path = tmp_path / "table.csv"
    cells = [words[i % len(words)] for i in range(24)]
    pd.DataFrame({"a": cells, "y": ["r", "s"] * 12}).to_csv(path, index=False)
    assert read_dataset(path, "y").text_features == ("a",)


def test_text_that_is_the_same_in_every_row_is_pointed_out(write):
    dataset = read_dataset(write("site,a,y\nN,1,u\nN,2,v\nN ,4,u\n"), "y")
    assert "Text, one-hot encoded: 'site' (1 category)." in dataset.notes
    assert any(n.startswith("The same in every row: 'site'.") for n in dataset.notes)


def test_classes_that_differ_in_capitals_are_pointed_out(write):
    dataset = read_dataset(write("a,y\n1,Yes\n2,yes\n3,no\n"), "y")
    assert dataset.notes[0] == "Some classes differ in capitals only: 'Yes', 'yes'."


MANY = range(30)


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        ("a,kind\n1,x\n", "knd", r"No column 'knd' in .* Did you mean 'kind'\?"),
        ("a,Kind\n1,x\n", "kind", r"Did you mean 'Kind'\?"),
        (
            "a,kind\n1,x\n",
            "zzz",
            r"No column 'zzz' in '.*'. The columns are 'a', 'kind'",
        ),
        ("1.5,2\n1,2\n", "y", r"first row holds numbers only: add a row of names"),
        ("a,kind\n1,x\n", None, r"--target COL. The columns of .* are 'a', 'kind'"),
        ("kind\nx\ny\n", "kind", r"has no column besides 'kind'"),
        (
            "a,b,y\n1,,0\n,,1\n2,3,0\n",
            "y",
            r"2 of 3 columns: 'a' \(1\), 'b' \(2\), in 2 of 3 rows. Fill",
        ),
        (
            "a,y\n1,0\n2,\n",
            "y",
            r"'y' of .* has no class in 1 of 2 rows, first in row 2",
        ),
        ("a,b,y\n1,2,0\n2,low,1\n", "y", r"'b' \(row 2: 'low'\). Correct the values"),
        ("a,y\n0.5,0\n<0.1,1\n0.7,1\n", "y", r"'a' \(row 2: '<0.1'\)"),
        ("a;y\n0,5;0\nn.d.;1\n0,7;1\n", "y", r"'a' \(row 2: 'n.d.'\)"),
        ('a,y\n"1,234",0\n"5,678",1\n', "y", r"'a' \(row 1: '1,234'\)"),
        ("a,y\n2021-03-04,0\n2021-03-05,1\n", "y", r"'a' \(dates such as '2021-03-04'"),
        ("a,y\ninf,0\n2,1\n", "y", r"Infinite values in 'a'"),
        ("a,y\n1,0\n2,0\n", "y", r"'y' has one class only, '0' in all 2 rows"),
        ("a,y\n1,0.5\n2,1.7\n3,2.2\n", "y", r"3 different values in 3 rows, which are"),
        (rows("a,y", MANY, MANY), "y", r"'y' has 30 different values in 30 rows"),
        (
            rows("a,y", MANY, [f"p{i // 2 * 2 if i < 10 else i}" for i in MANY]),
            "y",
            r"'y' has 25 classes in 30 rows: too few",
        ),
    ],
)
def test_mistakes(write, text, target, message):
    with pytest.raises(ValueError, match=message):
        read_dataset(write(text), target)


def test_one_column_cannot_be_two_things(write):
    path = write("a,b,y\n1,2,0\n2,3,1\n")
    with pytest.raises(ValueError, match="'y' cannot be both --target and --drop"):
        read_dataset(path, "y", drop=["y"])
    dataset = read_dataset(path, "y", id_column="b", group_column="b")
    assert dataset.groups.tolist() == dataset.ids.tolist() == ["2", "3"]


def test_long_lists_are_cut(write):
    names = [f"c{i}" for i in range(20)]
    text = ",".join(names) + "\n" + ",".join("1" * 20) + "\n"
    with pytest.raises(ValueError, match=r"'c0', .*'c3', … 12 more …, .*'c19'\."):
        read_dataset(write(text), None)


@pytest.mark.parametrize("first", [0, 1])
def test_svmlight(tmp_path, rng, first):
    X = sparse.random(20, 7, density=0.5, random_state=rng, format="csr")
    assert X[:, 0].nnz
    y = np.tile([1, -1], 10)
    path = tmp_path / "data.txt"
    dump_svmlight_file(X, y, str(path), zero_based=first == 0)
    dataset = read_dataset(path)
    assert np.allclose(dataset.X.toarray(), X.toarray())
    assert dataset.y.tolist() == y.tolist()
    assert dataset.feature_names == [str(k) for k in range(first, first + 7)]
    with pytest.raises(ValueError, match="its classes stand in front"):
        read_dataset(path, "y")
    # A later file without the first column keeps its place.
    path.write_text(f"1 {first + 2}:5\n")
    later, _, _ = read_svmlight(path, dataset.feature_names)
    assert later.toarray().tolist() == [[0, 0, 5, 0, 0, 0, 0]]
    path.write_text("1 99:5\n")
    with pytest.raises(
        ValueError, match=f"a column 99; those of the model are {first}"
    ):
        read_svmlight(path, dataset.feature_names)


@pytest.mark.parametrize("first", ["1", " -1 # nothing", "1e0 1:2", "+1.E+0 qid:3 2:1"])
def test_first_rows_of_svmlight(tmp_path, first):
    path = tmp_path / "data.txt"
    path.write_text(f"# made by hand\n\n{first}\n1\n-1 1:0.5\n1 1:2\n")
    dataset = read_dataset(path)
    assert dataset.X.shape[0] == 4
    assert set(dataset.y.tolist()) == {-1, 1}


def test_a_column_of_numbers_is_no_svmlight(write):
    with pytest.raises(ValueError, match="--target COL"):
        read_dataset(write("1\n2\n3\n"))


def test_damaged_svmlight(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("1 1:2 2:3\n-1 x:y\n")
    with pytest.raises(ValueError, match="damaged svmlight file"):
        read_dataset(path)
    path.write_text("1 1:inf\n-1 1:2\n")
    with pytest.raises(ValueError, match="not finite"):
        read_dataset(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:2\n-1 99999999999999999999:3\n", "damaged svmlight file"),
        ("1 1:2\n-1 2147483647:3\n", "damaged svmlight|at most 10,000,000 columns"),
        ("1 1:2\n-1 20000000:3\n", "an index 20000000; at most 10,000,000 columns"),
        ("1 1:2\ninf 1:3\n", "a class that is not finite"),
        ("1 1:2\nnan 1:3\n", "a class that is not finite"),
        ("1 1:2\n1e300 1:3\n", r"or larger than 2\*\*53"),
        ("1 1:2\n1 1:3\n", "has one class only"),
    ],
)
def test_svmlight_of_a_stranger(tmp_path, text, message):
    path = tmp_path / "data.txt"
    path.write_text(text)
    with pytest.raises(DataFileError, match=message) as caught:
        read_dataset(path)
    assert "data.txt" in str(caught.value)


@pytest.mark.parametrize(
    "cell",
    [
        "1" * 100_000 + "x",
        "1" + " " * 100_000 + "x",
        "<" + " " * 100_000 + "x",
        "1." * 50_000 + "x",
        "1-Mar" + "." * 100_000 + "x",
    ],
)
def test_long_cells_take_no_time(write, cell):
    # Each took an hour: a regular expression tried all ways to split the digits.
    path = write(f"a,kind\n{cell},u\n2,v\n{cell},u\n")
    assert read_dataset(path, "kind").text_features == ("a",)


def test_integers_beyond_all_floats_are_infinite(write):
    with pytest.raises(DataFileError, match="Infinite values in 'a'"):
        read_dataset(write(f"a,k\n{'9' * 400},u\n-2,v\n"), "k")


def test_every_mistake_in_a_file_names_the_file(write):
    with pytest.raises(DataFileError, match=r"': Column 'k' has one class only"):
        read_dataset(write("a,k\n1,u\n2,u\n"), "k")


def test_table_on_its_side_is_told(write):
    text = "gene,s1,s2,s3\nBRCA1,1,2,3\nTP53,4,5,6\nkind,x,y,x\n"
    with pytest.raises(ValueError, match=r"lies on its side.*Transpose it"):
        read_dataset(write(text), "kind")


def test_empty_columns_are_left_out_but_not_those_with_a_role(write):
    text = "a,b,kind,note\n1,2,x,\n3,4,y,\n5,6,x,\n"
    dataset = read_dataset(write(text), "kind")
    assert dataset.feature_names == ["a", "b"]
    assert "Empty, left out: 'note'." in dataset.notes
    with pytest.raises(ValueError, match="has no class in 3 of 3 rows"):
        read_dataset(write(text), "note")


def test_copies_are_noted(write):
    text = "a,b,kind\n1,2,x\n3,4,y\n5,6,x\n1,2,x\n"
    assert "row 4 of row 1" in read_dataset(write(text), "kind").notes[-1]
