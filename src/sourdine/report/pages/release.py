"""The page of a release: what was found, how sure it is, whom it protects, and how it was made."""

import math
from collections.abc import Iterator
from itertools import islice
from typing import assert_never

from sourdine.accounting.certificate import Certificate
from sourdine.accounting.explain import Explanation, explain_guarantee, sentences
from sourdine.accounting.explain.words import moved
from sourdine.core.display import Figure, Spec, page
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted, plain, shorten_up
from sourdine.frames.schema import (
    DERIVED,
    LONGEST_KEY,
    Category,
    Column,
    Flag,
    Integer,
    PrivacyUnit,
    Text,
    kind_of,
)
from sourdine.frames.times import Date, Datetime
from sourdine.report.charts.answers import count_missing, draw_answer
from sourdine.report.charts.beliefs import draw_bounds
from sourdine.report.crosstab import IN_FILE, cross_table, more_rows
from sourdine.report.finding import cells_of, finding, written
from sourdine.report.pages.ledger import certificate_table, epsilon_words
from sourdine.report.view import Cell as Shown
from sourdine.report.view import Page, Section, TextTable
from sourdine.tables import Answer, ReleasePlan
from sourdine.tables.answers import NO_INTERVAL
from sourdine.tables.crosstab import Crosstab, adds_up, crosstab_of
from sourdine.tables.forecast import noise_words
from sourdine.tables.measurement import plural
from sourdine.tables.publication import Record
from sourdine.tables.quality import ADVICE, CHECKED_WORDS, DataQuality, told_rows, value_words
from sourdine.tables.query import columns_of
from sourdine.tables.statistics import Chart, Scale, style_of

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


# One answer as people read it: a table of its values, and how to read its chart.


MOST_ROWS = 200
_FEW_ACROSS, _MOST_ACROSS = 4, 12  # columns of a crosstab


def answer_table(answer: Answer, where: str = "", most: int = MOST_ROWS, rest: str = IN_FILE) -> TextTable:
    """Every value with its interval, but for those beyond so many rows; shares in per cent."""
    rows: list[tuple[Shown, ...]] = []
    style = style_of(answer.kind)
    ends = 3 if answer.bounded else 1
    for key, *numbers in islice(answer.rows(), most):
        rows.append((*map(_key, key), *(written(each, answer) for each in numbers[:ends])))
    unit = ", in %" if style.scale is Scale.SHARE else ""
    if style.chart in (Chart.UPRIGHT, Chart.HEAT, Chart.NESTED):
        unit = f", in {answer.measure}"
    hidden = len(answer.keys) - most
    more = more_rows(hidden, rest)
    return TextTable(
        name=f"{answer.query} {answer.statistic}",
        title=f"{answer.query}: {answer.statistic}{unit}",
        columns=(*answer.columns, "value", *(("lower", "upper") if answer.bounded else ())),
        rows=tuple(rows),
        note=" ".join(part for part in (_note(answer), where, more) if part),
    )


def fitting_crosstab(answer: Answer, *, consistent: bool = False) -> Crosstab | None:
    """An answer as a crosstab with few keys across, if it has two columns of keys and few enough."""
    if len(answer.columns) != 2 or style_of(answer.kind).chart in (Chart.LIST, Chart.NESTED):
        return None
    first, second = answer.columns
    crosstab = crosstab_of(answer, first, second, consistent=consistent)
    if len(crosstab.column_keys) > max(len(crosstab.row_keys), _FEW_ACROSS):
        crosstab = crosstab_of(answer, second, first, consistent=consistent)
    return crosstab if 0 < len(crosstab.column_keys) <= _MOST_ACROSS else None


def reading_note(answer: Answer, chart: Spec, confidence: float) -> str:
    """How to read a chart, and what it leaves out."""
    sentences, chart_of = [], style_of(answer.kind).chart
    counted = style_of(answer.kind).scale is Scale.COUNT
    lines = f"intervals of {percent(confidence)}; some may be too short to be seen."
    match chart_of:
        case Chart.UPRIGHT:
            sentences.append("A bar's height is a count, however wide its bin.")
        case Chart.NESTED:
            sentences.append("Larger levels are in the table, with intervals of their own.")
        case Chart.HEAT:
            sentences.append("The sums over rows and columns are in the table, with intervals of their own.")
        case Chart.LIST:
            sentences.append("Only the order was published, no counts.")
        case Chart.BARS | Chart.CURVE:
            pass
        case _:
            assert_never(chart_of)
    if chart_of not in (Chart.HEAT, Chart.LIST):
        bare = "There is no interval: the method by which these values were found gives none."
        kind = "Upright" if chart_of is Chart.CURVE else "Thin"
        sentences.append(f"{kind} lines: {lines}" if answer.bounded else bare)
        if answer.selection and answer.bounded:
            sentences.append(answer.selection_note)
    cells = cells_of(answer)
    if any(answer.blind(cell.lower, cell.upper) for cell in cells):
        sentences.append("Where nothing is drawn, nothing can be said: the noise hides all.")
    if counted and any(cell.value < 0 for cell in cells) and chart_of is not Chart.HEAT:
        sentences.append("Counts below 0 are noise, and are drawn as 0.")
    if missing := count_missing(answer, chart):
        which = "The largest are drawn" if counted else "Those with the shortest intervals are drawn"
        which = which if chart_of is not Chart.CURVE else "The first groups are drawn"
        sentences.append(f"{which}; the file of answers has {missing:,} more values.")
    return " ".join(sentences)


def _note(answer: Answer) -> str:
    """What is to be known of the values of an answer."""
    sentences = [] if answer.bounded else ["No interval is known."]
    if answer.chosen:
        sentences.append(f"Which keys of {' and '.join(answer.chosen)} stand here was chosen privately.")
    if answer.selection:
        sentences.append(answer.selection_note)
    if not answer.keys:
        sentences.append("No key reached the threshold.")
    return " ".join(sentences)


def _key(part: object) -> Shown:
    if isinstance(part, bool):
        return "yes" if part else "no"
    return part if isinstance(part, int | float) else str(part)


# The section of a release's page that tells how its values were made.


GAP = "\N{NO-BREAK SPACE}"


def methods_section(record: Record, plan: ReleasePlan) -> Section:
    unit = plan.unit
    used = columns_of(plan.queries, plan.schema)
    columns = plan.schema.columns
    used_columns = {
        name: column for name, column in columns.items() if name in used or isinstance(column, DERIVED)
    }
    points = [_about(name, column) for name, column in used_columns.items()]
    if others := [name for name in columns if name not in used_columns]:
        points.append(f"Declared too, but nothing was asked about it: {', '.join(others)}.")
    if unit.column is None:
        points.append(f"Every record counts as one {unit.name}.")
    else:
        points.append(
            f"Records with the same '{unit.column}' belong to one {unit.name}. In each answer a {unit.name} "
            f"counts in at most {unit.max_groups:,} {_several('group', unit.max_groups)}, and in each with "
            f"as much as {unit.max_rows:,} {_several('record', unit.max_rows)} could weigh. What is beyond "
            "that is left out at random."
        )
    kinds = [*dict.fromkeys("Gaussian" if line.squared else "Laplace" for line in plan.lines)]
    law = f"{' or '.join(kinds)} distribution" + (", as the table below says," if kinds[1:] else "")
    chosen = bool(plan.choices)
    points += [
        "Groups are those of the declared keys, all of them, whether or not anybody is in them: which groups "
        "appear tells nothing."
        + (" Only of keys that were chosen privately, a key appears if enough have it." if chosen else ""),
        f"Sums and counts are whole numbers of grid steps. Noise follows the {law} on whole numbers and "
        "is drawn exactly. The budget is divided by the weights of the queries.",
        f"Intervals hold {percent(plan.confidence)} of the time, one at a time. They are about the noise "
        "alone: they do not hold sampling error (these people standing for others), nor values moved to a "
        "bound, nor records left out, nor mistakes in the table.",
        *plan.notes,
        "Titles of charts compare groups only where intervals, widened so that all of a chart hold at once, "
        "do not meet.",
        "Counts and their intervals may reach below zero, where no true count can be: they are published as "
        "they came, since to cut them off would make sums of them too large. Nor do counts add up exactly "
        "between tables: every one has noise of its own. "
        "Where a table gives sums, use those, since their intervals allow for all the noises they hold.",
    ]
    return Section(
        title="How it was made",
        paragraphs=(_declared(plan, chosen),),
        points=tuple(points),
        tables=(_lines(plan),),
    )


def _declared(plan: ReleasePlan, chosen: bool) -> str:
    """Where the declarations come from."""
    if plan.checked:
        return f"{CHECKED_WORDS}."
    return "All of this was declared before the table was read, and nothing of it depends on the data" + (
        ", but which keys were chosen privately." if chosen else "."
    )


def _about(name: str, column: Column) -> str:
    missing = (
        "Where it is missing, the record is left out of what needs it."
        if column.missing == "drop"
        else f"A missing value counts as {value_words(column.missing)}."
    )
    if isinstance(column, DERIVED):
        return f"{name}: computed of each record as {column.expression.text}; {_bounds(column)}. {missing}"
    if isinstance(column, Text):
        return f"{name}: {_texts(column)}"
    if isinstance(column, Category):
        listed = ", ".join(map(str, column.keys[:12])) + (" and others" if len(column.keys) > 12 else "")
        many = f"{len(column.keys):,} declared keys ({listed})"
        return f"{name}: one of {many}; any other counts as missing. {missing}"
    if isinstance(column, Flag):
        return f"{name}: true or false. {missing}"
    if isinstance(column, Date | Datetime):
        clock = f" on the clock of {column.zone}" if column.zone else ""
        kind = "dates" if isinstance(column, Date) else "times"
        return (
            f"{name}: {kind} from {column.first} to {column.last}{clock}; others, and what is not read, "
            "are left out of what needs it."
        )
    kind = "whole numbers" if isinstance(column, Integer) else "numbers"
    step = "" if isinstance(column, Integer) else f", rounded to steps of {plain(float(column.step))}"
    return (
        f"{name}: {kind} from {value_words(column.lower)} to {value_words(column.upper)}{step}; what lies "
        f"outside is moved to the nearer bound. {missing}"
    )


def _bounds(column: Column) -> str:
    """What a computed column lies within, which follows from what is declared."""
    return f"it lies within {kind_of(column).words}"


def _texts(column: Text) -> str:
    """How keys are chosen that nobody declared, and what becomes of the others."""
    least = f" None is shown that fewer than about {column.at_least:,} have." if column.at_least else ""
    rest = "are left out" if column.other is None else f"count under '{column.other}'"
    lost = "is left out" if column.missing == "drop" else "counts there too"
    return (
        f"texts of up to {LONGEST_KEY} characters. Where a query asks by them, keys were chosen privately."
        f"{least} Records whose key is not shown {rest}. Where it is missing, the record {lost}."
    )


def _lines(plan: ReleasePlan) -> TextTable:
    rows: list[tuple[Shown, ...]] = [
        (
            line.measurement.scope.query,
            line.measurement.label,
            noise_words(line, plan),
            f"{100 * float(line.share):.3g}{GAP}%",
            line.measurement.moves(line, plan.context()),
        )
        for line in plan.lines
    ]
    return TextTable(
        name="noise",
        title="What was measured, and with what noise",
        columns=("query", "measured", "noise", "share of the budget", f"one {plan.unit.name} moves it by"),
        rows=tuple(rows),
        note="Noise and distance are in the measure of what was summed: squares where a deviation or a "
        "variance is asked for.",
    )


def percent(share: float) -> str:
    return f"{100 * share:g}{GAP}%"


def _several(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


# The sections of a release's page that tell how well the data fits what was declared.


def misfit_section(quality: DataQuality | None) -> Iterator[Section]:
    """What did not fit and noise does not explain; nothing where there is no such thing."""
    if quality is not None and quality.warnings:
        yield Section(
            title="Not all records fit what was declared",
            paragraphs=(f"Read the answers with care. {ADVICE}",),
            points=quality.warnings,
        )


def quality_section(quality: DataQuality | None, unit: PrivacyUnit) -> Iterator[Section]:
    """How many records were read, and how many are in each cell of each column."""
    if quality is None:
        return
    value, low, high = quality.records
    whose = "" if unit.column is None else f" {_bounded(unit)}"
    rows = tuple(told_rows(quality))
    calm = (
        ""
        if quality.warnings
        else (
            " Taken together, none of them is beyond what noise and a usual share of misfits explain; a "
            "single interval may leave out the truth by chance."
        )
    )
    table = TextTable(
        name="quality",
        title="Records that did not fit",
        columns=("column", "what", "records", "lower", "upper", "share"),
        rows=rows,
        note=f"The share is of all records; the file of data quality has its interval too.{calm}",
    )
    yield Section(
        title="How well the data fits what was declared",
        paragraphs=(
            f"About {value:,.0f} records were read (between {low:,.0f} and {high:,.0f}).{whose} These counts "
            "are noisy like all others and part of what was paid. They are of the whole table, whichever "
            "records a query is about.",
        ),
        tables=(table,) if rows else (),
    )


def _bounded(unit: PrivacyUnit) -> str:
    many = counted(unit.max_rows, "record")
    does = "counts" if unit.max_rows == 1 else "count"
    return f"Of each {unit.name} at most {many} {does} here, and records without one do not."
