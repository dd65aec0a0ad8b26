# SPDX-License-Identifier: BSD-3-Clause
"""Rows from arrays, tables, mapped files and iterables come back as they went in."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
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
from scipy import sparse

from leaveout.large._sources import open_rows


def blocks_of(size, X=X, y=Y, weight=WEIGHT):
    """The rows as a list of blocks (X, y, weight)."""
    return [
        (X[k : k + size], y[k : k + size], weight[k : k + size])
        for k in range(0, len(X), size)
    ]


def memmap_of(array, path):
    """The array in a file behind a header of 24 bytes, as a read-only map."""
    path.write_bytes(b"-" * 24 + np.ascontiguousarray(array).tobytes())
    return np.memmap(path, array.dtype, "r", offset=24, shape=array.shape)


def npy_of(array, path):
    path = path.with_suffix(".npy")
    np.save(path, array)
    return str(path)


SOURCES = {
    "array": lambda folder: (X, Y, WEIGHT),
    "columns first": lambda folder: (np.asfortranarray(X), Y, WEIGHT),
    "float32": lambda folder: (X.astype(np.float32), Y, WEIGHT),
    "list": lambda folder: (X.tolist(), Y.tolist(), WEIGHT.tolist()),
    "memmap": lambda folder: tuple(
        memmap_of(array, folder / name)
        for array, name in ((X, "x"), (Y, "y"), (WEIGHT, "w"))
    ),
    "npy": lambda folder: tuple(
        npy_of(array, folder / name)
        for array, name in ((X, "x"), (Y, "y"), (WEIGHT, "w"))
    ),
    "pandas": lambda folder: (
        pd.DataFrame(X, columns=NAMES),
        pd.Series(Y),
        pd.Series(WEIGHT),
    ),
    "pandas by name": lambda folder: (
        pd.DataFrame(X, columns=NAMES).assign(w=WEIGHT, kind=Y),
        "kind",
        "w",
    ),
    "polars": lambda folder: (pl.DataFrame(X, schema=NAMES), pl.Series(Y), WEIGHT),
    "polars by name": lambda folder: (
        pl.DataFrame({"w": WEIGHT, **dict(zip(NAMES, X.T, strict=True)), "kind": Y}),
        "kind",
        "w",
    ),
    "csr": lambda folder: (sparse.csr_matrix(X), Y, WEIGHT),
    "csc array": lambda folder: (sparse.csc_array(X), Y, WEIGHT),
    "blocks": lambda folder: (blocks_of(9), None, None),
    "large blocks": lambda folder: (blocks_of(40), None, None),
    "function": lambda folder: (lambda: iter(blocks_of(1)), None, None),
    "sparse blocks": lambda folder: (
        [(sparse.csr_array(x), y, w) for x, y, w in blocks_of(20)],
        None,
        None,
    ),
    "tables": lambda folder: (
        [(pd.DataFrame(x, columns=NAMES), pd.Series(y), w) for x, y, w in blocks_of(7)],
        None,
        None,
    ),
}


FRONT_TO_BACK = ["blocks", "large blocks", "function", "sparse blocks", "tables"]


@pytest.fixture(params=SOURCES)
def source(request, tmp_path):
    """What a user may pass as X, y and sample_weight, each time the same rows."""
    return SOURCES[request.param](tmp_path)


@pytest.mark.parametrize("rows_at_once", [1, 8, 53, 1000])
def test_rows_come_back(source, rows_at_once):
    rows = open_rows(*source, rows_at_once=rows_at_once)
    assert rows.n_features == P
    exact = X.astype(np.float32) if getattr(source[0], "dtype", 0) == "f4" else X
    for _ in range(3):
        blocks = list(rows.blocks())
        assert_all_rows(blocks, exact)
        sizes = [len(block.y) for block in blocks]
        assert sizes[:-1] == [rows_at_once] * (
            N // rows_at_once - (N % rows_at_once == 0)
        )
        assert [block.start for block in blocks] == [*np.cumsum([0, *sizes[:-1]])]
        assert rows.n_rows == N


@pytest.mark.parametrize("kind", [k for k in SOURCES if k not in FRONT_TO_BACK])
def test_parts_are_the_blocks_also_in_threads_and_after_a_journey(kind, tmp_path):
    rows = open_rows(*SOURCES[kind](tmp_path), rows_at_once=10)
    assert_parts_are_blocks(rows)


@pytest.mark.parametrize("kind", ["pandas by name", "polars by name", "tables"])
def test_names_of_columns(tmp_path, kind):
    rows = open_rows(*SOURCES[kind](tmp_path))
    assert rows.feature_names.tolist() == NAMES


def test_columns_without_names():
    assert open_rows(X, Y).feature_names is None
    assert open_rows(pd.DataFrame(X), Y).feature_names is None


@pytest.mark.parametrize("kind", FRONT_TO_BACK)
def test_iterables_are_read_front_to_back_and_counted_by_the_first_pass(kind):
    rows = open_rows(*SOURCES[kind](None))
    assert rows.parts is None
    assert rows.n_rows is None
    next(rows.blocks())
    assert rows.n_rows is None  # a pass that was broken off counts nothing
    list(rows.blocks())
    assert rows.n_rows == N


def test_one_weight_for_all():
    assert joined(open_rows(X, Y, 2.5).blocks()).weight.tolist() == [2.5] * N


def test_no_weights():
    assert joined(open_rows(X, Y).blocks()).weight is None
    blocks = [block[:2] for block in blocks_of(9)]
    assert joined(open_rows(blocks).blocks()).weight is None


def test_arrays_of_the_right_kind_are_not_copied():
    for block in open_rows(X, Y, rows_at_once=10).blocks():
        assert np.shares_memory(block.X, X)


@given(
    sizes=st.lists(st.integers(0, 12), min_size=1, max_size=8).filter(any),
    rows_at_once=st.integers(1, 15),
)
def test_blocks_end_where_rows_at_once_says_however_they_come(sizes, rows_at_once):
    ends = np.cumsum(sizes)
    table = np.arange(2.0 * ends[-1]).reshape(-1, 2)
    blocks = [
        (table[end - size : end], np.arange(end - size, end))
        for size, end in zip(sizes, ends, strict=True)
    ]
    found = list(open_rows(blocks, rows_at_once=rows_at_once).blocks())
    expected = list(
        open_rows(table, np.arange(len(table)), rows_at_once=rows_at_once).blocks()
    )
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.start == other.start
        np.testing.assert_array_equal(one.X, other.X)
        np.testing.assert_array_equal(one.y, other.y)


# Memory


class RowsOnDemand:
    """Blocks that are made when they are asked for."""

    def __init__(self, n_blocks, size):
        self.n_blocks, self.size = n_blocks, size

    def __iter__(self):
        for k in range(self.n_blocks):
            yield np.full((self.size, 50), float(k)), np.arange(self.size) % 2


@pytest.mark.parametrize("size", [100, 400, 1000])
def test_iterables_hold_few_rows_at_a_time(size):
    rows = open_rows(RowsOnDemand(20_000 // size, size), rows_at_once=400)
    row = 50 * 8

    # The block in use, those that wait and are joined to the next, the user's own.
    assert peak_bytes(rows) < (3 * 400 + 2 * size + 100) * row


def test_memmap_is_never_in_memory_as_a_whole(tmp_path):
    shape = (20_000, 50)
    big = np.lib.format.open_memmap(
        tmp_path / "x.npy", mode="w+", dtype=np.float32, shape=shape
    )
    big[:] = 1.0
    big.flush()
    rows = open_rows(tmp_path / "x.npy", np.arange(len(big)) % 2, rows_at_once=400)

    assert peak_bytes(rows) < 3 * 400 * 50 * 8  # float32 becomes float64


def test_sparse_rows_become_dense_block_by_block():
    big = sparse.random(20_000, 200, density=0.001, format="csr", random_state=0)
    rows = open_rows(big, np.zeros(20_000), rows_at_once=400)

    assert peak_bytes(rows) < 3 * 400 * 200 * 8


def test_large_sparse_block_is_cut_before_it_becomes_dense():
    big = sparse.random(20_000, 200, density=0.001, format="csr", random_state=0)
    rows = open_rows([(big, np.zeros(20_000))], rows_at_once=400)

    assert peak_bytes(rows) < 4 * 400 * 200 * 8


# Journeys of mapped files


def test_part_of_a_memmap_travels_as_the_name_of_its_file(tmp_path):
    big = memmap_of(np.ones((5000, 20)), tmp_path / "x")
    parts = open_rows(big, np.zeros(5000), rows_at_once=5000).parts
    assert len(pickle.dumps(parts[0])) < 50_000  # y travels, X does not


@pytest.mark.parametrize(
    "view",
    [np.s_[5:], np.s_[::2], np.s_[::-1], np.s_[:, 1:3], np.s_[3:50:3, ::-2]],
    ids=str,
)
def test_view_of_a_memmap_is_found_again_in_its_file(tmp_path, view):
    mapped = memmap_of(X, tmp_path / "x")[view]
    parts = open_rows(mapped, np.arange(len(mapped)), rows_at_once=7).parts
    far = joined(b for part in pickle.loads(pickle.dumps(parts)) for b in part.read())
    np.testing.assert_array_equal(far.X, X[view])


def test_private_changes_of_a_memmap_travel_along(tmp_path):
    memmap_of(X, tmp_path / "x")
    mine = np.memmap(tmp_path / "x", float, "c", offset=24, shape=X.shape)
    mine[0] = 7.0
    parts = open_rows(mine, Y).parts
    far = joined(b for part in pickle.loads(pickle.dumps(parts)) for b in part.read())
    assert (far.X[0] == 7.0).all()


def test_worker_without_the_file_says_so(tmp_path):
    parts = pickle.dumps(open_rows(memmap_of(X, tmp_path / "x"), Y).parts)
    (tmp_path / "x").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"on this machine.*disk that they share"
    ):
        list(pickle.loads(parts)[0].read())


def test_worker_with_a_shorter_file_says_so(tmp_path):
    parts = pickle.dumps(open_rows(memmap_of(X, tmp_path / "x"), Y).parts)
    (tmp_path / "x").write_bytes(b"short")
    with pytest.raises(ValueError, match="x' has become shorter"):
        list(pickle.loads(parts)[0].read())


# Bad rows


def bad(value, row=33, column=2):
    table = X.astype(object)
    table[row, column] = value
    return table if isinstance(value, str) else table.astype(float)


def read(*source, **options):
    return list(open_rows(*source, **options).blocks())


@pytest.mark.parametrize(
    ("value", "word"),
    [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf"), ("tall", "'tall'")],
)
def test_bad_value_is_found_in_an_array(value, word):
    with pytest.raises(ValueError, match=rf"{word}.* in row 33, column 2"):
        read(bad(value), Y, rows_at_once=10)


@pytest.mark.parametrize("value", [np.nan, np.inf, "tall"])
def test_bad_value_is_found_in_a_table(value):
    table = pd.DataFrame(bad(value), columns=NAMES)
    with pytest.raises(ValueError, match="in row 33, column 'height'"):
        read(table, Y, rows_at_once=10)


def test_bad_value_is_found_in_a_sparse_matrix():
    with pytest.raises(ValueError, match="NaN in row 33, column 2"):
        read(sparse.csr_matrix(bad(np.nan)), Y, rows_at_once=10)


@pytest.mark.parametrize("rows_at_once", [2, 10, 1000])
def test_bad_value_is_found_in_an_iterable(rows_at_once):
    blocks = blocks_of(9, bad(np.nan))
    place = r"row 6 of block 3 of the iterable \(row 33 of all, counted from 0\)"
    with pytest.raises(ValueError, match=rf"NaN in {place}, column 2\. Fill"):
        read(blocks, rows_at_once=rows_at_once)


def test_large_finite_values_are_no_infinities():
    huge = np.full((4, 2), 1e308)
    assert (joined(open_rows(huge, list("abab")).blocks()).X == 1e308).all()


def test_nullable_numbers_of_pandas():
    table = pd.DataFrame({"n": pd.array([1, 2, 3], dtype="Int64"), "flag": [1, 0, 1]})
    assert joined(open_rows(table, [0, 1, 0]).blocks()).X[:, 0].tolist() == [1, 2, 3]
    table.loc[1, "n"] = pd.NA
    with pytest.raises(ValueError, match="NaN in row 1, column 'n'"):
        read(table, [0, 1, 0])


@pytest.mark.parametrize(
    "y",
    [
        [*Y[:33], None, *Y[34:]],
        pd.Series([*Y[:33], None, *Y[34:]]),
        pd.Series([*Y[:33], None, *Y[34:]], dtype="category"),
        pd.Series([1] * 33 + [None] + [2] * 19, dtype="Int64"),
        np.where(np.arange(N) == 33, np.nan, 1.0),
        np.where(np.arange(N) == 33, np.inf, 1.0),
    ],
)
def test_missing_label(y):
    with pytest.raises(ValueError, match=r"label is missing .* in row 33"):
        read(X, y, rows_at_once=10)


def test_missing_label_in_an_iterable():
    blocks = blocks_of(9, y=np.array([*Y[:33], None, *Y[34:]], dtype=object))
    with pytest.raises(ValueError, match=r"missing .* in row 6 of block 3 .*\(row 33"):
        read(blocks)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_bad_weight(value):
    weight = np.where(np.arange(N) == 33, value, 1.0)
    with pytest.raises(ValueError, match=f"got {value:g} in row 33"):
        read(X, Y, weight, rows_at_once=10)
    with pytest.raises(ValueError, match=f"got {value:g} in row 6 of block 3 of the"):
        read(blocks_of(9, weight=weight))


def test_weights_must_be_numbers():
    with pytest.raises(ValueError, match="sample_weight must hold numbers"):
        read(X, Y, list("abc") * 17 + ["a", "b"])


def test_wrong_width():
    blocks = blocks_of(9)
    blocks[3] = (blocks[3][0][:, :3], *blocks[3][1:])
    with pytest.raises(ValueError, match=r"3 columns at row 0 of block 3 .* have 4"):
        read(blocks)


def test_other_columns():
    blocks = SOURCES["tables"](None)[0]
    blocks[2] = (blocks[2][0][NAMES[::-1]], *blocks[2][1:])
    with pytest.raises(
        ValueError, match="columns of block 2 of the iterable are 'pulse"
    ):
        read(blocks)


def test_labels_of_two_kinds():
    blocks = blocks_of(9)
    blocks[2] = (blocks[2][0], np.zeros(9), blocks[2][2])
    with pytest.raises(
        ValueError, match="labels are text in block 0, but not in block 2"
    ):
        read(blocks)


@pytest.mark.parametrize("without", [0, 2])
def test_weights_in_some_blocks_only(without):
    blocks = [
        block if k != without else block[:2] for k, block in enumerate(blocks_of(9))
    ]
    with pytest.raises(ValueError, match="Give weights with every block, or with none"):
        read(blocks)


@pytest.mark.parametrize(
    ("y", "weight", "match"),
    [
        (Y[:-1], None, "X has 53 rows but y has 52 entries"),
        (Y, WEIGHT[:-1], "X has 53 rows but sample_weight has 52"),
        (None, None, "requires y to be passed, but the target y is None"),
        ("kind", None, "y='kind' names a column, but the columns of X have no names"),
        (Y, "w", "sample_weight='w' names a column"),
    ],
)
def test_labels_and_weights_that_do_not_fit(y, weight, match):
    with pytest.raises(ValueError, match=match):
        open_rows(X, y, weight)


def test_labels_of_a_block_that_do_not_fit():
    blocks = blocks_of(9)
    blocks[3] = (blocks[3][0], blocks[3][1][:-1], blocks[3][2])
    with pytest.raises(
        ValueError, match="9 rows in block 3 of the iterable but y has 8"
    ):
        read(blocks)


def test_unknown_column():
    table = pd.DataFrame(X, columns=NAMES)
    with pytest.raises(
        ValueError, match=r"No column 'Pulse' in X\. Did you mean 'pulse'"
    ):
        open_rows(table, "Pulse")


@pytest.mark.parametrize(
    ("blocks", "match"),
    [
        (X.tolist(), "block 0 of the iterable is a list"),
        ([(X,)], "block 0 of the iterable is a tuple of 1"),
        ([], "source of rows is empty"),
        ([(X[:0], Y[:0])], "source of rows is empty"),
    ],
)
def test_iterables_of_the_wrong_kind(blocks, match):
    with pytest.raises(ValueError, match=match):
        read(blocks)


def test_weights_beside_an_iterable():
    with pytest.raises(ValueError, match="Put the weights into the blocks"):
        open_rows(blocks_of(9), sample_weight=WEIGHT)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3,), ()])
def test_shapes_in_the_words_of_scikit_learn(shape):
    with pytest.raises(ValueError, match=r"0 sample\(s\)|0 feature\(s\)|Expected 2D"):
        open_rows(np.ones(shape), np.zeros(3)[: shape[0] if shape else 1])


@pytest.mark.parametrize("rows_at_once", [0, -1, 2.5, None])
def test_rows_at_once_is_a_number_of_rows(rows_at_once):
    with pytest.raises(ValueError, match="rows_at_once must be a whole number"):
        open_rows(X, Y, rows_at_once=rows_at_once)


def test_missing_npy_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No file '.*x\.npy'"):
        open_rows(tmp_path / "x.npy", Y)


def test_npy_file_of_objects(tmp_path):
    np.save(tmp_path / "x.npy", X.astype(object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"x\.npy' cannot be mapped"):
        open_rows(tmp_path / "x.npy", Y)


# Passes that differ


def test_generator_is_refused_with_what_to_pass_instead():
    with pytest.raises(ValueError, match=r"generator can be read only once.*lambda:"):
        open_rows(block for block in blocks_of(9))


def test_function_that_returns_the_same_iterator_again():
    once = iter(blocks_of(9))
    rows = open_rows(lambda: once)  # takes the first block
    list(rows.blocks())
    with pytest.raises(ValueError, match=r"had 44 rows, this one has 0\..*used up"):
        list(rows.blocks())


def test_rows_that_get_fewer():
    blocks = blocks_of(9)
    rows = open_rows(blocks, rows_at_once=9)
    list(rows.blocks())
    del blocks[-1]
    with pytest.raises(ValueError, match="had 53 rows, this one has 45"):
        list(rows.blocks())


def test_rows_that_get_more():
    blocks = blocks_of(9)
    rows = open_rows(blocks, rows_at_once=9)
    list(rows.blocks())
    blocks.append(blocks[0])
    with pytest.raises(ValueError, match="Rows 45 to 53 of the iterable are not those"):
        list(rows.blocks())


def test_rows_drawn_anew_in_every_pass(rng):
    rows = open_rows(
        lambda: [(rng.normal(size=(9, 2)), np.zeros(9))] * 3, rows_at_once=9
    )
    list(rows.blocks())
    with pytest.raises(
        ValueError, match=r"Rows 0 to 8 .* not those of the first pass.*seed"
    ):
        list(rows.blocks())


@pytest.mark.parametrize("what", [1, 2])
def test_labels_or_weights_drawn_anew_in_every_pass(rng, what):
    def make():
        for block in blocks_of(9):
            new = [*block]
            new[what] = rng.permutation(block[what])
            yield tuple(new)

    rows = open_rows(make)
    list(rows.blocks())
    with pytest.raises(ValueError, match="not those of the first pass"):
        list(rows.blocks())


@pytest.mark.parametrize("shape", [(), (3,), (3, 2, 4)])
def test_a_file_whose_array_has_no_rows_and_columns_is_named(tmp_path, shape):
    path = tmp_path / "rows.npy"
    np.save(path, np.zeros(shape))
    with pytest.raises(ValueError, match=r"rows\.npy' has an array of shape"):
        open_rows(path, np.array([0, 1, 1]))
