"""Charts from rows: each is a Vega-Lite specification with its data inside.

Titles stand outside, in the page, where long ones can wrap on narrow screens. Every chart is as wide as the
place it is put in.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sourdine.core.display import Spec

if TYPE_CHECKING:
    import altair as alt

Row = Mapping[str, str | int | float | None]

# colours that colour-blind readers tell apart (Okabe and Ito 2008)
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GREY = "#5b6570"
ROWS = "rows"
INK = "#1d2733"
_HEIGHT = 300
NARROW = 270.0  # pixels that a telephone leaves for what stands below a chart
LETTER, _SYMBOL = 6.4, 26.0  # pixels of a letter, and of a line or square with the space around it


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A field of the rows and how it is measured; the title names the unit."""

    field: str
    title: str
    log: bool = False
    form: str = ".4~g"  # a d3 number format
    ticks: tuple[float, ...] = ()
    ends: tuple[float, float] | None = None  # of the axis; else those of the data


@dataclass(frozen=True, kw_only=True)
class Series:
    """The field that tells lines apart, their order and their colours."""

    field: str
    names: tuple[str, ...]
    colours: tuple[str, ...] = COLOURS


@dataclass(frozen=True, kw_only=True)
class Band:
    """The fields that bound what is between."""

    lower: str
    upper: str


@dataclass(frozen=True, kw_only=True)
class Slider:
    """A field of which the reader chooses one of several values; what is chosen stands above the chart."""

    field: str
    title: str
    values: tuple[float, ...]
    start: float


def draw_lines(
    rows: Sequence[Row],
    *,
    x: Axis,
    y: Axis,
    series: Series,
    band: Band | None = None,
    bars: Band | None = None,
    slider: Slider | None = None,
    mark: float | None = None,
) -> Spec:
    """Lines with points that tell their values; a dashed rule stands at the case in hand."""
    import altair as alt

    chart = _data(slider)
    across, up, colour = across_of(x), up_of(y), colour_of(series)
    tips = [alt.Tooltip(f"{series.field}:N", title=" "), _tip(x), _tip(y)]
    layers: list[alt.Chart] = []
    if mark is not None:
        place = alt.Chart(alt.InlineData(values=[{x.field: mark}]))
        layers.append(place.mark_rule(strokeDash=[4, 4], color=GREY).encode(alt.X(f"{x.field}:Q")))
    if band is not None:
        low, high = _low(y, band), alt.Y2(f"{band.upper}:Q")
        layers.append(chart.mark_area(opacity=0.25).encode(across, low, high, colour))
    if bars is not None:
        low, high = _low(y, bars), alt.Y2(f"{bars.upper}:Q")
        layers.append(chart.mark_rule(strokeWidth=2, opacity=0.5).encode(across, low, high, colour))
    lines = chart.mark_line(point=alt.OverlayMarkDef(size=28, filled=True), strokeWidth=2)
    layers.append(lines.encode(across, up, colour, tooltip=tips))
    return finish(alt.layer(*layers), rows, slider)


def draw_heat(
    rows: Sequence[Row], *, x: Axis, y: Axis, colour: Axis, mark: tuple[float, float] | None = None
) -> Spec:
    """Coloured cells over two ordered fields, with the value in each; a frame stands at the case in hand."""
    import altair as alt

    chart = _data(None)
    across = alt.X(f"{x.field}:O", title=title_of(x.title), axis=alt.Axis(labelAngle=0, format=x.form))
    up = alt.Y(f"{y.field}:O", title=title_of(y.title), sort="descending", axis=alt.Axis(format=y.form))
    tips = [_tip(x), _tip(y), _tip(colour)]
    shade = alt.Color(
        f"{colour.field}:Q",
        title=colour.title,
        scale=alt.Scale(type="log" if colour.log else "linear", scheme="blues"),
        legend=alt.Legend(orient="bottom", gradientLength=180, format=colour.form, tickCount=3),
    )
    layers = [chart.mark_rect().encode(across, up, shade, tooltip=tips)]
    values = [float(row[colour.field] or 0) for row in rows]
    low, high = min(values), max(values)
    middle = math.sqrt(low * high) if colour.log else (low + high) / 2
    ink = alt.condition(f"datum['{colour.field}'] > {middle}", alt.value("white"), alt.value("black"))
    text = alt.Text(f"{colour.field}:Q", format=colour.form)
    layers.append(chart.mark_text(fontSize=10).encode(across, up, text=text, color=ink, tooltip=tips))
    if mark is not None:
        place = alt.Chart(alt.InlineData(values=[{x.field: mark[0], y.field: mark[1]}]))
        frame = place.mark_rect(filled=False, stroke=COLOURS[1], strokeWidth=3)
        layers.append(frame.encode(across, up))
    return finish(alt.layer(*layers), rows)


def across_of(axis: Axis) -> "alt.X":
    """The horizontal channel of an axis."""
    import altair as alt

    return alt.X(f"{axis.field}:Q", title=title_of(axis.title), scale=_scale(axis), axis=_ticks(axis))


def up_of(axis: Axis) -> "alt.Y":
    """The vertical channel of an axis."""
    import altair as alt

    return alt.Y(f"{axis.field}:Q", title=title_of(axis.title), scale=_scale(axis), axis=_ticks(axis))


def colour_of(series: Series) -> "alt.Color":
    """The colours of series, in their order, with a legend below the chart."""
    import altair as alt

    names = list(series.names)
    scale = alt.Scale(domain=names, range=list(series.colours[: len(names)]))
    legend = alt.Legend(orient="bottom", columns=columns_of(names), labelLimit=0) if names[1:] else None
    return alt.Color(f"{series.field}:N", title=None, scale=scale, legend=legend)


def columns_of(names: Sequence[str]) -> int:
    """In how many columns a legend fits on a telephone; 0 is one line for all.

    >>> columns_of(["ours", "theirs"]), columns_of(["48 people", "96 people", "with protection"])
    (0, 2)
    """
    widths = [_SYMBOL + LETTER * len(name) for name in names]
    return 0 if sum(widths) <= NARROW else max(1, int(NARROW // max(widths)))


def title_of(text: str) -> str | list[str]:
    """The title of an axis, on several lines if a telephone is too narrow for one."""
    import textwrap

    lines = textwrap.wrap(text, int(NARROW // LETTER))
    return text if len(lines) < 2 else lines


def finish(
    chart: "alt.LayerChart | alt.FacetChart",
    rows: Sequence[Row] = (),
    slider: Slider | None = None,
    slider_texts: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Spec:
    """The specification of a chart whose data are named ROWS, in the style of all charts.

    `slider_texts` says what each place of a slider means, by the name of its parameter; pages write it there.

    The rows and the style join at the end: altair would copy and check them at every step. Nor does it check
    the chart against the schema of Vega-Lite, which takes longer than to draw it: tests do.
    """
    if slider is not None:
        texts = tuple(f"{value:,.6g}" for value in slider.values)
        slider_texts = {**slider_texts, f"place_of_{slider.field}": texts}
        chart = chart.add_params(_param(slider)).properties(title=_title(slider))
    spec: dict[str, Any] = chart.to_dict(validate=False)
    if slider_texts:
        spec["usermeta"] = {"told": {name: list(texts) for name, texts in slider_texts.items()}}
    data = spec.get("datasets", {}) | {ROWS: [dict(row) for row in rows]}
    return spec | {"width": "container", "height": _HEIGHT, "config": _style(), "datasets": data}


def _style() -> dict[str, object]:
    """What all charts look like, in the words of Vega-Lite."""
    return {
        "view": {"continuousWidth": 300, "continuousHeight": 300, "strokeWidth": 0},
        "background": "transparent",
        "font": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif",
        "axis": {
            "gridColor": "#e4e8ec",
            "domainColor": "#9aa4ae",
            "tickColor": "#9aa4ae",
            "labelColor": GREY,
            "titleColor": INK,
            "titleFontWeight": "normal",
            "labelFontSize": 11,
            "titleFontSize": 12,
            "titlePadding": 8,
        },
        "axisX": {"labelFlush": False},  # a number stands below its tick, also at the ends
        "legend": {
            "labelColor": INK,
            "titleColor": INK,
            "labelFontSize": 12,
            "titleFontWeight": "normal",
            "symbolType": "stroke",
            "symbolStrokeWidth": 3,
            "symbolOpacity": 1,
        },
        "title": {"anchor": "start", "fontSize": 12, "fontWeight": "normal", "color": GREY},
    }


def _data(slider: Slider | None) -> "alt.Chart":
    import altair as alt

    chart = alt.Chart(alt.NamedData(ROWS))
    if slider is None:
        return chart
    return chart.transform_filter(f"datum['{slider.field}'] == {_chosen(slider)}")


def _param(slider: Slider) -> "alt.Parameter":
    """The slider moves over places, since values may be spaced unevenly."""
    import altair as alt

    bind = alt.binding_range(min=0, max=len(slider.values) - 1, step=1, name=slider.title)
    return alt.param(name=f"place_of_{slider.field}", value=slider.values.index(slider.start), bind=bind)


def _title(slider: Slider) -> "alt.Title":
    import altair as alt

    return alt.Title(text=alt.expr(f"'{slider.title} ' + format({_chosen(slider)}, ',.6~g')"))


def _chosen(slider: Slider) -> str:
    return f"{json.dumps(slider.values)}[place_of_{slider.field}]"


def _scale(axis: Axis) -> "alt.Scale":
    import altair as alt

    if axis.ends:
        return alt.Scale(domain=list(axis.ends), nice=False)
    return alt.Scale(type="log", nice=False) if axis.log else alt.Scale(zero=False)


def _low(axis: Axis, band: Band) -> "alt.Y":
    """The lower end of a band: on the scale of its axis, for another one would be joined with it."""
    import altair as alt

    scale = _scale(axis) if axis.ends else alt.Undefined
    return alt.Y(f"{band.lower}:Q", title=title_of(axis.title), scale=scale)


def _ticks(axis: Axis) -> "alt.Axis":
    import altair as alt

    if axis.ticks:
        return alt.Axis(format=axis.form, values=list(axis.ticks))
    return alt.Axis(format=axis.form, tickCount=8 if axis.log else 6)


def _tip(axis: Axis) -> "alt.Tooltip":
    import altair as alt

    return alt.Tooltip(f"{axis.field}:Q", title=axis.title, format=axis.form)


# One legend for several charts whose colours mean the same.


Legend = tuple[tuple[str, str], ...]  # names, and their colours


def legend_of(chart: Spec) -> Legend:
    """What the colours of a chart mean, where it says so below itself; else nothing.

    >>> colour = {"field": "who", "scale": {"domain": ["a", "b"], "range": ["red", "blue"]}, "legend": {}}
    >>> legend_of({"layer": [{"encoding": {"color": colour}}]})
    (('a', 'red'), ('b', 'blue'))
    """
    for colour in _colours(chart):
        scale = colour.get("scale", {})
        if colour.get("legend") is not None and "domain" in scale and "range" in scale:
            return tuple(zip(scale["domain"], scale["range"], strict=False))
    return ()


def common_legend(charts: Sequence[Spec]) -> Legend:
    """The legend that holds for all charts that have one, if two say the same."""
    legends = [legend for chart in charts if (legend := legend_of(chart))]
    longest = max(legends, key=len, default=())
    if len(legends) < 2 or not all(set(each) <= set(longest) for each in legends):
        return ()
    colours = {colour for _, colour in longest}
    others = (_fixed(chart) for chart in charts if not legend_of(chart))
    return () if any(colours & each for each in others) else longest  # where blue is just blue


def without_legend(chart: Spec, common: Legend) -> Spec:
    """A chart as it is drawn below a legend: one that says nothing more has none of its own."""
    legend = legend_of(chart)
    if not legend or not set(legend) <= set(common):
        return chart
    bare: Any = _without(chart)
    return dict(bare)


def _fixed(chart: Spec) -> set[str]:
    """The colours of marks that mean nothing."""
    layers = chart.get("layer")
    marks = [layer.get("mark") for layer in layers] if isinstance(layers, list) else [chart.get("mark")]
    return {str(mark["color"]) for mark in marks if isinstance(mark, dict) and "color" in mark}


def _colours(part: object) -> Iterator[dict[str, Any]]:
    """The colour channels of a chart and of its layers; datasets are not looked through."""
    if isinstance(part, Mapping):
        for key, inner in part.items():
            if key == "color" and isinstance(inner, dict) and "field" in inner:
                yield inner
            elif key in ("encoding", "layer", "spec"):
                yield from _colours(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _colours(inner)


def _without(part: object) -> object:
    if isinstance(part, Mapping):
        return {
            key: {**inner, "legend": None}
            if key == "color" and isinstance(inner, dict) and "field" in inner
            else _without(inner)
            if key in ("encoding", "layer", "spec")
            else inner
            for key, inner in part.items()
        }
    return [_without(inner) for inner in part] if isinstance(part, list) else part
