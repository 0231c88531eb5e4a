"""Which files a table is made of: one, several, a pattern, or a folder with its partitions.

Columns of pandas whose type an engine would guess from what they hold get the one they have.
"""

import errno
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.frames.cells import literal, quoted
from sourdine.frames.csv.reader import COMPRESSED, DELIMITED, JSON, kind_of
from sourdine.frames.engines.duckdb import closed_connection, spilling_connection
from sourdine.frames.engines.types import Family, base_name, family, scale

if TYPE_CHECKING:
    import duckdb

TEXT = (*DELIMITED, *JSON)
ENDINGS = (*TEXT, ".parquet")
_SHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
_NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"

Where = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class Files:
    """Files of one kind, and the folders called like region=north that they lie in, as columns."""

    paths: tuple[Path, ...]
    partitions: dict[str, tuple[str | None, ...]]

    @property
    def kind(self) -> str:
        """The ending of them all, without that of a compression."""
        return kind_of(self.paths[0])


def is_where(table: object) -> bool:
    """Whether this names files."""
    if isinstance(table, str | Path):
        return True
    return isinstance(table, list | tuple) and bool(table) and all(isinstance(e, str | Path) for e in table)


def find_files(where: Where) -> Files:
    """The files that a path, a pattern, a folder or a list of these names, in one order.

    A path that is there is a path, even if it has the letters of a pattern.

    >>> find_files("nowhere.csv")
    Traceback (most recent call last):
    sourdine.core.errors.InvalidParameter: The file nowhere.csv does not exist. Check the path.
    """
    listed = [where] if isinstance(where, str | Path) else list(where)
    files = [(root, path) for each in listed for root, path in _files_of(each)]
    paths = tuple(path for _, path in files)
    _check_once(paths)
    kinds = sorted({kind_of(path) for path in paths})
    if len(kinds) > 1:
        raise InvalidParameter(f"The files are of several kinds ({', '.join(kinds)}). Use files of one kind.")
    return Files(paths, _partitions(files))


def _files_of(each: str | Path) -> list[tuple[Path, Path]]:
    """The files of one name, each with the folder that it was looked for in."""
    path = Path(each)
    if path.is_file():
        check_ending(path)
        return [(path.parent, path)]
    if path.is_dir():
        return [(path, file) for file in _in_folder(path)]
    if not any(mark in str(each) for mark in "*?["):
        check_ending(path)
        raise InvalidParameter(f"The file {path} does not exist. Check the path.")
    fixed = next(i for i, part in enumerate(path.parts) if any(mark in part for mark in "*?["))
    root, pattern = Path(*path.parts[:fixed]), str(Path(*path.parts[fixed:]))
    files = sorted(file for file in root.glob(pattern) if file.is_file())
    if not files:
        raise InvalidParameter(f"No file is named like {each}. Check the path.")
    for file in files:
        check_ending(file)
    return [(root, file) for file in files]


def _check_once(paths: Sequence[Path]) -> None:
    """Refuse a file that is named twice, under whatever names, and one beside a compressed copy of it.

    Its records would count twice, and one of them would move every sum twice as far as is paid for.
    """
    identities = [(status.st_dev, status.st_ino) for status in (path.stat() for path in paths)]
    if len(set(identities)) < len(identities):
        raise InvalidParameter(
            "A file is named twice, perhaps by a link to it, so its records would count twice. Name it once."
        )
    plain = {path.with_suffix("") if path.suffix.lower() in COMPRESSED else path for path in paths}
    if len(plain) < len(paths):
        raise InvalidParameter(
            "A file stands beside a compressed one of the same name, such as people.csv beside "
            "people.csv.gz. If it is a copy, its records would count twice. Name the files that you mean."
        )


def _in_folder(folder: Path) -> list[Path]:
    """The files of a table in a folder; what begins with a point or a line is somebody's notes.

    A partition may begin with a line, as in _year=2024.
    """
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.is_file() and not any(map(_is_note, file.relative_to(folder).parts))
    )
    tables = [file for file in files if kind_of(file) in ENDINGS]
    if not tables:
        raise InvalidParameter(
            f"{folder} is a folder without a table in it. Name a file, or a folder of files that end in "
            f"{', '.join(ENDINGS)}."
        )
    if len({kind_of(file) for file in tables}) > 1:
        raise InvalidParameter(f'{folder} is a folder with files of several kinds. Name them, as in "*.csv".')
    return tables


def check_ending(path: Path) -> None:
    """Refuse a file of a kind that is not read."""
    ending = kind_of(path)
    if ending in _SHEETS:
        raise InvalidParameter(
            f"{path} is a spreadsheet, whose cells have no declared types. Save its sheet as CSV (in Excel: "
            '"CSV UTF-8"), or read it with pandas.read_excel and give the frame to sourdine.Table.'
        )
    if ending not in ENDINGS or (ending == ".parquet" and path.suffix.lower() in COMPRESSED):
        raise InvalidParameter(
            f"A file ending in '{path.suffix}' is not read. Use one of {', '.join(sorted(ENDINGS))}; text "
            "may also be compressed, as .csv.gz or .csv.zst."
        )


def _is_note(part: str) -> bool:
    return part[0] == "." or (part[0] == "_" and "=" not in part)


def _partitions(files: Sequence[tuple[Path, Path]]) -> dict[str, tuple[str | None, ...]]:
    """The columns that folders like region=north give, which every file must have."""
    rows: list[dict[str, str | None]] = []
    for root, path in files:
        parts = (part.split("=", 1) for part in path.relative_to(root).parts[:-1] if "=" in part)
        rows.append({unquote(name): _value(text) for name, text in parts})
    names = set(rows[0]) if rows else set()
    if any(set(row) != names for row in rows):
        raise InvalidParameter(
            "Some of the files lie in folders like region=north and others do not, or in other ones. Use "
            "files that lie alike."
        )
    return {name: tuple(row[name] for row in rows) for name in rows[0]} if rows else {}


def _value(text: str) -> str | None:
    return None if text == _NO_PARTITION else unquote(text)


_FARTHEST = 10**300
_NULLABLE = {"i": "Int64", "u": "UInt64", "b": "boolean"}


def with_plain_columns(frame: Any, names: Sequence[str], units: Sequence[str]) -> Any:
    """A pandas frame of the named columns, objects as text or nothing, categories as what those are.

    Columns of Python's own strings are gone through as well, since such a string need not be good text. As
    they are, categories that are numbers would be floats if one is missing and whole numbers if none is.
    """
    if not names:
        return frame
    import pandas as pd

    columns: dict[str, Any] = {}
    for name in names:
        columns[name] = column = frame[name]
        if hasattr(column.dtype, "categories"):
            columns[name] = _of_categories(column, name in units)
        elif _is_guessed(column.dtype):
            columns[name] = _plain(column, name in units)
        elif isinstance(column.dtype, pd.StringDtype):
            columns[name] = _arrow_texts(column.array)
    if any(hasattr(column.dtype, "pyarrow_dtype") for column in columns.values()):
        columns = {name: _for_arrow(column) for name, column in columns.items()}
    # by arrays: an index, in which labels may repeat, would be compared for every column
    return pd.DataFrame(
        {name: getattr(column, "array", column) for name, column in columns.items()}, copy=False
    )


def _arrow_texts(column: Any) -> Any:
    """Texts as the engine takes them from Arrow itself.

    Of those that Arrow holds for pandas it would make strings of Python, and raise at the first whose bytes
    are no text.
    """
    import pandas as pd
    import pyarrow as pa

    return pd.arrays.ArrowExtensionArray(pa.array(column, pa.large_string()))


def _for_arrow(column: Any) -> Any:
    """A column of a frame that goes through Arrow as a whole: of the type it has, whatever it holds."""
    if column.dtype == np.object_:
        return _arrow_texts(column)
    return column.astype(np.float32) if column.dtype == np.float16 else column


def _is_guessed(dtype: Any) -> bool:
    return dtype == np.object_ or getattr(dtype, "storage", None) == "python"


def _plain(items: Iterable[object], unit: bool) -> NDArray[np.object_]:
    return np.array([plain_text(item, unit) for item in items], dtype=object)


def _of_categories(column: Any, unit: bool) -> Any:
    """A column of categories as one of the type that these have."""
    categories = column.cat.categories
    if _is_guessed(categories.dtype):
        texts = _plain([*categories, None], unit)  # the last stands for a missing one, of code -1
        return texts[column.cat.codes.to_numpy()]
    if getattr(categories.dtype, "storage", None) is not None:
        return column
    kind = _NULLABLE.get(getattr(categories.dtype, "kind", ""), categories.dtype)
    return column.astype(kind)


def plain_text(item: object, unit: bool = False) -> str | None:
    """One object as text; None for what is missing, and for anything that is not plain. It never raises.

    Numbers that are equal tell one unit, and so do times, so there they are written alike.

    >>> plain_text(True), plain_text(float("nan")), plain_text([1]), plain_text(2.0), plain_text(2.0, True)
    ('true', None, None, '2.0', '2')
    >>> plain_text("caf\\udce9") is None
    True
    """
    try:
        return _text(item, unit)
    except Exception:  # a class of somebody's own may do anything
        return None


def _text(item: object, unit: bool) -> str | None:
    if isinstance(item, np.generic) and not isinstance(item, np.datetime64 | np.timedelta64):
        item = item.item()
    if isinstance(item, str):
        # halves of letters are no text: left out, they would make one text, or one unit, of two
        return str.encode(item).decode()
    if isinstance(item, bool):
        return str(item).lower()
    if unit and isinstance(item, float | Decimal) and math.isfinite(item) and item == int(item):
        item = int(item)
    if unit and isinstance(item, datetime) and item.tzinfo is not None:
        item = item.astimezone(UTC)
    if isinstance(item, int):
        whole = int(item)
        if unit and abs(whole) > _FARTHEST:
            return hex(whole)  # units stay apart
        return str(max(-_FARTHEST, min(_FARTHEST, whole)))
    if isinstance(item, float):
        return None if math.isnan(item) else float.__repr__(item)
    if isinstance(item, Decimal):
        return None if item.is_nan() else str(item)
    if unit and isinstance(item, bytes):
        return "\\x" + item.hex()
    if type(item) is UUID or isinstance(item, date | np.datetime64):
        text = str(item)
        return None if text == "NaT" else text
    return None


# Parquet files as one table: columns of one type each, and those that the files' folders give.
#
# An engine that reads files of several types at once makes one of them, and raises at the first value that
# this cannot hold: then one record would decide whether there is an answer. So types go together only where
# every value of each has a place in the other.


_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19}
_DIGITS |= {f"U{kind}": digits + (kind == "BIGINT") for kind, digits in _DIGITS.items()}
_MOST_DIGITS = 38
_NUMBERS = frozenset({Family.WHOLE, Family.FLOAT, Family.DECIMAL})
_BITS = frozenset({Family.WHOLE, Family.BOOLEAN})
_WRITTEN = frozenset({Family.TEXT, Family.WHOLE, Family.DATE, Family.UUID})
"""What is written as text in one way, so that units stay what they are."""
_AS_TEXT = _WRITTEN | {Family.BOOLEAN, Family.FLOAT, Family.DECIMAL}
_PLACE = "file_index"


class ParquetFiles:
    """Parquet files that a connection can read, by patterns, one for each of them.

    Only what the files say of their columns is looked at.
    """

    def __init__(
        self, connection: "duckdb.DuckDBPyConnection", files: Files, patterns: Sequence[str]
    ) -> None:
        self._connection, self._patterns, self._partitions = connection, patterns, files.partitions
        self._listed = f"[{', '.join(map(literal, patterns))}]"
        several = str(len(patterns) > 1).lower()
        self._read = f"read_parquet({self._listed}, hive_partitioning = false, union_by_name = {several})"
        self._names = tuple(connection.sql(f"SELECT * FROM {self._read}").columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of all files, and those that their folders give."""
        return *(name for name in self._names if name not in self._partitions), *self._partitions

    def relation(self, names: Sequence[str], units: Sequence[str]) -> str:
        """The wanted columns of all records, in SQL."""
        if self._partitions and _PLACE in (name.casefold() for name in self._names):
            raise InvalidParameter(
                f"The table has a column '{_PLACE}', a name that is used inside. Rename it."
            )
        self._check_types([name for name in names if name not in self._partitions], units)
        columns = ", ".join(f"{self._column(name)} AS {quoted(name)}" for name in names)
        return f"SELECT {columns or '*'} FROM {self._read}"

    def check_times(self, names: Sequence[str]) -> None:
        """Refuse times in milliseconds: the engine raises at one that is too far away for microseconds."""
        coarse = "converted_type = 'TIMESTAMP_MILLIS' OR logical_type LIKE '%MILLIS=Milli%'"
        sql = f"SELECT DISTINCT name FROM parquet_schema({self._listed}) WHERE {coarse}"
        slow = {str(name).casefold() for (name,) in self._connection.execute(sql).fetchall()}
        for name in names:
            if name.casefold() in slow:
                raise InvalidParameter(
                    f"The file holds the column '{name}' as times in milliseconds, and one that lies too far "
                    "away would stop the engine. Write it in microseconds, or as dates."
                )

    def _column(self, name: str) -> str:
        if name not in self._partitions:
            return quoted(name)
        values = ", ".join("NULL" if each is None else literal(each) for each in self._partitions[name])
        return f"CAST([{values}][CAST({_PLACE} AS BIGINT) + 1] AS VARCHAR)"

    def _check_types(self, names: Sequence[str], units: Sequence[str]) -> None:
        """Refuse columns of which a value in one file has no place in the type that all together have."""
        if len(self._patterns) == 1:
            return
        sql = f"SELECT DISTINCT name, duckdb_type FROM parquet_schema({self._listed})"
        quick = _by_name(self._connection.execute(sql).fetchall())
        if all(_go_together(quick.get(name.casefold(), set()), unit=name in units) for name in names):
            return
        # parts of nested columns may be called as a column is: file by file it is slow, but certain
        each = [self._connection.sql(f"FROM read_parquet({literal(one)})") for one in self._patterns]
        exact = _by_name(
            [pair for one in each for pair in zip(one.columns, map(str, one.types), strict=True)]
        )
        for name in names:
            kinds = exact.get(name.casefold(), set())
            if not _go_together(kinds, unit=name in units):
                types = ", ".join(sorted(map(base_name, kinds)))
                raise InvalidParameter(
                    f"The files hold the column '{name}' in types that do not go together ({types}): a value "
                    "of one may have no place in another. Write it in all files with the same type."
                )


def _by_name(pairs: Iterable[tuple[str, str]]) -> Mapping[str, set[str]]:
    """The types of each name, in small letters as the engine takes them."""
    types: dict[str, set[str]] = {}
    for name, kind in pairs:
        if kind and family(kind) is not Family.NOTHING:
            types.setdefault(name.casefold(), set()).add(kind)
    return types


def _go_together(kinds: set[str], *, unit: bool) -> bool:
    """Whether every value of these types has a place in the one that the engine makes of them.

    >>> _go_together({"INTEGER", "DOUBLE"}, unit=False)
    True
    >>> _go_together({"BIGINT", "DECIMAL(38,30)"}, unit=False)
    False
    """
    families = {family(kind) for kind in kinds}
    if len(kinds) < 2 or families in ({Family.WHOLE}, {Family.FLOAT}):
        return True
    if unit:  # beyond 2^53 whole numbers that differ would be one float
        return families <= _WRITTEN
    if families <= {Family.WHOLE, Family.DECIMAL}:
        digits = [scale(kind) if family(kind) is Family.DECIMAL else (_DIGITS[kind], 0) for kind in kinds]
        most = max(every - after for every, after in digits) + max(after for _, after in digits)
        return most <= _MOST_DIGITS
    return families <= _NUMBERS or families <= _BITS or (Family.TEXT in families and families <= _AS_TEXT)


# Tables out: columns as a relation of DuckDB or as a file, with types that are stated and not guessed.


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
