"""The page of an audit of training: how well members are told from others, beside what the claim allows."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sourdine.audit.attacks import AttackChart, AttackResult
from sourdine.audit.attacks.attack import Arm, percent
from sourdine.core.display import Figure, Spec
from sourdine.core.format import plain
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
from sourdine.report.view import Page, Section, TextTable

if TYPE_CHECKING:
    from sourdine.audit.training import TrainingAudit

_ATTACK, _ALLOWED, _BLIND = "the attack on this run", "the most that the claim allows", "blind guessing"
_IN, _OUT = "canaries that were in", "canaries that were left out"
_POINTS = 60
_BINS = 40
_WIDE = 6.0  # deviations to either side of what is shown of scores


def training_audit_page(audit: "TrainingAudit", trained: str) -> Page:
    """What an audit found, on one page; `trained` says in a sentence what was trained."""
    table = TextTable(
        name="audit",
        title="One run, audited",
        columns=("what", "value"),
        rows=tuple((name, value) for name, value in audit_words(audit).items()),
        note="An audit refutes a claim or it does not: it never proves one.",
    )
    tables = (table,) if not audit.checks else (table, checks_table(audit))
    figures = (
        Figure(
            title=roc_title(audit),
            chart=draw_roc(audit),
            note="Both axes are logarithmic: an attack that is sure of a few people shows at the left.",
        ),
        Figure(title=scores_title(audit), chart=draw_scores(audit)),
    )
    return Page(
        title=verdict(audit),
        lead=trained,
        sections=(
            Section(title="What was found", tables=tables),
            Section(title="Who was there?", figures=figures),
        ),
    )


def verdict(audit: "TrainingAudit") -> str:
    """The finding in a sentence."""
    if audit.refuted:
        if audit.best > audit.claimed:
            return f"Above its claim: ε is at least {audit.best:.3g}, and {audit.claimed:.3g} was claimed"
        named = ", ".join(each.name for each in audit.faults)
        return f"Not what it claims, {audit.claimed:.3g}: its steps fail in {named}"
    if audit.best > audit.claimed:
        return (
            f"Not refuted: {audit.claimed:.3g} was claimed, and a bound of {audit.best:.3g} is no rarer than "
            "chance makes it. Audit again"
        )
    return f"Not refuted: ε is at least {audit.best:.3g}, and {audit.claimed:.3g} was claimed"


def audit_words(audit: "TrainingAudit") -> dict[str, str]:
    """The figures as people read them, line by line."""
    sure = f"with {100 * audit.confidence:g} % confidence"
    words = {
        "claimed": f"{audit.claimed:.4g} at delta {plain(audit.delta)}",
        "audited": f"at least {audit.audited:.4g} by the trained model, {sure}",
        "guesses": f"{audit.right:,} of {audit.guesses:,} right, about {audit.canaries:,} canaries",
        "reach": f"{audit.reach:.3g} is the most that so many canaries can show",
    }
    gradients = audit.gradients
    if gradients is None:
        return words
    noise = gradients.noise_multiplier
    return words | {
        "every step": f"at least {gradients.audited:.4g}, {sure}, by "
        f"{gradients.right:,} of {gradients.canaries:,} gradient canaries guessed right",
        "noise": (f"at most {noise:.4g}" if math.isfinite(noise) else "any number of")
        + f" clipping norms, {gradients.claimed_noise_multiplier:.4g} claimed",
        "power": f"a faultless run shows {gradients.typical:.3g} on average; noise below "
        f"{gradients.least_noise:.3g} times the claim is refuted by gradient canaries alone in 19 of 20 runs",
    }


def check_rows(audit: "TrainingAudit") -> tuple[tuple[str, ...], ...]:
    """The checks of the steps: what, what was found, the verdict, and what would have been seen."""
    return tuple(
        (
            each.name,
            each.finding or "not told beside data",
            "FAILS" if each.failed else "holds",
            each.smallest,
        )
        for each in audit.checks
    )


CHECK_COLUMNS = ("check", "found", "verdict", "what 19 of 20 runs would show")


def checks_table(audit: "TrainingAudit") -> TextTable:
    """The checks as a table."""
    return TextTable(
        name="checks",
        title="Every step, checked against the claim",
        columns=CHECK_COLUMNS,
        rows=check_rows(audit),
        note="A run without any fault fails in one of these at most once in a million audits."
        + (
            " Noise and batches are not told of: no ledger could pay for what that says beside the model."
            if audit.secrecy.name == "PAID"
            else ""
        ),
    )


def roc_title(audit: "TrainingAudit") -> str:
    """What the curve shows."""
    others, members = audit.rates()
    caught = float(members[np.searchsorted(others, 0.01, side="right") - 1]) if others[0] <= 0.01 else 0.0
    return f"At one false alarm in a hundred, {100 * caught:.3g} % of those who were in are recognised"


def draw_roc(audit: "TrainingAudit") -> Spec:
    """True against false positives on logarithmic axes."""
    others, members = audit.rates()
    least = 1 / max(1, int((~audit.included).sum()))
    places = np.geomspace(least, 1.0, _POINTS)
    rows: list[Row] = []
    for place in places:
        at = int(np.searchsorted(others, place * (1 + 1e-9), side="right")) - 1
        rate = float(members[at]) if at >= 0 else 0.0
        allowed = min(1.0, math.exp(min(audit.claimed, 700.0)) * place + audit.delta)
        if rate > 0:
            rows.append({"series": _ATTACK, "others": float(place), "members": rate})
        rows.append({"series": _ALLOWED, "others": float(place), "members": allowed})
        rows.append({"series": _BLIND, "others": float(place), "members": float(place)})
    return draw_lines(
        rows,
        x=Axis(field="others", title="share of those left out who are taken for members", log=True),
        y=Axis(field="members", title="share of members who are recognised", log=True),
        series=Series(
            field="series", names=(_ATTACK, _ALLOWED, _BLIND), colours=(COLOURS[1], COLOURS[0], GREY)
        ),
    )


def scores_title(audit: "TrainingAudit") -> str:
    """What the scores show."""
    apart = _standard(audit)[audit.included].mean()
    deviations = f"{apart:,.0f}" if abs(apart) >= 10 else f"{apart:.2g}"
    return f"Those who were in score {deviations} deviations above those who were not"


def draw_scores(audit: "TrainingAudit") -> Spec:
    """How scores spread, of members and of others."""
    standard = np.clip(_standard(audit), -_WIDE, _WIDE)
    edges = np.linspace(-_WIDE, _WIDE, _BINS + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    rows: list[Row] = []
    for name, chosen in ((_IN, audit.included), (_OUT, ~audit.included)):
        counts, _ = np.histogram(standard[chosen], edges)
        share = counts / max(1, int(chosen.sum()))
        rows += [
            {"series": name, "score": float(x), "share": float(y)}
            for x, y in zip(middles, share, strict=True)
        ]
    return draw_lines(
        rows,
        x=Axis(
            field="score", title=f"score, in deviations of those left out (cut at ±{_WIDE:g})", form=".2~g"
        ),
        y=Axis(field="share", title="share of the canaries of a kind", form=".0%"),
        series=Series(field="series", names=(_IN, _OUT), colours=(COLOURS[1], COLOURS[0])),
    )


def _standard(audit: "TrainingAudit") -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Scores with mean 0 and deviation 1 among those left out; what is not finite is put far below."""
    scores = np.where(np.isfinite(audit.scores), audit.scores, np.nan)
    outside = scores[~audit.included]
    spread = float(np.nanstd(outside)) or 1.0
    return np.nan_to_num((scores - float(np.nanmean(outside))) / spread, nan=-_WIDE)


# The page of an attack: what was attacked, how often it succeeded, what that teaches, and charts of it.


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
