"""Any table in, and what is declared of it."""

from sourdine.frames.counting import Totals, totals
from sourdine.frames.ranks import CountedValues, RankSource, ranks
from sourdine.frames.schema import Category, Flag, Integer, Real, Schema, Text
from sourdine.frames.source import Source, open_source
from sourdine.frames.statistic import Moments, Total
from sourdine.frames.unit import Unit

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
