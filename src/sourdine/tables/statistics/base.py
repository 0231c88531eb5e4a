"""What a statistic is: it says what it measures, how it is estimated, in what unit, and how far off."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, ClassVar, Self

from sourdine.core.format import either, value
from sourdine.frames.declared import Declared
from sourdine.frames.keys import Keys
from sourdine.frames.schema import Category, Flag, Integer, Number, PrivacyUnit, Real, Schema, span
from sourdine.frames.times import Date, Datetime
from sourdine.tables.answers import Answer
from sourdine.tables.intervals import GroupEstimate, Numbers, Reading
from sourdine.tables.measurement import (
    Context,
    GroupSums,
    Measurement,
    PlannedMeasurement,
    Scope,
    expect,
    plural,
)
from sourdine.tables.row_selection import IntervalKind, SelectedIntervals, conditional_estimate

Example = Mapping[str, object]
BY_SIZE = "declare the table's size"
EVENLY = "if values are spread evenly between their bounds"


class Chart(Enum):
    """How the values of an answer are drawn."""

    BARS = auto()  # to the right, one for each group
    UPRIGHT = auto()  # in the order of bins
    HEAT = auto()  # of a table with two columns, beside its sums
    NESTED = auto()  # bars of the finest level, beside larger ones
    CURVE = auto()  # over levels
    LIST = auto()  # keys in order, without a chart


class Scale(Enum):
    """What the values of an answer are."""

    NUMBER = auto()  # in the unit of a column
    SQUARE = auto()  # of that unit
    COUNT = auto()
    SHARE = auto()  # shown in per cent


@dataclass(frozen=True)
class Style:
    """How a statistic is shown. `of_units` says that every unit counts as one."""

    chart: Chart = Chart.BARS
    scale: Scale = Scale.NUMBER
    of_units: bool = False


@dataclass(frozen=True)
class Estimates:
    """An estimate for each key; `whole` says that the exact values are whole numbers."""

    estimate: GroupEstimate
    keys: Keys
    whole: bool = False


@dataclass(frozen=True)
class Expected:
    """What an error stays within, None where it is not known, in which measure, and under what assumption."""

    error: float | None
    measure: str = ""
    note: str = ""


class Statistic(Declared, ABC):
    """Something that can be asked of the records of each group.

    A class says everything about its statistic. It is listed in `tables.statistics.STATISTICS`, from where
    plans, releases, reports, audits and specifications have it; none of them knows its name.
    """

    kind: str
    style: ClassVar[Style]
    example: ClassVar[Example]  # how a specification asks for it, in its short form
    other_names: ClassVar[tuple[str, ...]] = ()  # that others call it by
    bare: ClassVar[bool] = False  # asked for by its name alone, of no column
    bounded: ClassVar[bool] = True  # every method gives intervals
    disjoint: ClassVar[bool] = False  # the keys that it adds have noise of their own, as groups have
    totals: ClassVar[bool] = False  # some of its values are sums over its groups

    @property
    @abstractmethod
    def label(self) -> str:
        """What is asked, in a few words."""

    @property
    def form(self) -> str:
        """Its kind, and the method where there are several that measure unlike things."""
        return self.kind

    @property
    @abstractmethod
    def about(self) -> tuple[str, ...]:
        """The columns that it is about."""

    @property
    def adds(self) -> tuple[str, ...]:
        """The names of the keys of its answers, beside those of the query."""
        return ()

    @property
    def opens(self) -> tuple[str, ...]:
        """The columns, beside those of the query, whose keys may be chosen privately for it."""
        return ()

    @classmethod
    def how(cls, example: Example | None = None) -> str:
        """How it is asked for, as the caller writes it: in Python by the class, in a file by its name.

        >>> from sourdine.tables.statistics import Mean
        >>> Mean.how()
        'Mean("pay")'
        """
        form = cls.example if example is None else example
        (_, first), *others = form.items() or [("", None)]
        arguments = [value(first) if form else "", *(f"{name}={value(each)}" for name, each in others)]
        in_python = f"{cls.__name__}({', '.join(filter(None, arguments))})"
        return either(in_python, value(form or str(cls.model_fields["kind"].default)))

    @classmethod
    def long(cls, kind: str, value: object, rest: Mapping[str, object], query: str) -> Mapping[str, object]:
        """The long form of { kind = value, ... }."""
        return {"kind": kind, "column": value, **rest}

    @abstractmethod
    def check(self, schema: Schema, owner: str) -> None:
        """Refuse what the declared columns cannot answer."""

    @abstractmethod
    def measurement(self, scope: Scope, schema: Schema) -> Measurement:
        """The least that it can be read off."""

    @abstractmethod
    def estimate(self, reading: Reading, measured: Measurement, schema: Schema) -> Estimates:
        """Its values and their intervals, off the measurement or another that serves it."""

    @abstractmethod
    def span(self, schema: Schema) -> tuple[float, float] | None:
        """The least and the most that it can be, whatever the table holds; None if not known."""

    @abstractmethod
    def unit_of_measure(self, unit: PrivacyUnit) -> str:
        """What it is counted in."""

    @abstractmethod
    def forecast(self, line: PlannedMeasurement, context: Context) -> Expected:
        """What its error stays within, from declarations alone."""

    @classmethod
    @abstractmethod
    def examples(cls, schema: Schema) -> Iterator[Self]:
        """Some of every form of it, for the columns of a schema; the audit and the contract run over them."""

    def answer(
        self,
        reading: Reading,
        measured: Measurement,
        context: Context,
        intervals: SelectedIntervals | None = None,
    ) -> Answer:
        """Its answer as it is published: rounded once, and within what is possible.

        `intervals` are given where some of its rows are not shown.
        """
        estimate, span = self.estimate(reading, measured, context.schema), self.span(context.schema)
        if intervals is not None and intervals.kind is IntervalKind.CONDITIONAL:
            rounded = conditional_estimate(
                estimate.estimate, intervals, confidence=context.confidence, whole=estimate.whole
            )
        else:
            rounded = estimate.estimate.rounded(estimate.whole)
        return Answer(
            query=measured.scope.query,
            statistic=self.label,
            kind=self.kind,
            columns=(*measured.scope.by, *self.adds),
            keys=estimate.keys,
            estimate=rounded if span is None else rounded.within(*span),
            measure=self.unit_of_measure(context.unit),
            whole=estimate.whole,
            span=span,
            chosen=measured.scope.open,
            confidence=context.confidence,
        )


def listed(*classes: type[Statistic]) -> tuple[type[Statistic], ...]:
    """Statistics by their classes. A type checker refuses one here that lacks a method."""
    return classes


def records_of(unit: PrivacyUnit) -> str:
    """What counts of records are counted in."""
    return plural(unit.name if unit.column is None else "record")


def numbers_of(schema: Schema) -> Iterator[str]:
    """The columns that hold numbers."""
    yield from (name for name, column in schema.columns.items() if isinstance(column, Integer | Real))


def grouped_by(schema: Schema) -> Iterator[str]:
    """The columns with declared keys, or with a period."""
    for name, column in schema.columns.items():
        keyed = isinstance(column, Category | Flag)
        if keyed or (isinstance(column, Date | Datetime) and column.period is not None):
            yield name


class Single(Statistic):
    """One number for each group, read off noisy numbers.

    `tell` gives it in some scale, and `scale` the step and the offset of the scale: so an answer and its
    forecast are one formula.
    """

    needs_size: ClassVar[bool] = False

    @abstractmethod
    def tell(self, numbers: Numbers, schema: Schema) -> GroupEstimate:
        """The value of each group, in the scale below."""

    def scale(self, schema: Schema) -> tuple[float, float]:
        """What one of the scale is worth, and its zero."""
        return 1.0, 0.0

    def keys(self, measured: Measurement, schema: Schema) -> Keys:
        """The keys of the groups."""
        return measured.keys(schema)

    def span(self, schema: Schema) -> tuple[float, float] | None:
        return None

    def estimate_of(self, reading: Reading, schema: Schema) -> GroupEstimate:
        """Its values and their intervals in its own measure."""
        return self.tell(expect(Numbers, reading), schema).scaled(*self.scale(schema))

    def estimate(self, reading: Reading, measured: Measurement, schema: Schema) -> Estimates:
        number, whole = self.estimate_of(reading, schema), expect(Numbers, reading).whole
        return Estimates(number, self.keys(measured, schema), whole)

    def forecast(self, line: PlannedMeasurement, context: Context) -> Expected:
        """The estimate of a typical group, with its interval."""
        if self.needs_size and context.size is None:
            return Expected(None, note=BY_SIZE)
        measured = expect(GroupSums, line.measurement)  # type: ignore[type-abstract]
        number = self.tell(expect(Numbers, measured.expected(line, context)), context.schema)
        error = number.half * self.scale(context.schema)[0]
        return Expected(error, self.unit_of_measure(context.unit), self.note(measured.scope, context))

    def note(self, scope: Scope, context: Context) -> str:
        """The assumption of a forecast."""
        if not self.needs_size:
            return ""
        return f"{EVENLY}, for groups of {context.size or 0:,.0f}" if scope.by else EVENLY


class OfColumn(Statistic):
    """Something asked of the numbers of a column."""

    column: str

    @property
    def label(self) -> str:
        return f"{self.kind} of {self.column}"

    @property
    def about(self) -> tuple[str, ...]:
        return (self.column,)

    def number(self, schema: Schema) -> Number:
        """The declared column."""
        return schema.number(self.kind, self.column)

    def check(self, schema: Schema, owner: str) -> None:
        """The column must hold numbers between declared bounds."""
        schema.number(f"The {self.kind} asked for in '{owner}'", self.column)

    def between(self, schema: Schema) -> tuple[float, float]:
        """The least and the most that a value of the column counts as."""
        column = self.number(schema)
        step, (low, high) = float(column.step), span(column)
        return max(low * step, float(column.lower)), min(high * step, float(column.upper))

    def unit_of_measure(self, unit: PrivacyUnit) -> str:
        return self.column


def as_tuple(fields: Any, name: str) -> Any:
    """A list, or one thing alone, as the model takes it."""
    if not isinstance(fields, Mapping) or name not in fields:
        return fields
    value = fields[name]
    if isinstance(value, list):
        return {**fields, name: tuple(value)}
    return {**fields, name: (value,)} if isinstance(value, str | int | float) else fields


def short(error: float) -> str:
    """An error as people read it."""
    return f"{error:,.0f}" if error >= 1000 else f"{error:.3g}"
