"""The page of an audit of training: how well members are told from others, beside what the claim allows."""

import math
from typing import TYPE_CHECKING

import numpy as np

from sourdine.core.figure import Figure, Spec
from sourdine.core.format import plain
from sourdine.report.charts.base import COLOURS, GREY, Axis, Row, Series, draw_lines
from sourdine.report.pages.page import Page, Section
from sourdine.report.table import TextTable

if TYPE_CHECKING:  # it needs torch, which a page does not
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
