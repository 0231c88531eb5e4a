"""Charts of training: epsilon against the Renyi order, sweeps with their errors, and measured memory.

The first follows its sliders at once: divergences add up over steps, and both conversions are short
formulas, so the page itself computes epsilon for any number of epochs and any delta. Only the noise has its
values prepared.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import replace

from sourdine.accounting.dpsgd.training import Training, step_loss
from sourdine.accounting.rdp.accountant import SOURCE_ORDERS, Renyi
from sourdine.core.display import Spec
from sourdine.core.format import plain
from sourdine.report.charts.base import (
    COLOURS,
    GREY,
    INK,
    ROWS,
    Axis,
    Band,
    Row,
    Series,
    across_of,
    colour_of,
    draw_lines,
    finish,
    up_of,
)

_ORDERS = (*SOURCE_ORDERS, 72.0, 80.0, 96.0, 112.0, 128.0, 160.0, 192.0, 256.0)
_ABOVE_BEST = 30  # times the least epsilon, where the chart ends
_ORDER = Axis(field="order", title="Rényi order", log=True, ticks=(1.1, 1.5, 2, 3, 5, 10, 20, 50, 100, 200))
_EPSILON = Axis(field="epsilon", title="ε that the order proves", log=True, form=".3~g")


def draw_orders(training: Training, delta: float, noises: Sequence[float], series: Series) -> Spec:
    """epsilon by both conversions at each order; sliders for noise, epochs and delta."""
    import altair as alt

    accountant = Renyi(orders=_ORDERS)
    rows: list[Row] = []
    for place, noise in enumerate(noises):
        divergences = accountant.curve(accountant.lift(step_loss(noise, training.sampling_rate)))
        rows += [
            {"place": place, "order": order, "divergence": float(f"{divergence:.9g}")}
            for order, divergence in zip(_ORDERS, divergences, strict=True)
            if math.isfinite(divergence)
        ]
    tight, older = series.names
    each = training.steps // training.epochs
    chart = (
        alt.Chart(alt.NamedData(ROWS))
        .transform_filter("datum.place == noise_place")
        .transform_calculate(
            **{
                "spent": f"datum.divergence * epochs * {each}",
                tight: "datum.spent + log(1 - 1 / datum.order)"
                " - (log(datum.order) - less_delta * log(10)) / (datum.order - 1)",
                older: "datum.spent + less_delta * log(10) / (datum.order - 1)",
            }
        )
        .transform_fold([tight, older], as_=[series.field, "epsilon"])
        .transform_filter("datum.epsilon > 0")
        .transform_joinaggregate(least="min(epsilon)", groupby=[series.field])
        .transform_filter(f"datum.epsilon < {_ABOVE_BEST} * datum.least")
    )
    across, up, colour = across_of(_ORDER), up_of(_EPSILON), colour_of(series)
    tips = [
        alt.Tooltip(f"{series.field}:N", title=" "),
        alt.Tooltip("order:Q", title="Rényi order", format=".4~g"),
        alt.Tooltip("epsilon:Q", title="ε", format=".4~g"),
    ]
    best = chart.transform_filter("datum.epsilon == datum.least").transform_calculate(
        label="'ε ' + format(datum.epsilon, '.3~g') + ' at order ' + format(datum.order, '.3~g')"
    )
    layers = [
        chart.mark_line(strokeWidth=2).encode(across, up, colour, tooltip=tips),
        best.mark_point(size=70, filled=True, opacity=1).encode(across, up, colour, tooltip=tips),
    ]
    for place, name in enumerate(series.names):  # between the arms of the curves, at the top, there is room
        short = json.dumps(f"{name.partition(', ')[2].removesuffix(' conversion')}: ")
        text = best.transform_filter(f"datum['{series.field}'] == {json.dumps(name)}")
        mark = text.transform_calculate(label=f"{short} + datum.label").mark_text(
            align="center", fontSize=12, color=INK
        )
        layers.append(
            mark.encode(
                x=alt.value(alt.expr("0.6 * width")), y=alt.value(14 + 18 * place), text=alt.Text("label:N")
            )
        )
    most = max(100, 2 * training.epochs)
    layered = alt.layer(*layers).add_params(
        alt.param(
            name="noise_place",
            value=list(noises).index(training.noise_multiplier),
            bind=alt.binding_range(min=0, max=len(noises) - 1, step=1, name="noise"),
        ),
        alt.param(
            name="epochs",
            value=training.epochs,
            bind=alt.binding_range(min=1, max=most, step=1, name="epochs"),
        ),
        alt.param(
            name="less_delta",
            value=-math.log10(delta),
            bind=alt.binding_range(min=2, max=12, step=0.5, name="δ"),
        ),
    )
    title = (
        f"'noise ' + format({json.dumps(list(noises))}[noise_place], '.4~g') + ' · epochs ' + epochs"
        " + ' · δ ' + format(pow(10, -less_delta), '.1~e')"
    )
    slider_texts = {
        "noise_place": [f"{noise:.4g}" for noise in noises],
        "epochs": [str(epochs) for epochs in range(1, most + 1)],
        "less_delta": [plain(float(f"{10 ** -(place / 2):.1g}")) for place in range(4, 25)],
    }
    return finish(layered.properties(title=alt.Title(text=alt.expr(title))), rows, slider_texts=slider_texts)


_APART = 8.0  # values whose largest is so many times the least stand on a logarithmic axis
_FEW = 12  # values that may all stand at an axis
_PADDING = 30  # pixels beside the outermost points, so that their bars do not lie on the axis
_LEAST = 10.0  # percentage points that an axis spans, so that hundredths do not look like a cliff


def accuracy_axis(rows: Sequence[Row]) -> Axis:
    """The axis of accuracies: whole tens of points from the least to the most, or 10 around them.

    >>> accuracy_axis([{"lower": 91.02, "upper": 91.07}]).ends
    (86.0, 96.0)
    """
    low = min(float(row["lower"] or 0) for row in rows)
    high = max(float(row["upper"] or 0) for row in rows)
    if high - low < _LEAST:
        low = min(max(0.0, float(round((low + high) / 2)) - _LEAST / 2), 100.0 - _LEAST)
        ends = low, low + _LEAST
    else:
        ends = max(0.0, math.floor(low) - 1.0), min(100.0, math.ceil(high) + 1.0)
    return Axis(field="accuracy", title="accuracy on public data, %", ends=ends)


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
    accuracy = accuracy_axis(rows)
    x, y, colour = across_of(axis).scale(room), up_of(accuracy), colour_of(series)
    tips = [
        alt.Tooltip("series:N", title=" "),
        alt.Tooltip("place:Q", title=across, format=",.4~g"),
        alt.Tooltip("accuracy:Q", title="accuracy, %", format=".2f"),
        alt.Tooltip("runs:Q", title="runs"),
    ]
    chart = alt.Chart(alt.NamedData(ROWS))
    bars = chart.mark_rule(strokeWidth=2, opacity=0.6).encode(
        x, up_of(replace(accuracy, field="lower")), alt.Y2("upper:Q"), colour
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
        y=accuracy_axis(rows),
        series=Series(field="series", names=tuple(f"{legend} {name}" for name in names), colours=COLOURS),
        band=Band(lower="lower", upper="upper"),
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
    strokes = chart.transform_filter("datum.kind == 'line'").mark_line(strokeWidth=2)
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
    return finish(alt.layer(strokes.encode(across, height, colour), bars, dots), rows)


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
