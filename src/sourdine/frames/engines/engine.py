"""Where a table lives, and how it is asked: DuckDB, for files and for frames in memory."""

import contextlib
import hashlib
import itertools
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.frames.engines.connections import Connections, Database
from sourdine.frames.engines.dialect import DUCKDB, Dialect
from sourdine.frames.engines.types import Family, family

if TYPE_CHECKING:
    import duckdb

SideTables = Mapping[str, Mapping[str, NDArray[Any]]]
"""Small tables of ours that go along with a question, which knows them by these names."""
NOTHING: SideTables = {}
VIEW = "sourdine_source"
"""What a table is called where it is opened; floats may be NaN there."""
_numbers = itertools.count()
_foreign = threading.RLock()
_Fetched = TypeVar("_Fetched")


class Failure(Enum):
    """Why a question was not answered, where no value of any record can be the reason.

    Values decide how much memory and disk a question takes, and whether a decoder or a driver gives up, so
    these are not among them.
    """

    BUSY = "Another thread used the connection of the table"
    INTERRUPTED = "The question was interrupted"
    CLOSED = "The connection to the table was closed"


_FAILURES = {
    ("duckdb", "ResourceInUseException"): Failure.BUSY,
    ("duckdb", "InterruptException"): Failure.INTERRUPTED,
    ("duckdb", "ConnectionException"): Failure.CLOSED,
    ("py4j", "Py4JNetworkError"): Failure.CLOSED,
}


def failure_of(problem: BaseException) -> Failure | None:
    """Return the class of a failure that values cannot cause, and None for any other; by types alone."""
    kind = type(problem)
    return _FAILURES.get((kind.__module__.partition(".")[0].strip("_"), kind.__name__))


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

    def connect(self) -> None:
        """Make sure that a question can be asked, so that what prevents it is raised before a charge."""

    def digest(self) -> str:
        """Return what tells this table from another, by which it is and not by what it holds."""

    def ask(self, sql: str, side_tables: SideTables = NOTHING) -> list[tuple[Any, ...]]:
        """The rows of a question, as exact Python numbers."""

    def columns(self, sql: str, side_tables: SideTables = NOTHING) -> dict[str, NDArray[Any]]:
        """The answer to a question as arrays, one a column."""

    def keep(self, sql: str, side_tables: SideTables = NOTHING) -> AnswerTable:
        """The answer to a question, which stays where it is for others that name it."""


@dataclass(frozen=True)
class InDuckDB:
    """A relation of DuckDB, on connections of our own or on the one of its owner.

    Times of UTC that had a zone are `instants`. It may hold fewer columns than the table has; `names` are
    those of all. Those that are `wanted` may be asked about; None is for every one.
    """

    relation: "duckdb.DuckDBPyRelation" = field(repr=False)
    connections: Connections | None = field(default=None, repr=False)
    names: Sequence[str] = ()
    instants: frozenset[str] = frozenset()
    wanted: Sequence[str] | None = None
    process: int = field(default_factory=os.getpid, repr=False)

    def __post_init__(self) -> None:
        if not self.names:
            object.__setattr__(self, "names", tuple(self.relation.columns))

    @classmethod
    def of(cls, connections: Connections, instants: frozenset[str] = frozenset()) -> Self:
        """Return the table of a database of our own."""
        database = connections.database
        return cls(database.relation, connections, names=database.names, instants=instants)

    @cached_property
    def name(self) -> str:
        """The table in SQL, in which no float is NaN."""
        floats = [
            name
            for name, kind in self.types.items()
            if family(kind) is Family.FLOAT and (self.wanted is None or name in self.wanted)
        ]
        if not floats:
            return VIEW
        cells = (f"{DUCKDB.present(cell)} AS {cell}" for cell in map(DUCKDB.quoted, floats))
        return f"(SELECT * REPLACE ({', '.join(cells)}) FROM {VIEW})"

    @property
    def dialect(self) -> Dialect:
        """DuckDB's."""
        return DUCKDB

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """The errors of DuckDB."""
        import duckdb

        return (duckdb.Error,)

    @property
    def connection(self) -> "duckdb.DuckDBPyConnection | None":
        """The connection of our own that others are made from; None for a relation of somebody else's."""
        return None if self.connections is None else self.connections.database.connection

    @cached_property
    def types(self) -> Mapping[str, str]:
        """The type of each column that can be asked about."""
        kinds = dict(zip(self.relation.columns, map(str, self.relation.types), strict=True))
        return {
            name: kind.replace("TIMESTAMP", "INSTANT") if name in self.instants else kind
            for name, kind in kinds.items()
        }

    def connect(self) -> None:
        """Make sure that a question can be asked, so that what prevents it is raised before a charge."""
        if self.connections is not None:
            self.connections.connect()
        elif self.process != os.getpid():
            # its owner's connection has threads that a fork lacks, and would wait for them
            raise InvalidParameter(
                "A relation of DuckDB must be asked in the process that opened it, and this one was forked "
                "from that. Open the relation and the table here."
            )

    def digest(self) -> str:
        """Return what tells this table from another."""
        if self.connections is not None:
            return self.connections.digest()
        return hashlib.sha256(repr((self.process, id(self.relation))).encode()).hexdigest()

    def ask(self, sql: str, side_tables: SideTables = NOTHING) -> list[tuple[Any, ...]]:
        """The rows of a question."""
        return self._answer(sql, side_tables, lambda answer: answer.fetchall())

    def columns(self, sql: str, side_tables: SideTables = NOTHING) -> dict[str, NDArray[Any]]:
        """The answer to a question as arrays, masked where a cell is NULL."""
        return self._answer(sql, side_tables, lambda answer: answer.fetchnumpy())

    def keep(self, sql: str, side_tables: SideTables = NOTHING) -> AnswerTable:
        """The answer in a table of a database of our own, which may spill to the disk.

        It is in memory like a temporary table, but every connection sees it. On another's connection nothing
        is made: the question is asked again each time.
        """
        if self.connections is None:
            return AnswerTable(f"({sql})")
        table = AnswerTable(f"sourdine_answer_{next(_numbers)}")
        self._answer(f"CREATE TABLE {table.name} AS {sql}", side_tables, lambda answer: None)
        weakref.finalize(table, _drop, self.connections.database, table.name).atexit = False
        return table

    def _answer(self, sql: str, side_tables: SideTables, fetch: Callable[[Any], _Fetched]) -> _Fetched:
        """What is fetched of the answer, on a connection that no other question uses before that."""
        tables = {name: dict(columns) for name, columns in side_tables.items()}
        if self.connections is not None:
            with self.connections.question() as connection:
                for name, columns in tables.items():
                    connection.register(name, columns)
                answer = fetch(connection.execute(sql))
                for name in tables:
                    connection.unregister(name)
                return answer
        # On a connection that is not ours, what is lent is found by the names of variables where it is asked.
        # Which relations share a connection is not known, so no two of them are asked at once.
        with _foreign:
            here = {"relation": self.relation, "name": VIEW, "sql": sql}
            return fetch(eval("relation.query(name, sql)", tables, here))


def _drop(database: Database, name: str) -> None:
    if database.process != os.getpid():
        return
    with contextlib.suppress(Exception):  # a connection that is closed has dropped it
        connection = database.take()
        connection.execute(f"DROP TABLE IF EXISTS {name}")
        database.put(connection)
