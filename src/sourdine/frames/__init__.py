"""Any table in, and what is declared of it."""

from sourdine.frames.privacy_unit import Unit
from sourdine.frames.schema import Category, Flag, Integer, Real, Schema, Text
from sourdine.frames.source import Source, open_source
from sourdine.frames.statistics.ranks import CountedValues, RankSource, ranks
from sourdine.frames.statistics.sums import Moments, Total
from sourdine.frames.statistics.totals import Totals, totals

__all__ = [
    "Category",
    "CountedValues",
    "Flag",
    "Integer",
    "Moments",
    "RankSource",
    "Real",
    "Schema",
    "Source",
    "Text",
    "Total",
    "Totals",
    "Unit",
    "open_source",
    "ranks",
    "totals",
]
