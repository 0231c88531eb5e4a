"""The page of an attack: what was attacked, how often it succeeded, what that teaches, and charts of it."""

from typing import Any

from sourdine.audit.attacks import AttackChart, AttackResult
from sourdine.audit.attacks.attack import Arm, percent
from sourdine.core.figure import Figure, Spec
from sourdine.report.charts.base import (
    COLOURS,
    GREY,
    INK,
    ROWS,
    Axis,
    Band,
    Row,
    Series,
    colour_of,
    draw_lines,
    finish,
    title_of,
)
from sourdine.report.pages.page import Page, Section
from sourdine.report.table import TextTable

_COLOURS: dict[str, str] = {Arm.UNPROTECTED: COLOURS[1], Arm.PROTECTED: COLOURS[0]}
_PER_BAR = 30  # pixels
_LABEL = 210  # pixels at most, beside a bar
_ROOM = 1.25  # of the axis, so that the value beside a whole bar fits in
_FEW = 10  # numbers that may all stand at an axis
_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)


def draw_attack(chart: AttackChart) -> Spec:
    """The chart of an attack's data; all values are shares."""
    return _bars(chart) if isinstance(chart.points[0].place, str) else _lines(chart)


def _lines(chart: AttackChart) -> Spec:
    rows = _rows(chart)
    places = tuple(sorted({float(each.place) for each in chart.points}))
    return draw_lines(
        rows,
        x=Axis(
            field="place",
            title=chart.across,
            log=chart.log,
            form=",.4~g",
            ticks=places if len(places) <= _FEW else (),
        ),
        y=Axis(field="value", title=chart.up, form=".0%", ticks=_QUARTERS),
        series=_series(chart),
        bars=Band(lower="low", upper="high"),
    )


def _rows(chart: AttackChart) -> list[Row]:
    """The points, each with its interval."""
    return [
        {"place": each.place, "value": each.value, "series": each.series, "low": low, "high": high}
        for each in chart.points
        for low, high in [each.interval]
    ]


def _bars(chart: AttackChart) -> Spec:
    import altair as alt

    rows = _rows(chart)
    series = _series(chart)
    places = list(dict.fromkeys(str(each.place) for each in chart.points))
    twice = len(rows) > len(places)
    across = alt.X(
        "value:Q",
        title=title_of(chart.across),
        scale=alt.Scale(domain=[0, _ROOM]),
        axis=alt.Axis(format=".0%", values=list(_QUARTERS)),
    )
    up = alt.Y(
        "place:N", title=chart.up, sort=places, axis=alt.Axis(labelLimit=_LABEL, ticks=False, titlePadding=10)
    )
    tips = [
        alt.Tooltip("place:N", title=chart.up),
        alt.Tooltip("series:N", title=" "),
        alt.Tooltip("value:Q", title=chart.across, format=".2%"),
    ]
    aside = [alt.YOffset("series:N", sort=list(series.names))] if twice else []
    colour = colour_of(series)
    if len(series.names) == 1:
        colour = colour.legend(None)
    else:
        colour = colour.legend(orient="bottom", columns=1)  # names of places leave little room
    base = alt.Chart(alt.NamedData(ROWS))
    words = base.mark_text(align="left", dx=4, fontSize=11, color=GREY).encode(
        alt.X("high:Q"), up, *aside, text=alt.Text("value:Q", format=".1~%")
    )
    bars = base.mark_bar(opacity=0.85).encode(across, up, *aside, colour, tooltip=tips)
    ends = base.mark_rule(strokeWidth=1.5, color=INK).encode(
        alt.X("low:Q", title=title_of(chart.across)), alt.X2("high:Q"), up, *aside
    )
    height = _PER_BAR * len(places) * (len(series.names) * 0.7 if twice else 1)
    spec: dict[str, Any] = {**finish(alt.layer(bars, ends, words), rows), "height": height}
    legend = {**spec["config"]["legend"], "symbolType": "square"}  # bars are named by squares, not by lines
    return {**spec, "config": {**spec["config"], "legend": legend}}


def _series(chart: AttackChart) -> Series:
    """Series in their order: without protection always in one colour, with it in another, limits in grey."""
    names = tuple(dict.fromkeys(each.series for each in chart.points))
    colours_in_use = {_COLOURS[name] for name in names if name in _COLOURS}
    others = iter([each for each in (COLOURS[0], *COLOURS[2:]) if each not in colours_in_use])
    grey = (Arm.MOST, Arm.BLIND)
    colours = tuple(
        _COLOURS[name] if name in _COLOURS else GREY if name in grey else next(others) for name in names
    )
    return Series(field="series", names=names, colours=colours)


OWN = "NOT PRIVATE: this is about a table as it is, outside every guarantee. Keep it where the table is kept."
ATTACK_COLUMNS = ("case", "target", "success", "right", "of")


def attack_page(attack: AttackResult) -> Page:
    """Everything that an attack found, on one page."""
    figures = tuple(
        Figure(title=each.finding, chart=draw_attack(each), note=_note(each)) for each in attack.charts
    )
    table = TextTable(
        name="success",
        title=f"Success: {attack.goal}",
        columns=ATTACK_COLUMNS,
        rows=attack_rows(attack),
        note=OWN if attack.own else "Everybody here is made up, and nothing of it is drawn from real tables.",
    )
    return Page(
        title=attack.finding,
        lead=attack.attacked,
        sections=(
            Section(title="How often it is right", tables=(table,), figures=figures),
            Section(title="What it teaches", paragraphs=(attack.lesson,)),
        ),
    )


def attack_rows(attack: AttackResult) -> tuple[tuple[str, ...], ...]:
    """The figures in words: both targets, what the protection allows, and blind guessing."""
    measured = (
        (case, each.target, percent(each.success), f"{each.hits:,}", f"{each.tries:,}")
        for case, each in ((Arm.UNPROTECTED, attack.unprotected), (Arm.PROTECTED, attack.protected))
    )
    return (
        *measured,
        (Arm.MOST, attack.why, percent(attack.limit), "", ""),
        (Arm.BLIND, attack.guess, percent(attack.chance), "", ""),
    )


def _note(chart: AttackChart) -> str:
    """What is to be said below a chart, and what its intervals are."""
    counted = any(each.tries is not None for each in chart.points)
    return (
        f"{chart.note} Thin lines: intervals of 95 %, as of independent trials.".strip()
        if counted
        else chart.note
    )
