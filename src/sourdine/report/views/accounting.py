"""What brackets, ledgers, receipts, certificates and releases show of themselves."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from sourdine.accounting.accountant import Bracket
from sourdine.accounting.certificate import Certificate
from sourdine.accounting.explain import Explanation, sentences
from sourdine.accounting.ledger import Entry, Ledger, Receipt, Status
from sourdine.accounting.ledger.numbers import readable, remaining, room
from sourdine.accounting.release import Release
from sourdine.accounting.spend import foreign_names, foreign_words
from sourdine.core.display import Figure, Viewable, figure, view
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted, plain, shorten_up
from sourdine.report.pages.ledger import certificate_table, charges_of, epsilon_words, spending_figure
from sourdine.report.view import Cell, Section, TextTable
from sourdine.report.views.view import View

_RECENT = 5  # charges
_MOST_VALUES = 20
_LONGEST = 200  # characters of what nobody knows how to show


@view.register
def _bracket(bracket: Bracket) -> View:
    wide = f", {shorten_up(bracket.width, 2)} apart" if bracket.width else ""
    return View(title=str(bracket), lead=f"Proven bounds{wide}; the upper one is the claim.")


@view.register
def _explanation(explanation: Explanation) -> View:
    delta = f", δ = {plain(explanation.delta)}" if explanation.delta else ""
    title = f"ε = {shorten_up(explanation.epsilon.upper)}{delta} for one {explanation.unit}"
    return View(title=title, sections=(Section(title="", points=sentences(explanation)),))


@view.register
def _ledger(ledger: Ledger) -> View:
    """Where it stands and its last charges; it holds purposes and prices, and nothing about data."""
    status = ledger.status()
    last = status.blocks + status.allowances.rules
    lines = (ledger.entry(number) for number in range(max(1, last - _RECENT + 1), last + 1))
    entries = charges_of([entry for entry in lines if entry is not None])
    charges = (Section(title="", tables=(_charges(entries, status),)),) if entries else ()
    return View(
        title=f"Ledger {ledger.path.name}: {_spent(status)}",
        lead=_whom(status),
        sections=(Section(title="", tables=(_standing(status),)), *charges),
    )


@figure.register
def _spending(ledger: Ledger, *which: str | None) -> Figure:
    entries = charges_of(ledger.history())
    if not entries:
        raise InvalidParameter(
            "The ledger has no charge yet, so there is nothing to draw. Pay from it first."
        )
    return spending_figure(entries, ledger.status())


@view.register
def _status(status: Status) -> View:
    table = Section(title="", tables=(_standing(status),))
    return View(title=f"Ledger {status.ledger[:8]}: {_spent(status)}", lead=_whom(status), sections=(table,))


@view.register
def _receipt(receipt: Receipt) -> View:
    return View(title=payment_words(receipt))


@view.register
def _certificate(certificate: Certificate) -> View:
    return View(
        title=f"Certificate: {epsilon_words(certificate)} for each {certificate.unit}",
        lead="" if certificate.secure else "Made with seeded noise: it protects nobody.",
        sections=(Section(title="", tables=(replace(certificate_table(certificate), title=""),)),),
    )


@view.register
def _release(release: Release) -> View:
    return release_view(release, type(release).__name__, *values_sections(release))


def release_view(release: Release, title: str, *sections: Section) -> View:
    """A release with its values in sections, and below what is to be known of it."""
    foreign = foreign_names(release.spends)
    notes = (*release.notes, *((foreign_words(foreign),) if foreign else ()))
    paid = "Not paid from a ledger." if release.receipt is None else payment_words(release.receipt)
    return View(
        title=title,
        lead=paid if release.secure else f"Made with seeded noise: it protects nobody. {paid}",
        sections=(*sections, *((Section(title="", points=notes),) if notes else ())),
    )


def values_sections(release: Release) -> tuple[Section, ...]:
    """The values of a release: as they show themselves, as rows of numbers, or in a line."""
    values: object = release.values
    if isinstance(values, Viewable):
        shown = view(values)
        assert isinstance(shown, View)
        return shown.sections
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "fiu":
        return (Section(title="", tables=(_numbers(values.tolist(), release.intervals),)),)
    text = " ".join(repr(values).split())
    return (Section(title="", paragraphs=(text[:_LONGEST] + ("…" if len(text) > _LONGEST else ""),)),)


def payment_words(receipt: Receipt) -> str:
    """What was paid, and what that left."""
    also = f" and delta {readable(receipt.delta)}" if receipt.delta else ""
    return (
        f"Paid {receipt.currency} {readable(receipt.price)}{also}, line {receipt.number} of ledger "
        f"{receipt.ledger[:8]}; {remaining(receipt.left, receipt.limit)} left."
    )


def _spent(status: Status) -> str:
    return f"{status.currency} {readable(status.spent)} of {room(status.limit)} spent"


def _whom(status: Status) -> str:
    blocks = counted(status.blocks, "charge")
    return f"It protects each {status.unit} ({status.neighbours} neighbours). {blocks} so far."


def _standing(status: Status) -> TextTable:
    rows = [("left", f"{status.currency} {remaining(status.left, status.limit)}")]
    if status.currency != "epsilon" or status.delta is not None:
        at = "" if status.delta is None else f" at delta {plain(status.delta)}"
        rows.append(("as epsilon", f"{status.epsilon:.4g} of {status.epsilon_limit:.4g}{at}"))
    if status.period_limit is not None and status.period_spent is not None:
        rows.append(
            (f"in {status.period}", f"{readable(status.period_spent)} of {room(status.period_limit)}")
        )
    if status.selection_delta is not None and status.selection_delta_spent is not None:
        spent = f"{readable(status.selection_delta_spent)} of {room(status.selection_delta)}"
        rows.append(("delta for keys spent", spent))
    if status.is_backup:
        rows.append(("backup", "pays for nothing"))
    return TextTable(name="status", title="", columns=("what", "stands at"), rows=tuple(rows))


def _charges(entries: Sequence[Entry], status: Status) -> TextTable:
    rows: list[tuple[Cell, ...]] = [
        (entry.number, f"{entry.time:%Y-%m-%d %H:%M}", entry.purpose, readable(entry.price))
        for entry in entries
    ]
    return TextTable(
        name="charges",
        title="Last charges",
        columns=("line", "time (UTC)", "purpose", status.currency),
        rows=tuple(rows),
    )


def _numbers(values: Sequence[float], intervals: object) -> TextTable:
    ends: list[Sequence[float]] = []
    if isinstance(intervals, tuple) and len(intervals) == 2:
        ends = [np.asarray(end).tolist() for end in intervals]
    several = list(zip(values, *ends, strict=False))
    rows = tuple((place, *row) for place, row in enumerate(islice(several, _MOST_VALUES)))
    hidden = len(values) - _MOST_VALUES
    return TextTable(
        name="values",
        title="",
        columns=("number", "value", *(("lower", "upper") if ends else ())),
        rows=rows,
        note=f"{hidden:,} more values." if hidden > 0 else "",
    )
