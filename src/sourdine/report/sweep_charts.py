"""Charts of sweeps: points with bars of error, and curves with bands."""

from collections.abc import Sequence

from sourdine.report.charts import (
    COLOURS,
    ROWS,
    Axis,
    Band,
    Row,
    Series,
    Spec,
    across_of,
    colour_of,
    draw_lines,
    finish,
    up_of,
)

_APART = 8.0  # values whose largest is so many times the least stand on a logarithmic axis
_FEW = 12  # values that may all stand at an axis
_PADDING = 30  # pixels beside the outermost points, so that their bars do not lie on the axis
_ACCURACY = Axis(field="accuracy", title="accuracy on public data, %")


def draw_points(rows: Sequence[Row], *, across: str, names: tuple[str, ...]) -> Spec:
    """Means over a setting with one standard deviation to either side, joined by lines."""
    import altair as alt

    places = sorted({float(row["place"] or 0) for row in rows})
    axis = Axis(
        field="place",
        title=across,
        log=places[0] > 0 and places[-1] >= _APART * places[0],
        form=",.4~g",
        ticks=tuple(places) if len(places) <= _FEW else (),
    )
    series = Series(field="series", names=names, colours=COLOURS)
    room = alt.Scale(type="log" if axis.log else "linear", nice=False, zero=False, padding=_PADDING)
    x, y, colour = across_of(axis).scale(room), up_of(_ACCURACY), colour_of(series)
    tips = [
        alt.Tooltip("series:N", title=" "),
        alt.Tooltip("place:Q", title=across, format=",.4~g"),
        alt.Tooltip("accuracy:Q", title="accuracy, %", format=".2f"),
        alt.Tooltip("runs:Q", title="runs"),
    ]
    chart = alt.Chart(alt.NamedData(ROWS))
    bars = chart.mark_rule(strokeWidth=2, opacity=0.6).encode(
        x, alt.Y("lower:Q", title=_ACCURACY.title), alt.Y2("upper:Q"), colour
    )
    lines = chart.mark_line(strokeWidth=1.5, opacity=0.7).encode(x, y, colour)
    points = chart.mark_point(size=60, filled=True, opacity=1).encode(x, y, colour, tooltip=tips)
    return finish(alt.layer(bars, lines, points), rows)


def draw_curves(rows: Sequence[Row], *, across: str, names: tuple[str, ...], legend: str) -> Spec:
    """Accuracy epoch by epoch: a line and a band for each value of a setting."""
    named = [{**row, "series": f"{legend} {row['series']}"} for row in rows]
    last = int(max(float(row["place"] or 0) for row in rows))
    every = -(-last // _FEW)
    return draw_lines(
        named,
        x=Axis(field="place", title=across, ticks=tuple(float(tick) for tick in range(1, last + 1, every))),
        y=_ACCURACY,
        series=Series(field="series", names=tuple(f"{legend} {name}" for name in names), colours=COLOURS),
        band=Band(lower="lower", upper="upper"),
    )
