"""Where a table lives, and how it is asked: DuckDB, for files and for frames in memory."""

import contextlib
import itertools
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from sourdine.frames.engines.dialect import DUCKDB, Dialect

if TYPE_CHECKING:
    import duckdb

SideTables = Mapping[str, Mapping[str, NDArray[Any]]]
"""Small tables of ours that go along with a question, which knows them by these names."""
NOTHING: SideTables = {}
_numbers = itertools.count()


@dataclass(frozen=True, eq=False)
class AnswerTable:
    """The answer to a question that stays in the engine, which knows it by this name, or asks it again.

    When nobody looks at it any more it is dropped.
    """

    name: str


class TableEngine(Protocol):
    """What a source asks of an engine."""

    @property
    def dialect(self) -> Dialect:
        """How its SQL is written."""

    @property
    def name(self) -> str:
        """What the table is called in SQL."""

    @property
    def names(self) -> Sequence[str]:
        """What its columns are called, those that are called alike as well."""

    @property
    def types(self) -> Mapping[str, str]:
        """The type of each column, by the name that DuckDB has for it."""

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """What it raises; its words may tell about records."""

    def ask(self, sql: str, side_tables: SideTables = NOTHING) -> list[tuple[Any, ...]]:
        """The rows of a question, as exact Python numbers."""

    def columns(self, sql: str, side_tables: SideTables = NOTHING) -> dict[str, NDArray[Any]]:
        """The answer to a question as arrays, one a column."""

    def keep(self, sql: str, side_tables: SideTables = NOTHING) -> AnswerTable:
        """The answer to a question, which stays where it is for others that name it."""


@dataclass(frozen=True)
class InDuckDB:
    """A relation of DuckDB, on a connection of our own or of its owner.

    What must be looked at to read it, such as the length of a file, waits for the first question: `prepare`.
    Times of UTC that had a zone are `instants`. It may hold fewer columns than the table has; `names` are
    those of all.
    """

    relation: "duckdb.DuckDBPyRelation" = field(repr=False)
    connection: "duckdb.DuckDBPyConnection | None" = field(default=None, repr=False)
    keep_alive: object = field(default=None, repr=False)
    prepare: Callable[[], None] | None = field(default=None, repr=False)
    names: Sequence[str] = ()
    instants: frozenset[str] = frozenset()
    name: str = "sourdine_source"

    def __post_init__(self) -> None:
        if not self.names:
            object.__setattr__(self, "names", tuple(self.relation.columns))

    @property
    def dialect(self) -> Dialect:
        """DuckDB's."""
        return DUCKDB

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """The errors of DuckDB."""
        import duckdb

        return (duckdb.Error,)

    @cached_property
    def types(self) -> Mapping[str, str]:
        """The type of each column that can be asked about."""
        kinds = dict(zip(self.relation.columns, map(str, self.relation.types), strict=True))
        return {
            name: kind.replace("TIMESTAMP", "INSTANT") if name in self.instants else kind
            for name, kind in kinds.items()
        }

    def ask(self, sql: str, side_tables: SideTables = NOTHING) -> list[tuple[Any, ...]]:
        """The rows of a question."""
        return self._answer(sql, side_tables).fetchall()

    def columns(self, sql: str, side_tables: SideTables = NOTHING) -> dict[str, NDArray[Any]]:
        """The answer to a question as arrays, masked where a cell is NULL."""
        return self._answer(sql, side_tables).fetchnumpy()

    def keep(self, sql: str, side_tables: SideTables = NOTHING) -> AnswerTable:
        """The answer in a table of a connection of our own, which may spill to the disk.

        On another's connection nothing is made: the question is asked again each time.
        """
        if self.own is None:
            return AnswerTable(f"({sql})")
        table = AnswerTable(f"sourdine_answer_{next(_numbers)}")
        self._answer(f"CREATE TEMP TABLE {table.name} AS {sql}", side_tables)
        weakref.finalize(table, _drop, self.own, table.name).atexit = False
        return table

    @cached_property
    def own(self) -> "duckdb.DuckDBPyConnection | None":
        """The connection, if it is our own, once the table can be read there."""
        if self.prepare is not None:
            self.prepare()
        return self.connection

    def _answer(
        self, sql: str, side_tables: SideTables
    ) -> "duckdb.DuckDBPyRelation | duckdb.DuckDBPyConnection":
        """The answer of the engine; a connection of our own knows the table by its name."""
        tables = {name: dict(columns) for name, columns in side_tables.items()}
        if self.own is not None:
            for name, columns in tables.items():
                self.own.register(name, columns)
            return self.own.execute(sql)
        # on a connection that is not ours, what is lent is found by the names of variables where it is asked
        here = {"relation": self.relation, "name": self.name, "sql": sql}
        answer: duckdb.DuckDBPyRelation | None = eval("relation.query(name, sql)", tables, here)
        assert answer is not None
        return answer


def _drop(connection: "duckdb.DuckDBPyConnection", name: str) -> None:
    with contextlib.suppress(Exception):  # a connection that is closed has dropped it
        connection.execute(f"DROP TABLE IF EXISTS {name}")
