"""A table that grows, published period by period: one charge for all, and noise correlated over time."""

from typing import TYPE_CHECKING

from sourdine.core.lazy import late

if TYPE_CHECKING:
    from sourdine.tables.series.answers import SeriesAnswers, SpanEstimate
    from sourdine.tables.series.calendar import SeriesCalendar
    from sourdine.tables.series.choice import MatrixChoice, choose_matrix
    from sourdine.tables.series.declared import SeriesBlock
    from sourdine.tables.series.plan import SeriesLine, SeriesPlan
    from sourdine.tables.series.series import SeriesStatus, TableSeries
    from sourdine.tables.series.views import SeriesView

_HOMES = {
    "answers": ("SeriesAnswers", "SpanEstimate"),
    "calendar": ("SeriesCalendar",),
    "choice": ("MatrixChoice", "choose_matrix"),
    "declared": ("SeriesBlock",),
    "plan": ("SeriesLine", "SeriesPlan"),
    "series": ("SeriesStatus", "TableSeries"),
    "views": ("SeriesView",),
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
