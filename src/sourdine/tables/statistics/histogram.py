"""How many records lie in each of some bins."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import setting
from sourdine.frames.cells import Grouping, Key, bins
from sourdine.frames.declared import by_hand, declare
from sourdine.frames.expressions.tree import decimal
from sourdine.frames.keys import Keys
from sourdine.frames.schema import Number, PrivacyUnit, Schema, sensible, span
from sourdine.frames.source import Source
from sourdine.tables.answers.estimate import GroupEstimate, Numbers
from sourdine.tables.measurements.group_sums import RecordCounts
from sourdine.tables.measurements.measurement import KeyAxis, Measurement, Scope
from sourdine.tables.statistics.base import (
    Chart,
    Example,
    OfColumn,
    Scale,
    Single,
    Style,
    as_tuple,
    numbers_of,
    records_of,
)


@dataclass(frozen=True)
class Bins(KeyAxis):
    """Bins of a column between edges in steps of its grid; a bin is known by its number."""

    edges: tuple[int, ...]

    def keys(self, schema: Schema) -> Sequence[Key]:
        return range(len(self.edges) - 1)

    def grouping(self, source: Source) -> Grouping:
        low, high = span(source.schema.number("A histogram", self.column))
        edges = tuple(edge - low for edge in self.edges)
        return bins(self.column, source.place_of(self.column), edges, high - low, source.dialect)


class Histogram(OfColumn, Single):
    """How many records lie in each bin of a column; a bin holds its lower edge, and the last one both."""

    kind: Literal["histogram"] = "histogram"
    edges: tuple[int | float, ...] = Field(min_length=2, max_length=1 << 16)
    style: ClassVar[Style] = Style(Chart.UPRIGHT, Scale.COUNT)
    example: ClassVar[Example] = {"histogram": "age", "edges": [0, 20, 40]}
    disjoint: ClassVar[bool] = True

    @by_hand
    def __init__(self, column: str, edges: Sequence[float]) -> None:
        declare(super().__init__, "Histogram", column=column, edges=tuple(edges))

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, fields: Any) -> Any:
        return as_tuple(fields, "edges")

    @model_validator(mode="after")
    def _rising(self) -> "Histogram":
        if not all(map(sensible, self.edges)):
            raise ValueError("edges must be numbers up to 1e100 in size")
        if not all(a < b for a, b in pairwise(self.edges)):
            raise ValueError(f"edges must rise, as in {setting('edges', [0, 20, 40])}")
        return self

    @property
    def adds(self) -> tuple[str, ...]:
        return (self.column,)

    def check(self, schema: Schema, owner: str) -> None:
        """Every bin must hold a step of the column's grid."""
        super().check(schema, owner)
        places = self.places(schema.number(owner, self.column))
        if not all(a < b for a, b in pairwise(places)):
            raise InvalidParameter(
                f"The histogram of '{self.column}' in '{owner}' has a bin narrower than the column's grid. "
                "Use wider bins, or declare a finer granularity."
            )

    def places(self, column: Number) -> tuple[int, ...]:
        """The edges in steps of the column's grid."""
        return tuple(math.ceil(decimal(edge) / column.step) for edge in self.edges)

    @property
    def bins(self) -> tuple[str, ...]:
        """The bins as people write them."""
        pairs = list(pairwise(self.edges))
        names = [f"{low:g} to below {high:g}" for low, high in pairs[:-1]]
        return (*names, f"{pairs[-1][0]:g} to {pairs[-1][1]:g}")

    def measurement(self, scope: Scope, schema: Schema) -> Measurement:
        axis = Bins(self.column, self.places(self.number(schema)))
        return RecordCounts(scope=scope, name=self.label, within=(axis,))

    def tell(self, numbers: Numbers, schema: Schema) -> GroupEstimate:
        return numbers.count()

    def keys(self, measured: Measurement, schema: Schema) -> Keys:
        *outer, last = (all_keys := measured.keys(schema)).columns
        return Keys((*outer, last.changed(self.bins)), all_keys.size)

    def unit_of_measure(self, unit: PrivacyUnit) -> str:
        return records_of(unit)

    @classmethod
    def examples(cls, schema: Schema) -> Iterator[Self]:
        """Like and unlike bins, within the bounds of a column and beyond them."""
        for name in numbers_of(schema):
            column = schema.number(name, name)
            low, high, step = float(column.lower), float(column.upper), float(column.step)
            middle = low + step * round((high - low) / step / 2)
            for edges in ([low, high], [low - step, middle, high + step], [low, low + step, high + 2 * step]):
                yield cls(column=name, edges=tuple(sorted(set(edges))))
