# SPDX-License-Identifier: BSD-3-Clause
"""Rows of every kind of source come back as they went in; bad rows are named."""

import sys
import threading
import tracemalloc

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, dataset, feather, parquet
from scipy import sparse

from leaveout.large._dask import DistributedRows
from leaveout.large._sources import open_rows

N, P = 53, 4
X = np.random.default_rng(3).normal(size=(N, P)).round(2)
X[np.abs(X) < 0.4] = 0.0
Y = np.array(list("abc"))[np.arange(N) % 3]
WEIGHT = np.arange(N) % 5 / 2.0
NAMES = ["age", "dose", "height", "pulse"]
# The special columns stand between the features.
TABLE = pa.table(
    {"age": X[:, 0], "kind": Y, "dose": X[:, 1], "height": X[:, 2], "w": WEIGHT,
     "pulse": X[:, 3]}
)  # fmt: skip
PANDAS = TABLE.to_pandas()
FRAME = dd.from_pandas(PANDAS, npartitions=4)
ARRAY = da.from_array(X, chunks=(20, 3))


def blocks_of(size, X=X, y=Y, weight=WEIGHT):
    """The rows as a list of blocks (X, y, weight)."""
    parts = [slice(k, k + size) for k in range(0, len(X), size)]
    return [(X[part], y[part], weight[part]) for part in parts]


def memmap_of(array, path):
    """The array in a file behind a header of 24 bytes, as a read-only map."""
    path.write_bytes(b"-" * 24 + np.ascontiguousarray(array).tobytes())
    return np.memmap(path, array.dtype, "r", offset=24, shape=array.shape)


def npy_of(array, path):
    path = path.with_suffix(".npy")
    np.save(path, array)
    return str(path)


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


def folder_of(folder, ending=".parquet", **options):
    write_files(TABLE, folder, ending, **options)
    return folder


def in_files(save, folder):
    parts = ((X, "x"), (Y, "y"), (WEIGHT, "w"))
    return tuple(save(array, folder / name) for array, name in parts)


# What a user may pass as X, y and sample_weight, each time the same rows.
BY_NAME = {
    "pandas": lambda folder: PANDAS,
    "polars": lambda folder: pl.from_arrow(TABLE),
    "table": lambda folder: TABLE,
    "chunked table": lambda folder: pa.concat_tables(
        [TABLE.slice(0, 7), TABLE.slice(7, 30), TABLE.slice(37)]
    ),
    "record batch": lambda folder: TABLE.to_batches()[0],
    "Parquet": lambda folder: str(write(TABLE, folder / "a.parquet")),
    "row groups": lambda folder: write(TABLE, folder / "a.parquet", row_group_size=17),
    "list of paths": lambda folder: write_files(TABLE, folder),
    "folder": lambda folder: folder_of(folder / "all", row_group_size=6),
    "Arrow": lambda folder: write(TABLE, folder / "a.arrow", chunksize=21),
    "dataset": lambda folder: dataset.dataset(folder_of(folder / "all")),
    "csv dataset": lambda folder: dataset.dataset(
        folder_of(folder / "all", ".csv"), format="csv"
    ),
    "dask frame": lambda folder: FRAME,
    "dask Parquet": lambda folder: dd.read_parquet(folder_of(folder / "all")),
}
SOURCES = {
    "array": lambda folder: (X, Y, WEIGHT),
    "columns first": lambda folder: (np.asfortranarray(X), Y, WEIGHT),
    "list": lambda folder: (X.tolist(), Y.tolist(), WEIGHT.tolist()),
    "memmap": lambda folder: in_files(memmap_of, folder),
    "npy": lambda folder: in_files(npy_of, folder),
    "csr": lambda folder: (sparse.csr_matrix(X), Y, WEIGHT),
    "csc array": lambda folder: (sparse.csc_array(X), Y, WEIGHT),
    "pandas and series": lambda folder: (PANDAS[NAMES], PANDAS["kind"], PANDAS["w"]),
    "blocks": lambda folder: (blocks_of(9), None, None),
    "function": lambda folder: (lambda: iter(blocks_of(1)), None, None),
    "sparse blocks": lambda folder: (
        [(sparse.csr_array(x), y, w) for x, y, w in blocks_of(20)], None, None,
    ),
    "tables": lambda folder: (
        [(pd.DataFrame(x, columns=NAMES), pd.Series(y), w) for x, y, w in blocks_of(7)],
        None, None,
    ),
    "dask array": lambda folder: (ARRAY, da.from_array(Y, chunks=7), WEIGHT.tolist()),
    "dask series": lambda folder: (FRAME[NAMES], FRAME["kind"], FRAME["w"]),
    "dask series of Parquet": lambda folder: (
        lambda frame: (frame[NAMES], frame["kind"], frame["w"])
    )(dd.read_parquet(folder_of(folder / "all"))),
    "dask and arrays": lambda folder: (FRAME[NAMES], Y, WEIGHT),
    "dask of unknown sizes": lambda folder: (
        FRAME[NAMES].to_dask_array(), FRAME["kind"], FRAME["w"],
    ),
}  # fmt: skip
SOURCES |= {
    kind: lambda folder, make=make: (make(folder), "kind", "w")
    for kind, make in BY_NAME.items()
}


def read(X, y=None, weight=None, rows_at_once=16384):
    """All blocks of a source."""
    return blocks_from(open_rows(X, y, weight, rows_at_once=rows_at_once))


def blocks_from(rows):
    if isinstance(rows, DistributedRows):
        return rows.fetch(lambda block: block, np.arange(rows.stops[-1]))
    return list(rows.blocks())


def rows_of(blocks):
    """X, y and weight of blocks, after a check of what each must be."""
    for block in blocks:
        assert block.X.dtype == np.float64
        assert block.X.flags.c_contiguous
        assert type(block.X) is np.ndarray
        assert block.weight is None or block.weight.dtype == np.float64
    starts = np.cumsum([0, *(len(block.y) for block in blocks)])
    assert [block.start for block in blocks] == starts[:-1].tolist()
    X, y, weight = (
        None if block[0] is None else np.concatenate(block)
        for block in list(zip(*blocks, strict=True))[1:]
    )
    return X, y, weight


def assert_all_rows(blocks):
    for found, wanted in zip(rows_of(blocks), (X, Y, WEIGHT), strict=True):
        np.testing.assert_array_equal(found, wanted)


# dask.dataframe calls pandas in a way that pandas 3.1 deprecates.
@pytest.mark.filterwarnings("ignore:The inplace keyword")
@pytest.mark.parametrize("rows_at_once", [1, 8, 1000])
@pytest.mark.parametrize("kind", SOURCES)
def test_rows_come_back(kind, rows_at_once, tmp_path):
    rows = open_rows(*SOURCES[kind](tmp_path), rows_at_once=rows_at_once)
    assert rows.schema.n_features == P
    if kind in BY_NAME or kind == "tables":
        assert rows.schema.names.tolist() == NAMES
    for _ in range(2):
        blocks = blocks_from(rows)
        assert_all_rows(blocks)
        sizes = [len(block.y) for block in blocks]
        if "dask" in kind:
            assert max(sizes) <= rows_at_once
        else:
            full = [rows_at_once] * (N // rows_at_once)
            assert sizes == [*full, N - sum(full)][: len(sizes)]


def test_weights_may_be_one_number_or_none():
    for source in ((X, Y), (FRAME[NAMES], FRAME["kind"])):
        assert rows_of(read(*source))[2] is None
        assert rows_of(read(*source, 2.5))[2].tolist() == [2.5] * N
    assert rows_of(read([block[:2] for block in blocks_of(9)]))[2] is None


def test_arrays_of_the_right_kind_are_not_copied():
    for block in read(X, Y, rows_at_once=10):
        assert np.shares_memory(block.X, X)


@given(
    sizes=st.lists(st.integers(0, 12), min_size=1, max_size=8).filter(any),
    rows_at_once=st.integers(1, 15),
)
def test_blocks_end_where_rows_at_once_says_however_they_come(sizes, rows_at_once):
    ends = np.cumsum(sizes)
    table = np.arange(2.0 * ends[-1]).reshape(-1, 2)
    labels = np.arange(len(table))
    parts = [slice(e - size, e) for size, e in zip(sizes, ends, strict=True)]
    found = read([(table[p], labels[p]) for p in parts], rows_at_once=rows_at_once)
    expected = read(table, labels, rows_at_once=rows_at_once)
    for one, other in zip(found, expected, strict=True):
        assert one.start == other.start
        np.testing.assert_array_equal(one.X, other.X)
        np.testing.assert_array_equal(one.y, other.y)


# Kinds of columns


def test_columns_in_the_names_of_folders(tmp_path):
    table = TABLE.append_column("year", pa.array(2000 + np.arange(N) // 30))
    schema = pa.schema([("kind", pa.string()), ("year", pa.int32())])
    parts = dataset.partitioning(schema, flavor="hive")
    dataset.write_dataset(table, tmp_path, format="parquet", partitioning=parts)
    rows = open_rows(tmp_path, "kind", "w")
    assert rows.schema.names.tolist() == [*NAMES, "year"]
    found, labels, _ = rows_of(blocks_from(rows))
    year = 2000 + np.arange(N) // 30
    order = np.lexsort([year, Y])
    np.testing.assert_array_equal(found, np.column_stack([X, year])[order])
    np.testing.assert_array_equal(labels, Y[order])


@pytest.mark.parametrize(
    ("column", "labels"),
    [
        (pa.array([1, 0, 1], pa.int8()), pa.array(["u", "v", "u"])),
        (pa.array([1, 2**40, 3], pa.uint64()), pa.array(list("uvu"), "large_string")),
        (
            pa.array([0.5, 1, 2], pa.float32()),
            pa.array(list("uvu")).dictionary_encode(),
        ),
        (pa.array([True, False, True]), pa.array([3, -1, 3])),
        (pa.array([1, 2, 3]).cast(pa.decimal128(21, 2)), pa.array([True, False, True])),
        (pa.array([1.5, 2.5, 3.0]), pa.array([0.5, 1.5, 0.5])),
    ],
    ids=lambda column: str(column.type),
)
@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_kinds_of_numbers_and_labels(tmp_path, column, labels, ending):
    path = write(pa.table({"a": column, "y": labels}), tmp_path / f"a{ending}")
    found, y, _ = rows_of(read(path, "y"))
    assert found[:, 0].tolist() == [float(value) for value in column.to_pylist()]
    assert y.tolist() == labels.to_pylist()


def test_nullable_numbers_of_pandas():
    table = pd.DataFrame({"n": pd.array([1, 2, 3], dtype="Int64"), "flag": [1, 0, 1]})
    assert rows_of(read(table, [0, 1, 0]))[0][:, 0].tolist() == [1, 2, 3]
    table.loc[1, "n"] = pd.NA
    with pytest.raises(ValueError, match="NaN in row 1, column 'n'"):
        read(table, [0, 1, 0])


def test_large_finite_values_are_not_infinities():
    assert (read(np.full((4, 2), 1e308), list("abab"))[0].X == 1e308).all()


def test_columns_left_out_by_a_dataset_with_fewer(tmp_path):
    path = write(TABLE.append_column("city", Y), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"column 'city' \(string\).*replace_schema"):
        open_rows(path, "kind", "w")
    opened = dataset.dataset(path)
    fewer = opened.replace_schema(opened.schema.remove(6))
    assert_all_rows(read(fewer, "kind", "w"))


def test_columns_in_another_order_and_files_without_rows(tmp_path):
    empty = write(TABLE.slice(0, 0), tmp_path / "empty.parquet")
    files = write_files(TABLE, tmp_path)
    other = parquet.read_table(files[1])
    write(other.select(other.column_names[::-1]), files[1])
    assert_all_rows(read([empty, files[0], empty, *files[1:]], "kind", "w"))


def test_chosen_row_groups(tmp_path):
    path = write(TABLE, tmp_path / "a.parquet", row_group_size=10)
    (whole,) = dataset.dataset(path).get_fragments()
    chosen = whole.subset(row_group_ids=[1, 2, 4])
    some = dataset.FileSystemDataset(
        [chosen], whole.physical_schema, chosen.format, chosen.filesystem
    )
    kept = np.r_[10:30, 40:50]
    np.testing.assert_array_equal(rows_of(read(some, "kind", "w"))[0], X[kept])


# Memory


def peak_bytes(rows):
    """Most bytes that NumPy and Python held at a time during a pass."""
    tracemalloc.start()
    try:
        for _ in rows.blocks():
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [100, 400, 1000])
def test_iterables_hold_few_rows_at_a_time(size):
    def make():
        for k in range(20_000 // size):
            yield np.full((size, 50), float(k)), np.arange(size) % 2

    rows = open_rows(make, rows_at_once=400)
    # The block in use, those that wait and are joined to the next, the user's own.
    assert peak_bytes(rows) < (3 * 400 + 2 * size + 100) * 50 * 8


def test_memmap_is_never_in_memory_as_a_whole(tmp_path):
    path = tmp_path / "x.npy"
    big = np.lib.format.open_memmap(path, "w+", np.float32, (20_000, 50))
    big[:] = 1.0
    big.flush()
    rows = open_rows(path, np.arange(len(big)) % 2, rows_at_once=400)
    assert peak_bytes(rows) < 3 * 400 * 50 * 8  # float32 becomes float64


@pytest.mark.parametrize("in_blocks", [False, True])
def test_sparse_rows_become_dense_block_by_block(in_blocks):
    big = sparse.random(20_000, 200, density=0.001, format="csr", random_state=0)
    source = ([(big, np.zeros(20_000))],) if in_blocks else (big, np.zeros(20_000))
    assert peak_bytes(open_rows(*source, rows_at_once=400)) < 4 * 400 * 200 * 8


@pytest.fixture(scope="module")
def long_table():
    """200,000 rows of 8 columns: 12.8 MB when decoded."""
    rng = np.random.default_rng(0)
    columns = {f"x{j}": rng.normal(size=200_000) for j in range(8)}
    return pa.table({**columns, "y": np.arange(200_000) % 2})


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_file_is_never_in_memory_as_a_whole(long_table, tmp_path, ending):
    """One row group of Parquet, many record batches of Arrow."""
    options = {"chunksize": 2000}
    if ending == ".parquet":
        options = {"data_page_size": 2**14, "use_dictionary": False}
    rows = open_rows(
        write(long_table, tmp_path / f"a{ending}", **options), "y", rows_at_once=2000
    )
    block = 2000 * 9 * 8
    before, most = pa.total_allocated_bytes(), 0
    for _ in rows.blocks():
        most = max(most, pa.total_allocated_bytes() - before)
    # Beside the decoded rows: a buffer of the file and a page for each column.
    assert most < 3 * block + 9 * (2**18 + 2**16)
    assert peak_bytes(rows) < 4 * block


def test_only_needed_columns_are_decoded(tmp_path):
    table = TABLE.append_column("blob", pa.array(["x" * 10_000] * N))
    path = write(table, tmp_path / "a.parquet", use_dictionary=False)
    opened = dataset.dataset(path)
    fewer = opened.replace_schema(opened.schema.remove(6))
    before = pa.total_allocated_bytes()
    for _ in open_rows(fewer, "kind", "w").blocks():
        assert pa.total_allocated_bytes() - before < 200_000  # of 530 kB


def test_dask_partitions_are_computed_one_at_a_time_and_only_when_read():
    now, most, calls = 0, 0, 0
    lock = threading.Lock()

    def make(k):
        nonlocal now, most, calls
        with lock:
            now, calls = now + 1, calls + 1
            most = max(most, now)
        values = np.full((5, 2), float(k))
        with lock:
            now -= 1
        return values

    chunks = [
        da.from_delayed(dask.delayed(make)(k), shape=(5, 2), dtype=float)
        for k in range(4)
    ]
    rows = open_rows(da.concatenate(chunks), np.arange(20) % 2)
    assert calls == 0
    first, *_ = blocks_from(rows)
    assert (first.X == 0).all()
    assert (calls, most) == (4, 1)


# Bad rows


def with_value(column, row, value, as_object=False):
    """PANDAS with one value changed."""
    table = PANDAS.copy()
    if as_object:
        table[column] = table[column].astype(object)
    table.loc[row, column] = value
    return table


def split(table):
    return (
        table[NAMES].to_numpy(), table["kind"].to_numpy(dtype=object),
        table["w"].to_numpy(),
    )  # fmt: skip


def by_files(ending):
    def make(table, folder):
        write_files(pa.Table.from_pandas(table), folder / "all", ending)
        if ending == ".csv":
            return dataset.dataset(folder / "all", format="csv"), "kind", "w"
        return folder / "all", "kind", "w"

    return make


FILE = r"row 13 of '.*1\.\w+' \(row 33 of all, counted from 0\)"
PLACES = {
    "array": (lambda t, folder: split(t), "row 33", False),
    "pandas": (lambda t, folder: (t, "kind", "w"), "row 33", True),
    "table": (lambda t, folder: (pa.Table.from_pandas(t), "kind", "w"), "row 33", True),
    "blocks": (
        lambda t, folder: (blocks_of(9, *split(t)),),
        r"row 6 of block 3 of the iterable \(row 33 of all, counted from 0\)",
        False,
    ),
    "Parquet": (by_files(".parquet"), FILE, True),
    "Arrow": (by_files(".arrow"), FILE, True),
    "csv": (by_files(".csv"), FILE, True),
    "dask": (
        lambda t, folder: (dd.from_pandas(t, npartitions=4), "kind", "w"),
        r"row 6 of partition 2 of the dask collection \(row 33 of all",
        True,
    ),
}


@pytest.mark.parametrize("rows_at_once", [3, 1000])
@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize(
    ("column", "value", "match"),
    [
        ("height", np.nan, "X contains NaN in {place}.*, {column}. Fill"),
        ("height", -np.inf, r"X contains infinity \(inf\) in {place}.*, {column}. Rep"),
        ("w", -1.5, "sample_weight must be .* got -1.5 in {place}.*. Use 0"),
        ("w", np.nan, "sample_weight must be .* got nan in {place}"),
        ("kind", None, "label is missing .* in {place}.*. Drop"),
    ],
)
def test_bad_value_is_named_by_place(
    tmp_path, kind, rows_at_once, column, value, match
):
    make, place, named = PLACES[kind]
    if kind == "csv" and value is None:
        pytest.skip("a text that is missing is an empty text in CSV")
    source = make(with_value(column, 33, value), tmp_path)
    name = "column 'height'" if named else "column 2"
    with pytest.raises(ValueError, match=match.format(place=place, column=name)):
        read(*source, rows_at_once=rows_at_once)


@pytest.mark.parametrize("kind", ["array", "pandas", "blocks", "dask"])
def test_text_among_the_features_is_named(tmp_path, kind):
    make, place, _ = PLACES[kind]
    source = make(with_value("height", 33, "tall", as_object=True), tmp_path)
    with pytest.raises(ValueError, match=f"X has 'tall' in {place}.*not a number.*Enc"):
        read(*source, rows_at_once=10)


@pytest.mark.parametrize(
    "y",
    [
        pd.Series([*Y[:33], None, *Y[34:]], dtype="category"),
        pd.Series([1] * 33 + [None] + [2] * 19, dtype="Int64"),
        np.where(np.arange(N) == 33, np.inf, 1.0),
    ],
)
def test_missing_labels_of_other_kinds(y):
    with pytest.raises(ValueError, match=r"label is missing .* in row 33"):
        read(X, y, rows_at_once=10)


def changed_block(change):
    blocks = blocks_of(9)
    blocks[3] = change(*blocks[3])
    return blocks


TABLES = SOURCES["tables"](None)[0]
TABLES[2] = (TABLES[2][0][NAMES[::-1]], *TABLES[2][1:])


@pytest.mark.parametrize(
    ("blocks", "match"),
    [
        (
            changed_block(lambda x, y, w: (x[:, :3], y, w)),
            "3 columns at row 0 of bl.* 4",
        ),
        (TABLES, "columns of block 2 of the iterable are 'pulse"),
        (
            changed_block(lambda x, y, w: (x, np.zeros(9), w)),
            "text in block 0, but not ",
        ),
        (changed_block(lambda x, y, w: (x, y)), "weights with every block, or with n"),
        (
            changed_block(lambda x, y, w: (x, y[1:], w)),
            "9 rows in block 3 of .* y has 8",
        ),
        (X.tolist(), "block 0 of the iterable is a list"),
        ([(X,)], "block 0 of the iterable is a tuple of 1"),
        ([(X[0], Y)], "block 0 of the iterable has 1 dimensions"),
        ([], "X has no rows"),
        ([(X[:0], Y[:0])], "X has no rows"),
        ((block for block in blocks_of(9)), "generator can be read only once.*lambda:"),
    ],
)
def test_blocks_of_the_wrong_kind(blocks, match):
    with pytest.raises(ValueError, match=match):
        read(blocks)


@pytest.mark.parametrize(
    ("source", "match"),
    [
        ((X, Y[:-1]), "X has 53 rows but y has 52 entries"),
        ((X, Y, WEIGHT[:-1]), "X has 53 rows but sample_weight has 52"),
        ((X, Y, list("abc") * 17 + ["a", "b"]), "sample_weight must hold numbers"),
        ((X,), "requires y to be passed, but the target y is None"),
        ((X, "kind"), "y='kind' names a column, but the columns of X have no names"),
        ((PANDAS, "Kind"), r"No column 'Kind' in X\. Did you mean 'kind'"),
        ((blocks_of(9), None, WEIGHT), "Put the weights into the blocks"),
        ((FRAME[NAMES], Y[:-1]), "with 53 rows, y has 4 with 52 rows"),
        ((ARRAY,), "requires y to be passed"),
        ((FRAME, "Kind"), r"No column 'Kind' in X. Did you mean 'kind'"),
        ((ARRAY[:, 0], Y), "Expected 2D array"),
        ((FRAME["age"], Y), "Expected 2D array"),
        ((ARRAY, da.from_array(Y[:-1])), "with 53 rows, y has .* with 52 rows"),
        (
            (FRAME[NAMES], FRAME["kind"].repartition(npartitions=2)),
            r"X has 4 partition\(s\) with 53 rows, y has 2 with nan",
        ),
        (
            (FRAME[NAMES], FRAME["kind"].repartition(divisions=[0, 14, 28, 41, 52])),
            r"X has 13 rows in partition \d .* but y has 1\d entries",
        ),
        ((FRAME[FRAME["age"] > 99], "kind"), r"0 sample\(s\)"),
        ((TABLE.slice(0, 0), "kind"), r"0 sample\(s\)"),
        ((TABLE.to_reader(), "kind"), "RecordBatchReader of pyarrow cannot be read"),
    ],
)
def test_labels_and_weights_that_do_not_fit(source, match):
    with pytest.raises(ValueError, match=match):
        read(*source)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3,), ()])
def test_shapes_in_the_words_of_scikit_learn(shape):
    with pytest.raises(ValueError, match=r"0 sample\(s\)|0 feature\(s\)|Expected 2D"):
        open_rows(np.ones(shape), np.zeros(3)[: shape[0] if shape else 1])


@pytest.mark.parametrize("rows_at_once", [0, 2.5, None])
def test_rows_at_once_is_a_number_of_rows(rows_at_once):
    with pytest.raises(ValueError, match="rows_at_once must be a whole number"):
        open_rows(X, Y, rows_at_once=rows_at_once)


def test_dask_partitions_without_rows():
    kept = FRAME[FRAME["age"] > 1.0]  # some partitions may lose all rows
    kept = dd.concat([FRAME.partitions[0].query("age > 99"), kept])
    np.testing.assert_array_equal(rows_of(read(kept, "kind", "w"))[0], X[X[:, 0] > 1.0])


# Bad files


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda t: t.drop_columns("dose"), "1.parquet' lacks column 'dose'"),
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
        read(paths, "kind", "w")


@pytest.mark.parametrize(
    ("y", "weight", "match"),
    [
        ("Kind", "w", "No column 'Kind' in '.*a.parquet'. Did you mean 'kind'"),
        (None, None, "y must be the name of a column of '.*a.parquet', whose columns"),
        (Y, None, "got a ndarray"),
        ("kind", WEIGHT, "sample_weight must be the name of a column"),
        ("kind", "kind", "'kind' cannot be both y and sample_weight"),
        ("age", "kind", r"column 'kind' \(string\)"),
    ],
)
def test_columns_by_wrong_names(tmp_path, y, weight, match):
    path = write(TABLE, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=match):
        open_rows(path, y, weight)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ValueError, match="no files"):
        open_rows(tmp_path, "kind")
    paths = write_files(TABLE, tmp_path, row_group_size=5)
    with pytest.raises(FileNotFoundError, match=r"Did you mean '1.parquet'"):
        open_rows(tmp_path / "1.Parquet", "kind")
    text = write(TABLE, tmp_path / "a.csv")
    with pytest.raises(ValueError, match=r"a.csv' cannot be read as Parquet.*'csv'"):
        open_rows(text, "kind")
    features = write(TABLE.select(["kind", "w"]), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"0 feature\(s\): no column of .* 'kind'"):
        open_rows(features, "kind", "w")
    empty = write(TABLE.slice(0, 0), tmp_path / "c.parquet")
    with pytest.raises(ValueError, match=r"0 sample\(s\): '.*c.parquet' has no rows"):
        read(empty, "kind")
    opened = dataset.dataset(paths[0])
    with pytest.raises(ValueError, match=r"does not fall into files.*before filter"):
        open_rows(opened.filter(dataset.field("age") > 0), "kind")
    whole, half = paths[1].read_bytes(), paths[1].stat().st_size // 2
    for damaged in (whole[:-50], whole[:4] + b"\xff" * (half - 4) + whole[half:]):
        paths[1].write_bytes(damaged)
        with pytest.raises(ValueError, match=r"1.parquet' cannot be read"):
            read(paths, "kind", "w")


def test_without_pyarrow(tmp_path, monkeypatch):
    path = write(TABLE, tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pip install "leaveout\[parquet\]"'):
        open_rows(path, "kind")


@pytest.mark.parametrize("shape", [(), (3,), (3, 2, 4)])
def test_npy_files(tmp_path, shape):
    path = tmp_path / "rows.npy"
    with pytest.raises(FileNotFoundError, match=r"No file '.*rows\.npy'"):
        open_rows(path, Y)
    np.save(path, np.zeros(shape))
    with pytest.raises(ValueError, match=r"rows\.npy' has an array of shape"):
        open_rows(path, np.array([0, 1, 1]))
    np.save(path, X.astype(object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"rows\.npy' cannot be mapped"):
        open_rows(path, Y)


# Passes that differ


def test_rows_that_change_between_passes(tmp_path):
    once = iter(blocks_of(9))
    rows = open_rows(lambda: once)  # takes the first block
    list(rows.blocks())
    with pytest.raises(ValueError, match=r"had 44 rows, this one has 0\..*lambda:"):
        list(rows.blocks())
    paths = write_files(TABLE, tmp_path)
    rows = open_rows(paths, "kind", "w")
    list(rows.blocks())
    write(TABLE.slice(0, 21), paths[1])
    with pytest.raises(ValueError, match="had 53 rows, this one has 54"):
        list(rows.blocks())
    paths[1].unlink()
    with pytest.raises(FileNotFoundError, match=r"No file '.*1.parquet' any more"):
        list(rows.blocks())


def test_dask_rows_that_change_between_passes():
    sizes = [5, 5]
    chunks = [
        da.from_delayed(
            dask.delayed(lambda k: np.ones((sizes[k], 2)))(k),
            shape=(np.nan, 2),
            dtype=float,
        )
        for k in range(2)
    ]
    table = da.concatenate(chunks, allow_unknown_chunksizes=True)
    rows = open_rows(table, table[:, 0])
    blocks_from(rows)
    sizes[1] = 4
    with pytest.raises(ValueError, match=r"partition 1 .* had 5 rows when .* has 4"):
        blocks_from(rows)
