"""Columns as a question in Python names them: each knows what it holds, and offers what can be asked of it.

`people.c.age` is a number, so it has `mean()` and can be compared with 18; `people.c.sex` has keys, and no
mean. What does not fit is refused on the line where it is written. None of them holds any data.
"""

import difflib
from collections.abc import Iterator
from typing import Any

from sourdine.core.errors import InvalidParameter
from sourdine.frames.expressions import (
    Case,
    ColumnValue,
    DayKind,
    Expression,
    InPeriod,
    KeyKind,
    Kinds,
    MomentKind,
    NumberKind,
    TextKind,
    TimeBetween,
    TimePeriod,
    TruthKind,
)
from sourdine.frames.schema import Schema
from sourdine.tables.asking.numbers import AskedNumber
from sourdine.tables.asking.values import AskedColumn, AskedKeys, AskedOrdered, AskedText, AskedTruth


class AskedDate(AskedOrdered):
    """Dates or times between a declared first and last."""

    def _period(self, period: TimePeriod) -> AskedKeys:
        return AskedKeys(InPeriod(self.tree, period), self.kinds)

    def hour(self) -> AskedKeys:
        """The hour that it lies in."""
        return self._period(TimePeriod.HOUR)

    def day(self) -> AskedKeys:
        """The day that it lies in."""
        return self._period(TimePeriod.DAY)

    def week(self) -> AskedKeys:
        """The ISO week that it lies in."""
        return self._period(TimePeriod.WEEK)

    def month(self) -> AskedKeys:
        """The month that it lies in."""
        return self._period(TimePeriod.MONTH)

    def quarter(self) -> AskedKeys:
        """The quarter that it lies in."""
        return self._period(TimePeriod.QUARTER)

    def year(self) -> AskedKeys:
        """The year that it lies in."""
        return self._period(TimePeriod.YEAR)

    def weekday(self) -> AskedKeys:
        """The day of the week."""
        return self._period(TimePeriod.WEEKDAY)

    def hour_of_day(self) -> AskedKeys:
        """The hour of the day."""
        return self._period(TimePeriod.HOUR_OF_DAY)

    def __sub__(self, other: object) -> AskedNumber:
        return self.since(other)

    def since(self, other: object, unit: str = "days") -> AskedNumber:
        """How long after another it is, in days, hours, minutes or seconds."""
        return AskedNumber(TimeBetween(start=self._of(other), end=self.tree, unit=unit), self.kinds)


def column_of(tree: Expression, kinds: Kinds) -> AskedColumn:
    """An expression by what it holds."""
    match tree.kind(kinds):
        case NumberKind():
            return AskedNumber(tree, kinds)
        case KeyKind():
            return AskedKeys(tree, kinds)
        case TruthKind():
            return AskedTruth(tree, kinds)
        case TextKind():
            return AskedText(tree, kinds)
        case DayKind() | MomentKind():
            return AskedDate(tree, kinds)


class Columns:
    """The columns of a table, by attribute or by name; an editor completes them."""

    def __init__(self, schema: Schema) -> None:
        self._kinds = schema.kinds

    def __getitem__(self, name: str) -> AskedColumn:
        return column_of(ColumnValue(name), self._kinds)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._kinds:
            near = difflib.get_close_matches(name, self._kinds, n=1)
            meant = f" Did you mean '{near[0]}'?" if near else ""
            raise AttributeError(
                f"The column '{name}' is not declared.{meant} Declared are {', '.join(self._kinds)}."
            )
        return self[name]

    def __contains__(self, name: object) -> bool:
        return name in self._kinds

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def __dir__(self) -> list[str]:
        return [*self._kinds]

    def __repr__(self) -> str:
        return f"<Columns {', '.join(self._kinds)}>"


def case(*whens: tuple[AskedTruth, object], otherwise: object = None) -> AskedColumn:
    """The first value whose condition is true, else another; what is missing counts as not true.

    Values are constants or columns. `case((c.age < 18, "young"), otherwise="grown")` has two keys.
    """
    if not whens or not isinstance(whens[0][0], AskedTruth):
        raise InvalidParameter('A case is made of pairs, as in case((c.age < 18, "young"), otherwise="old").')
    first = whens[0][0]
    pairs = tuple((first._of(when), first._of(value)) for when, value in whens)
    tree = Case(pairs, None if otherwise is None else first._of(otherwise))
    return column_of(tree, first.kinds)
