"""Private releases of tables: queries, a plan, a release."""

from sourdine.tables.aggregate import (
    Contingency,
    Count,
    Deviation,
    Histogram,
    Mean,
    Proportion,
    Quantiles,
    Sum,
    Units,
    Variance,
)
from sourdine.tables.answer import Answer, Answers, write_answers
from sourdine.tables.condition import Condition
from sourdine.tables.forecast import Forecast, epsilon_for, forecasts
from sourdine.tables.plan import Plan, Privacy
from sourdine.tables.query import Query
from sourdine.tables.release import TableRelease, release
from sourdine.tables.spec import Specification
from sourdine.tables.table import Table, rehearse

__all__ = [
    "Answer",
    "Answers",
    "Condition",
    "Contingency",
    "Count",
    "Deviation",
    "Forecast",
    "Histogram",
    "Mean",
    "Plan",
    "Privacy",
    "Proportion",
    "Quantiles",
    "Query",
    "Specification",
    "Sum",
    "Table",
    "TableRelease",
    "Units",
    "Variance",
    "epsilon_for",
    "forecasts",
    "rehearse",
    "release",
    "write_answers",
]
