"""A table that grows, published period by period: one charge for all, and noise correlated over time."""

from typing import TYPE_CHECKING

from sourdine.core.lazy import late

if TYPE_CHECKING:
    from sourdine.tables.series.answers import SeriesAnswers, SpanEstimate
    from sourdine.tables.series.choice import MatrixChoice, choose_matrix
    from sourdine.tables.series.declaration import SeriesBlock, SeriesCalendar, SeriesView
    from sourdine.tables.series.plan import SeriesLine, SeriesPlan
    from sourdine.tables.series.series import SeriesStatus, TableSeries

_HOMES = {
    "answers": (
        "SeriesAnswers",
        "SpanEstimate",
    ),
    "declaration": (
        "SeriesCalendar",
        "SeriesBlock",
        "SeriesView",
    ),
    "choice": (
        "MatrixChoice",
        "choose_matrix",
    ),
    "plan": (
        "SeriesLine",
        "SeriesPlan",
    ),
    "series": (
        "SeriesStatus",
        "TableSeries",
    ),
}
__getattr__ = late(__name__, _HOMES)

__all__ = [
    "MatrixChoice",
    "SeriesAnswers",
    "SeriesBlock",
    "SeriesCalendar",
    "SeriesLine",
    "SeriesPlan",
    "SeriesStatus",
    "SeriesView",
    "SpanEstimate",
    "TableSeries",
    "choose_matrix",
]
