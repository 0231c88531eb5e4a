"""Any table in: it stays where it is, and only small exact aggregates come back.

Files are read by DuckDB, out of core. pandas, Polars and Arrow tables are scanned in place by the same
engine; a DuckDB relation keeps its own connection. One language, SQL, then speaks to all of them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sourdine.core.errors import InvalidParameter
from sourdine.frames.schema import Category, Column, Flag, Schema

if TYPE_CHECKING:
    import duckdb

_TEXT = {".csv", ".tsv", ".json", ".jsonl", ".ndjson"}
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN")
_NAME = "sourdine_source"


@dataclass(frozen=True)
class Source:
    """A table open for questions; its columns are known, its rows are not.

    >>> import pyarrow as pa
    >>> schema = Schema.read({"age": {"type": "integer", "lower": 0, "upper": 120}})
    >>> source = open_source(pa.table({"age": [31, 54], "name": ["a", "b"]}), schema)
    >>> source.ask(f"SELECT count(*) FROM {source.name}")
    [(2,)]
    """

    relation: "duckdb.DuckDBPyRelation"
    schema: Schema
    text: bool
    keep_alive: object = None

    @property
    def name(self) -> str:
        """What the table is called in SQL."""
        return _NAME

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a question, as exact Python numbers."""
        answer = self.relation.query(_NAME, sql)
        return answer.fetchall() if answer is not None else []

    @cached_property
    def types(self) -> Mapping[str, str]:
        """The type of each column, as the engine names it."""
        return dict(zip(self.relation.columns, map(str, self.relation.types), strict=True))


def open_source(table: object, schema: Schema, others: Sequence[str] = ()) -> Source:
    """A file, or a frame of pandas, Polars, Arrow or DuckDB, checked against what is declared.

    Only names and types are looked at. `others` are columns that must be there without being declared, such
    as the unit's.
    """
    source = (
        _file(Path(table), schema, others) if isinstance(table, str | Path) else _frame(table, schema, others)
    )
    _check_names(source.types, schema, others)
    if not source.text:
        for name, column in schema.columns.items():
            _check_type(name, column, source.types[name])
    return source


def _check_names(found: Iterable[str], schema: Schema, others: Sequence[str]) -> None:
    names = list(found)
    missing = [name for name in (*schema.columns, *others) if name not in names]
    if missing:
        listed = ", ".join(f"'{name}'" for name in names[:20])
        raise InvalidParameter(
            f"The table has no column '{missing[0]}'. Its columns are {listed}. "
            "Check the name in the declaration."
        )


def _file(path: Path, schema: Schema, others: Sequence[str]) -> Source:
    import duckdb

    if not path.is_file():
        raise InvalidParameter(f"There is no file {path}. Check the path.")
    ending = path.suffix.lower()
    readers: dict[str, Callable[[Any], Any]] = {
        ".csv": lambda c: c.read_csv(str(path), header=True, all_varchar=True, ignore_errors=True),
        ".tsv": lambda c: c.read_csv(str(path), header=True, all_varchar=True, sep="\t", ignore_errors=True),
        ".parquet": lambda c: c.read_parquet(str(path)),
    }
    for json in (".json", ".jsonl", ".ndjson"):
        readers[json] = lambda c: c.read_json(
            str(path), columns=dict.fromkeys((*schema.columns, *others), "VARCHAR"), ignore_errors=False
        )
    if ending not in readers:
        raise InvalidParameter(
            f"A file ending in '{ending}' is not read. Use one of {', '.join(sorted(readers))}."
        )
    connection = duckdb.connect()
    try:
        relation = readers[ending](connection)
    except duckdb.Error:
        raise InvalidParameter(
            f"The file {path} cannot be read as {ending[1:]}. Check that it is complete and of that kind."
        ) from None
    return Source(relation, schema, ending in _TEXT, connection)


def _frame(table: object, schema: Schema, others: Sequence[str]) -> Source:
    import duckdb
    import narwhals as nw

    if isinstance(table, duckdb.DuckDBPyRelation):
        return Source(table, schema, False)
    try:
        frame = nw.from_native(table)  # type: ignore[call-overload]
    except TypeError:
        raise InvalidParameter(
            "The table must be a path or a frame of pandas, Polars, Arrow or DuckDB. "
            f"Got a {type(table).__name__}."
        ) from None
    if isinstance(frame, nw.LazyFrame):
        _check_names(frame.collect_schema().names(), schema, others)
        frame = frame.select(*schema.columns, *others).collect()
    connection = duckdb.connect()
    connection.register("frame", frame.to_native())
    return Source(connection.table("frame"), schema, False, (connection, frame))


def _check_type(name: str, column: Column, found: str) -> None:
    """Refuse a column whose type cannot hold what is declared; text may hold numbers only in text files."""
    number = found.lstrip("U").startswith(_NUMBERS)
    if isinstance(column, Category):
        whole = all(isinstance(key, int) for key in column.keys)
        good = number if whole else not number or found == "BOOLEAN"
        kind = "whole numbers" if whole else "text"
    elif isinstance(column, Flag):
        good, kind = number, "true or false"
    else:
        good, kind = number, "numbers"
    if not good:
        raise InvalidParameter(
            f"The column '{name}' is declared to hold {kind}, and the table holds {found}. "
            "Change the declaration, or convert the column."
        )
