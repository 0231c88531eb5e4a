"""What charts of noisy answers have in common: what is drawn and told of a value, and how axes are named."""

from math import inf
from typing import TYPE_CHECKING, Any, assert_never

from sourdine.core.figure import Spec
from sourdine.core.format import endless
from sourdine.report.charts.base import Row, Series
from sourdine.report.finding import Cell, show_cell
from sourdine.tables import Answer
from sourdine.tables.statistics import Scale, style_of

if TYPE_CHECKING:
    import altair as alt


def numbers_of(answer: Answer, cell: Cell) -> Row:
    """What is drawn and what is told; of what says nothing, nothing is drawn. A count is never below 0."""
    if answer.blind(cell.lower, cell.upper):
        return {"value": None, "lower": None, "upper": None, "told": "nothing can be said"}
    least = 0.0 if style_of(answer.kind).scale is Scale.COUNT else -inf
    ends: dict[str, float | None] = {}
    if answer.bounded:
        ends = {"lower": _finite(max(least, cell.lower)), "upper": _finite(max(least, cell.upper))}
    return {"value": max(least, cell.value), **ends, "told": show_cell(cell, answer)}


def _finite(end: float) -> float | None:
    """An end that can be drawn."""
    return None if endless(end) else end


def tips_of(answer: Answer, series: Series | None) -> "list[alt.Tooltip]":
    import altair as alt

    named = [alt.Tooltip("group:N", title=" ")]
    if series is not None:
        named.append(alt.Tooltip("series:N", title=" "))
    return [*named, alt.Tooltip("told:N", title=title_of_answer(answer))]


def title_of_answer(answer: Answer) -> str:
    """What an axis measures, with its unit."""
    if answer.whole:
        return answer.measure
    scale = style_of(answer.kind).scale
    match scale:
        case Scale.SHARE:
            return answer.statistic.replace("proportion", "share", 1)
        case Scale.SQUARE:
            return f"{answer.statistic} ({answer.measure})"
        case Scale.NUMBER | Scale.COUNT:
            return answer.statistic
        case _:
            assert_never(scale)


def form_of(answer: Answer) -> str:
    if style_of(answer.kind).scale is Scale.SHARE:
        return ".3~%"
    largest = max((abs(float(v)) for v in answer.estimate.value), default=0.0)
    if answer.whole or largest >= 1e4:
        return ",.0f" if largest < 1e7 else ".4~s"
    return ",.4~g"


def with_squares(spec: Spec) -> dict[str, object]:
    """Bars are named by squares, not by lines."""
    chart: dict[str, Any] = dict(spec)
    chart["config"] = {**chart["config"], "legend": {**chart["config"]["legend"], "symbolType": "square"}}
    return chart
