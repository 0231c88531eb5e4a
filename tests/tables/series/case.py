"""Plans of a register of visits, with as little noise as a test needs."""

from datetime import date
from fractions import Fraction
from typing import Any

from sourdine.core.distance import Neighbours
from sourdine.frames import PrivacyUnit, Schema
from sourdine.tables import Privacy, Query
from sourdine.tables.series import SeriesBlock, SeriesPlan

START = date(2024, 1, 1)


def make_plan(
    *,
    epsilon: Fraction | int = 8,
    delta: float | None = 1e-6,
    keys: tuple[str, ...] = ("north", "south"),
    unit: PrivacyUnit | None = None,
    ask: Any = "count",
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    region: dict[str, Any] | None = None,
    town: dict[str, Any] | None = None,
    selection_delta: float | None = None,
    **block: Any,
) -> SeriesPlan:
    columns: dict[str, Any] = {
        "arrived": {"type": "date", "first": "2024-01-01", "last": "2025-12-31"},
        "region": region or {"type": "category", "keys": list(keys)},
        "pay": {"type": "integer", "lower": 0, "upper": 100},
    }
    if ask == "count":
        del columns["pay"]
    if town is not None:
        columns["town"] = town
    fields = {
        "period": "week",
        "first": START,
        "periods": 6,
        "arrived": "arrived",
        "publish": ["total", "period"],
    }
    return SeriesPlan(
        schema=Schema.read(columns),
        queries=(Query("visits", ask, by=("region", "town") if town else "region"),),
        privacy=Privacy(epsilon=Fraction(epsilon), delta=delta, selection_delta=selection_delta),
        unit=unit or PrivacyUnit("person", column="id"),
        neighbours=neighbours,
        block=SeriesBlock.read({**fields, **block}),
    )
