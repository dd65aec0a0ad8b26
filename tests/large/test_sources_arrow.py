# SPDX-License-Identifier: BSD-3-Clause
"""Rows of Parquet and Arrow files, datasets and tables; bad rows by file and row."""

import pickle
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, dataset, feather, parquet
from rows import (
    NAMES,
    WEIGHT,
    N,
    P,
    X,
    Y,
    assert_all_rows,
    assert_parts_are_blocks,
    joined,
    peak_bytes,
)

from leaveout.large._sources import open_rows

# The special columns stand between the features.
TABLE = pa.table(
    {
        "age": X[:, 0],
        "kind": Y,
        "dose": X[:, 1],
        "height": X[:, 2],
        "w": WEIGHT,
        "pulse": X[:, 3],
    }
)


def write(table, path, **options):
    """Write a table as the ending of the path says, and return the path."""
    writers = {
        ".parquet": parquet.write_table,
        ".arrow": feather.write_feather,
        ".csv": csv.write_csv,
    }
    path.parent.mkdir(exist_ok=True)
    writers[path.suffix](table, path, **options)
    return path


def write_files(table, folder, ending=".parquet", **options):
    """Write the rows in three files of 20, 20 and 13."""
    return [
        write(table.slice(20 * k, 20), folder / f"{k}{ending}", **options)
        for k in range(3)
    ]


def folder_of(folder, ending, **options):
    write_files(TABLE, folder, ending, **options)
    return folder


SOURCES = {
    "table": lambda folder: TABLE,
    "chunked table": lambda folder: pa.concat_tables(
        [TABLE.slice(0, 7), TABLE.slice(7, 30), TABLE.slice(37)]
    ),
    "record batch": lambda folder: TABLE.to_batches()[0],
    "file": lambda folder: str(write(TABLE, folder / "a.parquet")),
    "row groups": lambda folder: write(TABLE, folder / "a.parquet", row_group_size=17),
    "small row groups": lambda folder: write(
        TABLE, folder / "a.parquet", row_group_size=3
    ),
    "list": lambda folder: write_files(TABLE, folder),
    "folder": lambda folder: folder_of(folder / "all", ".parquet", row_group_size=6),
    "arrow file": lambda folder: write(TABLE, folder / "a.arrow", chunksize=21),
    "arrow folder": lambda folder: folder_of(folder / "all", ".arrow"),
    "dataset": lambda folder: dataset.dataset(folder_of(folder / "all", ".parquet")),
    "csv dataset": lambda folder: dataset.dataset(
        folder_of(folder / "all", ".csv"), format="csv"
    ),
}


@pytest.fixture(params=SOURCES)
def source(request, tmp_path):
    return SOURCES[request.param](tmp_path)


@pytest.mark.parametrize("rows_at_once", [1, 8, 53, 1000])
def test_rows_come_back(source, rows_at_once):
    rows = open_rows(source, "kind", "w", rows_at_once=rows_at_once)
    assert rows.n_features == P
    assert rows.feature_names.tolist() == NAMES
    for _ in range(2):
        blocks = list(rows.blocks())
        assert_all_rows(blocks)
        assert max(len(block.y) for block in blocks) <= rows_at_once
        assert rows.n_rows == N


@pytest.mark.parametrize("rows_at_once", [5, 10, 1000])
def test_parts_are_the_blocks_also_in_threads_and_after_a_journey(source, rows_at_once):
    rows = open_rows(source, "kind", "w", rows_at_once=rows_at_once)
    assert_all_rows(rows.blocks())
    assert_parts_are_blocks(rows)


def test_parquet_is_counted_before_it_is_read(tmp_path):
    rows = open_rows(write_files(TABLE, tmp_path), "kind")
    assert rows.n_rows == N
    assert [part.start for part in rows.parts] == [0, 20, 40]


def test_csv_is_counted_by_the_first_pass(tmp_path):
    rows = open_rows(SOURCES["csv dataset"](tmp_path), "kind", "w")
    assert (rows.n_rows, rows.parts) == (None, None)
    list(rows.blocks())
    assert [part.start for part in rows.parts] == [0, 20, 40]


def test_small_row_groups_make_one_block(tmp_path):
    path = write(TABLE, tmp_path / "a.parquet", row_group_size=3)
    rows = open_rows(path, "kind", rows_at_once=20)
    assert [len(block.y) for block in rows.blocks()] == [20, 1, 20, 1, 11]
    assert [part.n_rows for part in rows.parts] == [21, 21, 11]


def test_chosen_row_groups(tmp_path):
    path = write(TABLE, tmp_path / "a.parquet", row_group_size=10)
    (whole,) = dataset.dataset(path).get_fragments()
    chosen = whole.subset(row_group_ids=[1, 2, 4])
    some = dataset.FileSystemDataset(
        [chosen], whole.physical_schema, chosen.format, chosen.filesystem
    )
    rows = open_rows(some, "kind", "w")
    kept = np.r_[10:30, 40:50]
    np.testing.assert_array_equal(joined(rows.blocks()).X, X[kept])


def test_labels_in_the_names_of_folders(tmp_path):
    parts = dataset.partitioning(pa.schema([("kind", pa.string())]), flavor="hive")
    dataset.write_dataset(TABLE, tmp_path, format="parquet", partitioning=parts)
    found = joined(open_rows(tmp_path, "kind", "w").blocks())
    order = np.argsort(Y, kind="stable")
    np.testing.assert_array_equal(found.y, Y[order])
    np.testing.assert_array_equal(found.X, X[order])


def test_numbers_in_the_names_of_folders_are_features(tmp_path):
    table = TABLE.append_column("year", pa.array(2000 + np.arange(N) // 30))
    parts = dataset.partitioning(pa.schema([("year", pa.int32())]), flavor="hive")
    dataset.write_dataset(table, tmp_path, format="parquet", partitioning=parts)
    rows = open_rows(tmp_path, "kind", "w")
    assert rows.feature_names.tolist() == [*NAMES, "year"]
    year = joined(rows.blocks()).X[:, 4]
    np.testing.assert_array_equal(year, 2000 + np.arange(N) // 30)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, 0, 1], pa.int8()), [1, 0, 1]),
        (pa.array([1, 2**40, 3], pa.uint64()), [1, 2**40, 3]),
        (pa.array([0.5, 1, 2], pa.float32()), [0.5, 1, 2]),
        (pa.array([True, False, True]), [1, 0, 1]),
        (pa.array([1, 2, 3]).cast(pa.decimal128(21, 2)), [1, 2, 3]),
    ],
    ids=lambda column: str(getattr(column, "type", "")),
)
def test_kinds_of_numbers(tmp_path, column, expected):
    path = write(pa.table({"a": column, "y": [0, 1, 0]}), tmp_path / "a.parquet")
    assert joined(open_rows(path, "y").blocks()).X[:, 0].tolist() == expected


@pytest.mark.parametrize(
    "labels",
    [
        pa.array(["u", "v", "u"]),
        pa.array(["u", "v", "u"], pa.large_string()),
        pa.array(["u", "v", "u"]).dictionary_encode(),
        pa.array([3, -1, 3]),
        pa.array([True, False, True]),
        pa.array([0.5, 1.5, 0.5]),
    ],
    ids=lambda labels: str(labels.type),
)
@pytest.mark.parametrize("ending", ["a.parquet", "a.arrow"])
def test_kinds_of_labels(tmp_path, labels, ending):
    path = write(pa.table({"a": [1.0, 2.0, 3.0], "y": labels}), tmp_path / ending)
    assert joined(open_rows(path, "y").blocks()).y.tolist() == labels.to_pylist()


def test_columns_left_out_by_a_dataset_with_fewer(tmp_path):
    path = write(TABLE.append_column("city", Y), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"column 'city' \(string\).*replace_schema"):
        open_rows(path, "kind", "w")
    opened = dataset.dataset(path)
    k = opened.schema.get_field_index("city")
    fewer = opened.replace_schema(opened.schema.remove(k))
    assert_all_rows(open_rows(fewer, "kind", "w").blocks())


def test_only_needed_columns_are_decoded(tmp_path):
    table = TABLE.append_column("blob", pa.array(["x" * 10_000] * N))
    path = write(table, tmp_path / "a.parquet", use_dictionary=False)
    opened = dataset.dataset(path)
    fewer = opened.replace_schema(opened.schema.remove(6))
    before = pa.total_allocated_bytes()
    for _ in open_rows(fewer, "kind", "w").blocks():
        assert pa.total_allocated_bytes() - before < 200_000  # of 530 kB


# Memory


@pytest.fixture(scope="module")
def long_file(tmp_path_factory):
    """200,000 rows of 8 columns in one row group: 12.8 MB when decoded."""
    rng = np.random.default_rng(0)
    columns = {f"x{j}": rng.normal(size=200_000) for j in range(8)}
    table = pa.table({**columns, "y": np.arange(200_000) % 2})
    path = tmp_path_factory.mktemp("long") / "a.parquet"
    return write(table, path, data_page_size=2**14, use_dictionary=False)


def test_row_group_is_never_in_memory_as_a_whole(long_file):
    block = 2000 * 9 * 8
    rows = open_rows(long_file, "y", rows_at_once=2000)
    assert len(rows.parts) == 1
    before = pa.total_allocated_bytes()
    most = 0
    for _ in rows.blocks():
        most = max(most, pa.total_allocated_bytes() - before)
    # Beside the decoded rows: a buffer of the file and a page for each column.
    assert most < 3 * block + 9 * (2**18 + 2**16)
    assert most < 4_000_000
    assert peak_bytes(rows) < 4 * block


# Bad rows


def with_value(column, row, value):
    """TABLE with one value changed, None for a null."""
    k = TABLE.schema.get_field_index(column)
    values = TABLE.column(column).to_pylist()
    values[row] = value
    return TABLE.set_column(k, column, pa.array(values, TABLE.schema.field(k).type))


def read(source, y="kind", weight="w", **options):
    return list(open_rows(source, y, weight, **options).blocks())


PLACE = r"row 13 of '.*1\.\w+' \(row 33 of all, counted from 0\)"


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".csv"])
@pytest.mark.parametrize("rows_at_once", [3, 1000])
@pytest.mark.parametrize(
    ("column", "value", "match"),
    [
        ("height", float("nan"), f"NaN in {PLACE}, column 'height'. Fill"),
        ("height", None, f"NaN in {PLACE}, column 'height'. Fill"),
        ("dose", float("inf"), rf"infinity \(inf\) in {PLACE}, column 'dose'. Repl"),
        ("w", -1.5, f"sample_weight must be .* got -1.5 in {PLACE}. Use 0"),
        ("w", None, f"got nan in {PLACE}"),
    ],
)
def test_bad_row_is_named_by_file_and_row(
    tmp_path, ending, rows_at_once, column, value, match
):
    write_files(with_value(column, 33, value), tmp_path / "all", ending)
    source = tmp_path / "all"
    if ending == ".csv":
        source = dataset.dataset(source, format="csv")
    with pytest.raises(ValueError, match=match):
        read(source, rows_at_once=rows_at_once)


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_missing_label_is_named_by_file_and_row(tmp_path, ending):
    paths = write_files(with_value("kind", 33, None), tmp_path, ending)
    with pytest.raises(ValueError, match=f"label is missing .* in {PLACE}. Drop"):
        read(paths)


@pytest.mark.parametrize("rows_at_once", [3, 12, 1000])
def test_row_counts_from_the_start_of_the_file_over_row_groups(tmp_path, rows_at_once):
    path = write(
        with_value("dose", 33, None), tmp_path / "1.parquet", row_group_size=10
    )
    match = r"NaN in row 33 of '.*1.parquet' \(row 33 of all"
    rows = open_rows(path, "kind", "w", rows_at_once=rows_at_once)
    with pytest.raises(ValueError, match=match):
        list(rows.blocks())
    with pytest.raises(ValueError, match=match):
        [list(part.read()) for part in pickle.loads(pickle.dumps(rows.parts))]


def test_bad_row_of_a_table():
    with pytest.raises(ValueError, match="NaN in row 33, column 'dose'"):
        read(with_value("dose", 33, None), rows_at_once=10)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda t: t.drop_columns("dose"), "1.parquet' has other .* it lacks 'dose'"),
        (lambda t: t.append_column("b", t["w"]), "it has also 'b'. Give all files"),
        (
            lambda t: t.rename_columns(["age", "kind", "Dose", "height", "w", "pulse"]),
            "it lacks 'dose' and has also 'Dose'",
        ),
        (
            lambda t: t.set_column(2, "dose", t["kind"]),
            r"Not numbers in '.*1.parquet': column 'dose' \(string\)",
        ),
        (
            lambda t: t.set_column(1, "kind", t["dose"]),
            "labels 'kind' are numbers in '.*1.parquet', but text in '.*0.parquet'",
        ),
    ],
)
def test_file_with_other_columns_is_named(tmp_path, change, match):
    paths = write_files(TABLE, tmp_path)
    write(change(parquet.read_table(paths[1])), paths[1])
    with pytest.raises(ValueError, match=match):
        read(paths)


def test_columns_in_another_order_are_found_by_name(tmp_path):
    paths = write_files(TABLE, tmp_path)
    other = parquet.read_table(paths[1])
    write(other.select(other.column_names[::-1]), paths[1])
    assert_all_rows(read(paths))


def test_dataset_whose_file_lacks_a_column(tmp_path):
    paths = write_files(TABLE, tmp_path)
    write(parquet.read_table(paths[1]).drop_columns("dose"), paths[1])
    opened = dataset.dataset(paths, schema=TABLE.schema)
    with pytest.raises(
        ValueError, match=r"1.parquet' lacks column 'dose' of the dataset"
    ):
        read(opened)


@pytest.mark.parametrize(
    ("y", "weight", "match"),
    [
        ("Kind", "w", "No column 'Kind' in '.*a.parquet'. Did you mean 'kind'"),
        (None, None, "y must be the name of a column of '.*a.parquet', whose columns"),
        (Y, None, "got a ndarray"),
        ("kind", WEIGHT, "sample_weight must be the name of a column"),
        ("kind", "kind", "'kind' cannot be both y and sample_weight"),
        ("kind", "weights", "No column 'weights'"),
        ("age", "w", r"column 'kind' \(string\)"),
        ("age", "kind", r"column 'kind' \(string\)"),
    ],
)
def test_columns_by_wrong_names(tmp_path, y, weight, match):
    path = write(TABLE, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=match):
        open_rows(path, y, weight)


def test_no_features(tmp_path):
    path = write(TABLE.select(["kind", "w"]), tmp_path / "a.parquet")
    with pytest.raises(
        ValueError, match=r"0 feature\(s\): no column of .* beside 'kind'"
    ):
        open_rows(path, "kind", "w")


def test_no_rows(tmp_path):
    path = write(TABLE.slice(0, 0), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"0 sample\(s\): '.*a.parquet' is empty"):
        read(path)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        read(TABLE.slice(0, 0))


def test_files_without_rows_between_others(tmp_path):
    empty = write(TABLE.slice(0, 0), tmp_path / "empty.parquet")
    files = write_files(TABLE, tmp_path)
    assert_all_rows(read([empty, files[0], empty, *files[1:]]))


def test_missing_file(tmp_path):
    write(TABLE, tmp_path / "train.parquet")
    with pytest.raises(FileNotFoundError, match=r"Did you mean 'train.parquet'"):
        open_rows(tmp_path / "Train.parquet", "kind")


def test_empty_folder(tmp_path):
    (tmp_path / "_hidden").write_text("")
    with pytest.raises(ValueError, match="has no files with rows"):
        open_rows(tmp_path, "kind")


def test_file_of_another_format(tmp_path):
    path = write(TABLE, tmp_path / "a.csv")
    with pytest.raises(ValueError, match=r"neither a Parquet nor an Arrow file.*'csv'"):
        open_rows(path, "kind")


def test_damaged_files(tmp_path):
    paths = write_files(TABLE, tmp_path, row_group_size=5)
    whole = paths[1].read_bytes()
    paths[1].write_bytes(whole[:-50])
    with pytest.raises(ValueError, match=r"1.parquet' cannot be read"):
        read(paths)
    half = len(whole) // 2
    paths[1].write_bytes(whole[:4] + b"\xff" * (half - 4) + whole[half:])
    with pytest.raises(ValueError, match=r"1.parquet' cannot be read"):
        read(paths)


def test_file_that_changes_between_passes(tmp_path):
    paths = write_files(TABLE, tmp_path)
    rows = open_rows(paths, "kind", "w")
    list(rows.blocks())
    write(TABLE.slice(0, 19), paths[1])
    with pytest.raises(
        ValueError, match=r"1.parquet' had 20 rows when .* now it has 19"
    ):
        list(rows.blocks())
    write(TABLE.slice(0, 21), paths[1])
    with pytest.raises(ValueError, match=r"1.parquet' had 20 rows when .* has more"):
        list(rows.blocks())


def test_worker_without_the_file_says_so(tmp_path):
    paths = write_files(TABLE, tmp_path)
    parts = pickle.dumps(open_rows(paths, "kind", "w").parts)
    paths[1].unlink()
    with pytest.raises(FileNotFoundError, match=r"1.parquet' on this machine.*share"):
        list(pickle.loads(parts)[1].read())


def test_filtered_dataset_is_refused(tmp_path):
    opened = dataset.dataset(write(TABLE, tmp_path / "a.parquet"))
    with pytest.raises(ValueError, match=r"does not fall into files.*before filter"):
        open_rows(opened.filter(dataset.field("age") > 0), "kind")


def test_stream_of_batches_is_refused():
    with pytest.raises(ValueError, match="RecordBatchReader of pyarrow cannot be read"):
        open_rows(TABLE.to_reader(), "kind")


def test_without_pyarrow(tmp_path, monkeypatch):
    path = write(TABLE, tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pip install "leaveout\[parquet\]"'):
        open_rows(path, "kind")
