# SPDX-License-Identifier: BSD-3-Clause
"""Files as other programs write them, each with the table that must come out."""

import csv

import numpy as np
import pandas as pd
import pytest

from leaveout.exceptions import DataFileError
from leaveout.tables._files import read_table
from leaveout.tables._preparation import match_columns

FRAME = pd.DataFrame({"dose": [1.5, -2.25, 3e-4], "n": [1, 2, 3], "kind": list("aba")})


@pytest.fixture
def write(tmp_path):
    """Write a file, return its path."""

    def write_file(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_separators(write, separator, ends):
    path = write(FRAME.to_csv(sep=separator, index=False, lineterminator=ends))
    found = read_table(path).frame
    pd.testing.assert_frame_equal(found, FRAME, check_dtype=False)


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_decimal_commas(write, separator):
    path = write(FRAME.to_csv(sep=separator, index=False, decimal=","))
    table = read_table(path)
    pd.testing.assert_frame_equal(table.frame, FRAME, check_dtype=False)
    assert "Decimal commas read as such: 'dose'." in table.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "dose;cells;y\n0,14;999;r\n0,00;1.230;b\n",
            r"'cells' \(row 2: '1.230'\) has a point, but the decimal mark of 'dose' "
            r"\(row 1: '0,14'\) is a comma. Write all numbers with the same decimal",
        ),
        (
            "dose\tcount\ty\n0.1257\t42,745\tr\n3\t999\tb\n",
            r"'count' \(row 1: '42,745'\) has a comma, .* 'dose' \(row 1: '0.1257'\)",
        ),
        ("a;y\n1.234;r\n0,5;b\n", r"'a' \(row 1: '1.234'\) has a point, but .*'0,5'"),
        ("a;y\n1.234;r\n1,234;b\n", r"'a' \(row 1: '1.234'\) has a point, but .*'1,2"),
        ("a;b;c;y\n0,5;2.5;-1,500;r\n", r"'c' \(row 1: '-1,500'\) has a comma"),
    ],
)
def test_thousands_that_the_file_contradicts_are_refused(write, text, message):
    with pytest.raises(DataFileError, match=r"Thousands or decimals\? " + message):
        read_table(write(text))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a;y\n1,234;r\n5,678;b\n", [1.234, 5.678]),
        ("b;a;y\n0,5;1,234;r\n0,25;5,678;b\n", [1.234, 5.678]),
        ("b;a;y\n0,5;1.234;r\n0,25;22.5;b\n", [1.234, 22.5]),
        ("b;a;y\n0,5;0.567;r\n0,25;1.234e3;b\n", [0.567, 1234.0]),
        ("a;y\n1,5;r\n2.5;b\n", [1.5, 2.5]),
    ],
)
def test_decimals_that_nothing_contradicts_are_read(write, text, values):
    assert read_table(write(text)).frame["a"].tolist() == values


def test_quoted_numbers_with_commas_stay_text_where_commas_separate(write):
    # 1,234 may be a thousand or one and a bit: not ours to decide.
    frame = read_table(write('a,y\n"1,234",0\n"5,678",1\n')).frame
    assert frame["a"].tolist() == ["1,234", "5,678"]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"]
)
def test_encodings(write, encoding):
    table = read_table(write("größe;ort\n1;Köln\n2;Malmö\n".encode(encoding)))
    assert list(table.frame) == ["größe", "ort"]
    assert table.frame["ort"].tolist() == ["Köln", "Malmö"]
    assert any("cp1252" in note for note in table.notes) == (encoding == "cp1252")


def test_byte_outside_every_code_page_is_latin_1(write):
    table = read_table(write(b"a,k\n1,\x81\xe4\n"))
    assert table.frame["k"].tolist() == ["\x81ä"]
    assert "Not UTF-8: read as latin-1." in table.notes


@pytest.mark.parametrize(
    "text",
    [
        "a, b, y\n1, 2.5, x\n3, 4, z\n",  # blanks after commas
        " a ,b,y\n\n1,2.5,x\n3,4,z\n\n",  # blanks in names, empty lines
        '"a","b","y"\n1,2.5,"x"\n3,4,"z"\n',
        "sep=;\na;b;y\n1;2.5;x\n3;4;z\n",  # Excel
        "a,b,y,\n1,2.5,x,\n3,4,z,\n",  # a separator at the end
        "a,b,y\n1,2.5,x,\n3,4,z,\n",  # the same, not in the header
    ],
)
def test_habits_of_other_programs(write, text):
    frame = read_table(write(text)).frame
    assert list(frame) == ["a", "b", "y"]
    assert frame.to_numpy().tolist() == [[1, 2.5, "x"], [3, 4.0, "z"]]


def test_comma_in_a_quoted_name_and_in_numbers(write):
    table = read_table(write("dose, mg;weight, kg;class\n1,5;2;A\n2;3,25;B\n"))
    assert list(table.frame) == ["dose, mg", "weight, kg", "class"]
    assert table.frame["weight, kg"].tolist() == [2, 3.25]


@pytest.mark.parametrize("separator", [";", "\t", "|"])
@pytest.mark.parametrize("last", ["red", "2,25"])
@pytest.mark.parametrize("names", [["a, kg", "y"], ["a, b, c", "y"]])
def test_as_many_commas_in_names_as_in_numbers(write, separator, last, names):
    rows = [names, ["1,5", last], ["0,25", last]]
    path = write("\n".join(separator.join(row) for row in rows))
    assert list(read_table(path).frame) == names


def test_semicolons_in_words_do_not_separate(write):
    frame = read_table(write("genes;set,y\nA;B,1.5\nC;D,2\n")).frame
    assert frame.to_numpy().tolist() == [["A;B", 1.5], ["C;D", 2.0]]


def test_row_names_without_a_header(write):
    frame = read_table(
        write('"a" "y"\n"r1" 1 "x"\n"r2" 2 "z"\n'.replace(" ", "\t"))
    ).frame
    assert list(frame) == ["(unnamed 1)", "a", "y"]
    assert frame["a"].tolist() == [1, 2]


def test_marks_of_missing_values(write):
    frame = read_table(write("a,b\n1,?\nNA,None\n,x\n4,nan\n")).frame
    assert frame["a"].isna().tolist() == [False, True, True, False]
    assert frame["b"].isna().tolist() == [True, False, False, True]  # None is a word


def test_parquet(write, tmp_path):
    path = tmp_path / "table.anything"
    FRAME.to_parquet(path)
    pd.testing.assert_frame_equal(read_table(path).frame, FRAME)
    broken = write(path.read_bytes()[:100], "broken.parquet")
    with pytest.raises(ValueError, match=r"broken.parquet' is a damaged Parquet file"):
        read_table(broken)


def test_parquet_keeps_a_named_index(tmp_path):
    path = tmp_path / "table.parquet"
    FRAME.set_index("kind").to_parquet(path)
    assert set(read_table(path).frame) == set(FRAME)


@pytest.mark.parametrize("index", [["s", "t", "u"], [100, 101, 102], [7, 7, 7]])
def test_parquet_rows_are_counted_whatever_the_index(tmp_path, index):
    path = tmp_path / "table.parquet"
    FRAME.set_axis(index).to_parquet(path)
    frame = read_table(path).frame
    pd.testing.assert_frame_equal(frame, FRAME)
    with pytest.raises(ValueError, match=r"not seen: 'b', first in row 2\. It knows"):
        match_columns(frame, ["kind"], {"kind": ["a"]}, path)


def test_many_columns_are_read_once(write, rng):
    values = rng.normal(size=(20, 20_000))
    names = [f"gene {k}" for k in range(values.shape[1])]
    path = write(pd.DataFrame(values, columns=names).to_csv(index=False, sep=";"))
    frame = read_table(path).frame
    assert list(frame) == names
    assert np.array_equal(frame.to_numpy(), values)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"table.csv' is empty"),
        (" \n\n", r"table.csv' is empty"),
        ("a,y\n", r"has a header but no rows"),
        ("a,y\n1,2\n1,2\n1,2,3\n", r"line 4 has 3 fields, the lines before it 2"),
        ("a,b,a,y\n1,2,3,4\n", r"more than one column named 'a' \('a': columns 1, 3\)"),
        (b"PK\x03\x04rest", r"zip archive, as Excel's .xlsx is. Save the sheet as CSV"),
        (b"\x1f\x8brest", r"compressed with gzip. Unpack"),
        (b"a,b\n\x00\x01\x02", r"has bytes that are no text"),
        (b"a,b\n" + b"1,2\n" * 30_000 + b"\x00,1\n", r"has bytes that are no text"),
        ("a,y\n1,2,3\n1,2\n", r"line 2 has 3 fields, the header 2"),
        ('a,y\n"1\n5",2,3\n1,2\n', r"line 3 has 3 fields, the header 2"),
        (
            'a,y\n"1,2\n3,4\n',
            r"quotation mark .* begins in line 2 is not closed. Close",
        ),
        ('a,y\n\n"1\n2",5\n3,"4\n5,6\n', r"row that begins in line 5 is not closed"),
        ('a y\n1 2\n1 "2\n3 4\n', r"row that begins in line 3 is not closed"),
        ("a,y\n1,2\n".encode("utf-16-le"), r"If it is UTF-16 .* save it as UTF-8"),
        ("a,y\n1,2\n".encode("utf-32")[:-1], r"is damaged UTF-32 text: truncated"),
        (b"\xef\xbb\xbf", r"table.csv' is empty"),
        (b"\xff\xfe", r"table.csv' is empty"),
        ("a,y\n1,2\n".encode("utf-16")[:-1], r"is damaged UTF-16 text: truncated"),
        (b"\xff\xfe\x00\xd8a\x00", r"is damaged UTF-16 text: illegal"),
    ],
)
def test_no_table(write, content, message):
    with pytest.raises(DataFileError, match=message) as caught:
        read_table(write(content))
    assert "table.csv" in str(caught.value)


@pytest.mark.parametrize(
    "content",
    ["a,y\r1,u\r2,v\r", "\n" * 200 + "a,y\n1,u\n2,v\n", "sep=:\na:y\n1:u\n2:v\n"],
    ids=["carriage returns", "blank lines before", "declared colon"],
)
def test_odd_lines_change_nothing(write, content):
    assert read_table(write(content)).frame.values.tolist() == [[1, "u"], [2, "v"]]


def test_a_declared_separator_that_cannot_be_one_is_a_name(write):
    assert list(read_table(write('sep="\n1\n2\n')).frame) == ['sep="']


def test_long_cells_are_text_like_others(write):
    limit = csv.field_size_limit()
    text = "x" * 200_000
    frame = read_table(write(f"{text},y\n{text},1\nb,2\n")).frame
    assert list(frame) == [text, "y"]
    assert frame[text].tolist() == [text, "b"]
    assert csv.field_size_limit() == limit


def test_integers_beyond_64_bits_are_floats(write):
    frame = read_table(write(f"a,y\n{'9' * 30},u\n-2,v\n")).frame
    assert frame["a"].tolist() == [1e30, -2.0]
    assert frame["a"].dtype == "float64"


def test_numbers_are_read_to_the_last_bit(write, rng):
    numbers = rng.normal(size=2000) * 10.0 ** rng.integers(-300, 300, 2000)
    for separator, decimal in ((",", "."), (";", ",")):
        frame = pd.DataFrame({"a": numbers, "y": 1})
        text = frame.to_csv(index=False, sep=separator, decimal=decimal)
        assert (read_table(write(text)).frame["a"] == numbers).all()


def test_damaged_text_in_parquet_is_refused_when_read(tmp_path):
    path = tmp_path / "table.parquet"
    pd.DataFrame({"a": ["marker-text", "b"]}).to_parquet(path, compression="none")
    raw = path.read_bytes()
    assert b"marker-text" in raw
    path.write_bytes(raw.replace(b"marker-text", b"marker\xfftext"))
    with pytest.raises(DataFileError, match=r"table.parquet' is a damaged Parquet"):
        read_table(path)


def test_small_parquet_that_unpacks_to_a_huge_table(tmp_path, monkeypatch):
    path = tmp_path / "table.parquet"
    pd.DataFrame({"a": np.zeros(1_000_000)}).to_parquet(path)
    assert len(read_table(path).frame) == 1_000_000
    monkeypatch.setattr("leaveout.tables._files.N_VALUES_FREE", 1000)
    with pytest.raises(DataFileError, match=r"bytes unpack to 1,000,000 values"):
        read_table(path)


def test_parquet_index_named_like_a_column(tmp_path):
    path = tmp_path / "table.parquet"
    index = pd.Index([1, 2], name="a")
    pd.DataFrame({"a": [3, 4]}, index=index).to_parquet(path)
    with pytest.raises(DataFileError, match="more than one column named 'a'"):
        read_table(path)


def test_missing_files(write, tmp_path):
    write("a\n1\n", "measurements.csv")
    with pytest.raises(FileNotFoundError, match=r"Did you mean 'measurements.csv'\?"):
        read_table(tmp_path / "measurement.csv")
    with pytest.raises(FileNotFoundError, match=r"no folder '.*nowhere' either"):
        read_table(tmp_path / "nowhere" / "x.csv")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_table(tmp_path)


def test_rows_of_separators_at_the_end_are_left_out(write):
    table = read_table(write("a;b;y\n1;2;x\n;;\n3;4;z\n;;\n;;\n"))
    assert table.frame["a"].isna().tolist() == [False, True, False]
    assert "Empty rows at the end, left out: 2." in table.notes
    with pytest.raises(ValueError, match="has a header but no rows"):
        read_table(write("a;b;y\n;;\n"))
