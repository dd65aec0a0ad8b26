# SPDX-License-Identifier: BSD-3-Clause
"""Rows of Parquet and Arrow files, of datasets and of tables of pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leaveout.data._arrow_columns import (
    Columns,
    assign_columns,
    check_types,
    kind_of,
)
from leaveout.data._arrow_files import file_parts, naming
from leaveout.data._names import list_names
from leaveout.data._row_checks import Piece
from leaveout.data._row_parts import Part, PartedRows
from leaveout.data._table import other_files

# How files begin, and what pyarrow calls their format.
MAGIC = {b"PAR1": "parquet", b"ARROW1": "ipc"}


def is_arrow(X: Any) -> bool:
    """Whether X is something of pyarrow, a path, or a list of paths."""
    if isinstance(X, list | tuple) and X:
        return all(isinstance(path, str | Path) for path in X)
    return isinstance(X, str | Path) or type(X).__module__.startswith("pyarrow")


def open_arrow(X: Any, y: Any, sample_weight: Any, rows_at_once: int) -> PartedRows:
    """Return the rows of files, of a dataset or of a table; y names a column."""
    try:
        import pyarrow as pa
        from pyarrow.dataset import Dataset
    except ImportError as error:
        raise ImportError(
            "Parquet and Arrow files are read by pyarrow, which is not installed: "
            'pip install "leaveout[parquet]".'
        ) from error
    if isinstance(X, pa.RecordBatch):
        X = pa.Table.from_batches([X])
    if isinstance(X, pa.Table):
        return _open_table(X, y, sample_weight, rows_at_once)
    if isinstance(X, Dataset):
        files = _files(X)
        columns = assign_columns(X.schema.names, y, sample_weight, "the dataset")
    elif isinstance(X, str | Path | list | tuple):
        paths = [X] if isinstance(X, str | Path) else X
        files = [file for path in paths for file in _files(_open_path(path))]
        first = files[0]
        columns = assign_columns(list(first.types), y, sample_weight, first.name)
        _check_same_columns(files)
    else:
        raise ValueError(
            f"A {type(X).__name__} of pyarrow cannot be read many times, as a fit "
            "does. Pass a pyarrow.Table, a pyarrow.dataset.Dataset, or paths of files."
        )
    _check_needed_columns(files, columns)
    parts = [part for file in files for part in file.parts(columns, rows_at_once)]
    return PartedRows(parts, columns.form, files[0].name)


# Tables in memory


def _open_table(
    table: Any, y: Any, sample_weight: Any, rows_at_once: int
) -> PartedRows:
    columns = assign_columns(table.column_names, y, sample_weight, "X")
    check_types({field.name: field.type for field in table.schema}, columns, "X")
    table = table.select(columns.names)
    parts = []
    for start in range(0, table.num_rows, rows_at_once):
        rows = table.slice(start, rows_at_once)
        reader = TableReader(rows, columns, start)
        parts.append(Part(reader, columns.form, rows_at_once, n_rows=rows.num_rows))
    return PartedRows(parts, columns.form)


@dataclass(frozen=True)
class TableReader:
    """Some rows of a table; they travel without the others in the same memory."""

    table: Any
    columns: Columns
    first_row: int
    name: str = ""

    def pieces(self) -> Iterator[Piece]:
        """Yield the rows as they lie in memory."""
        return self.columns.pieces(
            self.table.to_batches(),
            self.table.num_rows,
            name=self.name,
            first_row=self.first_row,
            constants={},
        )

    def __reduce__(self) -> tuple[Any, ...]:
        import pyarrow as pa

        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.table.schema) as writer:
            writer.write_table(self.table)
        return _unpack_table, (sink.getvalue(), self.columns, self.first_row)


def _unpack_table(stream: Any, columns: Columns, first_row: int) -> TableReader:
    import pyarrow as pa

    return TableReader(pa.ipc.open_stream(stream).read_all(), columns, first_row)


# Files


@dataclass(frozen=True)
class File:
    """A file of a dataset (for pyarrow a fragment) and the types of its columns.

    ``constants`` are columns told by the names of folders, as in kind=a/1.parquet.
    """

    fragment: Any
    name: str
    types: dict[str, Any]
    constants: dict[str, Any]

    def parts(self, columns: Columns, rows_at_once: int) -> Iterator[Part]:
        """Yield what can be read apart."""
        with naming(self.name):
            yield from file_parts(
                self.fragment, columns, self.name, self.constants, rows_at_once
            )


def _files(dataset: Any) -> list[File]:
    """Return the files of a dataset."""
    from pyarrow.dataset import get_partition_keys

    try:
        fragments = list(dataset.get_fragments())
    except ValueError as error:
        raise ValueError(
            f"The dataset does not fall into files: {error}. Pass it as it was before "
            "filter and the like, or write the chosen rows to a file."
        ) from error
    files = []
    for k, fragment in enumerate(fragments):
        path = getattr(fragment, "path", None)
        name = f"fragment {k} of the dataset" if path is None else f"'{path}'"
        with naming(name):
            types = {field.name: field.type for field in fragment.physical_schema}
        constants = get_partition_keys(fragment.partition_expression)
        types |= {key: dataset.schema.field(key).type for key in constants}
        files.append(File(fragment, name, types, constants))
    if not files:
        raise ValueError("The dataset has no files.")
    return files


def _open_path(path: str | Path) -> Any:
    """Return the dataset of one file, or of all files in a folder and below."""
    from pyarrow import dataset

    if "://" in str(path):  # in an object store, where looking costs a request
        return dataset.dataset(str(path), format="parquet", partitioning="hive")
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"No file or folder '{path}'.{other_files(path)}")
    first = next(_data_files(path), None) if path.is_dir() else path
    if first is None:
        raise ValueError(f"The folder '{path}' has no files with rows.")
    with first.open("rb") as file:
        start = file.read(6)
    kind = next(
        (kind for magic, kind in MAGIC.items() if start.startswith(magic)), None
    )
    if kind is None:
        raise ValueError(
            f"'{first}' is neither a Parquet nor an Arrow file. For other formats pass "
            "a dataset, such as pyarrow.dataset.dataset(path, format='csv')."
        )
    with naming(f"'{path}'"):
        return dataset.dataset(path, format=kind, partitioning="hive")


def _data_files(folder: Path) -> Iterator[Path]:
    """Yield the files that pyarrow reads: hidden ones and _metadata are none."""
    for file in sorted(folder.rglob("*")):
        names = file.relative_to(folder).parts
        if file.is_file() and not any(name.startswith((".", "_")) for name in names):
            yield file


def _check_same_columns(files: Sequence[File]) -> None:
    """Refuse a file that has other columns than the first, whatever their order."""
    first = files[0]
    for file in files[1:]:
        lacking = [name for name in first.types if name not in file.types]
        extra = [name for name in file.types if name not in first.types]
        if lacking or extra:
            both = [
                f"{word} {list_names(names)}"
                for word, names in (("lacks", lacking), ("has also", extra))
                if names
            ]
            raise ValueError(
                f"{file.name} has other columns than {first.name}: it "
                f"{' and '.join(both)}. Give all files the same columns."
            )


def _check_needed_columns(files: Sequence[File], columns: Columns) -> None:
    """Refuse files that lack a column, or have text where numbers are needed."""
    labels = ""
    for file in files:
        lacking = [name for name in columns.names if name not in file.types]
        if lacking:
            raise ValueError(
                f"{file.name} lacks column {list_names(lacking)} of the dataset. Give "
                "all files the same columns."
            )
        check_types(file.types, columns, file.name)
        kind = kind_of(file.types[columns.target])
        labels = labels or kind
        if kind != labels:
            raise ValueError(
                f"The labels '{columns.target}' are {kind} in {file.name}, but "
                f"{labels} in {files[0].name}. Give labels of one kind."
            )
