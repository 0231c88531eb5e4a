"""Answers with two keys as tables of rows and columns, ready to publish."""

from sourdine.tables.crosstabs.cells import CrosstabSums
from sourdine.tables.crosstabs.crosstab import Crosstab, Sort, crosstab_of
from sourdine.tables.crosstabs.selection import adds_up, select

__all__ = ["Crosstab", "CrosstabSums", "Sort", "adds_up", "crosstab_of", "select"]
