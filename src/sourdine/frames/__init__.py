"""Any table in, and what is declared of it."""

from typing import TYPE_CHECKING

from sourdine.core.lazy import late

if TYPE_CHECKING:
    from sourdine.frames.aggregate import BernsteinSums, PlainSum, Totals, totals
    from sourdine.frames.rank_counts import CountedValues, RankSource, ranks
    from sourdine.frames.schema import Category, Flag, Integer, PrivacyUnit, Real, Schema, Text
    from sourdine.frames.source import Source, open_source

_HOMES = {
    "schema": (
        "Category",
        "Flag",
        "Integer",
        "Real",
        "Text",
        "PrivacyUnit",
        "Schema",
    ),
    "source": (
        "open_source",
        "Source",
    ),
    "rank_counts": (
        "CountedValues",
        "RankSource",
        "ranks",
    ),
    "aggregate": (
        "BernsteinSums",
        "PlainSum",
        "Totals",
        "totals",
    ),
}
__getattr__ = late(__name__, _HOMES)

__all__ = [
    "BernsteinSums",
    "Category",
    "CountedValues",
    "Flag",
    "Integer",
    "PlainSum",
    "PrivacyUnit",
    "RankSource",
    "Real",
    "Schema",
    "Source",
    "Text",
    "Totals",
    "open_source",
    "ranks",
    "totals",
]
