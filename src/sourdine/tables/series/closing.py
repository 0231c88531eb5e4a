"""The end of a period: who may count in it, which keys are chosen, its exact sums, and its noisy rows.

All of it happens within one transaction of the state. Nothing that is read here is shown before it is on the
disk.
"""

from collections import Counter
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.random.bits import Bits
from sourdine.frames.aggregate import totals_of
from sourdine.frames.contributions import participants, steady_names, without
from sourdine.frames.schema import Schema
from sourdine.frames.source import Source
from sourdine.tables.query import Query
from sourdine.tables.series.keys import KeyChoice, lost_records, measured_now, with_chosen
from sourdine.tables.series.periods import ClosedPeriod, aligned, key_rows
from sourdine.tables.series.plan import SeriesLine, SeriesPlan
from sourdine.tables.series.state import SeriesState

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
