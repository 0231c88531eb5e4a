"""Charts of how identifiable a table is, before and after it is made coarser."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sourdine.anonymity import Measures
from sourdine.core.display import Spec
from sourdine.report.charts.base import COLOURS, INK, ROWS, Axis, Row, Series, draw_lines, finish

if TYPE_CHECKING:
    import altair as alt

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
