# SPDX-License-Identifier: BSD-3-Clause
"""The same number for the same data or parameters, in every process."""

from __future__ import annotations

import dis
import functools
import hashlib
import sysconfig
import types
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import numpy as np
from scipy import sparse


def fingerprint(thing: Any) -> str:
    """Return a SHA-256 of what an object holds, whatever its address in memory.

    Parameters
    ----------
    thing : object
        Numbers, texts, arrays, sparse matrices, tables, estimators, functions, and
        lists, tuples, sets and dicts of these. Numbers count by value: 1, 1.0 and
        ``np.float64(1)`` are the same.

    Raises
    ------
    TypeError
        For an object whose content cannot be seen.

    Examples
    --------
    >>> import numpy as np
    >>> from leaveout.run import fingerprint
    >>> fingerprint({"C": [1, 10]}) == fingerprint({"C": np.array([1.0, 10.0])})
    True
    >>> fingerprint([1, 2]) == fingerprint([2, 1])
    False
    """
    digest = hashlib.sha256()
    for part in _parts(thing):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def _parts(thing: Any) -> Iterator[bytes]:
    """Yield the content piece by piece."""
    if thing is None or isinstance(thing, str | bytes | type):
        name = thing.__qualname__ if isinstance(thing, type) else thing
        yield f"{type(thing).__name__} {name!r}".encode()
    elif isinstance(thing, bool | int | float | complex | np.number | np.bool_):
        yield f"number {complex(thing)!r}".encode()
    elif isinstance(thing, np.ndarray):
        yield from _array_parts(thing)
    elif sparse.issparse(thing):
        rows = thing.tocsr(copy=True)
        rows.sum_duplicates()
        yield f"sparse {rows.shape}".encode()
        for array in (rows.indptr, rows.indices, rows.data):
            yield from _array_parts(np.asarray(array))
    elif isinstance(thing, Mapping):
        yield f"mapping {len(thing)}".encode()
        for key in sorted(thing, key=repr):
            yield from _parts(key)
            yield from _parts(thing[key])
    elif isinstance(thing, list | tuple | range):
        yield from _list_parts(list(thing))
    elif isinstance(thing, set | frozenset):
        yield from _list_parts(sorted(fingerprint(item) for item in thing))
    elif hasattr(thing, "columns") or hasattr(thing, "to_numpy"):
        yield from _table_parts(thing)
    elif hasattr(thing, "get_params"):
        yield from _parts([type(thing), thing.get_params(deep=False)])
    else:
        yield from _callable_parts(thing)


def _array_parts(array: np.ndarray) -> Iterator[bytes]:
    """Numbers as float64, whatever they were; objects one by one."""
    yield f"array {array.shape}".encode()
    if array.dtype.kind in "biuf":
        yield np.ascontiguousarray(array, dtype=np.float64).tobytes()
        return
    for item in array.ravel().tolist():
        yield from _parts(item)


def _list_parts(items: list[Any]) -> Iterator[bytes]:
    """As the array of the same numbers if it is one."""
    try:
        array = np.asarray(items)
    except ValueError:  # ragged
        array = np.empty(0, dtype=object)
    if array.dtype.kind in "biuf" and array.size:
        yield from _array_parts(array)
        return
    yield f"array {(len(items),)}".encode()
    for item in items:
        yield from _parts(item)


def _table_parts(table: Any) -> Iterator[bytes]:
    """Yield a column, or a table by columns, of pandas, polars or pyarrow."""
    if not hasattr(table, "columns"):
        yield from _parts(table.to_numpy())
        return
    names = getattr(table, "column_names", table.columns)
    for position, name in enumerate(names):
        yield from _parts(str(name))
        column = table.iloc[:, position] if hasattr(table, "iloc") else table[name]
        yield from _parts(column.to_numpy())


def _callable_parts(thing: Any) -> Iterator[bytes]:
    """Yield what a function does, or what else a thing is made of."""
    if isinstance(thing, functools.partial):
        yield from _parts(["partial", thing.func, thing.args, thing.keywords])
    elif isinstance(thing, types.FunctionType):
        yield from _function_parts(thing)
    elif isinstance(thing, types.MethodType):
        yield from _parts([thing.__func__, thing.__self__])
    elif isinstance(thing, types.BuiltinFunctionType | np.ufunc | types.ModuleType):
        yield from _parts(thing.__name__)
    elif hasattr(thing, "__dict__"):
        yield from _parts([type(thing), vars(thing)])
    else:
        raise TypeError(
            f"{thing!r} cannot be compared with that of a later run: its content is "
            "not visible. Use a plain value in its place, such as an int for a "
            "random_state."
        )


# Functions whose content is being told: they may call themselves, or each other.
_being_told: ContextVar[tuple[types.FunctionType, ...]] = ContextVar(
    "_being_told", default=()
)


def _function_parts(function: types.FunctionType) -> Iterator[bytes]:
    """Yield code, defaults and closure, and what it reads of its module.

    Installed modules have versions, which are not watched here.
    """
    yield function.__qualname__.encode()
    yield from _code_parts(function.__code__)
    told = _being_told.get()
    if function in told:
        return
    token = _being_told.set((*told, function))
    try:
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        yield from _parts([function.__defaults__, function.__kwdefaults__, cells])
        if not _is_installed(function):
            yield from _parts(_globals_read(function))
    finally:
        _being_told.reset(token)


def _is_installed(function: types.FunctionType) -> bool:
    own = (__package__ or "").partition(".")[0]
    folders = ("stdlib", "platstdlib", "purelib", "platlib")
    return function.__module__.partition(".")[0] == own or any(
        function.__code__.co_filename.startswith(sysconfig.get_path(folder))
        for folder in folders
    )


def _globals_read(function: types.FunctionType) -> dict[str, Any]:
    """Return the values of module-level names that a function reads."""
    codes, names = [function.__code__], set()
    while codes:
        code = codes.pop()
        names |= {
            step.argval
            for step in dis.get_instructions(code)
            if step.opname == "LOAD_GLOBAL"
        }
        codes += [part for part in code.co_consts if isinstance(part, types.CodeType)]
    known = function.__globals__
    return {name: known[name] for name in names if name in known}


def _code_parts(code: types.CodeType) -> Iterator[bytes]:
    yield code.co_code
    yield " ".join(code.co_names).encode()
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _code_parts(constant)
        else:
            yield repr(constant).encode()
