"""The chart of epsilon against the Renyi order, which follows its sliders at once.

Divergences add up over steps, and both conversions are short formulas, so the page itself computes epsilon
for any number of epochs and any delta. Only the noise has its values prepared.
"""

import json
import math
from collections.abc import Sequence

from sourdine.accounting.dpsgd import Training, step_loss
from sourdine.accounting.renyi import SOURCE_ORDERS, Renyi
from sourdine.report.charts import ROWS, Axis, Row, Series, Spec, across_of, colour_of, finish, up_of

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
        divergences = accountant.curve(accountant.lift(step_loss(noise, training.rate)))
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
        told="'ε ' + format(datum.epsilon, '.3~g') + ' at order ' + format(datum.order, '.3~g')"
    )
    layers = [
        chart.mark_line(strokeWidth=2).encode(across, up, colour, tooltip=tips),
        best.mark_point(size=70, filled=True, opacity=1).encode(across, up, colour, tooltip=tips),
    ]
    for place, name in enumerate(series.names):  # between the arms of the curves, at the top, there is room
        text = best.transform_filter(f"datum['{series.field}'] == {json.dumps(name)}")
        mark = text.mark_text(align="center", fontSize=12, color=series.colours[place])
        layers.append(
            mark.encode(
                x=alt.value(alt.expr("0.6 * width")), y=alt.value(14 + 18 * place), text=alt.Text("told:N")
            )
        )
    layered = alt.layer(*layers).add_params(
        alt.param(
            name="noise_place",
            value=list(noises).index(training.noise),
            bind=alt.binding_range(min=0, max=len(noises) - 1, step=1, name="noise"),
        ),
        alt.param(
            name="epochs",
            value=training.epochs,
            bind=alt.binding_range(min=1, max=max(100, 2 * training.epochs), step=1, name="epochs"),
        ),
        alt.param(
            name="less_delta",
            value=-math.log10(delta),
            bind=alt.binding_range(min=2, max=12, step=0.5, name="smaller δ"),
        ),
    )
    told = (
        f"'noise ' + format({json.dumps(list(noises))}[noise_place], '.4~g') + ' · epochs ' + epochs"
        " + ' · δ ' + format(pow(10, -less_delta), '.1~e')"
    )
    return finish(layered.properties(title=alt.Title(text=alt.expr(told))), rows)
