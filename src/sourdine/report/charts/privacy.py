"""Charts of what somebody may come to believe, and of what an attack can find."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sourdine.accounting.explain import Curve, posterior_bounds
from sourdine.anonymity import Measures
from sourdine.core.figure import Spec
from sourdine.report.charts.base import (
    COLOURS,
    GREY,
    INK,
    ROWS,
    Axis,
    Row,
    Series,
    across_of,
    colour_of,
    draw_lines,
    finish,
    up_of,
)
from sourdine.tables.synthetic import SyntheticModel
from sourdine.tables.synthetic.model import SyntheticPart
from sourdine.tables.synthetic.tree import from_root

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


# Charts of how identifiable a table is, before and after it is made coarser.


RAW, COARSE = "raw table", "generalised table"
_EDGES = (1, 2, 3, 5, 10, 20, 100)
_PER_BAR = 28  # pixels
_LABEL = 170  # pixels at most, beside a bar
_MOST_POINTS = 60
_MOST_BARS = 20
_ROOM = 1.3  # of the longest bar, for its number


def draw_sizes(tables: Mapping[str, Measures]) -> Spec:
    """The share of records by the size of their class."""
    import altair as alt

    names = [_bucket(place) for place in range(len(_EDGES))]
    rows: list[Row] = []
    for table, measures in tables.items():
        counts = [0] * len(_EDGES)
        for size, many in measures.sizes:
            place = max(p for p, edge in enumerate(_EDGES) if edge <= size)
            counts[place] += size * many
        rows += [
            {"class size": name, "table": table, "records": count, "share": count / measures.records}
            for name, count in zip(names, counts, strict=True)
        ]
    across = alt.X(
        "class size:N",
        sort=names,
        title="records in the class",
        axis=alt.Axis(labelAngle=0, ticks=False, labelOverlap=True),
    )
    up = alt.Y("share:Q", title="share of records", axis=alt.Axis(format="%", tickCount=5))
    return _bars(tables, rows, across, up)


def draw_hiding(tables: Mapping[str, Measures]) -> Spec:
    """The share of records that hide among fewer than so many: those whose risk is above one in so many."""
    rows: list[Row] = []
    for table, measures in tables.items():
        for among in _thresholds():
            fewer = sum(size * many for size, many in measures.sizes if size < among)
            rows.append({"among": among, "table": table, "share": fewer / measures.records})
    return draw_lines(
        rows,
        x=Axis(field="among", title="x records (risk above 1 in x)", log=True, ticks=(2, 5, 10, 20, 50, 100)),
        y=Axis(field="share", title="share in classes of fewer than x", form=".0%"),
        series=_series(tables),
    )


def draw_columns(shares: Mapping[str, float], title: str) -> Spec:
    """A share for each column, or for each combination of columns."""
    import altair as alt

    rows: list[Row] = [{"column": name, "share": share} for name, share in list(shares.items())[:_MOST_BARS]]
    up = alt.Y("column:N", title=None, sort=None, axis=alt.Axis(labelLimit=_LABEL, ticks=False))
    across = alt.X(
        "share:Q",
        title=title,
        scale=alt.Scale(zero=True, domainMax=_ROOM * max(shares.values(), default=1.0)),
        axis=alt.Axis(format=".2~%", tickCount=5, labelOverlap=True),
    )
    tips = [
        alt.Tooltip("column:N", title="column"),
        alt.Tooltip("share:Q", title=title, format=".3~%"),
    ]
    bars = (
        alt.Chart(alt.NamedData(ROWS))
        .mark_bar(opacity=0.85, color=COLOURS[0])
        .encode(across, up, tooltip=tips)
    )
    numbers = alt.Chart(alt.NamedData(ROWS)).mark_text(align="left", dx=4, color=INK, fontSize=11)
    numbers = numbers.encode(alt.X("share:Q", title=title), up, text=alt.Text("share:Q", format=".3~%"))
    return {**finish(alt.layer(bars, numbers), rows), "height": _PER_BAR * len(rows)}


def _bars(tables: Mapping[str, Measures], rows: Sequence[Row], across: "alt.X", up: "alt.Y") -> Spec:
    import altair as alt

    tips = [
        alt.Tooltip("table:N", title=" "),
        alt.Tooltip("class size:N", title="class size"),
        alt.Tooltip("records:Q", title="records", format=","),
        alt.Tooltip("share:Q", title="share", format=".2~%"),
    ]
    bars = alt.Chart(alt.NamedData(ROWS)).mark_bar(opacity=0.85)
    series = _series(tables)
    if len(tables) == 1:
        return finish(
            alt.layer(bars.encode(across, up, color=alt.value(series.colours[0]), tooltip=tips)), rows
        )
    scale = alt.Scale(domain=list(series.names), range=list(series.colours))
    legend = alt.Legend(orient="bottom", symbolType="square", symbolStrokeWidth=0)
    colour = alt.Color("table:N", title=None, scale=scale, legend=legend)
    aside = alt.XOffset("table:N", sort=list(tables))
    return finish(alt.layer(bars.encode(across, up, aside, colour, tooltip=tips)), rows)


def _series(tables: Mapping[str, Measures]) -> Series:
    colours = tuple(COLOURS[1] if name == RAW else COLOURS[0] for name in tables)
    return Series(field="table", names=tuple(tables), colours=colours)


def _bucket(place: int) -> str:
    low = _EDGES[place]
    if place + 1 == len(_EDGES):
        return f"{low:,}+"
    high = _EDGES[place + 1] - 1
    return f"{low}" if low == high else f"{low}–{high}"


def _thresholds() -> list[int]:
    """Whole numbers from 2 to 100, ever farther apart."""
    return sorted({round(2 * 50 ** (step / (_MOST_POINTS - 1))) for step in range(_MOST_POINTS)})


# The tree of a synthetic table as a picture: columns, and the relations between them that were measured.


_LINE = 24  # pixels that each column has, from top to bottom
_STEP, _MOST_WIDTH = 30, 170  # pixels from a column to its children, and of all steps on a telephone
_MARGIN = 8


def draw_tree(model: SyntheticModel, part: SyntheticPart) -> Spec:
    """Columns below each other, each under its parent, to the right of it, and joined with it.

    Every column has a line of its own, so that names never meet, on a telephone either. A thicker line is a
    stronger relation, by the noisy tables: how much of the records would have to change their cell for the
    two columns to be independent.
    """
    import altair as alt

    rows = _rows(model, part)
    chart = alt.Chart(alt.NamedData(ROWS))
    none = alt.Axis(labels=False, ticks=False, grid=False, domain=False)
    deepest = max(int(row["x"] or 0) for row in rows)
    width = min(_STEP, _MOST_WIDTH / max(deepest, 1)) * deepest
    places = alt.Scale(domain=[0, max(deepest, 1)], range=[_MARGIN, _MARGIN + max(width, 1)], nice=False)
    across = alt.X("x:Q", title=None, axis=none, scale=places)
    above, up = (
        alt.Y(f"{name}:Q", title=None, axis=none, scale=alt.Scale(padding=12, nice=False))
        for name in ("y2", "y")
    )
    child = chart.transform_filter("isValid(datum.x2)")
    trunks = child.mark_rule(color=GREY, opacity=0.6).encode(
        alt.X("x2:Q", title=None, axis=none, scale=places), above, alt.Y2("y:Q")
    )
    branches = child.mark_rule(color=COLOURS[0], opacity=0.75).encode(
        across,
        up,
        alt.X2("x2:Q"),
        alt.StrokeWidth("strength:Q", scale=alt.Scale(range=[1, 9], domainMin=0), legend=None),
        tooltip=[
            alt.Tooltip("pair:N", title="measured"),
            alt.Tooltip("strength:Q", title="distance from independence", format=".1%"),
        ],
    )
    points = chart.mark_point(filled=True, size=70, color=COLOURS[0], opacity=1).encode(across, up)
    names = chart.mark_text(dx=9, align="left", fontSize=12, color=INK).encode(across, up, text="name:N")
    spec = finish(alt.layer(trunks, branches, points, names), rows)
    return {**spec, "height": _LINE * len(rows) + _LINE}


def _rows(model: SyntheticModel, part: SyntheticPart) -> list[Row]:
    """Where each column stands, and where its parent does: all below a column before its next sibling."""
    order = from_root(part.tree.edges, len(model.columns))
    parents = dict(order)
    children: dict[int | None, list[int]] = {}
    for column, parent in order:
        children.setdefault(parent, []).append(column)
    waiting = children.get(None, [])[::-1]
    depth: dict[int, int] = {}
    line: dict[int, int] = {}
    rows: list[Row] = []
    while waiting:
        column = waiting.pop()
        parent = parents[column]
        depth[column] = 0 if parent is None else depth[parent] + 1
        line[column] = -len(line)
        row: dict[str, str | float | None] = {
            "name": model.columns[column].name,
            "x": float(depth[column]),
            "y": float(line[column]),
        }
        if parent is not None:
            row |= {
                "x2": float(depth[parent]),
                "y2": float(line[parent]),
                "pair": f"{model.columns[parent].name} and {model.columns[column].name}",
                "strength": strength(part, column, parent),
            }
        rows.append(row)
        waiting += children.get(column, [])[::-1]
    return rows


def strength(part: SyntheticPart, one: int, other: int) -> float:
    """The total variation between a table of the tree and independence, from 0 to 1."""
    place = next(i for i, edge in enumerate(part.tree.edges) if set(edge) == {one, other})
    table = part.tree.tables[place]
    total = table.sum()
    if total <= 0:
        return 0.0
    shares = table / total
    expected = shares.sum(1, keepdims=True) * shares.sum(0, keepdims=True)
    return float(abs(shares - expected).sum() / 2)


# Scores of classifiers against epsilon, with bars of one standard deviation and levels to compare with.


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
