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


def training_audit_page(found: "TrainingAudit", trained: str) -> Page:
    """What an audit found, on one page; `trained` says in a sentence what was trained."""
    table = TextTable(
        name="audit",
        title="One run, audited",
        columns=("", "value"),
        rows=tuple((name, value) for name, value in audit_words(found).items()),
        note="An audit refutes a claim or it does not: it never proves one.",
    )
    tables = (table,) if not found.checks else (table, checks_table(found))
    figures = (
        Figure(
            title=roc_title(found),
            chart=draw_roc(found),
            note="Both axes are logarithmic: an attack that is sure of a few people shows at the left.",
        ),
        Figure(title=scores_title(found), chart=draw_scores(found)),
    )
    return Page(
        title=verdict(found),
        lead=trained,
        sections=(
            Section(title="What was found", tables=tables),
            Section(title="Who was there?", figures=figures),
        ),
    )


def verdict(found: "TrainingAudit") -> str:
    """The finding in a sentence."""
    if found.refuted:
        if found.best > found.claimed:
            return f"Above its claim: ε is at least {found.best:.3g}, and {found.claimed:.3g} was claimed"
        named = ", ".join(each.name for each in found.faults)
        return f"Not what it claims, {found.claimed:.3g}: its steps fail in {named}"
    if found.best > found.claimed:
        return (
            f"Not refuted: {found.claimed:.3g} was claimed, and a bound of {found.best:.3g} is no rarer than "
            "chance makes it. Audit again"
        )
    return f"Not refuted: ε is at least {found.best:.3g}, and {found.claimed:.3g} was claimed"


def audit_words(found: "TrainingAudit") -> dict[str, str]:
    """The figures as people read them, line by line."""
    sure = f"with {100 * found.confidence:g} % confidence"
    told = {
        "claimed": f"{found.claimed:.4g} at delta {plain(found.delta)}",
        "audited": f"at least {found.audited:.4g} by the trained model, {sure}",
        "guesses": f"{found.right:,} of {found.guesses:,} right, about {found.canaries:,} canaries",
        "reach": f"{found.reach:.3g} is the most that so many canaries can show",
    }
    seen = found.gradients
    if seen is None:
        return told
    noise = seen.noise_multiplier
    return told | {
        "every step": f"at least {seen.audited:.4g}, {sure}, by "
        f"{seen.right:,} of {seen.canaries:,} gradient canaries guessed right",
        "noise": (f"at most {noise:.4g}" if math.isfinite(noise) else "any number of")
        + f" clipping norms, {seen.claimed_noise_multiplier:.4g} claimed",
        "power": f"a faultless run shows {seen.typical:.3g} on average; noise below {seen.least_noise:.3g} "
        "times the claim is refuted by gradient canaries alone in 19 of 20 runs",
    }


def check_rows(found: "TrainingAudit") -> tuple[tuple[str, ...], ...]:
    """The checks of the steps: what, what was found, the verdict, and what would have been seen."""
    return tuple(
        (each.name, each.found or "not told beside data", "FAILS" if each.failed else "holds", each.smallest)
        for each in found.checks
    )


CHECK_COLUMNS = ("check", "found", "verdict", "what 19 of 20 runs would show")


def checks_table(found: "TrainingAudit") -> TextTable:
    """The checks as a table."""
    return TextTable(
        name="checks",
        title="Every step, checked against the claim",
        columns=CHECK_COLUMNS,
        rows=check_rows(found),
        note="A run without any fault fails in one of these at most once in a million audits."
        + (
            " Noise and batches are not told of: no ledger could pay for what that says beside the model."
            if found.secrecy.name == "PAID"
            else ""
        ),
    )


def roc_title(found: "TrainingAudit") -> str:
    """What the curve shows."""
    others, members = found.rates()
    caught = float(members[np.searchsorted(others, 0.01, side="right") - 1]) if others[0] <= 0.01 else 0.0
    return f"At one false alarm in a hundred, {100 * caught:.3g} % of those who were in are recognised"


def draw_roc(found: "TrainingAudit") -> Spec:
    """True against false positives on logarithmic axes."""
    others, members = found.rates()
    least = 1 / max(1, int((~found.included).sum()))
    places = np.geomspace(least, 1.0, _POINTS)
    rows: list[Row] = []
    for place in places:
        at = int(np.searchsorted(others, place * (1 + 1e-9), side="right")) - 1
        rate = float(members[at]) if at >= 0 else 0.0
        allowed = min(1.0, math.exp(min(found.claimed, 700.0)) * place + found.delta)
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


def scores_title(found: "TrainingAudit") -> str:
    """What the scores show."""
    apart = _standard(found)[found.included].mean()
    told = f"{apart:,.0f}" if abs(apart) >= 10 else f"{apart:.2g}"
    return f"Those who were in score {told} deviations above those who were not"


def draw_scores(found: "TrainingAudit") -> Spec:
    """How scores spread, of members and of others."""
    standard = np.clip(_standard(found), -_WIDE, _WIDE)
    edges = np.linspace(-_WIDE, _WIDE, _BINS + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    rows: list[Row] = []
    for name, chosen in ((_IN, found.included), (_OUT, ~found.included)):
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


def _standard(found: "TrainingAudit") -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Scores with mean 0 and deviation 1 among those left out; what is not finite is put far below."""
    scores = np.where(np.isfinite(found.scores), found.scores, np.nan)
    outside = scores[~found.included]
    spread = float(np.nanstd(outside)) or 1.0
    return np.nan_to_num((scores - float(np.nanmean(outside))) / spread, nan=-_WIDE)
