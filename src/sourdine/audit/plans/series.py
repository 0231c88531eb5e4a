"""Audit of a whole series: made-up neighbours whose unit comes in several periods, published to the end.

Both are published by the code that publishes a series, with its state on the disk. Does the unit move the
rows, all periods together, farther than the plan pays for? Nobody's records are read.
"""

import math
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.ledger import Ledger
from sourdine.audit.plans.cells import Dice
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.frames.schema import Category, Flag, Integer, Real, Text
from sourdine.frames.source import Source, open_source
from sourdine.frames.times import Date
from sourdine.mechanisms import CorrelatedGaussian
from sourdine.tables.series import SeriesPlan, TableSeries
from sourdine.tables.series.keys import KeyChoice
from sourdine.testing import SeededBits

Records = list[dict[str, Any]]
_OTHERS = 12  # records of other units
_KEYS = ("ayr", "bath", "cork")  # of columns whose keys nobody declared
_UNIT, _NEWCOMER = "watched", "newcomer"


@dataclass(frozen=True, kw_only=True)
class SeriesAudit:
    """How far a unit moved the rows at most, as a share of what the plan pays for; above 1 it is too far."""

    pairs: int
    worst: float
    line: str

    @property
    def passed(self) -> bool:
        """Whether no pair was farther apart than is paid for."""
        return self.worst <= 1


def audit_series(plan: SeriesPlan, *, pairs: int = 20, bits: Bits = SYSTEM) -> SeriesAudit:
    """Publish so many pairs of made-up neighbours, and measure how far apart their rows are."""
    if plan.unit.column is None:
        raise InvalidParameter(
            "Where each record is a unit there is nothing to watch over periods. Audit a plan with a column "
            "that tells units apart."
        )
    dice, worst, label = Dice(bits), 0.0, ""
    for _ in range(pairs):
        one, other = _neighbours(plan, dice)
        seed = dice.below(1 << 30)  # the same secret for both: which groups a unit counts in depends on it
        # keys appear alike in both, as the proof has it: neighbours are compared given what was shown
        known = {key: 1 + dice.below(plan.block.periods + 1) for key in _KEYS}
        here, there = (_published(plan, records, seed, known) for records in (one, other))
        shares = {
            f"{line.query}: {line.label}": _movement(plan, place, here.sums[place] - there.sums[place])
            for place, line in enumerate(plan.lines)
        }
        for choice in plan.key_choices:
            shares[f"keys of {choice.column}"] = _moved_counts(choice, here.counts, there.counts)
        for name, share in shares.items():
            if share > worst:
                worst, label = share, name
    return SeriesAudit(pairs=pairs, worst=worst, line=label)


@dataclass(frozen=True, eq=False)
class _Published:
    """The exact sums of every period by key, and the counts by which keys were to be chosen."""

    sums: list[NDArray[np.int64]]
    counts: dict[tuple[object, ...], int]


class _WatchedSeries(TableSeries):
    """A series whose keys appear when the audit says so; it keeps the counts they would be chosen by."""

    known: dict[str, int]
    counts: dict[tuple[object, ...], int]

    def _shown_keys(
        self, choice: KeyChoice, at: tuple[int, int], counts: dict[str, int], bits: Bits
    ) -> list[str]:
        self.counts.update({(choice.column, *at, key): units for key, units in counts.items()})
        return [key for key, period in self.known.items() if at == (period, 1)]


def _moved_counts(
    choice: KeyChoice, here: dict[tuple[object, ...], int], there: dict[tuple[object, ...], int]
) -> float:
    """How many counts of units moved, as a share of those that are paid for; each may move by 1."""
    places = [place for place in {*here, *there} if place[0] == choice.column]
    changes = np.array([here.get(place, 0) - there.get(place, 0) for place in places] or [0])
    if np.abs(changes).max() > 1:
        return float("inf")
    twice = 2 if choice.neighbours is Neighbours.REPLACE else 1
    return float(np.count_nonzero(changes)) / (twice * choice.mechanism.keys)


def _movement(plan: SeriesPlan, place: int, change: NDArray[np.int64]) -> float:
    """What was moved as a share of what is paid for: squared lengths for Gaussian noise."""
    line = plan.lines[place]
    mechanism = line.mechanism
    rows = np.concatenate(
        [mechanism.matrix.correlate(change[:, :t]) for t in range(1, change.shape[1] + 1)], axis=1
    ).astype(float)
    paid = float(mechanism.moved_steps(line.distance)) * float(mechanism.granularity or 1)
    if isinstance(mechanism, CorrelatedGaussian):
        paid *= float(mechanism.granularity or 1)
        return float((rows**2).sum()) / (paid * mechanism.matrix.squared_length(mechanism.participation))
    return float(np.abs(rows).sum()) / (paid * mechanism.matrix.length(mechanism.participation))


def _neighbours(plan: SeriesPlan, dice: Dice) -> tuple[Records, Records]:
    """The same records of others, with a unit that comes as often as it likes, and without it.

    Where units are replaced, another one comes in its place.
    """
    periods = plan.block.periods
    others = [_record(plan, dice, f"other {dice.below(8)}", 1 + dice.below(periods)) for _ in range(_OTHERS)]
    watched = _comings(plan, dice, _UNIT)
    if plan.neighbours is Neighbours.REPLACE:
        return others + watched, others + _comings(plan, dice, _NEWCOMER)
    return others + watched, others


def _comings(plan: SeriesPlan, dice: Dice, unit: str) -> Records:
    """Records of one unit: early and often, in every period, or here and there, and several at once."""
    periods, block = plan.block.periods, plan.block
    ways = [
        list(range(1, periods + 1)),
        list(range(1, periods + 1, block.separation)),
        [1 + dice.below(periods) for _ in range(periods)],
        [1 + dice.below(periods)],
    ]
    times = 1 + dice.below(2 * plan.unit.max_rows * plan.unit.max_groups)
    key = _record(plan, dice, unit, 1)
    comings = []
    for period in dice.one(ways):
        for _ in range(times):
            record = _record(plan, dice, unit, period)
            if dice.one_in(2):  # the same group again and again moves farthest
                record = {**key, **{name: record[name] for name in _dates(plan)}}
            comings.append(record)
    return comings


def _dates(plan: SeriesPlan) -> list[str]:
    return [name for name, column in plan.schema.columns.items() if isinstance(column, Date)]


def _record(plan: SeriesPlan, dice: Dice, unit: str, period: int) -> dict[str, Any]:
    """One record: bounds of numbers, any key, and a day of a period; now and then a cell that is odd."""
    calendar = plan.block.calendar
    days = (calendar.end(period) - calendar.start(period)).days + 1
    day = calendar.start(period) + timedelta(days=dice.below(days))
    return {plan.unit.column or "": unit} | {
        name: _cell(column, dice, day) for name, column in plan.schema.base.columns.items()
    }


def _of_texts(column: object) -> bool:
    return isinstance(column, Category) and isinstance(column.keys[0], str)


def _cell(column: object, dice: Dice, day: date) -> Any:
    if dice.one_in(8) and isinstance(column, Integer | Real):
        return dice.one([None, math.nan, math.inf, -math.inf, column.upper + 1e6])
    if dice.one_in(8) and (isinstance(column, Text) or _of_texts(column)):
        return dice.one([None, "", "a\x00", "\r", "e\u0301"])
    match column:
        case Category():
            return dice.one(list(column.keys))
        case Flag():
            return dice.one_in(2)
        case Integer() | Real():
            return dice.one([column.lower, column.upper])
        case Text():
            return dice.one(_KEYS)
        case Date():
            return day
        case _:
            raise InvalidParameter(
                "An audit of a series makes up categories, texts, flags, numbers and dates. Leave out other "
                "columns."
            )


def _published(plan: SeriesPlan, records: Records, seed: int, known: dict[str, int]) -> _Published:
    """What stays private after a whole series was published."""
    with TemporaryDirectory(prefix="sourdine-") as folder:
        place = Path(folder)
        small = "1e-6" if plan.privacy.squared else None
        ledger = Ledger.create(
            place / "audit.ledger",
            epsilon=1 << 20,
            delta=small,
            unit=plan.unit.name,
            neighbours=plan.neighbours,
            selection_delta=plan.privacy.selection_delta if plan.key_choices else None,
        )
        with ledger, _WatchedSeries.start(plan, place / "audit.series", ledger) as series:
            assert isinstance(series, _WatchedSeries)
            series.known, series.counts = known, {}
            for number in range(1, plan.block.periods + 1):
                series.publish(_source(plan, records, number), early=True, bits=SeededBits(seed + number))
            sums = [
                series.history(line, series.keys(line), plan.block.periods) for line in range(len(plan.lines))
            ]
            return _Published(sums, series.counts)


def _source(plan: SeriesPlan, records: Records, number: int) -> Source:
    """The table as it stands at the end of a period."""
    import pyarrow as pa

    calendar, arrived = plan.block.calendar, plan.block.arrived
    if arrived is not None:
        table = [record for record in records if record[arrived] <= calendar.end(number)]
    else:
        dates = _dates(plan)
        table = [
            record
            for record in records
            if not dates or calendar.start(number) <= record[dates[0]] <= calendar.end(number)
        ]
    names = [*plan.schema.base.columns, plan.unit.column or ""]
    columns = {
        name: pa.array([record[name] for record in table] or [None], _type(plan, name)) for name in names
    }
    return open_source(pa.table(columns), plan.schema, [plan.unit.column or ""])


def _type(plan: SeriesPlan, name: str) -> Any:
    import pyarrow as pa

    column = plan.schema.base.columns.get(name)
    if isinstance(column, Category) and not _of_texts(column):
        return pa.int64()
    kinds = {Flag: pa.bool_(), Integer: pa.float64(), Real: pa.float64(), Date: pa.date32()}
    return kinds.get(type(column), pa.string())  # type: ignore[arg-type]
