# SPDX-License-Identifier: BSD-3-Clause
"""Files of Parquet and Arrow, read by parts that open the file themselves.

A part decodes no more rows than one block has (Parquet), or than one record batch of
the file (Arrow), and only the columns that are needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from leaveout.data._arrow_columns import Columns
from leaveout.data._row_checks import Piece
from leaveout.data._row_parts import Part, file_not_here

# Pages come from the disk in bites of so many bytes, not a whole row group at a time.
BUFFER_SIZE = 2**18


@dataclass(frozen=True)
class FileReader:
    """Consecutive rows of one file.

    Parameters
    ----------
    fragment : pyarrow.dataset.Fragment
        The file, by path and file system.
    columns : Columns
        What to read.
    name : str
        What messages call the file.
    constants : dict
        Columns that are not in the file but in the names of its folders, kind=a/.
    rows_at_once : int
        Most rows to decode at a time.
    first_row : int
        Row of the file with which this part begins.
    """

    fragment: Any
    columns: Columns
    name: str
    constants: Mapping[str, Any]
    rows_at_once: int
    first_row: int = 0

    def pieces(self) -> Iterator[Piece]:
        """Yield the rows in order."""
        with naming(self.name):
            yield from self.columns.pieces(
                _validated(self.batches()),
                self.rows_at_once,
                name=self.name,
                first_row=self.first_row,
                constants=self.constants,
            )

    @property
    def stored(self) -> list[str]:
        """Names of the columns that are in the file."""
        return [name for name in self.columns.names if name not in self.constants]

    def batches(self) -> Iterator[Any]:
        """Yield record batches, in whatever way pyarrow reads this format."""
        yield from self.fragment.to_batches(
            columns=self.stored,
            batch_size=self.rows_at_once,
            batch_readahead=1,
            fragment_readahead=1,
            use_threads=False,
        )


@dataclass(frozen=True)
class ParquetReader(FileReader):
    """Some row groups of a Parquet file, page by page."""

    row_groups: tuple[int, ...] = ()

    def batches(self) -> Iterator[Any]:
        """Yield batches of at most rows_at_once rows, also across row groups."""
        from pyarrow.parquet import ParquetFile

        # Not through the dataset: its scanner decodes a row group as a whole.
        with (
            self.fragment.open() as file,
            ParquetFile(file, buffer_size=BUFFER_SIZE, pre_buffer=False) as parquet,
        ):
            yield from parquet.iter_batches(
                batch_size=self.rows_at_once,
                row_groups=list(self.row_groups),
                columns=self.stored,
                use_threads=False,
            )


@dataclass(frozen=True)
class ArrowReader(FileReader):
    """An Arrow (Feather) file, one of its record batches at a time."""

    def batches(self) -> Iterator[Any]:
        """Yield the record batches of the file."""
        from pyarrow import ipc

        with self.fragment.open() as file:
            schema = ipc.open_file(file).schema
            fields = [schema.get_field_index(name) for name in self.stored]
            options = ipc.IpcReadOptions(included_fields=fields, use_threads=False)
            reader = ipc.open_file(file, options=options)
            for k in range(reader.num_record_batches):
                yield reader.get_batch(k)


def file_parts(
    fragment: Any,
    columns: Columns,
    name: str,
    constants: Mapping[str, Any],
    rows_at_once: int,
) -> Iterator[Part]:
    """Yield the parts of a file: row groups of Parquet, else the whole file."""

    def part(reader: FileReader, n_rows: int | None) -> Part:
        return Part(reader, columns.form, rows_at_once, n_rows=n_rows)

    common = (fragment, columns, name, constants, rows_at_once)
    kind = getattr(getattr(fragment, "format", None), "default_extname", None)
    if kind == "parquet":
        for first_row, row_groups, n_rows in _join_row_groups(fragment, rows_at_once):
            yield part(ParquetReader(*common, first_row, row_groups), n_rows)
    elif kind == "arrow":
        yield part(ArrowReader(*common), fragment.count_rows())
    else:
        yield part(FileReader(*common), None)


def _join_row_groups(
    fragment: Any, rows_at_once: int
) -> Iterator[tuple[int, tuple[int, ...], int]]:
    """Yield first row, row groups and their rows, each but the last a block or more."""
    metadata = fragment.metadata
    sizes = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
    starts = list(accumulate(sizes, initial=0))
    joined: list[int] = []
    n_rows = 0
    for group in fragment.row_groups:
        # A dataset may have picked row groups: only neighbours have rows in a row.
        if joined and (n_rows >= rows_at_once or group.id != joined[-1] + 1):
            yield starts[joined[0]], tuple(joined), n_rows
            joined, n_rows = [], 0
        joined.append(group.id)
        n_rows += sizes[group.id]
    if joined:
        yield starts[joined[0]], tuple(joined), n_rows


def _validated(batches: Iterator[Any]) -> Iterator[Any]:
    """Refuse batches that point outside of themselves: pyarrow would follow."""
    for batch in batches:
        batch.validate(full=True)
        yield batch


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Turn the errors of pyarrow into ours, which name the file."""
    from pyarrow import ArrowException

    try:
        yield
    except FileNotFoundError as error:
        raise file_not_here(name) from error
    except (ArrowException, OSError, UnicodeError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{name} cannot be read: {reason}") from error
