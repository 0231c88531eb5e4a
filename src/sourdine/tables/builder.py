"""A statistic as a question in Python asks for it, before it has a query."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from pydantic import ValidationError

from sourdine.core.errors import InvalidParameter
from sourdine.frames.declared import mistake
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
from sourdine.frames.expressions.times import parse_time
from sourdine.frames.schema import Schema
from sourdine.tables.compare import (
    AnswerChange,
    AnswerDifference,
    AnswerFormula,
    AnswerRatio,
    AnswerShare,
    AnswerStep,
)
from sourdine.tables.query import Query, with_expressions
from sourdine.tables.shown_rows import EVERYTHING, RowOrder, Show
from sourdine.tables.statistics import BY_KIND, Statistic


class Keyed(Protocol):
    """A column to group by."""

    @property
    def tree(self) -> Expression: ...


@dataclass(frozen=True)
class AskedOf:
    """A statistic of some columns, and what is computed from its answers.

    `columns` are the fields of the statistic that name columns, which may be computed.
    """

    kind: str
    columns: Mapping[str, Expression]
    fields: Mapping[str, object] = field(default_factory=dict)
    steps: tuple[AnswerStep, ...] = ()
    groups: tuple[Expression, ...] = ()
    others: tuple["AskedOf | Statistic", ...] = ()

    @property
    def statistic(self) -> Statistic:
        """The statistic itself: what is computed is called by its text."""
        named = {name: name_of(tree) for name, tree in self.columns.items()}
        try:
            return BY_KIND[self.kind].model_validate({"kind": self.kind, **named, **self.fields})
        except ValidationError as problem:
            raise mistake(problem, BY_KIND[self.kind].__name__) from None

    @property
    def derived(self) -> dict[str, Expression]:
        """What is computed for it, by name."""
        trees = (*self.columns.values(), *self.groups)
        return {tree.label: tree for tree in trees if not isinstance(tree, ColumnValue)}

    def __repr__(self) -> str:
        return f"<{', '.join([self.statistic.label, *(step.label for step in self.steps)])}>"

    def difference(self, column: Keyed, first: str | int | bool, second: str | int | bool) -> "AskedOf":
        """How much more it is in one group of a column than in another, with its interval."""
        step = AnswerDifference(self.statistic.label, column=name_of(column.tree), first=first, second=second)
        return self._with(step, column)

    def ratio(self, column: Keyed, first: str | int | bool, second: str | int | bool) -> "AskedOf":
        """How many times it is in one group of a column what it is in another, with its interval."""
        step = AnswerRatio(self.statistic.label, column=name_of(column.tree), first=first, second=second)
        return self._with(step, column)

    def per(self, other: "AskedOf | Statistic") -> "AskedOf":
        """Its ratio to another statistic, as a sum per unit."""
        return self._beside(AnswerRatio(self.statistic.label, per=label_of(other)), other)

    def less(self, other: "AskedOf | Statistic") -> "AskedOf":
        """What it is more than another statistic."""
        return self._beside(AnswerDifference(self.statistic.label, less=label_of(other)), other)

    def share(self, column: Keyed | None = None) -> "AskedOf":
        """What part of the total each group is: of all, or of those alike in every other column."""
        name = None if column is None else name_of(column.tree)
        step = AnswerShare(self.statistic.label, column=name)
        return replace(self, steps=(*self.steps, step)) if column is None else self._with(step, column)

    def change(self, column: Keyed, *, relative: bool = False) -> "AskedOf":
        """Its change from one key of a column to the next, as from month to month."""
        return self._with(
            AnswerChange(self.statistic.label, column=name_of(column.tree), relative=relative), column
        )

    def scaled(self, factor: float = 1, *, offset: float = 0, power: int = 1) -> "AskedOf":
        """The answer raised to a power, times a factor, and shifted."""
        step = AnswerFormula(self.statistic.label, factor=factor, offset=offset, power=power)
        return replace(self, steps=(*self.steps, step))

    def _with(self, step: AnswerStep, column: Keyed) -> "AskedOf":
        groups = self.groups if column.tree in self.groups else (*self.groups, column.tree)
        return replace(self, steps=(*self.steps, step), groups=groups)

    def _beside(self, step: AnswerStep, other: "AskedOf | Statistic") -> "AskedOf":
        return replace(self, steps=(*self.steps, step), others=(*self.others, other))


def name_of(tree: Expression) -> str:
    """What a column, or what is computed, is called."""
    return tree.name if isinstance(tree, ColumnValue) else tree.label


def label_of(statistic: AskedOf | Statistic) -> str:
    """The label of a statistic."""
    if isinstance(statistic, AskedOf):
        return statistic.statistic.label
    if isinstance(statistic, Statistic):
        return statistic.label
    raise InvalidParameter("Compare with a statistic, such as c.pay.sum() or st.Units().")


def flat(statistics: Sequence[AskedOf | Statistic]) -> list[AskedOf | Statistic]:
    """Everything that is asked for, also what others are compared with."""
    one_by_one: list[AskedOf | Statistic] = []
    for each in statistics:
        one_by_one.append(each)
        if isinstance(each, AskedOf):
            one_by_one += flat(each.others)
    return one_by_one


# Values that a question in Python names: what holds, what has keys, and what has an order.


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
            return Constant(parse_time(other, isinstance(self.tree.kind(self.kinds), MomentKind)))
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


class AskedOrdered(AskedColumn):
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


# Numbers that a question in Python names: arithmetic on them, and what can be asked of them.


class AskedNumber(AskedOrdered):
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


# Columns as a question in Python names them: each knows what it holds, and offers what can be asked of it.
#
# `people.c.age` is a number, so it has `mean()` and can be compared with 18; `people.c.sex` has keys, and
# no mean. What does not fit is refused on the line where it is written. None of them holds any data.


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


# A question in Python, built step by step: which records, by which keys, what, and with what weight.


@dataclass(frozen=True, kw_only=True)
class TableQuestion:
    """A question about a declared table. Each step gives another question, and this one stays as it is."""

    name: str
    schema: Schema
    conditions: tuple[Expression, ...] = ()
    keys: tuple[Expression, ...] = ()
    statistics: tuple[AskedOf | Statistic, ...] = ()
    heaviness: float = 1
    rows: Show = EVERYTHING

    def __repr__(self) -> str:
        by = f" by {', '.join(map(name_of, self.keys))}" if self.keys else ""
        where = f" where {' and '.join(each.text for each in self.conditions)}" if self.conditions else ""
        return f"<Question {self.name!r}{by}{where}; nothing is read or spent>"

    def where(self, *conditions: AskedTruth) -> "TableQuestion":
        """Of records for which all conditions are true."""
        trees: list[Expression] = []
        for each in conditions:
            if not isinstance(each, AskedTruth):
                raise InvalidParameter(
                    "A condition compares columns, as in c.age >= 18. In brackets, join several by & and |."
                )
            trees += each.tree.of if type(each.tree) is All else [each.tree]
        return self._checked(replace(self, conditions=(*self.conditions, *trees)))

    def by(self, *columns: AskedColumn) -> "TableQuestion":
        """For each key of some columns, or of what is computed of them."""
        for each in columns:
            if not isinstance(each, AskedColumn):
                raise InvalidParameter("Group by columns of the table, as in by(c.sex, c.seen.month()).")
        return self._checked(replace(self, keys=(*self.keys, *(each.tree for each in columns))))

    def get(self, *statistics: AskedOf | Statistic) -> "TableQuestion":
        """Statistics, such as c.pay.mean() or st.Count()."""
        for each in statistics:
            if not isinstance(each, AskedOf | Statistic):
                raise InvalidParameter(
                    "Ask for statistics, such as c.pay.mean() of a column or st.Count() of the records."
                )
        return self._checked(replace(self, statistics=(*self.statistics, *statistics)))

    def weight(self, weight: float) -> "TableQuestion":
        """With more or less of the budget than other questions, which have 1."""
        return self._checked(replace(self, heaviness=weight))

    def order_by(self, *labels: str, descending: bool = False) -> "TableQuestion":
        """Rows in the order of answers, by their labels, or of keys. It costs nothing."""
        orders = tuple(RowOrder(of=label, descending=descending) for label in labels)
        return replace(self, rows=self.rows.model_copy(update={"order": (*self.rows.order, *orders)}))

    def limit(self, count: int) -> "TableQuestion":
        """The first rows alone. All are measured and paid for."""
        return replace(self, rows=Show.model_validate({**self.rows.model_dump(), "limit": count}))

    def _checked(self, question: "TableQuestion") -> "TableQuestion":
        """Refuse what the columns cannot answer on the line that asks for it."""
        if question.statistics:
            query = question.query
            query.check(with_expressions(question.schema, [query]))
        return question

    @property
    def query(self) -> Query:
        """The query that it makes, as a specification or SQL would."""
        if not self.statistics:
            raise InvalidParameter(
                f"The question '{self.name}' asks for nothing yet. Add .get(st.Count()), or statistics of "
                "columns."
            )
        one_by_one = flat(self.statistics)
        keys = list(self.keys)
        for each in one_by_one:
            keys += [tree for tree in (each.groups if isinstance(each, AskedOf) else ()) if tree not in keys]
        trees = {tree.label: tree for tree in keys if not isinstance(tree, ColumnValue)}
        steps: list[AnswerStep] = []
        statistics: dict[str, Statistic] = {}
        for each in one_by_one:
            if isinstance(each, AskedOf):
                trees |= each.derived
                steps += each.steps
                statistics.setdefault(each.statistic.label, each.statistic)
            else:
                statistics.setdefault(each.label, each)
        return Query(
            self.name,
            list(statistics.values()),
            by=[name_of(tree) for tree in keys],
            where=list(self.conditions),
            derived=trees,
            compare=list(dict.fromkeys(steps)),
            show=self.rows,
            weight=self.heaviness,
        )
