"""Columns as cells, by what is declared of them alone: keys, bins of numbers, periods of dates.

What is missing, or is none of what is declared, has a cell of its own, unless the column says what stands for
it. Out of a cell a value is drawn: evenly, on the grid of its column.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import block
from sourdine.core.random.bits import Bits
from sourdine.core.random.selection import uniform_below
from sourdine.frames.cells import Grouping, Key, bins
from sourdine.frames.contributions import by_chosen_keys, key_counts
from sourdine.frames.expressions import TimePeriod
from sourdine.frames.expressions.times import name_of, span_of, start_of
from sourdine.frames.expressions.tree import decimal
from sourdine.frames.schema import Category, Column, Flag, Integer, PrivacyUnit, Real, span
from sourdine.frames.source import Source
from sourdine.frames.times import Date, Datetime
from sourdine.mechanisms import PartitionThreshold
from sourdine.tables.synthetic.declaration import Edges

Places = NDArray[np.int64]
MISSING = "missing"
_EACH = 32  # values of a column up to which each has a cell, where nothing is said
_BINS = 16  # of a longer one
_DAY = 86400
_RECURRING = (TimePeriod.WEEKDAY, TimePeriod.HOUR_OF_DAY)


@dataclass(frozen=True, kw_only=True)
class CellColumn(ABC):
    """A column of a synthetic table; with `missing`, the last cell is for what is missing."""

    name: str
    missing: bool

    @property
    @abstractmethod
    def known(self) -> Sequence[str]:
        """The cells of what is declared, as people read them."""

    @abstractmethod
    def grouping(self, source: Source) -> Grouping:
        """Which cell a record lies in, for the engine."""

    @abstractmethod
    def draw(self, places: Places, bits: Bits) -> NDArray[Any]:
        """A value for each of some cells, none of them missing."""

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.known) + self.missing

    @property
    def labels(self) -> tuple[str, ...]:
        """Every cell, as people read it."""
        return (*self.known, *([MISSING] if self.missing else []))

    def values(self, places: Places, bits: Bits) -> NDArray[Any]:
        """A value for each cell, masked where it is missing."""
        lost = places >= len(self.known)
        values = self.draw(np.where(lost, 0, places), bits)
        return np.ma.MaskedArray(values, mask=lost) if self.missing else values


@dataclass(frozen=True, kw_only=True)
class CategoryCells(CellColumn):
    """A cell for each declared key."""

    keys: tuple[Key, ...]

    @property
    def known(self) -> Sequence[str]:
        return tuple(map(str, self.keys))

    def grouping(self, source: Source) -> Grouping:
        return source.grouping(self.name)

    def draw(self, places: Places, bits: Bits) -> NDArray[Any]:
        first = self.keys[0]
        kind: Any = bool if isinstance(first, bool) else np.int64 if isinstance(first, int) else object
        return np.array(self.keys, kind)[places]


@dataclass(frozen=True, kw_only=True)
class BinCells(CellColumn):
    """Bins of a column of numbers, from edge to below the next, in steps above the lower bound."""

    edges: tuple[int, ...]
    origin: int
    step: Fraction
    bounds: tuple[float, float]
    whole: bool

    @property
    def known(self) -> Sequence[str]:
        firsts, lasts = self._numbers(np.array(self.edges[:-1])), self._numbers(np.array(self.edges[1:]) - 1)
        pairs = zip(firsts.tolist(), lasts.tolist(), strict=True)
        return tuple(f"{low:.12g}" if low == high else f"{low:.12g} to {high:.12g}" for low, high in pairs)

    def grouping(self, source: Source) -> Grouping:
        return bins(self.name, source.place_of(self.name), self.edges, self.edges[-1] - 1, source.dialect)

    def draw(self, places: Places, bits: Bits) -> NDArray[Any]:
        edges = np.array(self.edges, np.int64)
        return self._numbers(edges[places] + uniform_below(np.diff(edges)[places], bits))

    def _numbers(self, above: Places) -> NDArray[Any]:
        """Numbers by their steps above the lower bound; the grid may reach past the bounds by a step."""
        steps = above + self.origin
        if self.whole:
            return steps
        numbers = steps.astype(np.float64) * self.step.numerator / self.step.denominator
        return np.clip(numbers, *self.bounds)


@dataclass(frozen=True, kw_only=True)
class PeriodCells(CellColumn):
    """Periods of dates or times; a day or a second within one is drawn evenly.

    `starts` are the days or seconds since 1970-01-01 that periods begin with, and the one after the last.
    """

    names: tuple[str, ...]
    starts: tuple[int, ...]
    days: bool

    @property
    def known(self) -> Sequence[str]:
        return self.names

    def grouping(self, source: Source) -> Grouping:
        return source.grouping(self.name)

    def draw(self, places: Places, bits: Bits) -> NDArray[Any]:
        starts = np.array(self.starts, np.int64)
        times = starts[places] + uniform_below(np.diff(starts)[places], bits)
        return times.astype("datetime64[D]" if self.days else "datetime64[s]")


def cells_of(name: str, column: Column, declared: int | Edges | None) -> CellColumn:
    """The cells of a declared column; one that has no known cells is refused."""
    if declared is not None and not isinstance(column, Integer | Real):
        raise InvalidParameter(
            f"The column '{name}' has bins, which are for numbers, and it is declared differently. Take its "
            "bins away, or declare it as integer or real."
        )
    missing = column.missing == "drop"
    match column:
        case Category():
            return CategoryCells(name=name, missing=missing, keys=tuple(column.keys))
        case Flag():
            return CategoryCells(name=name, missing=missing, keys=(False, True))
        case Integer() | Real():
            low, high = span(column)
            return BinCells(
                name=name,
                missing=missing,
                edges=_edges(name, column, high - low, declared),
                origin=low,
                step=column.step,
                bounds=(float(column.lower), float(column.upper)),
                whole=isinstance(column, Integer),
            )
        case Date() | Datetime():
            return _times(name, column)
    raise InvalidParameter(f"The column '{name}' is computed, and a synthetic table has none of those.")


def _edges(name: str, column: Integer | Real, width: int, declared: int | Edges | None) -> tuple[int, ...]:
    """Edges in steps above the lower bound, from 0 to one past the upper bound."""
    if isinstance(declared, tuple):
        low, step = span(column)[0], column.step
        if declared[0] > column.lower or declared[-1] < column.upper:
            raise InvalidParameter(
                f"The bins of '{name}' must reach from its lower bound {column.lower:g} to its upper bound "
                f"{column.upper:g}, since every value between them is in some bin. Add the bins that lack."
            )
        inner = [math.ceil(decimal(edge) / step) - low for edge in declared[1:-1]]
        edges = (0, *inner, width + 1)
    else:
        many = min(_EACH if width < _EACH else _BINS, width + 1) if declared is None else declared
        edges = tuple((width + 1) * place // many for place in range(many + 1))
    if any(a >= b for a, b in pairwise(edges)):
        raise InvalidParameter(
            f"The column '{name}' has a bin that holds no value between its bounds. Use fewer or wider bins, "
            "within its bounds, or declare a finer granularity."
        )
    return edges


def _times(name: str, column: Date | Datetime) -> PeriodCells:
    period = column.period
    if period is None or period in _RECURRING:
        raise InvalidParameter(
            f"The dates of '{name}' are drawn within periods, and "
            f"{'none is declared' if period is None else f'{period} is none, it comes again and again'}. "
            f"Declare one, as in {block('columns', name, period='month')}, or leave it out by name."
        )
    days, kind = isinstance(column, Date), column.kind
    unit = _DAY if days else 1
    first, last = kind.first * unit, kind.last * unit
    low, high = span_of(period, first, last)
    begins = [_seconds(start_of(name_of(period, number))) for number in range(low, high + 1)]
    starts = [max(begin, first) // unit for begin in begins] + [kind.last + 1]
    names = tuple(name_of(period, number) for number in range(low, high + 1))
    return PeriodCells(name=name, missing=True, names=names, starts=tuple(starts), days=days)


def _seconds(begin: datetime | None) -> int:
    assert begin is not None
    return (begin - datetime(1970, 1, 1)) // timedelta(seconds=1)


# Columns of texts that nobody listed: their keys are chosen privately, and are their cells from then on.


MOST_KEYS = 1 << 10
"""Chosen keys of one column; more are others."""
_BLOCK = 1 << 22  # keys that are decided on at once


@dataclass(frozen=True, kw_only=True)
class TextCells(CategoryCells):
    """A cell for each key that was chosen, one for the `other` ones if that has a name, one for all else.

    Before keys are chosen it has none.
    """

    other: str | None = None

    @property
    def _all(self) -> tuple[str, ...]:
        return (*map(str, self.keys), *(() if self.other is None else (self.other,)))

    @property
    def known(self) -> Sequence[str]:
        return self._all

    def grouping(self, source: Source) -> Grouping:
        keys = tuple(map(str, self.keys))
        return by_chosen_keys(source, self.name, keys, other=self.other, lost=self.missing)

    def draw(self, places: Places, bits: Bits) -> NDArray[Any]:
        return np.array([*self._all, ""], object)[places]


def choose_keys(
    selections: Mapping[str, PartitionThreshold], source: Source, unit: PrivacyUnit, bits: Bits
) -> dict[str, tuple[str, ...]]:
    """The keys of each column that enough units have: private, and what `selections` cost.

    A unit counts for one key of a column, chosen by a secret hash of its own records alone.
    """
    once = unit if unit.column is None else replace(unit, max_groups=1)
    chosen = {}
    for name, mechanism in selections.items():
        counts, shown = key_counts(source, [name], unit=once, bits=bits), [np.zeros(0, np.int64)]
        for first in range(0, counts.size, _BLOCK):
            shown.append(first + np.flatnonzero(mechanism.sample(counts.of(first, first + _BLOCK), bits)))
        keys = counts.chosen(np.concatenate(shown))[:MOST_KEYS]
        chosen[name] = tuple(str(key[0]) for key in keys)
    return chosen
