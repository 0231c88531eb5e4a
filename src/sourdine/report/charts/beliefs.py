"""Charts of what somebody may come to believe, and of what an attack can find."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sourdine.accounting.explain import Curve, posterior_bounds
from sourdine.core.display import Spec
from sourdine.report.charts.base import (
    COLOURS,
    GREY,
    ROWS,
    Axis,
    Row,
    Series,
    across_of,
    colour_of,
    finish,
    up_of,
)

if TYPE_CHECKING:
    import altair as alt

EPSILON_INPUT, PRIOR_INPUT = "#epsilon", "#prior"  # the sliders of the page: log10 of epsilon, and per cent
BLIND = "blind guessing"
_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)
_BEFORE = Axis(field="before", title="belief before the answer", form=".0%", ticks=_QUARTERS)
_AFTER = Axis(field="after", title="belief after the answer", form=".0%", ticks=_QUARTERS)
_MOST, _LEAST, _SAME = "at most", "at least", "unchanged"
_ENDS = Series(field="bound", names=(_MOST, _LEAST, _SAME))
_FALSE = Axis(field="false", title="false positives: false cases it accuses", form=".0%", ticks=_QUARTERS)
_TRUE = Axis(field="true", title="true positives: true cases it finds", form=".0%", ticks=_QUARTERS)
_CHOSEN, _PRIOR = "pow(10, toNumber(place))", "(toNumber(per_cent) / 100)"  # what the sliders say
_AFTER_EXPRESSION = f"{{belief}} / ({{belief}} + exp({{sign}}{_CHOSEN}) * (1 - {{belief}}))"
_LOW = 1e-4
_BELIEFS = (0.0, *(1 / (1 + np.exp(-np.linspace(-7, 7, 61)))), 1.0)  # evenly by their odds
_POWERS = (1e-4, 1e-3, 1e-2, 0.1, 1.0)


def draw_beliefs(epsilon: float, prior: float) -> Spec:
    """Both bounds against the belief before; they follow the sliders of the page at once."""
    import altair as alt

    grid = alt.sequence(0, 1.005, 0.01, as_=_BEFORE.field)
    most, least = (_AFTER_EXPRESSION.format(belief="datum.before", sign=sign) for sign in ("-", ""))
    highest, lowest = (_AFTER_EXPRESSION.format(belief=_PRIOR, sign=sign) for sign in ("-", ""))
    lines = (
        alt.Chart(grid)
        .transform_calculate(
            **{_MOST: most, _LEAST: least, _SAME: "datum.before"},
        )
        .transform_fold(list(_ENDS.names), as_=[_ENDS.field, _AFTER.field])
    )
    band = alt.Chart(grid).transform_calculate(high=most, low=least)
    here = alt.Chart(alt.InlineData(values=[{}])).transform_calculate(before=_PRIOR, high=highest, low=lowest)
    across, after = across_of(_BEFORE), up_of(_AFTER)
    tips = [
        alt.Tooltip(f"{_ENDS.field}:N", title=" "),
        alt.Tooltip("before:Q", title=_BEFORE.title, format=".0%"),
        alt.Tooltip("after:Q", title=_AFTER.title, format=".2%"),
    ]
    layered = alt.layer(
        band.mark_area(opacity=0.12, color=COLOURS[0]).encode(
            across, alt.Y("low:Q", title=_AFTER.title), alt.Y2("high:Q")
        ),
        lines.mark_line(strokeWidth=2).encode(across, after, colour_of(_ENDS), _dashes(_ENDS), tooltip=tips),
        here.mark_rule(color=GREY, strokeWidth=1.5).encode(across, alt.Y("low:Q"), alt.Y2("high:Q")),
        here.mark_point(color=COLOURS[0], filled=True, size=60, opacity=1).encode(across, alt.Y("high:Q")),
        here.mark_point(color=COLOURS[1], filled=True, size=60, opacity=1).encode(across, alt.Y("low:Q")),
    ).add_params(
        alt.param(name="place", value=math.log10(epsilon), bind=alt.BindDirect(element=EPSILON_INPUT)),
        alt.param(name="per_cent", value=100 * prior, bind=alt.BindDirect(element=PRIOR_INPUT)),
    )
    title = (
        f"'ε ' + format({_CHOSEN}, '.3~g') + ': from ' + per_cent + ' to between '"
        f" + floor(100 * {lowest} + 1e-9) + ' and ' + ceil(100 * {highest} - 1e-9) + ' in 100'"
    )
    return finish(layered.properties(title=alt.Title(text=alt.expr(title))))


def draw_bounds(epsilon: float) -> Spec:
    """Both bounds against the belief before, at one epsilon."""
    import altair as alt

    rows: list[Row] = []
    for before in _BELIEFS:
        bounds = posterior_bounds(float(before), epsilon)
        ends = ((_MOST, bounds.upper), (_LEAST, bounds.lower), (_SAME, float(before)))
        rows += [
            {"before": round(float(before), 6), "after": round(after, 6), "bound": bound}
            for bound, after in ends
        ]
    tips = [
        alt.Tooltip("bound:N", title=" "),
        alt.Tooltip("before:Q", title=_BEFORE.title, format=".0%"),
        alt.Tooltip("after:Q", title=_AFTER.title, format=".2%"),
    ]
    lines = alt.Chart(alt.NamedData(ROWS)).mark_line(strokeWidth=2)
    channels = across_of(_BEFORE), up_of(_AFTER), colour_of(_ENDS), _dashes(_ENDS)
    return finish(alt.layer(lines.encode(*channels, tooltip=tips)), rows)


def draw_family(epsilons: Sequence[float]) -> Spec:
    """Both bounds for several epsilons: the upper curves above the diagonal, the lower ones below."""
    import altair as alt

    names = tuple(f"ε = {epsilon:g}" for epsilon in epsilons)
    rows: list[Row] = []
    for epsilon, name in zip(epsilons, names, strict=True):
        for before in _BELIEFS:
            bounds = posterior_bounds(float(before), epsilon)
            rows += [
                {"before": round(float(before), 6), "after": round(after, 6), "epsilon": name, "bound": bound}
                for bound, after in ((_MOST, bounds.upper), (_LEAST, bounds.lower))
            ]
    chart = alt.Chart(alt.NamedData(ROWS))
    tips = [
        alt.Tooltip("epsilon:N", title=" "),
        alt.Tooltip("bound:N", title=" "),
        alt.Tooltip("before:Q", title=_BEFORE.title, format=".0%"),
        alt.Tooltip("after:Q", title=_AFTER.title, format=".2%"),
    ]
    lines = chart.mark_line(strokeWidth=2).encode(
        across_of(_BEFORE),
        up_of(_AFTER),
        colour_of(Series(field="epsilon", names=names)).legend(orient="bottom", columns=3),
        alt.Detail("bound:N"),
        tooltip=tips,
    )
    same = alt.Chart(alt.InlineData(values=[{"before": end, "after": end} for end in (0, 1)]))
    diagonal = same.mark_line(color=GREY, strokeDash=[4, 4]).encode(across_of(_BEFORE), up_of(_AFTER))
    return finish(alt.layer(diagonal, lines), rows)


def draw_roc(curves: dict[str, Curve], *, log: bool = False, mark: float | None = None) -> Spec:
    """The most true positives at each rate of false positives, above the diagonal of blind guessing."""
    import altair as alt

    rates = np.geomspace(_LOW, 1, 81) if log else np.linspace(0, 1, 101) ** 2
    rows: list[Row] = [
        {"false": float(f"{rate:.6g}"), "true": float(f"{power:.6g}"), "known": name}
        for name, curve in curves.items()
        for rate, power in zip(rates, curve.true_positives(rates), strict=True)
    ]
    rows += [{"false": float(f"{rate:.6g}"), "true": float(f"{rate:.6g}"), "known": BLIND} for rate in rates]
    false, true = _FALSE, _TRUE
    if log:
        false, true = (
            Axis(field=axis.field, title=axis.title, log=True, form=".2~%", ticks=_POWERS)
            for axis in (_FALSE, _TRUE)
        )
    series = Series(field="known", names=(*curves, BLIND))
    tips = [
        alt.Tooltip("known:N", title=" "),
        alt.Tooltip("false:Q", title="false positives", format=".3~%"),
        alt.Tooltip("true:Q", title="true positives, at most", format=".3~%"),
    ]
    layers = [
        alt.Chart(alt.NamedData(ROWS))
        .mark_line(strokeWidth=2)
        .encode(
            across_of(false),
            up_of(true),
            colour_of(series),
            _dashes(series),
            tooltip=tips,
        )
    ]
    if mark is not None:
        place = alt.Chart(alt.InlineData(values=[{"false": mark}]))
        layers.insert(0, place.mark_rule(strokeDash=[4, 4], color=GREY).encode(across_of(false)))
    return finish(alt.layer(*layers), rows)


def _dashes(series: Series) -> "alt.StrokeDash":
    """The last line of a chart is dashed: where nothing is learnt."""
    import altair as alt

    whole = [[1, 0]] * (len(series.names) - 1)
    scale = alt.Scale(domain=list(series.names), range=[*whole, [4, 4]])
    return alt.StrokeDash(f"{series.field}:N", legend=None, scale=scale)
