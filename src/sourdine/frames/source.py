"""A table open for questions: it stays where it is, and only small exact aggregates come back.

One language, SQL, speaks to every engine, in the dialect of each.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from sourdine.frames.cells.inside import held_number
from sourdine.frames.cells.places import number_name, place, place_of
from sourdine.frames.columns import Integer, Real, span
from sourdine.frames.engines.dialect import Dialect
from sourdine.frames.engines.engine import NOTHING, AnswerTable, SideTables, TableEngine
from sourdine.frames.engines.types import Family, family
from sourdine.frames.expression import Grouping, TableCells, grouping
from sourdine.frames.expressions import Expression
from sourdine.frames.schema import Schema, expression_of
from sourdine.frames.times.dates import Date, Datetime
from sourdine.frames.times.moments import microseconds_of, time_in, time_name

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
    >>> from sourdine.frames.opening import open_source
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
