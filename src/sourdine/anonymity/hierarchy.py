"""Hierarchies: how the values of a column may be said less exactly.

Each kind turns the values of a column into a `Ladder` of ever coarser labels, from the value itself up to
'*'. A missing value stays missing until '*'.
"""

import csv
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sourdine.anonymity.records import Coded, Codes, Label
from sourdine.core import check
from sourdine.core.errors import InvalidParameter

TOP = "*"
Losses = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ladder:
    """The label of each value at each level, as codes, and what is lost by saying no more than the label.

    Level 0 is the value, and at the last level all share one label, as a rule '*'. Who shares a label at one
    level shares it at all levels above. A loss is 0 for a value and 1 at the last level, and does not fall
    from level to level.
    """

    labels: tuple[tuple[Label, ...], ...] = field(repr=False)
    codes: Codes = field(repr=False)  # by level and value
    losses: Losses = field(repr=False)  # by level and value

    @property
    def height(self) -> int:
        """The number of levels above the values."""
        return len(self.codes) - 1

    def label(self, level: int) -> list[Label]:
        """The label of each value at a level."""
        return [self.labels[level][code] for code in self.codes[level]]


def raise_ladder(
    name: str, steps: Sequence[Sequence[Label]], leaves: Sequence[Sequence[Label]] | None = None
) -> Ladder:
    """The ladder of a column from the labels of its values, level by level, the values first.

    What is lost by a label is the share of other values it may stand for, (leaves - 1) / (all leaves - 1),
    the normalised certainty penalty (Xu et al. 2006). Leaves are the values themselves, or those
    of a whole hierarchy.
    """
    return with_losses(name, steps, [_penalties(*pair) for pair in zip(steps, leaves or steps, strict=True)])


def with_losses(name: str, steps: Sequence[Sequence[Label]], losses: Sequence[Losses]) -> Ladder:
    """The ladder of a column from labels and losses; at the last step all labels are the same."""
    labels, codes = zip(*(_numbered(step) for step in steps), strict=True)
    for below, above in pairwise(codes):
        if len(set(zip(below, above, strict=True))) != len(set(below)):
            raise InvalidParameter(
                f"The hierarchy of '{name}' is no tree: values that share a label differ further up. "
                "Write it so that every label has one label above it."
            )
    array = np.array(losses, np.float64)
    array[0], array[-1] = 0.0, 1.0
    return Ladder(labels, np.array(codes, np.int64), np.maximum.accumulate(array, axis=0))


def _numbered(step: Sequence[Label]) -> tuple[tuple[Label, ...], list[int]]:
    """Labels in the order in which they first come, and the code of each value."""
    places: dict[Label, int] = {}
    codes = [places.setdefault(label, len(places)) for label in step]
    return tuple(places), codes


def _penalties(step: Sequence[Label], leaves: Sequence[Label]) -> Losses:
    counts: dict[Label, int] = {}
    for leaf in leaves:
        counts[leaf] = counts.get(leaf, 0) + 1
    return np.array([(counts.get(label, 1) - 1) / max(len(leaves) - 1, 1) for label in step], np.float64)


_BINS = 16  # about as many intervals at the finest level, if nobody says otherwise


class GeneralisationHierarchy(ABC):
    """How to say the values of a column less exactly."""

    @abstractmethod
    def ladder(self, column: Coded) -> Ladder:
        """The labels of the column's values, level by level."""


@dataclass(frozen=True)
class Suppression(GeneralisationHierarchy):
    """The value or '*', and nothing between."""

    def ladder(self, column: Coded) -> Ladder:
        """Two levels."""
        return raise_ladder(column.name, [column.labels, [TOP] * len(column.labels)])


@dataclass(frozen=True)
class Tree(GeneralisationHierarchy):
    """A tree over known values, written out: each value with its labels, ever coarser.

    >>> tree = Tree({"flu": ("lungs", "*"), "asthma": ("lungs", "*"), "ulcer": ("stomach", "*")})
    >>> column = Coded("ill", ("asthma", "flu", "ulcer"), np.arange(3))
    >>> tree.ladder(column).label(1)
    ['lungs', 'lungs', 'stomach']
    """

    rows: Mapping[str, tuple[str, ...]] = field(repr=False)

    def __post_init__(self) -> None:
        if not self.rows:
            raise InvalidParameter("A hierarchy must hold at least one value. Write a line for each.")
        if len({len(labels) for labels in self.rows.values()}) > 1:
            raise InvalidParameter(
                "Every line of a hierarchy must have the same number of levels. Repeat a label where there "
                "is nothing coarser to say."
            )

    @classmethod
    def read(cls, path: Path | str) -> "Tree":
        """A hierarchy in ARX's layout: a line a value, `value;level 1;level 2;...`, without a header."""
        try:
            with Path(path).open(encoding="utf-8-sig", newline="") as lines:
                read = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=";") if row]
        except (OSError, UnicodeDecodeError, csv.Error):
            raise InvalidParameter(
                f"The hierarchy {path} cannot be read. Name a text file with semicolons, in UTF-8."
            ) from None
        rows = {row[0]: tuple(row[1:]) for row in read}
        if any(rows[row[0]] != tuple(row[1:]) for row in read):
            raise InvalidParameter(f"The hierarchy {path} has two unlike lines for one value. Keep one.")
        try:
            return cls(rows)
        except InvalidParameter as problem:
            raise InvalidParameter(f"The hierarchy {path} cannot be used. {problem}") from None

    def ladder(self, column: Coded) -> Ladder:
        """The labels of the column's values; every value must have a line."""
        lines = [None if label is None else self._line(label) for label in column.labels]
        lacking = sum(
            line is None and label is not None for line, label in zip(lines, column.labels, strict=True)
        )
        if lacking:
            raise InvalidParameter(
                f"The hierarchy of '{column.name}' misses {lacking:,} of the {len(column.labels):,} values "
                "in the table. Add a line for each, spelt as in the table."
            )
        steps: list[Sequence[Label]] = [column.labels]
        leaves: list[Sequence[Label]] = [list(self.rows)]
        for level in range(len(next(iter(self.rows.values())))):
            leaves.append([labels[level] for labels in self.rows.values()])
            steps.append([None if line is None else line[level] for line in lines])
        if len(steps) == 1 or len(set(leaves[-1])) > 1:
            steps.append([TOP] * len(lines))
            leaves.append([TOP] * len(self.rows))
        steps[-1] = [leaves[-1][0]] * len(lines)  # also of what is missing
        return raise_ladder(column.name, steps, leaves)

    def _line(self, label: str) -> tuple[str, ...] | None:
        """The labels of a value; a whole number may be written as a real."""
        line = self.rows.get(label)
        if line is None and label.endswith(".0"):
            line = self.rows.get(label[:-2])
        return line


@dataclass(frozen=True)
class Intervals(GeneralisationHierarchy):
    """Numbers in intervals of ever greater width, counted from a lower bound.

    Each width is a multiple of the one before. What lies outside the bounds is one group on either side.

    >>> column = Coded("age", ("17", "34", "38"), np.arange(3))
    >>> Intervals(0, 100, (5, 10)).ladder(column).label(2)
    ['10-19', '30-39', '30-39']
    """

    lower: Fraction | float
    upper: Fraction | float
    widths: tuple[Fraction | float, ...]

    def __post_init__(self) -> None:
        lower, upper = (check.decimal("Intervals", name, getattr(self, name)) for name in ("lower", "upper"))
        if not lower < upper:
            raise check.fail("Intervals", "upper", "be above the lower bound", self.upper)
        if not self.widths:
            raise check.fail("Intervals", "widths", "hold at least one width", self.widths)
        widths = tuple(check.decimal("Intervals", "widths", width) for width in self.widths)
        if min(widths) <= 0:
            raise check.fail("Intervals", "widths", "be above 0", self.widths)
        check.keep(self, lower=lower, upper=upper, widths=widths)
        for below, above in pairwise(widths):
            if above <= below or (above / below).denominator != 1:
                raise check.fail("Intervals", "widths", "each be a multiple of the one before", self.widths)

    @classmethod
    def over(cls, column: Coded) -> "Intervals":
        """Intervals that fit the numbers of a column: about sixteen, then of double the width, and so on."""
        numbers = column.numbers
        assert numbers is not None
        known = numbers[~np.isnan(numbers)]
        low, high = _exact(float(known.min())), _exact(float(known.max()))
        width = _round(max(high - low, Fraction(1, 10**9)) / _BINS)
        if all(float(x).is_integer() for x in known):
            width = Fraction(max(1, math.ceil(width)))
        lower = math.floor(low / width / 8) * 8 * width
        widths = tuple(width * 2**power for power in range(4))
        return cls(lower, max(high, lower + width), widths)

    def ladder(self, column: Coded) -> Ladder:
        """The intervals of the column's values, which must be numbers."""
        numbers = column.numbers
        if numbers is None:
            raise InvalidParameter(
                f"The hierarchy of '{column.name}' is of intervals, and not all of its values are numbers. "
                "Write a tree for it."
            )
        exact = [None if label is None else _exact(float(label)) for label in column.labels]
        whole = all(x is None or x.denominator == 1 for x in (*exact, Fraction(self.lower)))
        steps: list[Sequence[Label]] = [column.labels]
        losses = [np.zeros(len(exact))]
        span = Fraction(self.upper) - Fraction(self.lower)
        for width in [Fraction(width) for width in self.widths]:
            steps.append([None if x is None else self._interval(x, width, whole) for x in exact])
            share = min(1.0, float((width - (1 if whole else 0)) / span))
            losses.append(np.array([0.0 if x is None else 1.0 if self._outside(x) else share for x in exact]))
        top = np.ones(len(exact))
        return with_losses(column.name, [*steps, [TOP] * len(exact)], [*losses, top])

    def _outside(self, x: Fraction) -> bool:
        return not self.lower <= x <= self.upper

    def _interval(self, x: Fraction, width: Fraction, whole: bool) -> str:
        lower, upper = Fraction(self.lower), Fraction(self.upper)
        if self._outside(x):
            return f"<{_short(lower)}" if x < lower else f">{_short(upper)}"
        low = lower + (x - lower) // width * width
        if whole and width.denominator == 1:
            return _short(low) if width == 1 else f"{_short(low)}-{_short(low + width - 1)}"
        return f"[{_short(low)}, {_short(low + width)})"


@dataclass(frozen=True)
class Prefixes(GeneralisationHierarchy):
    """The first characters of a code such as a postcode, ever fewer; a star stands for each one left out.

    >>> column = Coded("home", ("25000", "25170"), np.arange(2))
    >>> Prefixes((4, 2)).ladder(column).label(2)
    ['25***', '25***']
    """

    lengths: tuple[int, ...]

    def __post_init__(self) -> None:
        lengths = tuple(check.integer("Prefixes", "lengths", length, 1, 1 << 16) for length in self.lengths)
        check.keep(self, lengths=lengths)
        if not self.lengths or list(self.lengths) != sorted(set(self.lengths), reverse=True):
            raise check.fail("Prefixes", "lengths", "fall from each to the next", self.lengths)

    def ladder(self, column: Coded) -> Ladder:
        """The prefixes of the column's values."""
        steps: list[Sequence[Label]] = [column.labels]
        for length in self.lengths:
            steps.append(
                [None if x is None else x[:length] + TOP * max(0, len(x) - length) for x in column.labels]
            )
        return raise_ladder(column.name, [*steps, [TOP] * len(column.labels)])


class DatePrecision(StrEnum):
    """How exactly a day is said."""

    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"
    DECADE = "decade"


_FORMS: Mapping[DatePrecision, Callable[[date], str]] = {
    DatePrecision.MONTH: lambda day: f"{day.year:04}-{day.month:02}",
    DatePrecision.QUARTER: lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
    DatePrecision.YEAR: lambda day: f"{day.year:04}",
    DatePrecision.DECADE: lambda day: f"{day.year // 10:03}0s",
}


@dataclass(frozen=True)
class Dates(GeneralisationHierarchy):
    """Days, said as months, quarters, years or decades.

    >>> column = Coded("born", ("1984-02-29", "1985-07-14"), np.arange(2))
    >>> Dates((DatePrecision.YEAR, DatePrecision.DECADE)).ladder(column).label(1)
    ['1984', '1985']
    """

    periods: tuple[DatePrecision, ...] = (DatePrecision.MONTH, DatePrecision.YEAR, DatePrecision.DECADE)

    def __post_init__(self) -> None:
        places = [
            list(DatePrecision).index(check.member("Dates", "periods", each, DatePrecision))
            for each in self.periods
        ]
        if not places or places != sorted(set(places)):
            raise check.fail("Dates", "periods", "go from shorter to longer", self.periods)

    def ladder(self, column: Coded) -> Ladder:
        """The periods of the column's values, which must begin like 2024-05-31."""
        days = [None if label is None else _day(label) for label in column.labels]
        if any(day is None and label is not None for day, label in zip(days, column.labels, strict=True)):
            raise InvalidParameter(
                f"The hierarchy of '{column.name}' is of dates, and not all of its values are days written "
                "like 2024-05-31. Convert them, or write a tree."
            )
        steps: list[Sequence[Label]] = [column.labels]
        for period in self.periods:
            steps.append([None if day is None else _FORMS[period](day) for day in days])
        return raise_ladder(column.name, [*steps, [TOP] * len(days)])


def usual_hierarchy(column: Coded) -> GeneralisationHierarchy:
    """What a column gets for which nobody has written a hierarchy: intervals for numbers, dates for days."""
    if column.numbers is not None:
        return Intervals.over(column)
    if all(label is None or _day(label) for label in column.labels):
        return Dates()
    return Suppression()


def read_hierarchies(folder: Path | str, columns: Sequence[str]) -> dict[str, GeneralisationHierarchy]:
    """The trees in a folder: for each column the CSV file whose name is, or ends in, that of the column."""
    if not Path(folder).is_dir():
        raise InvalidParameter(f"There is no folder {folder}. Name the one that holds the hierarchies.")
    files = sorted(path for path in Path(folder).iterdir() if path.suffix.lower() == ".csv")
    trees: dict[str, GeneralisationHierarchy] = {}
    for name in columns:
        exact = [path for path in files if path.stem == name]
        fits = exact or [path for path in files if path.stem.endswith((f"_{name}", f"-{name}"))]
        if len(fits) > 1:
            raise InvalidParameter(
                f"Two files in {folder} may be the hierarchy of '{name}': {fits[0].name} and {fits[1].name}. "
                "Remove one, or call one of them exactly as the column."
            )
        if fits:
            trees[name] = Tree.read(fits[0])
    return trees


def _day(label: str) -> date | None:
    try:
        return date.fromisoformat(label[:10])
    except ValueError:
        return None


def _exact(number: Fraction | float) -> Fraction:
    """A number as it is written: 0.1 is a tenth."""
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


def _short(number: Fraction) -> str:
    return str(number) if number.denominator == 1 else f"{float(number):.12g}"


def _round(width: Fraction) -> Fraction:
    """The next number above of the form 1, 2 or 5 times a power of ten."""
    power = Fraction(10) ** math.floor(math.log10(width))
    return next(power * digit for digit in (1, 2, 5, 10, 20) if power * digit >= width)
