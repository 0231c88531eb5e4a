"""Any table in: which files or frame it is, and whether its columns are there as declared.

Files are read by DuckDB, out of core. pandas, Polars and Arrow tables are scanned in place by the same
engine; a DuckDB relation keeps its own connection. A PySpark DataFrame is asked on its cluster.
"""

import difflib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted, group
from sourdine.frames.cells.places import number_name, place_name
from sourdine.frames.columns import Integer, Real
from sourdine.frames.engines.closed import closed_connection
from sourdine.frames.engines.connections import Connections, Database
from sourdine.frames.engines.engine import VIEW, InDuckDB
from sourdine.frames.engines.spark import InSpark, is_spark
from sourdine.frames.expression import code_name
from sourdine.frames.files import TEXT, Files, Where, find_files, is_where, with_plain_columns
from sourdine.frames.parquet import ParquetFiles
from sourdine.frames.schema import Schema
from sourdine.frames.source import Source
from sourdine.frames.text.format import TextFormat
from sourdine.frames.text.opening import TextFiles, unreadable
from sourdine.frames.text.pieces import PROTOCOL
from sourdine.frames.times.dates import Date, Datetime
from sourdine.frames.times.moments import time_name
from sourdine.frames.type_check import check_type, check_unit

if TYPE_CHECKING:
    import narwhals as nw


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
