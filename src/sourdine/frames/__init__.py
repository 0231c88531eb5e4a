"""Any table in, and what is declared of it."""

from sourdine.frames.counting import Totals, totals
from sourdine.frames.schema import Category, Flag, Integer, Real, Schema
from sourdine.frames.source import Source, open_source
from sourdine.frames.unit import Unit

__all__ = [
    "Category",
    "Flag",
    "Integer",
    "Real",
    "Schema",
    "Source",
    "Totals",
    "Unit",
    "open_source",
    "totals",
]
