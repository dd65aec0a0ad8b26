# SPDX-License-Identifier: BSD-3-Clause
"""Rows of every kind of source are read unchanged; bad rows are named."""

import sys
import tracemalloc

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset, feather, parquet
from scipy import sparse

from leaveout.large._dask import DistributedRows
from leaveout.large._sources import open_rows

N, P = 53, 4
X = np.random.default_rng(3).normal(size=(N, P)).round(2)
X[np.abs(X) < 0.4] = 0.0
Y = np.array(list("abc"))[np.arange(N) % 3]
WEIGHT = np.arange(N) % 5 / 2.0
NAMES = ["age", "dose", "height", "pulse"]
# The special columns are between the features.
TABLE = pa.table(
    {"age": X[:, 0], "kind": Y, "dose": X[:, 1], "height": X[:, 2], "w": WEIGHT,
     "pulse": X[:, 3]}
)  # fmt: skip
PANDAS = TABLE.to_pandas()
FRAME = dd.from_pandas(PANDAS, npartitions=4)
ARRAY = da.from_array(X, chunks=(20, 3))
# dask.dataframe calls pandas in a way that pandas 3.1 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")


def blocks_of(size, X=X, y=Y, weight=WEIGHT):
    parts = [slice(k, k + size) for k in range(0, len(X), size)]
    return [(X[part], y[part], weight[part]) for part in parts]


def write(table, path, **options):
    """Write rows in the format of the path's suffix; return the path."""
    if path.suffix == ".npy":
        np.save(path, table)
    elif path.suffix == ".arrow":
        feather.write_feather(table, path, compression="uncompressed", **options)
    else:
        parquet.write_table(table, path, **options)
    return path


def write_files(table, folder):
    """Write the rows to three files of 20, 20 and 13."""
    return [
        write(table.slice(20 * k, 20), folder / f"{k}.parquet", row_group_size=6)
        for k in range(3)
    ]


def reordered(folder):
    """Files with other orders of the columns, and files without rows."""
    empty = write(TABLE.slice(0, 0), folder / "empty.parquet")
    files = write_files(TABLE, folder)
    write(parquet.read_table(files[1]).select(TABLE.column_names[::-1]), files[1])
    return [empty, files[0], empty, *files[1:]]


def with_fewer_columns(folder):
    """A dataset without the last column of its file."""
    blob = TABLE.append_column("blob", pa.array(["x" * 10_000] * N))
    whole = dataset.dataset(write(blob, folder / "a.parquet", use_dictionary=False))
    return whole.replace_schema(whole.schema.remove(6))


def second_row_group(folder):
    twice = pa.concat_tables([TABLE.slice(1), TABLE.slice(0, 1), TABLE])
    path = write(twice, folder / "a.parquet", row_group_size=N)
    (whole,) = dataset.dataset(path).get_fragments()
    some = whole.subset(row_group_ids=[1])
    return dataset.FileSystemDataset([some], TABLE.schema, some.format, some.filesystem)


# What a user may pass as X, y and sample_weight, always the same rows.
BY_NAME = {
    "pandas": lambda folder: PANDAS,
    "polars": lambda folder: pl.from_arrow(TABLE),
    "table": lambda folder: pa.concat_tables([TABLE.slice(0, 7), TABLE.slice(7)]),
    "Parquet": lambda folder: str(write(TABLE, folder / "a.parquet")),
    "list of paths": reordered,
    "folder": lambda folder: write_files(TABLE, folder)[0].parent,
    "Arrow": lambda folder: write(TABLE, folder / "a.arrow", chunksize=21),
    "dataset": with_fewer_columns,
    "some row groups": second_row_group,
    "dask frame": lambda folder: FRAME,
    "dask Parquet": lambda folder: dd.read_parquet(
        write_files(TABLE, folder)[0].parent
    ),
    "dask, some empty": lambda folder: dd.concat([FRAME.query("age > 99"), FRAME]),
}
SOURCES = {
    "array": lambda folder: (np.asfortranarray(X), Y, WEIGHT),
    "npy": lambda f: (write(X, f / "x.npy"), write(Y, f / "y.npy"), WEIGHT),
    "csc array": lambda folder: (sparse.csc_array(X), Y, WEIGHT),
    "blocks": lambda folder: ([(X[:0], Y[:0], WEIGHT[:0]), *blocks_of(9)],),
    "function": lambda folder: (lambda: iter(blocks_of(1)),),
    "tables": lambda folder: (
        [(pd.DataFrame(x, columns=NAMES), pd.Series(y), w) for x, y, w in blocks_of(7)],
    ),
    "dask array": lambda folder: (ARRAY, da.from_array(Y, chunks=7), WEIGHT.tolist()),
    "dask of unknown sizes": lambda folder: (
        FRAME[NAMES].to_dask_array(), FRAME["kind"], FRAME["w"],
    ),
}  # fmt: skip
SOURCES |= {
    kind: lambda folder, make=make: (make(folder), "kind", "w")
    for kind, make in BY_NAME.items()
}


def blocks_from(rows):
    if isinstance(rows, DistributedRows):
        return rows.fetch(lambda block: block, np.arange(rows.stops[-1]))
    return list(rows.blocks())


def read(*source, rows_at_once=16384):
    return rows_of(blocks_from(open_rows(*source, rows_at_once=rows_at_once)))


def rows_of(blocks):
    """Check all blocks; return their X, y and weight."""
    for block in blocks:
        assert type(block.X) is np.ndarray
        assert block.X.dtype == np.float64
        assert block.X.flags.c_contiguous
    starts = np.cumsum([0, *(len(block.y) for block in blocks)])
    assert [block.start for block in blocks] == starts[:-1].tolist()
    return tuple(
        None if parts[0] is None else np.concatenate(parts)
        for parts in list(zip(*blocks, strict=True))[1:]
    )


@pytest.mark.parametrize("rows_at_once", [1, 8, 1000])
@pytest.mark.parametrize("kind", SOURCES)
def test_rows_are_read_unchanged(kind, rows_at_once, tmp_path):
    rows = open_rows(*SOURCES[kind](tmp_path), rows_at_once=rows_at_once)
    assert rows.schema.n_features == P
    if kind in BY_NAME or kind == "tables":
        assert rows.schema.names.tolist() == NAMES
    for _ in range(2):
        blocks = blocks_from(rows)
        for found, wanted in zip(rows_of(blocks), (X, Y, WEIGHT), strict=True):
            np.testing.assert_array_equal(found, wanted)
        sizes = [len(block.y) for block in blocks]
        if "dask" in kind:
            assert max(sizes) <= rows_at_once
            first = rows.stops[:1]  # the first row of the second partition
            assert rows.fetch(lambda block: block.start, first)[0] == first
        else:
            full = [rows_at_once] * (N // rows_at_once)
            assert sizes == [*full, N - sum(full)][: len(sizes)]


def test_weights_may_be_one_number_or_none():
    for source in ((X, Y), (FRAME[NAMES], FRAME["kind"])):
        assert read(*source)[2] is None
        assert read(*source, 2.5)[2].tolist() == [2.5] * N
    assert read([block[:2] for block in blocks_of(9)])[2] is None


def test_columns_in_folder_names(tmp_path):
    year = 2000 + np.arange(N) // 30
    table = TABLE.append_column("year", pa.array(year))
    parts = {"partitioning": ["kind", "year"], "partitioning_flavor": "hive"}
    dataset.write_dataset(table, tmp_path, format="parquet", **parts)
    found, labels, _ = read(tmp_path, "kind", "w")
    order = np.lexsort([year, Y])
    np.testing.assert_array_equal(found, np.column_stack([X, year])[order])
    np.testing.assert_array_equal(labels, Y[order])


UVU = pa.array(list("uvu"))


@pytest.mark.parametrize(
    "labels",
    [
        UVU,
        UVU.cast("large_string"),
        UVU.dictionary_encode(),
        pa.array([True, False, True]),
    ],
)
def test_kinds_of_numbers_and_labels(tmp_path, labels):
    columns = [
        pa.array([1, 0, 1], pa.int8()),
        pa.array([1, 2**40, 3], pa.uint64()),
        pa.array([1e308] * 3),
        pa.array([True, False, True]),
        pa.array([1, 2, 3]).cast(pa.decimal128(21, 2)),
    ]
    table = pa.table([*columns, labels], names=[*"abcde", "y"])
    for source in (table, write(table, tmp_path / "a.arrow"), table.to_pandas()):
        found, y, _ = read(source, "y")
        for j, column in enumerate(columns):
            assert found[:, j].tolist() == [float(each) for each in column.to_pylist()]
        assert y.tolist() == labels.to_pylist()


def peak_bytes(rows):
    """Return the peak memory of NumPy and Python, and of pyarrow, during a pass."""
    before, most = pa.total_allocated_bytes(), 0
    tracemalloc.start()
    for _ in rows.blocks():
        most = max(most, pa.total_allocated_bytes() - before)
    ours = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return ours, most


LONG = {f"x{j}": np.random.default_rng(j).normal(size=200_000) for j in range(8)}
LONG["y"] = np.arange(200_000) % 2
LABELS = np.arange(20_000) % 2
WIDE = sparse.random(20_000, 200, density=0.001, format="csr", random_state=0)
ONES = np.ones((20_000, 50), np.float32)
PAGES = {"data_page_size": 2**14, "use_dictionary": False}


def many_blocks():
    return ((np.ones((1000, 50)), LABELS[:1000]) for _ in range(20))


def long_file(name, **options):
    return lambda folder: (write(pa.table(LONG), folder / name, **options), "y")


@pytest.mark.parametrize(
    ("source", "most", "most_of_pyarrow"),
    [
        # The current block, those waiting to be joined with the next, the user's own.
        (lambda folder: (many_blocks,), (3 * 400 + 2 * 1000 + 100) * 50, 0),
        (lambda folder: (write(ONES, folder / "x.npy"), LABELS), 3 * 400 * 50, 0),
        (lambda folder: (WIDE, LABELS), 4 * 400 * 200, 0),
        # One row group, many record batches; a buffer and a page per column.
        (long_file("a.parquet", **PAGES), 4 * 400 * 9, 3 * 400 * 9 + 9 * 40_960),
        (long_file("a.arrow", chunksize=2000), 4 * 400 * 9, 3 * 2000 * 9),
        # Of 530 kB.
        (lambda folder: (with_fewer_columns(folder), "kind", "w"), 5000, 25_000),
    ],
)
def test_few_rows_are_in_memory_at_a_time(tmp_path, source, most, most_of_pyarrow):
    """Counted in values of 8 bytes."""
    ours, of_pyarrow = peak_bytes(open_rows(*source(tmp_path), rows_at_once=400))
    assert ours < 8 * most
    assert of_pyarrow <= 8 * most_of_pyarrow


PLACES = {
    "array": "row 33",
    "blocks": r"row 6 of block 3 of the iterable \(row 33 overall, counted from 0\)",
    "files": r"row 13 of '.*1\.\w+' \(row 33 overall, counted from 0\)",
    "dask": r"row 6 of partition 2 of the dask collection \(row 33 overall",
}


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize(
    ("column", "value", "match"),
    [
        ("height", np.nan, "X contains NaN in {}.*, column ('height'|2). Fill"),
        ("height", -np.inf, r"infinity \(inf\) in {}.*, column ('height'|2). Rep"),
        ("w", -1.5, "sample_weight must be .* got -1.5 in {}.*. Use 0"),
        ("kind", None, "label is missing .* in {}.*. Drop"),
    ],
)
def test_bad_value_is_reported_with_its_place(tmp_path, kind, column, value, match):
    table = PANDAS.copy()
    table.loc[33, column] = value
    arrays = [table[name].to_numpy() for name in (NAMES, "kind", "w")]
    sources = {
        "array": arrays,
        "blocks": (blocks_of(9, *arrays),),
        "files": (write_files(pa.table(table), tmp_path), "kind", "w"),
        "dask": (dd.from_pandas(table, npartitions=4), "kind", "w"),
    }
    with pytest.raises(ValueError, match=match.format(PLACES[kind])):
        read(*sources[kind], rows_at_once=3)


def changed(change):
    blocks = SOURCES["tables"](None)[0]
    blocks[3] = change(*blocks[3])
    return (blocks,)


def without_weights(folder):
    write(TABLE.drop_columns("w"), folder / "b.parquet")
    return [write(TABLE, folder / "a.parquet"), folder / "b.parquet"], "kind", "w"


FILTERED = dataset.dataset(TABLE).filter(dataset.field("age") > 0)
OFFSETS = np.arange(N + 1, dtype=np.int32)  # of the labels


def corrupted(name, old, new, table=TABLE):
    def make(folder):
        path = write(table, folder / name)
        path.write_bytes(path.read_bytes().replace(bytes(old), bytes(new)))
        return path, "kind"

    return make


@pytest.mark.parametrize(
    ("source", "match"),
    [
        # arrays
        ((X, Y[:-1]), "X has 53 rows but y has 52 entries"),
        ((X, Y, list("abc") * 17 + ["a", "b"]), "sample_weight must hold numbers"),
        ((X,), "requires y to be passed, but the target y is None"),
        ((X, "kind"), "name of a column, but the columns of X have no names"),
        ((PANDAS, "Kind"), r"No column 'Kind' in X\. Did you mean 'kind'"),
        (corrupted("a.npy", b"{'descr'", b'{{{{("""', X), "npy' cannot be mapped to"),
        # blocks
        (changed(lambda x, y, w: (x[NAMES[:3]], y, w)), "3 columns at row 0 of bl.* 4"),
        (changed(lambda x, y, w: (x[NAMES[::-1]], y, w)), "in block 3 .* are 'pulse'"),
        (changed(lambda x, y, w: (x, np.zeros(7), w)), "From row 0 of block 3 .* kind"),
        ((X.tolist(),), "block 0 of the iterable is a list"),
        (([([[1.0], [2.0, 3.0]], ["u", "v"])],), "block 0 .* cannot be used: .*shape"),
        (([([[10**400]], ["u"])],), "row 0 of block 0 .* not a number: int too large"),
        (([([[1.0, "tall"]], ["u"])],), "'tall' in row 0 .*, column 1, .* not a num"),
        (([(np.eye(2), [0, 1], [[1.0], [1.0, 2.0]])],), "sample_weight in block 0"),
        (([(X[:0], Y[:0])],), "X has no rows"),
        ((iter(blocks_of(9)),), "iterator can be read only once.*lambda:"),
        ((blocks_of(9), None, WEIGHT), "Put the weights into the blocks"),
        # dask
        ((FRAME[NAMES], Y[:-1]), "13 rows in partition 3 .* but y has 12 entries"),
        ((FRAME["age"], Y), "Expected 2D array"),
        ((ARRAY, da.from_array(Y[:-1])), r"X has 3 partition\(s\), y has 1. Cut both"),
        ((FRAME[FRAME["age"] > 99], "kind"), r"0 sample\(s\)"),
        # files
        ((TABLE.to_reader(), "kind"), "RecordBatchReader of pyarrow can be read only"),
        (without_weights, "b.parquet' lacks column 'w'"),
        ((TABLE, "w"), r"Not numbers in X: column 'kind' \(string\).*replace_schema"),
        ((TABLE, Y), "y must be the name of a column of X, whose columns are 'age'"),
        ((TABLE, "kind", "kind"), "'kind' cannot be both y and sample_weight"),
        ((TABLE.select(["kind", "w"]), "kind", "w"), r"0 feature\(s\): no col"),
        ((TABLE.slice(0, 0), "kind"), r"0 sample\(s\)"),
        (corrupted("a.parquet", b"PAR1", b"PAR2"), "cannot be .* Parquet.*'csv'"),
        (lambda folder: (folder, "kind"), "no files"),
        ((FILTERED, "kind"), "cannot be read file by file.*without filters"),
        # Bad offsets that would crash pyarrow.
        (corrupted("a.arrow", OFFSETS, -OFFSETS - 9), "arrow' cannot be read: .*negat"),
    ],
)
def test_invalid_sources_are_refused(tmp_path, source, match):
    with pytest.raises(ValueError, match=match):
        read(*(source(tmp_path) if callable(source) else source))


def test_missing_files_and_libraries(tmp_path, monkeypatch):
    path = write(TABLE, tmp_path / "a.parquet")
    with pytest.raises(FileNotFoundError, match=r"Did you mean 'a.parquet'"):
        open_rows(tmp_path / "a.Parquet", "kind")
    with pytest.raises(FileNotFoundError, match=r"No file '.*rows\.npy'"):
        open_rows(tmp_path / "rows.npy", Y)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pip install "leaveout\[parquet\]"'):
        open_rows(path, "kind")


def test_rows_that_change_between_passes(tmp_path):
    once = iter(blocks_of(9))
    rows = open_rows(lambda: once)  # consumes the first block
    list(rows.blocks())
    with pytest.raises(ValueError, match=r"had 44 rows, but this one has 0\..*lambda:"):
        list(rows.blocks())
    paths = write_files(TABLE, tmp_path)
    rows = open_rows(paths, "kind", "w")
    list(rows.blocks())
    write(TABLE.slice(0, 21), paths[1], row_group_size=6)
    with pytest.raises(ValueError, match="had 53 rows, but this one has 54"):
        list(rows.blocks())
    paths[1].unlink()
    with pytest.raises(FileNotFoundError, match=r"'.*1.parquet' no longer exists"):
        list(rows.blocks())
    shape = [5, 2]
    part = dask.delayed(lambda: np.ones(shape))()
    rows = open_rows(da.from_delayed(part, (np.nan, 2), float), np.ones(5))
    shape[0] = 4
    with pytest.raises(ValueError, match=r"partition 0 .* had 5 rows when .* has 4"):
        blocks_from(rows)
