"""Private releases of tables: queries, a plan, a release."""

from typing import TYPE_CHECKING

from sourdine.core.lazy import late

if TYPE_CHECKING:
    from sourdine.tables.answers import Answer, Answers, write_answers
    from sourdine.tables.bounds import BoundsPlan, FoundBounds, find_bounds
    from sourdine.tables.crosstab import Crosstab
    from sourdine.tables.forecast import Forecast, epsilon_for, forecasts
    from sourdine.tables.plan import ReleasePlan
    from sourdine.tables.privacy import Privacy
    from sourdine.tables.quality import DataQuality, ExactQuality
    from sourdine.tables.query import Query
    from sourdine.tables.release import TableRelease
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

_HOMES = {
    "answers": (
        "Answer",
        "Answers",
        "write_answers",
    ),
    "bounds": (
        "BoundsPlan",
        "FoundBounds",
        "find_bounds",
    ),
    "crosstab": ("Crosstab",),
    "forecast": (
        "Forecast",
        "epsilon_for",
        "forecasts",
    ),
    "plan": ("ReleasePlan",),
    "privacy": ("Privacy",),
    "quality": (
        "ExactQuality",
        "DataQuality",
    ),
    "query": ("Query",),
    "release": ("TableRelease",),
    "specification": ("Specification",),
    "statistics": (
        "Contingency",
        "Count",
        "Hierarchy",
        "Histogram",
        "Mean",
        "Proportion",
        "Quantiles",
        "StdDev",
        "Sum",
        "Top",
        "Units",
        "Variance",
    ),
    "table": (
        "Table",
        "rehearse",
    ),
}
__getattr__ = late(__name__, _HOMES)

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
    "write_answers",
]
