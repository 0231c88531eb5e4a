"""What a ledger has spent over time, as a page; and a certificate as people read it."""

from collections.abc import Sequence
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING

from sourdine.accounting.certificate import Certificate
from sourdine.accounting.ledger import Entry, Ledger, Status, Terms
from sourdine.accounting.ledger.budget import UNLIMITED
from sourdine.accounting.ledger.numbers import readable, remaining, room
from sourdine.accounting.ledger.receipt import foreign_lines
from sourdine.core.figure import Figure, Spec
from sourdine.core.format import counted, plain, shorten_up
from sourdine.report.charts.base import COLOURS, GREY, ROWS, Row, finish
from sourdine.report.pages.page import Page, Section
from sourdine.report.table import TextTable

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
