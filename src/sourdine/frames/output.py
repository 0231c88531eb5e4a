"""Tables out: columns as a relation of DuckDB or as a file, with types that are stated and not guessed."""

import errno
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sourdine.frames.engines.closed import closed_connection, spilling_connection
from sourdine.frames.expression import literal, quoted

if TYPE_CHECKING:
    import duckdb

FORMATS = {
    ".csv": "FORMAT csv, HEADER true",
    ".tsv": "FORMAT csv, HEADER true, DELIMITER '\t'",
    ".json": "FORMAT json",
    ".jsonl": "FORMAT json",
    ".ndjson": "FORMAT json",
    ".parquet": "FORMAT parquet",
}
"""How the engine writes files, by their endings."""
_TYPES = {"i": "BIGINT", "f": "DOUBLE", "b": "BOOLEAN", "O": "VARCHAR", "M": "TIMESTAMP"}
_DAYS = np.dtype("datetime64[D]")
_TABLE, _ARRAYS = "written", "arrays"
_numbers = itertools.count()


def relation_of(columns: Mapping[str, NDArray[Any]]) -> "duckdb.DuckDBPyRelation":
    """Arrays as a relation on a connection of its own; what is masked is NULL, and objects are texts.

    >>> relation_of({"age": np.array([31, 54])}).fetchall()
    [(31,), (54,)]
    >>> relation_of({"day": np.array(["2024-02-29"], "datetime64[D]")}).types
    [DATE]
    """
    connection = spilling_connection()
    selected = _register(connection, columns)
    connection.execute(f"CREATE TABLE {_TABLE} AS {selected}")
    connection.unregister(_ARRAYS)
    return connection.table(_TABLE)


def relation_of_cells(
    types: Mapping[str, str],
    rows: Sequence[Sequence[object]],
    connection: "duckdb.DuckDBPyConnection | None" = None,
) -> "duckdb.DuckDBPyRelation":
    """Rows as a relation, each column of the type that is stated for it.

    It has a connection of its own, unless one is given that serves many small tables.

    >>> relation_of_cells({"age": "INTEGER", "sex": "VARCHAR"}, [(31, "f"), (54, None)]).fetchall()
    [(31, 'f'), (54, None)]
    """
    listed = list(zip(*rows, strict=True)) or [()] * len(types)
    typed = [
        f"unnest(CAST(${place} AS {kind}[])) AS {quoted(name)}"
        for place, (name, kind) in enumerate(types.items(), start=1)
    ]
    # numbers of more than 64 bits come as text
    cells = [
        [None if cell is None else str(cell) for cell in cells] if kind == "HUGEINT" else list(cells)
        for cells, kind in zip(listed, types.values(), strict=True)
    ]
    name = _TABLE if connection is None else f"{_TABLE}_{next(_numbers)}"
    connection = connection or spilling_connection()
    connection.execute(f"CREATE TABLE {name} AS SELECT {', '.join(typed)}", cells)
    return connection.table(name)


def write_columns(columns: Mapping[str, NDArray[Any]], path: Path, ending: str) -> None:
    """Arrays as a file of the kind that an ending says; what is masked is empty, and objects are texts."""
    import duckdb

    connection = closed_connection([path])
    selected = _register(connection, columns)
    try:
        connection.execute(f"COPY ({selected}) TO {literal(str(path))} ({FORMATS[ending]})")
    except duckdb.Error:  # whose words are many
        raise OSError(errno.EIO, "the disk is full, or cannot be written", str(path)) from None


def _register(connection: "duckdb.DuckDBPyConnection", columns: Mapping[str, NDArray[Any]]) -> str:
    """Lend arrays to a connection; the question that gives them back under their names and types.

    They are lent by numbers, since names that differ in case alone are one to the engine.
    """
    connection.register(_ARRAYS, {f"c{place}": _filled(each) for place, each in enumerate(columns.values())})
    typed = ", ".join(
        f"CAST(c{place} AS {_type(each)}) AS {quoted(name)}"
        for place, (name, each) in enumerate(columns.items())
    )
    return f"SELECT {typed} FROM {_ARRAYS}"


def _type(column: NDArray[Any]) -> str:
    return "DATE" if column.dtype == _DAYS else _TYPES[column.dtype.kind]


def _filled(column: NDArray[Any]) -> NDArray[Any]:
    """An array as the engine takes it: it looks at what is under a mask too, and takes no days."""
    if column.dtype == _DAYS:
        return column.astype("datetime64[s]")
    if column.dtype.kind != "O":
        return column
    missing = np.ma.getmaskarray(column)
    texts = np.where(missing, "", np.ma.getdata(column)).astype(object)
    return np.ma.MaskedArray(texts, mask=missing)
