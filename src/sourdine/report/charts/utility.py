"""Scores of classifiers against epsilon, with bars of one standard deviation and levels to compare with."""

from collections.abc import Mapping, Sequence

from sourdine.core.display import Spec
from sourdine.report.charts.base import GREY, ROWS, Axis, Row, Series, across_of, colour_of, finish, up_of


def draw_bars(
    rows: Sequence[Row], *, x: Axis, y: Axis, series: Series, levels: Mapping[str, float] | None = None
) -> Spec:
    """Means under `y`, from 0 to 1, their deviations under `deviation`; dashed lines at named levels.

    Series stand at their epsilon, one above the other: beside it, they would tell another one.
    """
    import altair as alt

    chart = alt.Chart(alt.NamedData(ROWS))
    across, up, colour = across_of(x), up_of(y), colour_of(series)
    ends = chart.transform_calculate(
        low=f"max(0, datum['{y.field}'] - datum.deviation)",
        high=f"min(1, datum['{y.field}'] + datum.deviation)",
    )
    tips = [
        alt.Tooltip(f"{series.field}:N", title=" "),
        alt.Tooltip(f"{x.field}:Q", title=x.title, format=x.form),
        alt.Tooltip(f"{y.field}:Q", title=y.title, format=y.form),
        alt.Tooltip("deviation:Q", title="standard deviation", format=".2g"),
    ]
    bars = ends.mark_rule(strokeWidth=1.2, opacity=0.7)
    layers = [
        bars.encode(across, alt.Y("low:Q", title=y.title), alt.Y2("high:Q"), colour),
        chart.mark_line(point=alt.OverlayMarkDef(size=34, filled=True), strokeWidth=2).encode(
            across, up, colour, tooltip=tips
        ),
    ]
    for name, level in (levels or {}).items():
        place = alt.Chart(alt.InlineData(values=[{y.field: level, "said": name}]))
        height = alt.Y(f"{y.field}:Q")
        layers.insert(0, place.mark_rule(strokeDash=[4, 4], color=GREY).encode(height))
        words = place.mark_text(align="left", baseline="bottom", dx=4, dy=-2, color=GREY, fontSize=11)
        layers.append(words.encode(height, x=alt.value(0), text=alt.Text("said:N")))
    return finish(alt.layer(*layers), rows)
