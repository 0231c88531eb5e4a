"""Charts of noisy answers: every value with its interval."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, assert_never

from sourdine.core.display import Figure, Spec, stack
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import endless
from sourdine.frames.expressions.times import start_of
from sourdine.report.charts.base import (
    COLOURS,
    GREY,
    INK,
    LETTER,
    NARROW,
    ROWS,
    Axis,
    Row,
    Series,
    colour_of,
    draw_lines,
    finish,
    title_of,
    up_of,
)
from sourdine.report.charts.base import Axis as ChartAxis
from sourdine.report.finding import (
    Cell,
    cells_of,
    count_cells,
    name_group,
    name_key,
    show_cell,
    show_interval,
)
from sourdine.tables import Answer, Forecast, ReleasePlan
from sourdine.tables.statistics import Chart, Scale, style_of

if TYPE_CHECKING:
    import altair as alt

_MOST_CELLS = 400
_FEW_BINS, _MANY_BINS = 8, 16  # whose names fit below them aslant, or upright, on a telephone
_PER_BAR = 34  # pixels


def draw_answer(answer: Answer) -> Spec | None:
    """The chart that fits an answer; none for one number or for ranks, nor where nothing can be said."""
    cells = cells_of(answer)
    if len(cells) < 2 or all(answer.blind(cell.lower, cell.upper) for cell in cells):
        return None
    chart, few = style_of(answer.kind).chart, len(cells) <= _MOST_CELLS
    match chart:
        case Chart.LIST:
            return None
        case Chart.CURVE:
            return _quantiles(answer, cells)
        case Chart.HEAT:
            pairs = len(answer.columns) == 2 and few
            return draw_pairs(answer, cells) if pairs else draw_groups(answer, cells)
        case Chart.UPRIGHT:
            return _histogram(answer, cells) if few else draw_groups(answer, cells)
        case Chart.BARS if (place := time_column(answer)) is not None:
            return _over_time(answer, cells, place)
        case Chart.BARS | Chart.NESTED:
            return draw_groups(answer, cells)
        case _:
            assert_never(chart)


def draw_alone(answer: Answer) -> Spec | None:
    """The chart of an answer that is asked for by itself, also of one number; none where there is none."""
    cells = cells_of(answer)
    if not cells or style_of(answer.kind).chart is Chart.LIST:
        return None
    return draw_answer(answer) or draw_groups(answer, cells)


def draw_intervals(rows: Sequence[Row], title: str) -> Spec:
    """Bars to the right with intervals; a row has a group, a value, and a lower and an upper end."""
    import altair as alt

    chart = alt.Chart(alt.NamedData(ROWS))
    groups = [str(row["group"]) for row in rows]
    up = alt.Y("group:N", title=None, sort=groups, axis=alt.Axis(labelLimit=LABEL, ticks=False))
    across = alt.X("value:Q", title=title, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=5))
    tips = [
        alt.Tooltip("group:N", title=" "),
        *(alt.Tooltip(f"{end}:Q", format=",.4~g") for end in ("value", "lower", "upper")),
    ]
    layers = [
        chart.mark_bar(opacity=0.8, color=COLOURS[0]).encode(across, up, tooltip=tips),
        chart.mark_rule(color=INK, strokeWidth=WIDE).encode(
            alt.X("lower:Q", title=title), alt.X2("upper:Q"), up, tooltip=tips
        ),
    ]
    return dict(finish(alt.layer(*layers), rows)) | {"height": _PER_BAR * len(groups)}


def count_missing(answer: Answer, chart: Spec) -> int:
    """How many values of an answer its chart leaves out."""
    datasets: Any = chart["datasets"]
    return count_cells(answer) - len(datasets[ROWS])


def time_column(answer: Answer) -> int | None:
    """The place of the column whose keys are periods of time, where the others tell a few colours apart."""
    for place in range(len(answer.columns)):
        names = {key[place] for key in answer.keys}
        others = {(*key[:place], *key[place + 1 :]) for key in answer.keys}
        periods = all(isinstance(name, str) and start_of(name) is not None for name in names)
        if len(names) > 1 and periods and len(others) <= len(COLOURS):
            return place
    return None


def _over_time(answer: Answer, cells: list[Cell], place: int) -> Spec:
    """Points over time with their intervals, joined so that the eye can follow."""
    import altair as alt

    others = (*answer.columns[:place], *answer.columns[place + 1 :])
    rows: list[Row] = []
    for cell in cells:
        start = start_of(str(cell.key[place]))
        assert start is not None
        name = name_group(others, (*cell.key[:place], *cell.key[place + 1 :]))
        # with its hour: a date alone would be taken for one of UTC, and be another day elsewhere
        more = {"group": str(cell.key[place]), "series": name, "time": start.isoformat()}
        rows.append({**numbers_of(answer, cell), **more})
    names = tuple(dict.fromkeys(str(row["series"]) for row in rows))
    series = Series(field="series", names=names) if len(names) > 1 else None
    chart, tips = alt.Chart(alt.NamedData(ROWS)), tips_of(answer, series)
    across = alt.X("time:T", title=answer.columns[place], axis=alt.Axis(labelOverlap=True, tickCount=8))
    up = alt.Y(
        "value:Q",
        title=title_of_answer(answer),
        scale=alt.Scale(zero=True),
        axis=alt.Axis(format=form_of(answer), tickCount=6),
    )
    colour: list[Any] = [colour_of(series)] if series else []
    layers = [
        chart.mark_line(strokeWidth=1, opacity=0.5, color=COLOURS[0]).encode(across, up, *colour),
        chart.mark_point(filled=True, size=30, opacity=1, color=COLOURS[0]).encode(
            across, up, *colour, tooltip=tips
        ),
    ]
    if answer.bounded:
        low, high = alt.Y("lower:Q", title=title_of_answer(answer)), alt.Y2("upper:Q")
        rules = chart.mark_rule(strokeWidth=WIDE, color=INK, opacity=0.6)
        layers.insert(0, rules.encode(across, low, high, tooltip=tips))
    return with_squares(finish(alt.layer(*layers), rows))


def _histogram(answer: Answer, cells: list[Cell]) -> Spec:
    """Upright bars in the order of the bins."""
    import altair as alt

    bins = list(dict.fromkeys(str(cell.key[-1]) for cell in cells))
    rows: list[Row] = []
    for cell in cells:
        groups = name_group(answer.columns[:-1], cell.key[:-1])
        rows.append({**numbers_of(answer, cell), "group": str(cell.key[-1]), "series": groups})
    names = tuple(dict.fromkeys(str(row["series"]) for row in rows))
    series = Series(field="series", names=names) if 1 < len(names) <= len(COLOURS) else None
    chart = alt.Chart(alt.NamedData(ROWS))
    across = alt.X(
        "group:O",
        title=answer.columns[-1],
        sort=bins,
        axis=alt.Axis(
            labelAngle=-45 if len(bins) <= _FEW_BINS else -90,
            labelLimit=110,
            labelOverlap=len(bins) > _MANY_BINS,
        ),
    )
    up = alt.Y(
        "value:Q",
        title=title_of_answer(answer),
        scale=alt.Scale(zero=True),
        axis=alt.Axis(format=form_of(answer), tickCount=6),
    )
    aside: list[Any] = [alt.XOffset("series:N", sort=list(names))] if series else []
    colour = [colour_of(series)] if series else []
    layers = [
        chart.mark_bar(opacity=0.8, color=COLOURS[0]).encode(
            across, up, *aside, *colour, tooltip=tips_of(answer, series)
        ),
        chart.mark_rule(color=INK, strokeWidth=WIDE).encode(
            across, alt.Y("lower:Q", title=title_of_answer(answer)), alt.Y2("upper:Q"), *aside
        ),
    ]
    return with_squares(finish(alt.layer(*layers), rows))


def _quantiles(answer: Answer, cells: list[Cell]) -> Spec:
    """Points over the share of values below, with intervals if known.

    Of one group they are joined so that the eye can follow. Those of several stand side by side, which a
    scale of names allows: on one of numbers a point would stand where its level is not.
    """
    import altair as alt

    names = tuple(dict.fromkeys(name_group(answer.columns[:-1], cell.key[:-1]) for cell in cells))
    names = names[: len(COLOURS)]
    series = Series(field="series", names=names) if len(names) > 1 else None
    rows: list[Row] = []
    for cell in cells:
        name = name_group(answer.columns[:-1], cell.key[:-1])
        if name in names:
            label = f"{100 * cell.level:g} % lie below"
            level = f"{100 * cell.level:g}%" if series else cell.level
            rows.append({**numbers_of(answer, cell), "level": level, "series": name, "group": label})
    chart = alt.Chart(alt.NamedData(ROWS))
    title, aside = "share of values below", []
    if series:
        across = alt.X("level:O", title=title, sort=None, axis=alt.Axis(labelAngle=0))
        aside = [alt.XOffset("series:N", sort=list(names))]
    else:
        shares = alt.Axis(format=".0%", tickCount=5)
        across = alt.X("level:Q", title=title, scale=alt.Scale(domain=[0, 1]), axis=shares)
    up = alt.Y(
        "value:Q",
        title=answer.measure,
        scale=alt.Scale(zero=False),
        axis=alt.Axis(format=form_of(answer), tickCount=6),
    )
    colour: list[Any] = [colour_of(series)] if series else []
    layers = [
        chart.mark_point(filled=True, size=45, opacity=1, color=COLOURS[0]).encode(
            across, up, *aside, *colour, tooltip=tips_of(answer, series)
        ),
    ]
    if answer.bounded:
        low, high = alt.Y("lower:Q", title=answer.measure), alt.Y2("upper:Q")
        rules = chart.mark_rule(strokeWidth=2, color=COLOURS[0]).encode(across, low, high, *aside, *colour)
        layers.insert(0, rules)
    if not series:
        layers.insert(0, chart.mark_line(strokeWidth=1, opacity=0.5, color=COLOURS[0]).encode(across, up))
    return finish(alt.layer(*layers), rows)


# What charts of noisy answers have in common: what is drawn and told of a value, and how axes are named.


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


# Charts of groups below each other: counts and sums as bars, means and shares as points.
#
# A group of which nothing, or hardly anything, can be said is told in words: an interval over all that is
# possible would look like the surest of all, and make the others short.


_MOST_GROUPS = 40
_GROUP_BAR = 26  # pixels
LABEL = 170  # pixels at most, beside a bar
WIDE = 1.5  # of an interval's line
_VAGUE = 0.5  # of all that is possible: an interval so long would only make the others short


def draw_groups(answer: Answer, cells: list[Cell]) -> Spec:
    """Bars to the right, one below the other; the last column of two or more tells colours apart."""
    import altair as alt

    series = _series(answer, cells)
    rows = _rows(answer, cells if series else _chosen(answer, cells), series)
    groups = list(dict.fromkeys(str(row["group"]) for row in rows))
    chart = alt.Chart(alt.NamedData(ROWS))
    beside = alt.Axis(labelLimit=LABEL, ticks=False, labelPadding=8)  # a point may stand at 0
    up = alt.Y("group:N", title=None, sort=groups, axis=beside)
    low, high = alt.X("lower:Q", title=title_of_answer(answer)), alt.X2("upper:Q")
    across = alt.X(
        "value:Q",
        title=title_of_answer(answer),
        scale=alt.Scale(zero=True),
        axis=alt.Axis(format=form_of(answer), tickCount=5, labelOverlap=True),
    )
    aside: list[Any] = []
    if series:
        aside.append(alt.YOffset("series:N", sort=list(series.names)))
    # a count or a sum begins at 0; a mean or a share is a place among all that is possible
    values = chart.mark_bar(opacity=0.8, color=COLOURS[0])
    if answer.span is not None:
        values = chart.mark_point(filled=True, size=70, opacity=1, color=COLOURS[0])
    colour = [colour_of(series)] if series else []
    words = chart.transform_filter("isValid(datum.said)").mark_text(
        align="left", dx=6, color=GREY, fontSize=11
    )
    layers = [
        chart.mark_rule(color=INK, strokeWidth=WIDE).encode(
            low, high, up, *aside, tooltip=tips_of(answer, series)
        ),
        *(
            chart.mark_tick(color=INK, thickness=WIDE, size=8).encode(
                alt.X(f"{end}:Q", title=title_of_answer(answer)), up, *aside
            )
            for end in ("lower", "upper")
        ),
        values.encode(across, up, *aside, *colour, tooltip=tips_of(answer, series)),
        *(
            [words.encode(up, *aside, x=alt.value(0), text="said:N")]
            if any(row.get("said") for row in rows)
            else []
        ),
    ]
    if answer.span is None:  # intervals lie on bars, and points on intervals
        layers = [layers[3], *layers[:3], *layers[4:]]
    spec = finish(alt.layer(*layers), rows)
    bar = _GROUP_BAR if not series else 16
    return with_squares(spec) | {"height": len(groups) * (bar * (len(series.names) if series else 1) + 8)}


def _series(answer: Answer, cells: list[Cell]) -> Series | None:
    """The keys of the last column, where they tell colours apart; a town is in one department only."""
    if len(answer.columns) < 2 or style_of(answer.kind).chart is Chart.NESTED:
        return None
    names = tuple(dict.fromkeys(name_key(answer.columns[-1], cell.key[-1]) for cell in cells))
    groups = len({cell.key[:-1] for cell in cells})
    fits = 1 < len(names) <= len(COLOURS) and groups <= _MOST_GROUPS
    return Series(field="series", names=names) if fits else None


def _rows(answer: Answer, cells: Sequence[Cell], series: Series | None) -> list[Row]:
    clear = [cell for cell in cells if not _vague(answer, cell)]
    notes = [_words(answer, cell, alone=not clear) for cell in cells]
    if series is None:
        return [
            {**numbers_of(answer, cell), **more, "group": label}
            for cell, more, label in zip(cells, notes, _labels(answer, cells), strict=True)
        ]
    columns = answer.columns
    return [
        {
            **numbers_of(answer, cell),
            **more,
            "group": name_group(columns[:-1], cell.key[:-1]),
            "series": name_key(columns[-1], cell.key[-1]),
        }
        for cell, more in zip(cells, notes, strict=True)
    ]


def _chosen(answer: Answer, cells: list[Cell]) -> list[Cell]:
    """As many as there is room for, the largest first: the largest counts, else those that are surest.

    The largest means of many groups would be those of the smallest groups, which are mostly noise.
    """
    if len(cells) <= _MOST_GROUPS:
        return cells
    largest = sorted(cells, key=lambda cell: -cell.value)
    if answer.bounded and style_of(answer.kind).scale is not Scale.COUNT:
        largest.sort(key=lambda cell: cell.upper - cell.lower)
    return sorted(largest[:_MOST_GROUPS], key=lambda cell: -cell.value)


def _labels(answer: Answer, cells: Sequence[Cell]) -> list[str]:
    """The words beside bars; of nested places the last is enough, where it names one only."""
    if style_of(answer.kind).chart is Chart.NESTED:
        last = [name_key(answer.columns[-1], cell.key[-1]) for cell in cells]
        if len(set(last)) == len(last):
            return last
    return [cell.label for cell in cells]


def _vague(answer: Answer, cell: Cell) -> bool:
    """Whether an interval is so much of all that is possible that it is told and not drawn."""
    if answer.span is None or not answer.bounded:
        return False
    low, high = answer.span
    return cell.upper - cell.lower > _VAGUE * (high - low)


def _words(answer: Answer, cell: Cell, *, alone: bool) -> Row:
    """What stands in the place of a value and an interval that are not drawn; mostly nothing."""
    if answer.blind(cell.lower, cell.upper):
        return {"said": "nothing can be said"}
    if _vague(answer, cell) and not alone:
        return {"value": None, "lower": None, "upper": None, "said": show_interval(cell, answer)}
    return {}


# A count for each pair of keys, coloured, and written where there is room.


_FEW_ACROSS = 4  # columns that always fit
_READABLE, _WIDTH = 7.0, 0.62  # pixels of the least letters, and the width of a digit beside its height


def draw_pairs(answer: Answer, cells: list[Cell]) -> Spec:
    """A cell for each pair of keys, with its count written in it."""
    import altair as alt

    sides = [0, 1]
    if len({cell.key[1] for cell in cells}) > max(len({cell.key[0] for cell in cells}), _FEW_ACROSS):
        sides = [1, 0]  # the fewer keys across, as in the table
    first, second = (answer.columns[side] for side in sides)
    rows: list[Row] = [
        {
            **numbers_of(answer, cell),
            "value": cell.value,
            "row": name_key(first, cell.key[sides[0]]),
            "column": name_key(second, cell.key[sides[1]]),
            "group": cell.label,
        }
        for cell in cells
    ]
    orders = [list(dict.fromkeys(str(row[end]) for row in rows)) for end in ("row", "column")]
    longest = [max(map(len, order)) for order in orders]
    room = (NARROW - LETTER * longest[0]) / len(orders[1])  # for each column, on a telephone
    turned = 0 if LETTER * longest[1] <= room else -90
    chart = alt.Chart(alt.NamedData(ROWS))
    up = alt.Y("row:N", title=first, sort=orders[0], axis=alt.Axis(labelLimit=LABEL, ticks=False))
    across = alt.X(
        "column:N",
        title=second,
        sort=orders[1],
        axis=alt.Axis(labelAngle=turned, ticks=False, labelLimit=LABEL),
    )
    # where noise is larger than all counts, none of its colours is strong
    high = max(1.0, *(cell.value for cell in cells), *(c.half for c in cells if isfinite(c.half)))
    shade = alt.Color(
        "value:Q",
        title=answer.measure,
        scale=alt.Scale(scheme="blues", domain=[0, high], clamp=True),
        legend=alt.Legend(orient="bottom", gradientLength=180, format=form_of(answer), tickCount=3),
    )
    ink = alt.condition(f"datum.value > {0.55 * high}", alt.value("white"), alt.value("black"))
    text = alt.Text("value:Q", format=form_of(answer))
    tips = tips_of(answer, None)
    wide = _WIDTH * max(len(f"{cell.value:,.0f}") for cell in cells)
    size = f"bandwidth('x') < {_READABLE * wide:.1f} ? 0 : min(11, bandwidth('x') / {wide:.2f})"
    layers = [
        chart.mark_rect().encode(across, up, shade, tooltip=tips),
        chart.mark_text(fontSize=alt.expr(size)).encode(across, up, text=text, color=ink, tooltip=tips),
    ]
    return dict(finish(alt.layer(*layers), rows)) | {"height": max(34 * len(orders[0]), 100)}


# The errors of a plan by epsilon: what more of the budget would buy.


_STEPS = range(-6, 7)  # of a factor of the square root of two


def draw_forecasts(plan: ReleasePlan, query: str) -> Figure:
    """A line for each statistic of a query, those in the same measure together; a rule stands at the plan."""
    points = [(epsilon, each) for epsilon in _epsilons(plan) for each in _at(plan, epsilon, query)]
    known = [(epsilon, each) for epsilon, each in points if each.error]  # a logarithm has no place for 0
    if not known:
        raise InvalidParameter(
            f"The errors of '{query}' are not known beforehand, so there is nothing to draw. "
            "Declare the table's size, with size=."
        )
    here = float(plan.privacy.epsilon)
    figures = []
    for measure in dict.fromkeys(each.measure for _, each in known):
        lines = [(epsilon, each) for epsilon, each in known if each.measure == measure]
        figures.append(_figure(lines, measure, query, here))
    title = f"{query}: errors by epsilon"
    note = f"Dashed: the plan. Errors stay within this with {100 * plan.confidence:g} % confidence."
    chart = figures[0].chart if len(figures) == 1 else stack(figures)
    return Figure(title=title, chart=chart, note=note)


def _figure(lines: list[tuple[float, Forecast]], measure: str, query: str, here: float) -> Figure:
    names = tuple(dict.fromkeys(each.statistic for _, each in lines))[: len(COLOURS)]
    rows: list[Row] = [
        {"epsilon": epsilon, "error": each.error, "statistic": each.statistic}
        for epsilon, each in lines
        if each.statistic in names
    ]
    chart = draw_lines(
        rows,
        x=Axis(field="epsilon", title="epsilon", log=True),
        y=Axis(field="error", title=f"error, in {measure}" if measure else "error", log=True),
        series=Series(field="statistic", names=names),
        mark=here,
    )
    return Figure(title=", ".join(names), chart=chart)


def _epsilons(plan: ReleasePlan) -> list[float]:
    here = float(plan.privacy.epsilon)
    return [float(f"{here * math.sqrt(2) ** step:.4g}") for step in _STEPS]


def _at(plan: ReleasePlan, epsilon: float, query: str) -> list[Forecast]:
    """The forecasts of a query at another epsilon; none where there is no noise for it."""
    try:
        other = replace(plan, privacy=replace(plan.privacy, epsilon=Fraction(epsilon)))
        return [each for each in other.forecast() if each.query == query]
    except InvalidParameter:
        return []


# Charts of a series: time on the axis, a line for each key, and bands that hold together.


_FORM = ",.7~g"  # sums of a year have many digits, and people read no powers of ten


def draw_series(rows: Sequence[Row], *, names: tuple[str, ...], measure: str) -> Spec:
    """Values over time; the dark band holds by itself at each period, the light one at all together.

    Rows have `day`, `name`, `key`, `value`, `lower`, `upper`, `joint_lower` and `joint_upper`.
    """
    import altair as alt

    series = Series(field="key", names=names, colours=COLOURS)
    chart = alt.Chart(alt.NamedData(ROWS))
    across = alt.X("day:T", title=None, axis=alt.Axis(labelOverlap=True, tickCount=6))
    up, colour = up_of(ChartAxis(field="value", title=measure, form=_FORM)), colour_of(series)
    layers = [
        chart.mark_area(opacity=opacity).encode(
            across, alt.Y(f"{low}:Q", title=title_of(measure)), alt.Y2(f"{high}:Q"), colour
        )
        for low, high, opacity in (("joint_lower", "joint_upper", 0.14), ("lower", "upper", 0.28))
    ]
    line = chart.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=22, filled=True))
    layers.append(line.encode(across, up, colour, tooltip=_tips()))
    return finish(alt.layer(*layers), rows)


def _tips() -> "list[alt.Tooltip]":
    import altair as alt

    ends = [
        ("lower", "from"),
        ("upper", "to"),
        ("joint_lower", "jointly from"),
        ("joint_upper", "jointly to"),
    ]
    return [
        alt.Tooltip("key:N", title=" "),
        alt.Tooltip("name:N", title="period"),
        alt.Tooltip("value:Q", format=_FORM),
        *(alt.Tooltip(f"{name}:Q", title=title, format=_FORM) for name, title in ends),
    ]
