"""The page of a release: what was found, how sure it is, whom it protects, and how it was made."""

import math
from collections.abc import Iterator

from sourdine.accounting.certificate import Certificate
from sourdine.accounting.explain import Explanation, explain_guarantee, sentences
from sourdine.accounting.explain.words import moved
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.figure import Figure
from sourdine.core.format import shorten_up
from sourdine.core.view import page
from sourdine.report.charts.answers import draw_answer
from sourdine.report.charts.beliefs import draw_bounds
from sourdine.report.crosstab import cross_table
from sourdine.report.finding import finding
from sourdine.report.pages.answers import MOST_ROWS, answer_table, fitting_crosstab, reading_note
from sourdine.report.pages.ledger import certificate_table, epsilon_words
from sourdine.report.pages.methods import GAP, _several, methods_section, percent
from sourdine.report.pages.page import Page, Section
from sourdine.report.pages.quality import misfit_section, quality_section
from sourdine.report.table import TextTable
from sourdine.tables import Answer, ReleasePlan
from sourdine.tables.answers.answer import NO_INTERVAL
from sourdine.tables.crosstabs import adds_up
from sourdine.tables.measurements.measurement import plural
from sourdine.tables.quality.exact import CHECKED_WORDS
from sourdine.tables.record import Record
from sourdine.tables.statistics import style_of

_MOST_NAMES = 6
_WEAK = 10  # an epsilon above it promises next to nothing


@page.register(Record)
def release_page(record: Record, certificate: Certificate) -> Page:
    """One page about one release, made from what is published with it."""
    if record.payment != certificate.fingerprint:
        raise InvalidParameter(
            "The certificate belongs to another release than the answers. Put together what was published "
            "together."
        )
    plan = record.plan
    explanation = explain_guarantee(
        certificate.epsilon,
        certificate.delta or 0,
        unit=certificate.unit,
        neighbours=Neighbours(certificate.neighbours),
    )
    return Page(
        title=_title(record),
        lead=_lead(record, certificate),
        verify="sourdine certificate verify FOLDER --ledger FILE, where FOLDER is the folder that this page "
        f"was published in. Its certificate is that of line {certificate.number} of ledger "
        f"{certificate.ledger[:8]}, {certificate.fingerprint[:16]}…",
        sections=(
            *_warnings(plan, certificate),
            *misfit_section(record.quality),
            _findings(record, plan),
            _guarantee(explanation, certificate),
            _values(record, plan),
            *quality_section(record.quality, plan.unit),
            methods_section(record, plan),
            _payment(record, certificate),
        ),
    )


def _title(record: Record) -> str:
    names = [query.name for query in record.plan.queries]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    source = " and ".join(record.specification.table.sources)
    return f"{source}: {', '.join(names[:_MOST_NAMES])}{more}"


def _lead(record: Record, certificate: Certificate) -> str:
    people = plural(certificate.unit)
    return (
        f"Statistics of a table about {people}, released {certificate.time:%Y-%m-%d} with noise that "
        f"{'hardly ' if certificate.epsilon > _WEAK else ''}protects each {certificate.unit}: "
        f"{epsilon_words(certificate)}. Every number below is noisy. It stands "
        f"with an interval that holds, {percent(record.answers.confidence)} of the time, what would have "
        f"been published without noise{_unless(record)}."
    )


def _unless(record: Record) -> str:
    """Which numbers have no interval, if any."""
    none = [f"the {each.statistic} in '{each.query}'" for each in record.answers.each if not each.bounded]
    return f"; there is {NO_INTERVAL} for {' and '.join(none)}" if none else ""


def _warnings(plan: ReleasePlan, certificate: Certificate) -> Iterator[Section]:
    if not certificate.secure:
        words = "The noise was seeded, so whoever knows the seed can take it away. Do not publish this."
        yield Section(title="This release protects nobody", paragraphs=(words,))
    if plan.warning:
        yield Section(title="The delta is too large", paragraphs=(plan.warning,))
    if plan.checked:
        yield Section(
            title="The declarations were checked against the data", paragraphs=(f"{CHECKED_WORDS}.",)
        )


def _findings(record: Record, plan: ReleasePlan) -> Section:
    """A chart for every answer that has several values, and a sentence for every other."""
    confidence = record.answers.confidence
    figures, alone = [], []
    for answer in record.answers.each:
        title, where = f"{finding(answer, confidence)}{_capped(plan, answer)}", _where(plan, answer)
        chart = draw_answer(answer)
        if chart is None:
            alone.append(f"{title}. {where}".strip())
        else:
            note = f"Query '{answer.query}'. {where} {reading_note(answer, chart, confidence)}"
            figures.append(Figure(title=title, chart=chart, note=" ".join(note.split())))
    return Section(title="What was found", points=tuple(alone), figures=tuple(figures))


def _values(record: Record, plan: ReleasePlan) -> Section:
    """Every answer as a table, crossed where it has two keys."""
    tables: list[TextTable] = []
    for answer in record.answers.each:
        crosstab = fitting_crosstab(answer, consistent=adds_up(plan.queries, answer))
        if crosstab is None:
            tables.append(answer_table(answer, _where(plan, answer)))
        else:
            title = f"{answer.query}: {crosstab.title}"
            tables.append(cross_table(crosstab, MOST_ROWS, where=_where(plan, answer), title=title))
    return Section(
        title="All values",
        paragraphs=("Each with the ends of its interval, where one is known.",),
        tables=tuple(tables),
    )


def _where(plan: ReleasePlan, answer: Answer) -> str:
    """Which records a query is about, if not all."""
    query = next(query for query in plan.queries if query.name == answer.query)
    of = " and ".join(condition.words for condition in query.where)
    return f"Only records with {of}." if of else ""


def _capped(plan: ReleasePlan, answer: Answer) -> str:
    """How much of a unit counts, if that may be less than all of it."""
    unit = plan.unit
    if unit.column is None or style_of(answer.kind).of_units:
        return ""
    return (
        f" (at most {unit.max_rows:,} {_several('record', unit.max_rows)} of each {unit.name} "
        f"{'counts' if unit.max_rows == 1 else 'count'})"
    )


def _guarantee(explanation: Explanation, certificate: Certificate) -> Section:
    bounds = explanation.posterior(0.5)
    people = plural(certificate.unit)
    relation = {
        Neighbours.ADD_REMOVE: f"Whether or not one {certificate.unit} is in the table",
        Neighbours.REPLACE: f"Whatever one {certificate.unit} in the table holds",
    }.get(explanation.neighbours, "")
    return Section(
        title="Whom this protects, and how much",
        paragraphs=(
            f"The promise is made to each of the {people} in the table. {relation}, {_likely(certificate)} "
            "It holds against anybody, whatever they know, and whatever they do with these numbers later.",
            "In odds and chances:",
        ),
        points=(
            *sentences(explanation),
            f"What the statistics say about {people} in general is not hidden. It can be used about somebody "
            "who never took part.",
        ),
        figures=(
            Figure(
                title=f"From 50 in 100, this release lets belief move to between {moved(bounds)}",
                chart=draw_bounds(min(explanation.reach, 50.0)),
                note="For this release alone. Other releases about the same people add to it.",
            ),
        ),
    )


def _likely(certificate: Certificate) -> str:
    """How much the chances of answers may differ, in plain words."""
    epsilon, words = certificate.epsilon, epsilon_words(certificate)
    but = "" if certificate.delta is None else " (but for the chance δ)"
    if epsilon > _WEAK:
        return (
            f"some answers may be up to e^{shorten_up(epsilon)} times as likely{but}. That is a weak "
            f"guarantee: at {words} it is not ruled out that the answers tell nearly everything about one "
            f"{certificate.unit}, and only the noise that was really added stands against it."
        )
    if epsilon > 1:
        factor = shorten_up(math.exp(epsilon), 3)
        return f"no set of answers is more than {factor} times as likely{but}: that is what {words} means."
    return f"every set of answers is nearly as likely: {words} bounds how much the odds differ."


def _payment(record: Record, certificate: Certificate) -> Section:
    share = float(record.spent / record.limit)
    rest = (
        "Nothing is left: no more can be published about these people from this ledger."
        if certificate.left == 0
        else f"{100 * share:.3g}{GAP}% of the budget was spent after this release."
    )
    return Section(
        title="What was paid",
        paragraphs=(
            f"The ledger was charged before the table was read. {rest} Whoever has the ledger can check this "
            "with: sourdine certificate verify FOLDER --ledger FILE. The ledger vouches for the payment, not "
            "for the numbers; the certificate holds digests of the files they were published in.",
        ),
        tables=(certificate_table(certificate, record.limit),),
    )
