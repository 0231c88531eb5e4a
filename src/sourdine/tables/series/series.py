"""A series: started by one charge, published period by period, and read off at any time."""

import json
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.ledger import opened
from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.frames.aggregate import totals_of
from sourdine.frames.contributions import participants, steady_names, without
from sourdine.frames.keys import Keys
from sourdine.frames.schema import Schema
from sourdine.frames.source import Source
from sourdine.mechanisms import CorrelatedNoise, PartitionThreshold
from sourdine.mechanisms.correlated import NoiseCorrelation
from sourdine.mechanisms.correlation import CorrelationMatrix
from sourdine.tables.measurement import expect
from sourdine.tables.payment import DeclaredTable, admit, charge, check_given, silence
from sourdine.tables.query import Query
from sourdine.tables.series.answers import SeriesAnswers, SeriesRows
from sourdine.tables.series.declaration import check_over
from sourdine.tables.series.keys import KeyChoice, lost_records, measured_now, with_chosen
from sourdine.tables.series.plan import SeriesLine, SeriesPlan, declared_text, listed_queries
from sourdine.tables.series.state import ClosedPeriod, SeriesState, aligned, key_rows

# The end of a period: who may count in it, which keys are chosen, its exact sums, and its noisy rows.
#
# All of it happens within one transaction of the state. Nothing that is read here is shown before it is on
# the disk.

_LIMIT = (1 << 62) - 1


class PeriodReader:
    """Reads the records of a period, and keeps what a series needs of them."""

    plan: SeriesPlan
    lines: tuple[SeriesLine, ...]
    key_choices: tuple[KeyChoice, ...]
    _state: SeriesState

    def _schema(self) -> Schema:
        """The declared columns, with the keys that are chosen by now."""
        if not self.key_choices:
            return self.plan.schema
        chosen = {choice.column: self._state.chosen(i) for i, choice in enumerate(self.key_choices)}
        return with_chosen(self.plan.schema, chosen)

    def _close_period(self, source: Source, number: int, days: tuple[date, date], bits: Bits) -> None:
        """Within `writing`: read, admit, draw, and keep."""
        unit, conditions = self.plan.unit, self._in_period(source, *days)
        table = source
        if unit.column is not None:
            whose = [f"({line.measurement.scope.sql(source)})" for line in self.lines]
            condition = f"{conditions} AND ({' OR '.join(dict.fromkeys(whose))})"
            units, records = participants(source, unit.column, condition)
            digests = self._state.digests(steady_names(source, unit.column, units.tolist()))
            admitted = self._admit(digests, records, number)
            chosen = np.flatnonzero(admitted)
            self._state.add_participations([digests[i] for i in chosen], number, records[chosen].tolist())
            table, others = without(source, unit.column, units[~admitted].tolist())
            conditions = f"{conditions} AND {others}"
        self._choose(table, number, conditions, bits)
        for place in range(len(self.lines)):
            self._state.add_period(self._draw(table, place, number, conditions, bits))
        self._state.turn()

    def _choose(self, table: Source, number: int, conditions: str, bits: Bits) -> None:
        """Choose keys that enough units came with; those chosen before stay, whoever comes."""
        for place, choice in enumerate(self.key_choices):
            counts = choice.counts(table, conditions, self.plan.unit, bits)
            self._state.add_candidates(place, number, counts)
            for width in choice.widths:
                if number % width == 0:
                    known = set(self._state.chosen(place))
                    candidates = self._state.candidates(place, number - width + 1, number)
                    fresh = {key: units for key, units in candidates.items() if key not in known}
                    shown = self._shown_keys(choice, (number, width), fresh, bits)
                    self._state.add_chosen(place, number, shown)

    def _shown_keys(
        self, choice: KeyChoice, at: tuple[int, int], counts: dict[str, int], bits: Bits
    ) -> list[str]:
        """Which keys are chosen by their counts at the end of a period, over so many of them."""
        return choice.shown(counts, bits)

    def _in_period(self, source: Source, start: date, after: date) -> str:
        """The records that arrived in a period, in the engine's words."""
        block = self.plan.block
        bounds: dict[str, dict[str, date]] = {}
        if block.arrived is not None:
            bounds[block.arrived] = {"at_least": start, "below": after}
        if block.late == "drop" and block.happened is not None:
            bounds.setdefault(block.happened, {})["at_least"] = start
        if not bounds:
            return "TRUE"
        trees = Query("period", "count", where=bounds).where
        return " AND ".join(f"({source.holds(tree)})" for tree in trees)

    def _admit(self, digests: list[bytes], records: NDArray[np.int64], number: int) -> NDArray[np.bool_]:
        """Which units may count in a period: by their own past alone."""
        block, before = self.plan.block, self._state.participations(digests)
        admitted, together = np.ones(len(digests), bool), Counter[bytes]()
        for digest, count in zip(digests, records.tolist(), strict=True):  # 0.0 and -0.0 are one unit
            together[digest] += count
        for i, digest in enumerate(digests):
            times, last, used = before.get(digest, (0, 0, 0))
            if block.total is not None:
                admitted[i] = used + together[digest] <= block.total
            elif times:
                admitted[i] = times < block.times and number - last >= block.separation
        return admitted

    def _draw(self, table: Source, place: int, number: int, conditions: str, bits: Bits) -> ClosedPeriod:
        line, schema, unit = self.lines[place], self._schema(), self.plan.unit
        measurement, opened = measured_now(line.measurement), line.measurement.scope.open
        if schema.open(opened):  # no key was chosen yet
            nobody = np.zeros((0, 1), np.int64)
            return ClosedPeriod(number, place, (), nobody, nobody)
        where = f"{conditions} AND ({measurement.scope.sql(table)}) AND {lost_records(table, opened)}"
        table = replace(table, schema=schema) if opened else table
        (totals,) = totals_of(table, measurement.requests(table, unit), unit=unit, bits=bits, where=where)
        exact = measurement.numbers(totals, schema, unit)[:, 0]
        sums = np.array([max(-_LIMIT, min(_LIMIT, int(each))) for each in exact.tolist()], np.int64)
        keys = tuple(key_rows(totals.keys))
        history = self.history(place, keys, number - 1)
        rows = line.mechanism.sample_rows(np.concatenate([history, sums[:, None]], axis=1), bits)
        return ClosedPeriod(number, place, keys, sums[:, None], np.asarray(rows))

    def history(self, place: int, keys: tuple[tuple[Any, ...], ...], until: int) -> NDArray[np.int64]:
        """The exact sums of closed periods, by key: private, and never shown.

        A key that was declared or chosen later has zeros before.
        """
        with self._state.reading():
            closed = self._state.periods(place, until)
            return aligned(closed, keys, lambda period: (period.sums, 1))


@dataclass(frozen=True, kw_only=True)
class SeriesStatus:
    """Where a series stands."""

    identity: str
    periods: int
    closed: int
    next_period: str | None
    paid: bool
    restored: bool


class TableSeries(PeriodReader):
    """A table that grows, published at the end of each period.

    The guarantee is the plan's epsilon (or epsilon and delta) for each unit over all periods together, paid
    once when the series starts. `publish` draws the noise of a period once: asked again, it shows the same
    numbers.
    """

    def __init__(self, plan: SeriesPlan, state: SeriesState) -> None:
        self.plan = plan
        self._state = state
        if state.note("declared") != declared_text(plan):
            raise InvalidParameter(
                "The series was started with other declarations, and its noise was chosen for those. Put "
                "them back as they were (keys may be added at the end of a list), or start another series."
            )
        with state.reading():
            self.key_choices = self._paid_choices(plan.key_choices)
            self.lines = self._with_mechanisms(plan.lines)

    def _paid_choices(self, choices: tuple[KeyChoice, ...]) -> tuple[KeyChoice, ...]:
        """How keys are chosen, as it was paid for."""
        paid = [json.loads(each) for each in json.loads(self._state.note("choices") or "[]")]
        return tuple(
            replace(
                choice,
                mechanism=expect(PartitionThreshold, PartitionThreshold.from_json(each["mechanism"])),
                widths=tuple(each["widths"]),
            )
            for choice, each in zip(choices, paid, strict=True)
        )

    def _with_mechanisms(self, lines: tuple[SeriesLine, ...]) -> tuple[SeriesLine, ...]:
        """The lines with the noise that was paid for, whatever a newer plan would choose."""
        texts = json.loads(self._state.note("mechanisms") or "[]")
        paid = map(Fraction, json.loads(self._state.note("distances") or "[]"))
        schema = self._schema()
        for place, (line, most) in enumerate(zip(lines, paid, strict=True)):
            keys = set(key_rows(_known_keys(line, schema)))
            if line.distance.amount > most or not keys.issuperset(self._state.keys(place)):
                raise InvalidParameter(
                    f"The keys of the query '{line.query}' are no longer those that the series was paid for: "
                    "some are gone, or a unit counts in more of them. Put them back; new ones may be added "
                    "where max_groups is at most the number of groups at the start."
                )
        mechanisms = [CorrelatedNoise.from_json(each) for each in texts]
        return tuple(replace(line, mechanism=each) for line, each in zip(lines, mechanisms, strict=True))

    @classmethod
    def start(
        cls,
        plan: SeriesPlan,
        state: Path | str,
        ledger: Ledger | Path | str,
        *,
        purpose: str | None = None,
    ) -> "TableSeries":
        """Pay for the whole horizon, and keep the state of the series in a new file.

        A start that was cut off is finished by the same call: what was paid already is found in the ledger
        by the series' identity, and is not paid again.
        """
        check_given(ledger)
        place = Path(state)
        if place.exists():
            store = SeriesState(place)
            if store.note("paid") is None:
                store.first_witness()
            else:
                store.close()
                raise InvalidParameter(
                    f"The series at {place} is started already, and paid. Go on with publish, or choose "
                    "another name: that would pay anew."
                )
        else:
            notes = {
                "identity": secrets.token_hex(12),
                "declared": declared_text(plan),
                "mechanisms": json.dumps([line.mechanism.to_json() for line in plan.lines]),
                "distances": json.dumps([str(line.distance.amount) for line in plan.lines]),
                "periods": str(plan.block.periods),
            }
            if plan.key_choices:
                notes["choices"] = json.dumps(
                    [
                        json.dumps({"mechanism": each.mechanism.to_json(), "widths": each.widths})
                        for each in plan.key_choices
                    ]
                )
            store = SeriesState.create(place, notes)
        series = cls(plan, store)
        spends = (*(line.spend for line in series.lines), *(each.spend for each in series.key_choices))
        series._pay(ledger, spends, purpose, "start")
        return series

    @classmethod
    def open(cls, plan: SeriesPlan, state: Path | str) -> "TableSeries":
        """A series that was started before."""
        return cls(plan, SeriesState(Path(state)))

    def close(self) -> None:
        """Let go of the state's file."""
        self._state.close()

    def __enter__(self) -> "TableSeries":
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    @property
    def identity(self) -> str:
        """What ledgers know it by."""
        return self._state.note("identity") or ""

    @property
    def periods(self) -> int:
        """The horizon, as far as it is paid."""
        with self._state.reading():
            return int(self._state.note("periods") or 0)

    def status(self) -> SeriesStatus:
        """Where it stands."""
        closed = self._state.closed
        calendar = self.plan.block.calendar.extended(self.periods)
        return SeriesStatus(
            identity=self.identity,
            periods=self.periods,
            closed=closed,
            next_period=calendar.name(closed + 1) if closed < self.periods else None,
            paid=self._state.note("paid") is not None,
            restored=not self._state.is_newest(),
        )

    def _pay(
        self, ledger: Ledger | Path | str, spends: tuple[Spend, ...], purpose: str | None, step: str
    ) -> None:
        """Charge a step once: a charge that was made before a crash is found again by its words."""
        mark = f"series {self.identity} {step}"
        words = f"{mark}: {purpose or listed_queries(self.plan.queries)}"[:200]
        with opened(ledger) as book:
            paid = any(entry.purpose.startswith(f"{mark}:") for entry in book.history())
            if not paid:
                charge(book, self.plan, purpose=words, secure=None, spends=spends)
            with self._state.writing():
                self._state.write_note("paid", mark)

    # publishing

    def publish(
        self,
        table: Source | DeclaredTable,
        period: int | str | None = None,
        *,
        early: bool = False,
        bits: Bits = SYSTEM,
    ) -> SeriesAnswers:
        """Close the next period, or show one that is closed: what was shown never changes.

        The table is read for that period alone. Its sums, its rows and who counted in it are on the disk
        before this returns. A period that is not over by the clock is refused, unless no more records can
        come and this is said as `early`.
        """
        calendar = self.plan.block.calendar.extended(self.periods)
        number, source = self._number(period), admit(self.plan, table)
        with self._state.writing():
            closed = self._state.closed
            number = closed + 1 if number is None else number
            if number > closed:
                self._check_next(number, closed)
                check_over(calendar, number, early, self.plan.zone)
                self._state.catch_up()
                days = calendar.start(number), calendar.start(number + 1)
                with silence("the period is not closed"):
                    self._close_period(source, number, days, bits)
        return self.answers(number)

    def _number(self, period: int | str | None) -> int | None:
        if isinstance(period, str):
            return self.plan.block.calendar.extended(self.periods).number(period)
        return None if period is None else check.integer("publish", "period", period, 1, self.periods)

    def _check_next(self, number: int, closed: int) -> None:
        if self._state.note("paid") is None:
            raise InvalidParameter(
                "The series is not paid yet: its start was cut off. Start it again as it was declared."
            )
        if not self._state.is_newest():
            raise InvalidParameter(
                f"The state of the series holds {closed} periods and is a copy, or was restored: rows may "
                "have been shown that it does not know, and to draw them again would cost. Say how many "
                "periods were shown, with 'sourdine series resume --shown', or resume()."
            )
        if number > self.periods:
            raise InvalidParameter(
                f"The series ends with its period {self.periods}. Extend it, which is a charge of its own."
            )
        if number != closed + 1:
            raise InvalidParameter(
                f"The next period is the {closed + 1}. of the series, and periods are closed in order: each "
                "row rests on all before it. Publish those between first."
            )

    def keys(self, place: int) -> tuple[tuple[Any, ...], ...]:
        """The newest keys of a line."""
        return self._state.keys(place)

    # reading

    def answers(self, until: int | str | None = None) -> SeriesAnswers:
        """What is read off the rows published up to a period: post-processing, as often as one likes."""
        number = self._number(until)
        last = self._state.closed if number is None else number
        if not 1 <= last <= self._state.closed:
            raise InvalidParameter("No period of the series is closed yet up to there. Publish it first.")
        self._state.bring_witness()
        with self._state.reading():
            tables = tuple(self._table(place, line, last) for place, line in enumerate(self.lines))
        return SeriesAnswers(
            tables=tables,
            views=self.plan.block.views,
            calendar=self.plan.block.calendar.extended(self.periods),
            closed=last,
            confidence=self.plan.confidence,
            choice=self.plan.choice,
        )

    def _table(self, place: int, line: SeriesLine, last: int) -> SeriesRows:
        """The rows of a line up to a period."""
        closed = self._state.periods(place, last)
        keys = closed[-1].keys  # later ones were not shown then
        noisy = aligned(closed, keys, _rows_of(line.mechanism.matrix))
        known: dict[tuple[Any, ...], int] = {}
        for before, each in pairwise([None, *closed]):
            if each is not None and (before is None or each.keys is not before.keys):  # lists seldom change
                known |= {key: each.number for key in each.keys if key not in known}
        starts = np.array([known.get(key, last + 1) for key in keys], np.int64)
        return SeriesRows(line=line, keys=keys, rows=noisy, starts=starts)

    # what costs more

    def extend(self, periods: int, ledger: Ledger | Path | str) -> None:
        """Pay for a longer horizon; rows that were published stay, and later ones go on from them."""
        longer = check.integer("extend", "periods", periods, self.periods + 1, 1 << 16)
        self.plan.check_days(self.plan.block.calendar.extended(longer))
        kinds = (NoiseCorrelation.LEVEL, NoiseCorrelation.DENSE)
        if any(line.mechanism.correlation in kinds for line in self.lines):
            raise InvalidParameter(
                "The correlation of this series was chosen for its horizon, and its last columns have no "
                "room for more rows. Start a series of its own for what follows, or declare "
                "extensible = true before a series starts."
            )
        pairs = [line.extension(longer) for line in self.lines]
        self._pay(ledger, tuple(spend for _, spend in pairs), None, f"until {longer}")
        self.lines = tuple(line for line, _ in pairs)
        with self._state.writing():
            self._state.write_note(
                "mechanisms", json.dumps([line.mechanism.to_json() for line in self.lines])
            )
            self._state.write_note("periods", str(longer))

    def resume(self, shown: int, ledger: Ledger | Path | str) -> int:
        """Go on with a state that was restored or copied, told how many periods were shown in all.

        Periods that were shown and are lost are paid for again: their rows will be drawn anew. Returns how
        many these are.
        """
        total, closed = check.integer("resume", "shown", shown, 0, self.periods), self._state.closed
        lost = max(total - closed, 0)
        if lost:
            with self._state.writing():  # a backup that is restored once more does not know this mark
                mark = self._state.note("resuming") or secrets.token_hex(8)
                self._state.write_note("resuming", mark)
            rows = [
                line.mechanism.matrix.rows_until(total) - line.mechanism.matrix.rows_until(closed)
                for line in self.lines
            ]
            spends = [line.repeat(count) for line, count in zip(self.lines, rows, strict=True)]
            spends += [choice.spend for choice in self.key_choices]
            self._pay(ledger, tuple(spends), None, f"again {closed + 1} to {total} {mark}")
        with self._state.writing():
            self._state.turn()
            self._state.drop_note("resuming")
            self._state.witness()  # cut off before the mark is forgotten for good: nothing is paid twice
        return lost


def _known_keys(line: SeriesLine, schema: Schema) -> Keys:
    """The keys of a line; none while those of its column are all to be chosen."""
    if schema.open(line.measurement.scope.open):
        return Keys.product([()])
    return measured_now(line.measurement).keys(schema)


def _rows_of(matrix: CorrelationMatrix) -> Callable[[ClosedPeriod], tuple[NDArray[Any], int]]:
    """The noisy rows of a period, and how many each key has."""
    return lambda period: (period.rows, len(matrix.rows_of(period.number)))
