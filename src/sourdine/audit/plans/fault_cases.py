"""The plans that faults are looked for with: what is declared and asked, and of whom."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sourdine.core.distance import Neighbours
from sourdine.frames.joins import Join
from sourdine.frames.output import relation_of_cells
from sourdine.frames.privacy_unit import PrivacyUnit
from sourdine.frames.schema import Schema
from sourdine.tables.plan import ReleasePlan
from sourdine.tables.privacy import Privacy
from sourdine.tables.query import Query

COLUMNS = {
    "age": {"type": "integer", "lower": -3, "upper": 20},
    "pay": {"type": "real", "lower": -2.0, "upper": 2.0, "granularity": 0.5},
    "site": {"type": "category", "keys": ["n", "s", "e"]},
    "well": {"type": "flag"},
}
_TEXT = {"street": {"type": "text"}}
_BROUGHT = {"region": {"type": "category", "keys": ["north", "south"]}}
QUERIES: tuple[dict[str, Any], ...] = (
    {"name": "sums", "ask": ["count", {"sum": "pay"}, {"variance": "age"}], "by": ["site"], "weight": 3},
    {"name": "some", "ask": [{"mean": "age"}], "by": ["site"], "where": {"well": [True]}},
    {"name": "ranks", "ask": [{"quantiles": "age", "levels": [0.5], "method": "tree"}], "by": ["site"]},
    {"name": "order", "ask": [{"quantiles": "age", "levels": [0.5], "method": "inverse"}], "by": ["site"]},
    {"name": "bins", "ask": [{"histogram": "age", "edges": [-3, 5, 21]}]},
    {"name": "best", "ask": [{"top": "site", "k": 1}]},
    {"name": "table", "ask": [{"contingency": ["site", "well"], "consistent": True}]},
)


@dataclass(frozen=True, kw_only=True)
class FaultCase:
    """What a fault is planted in: declarations and questions, without which it would not show."""

    unit: PrivacyUnit = field(default_factory=PrivacyUnit)
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    delta: float | None = None
    joined: bool = False
    open: bool = False
    quality: bool = False

    def plan(self, *names: str) -> ReleasePlan:
        """The plan of these queries or of all, made anew, so that a fault of the planner is in it."""
        columns: dict[str, Any] = {
            **COLUMNS,
            **(_TEXT if self.open else {}),
            **(_BROUGHT if self.joined else {}),
        }
        queries = [query for query in QUERIES if not names or query["name"] in names]
        if self.open:
            queries = [{"name": "streets", "ask": ["count"], "by": ["street"]}]
        if self.joined:
            queries = [{"name": "regions", "ask": ["count", {"mean": "age"}], "by": ["region"]}]
        return ReleasePlan(
            schema=Schema.read(columns),
            queries=tuple(map(Query.read, queries)),
            privacy=Privacy(epsilon=Fraction(1), delta=self.delta),
            unit=self.unit,
            neighbours=self.neighbours,
            quality=self.quality,
        )

    def joins(self) -> tuple[Join, ...]:
        """The public table that is joined, if any."""
        if not self.joined:
            return ()
        towns = relation_of_cells(
            {"town": "VARCHAR", "region": "VARCHAR"}, [("lille", "north"), ("nice", "south")]
        )
        return (Join(name="places", table=towns, on=(("town", "town"),), columns=("region",)),)


_WHOSE = PrivacyUnit(name="person", column="who", max_rows=2, max_groups=1)
RECORDS, UNITS = FaultCase(), FaultCase(unit=_WHOSE)
SQUARED = FaultCase(unit=_WHOSE, delta=1e-6, neighbours=Neighbours.REPLACE)
REPLACED = FaultCase(neighbours=Neighbours.REPLACE)
JOINED, OPEN = FaultCase(joined=True), FaultCase(unit=_WHOSE, delta=1e-6, open=True)
FITTING, FITTING_UNITS = FaultCase(quality=True), FaultCase(unit=_WHOSE, quality=True)
FITTING_SQUARED = FaultCase(unit=_WHOSE, quality=True, delta=1e-6, neighbours=Neighbours.REPLACE)
CASES = (RECORDS, UNITS, REPLACED, SQUARED, JOINED, OPEN, FITTING, FITTING_UNITS, FITTING_SQUARED)
