"""Charts of groups below each other: counts and sums as bars, means and shares as points.

A group of which nothing, or hardly anything, can be said is told in words: an interval over all that is
possible would look like the surest of all, and make the others short.
"""

from collections.abc import Sequence
from typing import Any

from sourdine.core.figure import Spec
from sourdine.report.charts.answer_rows import form_of, numbers_of, tips_of, title_of_answer, with_squares
from sourdine.report.charts.base import COLOURS, GREY, INK, ROWS, Row, Series, colour_of, finish
from sourdine.report.finding import Cell, name_group, name_key, show_interval
from sourdine.tables import Answer
from sourdine.tables.statistics import Chart, Scale, style_of

_MOST_GROUPS = 40
_PER_BAR = 26  # pixels
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
    bar = _PER_BAR if not series else 16
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
