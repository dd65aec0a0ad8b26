# SPDX-License-Identifier: BSD-3-Clause
"""Rows from arrays, iterables, dask, and Parquet and Arrow files.

Files are read a block at a time, and only the columns that are needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaveout._messages import check_names_known, did_you_mean, list_items, list_names
from leaveout.large._dask import DistributedRows, is_dask, open_dask
from leaveout.large._rows import (
    RawRows,
    RowSource,
    Schema,
    open_array,
    open_iterable,
    split_frame,
)

# Files are read this many bytes at a time, not a complete row group at a time.
BUFFER_SIZE = 2**18


def open_rows(
    X: Any, y: Any = None, sample_weight: Any = None, *, rows_at_once: int = 16384
) -> RowSource | DistributedRows:
    """Open rows for repeated reading, ``rows_at_once`` rows per block.

    X, y and sample_weight are as in :meth:`leaveout.FeatureSVC.fit`. Errors in single
    rows are found when they are read. A pass holds a few blocks in memory; for an Arrow
    file one record batch, for a dask collection one partition per thread or worker.
    """
    if _is_npy(X):
        X, y, sample_weight = map(_map_npy, (X, y, sample_weight))
    if _is_arrow(X):
        return _open_arrow(X, y, sample_weight, rows_at_once)
    if y is None and not hasattr(X, "shape"):
        if sample_weight is not None:
            raise ValueError(
                "sample_weight cannot be combined with an iterable of blocks. Put the "
                "weights into the blocks: (X, y, weight)."
            )
        return open_iterable(X, rows_at_once)
    if y is None:
        raise ValueError(
            "The classifier requires y to be passed, but the target y is None. Pass "
            "one label per row of X, or the name of their column."
        )
    if is_dask(X):
        return open_dask(X, y, sample_weight, rows_at_once)
    if hasattr(X, "columns"):
        X, y, sample_weight = split_frame(X, y, sample_weight)
    return open_array(X, y, sample_weight, rows_at_once)


def is_in_memory(X: Any) -> bool:
    """Whether X is array-like in scikit-learn's sense, and in memory."""
    has_blocks = isinstance(X, list | tuple) and X and isinstance(X[0], tuple)
    is_elsewhere = isinstance(X, np.memmap) or callable(X) or is_dask(X)
    return not (has_blocks or is_elsewhere or _is_arrow(X))


def _is_npy(path: Any) -> bool:
    return isinstance(path, str | Path) and Path(path).suffix == ".npy"


def _map_npy(path: Any) -> Any:
    """Memory-map an .npy file; return anything else unchanged."""
    if not _is_npy(path):
        return path
    try:
        return np.load(path, mmap_mode="r")
    except FileNotFoundError as error:
        raise FileNotFoundError(f"No file '{path}'.") from error
    except (ValueError, OSError, EOFError, SyntaxError, TokenError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"'{path}' cannot be mapped to memory: {reason}") from error


# Parquet and Arrow


@dataclass(frozen=True)
class File:
    """A file of a dataset (a fragment in pyarrow) and the types of its columns.

    The name is "" for a table in memory. ``constants`` are columns encoded in folder
    names, as in kind=a/1.parquet.
    """

    fragment: Any
    name: str
    types: dict[str, Any]
    constants: dict[str, Any]

    def read(
        self, features: list[str], special: list[str], rows_at_once: int
    ) -> Iterator[RawRows]:
        """Yield the rows in order; ``special`` names labels and weights."""
        names = [name for name in [*features, *special] if name not in self.constants]
        first_row = 0
        with _naming(self.name):
            for batch in _batches(self.fragment, names, rows_at_once):
                batch.validate(full=True)  # otherwise pyarrow follows bad offsets
                for start in range(0, batch.num_rows, rows_at_once):
                    rows = batch.slice(start, rows_at_once)
                    X = np.empty((rows.num_rows, len(features)))
                    for j, column in enumerate(features):
                        X[:, j] = self._values(rows, column)
                    y, weight = ([self._values(rows, k) for k in special] + [None])[:2]
                    yield RawRows(X, y, weight, self.name, first_row)
                    first_row += rows.num_rows

    def _values(self, batch: Any, name: str) -> NDArray[Any]:
        """Return a column as an array; missing values become NaN or None."""
        if name in self.constants:
            return np.full(batch.num_rows, self.constants[name])
        column = batch.column(name)
        if hasattr(column, "dictionary_decode"):
            column = column.dictionary_decode()
        return column.to_numpy(zero_copy_only=False)

    def check(self, features: list[str], special: list[str]) -> None:
        """Raise if the file lacks a column, or has text where numbers are needed."""
        lacking = [name for name in [*features, *special] if name not in self.types]
        if lacking:
            raise ValueError(
                f"{self.name} lacks column {list_names(lacking)}. Give all files the "
                "same columns."
            )
        text = [
            f"'{name}' ({self.types[name]})"
            for name in [*features, *special[1:]]
            if not _is_number(self.types[name])
        ]
        if text:
            raise ValueError(
                f"Not numbers in {self.name or 'X'}: column {list_items(text)}. Encode "
                "such columns as numbers, or pass a dataset without them: "
                "dataset = pyarrow.dataset.dataset(path), then dataset."
                "replace_schema(dataset.schema.remove(k)) for column k."
            )


def _is_number(arrow_type: Any) -> bool:
    from pyarrow import types

    kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(is_kind(arrow_type) for is_kind in kinds)


def _name_columns(
    names: list[str], y: Any, weight: Any, where: str
) -> tuple[list[str], list[str]]:
    """Return the names of the features, and [y] or [y, weight]; raise if not found."""
    special = [y] if weight is None else [y, weight]
    for argument, name in zip(("y", "sample_weight"), special, strict=False):
        if not isinstance(name, str):
            raise ValueError(
                f"{argument} must be the name of a column of {where}, whose columns "
                f"are {list_names(names)}; got a {type(name).__name__}."
            )
    check_names_known(special, names, where)
    if y == weight:
        raise ValueError(f"Column '{y}' cannot be both y and sample_weight.")
    features = [name for name in names if name not in special]
    if not features:
        raise ValueError(
            f"Found array with 0 feature(s): no column of {where} is left besides "
            f"{list_names(special)}."
        )
    return features, special


def _batches(fragment: Any, names: list[str], rows_at_once: int) -> Iterator[Any]:
    """Yield record batches of some columns.

    The scanner of pyarrow decodes complete row groups of Parquet, and reads 40 batches
    of an Arrow file ahead (as of pyarrow 26), so these formats are read directly.
    """
    from pyarrow import ipc
    from pyarrow.parquet import ParquetFile

    kind = getattr(getattr(fragment, "format", None), "default_extname", None)
    if kind == "parquet":
        groups = [group.id for group in fragment.row_groups]
        with (
            fragment.open() as file,
            ParquetFile(file, buffer_size=BUFFER_SIZE, pre_buffer=False) as parquet,
        ):
            yield from parquet.iter_batches(
                rows_at_once, row_groups=groups, columns=names, use_threads=False
            )
    elif kind == "arrow":
        with fragment.open() as file:
            schema = ipc.open_file(file).schema
            fields = [schema.get_field_index(name) for name in names]
            options = ipc.IpcReadOptions(included_fields=fields, use_threads=False)
            reader = ipc.open_file(file, options=options)
            for k in range(reader.num_record_batches):
                yield reader.get_batch(k)
    else:
        yield from fragment.to_batches(
            columns=names, batch_size=rows_at_once, batch_readahead=1, use_threads=False
        )


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Convert errors of pyarrow to errors that name the file."""
    from pyarrow import ArrowException

    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{name} no longer exists.") from error
    except (ArrowException, OSError, UnicodeError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{name or 'X'} cannot be read: {reason}") from error


def _is_arrow(X: Any) -> bool:
    """Whether X is a pyarrow object, a path, or a list of paths."""
    if isinstance(X, list | tuple) and X:
        return all(isinstance(path, str | Path) for path in X)
    return isinstance(X, str | Path) or type(X).__module__.startswith("pyarrow")


def _open_arrow(X: Any, y: Any, sample_weight: Any, rows_at_once: int) -> RowSource:
    """Return the rows of files, a dataset or a table; y names a column."""
    try:
        import pyarrow as pa
        from pyarrow.dataset import Dataset, dataset
    except ImportError as error:
        raise ImportError(
            "Parquet and Arrow files are read by pyarrow, which is not installed: "
            'pip install "leaveout[parquet]".'
        ) from error
    if isinstance(X, pa.Table | pa.RecordBatch):
        X = dataset(X)
    if isinstance(X, Dataset):
        files, names, where = _files(X), X.schema.names, "X"
    elif isinstance(X, str | Path | list | tuple):
        paths = [X] if isinstance(X, str | Path) else X
        files = [file for path in paths for file in _files(_open_path(path))]
        names, where = list(files[0].types), files[0].name
    else:
        raise ValueError(
            f"A {type(X).__name__} of pyarrow can be read only once, but a fit reads "
            "the rows many times. Pass a pyarrow.Table, a pyarrow.dataset.Dataset, or "
            "paths of files."
        )
    features, special = _name_columns(names, y, sample_weight, where)
    for file in files:
        file.check(features, special)

    def pieces() -> Iterator[RawRows]:
        for file in files:
            yield from file.read(features, special, rows_at_once)

    schema = Schema(len(features), np.array(features, dtype=object))
    return RowSource(pieces, schema, rows_at_once, files[0].name or "X")


def _files(dataset: Any) -> list[File]:
    from pyarrow.dataset import get_partition_keys

    try:
        fragments = list(dataset.get_fragments())
    except ValueError as error:
        raise ValueError(
            f"The dataset cannot be read file by file: {error}. Pass it without "
            "filters and the like, or write the selected rows to a file."
        ) from error
    files = []
    for fragment in fragments:
        name = f"'{fragment.path}'" if hasattr(fragment, "path") else ""
        with _naming(name):
            types = {field.name: field.type for field in fragment.physical_schema}
        constants = get_partition_keys(fragment.partition_expression)
        types |= {key: dataset.schema.field(key).type for key in constants}
        files.append(File(fragment, name, types, constants))
    if not files:
        raise ValueError("Found array with 0 sample(s): X has no files with rows.")
    return files


def _open_path(path: str | Path) -> Any:
    """Return the dataset of one file, or of all files in a folder, recursively."""
    from pyarrow import ArrowException, dataset

    if "://" not in str(path) and not Path(path).exists():
        folder = Path(path).parent
        others = [file.name for file in folder.iterdir()] if folder.is_dir() else []
        hint = did_you_mean(Path(path).name, others)
        raise FileNotFoundError(f"No file or folder '{path}'.{hint}")
    reasons = []
    for kind in ("parquet", "ipc"):
        try:
            return dataset.dataset(str(path), format=kind, partitioning="hive")
        except (ArrowException, OSError, UnicodeError) as error:
            reasons.append(" ".join(str(error).split()))
    raise ValueError(
        f"'{path}' cannot be read as Parquet ({reasons[0]}) or as Arrow "
        f"({reasons[1]}). For other formats pass a dataset, such as "
        "pyarrow.dataset.dataset(path, format='csv')."
    )
