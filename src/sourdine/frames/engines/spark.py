"""A PySpark DataFrame: questions in its SQL go to its cluster, and only their small answers come back."""

import contextlib
import hashlib
import logging
import re
import secrets
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.frames.engines.dialect import Dialect
from sourdine.frames.engines.duckdb import NOTHING, AnswerTable, SideTables
from sourdine.frames.engines.types import NUMERAL, Family, family

_KINDS = {
    "byte": "TINYINT",
    "short": "SMALLINT",
    "integer": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "string": "VARCHAR",
    "varchar": "VARCHAR",
    "char": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
    "time": "TIME",
    "interval": "INTERVAL",
    "daytimeinterval": "INTERVAL",
    "yearmonthinterval": "INTERVAL",
    "array": "LIST",
    "geography": "GEOMETRY",
    "void": "NULL",
}
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")  # where PySpark writes out what is raised
_ASKING = ContextVar("asking", default=False)  # whether this thread is at a question of ours
_PLAIN = re.compile(r"[A-Za-z0-9 _.,:-]*")
_CONTROLS = r"[\x00-\x1f\x7f]"
_RECORDS = 1 << 40  # more than a table has, so that sums of smaller numbers than 2^22 fit in 64 bits


@dataclass(frozen=True)
class Spark(Dialect):
    """The SQL of Spark, whatever a session has set: ANSI mode, escapes in texts, case, substitution.

    Names and texts stand there by their bytes, so that nothing in them is taken for anything else.

    >>> SPARK.quoted("é"), SPARK.literal("north"), SPARK.literal("it's")
    ('`c_c3a9`', "'north'", "CAST(X'69742773' AS STRING)")
    """

    wide = "DECIMAL(38, 0)"
    string = "STRING"
    materialized = ""
    near = False
    enumerates = False

    def quoted(self, name: str) -> str:
        return f"`{column_name(name)}`"

    def constant(self, text: str) -> str:
        if _PLAIN.fullmatch(text):
            return f"'{text}'"
        return f"CAST(X'{text.encode('utf-8', 'replace').hex()}' AS STRING)"

    def present(self, sql: str) -> str:
        # readers of files are given plain comparisons alone, and isnan(w) is none
        return f"CASE WHEN NOT isnan({sql}) THEN {sql} END"

    def cast(self, sql: str, kind: str) -> str:
        return f"try_cast({sql} AS {kind})"

    def instant(self, sql: str, kind: str) -> str:
        return f"unix_micros({sql})"

    def date_at(self, days: str) -> str:
        return f"date_from_unix_date(CAST({days} AS INT))"

    def on_clock(self, at: datetime) -> str:
        return f"TIMESTAMP_NTZ '{at.isoformat(' ')}'"

    def days(self, date: str) -> str:
        return f"CAST(unix_date({date}) AS BIGINT)"

    def microseconds(self, sql: str, kind: str) -> str:
        if family(kind) is Family.ZONED:
            return f"unix_micros({sql})"
        return f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {sql})"

    def moment(self, text: str, *, pattern: str, written: str, plain: str, zoned: bool) -> str:
        iso = f"regexp_replace({text}, {self.constant(f'^{pattern}$')}, {self.constant(plain)})"
        moment_sql = self.cast(iso, "TIMESTAMP" if zoned else "TIMESTAMP_NTZ")
        kind = "TIMESTAMP WITH TIME ZONE" if zoned else "TIMESTAMP"
        return f"CASE WHEN {self.matches(text, pattern)} THEN {self.microseconds(moment_sql, kind)} END"

    def _numeral(self, text: str) -> str:
        # '1d' is none, which Spark would read as 1
        return f"CASE WHEN {self.matches(text, NUMERAL)} THEN try_cast({text} AS DOUBLE) END"

    def _wide(self, sql: str, kind: str) -> str:
        return self.cast(sql, "DOUBLE")

    def _whole(self, sql: str) -> str:
        return f"{sql} = rint({sql})"

    def matches(self, text: str, pattern: str) -> str:
        whole = rf"^(?:{pattern})\z"
        return f"{text} RLIKE {self.constant(whole)}"

    def _plain(self, sql: str) -> str:
        return f"({sql} COLLATE UTF8_BINARY)"

    def nearest(self, sql: str, whole: str) -> str:
        return f"try_cast(rint({sql}) AS {whole})"

    def narrow(self, sql: str, whole: str) -> str:
        return f"try_cast({sql} AS {whole})"

    def legible(self, sql: str) -> str:
        return f"(is_valid_utf8({sql}) AND NOT {sql} RLIKE {self.constant(_CONTROLS)})"

    def quotient(self, top: str, bottom: str) -> str:
        return f"{top} div {bottom}"

    def total(self, sql: str, most: int) -> str:
        # a sum that 64 bits do not hold would raise, or turn round, as the session has it
        small = most * _RECORDS < 1 << 63
        return f"sum(CAST({sql} AS {'BIGINT' if small else 'DECIMAL(20, 0)'}))"

    def scaled(self, part: str, most: int, count: str) -> str:
        # a quotient has 64 bits here, so what is divided must not be the product
        wide = f"CAST({part} AS {self.wide})"
        return (
            f"CAST({wide} div {count} AS {self.wide}) * {most} + "
            f"CAST({wide} % {count} AS {self.wide}) * {most} div {count}"
        )

    def turn(self, secret: Sequence[int], names: Sequence[str]) -> str:
        words = [f"{word >> 1}L" for word in secret]  # of 64 bits with a sign
        return f"xxhash64(xxhash64({', '.join([*words, 'CAST(unit AS STRING)', *names])}))"


def column_name(name: str) -> str:
    """What a column is called on Spark: the bytes of its name, which no setting of a session changes."""
    return "c_" + name.encode("utf-8", "replace").hex()


SPARK = Spark()


def is_spark(table: object) -> bool:
    """Whether a table is a DataFrame of PySpark, told without importing it."""
    kind = type(table)
    return kind.__module__.startswith("pyspark.sql.") and kind.__name__ == "DataFrame"


class InSpark:
    """A DataFrame under a name of our own in its session.

    Its columns are called by the bytes of their names, so that no name is taken for anything else. Only those
    that are wanted are there.
    """

    def __init__(self, frame: Any, wanted: Sequence[str]) -> None:
        self.names, self.types = list(frame.columns), _types(frame)
        self._session = frame.sparkSession
        self.name = f"sourdine_{secrets.token_hex(8)}"
        renamed = frame.toDF(*(f"{column_name(name)}_{place}" for place, name in enumerate(frame.columns)))
        columns = [
            f"{self._cell(name, place)} AS {column_name(name)}"
            for place, name in enumerate(frame.columns)
            if name in wanted
        ]
        renamed.selectExpr(*columns).createOrReplaceTempView(self.name)
        weakref.finalize(self, _forget, self._session, self.name).atexit = False

    def _cell(self, name: str, place: int) -> str:
        """A column of the frame by its place, since names may be alike."""
        cell = f"{column_name(name)}_{place}"
        return SPARK.present(cell) if family(self.types[name]) is Family.FLOAT else cell

    @property
    def dialect(self) -> Dialect:
        """Spark's."""
        return SPARK

    @cached_property
    def failures(self) -> tuple[type[Exception], ...]:
        """The errors of Spark and of the way to it."""
        from pyspark.errors import PySparkException

        kinds: list[type[Exception]] = [PySparkException, OSError]
        with contextlib.suppress(ImportError):
            from py4j.protocol import Py4JError

            kinds.append(Py4JError)
        return tuple(kinds)

    def connect(self) -> None:
        """Make sure that the session has the table, so that what prevents it is raised before a charge."""
        try:
            with self._lending("", NOTHING):
                self._session.table(self.name).schema  # noqa: B018 (which asks the session)
        except Exception:
            raise InvalidParameter(
                "The session of Spark must be the one that the table was opened in, and still run. Open the "
                "table again."
            ) from None

    def digest(self) -> str:
        """Return what tells this table from another: a name that no other has."""
        return hashlib.sha256(self.name.encode()).hexdigest()

    def ask(self, sql: str, side_tables: SideTables = NOTHING) -> list[tuple[Any, ...]]:
        """The rows of a question."""
        with self._lending(sql, side_tables) as question:
            return [tuple(row) for row in self._session.sql(question).collect()]

    def columns(self, sql: str, side_tables: SideTables = NOTHING) -> dict[str, NDArray[Any]]:
        """The answer to a question as arrays, masked where a cell is NULL."""
        with self._lending(sql, side_tables) as question:
            answer = self._session.sql(question).toArrow()
        return {name: _array(answer.column(name)) for name in answer.column_names}

    def keep(self, sql: str, side_tables: SideTables = NOTHING) -> AnswerTable:
        """The answer under a name of our own, on the disks of the cluster from the first question on."""
        from pyspark import StorageLevel

        table = AnswerTable(f"sourdine_answer_{secrets.token_hex(8)}")
        with self._lending(sql, side_tables) as question:
            self._session.sql(question).createOrReplaceTempView(table.name)
            self._session.catalog.cacheTable(table.name, StorageLevel.DISK_ONLY)
        weakref.finalize(table, _forget, self._session, table.name).atexit = False
        return table

    @contextlib.contextmanager
    def _lending(self, sql: str, side_tables: SideTables) -> Iterator[str]:
        """The question, with each small table of ours under a name that nobody else has.

        Meanwhile PySpark does not write out errors, whose words may tell about records.
        """
        names = {name: f"{name}_{secrets.token_hex(8)}" for name in side_tables}
        for logger in _LOGGERS:
            _logger(logger).addFilter(_passes)
        asking = _ASKING.set(True)
        try:
            for name, columns in side_tables.items():
                self._session.createDataFrame(_rows(columns)).createOrReplaceTempView(names[name])
                sql = re.sub(rf"\b{name}\b", names[name], sql)
            yield sql
        finally:
            _ASKING.reset(asking)
            for name in names.values():
                _forget(self._session, name)


def _logger(name: str) -> logging.Logger:
    """A logger of PySpark, of its own class: with another one PySpark could not write to it later."""
    from pyspark.logger import PySparkLogger

    logger: logging.Logger = PySparkLogger.getLogger(name)
    return logger


def _passes(record: logging.LogRecord) -> bool:
    """Whether PySpark may write out an error: never one of our questions, always those of other threads."""
    return not _ASKING.get()


def _rows(columns: Mapping[str, NDArray[Any]]) -> Any:
    """Columns as a table that Spark takes; texts are told from numbers where there is no row as well."""
    import pyarrow as pa

    return pa.table(
        {
            column_name(name): pa.array(values, pa.string() if values.dtype == object else None)
            for name, values in columns.items()
        }
    )


def _types(frame: Any) -> Mapping[str, str]:
    return {field.name: _kind(field.dataType) for field in frame.schema.fields}


def _kind(typed: Any) -> str:
    """The name that DuckDB has for a type; one with a collation is called by it as well."""
    name: str = typed.typeName().partition(" ")[0]
    if name.startswith("decimal"):
        return f"DECIMAL({typed.precision},{typed.scale})"
    return _KINDS.get(name, name.upper())


def _array(column: Any) -> NDArray[Any]:
    """A column of an answer, masked where it is NULL; numbers keep all their digits."""
    lost = column.is_null().to_numpy(zero_copy_only=False).astype(bool)
    if str(column.type) in ("string", "large_string"):
        values = np.array(column.to_pylist(), dtype=object)
    else:
        values = column.fill_null(False if str(column.type) == "bool" else 0).to_numpy(zero_copy_only=False)
    return np.ma.masked_array(values, lost) if lost.any() else values


def _forget(session: Any, name: str) -> None:
    """Drop a view, and what the cluster keeps of it."""
    with contextlib.suppress(Exception):  # a session that is gone has forgotten it
        session.catalog.dropTempView(name)
