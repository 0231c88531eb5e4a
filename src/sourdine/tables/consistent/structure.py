"""Tables with some of their sums: how far a unit moves them, and whole numbers that add up."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sourdine.core.distance import Distance, Neighbours
from sourdine.core.mechanism import Mechanism
from sourdine.frames import aggregate as sums
from sourdine.frames.keys import Keys
from sourdine.frames.schema import PrivacyUnit, Schema
from sourdine.mechanisms import Gaussian
from sourdine.tables.answers.estimate import GroupEstimate, Noisy
from sourdine.tables.answers.noise import deviation, like_noises, worst_noises
from sourdine.tables.consistent.crossed import Crossed
from sourdine.tables.consistent.nested import Nested
from sourdine.tables.measurements.group_sums import GroupSums
from sourdine.tables.measurements.measurement import Context, Exact, KeyAxis, PlannedMeasurement

Structure = Crossed | Nested
_OFF = 1e-6
ADDING_UP = "at most, for numbers that add up; mostly less"


class AddsUp(Protocol):
    """A statistic that asks for a table and its sums."""

    @property
    def label(self) -> str:
        """What is asked, in a few words."""

    @property
    def axes(self) -> tuple[KeyAxis, ...]:
        """The columns of the table."""

    def structure(self, schema: Schema) -> Structure:
        """What adds up to what."""

    def inner(self, schema: Schema) -> Keys:
        """The key of every number: 'all' where it is a sum over a column."""


@dataclass(frozen=True, kw_only=True)
class Margins(GroupSums):
    """The cells of a table in each group, and some of their sums, each with its own noise."""

    table: AddsUp

    @property
    def label(self) -> str:
        return self.table.label

    @property
    def axes(self) -> tuple[KeyAxis, ...]:
        return self.table.axes

    def statistic(self, schema: Schema, unit: PrivacyUnit, value: str = "") -> sums.Summation:
        return sums.BernsteinSums(value=value, max_rows=unit.max_rows)

    def distance(self, schema: Schema, unit: PrivacyUnit, neighbours: Neighbours, squared: bool) -> Distance:
        structure = self.table.structure(schema)
        return distance_of(structure, self.groups(schema) // structure.cells, unit, neighbours, squared)

    def numbers(self, exact: Exact, schema: Schema, unit: PrivacyUnit) -> NDArray[Any]:
        structure = self.table.structure(schema)
        return structure.exact(super().numbers(exact, schema, unit).reshape(-1, structure.cells))

    def estimate(self, noisy: Noisy, schema: Schema) -> tuple[GroupEstimate, Keys]:
        """Whole numbers that add up, and their keys."""
        structure, inner = self.table.structure(schema), self.table.inner(schema)
        every = self.keys(schema)[:: structure.cells]
        outer = Keys(every.columns[: len(self.scope.by)], every.size)
        return agreed(structure, noisy), outer.each_with(inner)

    def error(self, line: PlannedMeasurement, context: Context) -> float:
        """What the noise of all estimates stays within."""
        structure = self.table.structure(context.schema)
        return float(reaches(structure, line.mechanism, context.confidence).max())


def distance_of(
    structure: Structure, tables: int, unit: PrivacyUnit, neighbours: Neighbours, squared: bool
) -> Distance:
    """How far a unit moves the numbers of so many tables, each with all its sums.

    Only the cells are bounded: a unit counts in at most g of them with at most m records each, and sums are
    taken afterwards, so that they add up. So it moves the sums of one kind by g m in L1, whatever they are.
    In L2 it moves them most where its cells fall into as few sums as they can: of c cells each, g // c whole
    ones and one that holds the rest. A unit replaced is one that leaves and one that enters.
    """
    twice = 2 if neighbours is Neighbours.REPLACE else 1
    groups = min(unit.max_groups, tables * structure.cells)
    coordinates = twice * groups * len(structure.merged)
    if squared:
        lengths = sum((groups // c) * c**2 + (groups % c) ** 2 for c in structure.merged)
        square = Fraction(twice * unit.max_rows**2 * lengths)
        return Distance.l2(square=square, coordinates=coordinates, neighbours=neighbours)
    amount = Fraction(twice * groups * unit.max_rows * len(structure.merged))
    return Distance.l1(amount, coordinates=coordinates, neighbours=neighbours)


def agreed(structure: Structure, noisy: Noisy) -> GroupEstimate:
    """Whole numbers that add up, each with an interval for its exact count.

    The interval is that of the best linear estimate, whose noise is known, cut off at 0, and widened where
    it does not hold the whole number.
    """
    best = structure.best(noisy.numbers)
    value = structure.whole(noisy.numbers).astype(float)
    reach = reaches(structure, noisy.mechanism, noisy.confidence)
    # exact counts are whole, and floats are off by far less than this
    lower = np.minimum(np.maximum(np.floor(best - reach + _OFF), 0.0), value)
    upper = np.maximum(np.ceil(best + reach - _OFF), value)
    return GroupEstimate(value.ravel(), lower.ravel(), upper.ravel())


def reaches(structure: Structure, mechanism: Mechanism, confidence: float) -> NDArray[np.float64]:
    """What the noise of each best estimate stays within.

    All noises are alike, so the estimates are a projection, and the weight of a number's own noise in its
    estimate is the estimate's variance; with that noise alone it would not be narrower. How the rest is
    spread over other noises is not looked at: the widest law with that variance is taken.
    """
    spread = structure.variances
    if isinstance(mechanism, Gaussian):
        wide = float(like_noises(mechanism, 1.0, confidence))
    else:
        wide = worst_noises(confidence) * deviation(mechanism)
    return np.maximum(wide * np.sqrt(spread), spread * mechanism.error(confidence))
