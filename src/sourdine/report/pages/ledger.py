"""What a ledger has spent over time, as a page; and a certificate as people read it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sourdine.accounting.approximate import known
from sourdine.accounting.certificate import Certificate
from sourdine.accounting.explain import (
    DEPLOYMENTS,
    EPSILONS,
    PRIORS,
    Curve,
    Explanation,
    posterior_table,
    sentences,
)
from sourdine.accounting.explain.deployments import UNITS_DIFFER
from sourdine.accounting.explain.explanation import COVER, FALSE_POSITIVES, PREMIUM, explain_guarantee
from sourdine.accounting.explain.words import (
    at_most,
    best_guess,
    money_up,
    moved,
    percent_down,
    percent_up,
    say_beliefs,
)
from sourdine.accounting.ledger import Entry, Ledger, Status, Terms
from sourdine.accounting.ledger.budget import UNLIMITED
from sourdine.accounting.ledger.numbers import readable, remaining, room
from sourdine.accounting.ledger.receipt import foreign_lines
from sourdine.core.display import Figure, Spec
from sourdine.core.format import counted, plain, shorten_down, shorten_up
from sourdine.report.charts.base import COLOURS, GREY, ROWS, Row, finish
from sourdine.report.charts.beliefs import draw_beliefs, draw_family, draw_roc
from sourdine.report.view import Cell, Page, Section, TextTable

if TYPE_CHECKING:
    import altair as alt

# how a moment is told when all charges lie within a stretch
_FORMS = {
    timedelta(hours=1): "%H:%M:%S",
    timedelta(days=2): "%d %b, %H:%M",
    timedelta(days=200): "%d %b",
    timedelta.max: "%b %Y",
}
_AT_ONCE = timedelta(minutes=1)  # charges that no clock tells apart
_FEW = 12  # charges of which each gets a tick


def spending_page(terms: Terms, status: Status, lines: Sequence[Entry], *, more: int | None = None) -> Page:
    """The ledger for people: where it stands, how it got there, every charge and every allowance.

    `more` says how many more charges like the last one fit, if that is known.
    """
    entries = charges_of(lines)
    shares = bool(status.allowances.each)
    at = f" at delta {plain(status.delta)}" if status.delta is not None else ""
    also = f", that is epsilon {status.epsilon:.4g} of {status.epsilon_limit:.4g}{at}"
    also = at if status.currency == "epsilon" else also  # which needs no second word for itself
    charges = TextTable(
        name="charges",
        title="Every charge",
        columns=(
            "line",
            "time (UTC)",
            "author",
            *(("allowance",) if shares else ()),
            "purpose",
            status.currency,
            "total",
        ),
        rows=tuple(
            (
                entry.number,
                f"{entry.time:%Y-%m-%d %H:%M:%S}",
                entry.author,
                *((entry.allowance or "",) if shares else ()),
                entry.purpose,
                float(entry.price),
                float(entry.total),
            )
            for entry in entries
        ),
    )
    stand = Section(
        title="Where it stands",
        points=(
            f"It protects each {terms.unit}, between {terms.neighbours} neighbours.",
            f"Spent: {status.currency} {readable(status.spent)} of {room(status.limit)}{also}"
            f"{_used(status)}.",
            f"Left: {remaining(status.left, status.limit)}. Nothing spent ever comes back.",
            *_still_fit(entries, more),
            *_for_keys(status),
            *((sentence,) if (sentence := foreign_lines(entries)) else ()),
        ),
        figures=(spending_figure(entries, status),) if len(entries) > 1 else (),  # one step is a sentence
    )
    return Page(
        title="A privacy budget over time",
        lead=f"Ledger {status.ledger[:8]}, {counted(len(entries), 'charge')}, replayed and checked.",
        sections=(
            stand,
            *((_allowances(status),) if shares else ()),
            Section(
                title="Charges",
                paragraphs=() if entries else ("No charge yet.",),
                tables=(charges,) if entries else (),
            ),
        ),
    )


def more_like_last(ledger: Ledger, lines: Sequence[Entry]) -> int | None:
    """How many more charges like the last one fit now; None without one, or without a limit."""
    entries = charges_of(lines)
    if not entries or not entries[-1].price or ledger.status().limit == UNLIMITED:
        return None
    return ledger.forecast(*entries[-1].spends)


def _still_fit(entries: Sequence[Entry], more: int | None) -> tuple[str, ...]:
    if more is None:
        return ()
    many = {0: "No more charge", 1: "One more charge"}.get(more, f"{more:,} more charges")
    last = entries[-1]
    return (f"{many} like the last one, '{last.purpose}' in line {last.number}, would fit now.",)


def charges_of(lines: Sequence[Entry]) -> list[Entry]:
    """The lines that are charges; others say what is allowed."""
    return [entry for entry in lines if entry.rule is None]


def _allowances(status: Status) -> Section:
    """Each share of the budget, and what waits for a decision."""
    rows = tuple(
        (
            each.name,
            ", ".join(each.authors) or "everybody",
            float(each.cap),
            float(each.spent),
            "" if each.period_limit is None else f"{room(each.period_limit)} each {each.period}",
        )
        for each in status.allowances.each
    )
    table = TextTable(
        name="allowances",
        title="Shares of the budget",
        columns=("allowance", "for", f"cap ({status.currency})", "spent", "at most"),
        rows=rows,
    )
    return Section(
        title="Allowances",
        paragraphs=("Each charge takes from one of these, and all of them from the one budget.",),
        points=tuple(
            f"Line {each.line}: {each.author} asks for {readable(each.amount)} more for {each.allowance}."
            for each in status.allowances.requests
        ),
        tables=(table,),
    )


def _for_keys(status: Status) -> tuple[str, ...]:
    if status.selection_delta is None or status.selection_delta_spent is None:
        return ()
    spent, whole = readable(status.selection_delta_spent), room(status.selection_delta)
    return (f"For choosing keys privately, delta {spent} of {whole} is spent.",)


def _used(status: Status) -> str:
    if status.limit == UNLIMITED:
        return ""
    return f": {100 * float(status.spent / status.limit):.0f} % of the budget"


def spending_figure(entries: Sequence[Entry], status: Status) -> Figure:
    """How the budget was spent, charge by charge."""
    near = " The charges came within a minute, so they stand side by side." if _at_once(entries) else ""
    return Figure(
        title=f"{_used(status).removeprefix(': ')} is spent, in {counted(len(entries), 'charge')}",
        chart=draw_spending(entries, status),
        note=f"Steps: the total after each charge, in {status.currency}. Dashed: the whole budget.{near}",
    )


def draw_spending(entries: Sequence[Entry], status: Status) -> Spec:
    """A step line of the total over time, or from charge to charge, under the limit."""
    import altair as alt

    rows: list[Row] = [
        {
            "line": entry.number,
            "time": entry.time.isoformat(),
            "told": f"{entry.time:%Y-%m-%d %H:%M:%S} UTC",
            "total": float(entry.total),
            "price": float(entry.price),
            "purpose": entry.purpose,
        }
        for entry in entries
    ]
    chart = alt.Chart(alt.NamedData(name=ROWS))
    when = _when(entries)
    spent = alt.Y("total:Q", title=f"{status.currency} spent", scale=alt.Scale(zero=True))
    tips = [
        alt.Tooltip("told:N", title="time"),
        alt.Tooltip("purpose:N"),
        alt.Tooltip("price:Q", title=status.currency, format=".4~g"),
        alt.Tooltip("total:Q", title="total", format=".4~g"),
    ]
    line = chart.mark_line(interpolate="step-after", strokeWidth=2, color=COLOURS[0]).encode(when, spent)
    points = chart.mark_point(filled=True, size=40, color=COLOURS[0]).encode(when, spent, tooltip=tips)
    limit = alt.Chart(alt.InlineData(values=[{"limit": float(status.limit)}]))
    rule = limit.mark_rule(strokeDash=[4, 4], color=GREY).encode(alt.Y("limit:Q"))
    return finish(alt.layer(rule, line, points), rows)


def _at_once(entries: Sequence[Entry]) -> bool:
    return abs(entries[-1].time - entries[0].time) < _AT_ONCE


def _when(entries: Sequence[Entry]) -> "alt.X":
    """Where a charge stands: by its time, or by its number if all came within a minute."""
    import altair as alt

    first, last = entries[0].time, entries[-1].time
    if _at_once(entries):
        numbers = [entry.number for entry in entries]
        axis = alt.Axis(format="d", values=numbers if len(numbers) <= _FEW else alt.Undefined, tickCount=6)
        return alt.X("line:Q", title="line of the ledger", axis=axis, scale=alt.Scale(zero=False, nice=False))
    form = next(form for stretch, form in _FORMS.items() if last - first < stretch)
    axis = alt.Axis(format=form, tickCount=4, labelOverlap="greedy", labelSeparation=8)
    title = f"time (UTC), from {first:%d %B %Y}"
    return alt.X("time:T", title=title, axis=axis, scale=alt.Scale(type="utc"))


def certificate_table(certificate: Certificate, limit: Fraction | None = None) -> TextTable:
    """What it states, one thing a row; with the limit of its ledger, how much of that is left."""
    paid = certificate.price
    also = "" if certificate.currency == "epsilon" else f", that is {epsilon_words(certificate)}"
    left = remaining(certificate.left, paid + certificate.left if limit is None else limit)
    of = "" if limit is None else f" of {room(limit)}"
    facts = (
        ("paid", f"{certificate.currency} {readable(paid)}{also}"),
        ("left of the budget", f"{certificate.currency} {left}{of}"),
        ("protects", f"each {certificate.unit} ({certificate.neighbours} neighbours)"),
        ("ledger", f"{certificate.ledger[:8]}, line {certificate.number}"),
        ("fingerprint of the line", f"{certificate.fingerprint[:16]}…"),
        ("time (UTC)", f"{certificate.time:%Y-%m-%d %H:%M}"),
        ("noise", "cryptographic" if certificate.secure else "SEEDED"),
        ("made with", certificate.software or "sourdine"),
        *((("not of this package", ", ".join(certificate.foreign)),) if certificate.foreign else ()),
    )
    return TextTable(name="certificate", title="Certificate", columns=("what", "stated"), rows=facts)


def epsilon_words(certificate: Certificate) -> str:
    """Its guarantee, never smaller than it is."""
    small = "" if certificate.delta is None else f", δ = {plain(certificate.delta)}"
    return f"ε = {shorten_up(certificate.epsilon)}{small}"


# The page that says what a guarantee means.


FAMILY = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0)
_LEAST, _MOST = 0.01, 10.0  # the ends of the slider for epsilon
_PRIOR = 50
_FEW_PRIORS = 0.01
GAP = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True, kw_only=True)
class ExplanationPage(Page):
    """A page with sentences on top, and sliders for epsilon and for the belief before."""

    template: ClassVar[str] = "explanation.html"
    words: tuple[str, ...]
    live: str  # the sentence that follows the sliders: BEFORE, MOST and LEAST stand for numbers
    measure: str  # what the first slider sets
    own: str  # what it says of this guarantee, and what of others
    other: str
    start: float  # log10 of epsilon, like both ends
    lowest: float
    highest: float
    prior: int  # in per cent


def explanation_page(explanation: Explanation) -> ExplanationPage:
    """One page about one guarantee."""
    reach = min(max(explanation.reach, _LEAST), 1e3)
    return ExplanationPage(
        title=f"What ε = {shorten_up(explanation.epsilon.upper)} means",
        lead=_lead(explanation),
        sections=(
            _beliefs(explanation, reach),
            _belief_tables(explanation),
            _attacks(explanation),
            _premium(explanation),
            _deployed(),
            *_assumptions(explanation),
        ),
        words=sentences(explanation),
        live=say_beliefs(explanation, "BEFORE chances in 100", "MOST in 100", "LEAST in 100"),
        measure="ε for beliefs" if explanation.chance else "ε",
        own=_own(explanation),
        other=f"Another ε. All else on this page stays about {_claim(explanation)}.",
        start=math.log10(reach),
        lowest=math.log10(_LEAST),
        highest=math.log10(max(_MOST, reach)),
        prior=_PRIOR,
    )


def belief_tables() -> tuple[TextTable, TextTable]:
    """The greatest and the least beliefs, for the priors and epsilons of the source."""
    return (
        _belief_table("greatest", [[bounds.upper for bounds in row] for row in posterior_table()]),
        _belief_table("least", [[bounds.lower for bounds in row] for row in posterior_table()]),
    )


def _belief_table(name: str, beliefs: list[list[float]]) -> TextTable:
    return TextTable(
        name=name,
        title=f"{name.capitalize()} belief after an answer, in %, by the belief before and by ε",
        columns=("before", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)),
        rows=tuple(
            (f"{100 * prior}", *(f"{100 * belief:.2f}" for belief in row))
            for prior, row in zip(PRIORS, beliefs, strict=True)
        ),
        note="Rounded to the nearest hundredth. Without a δ; with one, at the ε that bounds beliefs.",
    )


def _claim(explanation: Explanation) -> str:
    delta = f", δ = {plain(explanation.delta)}" if explanation.delta else ""
    return f"ε = {shorten_up(explanation.epsilon.upper)}{delta}"


def _own(explanation: Explanation) -> str:
    """Where the slider starts; with a delta that is not the epsilon of the title."""
    if not explanation.chance:
        return f"This guarantee: {_claim(explanation)}."
    return (
        f"This guarantee: {_claim(explanation)}. In all but {at_most(explanation.chance)} cases at most, it "
        f"moves beliefs no further than ε = {shorten_up(explanation.reach, 3)} without a δ."
    )


def _lead(explanation: Explanation) -> str:
    lower = shorten_down(explanation.epsilon.lower)
    bracket = f" The least possible ε is at least {lower}." if explanation.epsilon.width else ""
    return (
        f"{explanation.subject[0].upper()}{explanation.subject[1:]}. It promises {_claim(explanation)} for "
        f"one {explanation.unit} ({explanation.neighbours} neighbours).{bracket}"
    )


def _beliefs(explanation: Explanation, reach: float) -> Section:
    here = explanation.posterior(0.5)
    rare = ""
    if explanation.chance:
        rare = (
            f" With a δ no bound holds for every answer. In all but {at_most(explanation.chance)} cases at "
            f"most, beliefs move as with ε = {shorten_up(explanation.reach, 3)}; the sliders start there."
        )
    return Section(
        title="What somebody may come to believe",
        paragraphs=(
            "An answer multiplies the odds of a suspicion by at most e^ε and divides them by at most as "
            "much, whatever somebody knows besides." + rare,
        ),
        figures=(
            Figure(
                title=f"From 50 in 100, this guarantee lets belief move to between {moved(here)}",
                chart=draw_beliefs(reach, _PRIOR / 100),
                note="The sliders above move this chart; its title stays about this guarantee.",
            ),
            Figure(
                title="Small ε keep belief near the diagonal; from ε = 3 on, doubt can nearly vanish",
                chart=draw_family(FAMILY),
                note="The greatest belief lies above the diagonal, the least below.",
            ),
        ),
    )


def _belief_tables(explanation: Explanation) -> Section:
    own: tuple[tuple[Cell, ...], ...] = tuple(
        (f"{100 * prior} %", percent_down(bounds.lower), percent_up(bounds.upper))
        for prior, bounds in ((prior, explanation.posterior(prior)) for prior in PRIORS)
    )
    return Section(
        title="Belief by belief",
        tables=(
            TextTable(
                name="own",
                title="Under this guarantee",
                columns=("belief before", "after, at least", "after, at most"),
                rows=own,
                note="To four digits, outwards; sentences tell the same in whole chances.",
            ),
            *belief_tables(),
        ),
    )


def _attacks(explanation: Explanation) -> Section:
    curve, best = explanation.curve, best_guess(explanation)
    curves = {"this guarantee": curve}
    if explanation.whole:
        point = known(explanation.epsilon.upper, explanation.delta, neighbours=explanation.neighbours)
        curves = {"from the whole curve of losses": curve, "from ε and δ alone": Curve.of_loss(point)}
    hits = float(curve.true_positives(_FEW_PRIORS))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            f"{100 * rate:g} %",
            percent_up(float(curve.true_positives(rate)), 3),
            percent_up(curve.precision(0.5, rate), 3),
        )
        for rate in FALSE_POSITIVES
    )
    return Section(
        title="What an attack can find",
        paragraphs=(
            "An attack sees the answers, and all other data if it likes, and says for each case whether the "
            f"suspicion is true. On cases of which half are true it is right in at most "
            f"{best}: an advantage of {shorten_up(curve.advantage, 2)} over a "
            "coin, where 1 is certainty and 0 is nothing.",
        ),
        tables=(
            TextTable(
                name="rates",
                title="The best attack, by how many false alarms it may raise",
                columns=("false positives", "true positives, at most", "alarms that are right, at most"),
                rows=rows,
                note="The last column is for cases of which half are true.",
            ),
        ),
        figures=(
            Figure(
                title=f"The best attack is right in at most {best} cases",
                chart=draw_roc(curves),
                note="ROC curve: no attack lies above it. The diagonal is blind guessing.",
            ),
            Figure(
                title=f"At 1{GAP}% false alarms it finds at most {percent_up(hits, 3)} of true cases",
                chart=draw_roc(curves, log=True, mark=_FEW_PRIORS),
                note="The same curve on logarithmic scales, where careful attacks live.",
            ),
        ),
    )


def _premium(explanation: Explanation) -> Section:
    others = [(f"{epsilon:g}", explain_guarantee(epsilon).premium) for epsilon in EPSILONS]
    own = (f"this guarantee ({shorten_up(explanation.epsilon.upper)})", explanation.premium)
    return Section(
        title="What taking part can cost",
        paragraphs=(
            f"Gertrude is insured for {COVER:,}. From the published results alone, her insurer would ask "
            f"{PREMIUM:,} a year. If she takes part herself, the average premium grows at most to "
            f"{money_up(explanation.premium)} under this guarantee: by the factor e^ε if ε is all that is "
            "known, by less if the whole curve of losses is. That is the price of her own record. What the "
            "study finds out about people like her can change her premium too, and would if she stayed "
            "away; no ε limits that.",
        ),
        tables=(
            TextTable(
                name="premium",
                title=f"Average yearly premium if Gertrude takes part; {PREMIUM:,} if she does not",
                columns=("ε", "at most"),
                rows=tuple((name, money_up(premium)) for name, premium in (*others, own)),
                note=f"A premium is never above the cover of {COVER:,}; the average is over the noise.",
            ),
        ),
    )


def _deployed() -> Section:
    return Section(
        title="Where systems in use stand",
        paragraphs=(UNITS_DIFFER,),
        tables=(
            TextTable(
                name="deployed",
                title="Published guarantees",
                columns=("system", "ε", "δ", "protects", "spent", "model", "published by"),
                rows=tuple(
                    (
                        each.name,
                        f"{each.epsilon:g}",
                        _power(each.delta),
                        each.unit,
                        each.period,
                        each.model,
                        each.source,
                    )
                    for each in DEPLOYMENTS
                ),
            ),
        ),
    )


def _assumptions(explanation: Explanation) -> tuple[Section, ...]:
    if not explanation.assumptions:
        return ()
    return (Section(title="What this assumes", points=explanation.assumptions),)


def _power(delta: float) -> str:
    """A small number that does not break across lines.

    >>> _power(7e-9), _power(0)
    ('7·10⁻⁹', '0')
    """
    if delta == 0:
        return "0"
    digits, exponent = f"{delta:e}".split("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{raised}" if float(digits) == 1 else f"{float(digits):g}·10{raised}"
