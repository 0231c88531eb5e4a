"""Keys that nobody declared, chosen privately: which of them a release shows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted
from sourdine.core.random.bits import Bits
from sourdine.core.random.selection import MOST_CANDIDATES
from sourdine.frames import aggregate as sums
from sourdine.frames.contributions import KeyCounts, key_counts
from sourdine.frames.declared import by_hand, declare
from sourdine.frames.keys import Keys
from sourdine.frames.schema import PrivacyUnit, Schema
from sourdine.frames.source import Source
from sourdine.mechanisms import KeyNoise, PartitionThreshold, TopK
from sourdine.tables.intervals import GroupEstimate, Reading
from sourdine.tables.measurement import (
    Context,
    Exact,
    GroupSums,
    KeyAxis,
    Measurement,
    PlannedMeasurement,
    Scope,
    expect,
)
from sourdine.tables.privacy import Allotment
from sourdine.tables.statistics.base import Chart, Estimates, Example, Expected, Statistic, Style, grouped_by

_BLOCK = 1 << 22  # keys that are decided on at once


@dataclass(frozen=True, kw_only=True)
class Partitions(Measurement):
    """Keys that nobody declared, which are chosen privately by how many units have each."""

    alone: ClassVar[bool] = True
    answer: ClassVar[bool] = False
    of_units: ClassVar[bool] = True

    @property
    def label(self) -> str:
        return f"keys of {' and '.join(self.scope.open)}"

    def distance(self, schema: Schema, unit: PrivacyUnit, neighbours: Neighbours, squared: bool) -> Distance:
        """A count of units changes by one."""
        return Distance.linf(1, neighbours=neighbours)

    def line(self, context: Context, allotment: Allotment, share: Fraction) -> PlannedMeasurement:
        """A unit counts once for each of at most `max_groups` keys."""
        minimum = max(context.schema.text(name).at_least or 1 for name in self.scope.open)
        mechanism = PartitionThreshold.within(
            **{allotment.currency: share * allotment.total},
            delta=context.delta,
            keys=context.unit.max_groups,
            minimum=minimum,
            neighbours=context.neighbours,
        )
        distance = self.distance(context.schema, context.unit, context.neighbours, allotment.squared)
        return PlannedMeasurement(
            measurement=self, mechanism=mechanism, distance=distance, share=share, squared=allotment.squared
        )

    def exact(
        self, source: Source, unit: PrivacyUnit, bits: Bits, beside: Sequence[Measurement] = ()
    ) -> list[Exact]:
        return [key_counts(source, self.scope.open, unit=unit, bits=bits, where=self.scope.sql(source))]

    def read(self, exact: Exact, line: PlannedMeasurement, context: Context, bits: Bits) -> "ShownKeys":
        """Which keys reach the threshold, so many at a time that memory is bounded."""
        counts, shown = expect(KeyCounts, exact), [np.zeros(0, np.int64)]
        for first in range(0, counts.size, _BLOCK):
            block = counts.of(first, first + _BLOCK)
            shown.append(first + np.flatnonzero(line.mechanism.sample(block, bits)))
        return ShownKeys(counts.chosen(np.concatenate(shown)))

    def note(self, line: PlannedMeasurement) -> str:
        """How keys are chosen."""
        mechanism = expect(PartitionThreshold, line.mechanism)
        return (
            f"The {self.label} were chosen privately: a key is shown if the count of units that "
            f"have it reaches {mechanism.threshold:,} with {mechanism.noise} noise of scale "
            f"{float(mechanism.scale):.4g}. Keys that one unit alone has are shown with a probability of at "
            f"most {mechanism.leak():.3g}."
        )

    def noise_words(self, line: PlannedMeasurement, context: Context) -> str:
        mechanism = expect(PartitionThreshold, line.mechanism)
        _, measure = self.step(context.schema, context.unit)
        size = "sigma" if mechanism.noise is KeyNoise.GAUSSIAN else "scale"
        words = f"{mechanism.noise}, {size} {float(mechanism.scale):.4g} {measure}"
        return f"{words}, threshold {mechanism.threshold:,}"

    def moves(self, line: PlannedMeasurement, context: Context) -> str:
        return f"1 for each of at most {counted(expect(PartitionThreshold, line.mechanism).keys, 'key')}"


@dataclass(frozen=True)
class ShownKeys(Reading):
    """The keys that were chosen."""

    keys: Keys


# The keys that most records or units have, in order.


@dataclass(frozen=True)
class Ranking(Reading):
    """The places of the keys of each group that come first, in order, among so many keys."""

    places: NDArray[Any]
    size: int


@dataclass(frozen=True, kw_only=True)
class Ranked(GroupSums):
    """Keys of a column in the order of how many units have them: only their order is ever told."""

    column: str
    k: int
    of_units: ClassVar[bool] = True
    others: ClassVar[bool] = False
    most_keys: ClassVar[int] = MOST_CANDIDATES

    @property
    def label(self) -> str:
        return f"top {self.k} of {self.column}"

    @property
    def axes(self) -> tuple[KeyAxis, ...]:
        return (KeyAxis(self.column),)

    def statistic(self, schema: Schema, unit: PrivacyUnit, value: str = "") -> sums.Summation:
        return sums.BernsteinSums(value=value, max_rows=1)

    def distance(self, schema: Schema, unit: PrivacyUnit, neighbours: Neighbours, squared: bool) -> Distance:
        """Counts of units change by one."""
        return Distance.linf(1, neighbours=neighbours)

    def line(self, context: Context, allotment: Allotment, share: Fraction) -> PlannedMeasurement:
        """Each group is asked on its own.

        A unit changes counts by one, in at most `groups` groups, all the same way when it is added or
        removed; one that is replaced may leave as many as it enters.
        """
        schema, unit, neighbours = context.schema, context.unit, context.neighbours
        replaced = neighbours is Neighbours.REPLACE
        groups = min(unit.max_groups * (2 if replaced else 1), self.outer_groups(schema))
        mechanism = TopK.within(
            **{allotment.currency: share * allotment.total / groups},
            candidates=MOST_CANDIDATES if self.scope.open else len(schema.keys(self.column)),
            k=self.k,
            monotone=not replaced,
        )
        distance = self.distance(schema, unit, neighbours, allotment.squared)
        return PlannedMeasurement(
            measurement=self,
            mechanism=mechanism,
            distance=distance,
            share=share,
            count=groups,
            squared=allotment.squared,
        )

    def read(self, exact: Exact, line: PlannedMeasurement, context: Context, bits: Bits) -> Reading:
        """Keys that were chosen privately may be fewer than are asked for.

        Then the places of those that are missing are filled by candidates that nobody has, which come last
        and are left out.
        """
        numbers, mechanism = self.numbers(exact, context.schema, context.unit), expect(TopK, line.mechanism)
        scores = numbers.astype(float).reshape(self.outer_groups(context.schema), -1)
        groups, size = scores.shape
        if self.scope.open:
            filled = np.full((groups, max(size, self.k)), -np.inf)
            filled[:, :size] = scores
            scores, mechanism = filled, replace(mechanism, candidates=filled.shape[1])
        return Ranking(mechanism.sample(scores, bits), size)

    def keys(self, schema: Schema) -> Keys:
        if not self.scope.open:
            return super().keys(schema)
        assert self.scope.chosen is not None
        return Keys.product([axis.keys(schema) for axis in self._known]).each_with(self.scope.chosen.names)

    def _first(self, known: int) -> int:
        return known

    def noise_words(self, line: PlannedMeasurement, context: Context) -> str:
        mechanism = expect(TopK, line.mechanism)
        return f"exponential mechanism, epsilon {float(mechanism.epsilon / mechanism.k):.4g} for each rank"

    def moves(self, line: PlannedMeasurement, context: Context) -> str:
        return f"1 for each key, in at most {counted(line.count, 'group')}"


class Top(Statistic):
    """The k keys of a column that most records have, or most units where a column tells units apart.

    They come in order, without their counts.
    """

    kind: Literal["top"] = "top"
    column: str
    k: int = Field(ge=1, le=1 << 12)
    style: ClassVar[Style] = Style(Chart.LIST, of_units=True)
    example: ClassVar[Example] = {"top": "town", "k": 10}
    bounded: ClassVar[bool] = False

    @by_hand
    def __init__(self, column: str, k: int) -> None:
        declare(super().__init__, "Top", column=column, k=k)

    @property
    def label(self) -> str:
        return f"top {self.k} of {self.column}"

    @property
    def about(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def adds(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def opens(self) -> tuple[str, ...]:
        return (self.column,)

    def check(self, schema: Schema, owner: str) -> None:
        """The column must have more keys than are asked for, or such as are chosen privately."""
        if schema.open([self.column]):
            return
        keys = len(schema.keys(self.column))
        if keys <= self.k:
            raise InvalidParameter(
                f"The top {self.k} of '{self.column}' in '{owner}' would be all its {keys} keys. "
                "Ask for fewer, or for the count by this column."
            )

    def measurement(self, scope: Scope, schema: Schema) -> Measurement:
        return Ranked(scope=scope, column=self.column, k=self.k)

    def estimate(self, reading: Reading, measured: Measurement, schema: Schema) -> Estimates:
        """A key's value is its rank."""
        ranking = expect(Ranking, reading)
        groups, ranks = np.nonzero(ranking.places < ranking.size)
        keys = measured.keys(schema).take(groups * ranking.size + ranking.places[groups, ranks])
        unknown = np.full(ranks.size, np.nan)
        return Estimates(GroupEstimate((ranks + 1).astype(np.float64), unknown, unknown), keys, whole=True)

    def span(self, schema: Schema) -> tuple[float, float] | None:
        return None

    def unit_of_measure(self, unit: PrivacyUnit) -> str:
        return "rank"

    def forecast(self, line: PlannedMeasurement, context: Context) -> Expected:
        measure = line.measurement.step(context.schema, context.unit)[1]
        note = "a key this far above the last that is listed is not left out"
        return Expected(line.mechanism.error(context.confidence), measure, note)

    @classmethod
    def examples(cls, schema: Schema) -> Iterator[Self]:
        for name in (*grouped_by(schema), *schema.open(list(schema.columns))):
            if schema.open([name]) or len(schema.keys(name)) > 1:
                yield cls(column=name, k=1)
            if schema.open([name]) or len(schema.keys(name)) > 2:
                yield cls(column=name, k=2)
