"""Any table in, and what is declared of it."""

from typing import TYPE_CHECKING

from sourdine.core.lazy import late

if TYPE_CHECKING:
    from sourdine.frames.columns import Category, Flag, Integer, Real, Text
    from sourdine.frames.opening import open_source
    from sourdine.frames.privacy_unit import PrivacyUnit
    from sourdine.frames.schema import Schema
    from sourdine.frames.source import Source
    from sourdine.frames.statistics.group_ranks import CountedValues, RankSource
    from sourdine.frames.statistics.ranks import ranks
    from sourdine.frames.statistics.sums import BernsteinSums, PlainSum
    from sourdine.frames.statistics.totals import Totals, totals

_HOMES = {
    "columns": (
        "Category",
        "Flag",
        "Integer",
        "Real",
        "Text",
    ),
    "opening": ("open_source",),
    "privacy_unit": ("PrivacyUnit",),
    "schema": ("Schema",),
    "source": ("Source",),
    "statistics.group_ranks": (
        "CountedValues",
        "RankSource",
    ),
    "statistics.ranks": ("ranks",),
    "statistics.sums": (
        "BernsteinSums",
        "PlainSum",
    ),
    "statistics.totals": (
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
