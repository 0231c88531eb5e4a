"""Lines of means with bars of one standard deviation to either side."""

from collections.abc import Sequence

from sourdine.report.charts import ROWS, Axis, Row, Series, Spec, across_of, colour_of, finish, up_of


def draw_bars(rows: Sequence[Row], *, x: Axis, y: Axis, series: Series, level: float | None = None) -> Spec:
    """Means under `y`, their deviations under `deviation`; a dashed line at a level to compare with.

    Points stand at `x`, which may be a little aside of the `epsilon` that is told.
    """
    import altair as alt

    chart = alt.Chart(alt.NamedData(ROWS))
    across, up, colour = across_of(x), up_of(y), colour_of(series)
    ends = chart.transform_calculate(
        low=f"datum['{y.field}'] - datum.deviation", high=f"datum['{y.field}'] + datum.deviation"
    )
    tips = [
        alt.Tooltip(f"{series.field}:N", title=" "),
        alt.Tooltip("epsilon:Q", title=x.title, format=x.form),
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
    if level is not None:
        place = alt.Chart(alt.InlineData(values=[{y.field: level}]))
        layers.insert(0, place.mark_rule(strokeDash=[4, 4], color="#5b6570").encode(alt.Y(f"{y.field}:Q")))
    return finish(alt.layer(*layers), rows)
