"""Charts of noisy answers: every value with its interval."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, assert_never

from sourdine.core.figure import Spec
from sourdine.core.format import endless
from sourdine.frames.expressions.calendar import start_of
from sourdine.report.charts.base import COLOURS, INK, ROWS, Row, Series, colour_of, finish
from sourdine.report.finding import Cell, cells_of, count_cells, name_group, name_key, show_cell
from sourdine.tables import Answer
from sourdine.tables.statistics import Chart, Scale, style_of

if TYPE_CHECKING:
    import altair as alt

_MOST_GROUPS = 40
_MOST_CELLS = 400
_PER_BAR = 26  # pixels
_LABEL = 170  # pixels at most, beside a bar
_MANY_BINS = 20  # whose names do not all fit below them
_ASIDE = 0.012  # between the intervals of two groups at one quantile
_WIDE = 1.5  # of an interval's line


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
            return _heat(answer, cells) if len(answer.columns) == 2 and few else _bars(answer, cells)
        case Chart.UPRIGHT:
            return _histogram(answer, cells) if few else _bars(answer, cells)
        case Chart.BARS if (place := time_column(answer)) is not None:
            return _over_time(answer, cells, place)
        case Chart.BARS | Chart.NESTED:
            return _bars(answer, cells)
        case _:
            assert_never(chart)


def draw_alone(answer: Answer) -> Spec | None:
    """The chart of an answer that is asked for by itself, also of one number; none where there is none."""
    cells = cells_of(answer)
    if not cells or style_of(answer.kind).chart is Chart.LIST:
        return None
    return draw_answer(answer) or _bars(answer, cells)


def draw_intervals(rows: Sequence[Row], title: str) -> Spec:
    """Bars to the right with intervals; a row has a group, a value, and a lower and an upper end."""
    import altair as alt

    chart = alt.Chart(alt.NamedData(ROWS))
    groups = [str(row["group"]) for row in rows]
    up = alt.Y("group:N", title=None, sort=groups, axis=alt.Axis(labelLimit=_LABEL, ticks=False))
    across = alt.X("value:Q", title=title, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=5))
    tips = [
        alt.Tooltip("group:N", title=" "),
        *(alt.Tooltip(f"{end}:Q", format=",.4~g") for end in ("value", "lower", "upper")),
    ]
    layers = [
        chart.mark_bar(opacity=0.8, color=COLOURS[0]).encode(across, up, tooltip=tips),
        chart.mark_rule(color=INK, strokeWidth=_WIDE).encode(
            alt.X("lower:Q", title=title), alt.X2("upper:Q"), up, tooltip=tips
        ),
    ]
    return dict(finish(alt.layer(*layers), rows)) | {"height": (_PER_BAR + 8) * len(groups)}


def count_missing(answer: Answer, chart: Spec) -> int:
    """How many values of an answer its chart leaves out."""
    datasets: Any = chart["datasets"]
    return count_cells(answer) - len(datasets[ROWS])


def _bars(answer: Answer, cells: list[Cell]) -> Spec:
    """Bars to the right, one below the other; the last column of two or more tells colours apart."""
    import altair as alt

    series = _series(answer, cells)
    largest = cells
    if series is None and len(cells) > _MOST_GROUPS:
        largest = sorted(cells, key=lambda cell: -cell.value)[:_MOST_GROUPS]
    rows = _rows(answer, largest, series)
    groups = list(dict.fromkeys(str(row["group"]) for row in rows))
    chart = alt.Chart(alt.NamedData(ROWS))
    up = alt.Y("group:N", title=None, sort=groups, axis=alt.Axis(labelLimit=_LABEL, ticks=False))
    low, high = alt.X("lower:Q", title=_title(answer)), alt.X2("upper:Q")
    across = alt.X(
        "value:Q",
        title=_title(answer),
        scale=alt.Scale(zero=True),
        axis=alt.Axis(format=_form(answer), tickCount=5),
    )
    aside: list[Any] = []
    if series:
        aside.append(alt.YOffset("series:N", sort=list(series.names)))
    bars = chart.mark_bar(opacity=0.8, color=COLOURS[0])
    colour = [colour_of(series)] if series else []
    layers = [
        bars.encode(across, up, *aside, *colour, tooltip=_tips(answer, series)),
        chart.mark_rule(color=INK, strokeWidth=_WIDE).encode(
            low, high, up, *aside, tooltip=_tips(answer, series)
        ),
        *(
            chart.mark_tick(color=INK, thickness=_WIDE, size=8).encode(
                alt.X(f"{end}:Q", title=_title(answer)), up, *aside
            )
            for end in ("lower", "upper")
        ),
    ]
    spec = finish(alt.layer(*layers), rows)
    bar = _PER_BAR if not series else 16
    return _bare_legend(spec) | {"height": len(groups) * (bar * (len(series.names) if series else 1) + 8)}


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
        rows.append({**_numbers(answer, cell), **more})
    names = tuple(dict.fromkeys(str(row["series"]) for row in rows))
    series = Series(field="series", names=names) if len(names) > 1 else None
    chart, tips = alt.Chart(alt.NamedData(ROWS)), _tips(answer, series)
    across = alt.X("time:T", title=answer.columns[place], axis=alt.Axis(labelOverlap=True, tickCount=8))
    up = alt.Y(
        "value:Q",
        title=_title(answer),
        scale=alt.Scale(zero=True),
        axis=alt.Axis(format=_form(answer), tickCount=6),
    )
    colour: list[Any] = [colour_of(series)] if series else []
    layers = [
        chart.mark_line(strokeWidth=1, opacity=0.5, color=COLOURS[0]).encode(across, up, *colour),
        chart.mark_point(filled=True, size=30, opacity=1, color=COLOURS[0]).encode(
            across, up, *colour, tooltip=tips
        ),
    ]
    if answer.bounded:
        low, high = alt.Y("lower:Q", title=_title(answer)), alt.Y2("upper:Q")
        rules = chart.mark_rule(strokeWidth=_WIDE, color=INK, opacity=0.6)
        layers.insert(0, rules.encode(across, low, high, tooltip=tips))
    return _bare_legend(finish(alt.layer(*layers), rows))


def _histogram(answer: Answer, cells: list[Cell]) -> Spec:
    """Upright bars in the order of the bins."""
    import altair as alt

    bins = list(dict.fromkeys(str(cell.key[-1]) for cell in cells))
    rows: list[Row] = []
    for cell in cells:
        groups = name_group(answer.columns[:-1], cell.key[:-1])
        rows.append({**_numbers(answer, cell), "group": str(cell.key[-1]), "series": groups})
    names = tuple(dict.fromkeys(str(row["series"]) for row in rows))
    series = Series(field="series", names=names) if 1 < len(names) <= len(COLOURS) else None
    chart = alt.Chart(alt.NamedData(ROWS))
    across = alt.X(
        "group:O",
        title=answer.columns[-1],
        sort=bins,
        axis=alt.Axis(labelAngle=-45, labelLimit=110, labelOverlap=len(bins) > _MANY_BINS),
    )
    up = alt.Y(
        "value:Q",
        title=_title(answer),
        scale=alt.Scale(zero=True),
        axis=alt.Axis(format=_form(answer), tickCount=6),
    )
    aside: list[Any] = [alt.XOffset("series:N", sort=list(names))] if series else []
    colour = [colour_of(series)] if series else []
    layers = [
        chart.mark_bar(opacity=0.8, color=COLOURS[0]).encode(
            across, up, *aside, *colour, tooltip=_tips(answer, series)
        ),
        chart.mark_rule(color=INK, strokeWidth=_WIDE).encode(
            across, alt.Y("lower:Q", title=_title(answer)), alt.Y2("upper:Q"), *aside
        ),
    ]
    return _bare_legend(finish(alt.layer(*layers), rows))


def _quantiles(answer: Answer, cells: list[Cell]) -> Spec:
    """Points over the share of values below, joined so that the eye can follow, with intervals if known."""
    import altair as alt

    names = tuple(dict.fromkeys(name_group(answer.columns[:-1], cell.key[:-1]) for cell in cells))
    names = names[: len(COLOURS)]
    series = Series(field="series", names=names) if len(names) > 1 else None
    rows: list[Row] = []
    for cell in cells:
        name = name_group(answer.columns[:-1], cell.key[:-1])
        if name in names:
            aside = (names.index(name) - (len(names) - 1) / 2) * _ASIDE
            label = f"{100 * cell.level:g} % lie below"
            level = cell.level + aside
            rows.append({**_numbers(answer, cell), "level": level, "series": name, "group": label})
    chart = alt.Chart(alt.NamedData(ROWS))
    across = alt.X(
        "level:Q",
        title="share of values below",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format=".0%", tickCount=5),
    )
    up = alt.Y(
        "value:Q",
        title=answer.measure,
        scale=alt.Scale(zero=False),
        axis=alt.Axis(format=_form(answer), tickCount=6),
    )
    colour: list[Any] = [colour_of(series)] if series else []
    layers = [
        chart.mark_line(strokeWidth=1, opacity=0.5, color=COLOURS[0]).encode(across, up, *colour),
        chart.mark_point(filled=True, size=45, opacity=1, color=COLOURS[0]).encode(
            across, up, *colour, tooltip=_tips(answer, series)
        ),
    ]
    if answer.bounded:
        low, high = alt.Y("lower:Q", title=answer.measure), alt.Y2("upper:Q")
        rules = chart.mark_rule(strokeWidth=2, color=COLOURS[0]).encode(across, low, high, *colour)
        layers.insert(1, rules)
    return finish(alt.layer(*layers), rows)


def _heat(answer: Answer, cells: list[Cell]) -> Spec:
    """A cell for each pair of keys, with its count written in it."""
    import altair as alt

    first, second = answer.columns
    rows: list[Row] = [
        {
            **_numbers(answer, cell),
            "row": name_key(first, cell.key[0]),
            "column": name_key(second, cell.key[1]),
            "group": cell.label,
        }
        for cell in cells
    ]
    orders = [list(dict.fromkeys(str(row[end]) for row in rows)) for end in ("row", "column")]
    chart = alt.Chart(alt.NamedData(ROWS))
    up = alt.Y("row:N", title=first, sort=orders[0], axis=alt.Axis(labelLimit=_LABEL, ticks=False))
    across = alt.X(
        "column:N", title=second, sort=orders[1], axis=alt.Axis(labelAngle=0, ticks=False, labelLimit=90)
    )
    shade = alt.Color(
        "value:Q",
        title=answer.measure,
        scale=alt.Scale(scheme="blues", zero=True),
        legend=alt.Legend(orient="bottom", gradientLength=180, format=_form(answer), tickCount=3),
    )
    high = max(cell.value for cell in cells)
    ink = alt.condition(f"datum.value > {0.55 * high}", alt.value("white"), alt.value("black"))
    text = alt.Text("value:Q", format=_form(answer))
    tips = _tips(answer, None)
    layers = [
        chart.mark_rect().encode(across, up, shade, tooltip=tips),
        chart.mark_text(fontSize=11).encode(across, up, text=text, color=ink, tooltip=tips),
    ]
    return dict(finish(alt.layer(*layers), rows)) | {"height": max(34 * len(orders[0]), 100)}


def _series(answer: Answer, cells: list[Cell]) -> Series | None:
    """The keys of the last column, where they tell colours apart; a town is in one department only."""
    if len(answer.columns) < 2 or style_of(answer.kind).chart is Chart.NESTED:
        return None
    names = tuple(dict.fromkeys(name_key(answer.columns[-1], cell.key[-1]) for cell in cells))
    groups = len({cell.key[:-1] for cell in cells})
    fits = 1 < len(names) <= len(COLOURS) and groups <= _MOST_GROUPS
    return Series(field="series", names=names) if fits else None


def _rows(answer: Answer, cells: Sequence[Cell], series: Series | None) -> list[Row]:
    if series is None:
        return [{**_numbers(answer, cell), "group": cell.label} for cell in cells]
    columns = answer.columns
    return [
        {
            **_numbers(answer, cell),
            "group": name_group(columns[:-1], cell.key[:-1]),
            "series": name_key(columns[-1], cell.key[-1]),
        }
        for cell in cells
    ]


def _numbers(answer: Answer, cell: Cell) -> Row:
    """What is drawn and what is told; a value that says nothing is not drawn, only its interval."""
    blind = answer.blind(cell.lower, cell.upper)
    text = "nothing can be said" if blind else show_cell(cell, answer)
    ends = {"lower": _finite(cell.lower), "upper": _finite(cell.upper)} if answer.bounded else {}
    return {"value": None if blind else cell.value, **ends, "told": text}


def _finite(end: float) -> float | None:
    """An end that can be drawn."""
    return None if endless(end) else end


def _tips(answer: Answer, series: Series | None) -> "list[alt.Tooltip]":
    import altair as alt

    named = [alt.Tooltip("group:N", title=" ")]
    if series is not None:
        named.append(alt.Tooltip("series:N", title=" "))
    return [*named, alt.Tooltip("told:N", title=_title(answer))]


def _title(answer: Answer) -> str:
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


def _form(answer: Answer) -> str:
    if style_of(answer.kind).scale is Scale.SHARE:
        return ".3~%"
    largest = max((abs(float(v)) for v in answer.estimate.value), default=0.0)
    if answer.whole or largest >= 1e4:
        return ",.0f" if largest < 1e7 else ".4~s"
    return ",.4~g"


def _bare_legend(spec: Spec) -> dict[str, object]:
    """Bars are named by squares, not by lines."""
    chart: dict[str, Any] = dict(spec)
    chart["config"] = {**chart["config"], "legend": {**chart["config"]["legend"], "symbolType": "square"}}
    return chart
