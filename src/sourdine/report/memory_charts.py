"""Charts of measured memory: points with the lines through them, and what is left beside the lines."""

import json
from collections.abc import Sequence

from sourdine.report.charts import (
    COLOURS,
    GREY,
    ROWS,
    Axis,
    Row,
    Series,
    Spec,
    across_of,
    colour_of,
    finish,
    up_of,
)

_POWER, _OTHER = "a power of two", "another batch"


def draw_memory(points: Sequence[Row], lines: Sequence[Row], *, series: Sequence[str], up: str) -> Spec:
    """Measured points, with bars from the lowest to the highest repeat, and lines that were fitted or told.

    Rows have the fields batch, MB and series; points also low and high. Points of the second series are
    rings, so that the first shows where both are the same.
    """
    import altair as alt

    x = Axis(field="batch", title="batch, examples", form=",.4~g")
    y = Axis(field="MB", title=up, form=",.4~g")
    names = tuple(series)
    colour = colour_of(Series(field="series", names=names, colours=(*COLOURS[:2], GREY, COLOURS[4])))
    tips = [
        alt.Tooltip("series:N", title=" "),
        alt.Tooltip("batch:Q", title=x.title),
        alt.Tooltip("MB:Q", title=up, format=",.4~f"),
    ]
    across, height = across_of(x), up_of(y).scale(zero=True)
    chart = alt.Chart(alt.NamedData(ROWS))
    drawn = chart.transform_filter("datum.kind == 'line'").mark_line(strokeWidth=2)
    measured = chart.transform_filter("datum.kind == 'point'")
    bars = measured.mark_rule(strokeWidth=2).encode(
        across, alt.Y("low:Q", title=up), alt.Y2("high:Q"), colour
    )
    second = f"datum.series == {json.dumps(names[1])}"
    dots = measured.mark_point(opacity=1, strokeWidth=2).encode(
        across,
        height,
        colour,
        fill=alt.condition(second, alt.value("transparent"), colour),
        size=alt.condition(second, alt.value(140), alt.value(30)),
        tooltip=tips,
    )
    rows = [{**row, "kind": "line"} for row in lines] + [{**row, "kind": "point"} for row in points]
    return finish(alt.layer(drawn.encode(across, height, colour), bars, dots), rows)


def draw_residuals(rows: Sequence[Row], *, up: str) -> Spec:
    """How far each batch is above the line, in the field `off`; powers of two have a colour of their own."""
    import altair as alt

    x = Axis(field="batch", title="batch, examples", form=",.4~g")
    y = Axis(field="off", title=up, form=",.4~g")
    across, height = across_of(x), up_of(y)
    marked = [{**row, "series": _POWER if _is_power(int(row["batch"] or 0)) else _OTHER} for row in rows]
    colour = colour_of(Series(field="series", names=(_POWER, _OTHER), colours=(COLOURS[1], COLOURS[0])))
    colour = colour.legend(orient="bottom", symbolType="circle", symbolStrokeWidth=0)
    tips = [
        alt.Tooltip("who:N", title=" "),
        alt.Tooltip("batch:Q", title=x.title),
        alt.Tooltip("off:Q", title=up, format=",.4~g"),
    ]
    chart = alt.Chart(alt.NamedData(ROWS))
    zero = alt.Chart(alt.InlineData(values=[{"off": 0}])).mark_rule(color=GREY, strokeDash=[4, 4])
    dots = chart.mark_point(filled=True, size=60, opacity=0.9)
    shape = alt.Shape("who:N", title=None, legend=alt.Legend(orient="bottom", symbolType="circle"))
    return finish(
        alt.layer(zero.encode(height), dots.encode(across, height, colour, shape, tooltip=tips)), marked
    )


def _is_power(batch: int) -> bool:
    return batch & (batch - 1) == 0
