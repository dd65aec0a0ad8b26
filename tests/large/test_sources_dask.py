# SPDX-License-Identifier: BSD-3-Clause
"""Rows of dask arrays and dataframes, partition by partition."""

import pickle
import threading

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
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
)

from leaveout.large._sources import open_rows

TABLE = pd.DataFrame(X, columns=NAMES).assign(kind=Y, w=WEIGHT)
FRAME = dd.from_pandas(TABLE, npartitions=4)
ARRAY = da.from_array(X, chunks=(20, 3))


SOURCES = {
    "array": (ARRAY, da.from_array(Y, chunks=20), da.from_array(WEIGHT, chunks=20)),
    "cut elsewhere": (ARRAY, da.from_array(Y, chunks=7), da.from_array(WEIGHT)),
    "labels in memory": (ARRAY, Y, WEIGHT.tolist()),
    "frame": (FRAME, "kind", "w"),
    "frame and series": (FRAME[NAMES], FRAME["kind"], FRAME["w"]),
    "unknown sizes": (
        FRAME[NAMES].to_dask_array(),
        FRAME["kind"],
        FRAME["w"],
    ),
}


@pytest.fixture(params=SOURCES)
def source(request):
    return SOURCES[request.param]


@pytest.mark.parametrize("rows_at_once", [1, 8, 1000])
def test_rows_come_back(source, rows_at_once):
    rows = open_rows(*source, rows_at_once=rows_at_once)
    assert rows.n_features == P
    for _ in range(2):
        blocks = list(rows.blocks())
        assert_all_rows(blocks)
        assert max(len(block.y) for block in blocks) <= rows_at_once
        assert rows.n_rows == N


def test_parts_are_the_blocks_also_in_threads_and_after_a_journey(source):
    rows = open_rows(*source, rows_at_once=10)
    list(rows.blocks())
    assert_parts_are_blocks(rows)


def test_arrays_know_their_rows_and_frames_learn_them():
    rows = open_rows(*SOURCES["array"])
    assert [part.start for part in rows.parts] == [0, 20, 40]
    rows = open_rows(*SOURCES["frame"])
    assert (rows.n_rows, rows.parts) == (None, None)
    list(rows.blocks())
    assert [part.n_rows for part in rows.parts] == [14, 13, 13, 13]
    assert rows.feature_names.tolist() == NAMES


def test_one_weight_for_all():
    rows = open_rows(FRAME[NAMES], FRAME["kind"], 2.5)
    assert joined(rows.blocks()).weight.tolist() == [2.5] * N


def test_part_travels_with_its_partition_alone():
    big = da.from_array(np.ones((50_000, 4)), chunks=(500, 4))
    parts = open_rows(big, da.zeros(50_000, chunks=500)).parts
    assert len(pickle.dumps(parts[3])) < 50_000  # 16 kB of rows, of 1.6 MB
    table = pd.DataFrame(np.ones((50_000, 4)), columns=NAMES).assign(y=1)
    rows = open_rows(dd.from_pandas(table, npartitions=100), "y")
    list(rows.blocks())
    assert len(pickle.dumps(rows.parts[3])) < 50_000


def test_partitions_are_computed_one_at_a_time_and_only_when_read():
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
    first, *_ = rows.blocks()
    assert (first.X == 0).all()
    assert (calls, most) == (4, 1)


def test_partitions_without_rows():
    kept = FRAME[FRAME["age"] > 1.0]  # some partitions may lose all rows
    kept = dd.concat([FRAME.partitions[0].query("age > 99"), kept])
    found = joined(open_rows(kept, "kind", "w").blocks())
    np.testing.assert_array_equal(found.X, X[X[:, 0] > 1.0])


# Bad rows


def read(*source, **options):
    return list(open_rows(*source, **options).blocks())


def test_bad_value_is_named_by_partition_and_row():
    bad = X.copy()
    bad[33, 2] = np.nan
    place = r"row 13 of partition 1 of the dask collection \(row 33 of all"
    with pytest.raises(ValueError, match=f"NaN in {place}, .* column 2"):
        read(da.from_array(bad, chunks=(20, 4)), Y, rows_at_once=6)


def test_text_among_the_features_is_named():
    with pytest.raises(ValueError, match=r"'a' in row 0 of partition 0.*column 'kind'"):
        read(FRAME, "w")


def test_missing_label_is_named_by_partition_and_row():
    table = TABLE.assign(kind=[*Y[:33], None, *Y[34:]])
    frame = dd.from_pandas(table, npartitions=4)
    with pytest.raises(ValueError, match=r"missing .* row 6 of partition 2 .*\(row 33"):
        read(frame, "kind")


def test_labels_cut_elsewhere_than_frames():
    with pytest.raises(ValueError, match=r"13 rows in partition 1 .* y has 14 entries"):
        read(FRAME[NAMES], FRAME["kind"].repartition(divisions=[0, 14, 28, 41, 52]))
    with pytest.raises(ValueError, match=r"X has 4 partition\(s\), y has 2 partition"):
        open_rows(FRAME[NAMES], FRAME["kind"].repartition(npartitions=2))


def test_labels_of_another_length():
    with pytest.raises(ValueError, match=r"with 53 rows, y has .* with 52 rows"):
        open_rows(ARRAY, da.from_array(Y[:-1]))


def test_labels_in_memory_beside_rows_nobody_counted():
    with pytest.raises(ValueError, match="y is a ndarray, but dask does not know"):
        open_rows(FRAME[NAMES], Y)


def test_no_labels():
    with pytest.raises(ValueError, match="requires y to be passed"):
        open_rows(ARRAY)


def test_no_such_column():
    with pytest.raises(ValueError, match=r"No column 'Kind' in X. Did you mean 'kind'"):
        open_rows(FRAME, "Kind")


def test_wrong_shapes():
    with pytest.raises(ValueError, match="Expected 2D array"):
        open_rows(ARRAY[:, 0], Y)
    with pytest.raises(ValueError, match="Expected 2D array"):
        open_rows(FRAME["age"], Y)


def test_rows_that_change_between_passes():
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
    list(rows.blocks())
    sizes[1] = 4
    with pytest.raises(ValueError, match=r"partition 1 .* had 5 rows when .* has 4"):
        list(rows.blocks())
