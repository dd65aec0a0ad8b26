# SPDX-License-Identifier: BSD-3-Clause
"""Files as other programs write them, each with the table that must come out."""

import csv
import gzip
from io import BytesIO, StringIO

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.parquet import ParquetFile

from leaveout.exceptions import DataFileError
from leaveout.tables import _files
from leaveout.tables._files import (
    check_parquet_size,
    escape_formula,
    format_csv,
    insert_names,
    read_bytes,
    read_table,
    to_records,
)

FRAME = pd.DataFrame({"dose": [1.5, -2.25, 3e-4], "n": [1, 2, 3], "kind": list("aba")})
ABY = [[1, 2.5, "x"], [3, 4.0, "z"]]


def read(content, **how):
    raw = content if isinstance(content, bytes) else content.encode()
    return read_table(raw, "table.csv", **how)


def encode(frame, **how):
    buffer = BytesIO()
    frame.to_parquet(buffer, **how)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("sep", "ends", "decimal"),
    [(",", "\r\n", "."), ("\t", "\r", ","), ("|", "\n", "."), (" ", "\n", "."),
     (";", "\r\n", ",")],
)  # fmt: skip
def test_separators_and_decimal_commas(sep, ends, decimal):
    text = FRAME.to_csv(sep=sep, index=False, lineterminator=ends, decimal=decimal)
    table = read(text)
    pd.testing.assert_frame_equal(table.frame, FRAME, check_dtype=False)
    told = "Decimal commas recognised in 'dose'." in table.notes
    assert told == (decimal == ",")


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ("a, b, y\n1, 2.5, x\n3, 4, z\n", "a b y", ABY),  # blanks after commas
        (" a ,b,y\n\n1,2.5,x\n3,4,z\n\n", "a b y", ABY),  # blanks in names, empty lines
        ('a\ty\n"r1"\t1\t"x"\n"r2"\t2\t"z"\n', "(unnamed_1) a y",
         [["r1", 1, "x"], ["r2", 2, "z"]]),  # row names of R
        ("a,y\n1,x,\n3,z,\n", "a y (unnamed_3)", [[1, "x", None], [3, "z", None]]),
        ("genes;set,y\nA;B,1.5\nC;D,2\n", "genes;set y", [["A;B", 1.5], ["C;D", 2.0]]),
        ("b;a;y\n0,5;1,234;r\n,25;5;b\n", "b a y", [[0.5, 1.234, "r"], [0.25, 5, "b"]]),
        # 1,234 may be a thousand or one and a bit: refused later as a feature.
        ('a,y\n"1,234",0\n"5,678",1\n', "a y", [["1,234", 0], ["5,678", 1]]),
        ("a,b\n1,?\nNA,None\n,x\n4,nan\n", "a b",
         [[1, None], [None, "None"], [None, "x"], [4, None]]),
        ("a;y\n1;x\n;\n3;z\n;\n;\n", "a y", [[1, "x"], [None, None], [3, "z"]]),
    ],
)  # fmt: skip
def test_other_programs(text, names, rows):
    frame = read(text).frame
    assert list(frame) == [name.replace("_", " ") for name in names.split()]
    found = frame.astype(object).where(frame.notna(), None)
    assert found.to_numpy().tolist() == rows


@pytest.mark.parametrize(
    ("content", "how", "values"),
    [
        ("a:y\n1:u\n2:v\n", {"sep": ":"}, [1, 2]),
        ("a;y\n1,5;u\n2;v\n", {"decimal": "."}, ["1,5", "2"]),
        ("a;y\n1.234;u\n0,5;v\n", {"decimal": ","}, ["1.234", "0,5"]),
        ("a;y\nKöln;u\n".encode("cp1252"), {"encoding": "cp1252"}, ["Köln"]),
        *(("a;y\nKöln;ö\n".encode(e), {}, ["Köln"])
          for e in ("utf-8", "utf-8-sig", "utf-16", "utf-32")),
        ("a,y\n0042,u\n", {"as_text": ["a"]}, ["0042"]),
    ],
)  # fmt: skip
def test_options_and_encodings(content, how, values):
    assert read(content, **how).frame["a"].tolist() == values


def test_wide_tables_and_long_cells():
    limit = csv.field_size_limit()
    names = [f"a rather long name {k}" for k in range(3000)]
    frame = pd.DataFrame([[1.5] * 3000, [2.0] * 3000], columns=names)
    pd.testing.assert_frame_equal(read(frame.to_csv(index=False)).frame, frame)
    assert read(f"k,y\n{'x' * 200_000},1\nb,2\n").frame["y"].tolist() == [1, 2]
    assert csv.field_size_limit() == limit


TWICE = FRAME.set_axis(pd.Index([1, 2, 3], name="n"))
MARKED = encode(pd.DataFrame({"a": ["marker-text", "b"]}), compression="none")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,y\n", r"has a header but no rows"),
        ("a,y\n1,2\n1,2\n1,2,3\n", r"line 4 has 3 fields, the header 2"),
        ('a,y\n"1\n5",2,3\n1,2\n', r"line 3 has 3 fields, the header 2"),
        ('a,y\n"1,2\n3,4\n', r"quotation mark is not closed .*starting at row 1"),
        ("a,b,a,y\n1,2,3,4\n", r"'a' \('a': columns 1, 3\)\. Rename them\."),
        ("2,1,2,x\n1,2,3,y\n", r"'2': columns 1, 3\)\. The first row looks like data"),
        (b"PK\x03\x04rest", r"zip archive, as Excel's .xlsx is. Save the sheet as CSV"),
        (b"a,b\n\x00\x01\x02", r"has zero bytes"),
        ("a,y\n1,2\n".encode("utf-16-le"), r"If it is UTF-16 .* encoding='utf-16-le'"),
        ("a,y\n1,2\n".encode("utf-16")[:-1], r"cannot be decoded: .*truncated"),
        (b"\xff\xfe\x00\xd8a\x00", r"cannot be decoded: .*illegal"),
        (b"a,k\n1,\x81\xe4\n", r"Save it as UTF-8, or .* encoding='cp1252'"),
        (b"\xff\xfe", r"is empty"),
        ("dose;n;y\n0,14;999;r\n0,00;1.230;b\n",
         r"decimals\? '1.230' in row 2 of column 'n' has a point, .* decimal='.'"),
        ("dose\tn\ty\n0.1257\t42,745\tr\n3\t999\tb\n", "'0.1257' in row 1 of col"),
        ("b;a;y\n0,5;1.234;r\n0,25;22.5;b\n", "'1.234' in row 1 of column 'a' has a p"),
        (encode(FRAME)[:100], r"corrupt Parquet file"),
        (MARKED.replace(b"marker-text", b"marker\xfftext"), r"corrupt Parquet file"),
        (encode(TWICE), r"more than one column is named 'n'"),
    ],
)  # fmt: skip
def test_no_table(content, message):
    with pytest.raises(DataFileError, match=message) as caught:
        read(content)
    assert "table.csv" in str(caught.value)


def test_bad_options():
    for how, message in [
        ({"sep": ";;"}, r"sep= must be one character; got ';;'"),
        ({"decimal": "x"}, r"decimal= must be '.' or ','"),
        ({"decimal": ",", "sep": ","}, r"and not the separator"),
        ({"encoding": "klingon"}, r"encoding='klingon' is not an encoding"),
    ]:
        with pytest.raises(ValueError, match=message):
            read("a,y\n1,u\n2,v\n", **how)


def test_numbers_are_read_to_the_last_bit(rng):
    numbers = rng.normal(size=2000) * 10.0 ** rng.integers(-300, 300, 2000)
    frame = pd.DataFrame({"a": numbers, "y": 1})
    for sep, decimal in ((",", "."), (";", ",")):
        text = frame.to_csv(index=False, sep=sep, decimal=decimal)
        assert (read(text).frame["a"] == numbers).all()


def test_parquet():
    pd.testing.assert_frame_equal(read(encode(FRAME)).frame, FRAME)
    assert set(read(encode(FRAME.set_index("kind"))).frame) == set(FRAME)
    odd = FRAME.set_axis([7, 7, 100])  # rows are counted whatever the index
    pd.testing.assert_frame_equal(read(encode(odd)).frame, FRAME)
    raw = encode(pd.DataFrame({"a": np.zeros(1_000_000)}))
    metadata = ParquetFile(BytesIO(raw)).metadata
    check_parquet_size(metadata, len(raw))
    with pytest.raises(ValueError, match=r"bytes unpack to 1,000,000 values"):
        check_parquet_size(metadata, len(raw), n_values_free=1000)


def test_missing_and_corrupt_files(tmp_path, monkeypatch):
    (tmp_path / "measurements.csv").write_text("a\n1\n")
    (tmp_path / "blank").write_text(" \n\n")
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"a\n1\n")[:-9])
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(10_000)))
    monkeypatch.setattr(_files, "N_VALUES_FREE", 1000)
    for path, error, message in [
        ("measurement.csv", FileNotFoundError, r"Did you mean 'measurements.csv'\?"),
        ("nowhere/x.csv", FileNotFoundError, r"no folder '.*nowhere' either"),
        (".", IsADirectoryError, "is a folder"),
        ("blank", DataFileError, r"blank' is empty"),
        ("cut.csv.gz", DataFileError, r"csv.gz': corrupt gzip file: "),
        ("bomb.gz", DataFileError, r"unpacks to more than [\d,]+ bytes"),
    ]:
        with pytest.raises(error, match=message):
            read_bytes(tmp_path / path)


FORMULAS = [
    "=1+1", '=HYPERLINK("http://example.org";"click")', "+cmd|' /C calc'!A0", "-2+3",
    "@SUM(A1:A9)", "\t=1", "\r=1", "\n=1", " =1", "＝1+1", "-", "+", "=", "--5", "-x",
]  # fmt: skip
PLAIN = ["-1.5", "+3", "-1e-5", "+.5", "-12.", "", "a=b", "x-1", "'tis", "5", "a@b.org"]
TEXTS = st.text(st.sampled_from("'=+-@\t\r\n\"ab1.e,;|<>&＝ é"), max_size=6)
TEXTS = TEXTS.filter(lambda text: text.strip() not in ("", "value"))


def test_formulas_get_an_apostrophe_and_numbers_none():
    assert [escape_formula(text) for text in FORMULAS] == [f"'{t}" for t in FORMULAS]
    assert [escape_formula(text) for text in PLAIN] == PLAIN
    frame = pd.DataFrame({"=x": [-1.5, -np.inf], "b": [-3, 4], "c": [True, False]})
    found = pd.read_csv(StringIO(format_csv(frame)))
    pd.testing.assert_frame_equal(found, frame.rename(columns={"=x": "'=x"}))


@given(ids=st.lists(TEXTS, min_size=2, max_size=5), name=TEXTS)
def test_a_table_is_written_and_read_the_same(ids, name):
    file = StringIO(newline="")
    rows = [[name, "value"], *([escape_formula(text), -1.5] for text in ids)]
    csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    first = read(file.getvalue(), as_text=[name.strip()])
    text = format_csv(first.frame)
    pd.testing.assert_frame_equal(read(text, as_text=[name.strip()]).frame, first.frame)
    for row in csv.reader(StringIO(text, newline="")):
        assert all(escape_formula(c) == c or c.startswith("'") for c in row)


def test_records_and_headings():
    frame = pd.DataFrame({"row": [0.1 + 0.2, np.inf], "n": [1, 2]})
    insert_names(frame, "row", ["u", "v"])
    first, second = to_records(frame)
    assert first == {"row (id)": "u", "row": 0.1 + 0.2, "n": 1}
    assert second["row"] is None
