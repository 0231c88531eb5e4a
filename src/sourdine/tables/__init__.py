"""Private releases of tables: queries, a plan, a release."""

from sourdine.tables.answers.answer import Answer, Answers, write_answers
from sourdine.tables.bounds import BoundsPlan, FoundBounds, find_bounds
from sourdine.tables.crosstabs import Crosstab
from sourdine.tables.forecast import Forecast, epsilon_for, forecasts
from sourdine.tables.plan import ReleasePlan
from sourdine.tables.privacy import Privacy
from sourdine.tables.quality.exact import ExactQuality
from sourdine.tables.quality.private import DataQuality
from sourdine.tables.query import Query
from sourdine.tables.release import TableRelease, release
from sourdine.tables.specification import Specification
from sourdine.tables.statistics import (
    Contingency,
    Count,
    Hierarchy,
    Histogram,
    Mean,
    Proportion,
    Quantiles,
    StdDev,
    Sum,
    Top,
    Units,
    Variance,
)
from sourdine.tables.table import Table, rehearse

__all__ = [
    "Answer",
    "Answers",
    "BoundsPlan",
    "Contingency",
    "Count",
    "Crosstab",
    "DataQuality",
    "ExactQuality",
    "Forecast",
    "FoundBounds",
    "Hierarchy",
    "Histogram",
    "Mean",
    "Privacy",
    "Proportion",
    "Quantiles",
    "Query",
    "ReleasePlan",
    "Specification",
    "StdDev",
    "Sum",
    "Table",
    "TableRelease",
    "Top",
    "Units",
    "Variance",
    "epsilon_for",
    "find_bounds",
    "forecasts",
    "rehearse",
    "release",
    "write_answers",
]
