"""The plans that faults are looked for with: what is declared and asked, and of whom."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sourdine.core.distance import Neighbours
from sourdine.frames import PrivacyUnit, Schema
from sourdine.frames.files import relation_of_cells
from sourdine.frames.joins import Join
from sourdine.tables import Privacy, Query, ReleasePlan
from sourdine.tables.privacy import NoiseChoice
from sourdine.tables.sql import SqlTable, read_sql

COLUMNS = {
    "age": {"type": "integer", "lower": -3, "upper": 20},
    "pay": {"type": "real", "lower": -2.0, "upper": 2.0, "granularity": 0.5},
    "site": {"type": "category", "keys": ["n", "s", "e"]},
    "well": {"type": "flag"},
}
_TEXT = {"street": {"type": "text"}}
_COMPUTED: dict[str, Any] = {
    "pulse": {"type": "integer", "lower": 40, "upper": 200},
    "gap": {"expression": {"subtract": ["age", {"multiply": [2, "pay"]}]}},
    "rate": {"expression": {"divide": ["age", {"nullif": ["pay", 0]}]}},
    "cube": {"expression": {"multiply": ["age", {"multiply": ["age", "pay"]}]}},
    "part": {"expression": {"case": [[{"at_least": ["age", 5]}, "pay"]], "else": "age"}},
    "beat": {"expression": {"subtract": ["pulse", 1]}},
}
_DATED: dict[str, Any] = {
    "seen": {"type": "date", "first": "2024-02-27", "last": "2024-03-02", "period": "day"},
    "lag": {"expression": {"days": ["seen", {"date": "2024-02-28"}]}},
}
_QUOTED = {"shop": {"type": "category", "keys": ["a", "it's", "b"]}}
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
COMPUTED_QUERIES: tuple[dict[str, Any], ...] = (
    {"name": "gaps", "ask": [{"sum": "gap"}], "by": ["site"]},
    {"name": "rates", "ask": [{"mean": "rate"}]},
    {"name": "cubes", "ask": [{"sum": "cube"}]},
    {"name": "parts", "ask": [{"mean": "part"}], "by": ["site"]},
    {"name": "beats", "ask": [{"mean": "beat"}]},
    {"name": "not", "ask": ["count"], "where": [{"not": {"at_least": ["age", 5]}}]},
    {
        "name": "either",
        "ask": ["count"],
        "where": [{"any": [{"at_least": ["age", 5]}, {"less": ["pay", 0]}]}],
    },
)
DATED_QUERIES: tuple[dict[str, Any], ...] = (
    {"name": "days", "ask": ["count"], "by": ["seen"]},
    {"name": "lags", "ask": [{"mean": "lag"}]},
)
SQL_QUERIES = {
    "grown": "SELECT site, COUNT(*) FROM people WHERE age >= 5 AND NOT (pay < 0) GROUP BY site",
    "people": "SELECT site, COUNT(DISTINCT who) FROM people GROUP BY site",
    "shops": "SELECT COUNT(*) FROM people WHERE shop = 'it''s'",
    "either": "SELECT COUNT(*) FROM people WHERE age > 5 OR site IN ('n', 'e')",
}


@dataclass(frozen=True, kw_only=True)
class FaultCase:
    """What a fault is planted in: declarations and questions, without which it would not show."""

    unit: PrivacyUnit = field(default_factory=PrivacyUnit)
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    delta: float | None = None
    joined: bool = False
    open: bool = False
    quality: bool = False
    computed: bool = False
    dated: bool = False
    sql: bool = False

    def texts(self, *names: str) -> dict[str, str]:
        """The queries of these names or all that are asked in SQL, as they are written."""
        texts = SQL_QUERIES if self.sql else {}
        return {name: text for name, text in texts.items() if not names or name in names}

    def plan(self, *names: str) -> ReleasePlan:
        """The plan of these queries or of all, made anew, so that a fault of the planner is in it."""
        columns: dict[str, Any] = {
            **COLUMNS,
            **(_TEXT if self.open else {}),
            **(_BROUGHT if self.joined else {}),
            **(_COMPUTED if self.computed else {}),
            **(_DATED if self.dated else {}),
            **(_QUOTED if self.sql else {}),
        }
        schema = Schema.read(columns)
        blocks = COMPUTED_QUERIES if self.computed else DATED_QUERIES if self.dated else QUERIES
        queries = [query for query in blocks if not names or query["name"] in names]
        if self.open:
            queries = [{"name": "streets", "ask": ["count"], "by": ["street"]}]
        if self.joined:
            queries = [{"name": "regions", "ask": ["count", {"mean": "age"}], "by": ["region"]}]
        read = [Query.read(query) for query in queries]
        if self.sql:
            table = SqlTable(schema=schema, unit=self.unit)
            read = [read_sql(text, table, name).query for name, text in self.texts(*names).items()]
        return ReleasePlan(
            schema=schema,
            queries=tuple(read),
            privacy=Privacy(epsilon=Fraction(1), delta=self.delta),
            noise=None if self.delta is None else NoiseChoice.GAUSSIAN,
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
COMPUTED, DATED = FaultCase(computed=True), FaultCase(dated=True)
SQL = FaultCase(unit=PrivacyUnit(name="person", column="who", max_rows=2, max_groups=2), sql=True)
_MORE = (COMPUTED, DATED, SQL)
CASES = (RECORDS, UNITS, REPLACED, SQUARED, JOINED, OPEN, FITTING, FITTING_UNITS, FITTING_SQUARED, *_MORE)
