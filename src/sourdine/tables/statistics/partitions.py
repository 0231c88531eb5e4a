"""Keys that nobody declared, chosen privately: which of them a release shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sourdine.core.distance import Distance, Neighbours
from sourdine.core.format import counted
from sourdine.core.random.bits import Bits
from sourdine.frames.contributions import KeyCounts, key_counts
from sourdine.frames.keys import Keys
from sourdine.frames.schema import PrivacyUnit, Schema
from sourdine.frames.source import Source
from sourdine.mechanisms import KeyNoise, PartitionThreshold
from sourdine.tables.answers.estimate import Reading
from sourdine.tables.measurements.measurement import Context, Exact, Measurement, PlannedMeasurement, expect
from sourdine.tables.privacy import Allotment

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
