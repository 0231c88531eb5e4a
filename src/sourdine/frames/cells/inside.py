"""Records whose cells lie within their bounds, which most do: expressions are computed of them as they stand.

One test tells such a record from the others, and then no cell of it is looked at twice. The others go the
general way, cell by cell. Both give the same, and no value can raise in either.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sourdine.frames.cells.places import number_name, place_of, sides, steps_inside
from sourdine.frames.columns import Integer, Number, Real, span
from sourdine.frames.derived import DERIVED
from sourdine.frames.engines.dialect import Dialect
from sourdine.frames.engines.types import Family, family
from sourdine.frames.expressions import Expression, RecordCells, may_be_missing, walk
from sourdine.frames.schema import Schema
from sourdine.frames.times.dates import Date, Datetime
from sourdine.frames.times.moments import TimeInside, time_inside

_MOST_PARTS = 64  # of an expression that is written twice


def held_number(name: str, types: Mapping[str, str]) -> tuple[str, str]:
    """The column of a view that holds a declared number, and its type.

    A number in text is read once for the whole view, since it is compared with both bounds.
    """
    kind = types[name]
    return (number_name(name), "DOUBLE") if family(kind) is Family.TEXT else (name, kind)


@dataclass(frozen=True)
class CellsInside:
    """The columns of a record whose numbers and dates all lie within their bounds; keys and texts may not."""

    schema: Schema
    types: Mapping[str, str]
    cells: RecordCells

    @property
    def dialect(self) -> Dialect:
        """How the engine's SQL is written."""
        return self.cells.dialect

    def test(self, tree: Expression) -> str | None:
        """Whether a record is such a one, as far as an expression goes; None where that is not worth it."""
        if sum(1 for _ in walk(tree)) > _MOST_PARTS:
            return None
        tests = [self._test(name) for name in tree.columns]
        return " AND ".join(each for each in tests if each is not None) or None

    def _test(self, name: str) -> str | None:
        column = self.schema.columns[name]
        if isinstance(column, Integer | Real):
            if isinstance(column, DERIVED):
                return f"{place_of(name, self.dialect)} >= 0"
            return sides(*self._number(name, column), self.dialect)[0]
        inside = self._time(name)
        return None if inside is None else inside.test

    def lacks(self, tree: Expression) -> bool:
        """Return whether an expression of such a record may be missing."""
        return may_be_missing(tree, lambda name: self._test(name) is None)

    def _number(self, name: str, column: Number) -> tuple[str, Number, str]:
        column_sql, kind = held_number(name, self.types)
        return column_sql, column, kind

    def _time(self, name: str) -> TimeInside | None:
        column = self.schema.columns[name]
        if not isinstance(column, Date | Datetime):
            return None
        return time_inside(self.dialect.quoted(name), column, self.types[name], self.dialect)

    def place(self, name: str) -> str:
        """The steps of a number above its lower bound."""
        low, _ = span(self.schema.number("An expression", name))
        return f"({self.steps(name)} - ({low}))" if low else self.steps(name)

    def steps(self, name: str) -> str:
        """The steps of a number from 0, in 64 bits."""
        column = self.schema.number("An expression", name)
        if isinstance(column, DERIVED):
            return f"(CAST({place_of(name, self.dialect)} AS BIGINT) + ({span(column)[0]}))"
        return steps_inside(*self._number(name, column), "BIGINT", self.dialect)

    def code(self, name: str) -> str:
        """The place of a key among those that are declared."""
        return self.cells.code(name)

    def truth(self, name: str) -> str:
        """A flag."""
        return self.cells.truth(name)

    def time(self, name: str) -> str:
        """Days or seconds since 1970-01-01, in 64 bits."""
        inside = self._time(name)
        return self.cells.time(name) if inside is None else inside.number

    def date(self, name: str) -> str:
        """The day of a date or time, as a date of the engine."""
        inside = self._time(name)
        return self.cells.date(name) if inside is None else inside.date

    def text(self, name: str) -> str:
        """A text that may be a key."""
        return self.cells.text(name)

    def among(self, name: str, keys: tuple[str | int | bool, ...]) -> str:
        """Whether a column of keys, a flag or a text holds one of some keys."""
        return self.cells.among(name, keys)

    def matched(self, join: str) -> str:
        """Whether a record has a row in the public table of a join."""
        return self.cells.matched(join)
