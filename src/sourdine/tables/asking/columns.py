"""Columns as a question in Python names them: each knows what it holds, and offers what can be asked of it.

`people.c.age` is a number, so it has `mean()` and can be compared with 18; `people.c.sex` has keys, and no
mean. What does not fit is refused on the line where it is written. None of them holds any data.
"""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import numpy as np

from sourdine.core.errors import InvalidParameter
from sourdine.frames.expressions import (
    Absolute,
    Add,
    All,
    Among,
    AnyOf,
    BinOf,
    Case,
    Ceiling,
    Clamp,
    Coalesce,
    ColumnValue,
    Comparison,
    Constant,
    DayKind,
    Divide,
    Expression,
    Floor,
    Greatest,
    InPeriod,
    IsMissing,
    KeyKind,
    Kinds,
    Least,
    Letters,
    Like,
    Logarithm,
    MomentKind,
    Multiply,
    Negate,
    Not,
    NullIf,
    NumberKind,
    Power,
    Root,
    Substring,
    Subtract,
    TextKind,
    TimeBetween,
    TimePeriod,
    TruthKind,
)
from sourdine.frames.schema import Schema
from sourdine.tables.asking.asked import AskedOf

Scalar = int | float | Fraction | str | bool | date | datetime


@dataclass(frozen=True, eq=False)
class AskedColumn:
    """A column, or what is computed of some, of a declared table."""

    tree: Expression
    kinds: Kinds

    def __post_init__(self) -> None:
        self.tree.kind(self.kinds)  # what could have no value is refused here

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.tree.text}, {self.tree.kind(self.kinds).words}>"

    def __bool__(self) -> bool:
        return bool(self.tree)  # which explains & and |

    def __hash__(self) -> int:
        return hash(self.tree)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        offered = ", ".join(each for each in dir(type(self)) if not each.startswith("_"))
        raise AttributeError(
            f"'{self.tree.text}' is {self.tree.kind(self.kinds).words}, of which '{name}' cannot be asked. "
            f"It has {offered}."
        )

    @property
    def column_name(self) -> str:
        """The name of a declared column."""
        if isinstance(self.tree, ColumnValue):
            return self.tree.name
        raise InvalidParameter(
            f"'{self.tree.text}' is computed, so it has no name yet. Ask through it, as in .mean(), or "
            "declare "
            "it as a column."
        )

    def is_missing(self) -> "AskedTruth":
        """Whether it is missing."""
        return self._truth(IsMissing(self.tree))

    def __eq__(self, other: object) -> "AskedTruth":  # type: ignore[override]
        return self._compared("=", other)

    def __ne__(self, other: object) -> "AskedTruth":  # type: ignore[override]
        return self._compared("<>", other)

    def _compared(self, sign: str, other: object) -> "AskedTruth":
        right = self._of(other)
        if isinstance(right, Constant) and sign in ("=", "<>") and not isinstance(right.value, date):
            kind = self.tree.kind(self.kinds)
            if not isinstance(kind, NumberKind):
                among = Among(self.tree, (right.value,))  # type: ignore[arg-type]
                return self._truth(among if sign == "=" else Not(among))
        return self._truth(Comparison(self.tree, sign, right))

    def _truth(self, tree: Expression) -> "AskedTruth":
        return AskedTruth(tree, self.kinds)

    def _of(self, other: object) -> Expression:
        """Another column, or a constant: beside dates a text is one."""
        if isinstance(other, AskedColumn):
            if other.kinds is not self.kinds and other.kinds != self.kinds:
                raise InvalidParameter("The two columns are of unlike tables. Take both from the same one.")
            return other.tree
        if isinstance(other, str) and isinstance(self.tree.kind(self.kinds), DayKind | MomentKind):
            return Constant(_time(other, isinstance(self.tree.kind(self.kinds), MomentKind)))
        if hasattr(other, "item") and not isinstance(other, date):
            other = other.item()
        return Constant(other)  # type: ignore[arg-type]


class AskedTruth(AskedColumn):
    """True, false or missing: a flag, or a condition."""

    def __and__(self, other: object) -> "AskedTruth":
        return self._joined(All, other)

    def __or__(self, other: object) -> "AskedTruth":
        return self._joined(AnyOf, other)

    def __invert__(self) -> "AskedTruth":
        return self._truth(Not(self.tree))

    def _joined(self, make: type[All], other: object) -> "AskedTruth":
        parts: list[Expression] = []
        for each in (self.tree, self._of(other)):
            parts += each.of if type(each) is make else [each]
        return self._truth(make(tuple(parts)))

    def proportion(self) -> AskedOf:
        """The share of records for which it is true."""
        return AskedOf("mean", {"column": Case(((self.tree, Constant(1)), (Not(self.tree), Constant(0))))})


class _Ordered(AskedColumn):
    """What comes before or after something else."""

    def __lt__(self, other: object) -> AskedTruth:
        return self._compared("<", other)

    def __le__(self, other: object) -> AskedTruth:
        return self._compared("<=", other)

    def __gt__(self, other: object) -> AskedTruth:
        return self._compared(">", other)

    def __ge__(self, other: object) -> AskedTruth:
        return self._compared(">=", other)

    def between(self, lower: object, upper: object) -> AskedTruth:
        """Whether it is at least one thing and at most another."""
        return (self >= lower) & (self <= upper)


class AskedNumber(_Ordered):
    """Numbers between declared bounds."""

    def _number(self, tree: Expression) -> "AskedNumber":
        return AskedNumber(tree, self.kinds)

    def __add__(self, other: object) -> "AskedNumber":
        return self._number(Add(self.tree, self._of(other)))

    def __radd__(self, other: object) -> "AskedNumber":
        return self._number(Add(self._of(other), self.tree))

    def __sub__(self, other: object) -> "AskedNumber":
        return self._number(Subtract(self.tree, self._of(other)))

    def __rsub__(self, other: object) -> "AskedNumber":
        return self._number(Subtract(self._of(other), self.tree))

    def __mul__(self, other: object) -> "AskedNumber":
        return self._number(Multiply(self.tree, self._of(other)))

    def __rmul__(self, other: object) -> "AskedNumber":
        return self._number(Multiply(self._of(other), self.tree))

    def __truediv__(self, other: object) -> "AskedNumber":
        return self._number(Divide(self.tree, self._of(other)))

    def __rtruediv__(self, other: object) -> "AskedNumber":
        return self._number(Divide(self._of(other), self.tree))

    def __neg__(self) -> "AskedNumber":
        return self._number(Negate(self.tree))

    def __abs__(self) -> "AskedNumber":
        return self._number(Absolute(self.tree))

    def __pow__(self, exponent: int) -> "AskedNumber":
        return self._number(Power(self.tree, exponent))

    def floor(self) -> "AskedNumber":
        """The whole number at it or below."""
        return self._number(Floor(self.tree))

    def ceil(self) -> "AskedNumber":
        """The whole number at it or above."""
        return self._number(Ceiling(self.tree))

    def ln(self) -> "AskedNumber":
        """The natural logarithm."""
        return self._number(Logarithm(self.tree))

    def sqrt(self) -> "AskedNumber":
        """The square root."""
        return self._number(Root(self.tree))

    def clamp(self, lower: float, upper: float) -> "AskedNumber":
        """The same within closer bounds."""
        return self._number(Clamp(self.tree, lower, upper))

    def nullif(self, value: float) -> "AskedNumber":
        """The same, missing where it is a value."""
        return self._number(NullIf(self.tree, Constant(value)))

    def fill(self, value: float) -> "AskedNumber":
        """The same, a value where it is missing."""
        return self._number(Coalesce((self.tree, Constant(value))))

    def least(self, *others: object) -> "AskedNumber":
        """The least of it and others."""
        return self._number(Least((self.tree, *map(self._of, others))))

    def greatest(self, *others: object) -> "AskedNumber":
        """The greatest of it and others."""
        return self._number(Greatest((self.tree, *map(self._of, others))))

    def is_in(self, *numbers: int | float | Fraction) -> AskedTruth:
        """Whether it is one of some numbers."""
        return self._truth(Among(self.tree, numbers))  # type: ignore[arg-type]

    def bins(self, edges: Sequence[float], labels: Sequence[str] = ()) -> "AskedKeys":
        """The bin that it lies in, to group by."""
        return AskedKeys(BinOf(self.tree, tuple(edges), tuple(labels)), self.kinds)

    def sum(self) -> AskedOf:
        """The sum."""
        return AskedOf("sum", {"column": self.tree})

    def mean(self) -> AskedOf:
        """The mean."""
        return AskedOf("mean", {"column": self.tree})

    def variance(self) -> AskedOf:
        """The variance."""
        return AskedOf("variance", {"column": self.tree})

    def std_dev(self) -> AskedOf:
        """The standard deviation."""
        return AskedOf("deviation", {"column": self.tree})

    def quantiles(self, *levels: float | Sequence[float], method: str = "auto") -> AskedOf:
        """Quantiles at some levels, such as 0.25, 0.5, 0.75, or a list of them."""
        if len(levels) == 1 and isinstance(levels[0], Sequence | np.ndarray):
            levels = tuple(map(float, levels[0]))
        return AskedOf("quantiles", {"column": self.tree}, {"levels": levels, "method": method})

    def median(self) -> AskedOf:
        """The median."""
        return self.quantiles(0.5)

    def histogram(self, edges: Sequence[float]) -> AskedOf:
        """How many records lie in each bin."""
        return AskedOf("histogram", {"column": self.tree}, {"edges": tuple(edges)})

    def covariance(self, other: "AskedNumber") -> AskedOf:
        """The covariance with another column."""
        return AskedOf("covariance", {"column": self.tree, "other": self._of(other)})

    def correlation(self, other: "AskedNumber") -> AskedOf:
        """The correlation with another column."""
        return AskedOf("correlation", {"column": self.tree, "other": self._of(other)})

    def regression(self, on: "AskedNumber") -> AskedOf:
        """The line of least squares on another column."""
        return AskedOf("regression", {"column": self.tree, "other": self._of(on)})

    def weighted_mean(self, weight: "AskedNumber") -> AskedOf:
        """The mean by weights."""
        return AskedOf("weighted_mean", {"column": self.tree, "weight": self._of(weight)})

    def weighted_sum(self, weight: "AskedNumber") -> AskedOf:
        """The sum by weights."""
        return AskedOf("weighted_sum", {"column": self.tree, "weight": self._of(weight)})


class AskedKeys(AskedColumn):
    """Keys from a known list."""

    def is_in(self, *keys: str | int) -> AskedTruth:
        """Whether it is one of some keys."""
        return self._truth(Among(self.tree, keys))

    def like(self, pattern: str) -> AskedTruth:
        """Whether it is as a pattern says: % is any letters, _ is one."""
        return self._truth(Like(self.tree, pattern))

    def upper(self) -> "AskedKeys":
        """In capital letters."""
        return AskedKeys(Letters(self.tree, "UPPER"), self.kinds)

    def lower(self) -> "AskedKeys":
        """In small letters."""
        return AskedKeys(Letters(self.tree, "LOWER"), self.kinds)

    def substring(self, start: int, length: int) -> "AskedKeys":
        """Some of its letters, the first being 1."""
        return AskedKeys(Substring(self.tree, start, length), self.kinds)

    def top(self, k: int) -> AskedOf:
        """The k keys that most units have, in order."""
        return AskedOf("top", {"column": self.tree}, {"k": k})


class AskedText(AskedColumn):
    """Texts that nobody lists: keys are chosen privately."""

    def is_in(self, *keys: str) -> AskedTruth:
        """Whether it is one of some texts."""
        return self._truth(Among(self.tree, keys))

    def like(self, pattern: str) -> AskedTruth:
        """Whether it is as a pattern says: % is any letters, _ is one."""
        return self._truth(Like(self.tree, pattern))

    def top(self, k: int) -> AskedOf:
        """The k texts that most units have, in order."""
        return AskedOf("top", {"column": self.tree}, {"k": k})


class AskedDate(_Ordered):
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


def _time(text: str, with_clock: bool) -> date | datetime:
    try:
        return datetime.fromisoformat(text) if with_clock else date.fromisoformat(text)
    except ValueError:
        raise InvalidParameter(
            "A date is written like '2024-12-31', a time like '2024-12-31 18:00:00'."
        ) from None
