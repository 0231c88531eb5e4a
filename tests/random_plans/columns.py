"""Declarations that random plans are drawn from, and a public table that some of them join."""

from typing import Any

from sourdine.frames import Schema
from sourdine.frames.files import relation_of_cells
from sourdine.frames.joins import Join

NUMBERS: tuple[dict[str, Any], ...] = (
    {"type": "integer", "lower": 0, "upper": 1},
    {"type": "integer", "lower": -3, "upper": 20},
    {"type": "integer", "lower": 5, "upper": 130, "missing": 40},
    {"type": "integer", "lower": -(1 << 40), "upper": -(1 << 40) + 300},
    {"type": "real", "lower": -0.7, "upper": 2.0, "granularity": 0.3},
    {"type": "real", "lower": 0.0, "upper": 1.0, "granularity": 0.01, "missing": 0.5},
    {"type": "real", "lower": -1e-9, "upper": 1e-9},
)
KEYS: tuple[dict[str, Any], ...] = (
    {"type": "category", "keys": ["a", "b"]},
    {"type": "category", "keys": ["a", "A", "b", ""], "missing": "b"},
    {"type": "category", "keys": ["north", "south", "it's", 'a "b"', "nobody"]},
    {"type": "category", "keys": [0, 1, -7]},
    {"type": "category", "keys": [1 << 53, (1 << 53) + 1], "missing": 1 << 53},
    {"type": "flag"},
    {"type": "flag", "missing": True},
)
TEXTS: tuple[dict[str, Any], ...] = (
    {"type": "text"},
    {"type": "text", "other": "others"},
    {"type": "text", "other": "b", "missing": "other", "at_least": 3},
)
DATES: tuple[dict[str, Any], ...] = (
    {"type": "date", "first": "2024-02-27", "last": "2024-03-02", "period": "day"},
    {"type": "date", "first": "1969-11-30", "last": "1970-02-01", "period": "month"},
    {"type": "datetime", "first": "2024-12-30", "last": "2025-01-02", "period": "week"},
    {"type": "date", "first": "2023-06-30", "last": "2024-07-01", "period": "quarter", "format": "%d/%m/%Y"},
    {"type": "datetime", "first": "2024-03-30", "last": "2024-04-01", "period": "hour_of_day"},
    {
        "type": "datetime",
        "first": "2024-10-26",
        "last": "2024-10-28",
        "period": "day",
        "zone": "Europe/Paris",
    },
)
TOWN = "town"
BROUGHT: dict[str, dict[str, Any]] = {  # by a public table
    "key brought": {"type": "category", "keys": ["north", "south", ""], "missing": ""},
    "number brought": {"type": "integer", "lower": 0, "upper": 900},
}
_TOWNS = (("lille", "north", 232), ("nice", "south", 348), ("Nice", "north", 1200), ("brest", None, None))


def public_tables(schema: Schema) -> tuple[Join, ...]:
    """The join that brings columns of random declarations, where they have any of them."""
    columns = tuple(name for name in BROUGHT if name in schema.columns)
    if not columns:
        return ()
    kinds = {TOWN: "VARCHAR", "key brought": "VARCHAR", "number brought": "BIGINT"}
    return (Join(name="towns", table=relation_of_cells(kinds, _TOWNS), on=((TOWN, TOWN),), columns=columns),)
