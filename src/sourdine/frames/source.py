"""A table open for questions: it stays where it is, and only small exact aggregates come back.

One language, SQL, speaks to every engine, in the dialect of each.
"""

import difflib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted, group
from sourdine.frames.cells import (
    Grouping,
    TableCells,
    code_name,
    grouping,
    held_number,
    number_name,
    place,
    place_name,
    place_of,
)
from sourdine.frames.csv.format import TextFormat
from sourdine.frames.csv.reader import PROTOCOL, TextFiles, unreadable
from sourdine.frames.engines.dialect import Dialect
from sourdine.frames.engines.duckdb import (
    NOTHING,
    VIEW,
    AnswerTable,
    Connections,
    Database,
    InDuckDB,
    SideTables,
    TableEngine,
    closed_connection,
)
from sourdine.frames.engines.spark import InSpark, is_spark
from sourdine.frames.engines.types import Family, family
from sourdine.frames.expressions import Expression
from sourdine.frames.files import TEXT, Files, ParquetFiles, Where, find_files, is_where, with_plain_columns
from sourdine.frames.schema import Integer, Real, Schema, expression_of, span
from sourdine.frames.times import Date, Datetime, microseconds_of, time_in, time_name
from sourdine.frames.type_check import check_type, check_unit

if TYPE_CHECKING:
    import narwhals as nw

_BESIDE = "sourdine_beside"


@dataclass(frozen=True)
class Beside:
    """A small table of ours that records are joined with: each with at most one of its rows.

    `on` pairs expressions of a record with columns of this table; `adds` is what the column `name` holds.
    """

    name: str
    columns: Mapping[str, NDArray[Any]]
    on: tuple[tuple[str, str], ...]
    adds: str


@dataclass(frozen=True)
class Source:
    """A table open for questions; its columns are known, its rows are not.

    Written out, a source shows none of its rows.

    >>> import pyarrow as pa
    >>> from sourdine.frames.source import open_source
    >>> schema = Schema.read({"age": {"type": "integer", "lower": 0, "upper": 120}})
    >>> source = open_source(pa.table({"age": [31, 54], "name": ["a", "b"]}), schema)
    >>> source.ask(f"SELECT count(*) FROM {source.name}")
    [(2,)]
    """

    engine: TableEngine = field(repr=False)
    schema: Schema
    beside: Beside | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """What the table is called in SQL."""
        return self.engine.name

    @property
    def dialect(self) -> Dialect:
        """How the engine's SQL is written."""
        return self.engine.dialect

    @property
    def types(self) -> Mapping[str, str]:
        """The type of each column, by the name that DuckDB has for it."""
        return self.engine.types

    @property
    def text(self) -> frozenset[str]:
        """The declared columns that come as text, whatever they hold."""
        return frozenset(name for name in self.schema.base.columns if family(self.types[name]) is Family.TEXT)

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """What the engine raises; its words may tell about records."""
        return self.engine.failures

    @cached_property
    def view(self) -> str:
        """The table with one more column for each declared number: its place, computed once for all uses."""
        return self._view(self._layers)

    def view_for(self, *texts: str) -> str:
        """The same with those columns alone that some texts of SQL name, or that others need.

        An engine looks at every column of a question before it drops the ones that nobody asked for, and a
        table may have hundreds.
        """
        layers, text = list[Mapping[str, str]](), " ".join(texts)
        if self.beside is not None:
            text = " ".join([text, self.beside.adds, *(raw for raw, _ in self.beside.on)])
        for layer in reversed(self._layers):
            needs = {name: sql for name, sql in layer.items() if name in text}
            text = " ".join([text, *needs.values()])
            layers.append(needs)
        return self._view(layers[::-1])

    def _view(self, layers: Sequence[Mapping[str, str]]) -> str:
        """The table with columns more, each layer computed of what lies below it."""
        quoted, text, view = self.dialect.quoted, self.dialect.text, self.name
        for layer in layers:
            more = ", ".join(f"{sql} AS {name}" for name, sql in layer.items())
            view = f"(SELECT *, {more} FROM {view})" if more else view
        if self.beside is None:
            return view
        # an array of no texts has another type
        marks = [(raw, self.dialect.cast(quoted(mark), self.dialect.string)) for raw, mark in self.beside.on]
        on = " AND ".join(f"{raw} = {text(mark, 'VARCHAR')}" for raw, mark in marks)
        added = f"{self.beside.adds} AS {quoted(self.beside.name)}"
        # without the hint Spark would shuffle all records for a table that is not small to it
        hint = f"/*+ BROADCAST({_BESIDE}) */"
        return f"(SELECT {hint} held.*, {added} FROM {view} AS held LEFT JOIN {_BESIDE} ON {on})"

    @cached_property
    def _layers(self) -> list[dict[str, str]]:
        """What the view computes, in the order of what is computed of what: SQL by the names of columns."""
        quoted = self.dialect.quoted
        numbers: dict[str, str] = {}
        places: dict[str, str] = {}
        for name, column in self.schema.base.columns.items():
            if isinstance(column, Date | Datetime):
                kind = self.types[name]
                micros = microseconds_of(quoted(name), column, kind, self.dialect)
                if micros is not None:
                    numbers[quoted(number_name(name))] = micros
                column_name = name if micros is None else number_name(name)
                places[quoted(time_name(name))] = time_in(quoted(column_name), column, kind, self.dialect)
            if isinstance(column, Integer | Real):
                column_name, kind = self.number(name)
                if column_name != name:
                    numbers[quoted(column_name)] = self.dialect.double(quoted(name), self.types[name])
                places[self.place_of(name)] = place(column_name, column, kind, self.dialect)
        return [numbers, places, *self._derived()]

    def _derived(self) -> Iterator[dict[str, str]]:
        """Derived columns, those first that others are computed of."""
        known = set(self.schema.base.columns)
        left = [name for name in self.schema.columns if name not in known]
        while left:
            ready = [name for name in left if known.issuperset(expression_of(self.schema, name).columns)]
            yield dict(self.cells.derived(name) for name in ready)
            known.update(ready)
            left = [name for name in left if name not in known]

    def computing(self, schema: Schema) -> "Source":
        """The same table with the derived columns of a schema; the last one is kept, with its view."""
        if schema == self.schema:
            return self
        other = self.__dict__.get("_computing")
        if not isinstance(other, Source) or other.schema is not schema:
            other = self.__dict__["_computing"] = replace(self, schema=schema)
        return other

    @cached_property
    def cells(self) -> TableCells:
        """The columns of the view, for expressions."""
        return TableCells(self.schema, self.types, self.dialect)

    def holds(self, tree: Expression) -> str:
        """The value of an expression, or whether a condition holds, in the SQL of the view."""
        return tree.sql(self.cells, self.schema.kinds)

    def number(self, name: str) -> tuple[str, str]:
        """The column of the view that holds a declared number, and its type."""
        return held_number(name, self.types)

    def grouping(self, name: str) -> Grouping:
        """The grouping by a declared column of known keys."""
        return grouping(name, self.schema.columns[name], self.types.get(name, ""), self.dialect)

    def place_of(self, name: str) -> str:
        """The column of the view that holds the places of a number."""
        return place_of(name, self.dialect)

    def steps_of(self, name: str) -> str:
        """A number in steps of its grid, counted from 0; NULL where the record is dropped."""
        return f"nullif({self.place_of(name)}, -1) + ({span(self.schema.number('A sum', name))[0]})"

    def unit(self, name: str) -> str:
        """The column that tells units apart."""
        return self.dialect.identity(self.dialect.quoted(name), self.types[name])

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a question, as exact Python numbers."""
        return self.engine.ask(sql, self._side_tables)

    def columns(self, sql: str, side_tables: SideTables = NOTHING) -> dict[str, NDArray[Any]]:
        """The answer to a question as arrays, one a column; it may name small tables that are lent to it."""
        return self.engine.columns(sql, {**self._side_tables, **side_tables})

    def keep(self, sql: str) -> AnswerTable:
        """The answer to a question, which stays in the engine for others that name it."""
        return self.engine.keep(sql, self._side_tables)

    @property
    def _side_tables(self) -> SideTables:
        return NOTHING if self.beside is None else {_BESIDE: self.beside.columns}


# Any table in: which files or frame it is, and whether its columns are there as declared.
#
# Files are read by DuckDB, out of core. pandas, Polars and Arrow tables are scanned in place by the same
# engine; a DuckDB relation keeps its own connection. A PySpark DataFrame is asked on its cluster.


AS_IT_IS = TextFormat()
_NAMED = 3  # missing columns in an error; the rest are counted
_SPELT = "Check how the table spells it, letter by letter."
_IN_LIST = "Check the list of names that is declared for the file."


def open_source(
    table: object,
    schema: Schema,
    others: Sequence[str] = (),
    *,
    text: TextFormat | Mapping[str, object] = AS_IT_IS,
    spark: bool = True,
) -> Source:
    """Files, or a frame of pandas, Polars, Arrow, DuckDB or Spark, checked against what is declared.

    Only names and types are looked at. `others` are columns that must be there without being declared, such
    as the unit's. `text` is how files of text are written. Whoever reads records rather than sums of them
    takes no frame of Spark.
    """
    declared, schema = schema, schema.base
    if is_where(table):
        source = _files(find_files(cast(Where, table)), schema, others, TextFormat.read(text))
    elif is_spark(table):
        if not spark:
            raise _unknown(table, spark)
        source = _cluster(table, schema, others)
    else:
        source = _frame(table, schema, others, spark)
    _check_names(source.engine.names, schema, others)
    check_alike(source.engine.names, schema, others)
    for name, column in schema.columns.items():
        check_type(name, column, source.types[name])
    for name in others:
        check_unit(name, source.types[name])
    for name in declared.columns:
        if name not in schema.columns and name.casefold() in {
            each.casefold() for each in source.engine.names
        }:
            raise InvalidParameter(
                f"The column '{name}' is derived, and the table has one of that name. Rename the derived one."
            )
    return replace(source, schema=declared)


def _in_file() -> str:
    return (
        "Check how the first line of the file spells it, letter by letter. If that line is a record, the "
        f"file has no header: add one, or declare {group('text', header=False, names=['...', '...'])} for "
        "all its columns."
    )


def _check_names(
    names_in_table: Sequence[str], schema: Schema, others: Sequence[str], remedy: str = _SPELT
) -> None:
    """Refuse a table without a column that is needed.

    Names that the table has are not told: those of a file without a header are its first record.
    """
    names, wanted = frozenset(names_in_table), list(dict.fromkeys((*schema.columns, *others)))
    missing = [name for name in wanted if name not in names]
    if not missing:
        return
    listed = [f"'{name}'" for name in missing[:_NAMED]]
    if len(missing) > _NAMED:
        listed.append(f"any of {len(missing) - _NAMED:,} more that are declared")
    which = ", ".join(listed[:-1]) + f" or {listed[-1]}" if len(listed) > 1 else listed[0]
    near = difflib.get_close_matches(missing[0], [name for name in wanted if name in names], n=1)
    meant = f" Did you mean '{near[0]}', which it has?" if near else ""
    raise InvalidParameter(
        f"The table has {counted(len(names_in_table), 'column')}, and none is called {which}.{meant} {remedy}"
    )


def check_alike(names_in_table: Sequence[str], schema: Schema, others: Sequence[str]) -> None:
    """Refuse names that the engine takes for one another: it does not tell case, and takes the first.

    A column called like a place would be taken for it, and its values are clamped to nothing.
    """
    names = Counter(name.casefold() for name in names_in_table)
    for name in (*schema.columns, *others):
        if names[name.casefold()] > 1:
            raise InvalidParameter(
                f"The table has two columns called '{name}', perhaps in other case. Rename one of them."
            )
        for inside in (place_name(name), number_name(name), time_name(name), code_name(name)):
            if inside.casefold() in names:
                raise InvalidParameter(
                    f"The table has a column '{inside}', a name that is used inside. Rename it."
                )


def _files(files: Files, schema: Schema, others: Sequence[str], text: TextFormat) -> Source:
    import duckdb

    if files.kind in TEXT:
        return _text(files, schema, others, text)
    if not text.plain:
        raise InvalidParameter(
            f"A file of kind {files.kind[1:]} has no encoding, delimiter or header. Leave them out."
        )
    paths = [path.absolute() for path in files.paths]
    patterns = [_pattern(path) for path in paths]

    def open_database() -> Database:
        connection = closed_connection([*paths, *patterns])
        try:
            parquet = ParquetFiles(connection, files, patterns)
            _check_names(parquet.names, schema, others)
            check_alike(parquet.names, schema, others)
            # those alone that are needed, since an engine takes its time over thousands of others
            wanted = list(dict.fromkeys((*schema.columns, *others)))
            parquet.check_times(
                [name for name, each in schema.columns.items() if isinstance(each, Date | Datetime)]
            )
            relation = connection.sql(parquet.relation(wanted, others))
            relation.create_view(VIEW)
        except duckdb.Error:
            raise unreadable(files.paths[0]) from None
        return Database(connection, relation, parquet.names)

    return Source(InDuckDB.of(Connections(open_database, paths)), schema)


def _text(
    files: Files,
    schema: Schema,
    others: Sequence[str],
    text: TextFormat,
) -> Source:
    """Files of text: their headers are read now, their records when the first question is asked."""
    wanted = list(dict.fromkeys((*schema.columns, *others)))
    numbers = [name for name, each in schema.columns.items() if isinstance(each, Integer | Real)]

    def open_database() -> Database:
        opened = TextFiles.open(files.paths, text, wanted, numbers, files.partitions)
        if opened.names is not None:
            _check_names(opened.names, schema, others, _in_file() if text.header else _IN_LIST)
            check_alike(opened.names, schema, others)
        connection = closed_connection(directories=[f"{PROTOCOL}://{k}" for k in range(len(files.paths))])

        def prepare() -> None:
            pieces = opened.cut()
            connection.register_filesystem(pieces)
            connection.execute(f"CREATE VIEW {VIEW} AS {opened.relation(pieces)}")

        return Database(connection, connection.sql(opened.nothing()), opened.names or (), prepare=prepare)

    return Source(InDuckDB.of(Connections(open_database, files.paths)), schema)


def _pattern(path: Path) -> str:
    """A path as the engine takes it, which reads some characters as a pattern for several files."""
    return "".join(f"[{mark}]" if mark in "*?[" else mark for mark in str(path))


def _cluster(table: object, schema: Schema, others: Sequence[str]) -> Source:
    """A frame of Spark."""
    frame = cast(Any, table)
    _check_names(frame.columns, schema, others)
    return Source(InSpark(frame, (*schema.columns, *others)), schema)


def _frame(table: object, schema: Schema, others: Sequence[str], spark: bool) -> Source:
    import duckdb
    import narwhals as nw

    if isinstance(table, duckdb.DuckDBPyRelation):
        return Source(InDuckDB(table, wanted=[*schema.columns, *others]), schema)
    wanted = list(dict.fromkeys((*schema.columns, *others)))
    try:
        frame = _known_frame(table, spark)
        if isinstance(frame, nw.LazyFrame) and not frame.implementation.is_polars():
            raise _unknown(table, spark)
        all_names = tuple(frame.collect_schema().names())
        _check_names(all_names, schema, others)
        check_alike(all_names, schema, others)
        if wanted and not frame.implementation.is_pandas():
            # what is lazy stays so: what it does to the records waits for the charge
            frame = frame.select(*wanted)
        times = [name for name, each in schema.columns.items() if isinstance(each, Date | Datetime)]
        zoned = _zoned(frame, [*others, *times])
        native = _by_instants(frame, zoned).to_native()
        if frame.implementation.is_pandas():
            units = [name for name in others if name not in schema.columns]
            native = with_plain_columns(native, wanted, units)
        instants, process = frozenset(zoned) & frozenset(times), os.getpid()
        lazy = isinstance(frame, nw.LazyFrame)

        def open_database() -> Database:
            if lazy and os.getpid() != process:
                # its threads are not in a fork, which would wait for them without end
                raise InvalidParameter(
                    "A lazy frame of Polars must be asked in the process that made it, and this one was "
                    "forked from that. Collect it first, or make the table here."
                )
            connection = closed_connection()
            connection.register(VIEW, native)
            relation = connection.table(VIEW)
            # what is registered is seen by one connection alone
            return Database(connection, relation, all_names, lend=lambda new: new.register(VIEW, native))

        engine = InDuckDB.of(Connections(open_database), instants)
    except nw.exceptions.DuplicateError:
        raise InvalidParameter("The table has two columns of one name. Rename one of them.") from None
    except (duckdb.Error, nw.exceptions.NarwhalsError):
        raise InvalidParameter(
            "The table has columns of a type, or with names, that the engine cannot read. "
            "Convert them, or leave out those that are not declared."
        ) from None
    return Source(engine, schema)


def _zoned(frame: "nw.DataFrame[Any] | nw.LazyFrame[Any]", names: Sequence[str]) -> list[str]:
    """Those columns of a frame that are times of some zone."""
    kinds = frame.collect_schema()
    return [name for name in dict.fromkeys(names) if getattr(kinds[name], "time_zone", None) is not None]


def _by_instants(
    frame: "nw.DataFrame[Any] | nw.LazyFrame[Any]", zoned: Sequence[str]
) -> "nw.DataFrame[Any] | nw.LazyFrame[Any]":
    """The same frame, with times of some zone as those of UTC without a zone.

    Those with a zone the engine counts in microseconds: it would take nearer ones for one unit, and raise at
    one that is too far away for it.
    """
    import narwhals as nw

    instants = (nw.col(name).dt.convert_time_zone("UTC").dt.replace_time_zone(None) for name in zoned)
    return frame.with_columns(*instants) if zoned else frame


def _known_frame(table: object, spark: bool) -> "nw.DataFrame[Any] | nw.LazyFrame[Any]":
    import narwhals as nw

    try:
        return nw.from_native(table)
    except TypeError:
        raise _unknown(table, spark) from None


def _unknown(table: object, spark: bool) -> InvalidParameter:
    kinds = "pandas, Polars, Arrow, DuckDB or Spark" if spark else "pandas, Polars, Arrow or DuckDB"
    type_name = "frame of Spark" if is_spark(table) else type(table).__name__
    remedy = ""
    if isinstance(table, Mapping | list | tuple):
        remedy = " Make a frame of it first, as in pandas.DataFrame(...)."
    elif type_name == "Series":
        remedy = " Make a frame of it first, with to_frame()."
    return InvalidParameter(f"The table must be a path or a frame of {kinds}. Got a {type_name}.{remedy}")
