"""Periods, parts and differences of dates and times."""

from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import entry
from sourdine.frames.expressions.arithmetic import exact_kind, floor_ratio, regrid
from sourdine.frames.expressions.calendar import (
    DAY,
    MOST_PERIODS,
    PART_BOUNDS,
    DatePart,
    TimePeriod,
    day_at,
    moment_at,
    names_of,
    number_of,
    span_of,
    start_at,
)
from sourdine.frames.expressions.kinds import DayKind, KeyKind, Kind, MomentKind, NumberKind
from sourdine.frames.expressions.logic import All, Not
from sourdine.frames.expressions.tree import (
    ColumnValue,
    Constant,
    Expression,
    Kinds,
    OfOne,
    RecordCells,
    days_of,
    enclosed,
    seconds_of,
)
from sourdine.frames.expressions.truths import Comparison

_NEEDS_TIME = (TimePeriod.HOUR, TimePeriod.HOUR_OF_DAY, DatePart.HOUR, DatePart.MINUTE)
_CUT = (TimePeriod.WEEKDAY, TimePeriod.HOUR_OF_DAY)
_SECONDS = {"days": DAY, "hours": 3600, "minutes": 60, "seconds": 1}


def expect_time(tree: Expression, kinds: Kinds, owner: str) -> DayKind | MomentKind:
    """The kind of an expression that must be a date or a time."""
    kind = tree.kind(kinds)
    if not isinstance(kind, DayKind | MomentKind):
        raise InvalidParameter(
            f"{owner} needs a date or a time, and '{tree.text}' is {kind.words}. Declare the column with "
            f"{entry('type', 'date')} or {entry('type', 'datetime')}, its first and its last."
        )
    return kind


def moments_of(kind: DayKind | MomentKind) -> tuple[int, int]:
    """The first and the last second."""
    if isinstance(kind, MomentKind):
        return kind.first, kind.last
    return kind.first * DAY, kind.last * DAY


def _check_time(tree: Expression, part: str, kind: Kind) -> None:
    if part in _NEEDS_TIME and isinstance(kind, DayKind):
        raise InvalidParameter(
            f"'{tree.text}' holds dates, which have no {part.partition('_')[0]}. Use days or longer periods, "
            f"or declare the column with {entry('type', 'datetime')}."
        )


@dataclass(frozen=True)
class InPeriod(OfOne):
    """The period that a date or time lies in: an hour, day, ISO week, month, quarter, year, or weekday.

    Every period between the declared first and last is a key, whether anything lies in it or not.
    """

    period: TimePeriod

    @property
    def text(self) -> str:
        if self.period in _CUT:
            name = "DAYNAME" if self.period is TimePeriod.WEEKDAY else self.period.upper()
            return f"{name}({self.of.text})"
        return f"DATE_TRUNC('{self.period}', {self.of.text})"

    @property
    def words(self) -> str:
        return f"{self.period.replace('_', ' ')} of {self.of.words}"

    @property
    def label(self) -> str:
        return self.words if isinstance(self.of, ColumnValue) else self.text

    def kind(self, kinds: Kinds) -> Kind:
        time_kind = expect_time(self.of, kinds, self.text)
        _check_time(self.of, self.period, time_kind)
        low, high = span_of(self.period, *moments_of(time_kind))
        if high - low >= MOST_PERIODS:
            raise InvalidParameter(
                f"'{self.text}' has more than {MOST_PERIODS:,} periods between the declared first and last. "
                "Take a longer period, or declare a shorter time."
            )
        return KeyKind(tuple(names_of(self.period, *moments_of(time_kind))), self.period.value)

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        time_kind = expect_time(self.of, kinds, self.text)
        first, last = moments_of(time_kind)
        low, _ = span_of(self.period, first, last)
        number = _numbered(self.period, self.of, time_kind, cells, kinds)
        return f"({number})" if low == 0 else f"({number} - ({low}))"


def compare_period(left: InPeriod, sign: str, at: date, kinds: Kinds) -> Expression:
    """Return the comparison of the start of a period with a date or time, as one of the time in it.

    A period begins before a moment if the date lies before the first period that begins at it or later:
    DATE_TRUNC('month', x) < '2024-02-10' is x < '2024-03-01'.
    """
    if left.period in _CUT:
        raise InvalidParameter(f"'{left.text}' is no date. Compare it with one of its names.")
    of_days = isinstance(expect_time(left.of, kinds, left.text), DayKind)
    seconds = seconds_of(at) if isinstance(at, datetime) else days_of(at) * DAY
    number = number_of(left.period, seconds)
    try:
        starts = [start_at(left.period, each) for each in (number, number + 1)]
    except (OverflowError, ValueError):
        raise InvalidParameter("A date in a comparison lies between the years 1 and 9998.") from None
    exact = starts[0] == moment_at(seconds)

    def bound(sign: str, at: int) -> Comparison:
        start = starts[at - number]
        return Comparison(left.of, sign, Constant(start.date() if of_days else start))

    if sign in ("=", "<>"):
        among = All((bound(">=", number if exact else number + 1), bound("<", number + 1)))
        return among if sign == "=" else Not(among)
    first = number if exact and sign in ("<", ">=") else number + 1
    return bound("<" if sign in ("<", "<=") else ">=", first)


def _days(tree: Expression, kind: DayKind | MomentKind, cells: RecordCells, kinds: Kinds) -> str:
    """The days since 1970-01-01; of a column by its date, which is quicker than a division."""
    if isinstance(tree, ColumnValue):
        return f"CAST({cells.dialect.days(cells.date(tree.name))} AS BIGINT)"
    sql = tree.sql(cells, kinds)
    return sql if isinstance(kind, DayKind) else floor_ratio(sql, DAY, kind.first, kind.last, cells.dialect)


def _date(tree: Expression, kind: DayKind | MomentKind, cells: RecordCells, kinds: Kinds) -> str:
    """The day as a date of the engine."""
    if isinstance(tree, ColumnValue):
        return cells.date(tree.name)
    return cells.dialect.date_at(_days(tree, kind, cells, kinds))


def _numbered(
    period: TimePeriod, tree: Expression, kind: DayKind | MomentKind, cells: RecordCells, kinds: Kinds
) -> str:
    """The number of the period, as `calendar.number_of` has it."""
    sql, dialect = tree.sql(cells, kinds), cells.dialect
    days, (first, last) = _days(tree, kind, cells, kinds), (end // DAY for end in moments_of(kind))
    match period:
        case TimePeriod.HOUR:
            return floor_ratio(sql, 3600, kind.first, kind.last, dialect)
        case TimePeriod.DAY:
            return days
        case TimePeriod.WEEK:
            return floor_ratio(f"({days} + 3)", 7, first + 3, last + 3, dialect)
        case TimePeriod.WEEKDAY:
            return _weekday(days, first)
        case TimePeriod.HOUR_OF_DAY:
            return dialect.quotient(_within_day(sql, kind.first), "3600")
    date = _date(tree, kind, cells, kinds)
    match period:
        case TimePeriod.YEAR:
            return f"(year({date}) - 1970)"
        case TimePeriod.QUARTER:
            return f"((year({date}) - 1970) * 4 + quarter({date}) - 1)"
    return f"((year({date}) - 1970) * 12 + month({date}) - 1)"


def _weekday(days: str, first: int) -> str:
    start = first - first % 7  # so that what is divided is not negative
    return f"(({days} - ({start - 7}) + 3) % 7)"


def _within_day(sql: str, first: int) -> str:
    return f"(({sql} - ({first - first % DAY})) % {DAY})"


@dataclass(frozen=True)
class PartOf(OfOne):
    """A part of a date or time, as a whole number."""

    part: DatePart

    @property
    def text(self) -> str:
        return f"{self.part.upper()}({self.of.text})"

    def kind(self, kinds: Kinds) -> Kind:
        time_kind = expect_time(self.of, kinds, self.text)
        _check_time(self.of, self.part, time_kind)
        if self.part is DatePart.YEAR:
            first, last = (day_at(end // DAY).year for end in moments_of(time_kind))
            return NumberKind(Fraction(1), first, last, True)
        low, high = PART_BOUNDS[self.part]
        return NumberKind(Fraction(1), low, high, low > 0)

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        time_kind, sql, dialect = (
            expect_time(self.of, kinds, self.text),
            self.of.sql(cells, kinds),
            cells.dialect,
        )
        days, first = _days(self.of, time_kind, cells, kinds), moments_of(time_kind)[0] // DAY
        match self.part:
            case DatePart.DAY_OF_WEEK:
                return f"({_weekday(days, first)} + 1)"
            case DatePart.HOUR:
                return dialect.quotient(_within_day(sql, time_kind.first), "3600")
            case DatePart.MINUTE:
                return dialect.quotient(f"({_within_day(sql, time_kind.first)} % 3600)", "60")
        name = {
            DatePart.YEAR: "year",
            DatePart.QUARTER: "quarter",
            DatePart.MONTH: "month",
            DatePart.WEEK: "weekofyear",
            DatePart.DAY_OF_MONTH: "day",
        }[self.part]
        return f"CAST({name}({_date(self.of, time_kind, cells, kinds)}) AS BIGINT)"


@dataclass(frozen=True)
class TimeBetween(Expression):
    """How long it is from one date or time to another, in days, hours, minutes or seconds.

    Times are those on the clock of their zone: where it is set forward or back, they differ by what it shows.
    """

    start: Expression
    end: Expression
    unit: str = "days"

    def __post_init__(self) -> None:
        if self.unit not in _SECONDS:
            raise InvalidParameter(f"A difference of dates is in {', '.join(_SECONDS)}. Got '{self.unit}'.")

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.start, self.end

    @property
    def text(self) -> str:
        if self.unit == "days":
            return f"{enclosed(self.end)} - {enclosed(self.start)}"
        return f"{self.unit.upper()}({self.end.text} - {self.start.text})"

    def _kinds_of_ends(self, kinds: Kinds) -> list[DayKind | MomentKind]:
        return [expect_time(part, kinds, f"'{self.text}'") for part in self.parts]

    def _kinds(self, kinds: Kinds) -> tuple[NumberKind, NumberKind]:
        """Exactly, and on a grid of at most 2^31 steps, which whole seconds may be too many for."""
        start, end = self._kinds_of_ends(kinds)
        least = DAY if self._of_days(kinds) else 1
        low, high = (moments_of(end)[0] - moments_of(start)[1]), (moments_of(end)[1] - moments_of(start)[0])
        return exact_kind(Fraction(least, _SECONDS[self.unit]), low // least, high // least)

    def _of_days(self, kinds: Kinds) -> bool:
        return all(isinstance(each, DayKind) for each in self._kinds_of_ends(kinds))

    def kind(self, kinds: Kinds) -> Kind:
        return self._kinds(kinds)[1]

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        exact, coarse = self._kinds(kinds)
        start, end = (
            f"({part.sql(cells, kinds)} * {DAY})"
            if isinstance(kind, DayKind) and not self._of_days(kinds)
            else part.sql(cells, kinds)
            for part, kind in zip(self.parts, self._kinds_of_ends(kinds), strict=True)
        )
        return regrid(f"({end} - {start})", exact, coarse.step, cells.dialect, self.text)


def parse_time(text: str, with_clock: bool) -> date | datetime:
    """A day, or a time, as a question writes it."""
    try:
        return datetime.fromisoformat(text) if with_clock else date.fromisoformat(text)
    except ValueError:
        raise InvalidParameter(
            "A date is written like '2024-12-31', a time like '2024-12-31 18:00:00'."
        ) from None
