"""Charts of noisy answers: every value with its interval."""

from collections.abc import Sequence
from typing import Any, assert_never

from sourdine.core.figure import Spec
from sourdine.frames.expressions.calendar import start_of
from sourdine.report.charts.answer_rows import form_of, numbers_of, tips_of, title_of_answer, with_squares
from sourdine.report.charts.base import (
    COLOURS,
    INK,
    ROWS,
    Row,
    Series,
    colour_of,
    finish,
)
from sourdine.report.charts.groups import LABEL, WIDE, draw_groups
from sourdine.report.charts.heat import draw_pairs
from sourdine.report.finding import (
    Cell,
    cells_of,
    count_cells,
    name_group,
)
from sourdine.tables import Answer
from sourdine.tables.statistics import Chart, style_of

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
