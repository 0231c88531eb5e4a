"""A count for each pair of keys, coloured, and written where there is room."""

from math import isfinite

from sourdine.core.figure import Spec
from sourdine.report.charts.answer_rows import form_of, numbers_of, tips_of
from sourdine.report.charts.base import LETTER, NARROW, ROWS, Row, finish
from sourdine.report.charts.groups import LABEL
from sourdine.report.finding import Cell, name_key
from sourdine.tables import Answer

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
