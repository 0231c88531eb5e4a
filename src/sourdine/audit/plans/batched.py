"""Many small tables asked at once, each as if it were alone.

A question is put to the engine once for all tables, inside a lateral join with their numbers: by the meaning
of SQL it is answered for each table apart. So the question is the same to the letter but for the table's
name, and one call serves thousands of tables.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.frames.engines.dialect import Dialect
from sourdine.frames.engines.duckdb import NOTHING, AnswerTable, SideTables, TableEngine
from sourdine.frames.joins import Joined
from sourdine.frames.source import Source

NUMBER = "sourdine_table"  # the column that tells tables apart
_OUTER = "sourdine_tables"
QuestionKey = tuple[str, str]


@dataclass(frozen=True)
class BatchedSource:
    """A source that holds the records of several tables, told apart by a column."""

    source: Source
    tables: int
    _rows: dict[QuestionKey, list[list[tuple[Any, ...]]]] = field(default_factory=dict)
    _columns: dict[QuestionKey, list[dict[str, NDArray[Any]]]] = field(default_factory=dict)

    def table(self, number: int) -> Source:
        """One of the tables, with what is joined to it."""
        one = copy(self._first)  # with what was worked out from declarations, the same for all
        engine: TableEngine = OneOfMany(self, number)
        if isinstance(one.engine, Joined):
            joined = copy(one.engine)
            object.__setattr__(joined, "base", engine)
            engine = joined
        object.__setattr__(one, "engine", engine)
        return one

    @cached_property
    def _first(self) -> Source:
        """The first table, with the text that questions to all of them begin from."""
        engine, one = self.source.engine, OneOfMany(self, 0)
        first = replace(self.source, engine=replace(engine, base=one) if isinstance(engine, Joined) else one)
        assert first.view
        assert first.engine.types
        return first

    @property
    def whole(self) -> TableEngine:
        """The engine that holds all tables."""
        engine = self.source.engine
        return engine.base if isinstance(engine, Joined) else engine

    def rows(self, sql: str, side_tables: SideTables, number: int) -> list[tuple[Any, ...]]:
        """The rows of a question to one table."""
        question = (sql, _key_of(side_tables))
        if question not in self._rows:
            answers: list[list[tuple[Any, ...]]] = [[] for _ in range(self.tables)]
            for row in self.whole.ask(self._all(sql), side_tables):
                answers[row[0]].append(row[1:])
            self._rows[question] = answers
        return self._rows[question][number]

    def columns(self, sql: str, side_tables: SideTables, number: int) -> dict[str, NDArray[Any]]:
        """The answer of one table as arrays."""
        question = (sql, _key_of(side_tables))
        if question not in self._columns:
            self._columns[question] = _parted(self.whole.columns(self._all(sql), side_tables), self.tables)
        return self._columns[question][number]

    def _all(self, sql: str) -> str:
        numbers = f"range({self.tables}) AS {_OUTER}({NUMBER})"
        return f"SELECT {_OUTER}.{NUMBER} AS {_OUTER}, one.* FROM {numbers}, LATERAL ({sql}) AS one"


@dataclass(frozen=True)
class OneOfMany:
    """The engine of one of several tables, which passes for an engine of its own."""

    all: BatchedSource
    number: int

    @property
    def whole(self) -> TableEngine:
        """The engine that holds all tables."""
        return self.all.whole

    @property
    def dialect(self) -> Dialect:
        """How its SQL is written."""
        return self.whole.dialect

    @property
    def name(self) -> str:
        """The records of the table that a question is being answered for."""
        mine = f"CAST(every.{NUMBER} AS BIGINT) = {_OUTER}.{NUMBER}"
        return f"(SELECT * FROM {self.whole.name} AS every WHERE {mine})"

    @property
    def names(self) -> Sequence[str]:
        """What its columns are called."""
        return self.whole.names

    @property
    def types(self) -> Mapping[str, str]:
        """The type of each column."""
        return self.whole.types

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """What it raises."""
        return self.whole.failures

    def connect(self) -> None:
        """Make sure that a question can be asked."""
        self.whole.connect()

    def digest(self) -> str:
        """Return what tells the table from another."""
        return self.whole.digest()

    def ask(self, sql: str, side_tables: SideTables = NOTHING) -> list[tuple[Any, ...]]:
        """The rows of a question."""
        return self.all.rows(sql, side_tables, self.number)

    def columns(self, sql: str, side_tables: SideTables = NOTHING) -> dict[str, NDArray[Any]]:
        """The answer to a question as arrays."""
        return self.all.columns(sql, side_tables, self.number)

    def keep(self, sql: str, side_tables: SideTables = NOTHING) -> AnswerTable:
        """The question, which is asked again within others."""
        return AnswerTable(f"({sql})")


def numbered(tables: Sequence[Sequence[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """The records of all tables, each with the number of its table as a last cell."""
    return [(*row, number) for number, rows in enumerate(tables) for row in rows]


def _key_of(side_tables: SideTables) -> str:
    """What is lent to a question, as a text that tells it from others."""
    return repr(
        {of: {name: cells.tolist() for name, cells in columns.items()} for of, columns in side_tables.items()}
    )


def _parted(columns: Mapping[str, NDArray[Any]], tables: int) -> list[dict[str, NDArray[Any]]]:
    whose = np.ma.getdata(columns[_OUTER]).astype(np.int64)
    order = np.argsort(whose, kind="stable")
    edges = np.searchsorted(whose[order], np.arange(tables + 1))
    ordered = {name: column[order] for name, column in columns.items() if name != _OUTER}
    return [
        {name: column[edges[i] : edges[i + 1]] for name, column in ordered.items()} for i in range(tables)
    ]
