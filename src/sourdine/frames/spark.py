"""A PySpark DataFrame: questions go to its cluster, and only their small answers come back."""

import contextlib
import logging
import re
import secrets
import weakref
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.frames.dialect import SPARK, Dialect, column_name
from sourdine.frames.engine import NOTHING, Lent

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
_WORDS = "DataFrameQueryContextLogger"  # where PySpark writes out what a cluster raises


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
        kept = [
            renamed[f"{column_name(name)}_{place}"].alias(column_name(name))
            for place, name in enumerate(frame.columns)
            if name in wanted
        ]
        renamed.select(*kept).createOrReplaceTempView(self.name)
        weakref.finalize(self, _forget, self._session, self.name).atexit = False

    @property
    def dialect(self) -> Dialect:
        """Spark's."""
        return SPARK

    @cached_property
    def failures(self) -> tuple[type[Exception], ...]:
        """The errors of Spark and of the way to it."""
        from pyspark.errors import PySparkException

        found: list[type[Exception]] = [PySparkException, OSError]
        with contextlib.suppress(ImportError):
            from py4j.protocol import Py4JError

            found.append(Py4JError)
        return tuple(found)

    def ask(self, sql: str, lent: Lent = NOTHING) -> list[tuple[Any, ...]]:
        """The rows of a question."""
        with self._lending(sql, lent) as asked:
            return [tuple(row) for row in self._session.sql(asked).collect()]

    def columns(self, sql: str, lent: Lent = NOTHING) -> dict[str, NDArray[Any]]:
        """The answer to a question as arrays, masked where a cell is NULL."""
        with self._lending(sql, lent) as asked:
            answer = self._session.sql(asked).toArrow()
        return {name: _array(answer.column(name)) for name in answer.column_names}

    @contextlib.contextmanager
    def _lending(self, sql: str, lent: Lent) -> Iterator[str]:
        """The question, with each small table of ours under a name that nobody else has.

        Meanwhile PySpark does not write out errors, whose words may tell about records.
        """
        names = {name: f"{name}_{secrets.token_hex(8)}" for name in lent}
        words = logging.getLogger(_WORDS)
        before, words.disabled = words.disabled, True
        try:
            for name, columns in lent.items():
                self._session.createDataFrame(_rows(columns)).createOrReplaceTempView(names[name])
                sql = re.sub(rf"\b{name}\b", names[name], sql)
            yield sql
        finally:
            words.disabled = before
            for name in names.values():
                _forget(self._session, name)


def _rows(columns: Mapping[str, NDArray[Any]]) -> Any:
    """Columns as a table that Spark takes; texts are told from numbers where there is no row as well."""
    import pyarrow as pa

    return pa.table(
        {
            column_name(name): pa.array(held, pa.string() if held.dtype == object else None)
            for name, held in columns.items()
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
        held = np.array(column.to_pylist(), dtype=object)
    else:
        held = column.fill_null(False if str(column.type) == "bool" else 0).to_numpy(zero_copy_only=False)
    return np.ma.masked_array(held, lost) if lost.any() else held


def _forget(session: Any, name: str) -> None:
    with contextlib.suppress(Exception):  # a session that is gone has forgotten it
        session.catalog.dropTempView(name)
