"""Charts of a series: time on the axis, a line for each key, and bands that hold together."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sourdine.core.figure import Spec
from sourdine.report.charts.base import COLOURS, ROWS, Row, Series, colour_of, finish, title_of, up_of
from sourdine.report.charts.base import Axis as ChartAxis

if TYPE_CHECKING:
    import altair as alt

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
