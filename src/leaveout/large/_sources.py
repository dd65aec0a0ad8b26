# SPDX-License-Identifier: BSD-3-Clause
"""Rows of Parquet files, Arrow datasets and dask collections.

Columns of Arrow by name: features, labels and weights, and their way to NumPy.

Files of Parquet and Arrow, read by parts that open the file themselves.

A part decodes no more rows than one block has (Parquet), or than one record batch of
the file (Arrow), and only the columns that are needed.

Rows of Parquet and Arrow files, of datasets and of tables of pyarrow.

Passes over rows on a Dask cluster: a task for each part, results added up in a tree.

Which parts are added up first depends on their number alone, never on the workers or on
who is ready first: the sums are the same numbers on every cluster. Everything a worker
has was made by a task, so that Dask makes it anew when the worker dies.

Rows that the workers of a cluster read, each its own parts.

Rows of dask arrays and dask dataframes, one partition at a time.

A partition is computed where its part is read: on a cluster, by the worker that needs
it. Nothing but that partition, and what it is made from, is then in memory.

Rows from anywhere, some thousand at a time: what a fit beyond memory reads.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from itertools import accumulate
from numbers import Integral, Real
from pathlib import Path
from tokenize import TokenError
from typing import Any, TypeVar

import numpy as np
from joblib.parallel import get_active_backend
from numpy.typing import NDArray
from scipy import sparse

from leaveout._messages import check_names_known, list_items, list_names
from leaveout._typing import IntArray
from leaveout.exceptions import ClusterLostError
from leaveout.large._rows import (
    Block,
    Part,
    PartedRows,
    RawRows,
    RowSource,
    Schema,
    column_names,
    file_not_here,
    is_frame,
    open_array,
    open_iterable,
)
from leaveout.run._parallel import Summable, sum_in_order
from leaveout.tables._files import other_files

# Pages come from the disk in bites of so many bytes, not a whole row group at a time.
BUFFER_SIZE = 2**18
# How files begin, and what pyarrow calls their format.
MAGIC = {b"PAR1": "parquet", b"ARROW1": "ipc"}
T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S", bound=Summable)
# So many neighbours are added up at a time.
FAN_IN = 8
# For what may pass, such as a disk that is away for a moment. A worker that dies does
# not count: for these Dask has distributed.scheduler.allowed-failures.
RETRIES = 2
# Dask warns of data in graphs. Rows in memory have to travel, and do so once.
NO_SIZE_WARNING = {"distributed.admin.large-graph-warning-threshold": "1 PiB"}
# A task costs the scheduler a millisecond, and its sums a journey.
MOST_TASKS = 1024


@dataclass(frozen=True)
class Columns:
    """Which columns are features, which is the target, which the weight.

    Parameters
    ----------
    features : tuple of str
        Columns of X, in the order of the file or table.
    target : str
        Column of labels.
    weight : str or None
        Column of weights.
    """

    features: tuple[str, ...]
    target: str
    weight: str | None = None

    @property
    def form(self) -> Schema:
        """What all rows have in common."""
        return Schema(len(self.features), np.array(self.features, dtype=object))

    @property
    def names(self) -> list[str]:
        """Names of all columns that are read."""
        special = [self.target] if self.weight is None else [self.target, self.weight]
        return [*self.features, *special]

    def pieces(
        self,
        batches: Iterable[Any],
        rows_at_once: int,
        *,
        name: str,
        first_row: int,
        constants: Mapping[str, Any],
    ) -> Iterator[RawRows]:
        """Yield the rows of record batches; constants has columns of one value."""
        for batch in batches:
            for start in range(0, batch.num_rows, rows_at_once):
                rows = batch.slice(start, rows_at_once)
                yield self._piece(rows, name, first_row + start, constants)
            first_row += batch.num_rows

    def _piece(
        self, batch: Any, name: str, first_row: int, constants: Mapping[str, Any]
    ) -> RawRows:
        def values(column: str) -> NDArray[Any]:
            if column in constants:
                return np.full(batch.num_rows, constants[column])
            return _to_numpy(batch.column(column))

        X = np.empty((batch.num_rows, len(self.features)))
        for j, column in enumerate(self.features):
            X[:, j] = values(column)
        weight = None if self.weight is None else values(self.weight)
        return RawRows(X, values(self.target), weight, name, first_row)


def assign_columns(names: list[str], y: Any, weight: Any, where: str) -> Columns:
    """Give columns their roles by the names of target and weight; the rest is X."""
    for argument, name in (("y", y), ("sample_weight", weight)):
        if not isinstance(name, str) and (argument == "y" or name is not None):
            raise ValueError(
                f"{argument} must be the name of a column of {where}, whose columns "
                f"are {list_names(names)}; got a {type(name).__name__}."
            )
    special = [y] if weight is None else [y, weight]
    check_names_known(special, names, where)
    if y == weight:
        raise ValueError(f"Column '{y}' cannot be both y and sample_weight.")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise ValueError(
            f"More than one column of {where} is named {list_names(twice)}. Rename "
            "them."
        )
    features = tuple(name for name in names if name not in special)
    if not features:
        raise ValueError(
            f"Found array with 0 feature(s): no column of {where} is left beside "
            f"{list_names(special)}."
        )
    return Columns(features, y, weight)


def check_types(types: Mapping[str, Any], columns: Columns, where: str) -> None:
    """Refuse features and weights that are not numbers, by name and type."""
    text = [
        f"'{name}' ({types[name]})"
        for name in columns.names
        if name != columns.target and kind_of(types[name]) != "numbers"
    ]
    if text:
        raise ValueError(
            f"Not numbers in {where}: column {list_items(text)}. Encode such columns "
            "as numbers, or leave them out by a dataset of fewer columns: "
            "dataset = pyarrow.dataset.dataset(path), then dataset.replace_schema("
            "dataset.schema.remove(k)) for column k."
        )


def kind_of(arrow_type: Any) -> str:
    """Return "numbers", "text", or the name of another type."""
    from pyarrow import types

    if types.is_dictionary(arrow_type):
        # Categories of numbers are codes, not measurements: as labels they will do.
        return f"categories of {kind_of(arrow_type.value_type)}"
    numbers = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if any(is_kind(arrow_type) for is_kind in numbers):
        return "numbers"
    if types.is_string(arrow_type) or types.is_large_string(arrow_type):
        return "text"
    return str(arrow_type)


def _to_numpy(column: Any) -> NDArray[Any]:
    """Return a column of a batch as an array; what is missing becomes NaN or None."""
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    return column.to_numpy(zero_copy_only=False)


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

    def pieces(self) -> Iterator[RawRows]:
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

    def pieces(self) -> Iterator[RawRows]:
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


class Cluster:
    """The Dask cluster that joblib is told to use.

    Parameters
    ----------
    client : distributed.Client
        The connection to its scheduler.
    """

    def __init__(self, client: Any) -> None:
        self.client = client

    @classmethod
    def active(cls) -> Cluster | None:
        """Return the cluster of ``joblib.parallel_config("dask")``, None without.

        None also inside of a task of that cluster: its workers are busy already.

        Examples
        --------
        >>> Cluster.active() is None
        True
        """
        backend, _ = get_active_backend()
        if type(backend).__module__ != "joblib._dask" or _is_worker():
            return None
        return cls(backend.client)

    def place(self, items: Iterable[Any]) -> list[Any]:
        """Bring things to the workers; return a future for each."""
        import dask

        with self._losses_told(), dask.config.set(NO_SIZE_WARNING):
            return [
                self.client.submit(_itself, item, pure=False, retries=RETRIES)
                for item in items
            ]

    def keep(self, function: Callable[[Any], Any], placed: Sequence[Any]) -> list[Any]:
        """Leave ``function(item)`` of each placed item where it is computed."""
        with self._losses_told():
            return list(self._compute(self._apply(function, placed)))

    def fetch(self, function: Callable[[Any], R], placed: Sequence[Any]) -> list[R]:
        """Return ``function(item)`` of each placed item, in their order."""
        with self._losses_told():
            futures = self._compute(self._apply(function, placed))
            return list(self.client.gather(futures))

    def sum(self, job: Callable[[Any], S], placed: Sequence[Any]) -> S:
        """Add up ``job(block)`` over the blocks of all placed items, in their order."""
        from dask import delayed

        level = self._apply(_SumBlocks(job), placed)
        while len(level) > 1:
            level = [
                delayed(_add_up, pure=False)(level[i : i + FAN_IN])
                for i in range(0, len(level), FAN_IN)
            ]
        with self._losses_told():
            # A copy: what came over the network may be read-only.
            return deepcopy(self._compute(level)[0].result())

    def _apply(self, function: Callable[[Any], Any], placed: Sequence[Any]) -> Any:
        """Return one task for each item; the function travels once for all."""
        from dask import delayed

        shared = delayed(function, pure=False, traverse=False)
        call = delayed(_call, pure=False)
        return [call(shared, item) for item in placed]

    def _compute(self, tasks: list[Any]) -> Any:
        return self.client.compute(tasks, retries=RETRIES, optimize_graph=False)

    @contextmanager
    def _losses_told(self) -> Iterator[None]:
        """Say in our words that the cluster is gone; errors of tasks go through."""
        from distributed import CancelledError, KilledWorker
        from distributed.client import ClosedClientError
        from distributed.comm import CommClosedError
        from distributed.scheduler import NoWorkerError

        try:
            yield
        except (CancelledError, ClosedClientError, CommClosedError) as error:
            address = getattr(self.client.scheduler, "address", "")
            raise ClusterLostError(
                f"The Dask scheduler {address} was lost: {_first_line(error)}"
            ) from error
        except (KilledWorker, NoWorkerError) as error:
            raise ClusterLostError(
                f"The workers of the Dask cluster were lost: {_first_line(error)} If "
                "they ran out of memory, take fewer rows_at_once or give them more."
            ) from error


class _SumBlocks:
    """Add up what a job makes of the blocks of one item."""

    def __init__(self, job: Callable[[Any], Any]) -> None:
        self.job = job

    def __call__(self, blocks: Iterable[Any]) -> Any:
        return sum_in_order(self.job, blocks, n_threads=1)


def _add_up(sums: list[Any]) -> Any:
    """Add neighbours up. Dask may need them again, so they must stay as they are."""
    first, *others = map(deepcopy, sums)
    for other in others:
        first.add(other)
    return first


def _call(function: Callable[[Any], Any], item: Any) -> Any:
    return function(item)


def _itself(item: T) -> T:
    return item


def _is_worker() -> bool:
    """Whether this is a task on a worker."""
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return False
    return True


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


@dataclass(frozen=True)
class Bundle:
    """Consecutive parts, which one task reads."""

    parts: tuple[Part, ...]

    def __iter__(self) -> Iterator[Block]:
        """Read all rows in order."""
        for part in self.parts:
            yield from part.read()

    @property
    def stop(self) -> int:
        """Number of the row after the last one."""
        return self.parts[-1].start + (self.parts[-1].n_rows or 0)


@dataclass(frozen=True)
class SerializedParts:
    """A bundle in a form that only its reader opens.

    The scheduler and other workers pass it on, and need not see the files: to pickle
    one of pyarrow's anew means to open it.
    """

    content: bytes

    @classmethod
    def of(cls, parts: Sequence[Part]) -> SerializedParts:
        """Pack parts, functions of the user among them."""
        import cloudpickle  # comes with dask

        return cls(cloudpickle.dumps(Bundle(tuple(parts))))

    def __iter__(self) -> Iterator[Block]:
        """Read all rows in order."""
        return iter(pickle.loads(self.content))


class DistributedRows:
    """Rows on a cluster: what each worker needs to read its own is there.

    Parameters
    ----------
    cluster : Cluster
        The workers.
    bundles : list of futures
        Each an iterable of blocks.
    stops : ndarray of int
        Number of the row after the last one of each bundle.
    """

    def __init__(
        self, cluster: Cluster, bundles: Sequence[Any], stops: IntArray
    ) -> None:
        self.cluster, self.bundles, self.stops = cluster, list(bundles), stops

    @classmethod
    def of(cls, source: RowSource, cluster: Cluster) -> DistributedRows:
        """Send the parts of a source to the workers; files are read there."""
        bundles = bundle_parts(_counted_parts(source, cluster), MOST_TASKS)
        stops = np.array([bundle.stop for bundle in bundles])
        packed = (SerializedParts.of(bundle.parts) for bundle in bundles)
        return cls(cluster, cluster.place(packed), stops)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.stops[-1])

    def sum(self, job: Callable[[Any], S]) -> S:
        """Add up what a job makes of every block: one pass."""
        return self.cluster.sum(job, self.bundles)

    def keep(self, make: Callable[[Any], Any]) -> DistributedRows:
        """Leave what is made of each bundle with the workers."""
        return DistributedRows(
            self.cluster, self.cluster.keep(make, self.bundles), self.stops
        )

    def fetch(self, pick: Callable[[Any], R], index: IntArray) -> list[R]:
        """Return what is picked from the bundles that have rows with these numbers."""
        owners = np.unique(np.searchsorted(self.stops, index, side="right"))
        return self.cluster.fetch(pick, [self.bundles[k] for k in owners])


def bundle_parts(parts: Sequence[Part], most: int) -> list[Bundle]:
    """Join neighbours so that there are no more than so many bundles.

    Examples
    --------
    >>> import numpy as np
    >>> parts = open_rows(np.eye(5), list("aabba"), rows_at_once=1).parts
    >>> [len(bundle.parts) for bundle in bundle_parts(parts, most=2)]
    [3, 2]
    """
    size = -(-len(parts) // most)
    return [Bundle(tuple(parts[i : i + size])) for i in range(0, len(parts), size)]


def _counted_parts(source: RowSource, cluster: Cluster) -> Sequence[Part]:
    """Return the parts, each with its first row; workers count where nobody has."""
    if isinstance(source, PartedRows):
        source.count(lambda parts: _count_there(parts, cluster))
    if source.parts is None:
        raise ValueError(
            "Blocks of an iterable can be read by one process only, from front to "
            "back, and not by the workers of a Dask cluster. Write them to Parquet "
            "files that the workers can read, or fit without "
            'joblib.parallel_config("dask").'
        )
    return source.parts


def _count_there(parts: Sequence[Part], cluster: Cluster) -> list[int]:
    placed = cluster.place(SerializedParts.of([part]) for part in parts)
    return cluster.fetch(_count_rows, placed)


def _count_rows(blocks: Iterable[Block]) -> int:
    return sum(len(block.y) for block in blocks)


def is_dask(X: Any) -> bool:
    """Whether X is a collection of dask."""
    return hasattr(X, "__dask_graph__")


def open_dask(X: Any, y: Any, sample_weight: Any, rows_at_once: int) -> PartedRows:
    """Return the rows of a dask array or dataframe; every partition is a part."""
    if getattr(X, "ndim", 0) != 2:
        raise ValueError(
            "Expected 2D array or a dataframe of dask, got a "
            f"{type(X).__module__}.{type(X).__name__} instead. Reshape your data."
        )
    if not hasattr(X, "columns") and X.numblocks[1] > 1:
        X = X.rechunk({1: X.shape[1]})  # rows must be whole
    if y is None:
        raise ValueError(
            "The classifier requires y to be passed, but the target y is None. Pass "
            "one label per row of X, or the name of their column."
        )
    form = Schema(int(X.shape[1]), column_names(X))
    sizes = _sizes(X)
    y = _cut_like(sizes, y, "y")
    if sample_weight is not None and not isinstance(sample_weight, Real):
        sample_weight = _cut_like(sizes, sample_weight, "sample_weight")
    parts = []
    for k, n_rows in enumerate(sizes):
        X_k, y_k, weight_k = (_partition(c, k) for c in (X, y, sample_weight))
        reader = PartitionReader(X_k, y_k, weight_k, k)
        parts.append(Part(reader, form, rows_at_once, n_rows=n_rows))
    return PartedRows(parts, form)


@dataclass(frozen=True)
class PartitionReader:
    """One partition of X and y, yet to be computed; weights too, or one, or none."""

    X: Any
    y: Any
    weight: Any
    k: int

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"partition {self.k} of the dask collection"

    def pieces(self) -> Iterator[RawRows]:
        """Compute the partition with the scheduler that dask finds, and yield it."""
        import dask

        X, y, weight = dask.compute(*self._delayed())
        yield RawRows(X, y, weight, self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        import dask

        return PartitionReader, (*dask.optimize(*self._delayed()), self.k)

    def _delayed(self) -> list[Any]:
        """Arrays and frames in one form, whose graphs can be cut to what they need."""
        from dask.delayed import Delayed

        return [
            np.ravel(lazy.to_delayed())[0]
            if is_dask(lazy) and not isinstance(lazy, Delayed)
            else lazy
            for lazy in (self.X, self.y, self.weight)
        ]


def _partition(values: Any, k: int) -> Any:
    return values.partitions[k] if is_dask(values) else values


def _sizes(collection: Any) -> list[int | None]:
    """Return the rows of each partition, None where dask does not know them."""
    if not hasattr(collection, "chunks"):
        return [None] * collection.npartitions
    return [None if np.isnan(size) else int(size) for size in collection.chunks[0]]


def _cut_like(sizes: list[int | None], values: Any, argument: str) -> Any:
    """Return labels or weights as a collection that is cut at the same rows as X."""
    if not is_dask(values):
        if None in sizes:
            raise ValueError(
                f"{argument} is a {type(values).__name__}, but dask does not know how "
                "many rows each partition of X has. Pass the name of a column, or a "
                f"dask collection that is partitioned as X is, as {argument}."
            )
        from dask import array as da

        values = da.from_array(np.asarray(values), chunks=-1)
    found = _sizes(values)
    unknown = None in found or None in sizes
    if found == sizes or (unknown and len(found) == len(sizes)):
        return values
    if not unknown and _total(found) == _total(sizes):
        return values.rechunk({0: tuple(sizes)})
    raise ValueError(
        f"X has {_describe(sizes)}, {argument} has {_describe(found)}. Cut both at the "
        "same rows."
    )


def _total(sizes: list[int | None]) -> int:
    return sum(size or 0 for size in sizes)


def _describe(sizes: list[int | None]) -> str:
    rows = "" if None in sizes else f" with {_total(sizes)} rows"
    return f"{len(sizes)} partition(s){rows}"


def open_rows(
    X: Any, y: Any = None, sample_weight: Any = None, *, rows_at_once: int = 16384
) -> RowSource:
    """Open rows to be read in blocks, many times over.

    Parameters
    ----------
    X : array, table, sparse matrix, path, dataset, dask collection or iterable
        One of

        - an array, ``numpy.memmap``, pandas or polars table, SciPy sparse matrix, or
          the path of an ``.npy`` file;
        - the path of a Parquet or Arrow file or of a folder of them, or a list of
          such paths; a ``pyarrow.Table`` or ``pyarrow.dataset.Dataset``;
        - a dask array or dask dataframe;
        - an iterable of blocks (X, y) or (X, y, weight) that can be iterated over
          again: a list, or a function without arguments that returns an iterator.
    y : array-like of shape (n_rows,), str or None
        Labels, or the name of their column, which files need; the path of an ``.npy``
        file beside one. None if X is an iterable of blocks.
    sample_weight : array-like of shape (n_rows,), float, str or None
        Weights >= 0, or the name of their column.
    rows_at_once : int, default=16384
        Rows per block. A reader holds so many rows in memory; while it joins small
        blocks of an iterable up to as many again; of an Arrow file one of its record
        batches; of a dask collection the partition.

    Returns
    -------
    RowSource
        What is wrong with single rows is found when they are read.

    Raises
    ------
    ValueError
        The message names file (or block), row and column, and what to do.

    Examples
    --------
    >>> import numpy as np
    >>> rows = open_rows(np.eye(5), list("aabba"), rows_at_once=2)
    >>> [(block.start, block.y.tolist()) for block in rows.blocks()]
    [(0, ['a', 'a']), (2, ['b', 'b']), (4, ['a'])]
    >>> next(rows.parts[1].read()).X
    array([[0., 0., 1., 0., 0.],
           [0., 0., 0., 1., 0.]])
    """
    if not isinstance(rows_at_once, Integral) or rows_at_once < 1:
        raise ValueError(
            f"rows_at_once must be a whole number of rows, 1 or more; got "
            f"{rows_at_once!r}."
        )
    rows_at_once = int(rows_at_once)
    if _is_npy(X):
        path = X
        X, y, sample_weight = (_map_npy(values) for values in (X, y, sample_weight))
        if X.ndim != 2:
            raise ValueError(
                f"'{path}' has an array of shape {X.shape}; it must have two "
                "dimensions, rows and columns."
            )
    if is_arrow(X):
        return open_arrow(X, y, sample_weight, rows_at_once)
    if is_frame(X) and (isinstance(y, str) or isinstance(sample_weight, str)):
        X, y, sample_weight = _split_frame(X, y, sample_weight)
    if is_dask(X):
        return open_dask(X, y, sample_weight, rows_at_once)
    if y is None and _gives_blocks(X):
        if sample_weight is not None:
            raise ValueError(
                "sample_weight cannot stand beside an iterable of blocks. Put the "
                "weights into the blocks: (X, y, weight)."
            )
        return open_iterable(X, rows_at_once)
    return open_array(X, y, sample_weight, rows_at_once)


def _is_npy(path: Any) -> bool:
    return isinstance(path, str | Path) and Path(path).suffix == ".npy"


def _map_npy(path: Any) -> Any:
    """Return the array in a file without reading it; what is no path stays as it is."""
    if not _is_npy(path):
        return path
    try:
        return np.load(path, mmap_mode="r")
    except FileNotFoundError as error:
        raise FileNotFoundError(f"No file '{path}'.") from error
    except (ValueError, OSError, EOFError, SyntaxError, TokenError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"'{path}' cannot be mapped to memory: {reason}") from error


def _split_frame(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Take the columns named as labels and weights out of a table."""
    special = [name for name in (y, sample_weight) if isinstance(name, str)]
    check_names_known(special, list(X.columns), "X")
    features = X[[name for name in X.columns if name not in special]]
    y, sample_weight = (
        X[name] if isinstance(name, str) else name for name in (y, sample_weight)
    )
    return features, y, sample_weight


def _gives_blocks(X: Any) -> bool:
    """Whether X is code of the user that makes blocks, or a list of them."""
    if isinstance(X, np.ndarray) or is_frame(X) or sparse.issparse(X):
        return False
    return callable(X) or hasattr(X, "__iter__")
