"""What estimates from reports, and tables of private cells, show of themselves."""

import numpy as np

from sourdine.core.display import Figure, figure, view
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted
from sourdine.local.cleaner.cleaner import CleanTable
from sourdine.local.estimate import Estimate
from sourdine.report.charts.answers import draw_intervals
from sourdine.report.charts.base import Row
from sourdine.report.view import Cell, Section, TextTable
from sourdine.report.views.accounting import release_view
from sourdine.report.views.view import View

_MOST_VALUES = 20
_MOST_BARS = 40


@view.register
def _estimate(estimate: Estimate) -> View:
    places = _largest(estimate, _MOST_VALUES)
    rows: list[tuple[Cell, ...]] = [
        (place, *(float(end.flat[place]) for end in (estimate.value, estimate.lower, estimate.upper)))
        for place in places
    ]
    many = counted(estimate.value.size, "value")
    table = TextTable(
        name="estimate",
        title="",
        columns=("number", "value", "lower", "upper"),
        rows=tuple(rows),
        note=_left_out(estimate, places),
    )
    return View(
        title=f"Estimate of {many} from {counted(estimate.reports, 'report')}",
        lead=f"With {100 * estimate.confidence:g} % confidence intervals, each by itself.",
        sections=(Section(title="", tables=(table,)),),
    )


@figure.register
def _bars(estimate: Estimate, *labels: str | None) -> Figure:
    """The values as bars with their intervals, under the labels of categories if there are any."""
    if labels and len(labels) != estimate.value.size:
        raise InvalidParameter(
            f"There are {len(labels):,} labels for {counted(estimate.value.size, 'value')}. Give one each."
        )
    places = _largest(estimate, _MOST_BARS)
    rows: list[Row] = [
        {
            "group": str(labels[place]) if labels else str(place),
            "value": float(estimate.value.flat[place]),
            "lower": float(estimate.lower.flat[place]),
            "upper": float(estimate.upper.flat[place]),
        }
        for place in places
    ]
    return Figure(
        title=f"Estimates from {counted(estimate.reports, 'report')}",
        chart=draw_intervals(rows, "estimate"),
        note=f"Thin lines: {100 * estimate.confidence:g} % confidence intervals. "
        + _left_out(estimate, places),
    )


@view.register
def _clean(table: CleanTable) -> View:
    return release_view(
        table, f"A clean table of {counted(table.handed_out, 'record')}: {', '.join(table.columns)}"
    )


def _largest(estimate: Estimate, most: int) -> list[int]:
    """The places of all values in order, or of the largest if there are many."""
    if estimate.value.size <= most:
        return list(range(estimate.value.size))
    return [int(place) for place in np.argsort(-estimate.value, axis=None, kind="stable")[:most]]


def _left_out(estimate: Estimate, places: list[int]) -> str:
    size = estimate.value.size
    return f"The {len(places)} largest of {size:,} values." if len(places) < size else ""
