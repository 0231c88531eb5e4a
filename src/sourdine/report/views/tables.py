"""What tables, plans, releases and answers show of themselves.

A table shows what is declared of it, and nothing that was read.
"""

from collections.abc import Iterable
from dataclasses import replace

from sourdine.core.display import Figure, figure, stack, view
from sourdine.core.errors import InvalidParameter
from sourdine.frames.schema import Category, Column, Flag, Integer, Real, Text
from sourdine.frames.times import Date, Datetime
from sourdine.report.charts.answers import draw_alone, draw_forecasts
from sourdine.report.charts.synthetic import draw_tree
from sourdine.report.crosstab import cross_table
from sourdine.report.finding import finding
from sourdine.report.pages.release import answer_table, percent, quality_section, reading_note
from sourdine.report.view import Cell, Section, TextTable
from sourdine.report.views.accounting import release_view
from sourdine.report.views.view import View
from sourdine.tables import Answer, Answers, FoundBounds, ReleasePlan, Table, TableRelease
from sourdine.tables.crosstab import Crosstab
from sourdine.tables.forecast import quality_forecast
from sourdine.tables.measurement import plural
from sourdine.tables.quality import CHECKED_WORDS, DataQuality, ExactQuality, value_words
from sourdine.tables.synthetic import SyntheticRelease

_MOST_ROWS = 20  # of one answer
_ALL_ROWS = 60  # of several answers; beyond them each is cut to a few
_FEW_ROWS = 8
_IN_FRAME = "in to_pandas()"
_MOST_ANSWERS = 12
_FEW_KEYS = 6


@view.register
def _table(table: Table) -> View:
    size = "" if table.size is None else f"About {table.size:,} records. "
    rows = [
        (name, column.type, _declared(column), _missing(column))
        for name, column in table.schema.columns.items()
    ]
    declared = TextTable(
        name="columns", title="", columns=("column", "type", "declared", "missing values"), rows=tuple(rows)
    )
    notes = (*table.text.caveats, *((f"{CHECKED_WORDS}.",) if table.checked else ()))
    return View(
        title=f"Table of {plural(table.unit.name)}",
        lead=f"{size}{_unit(table)} Guarantees are for {table.neighbours} neighbours.",
        sections=(Section(title="", tables=(declared,), points=notes),),
    )


@view.register
def _plan(plan: ReleasePlan) -> View:
    forecasts = [*plan.forecast(), *filter(None, [quality_forecast(plan)])]
    rows: list[tuple[Cell, ...]] = [
        (each.query, each.statistic, each.words, each.note, each.noise, f"{100 * float(each.share):.3g} %")
        for each in forecasts
    ]
    table = TextTable(
        name="plan",
        title="",
        columns=("query", "statistic", "error", "note", "noise", "share of the budget"),
        rows=tuple(rows),
        note=f"Errors stay within this with {percent(plan.confidence)} confidence, each by itself.",
    )
    notes = (*((plan.warning,) if plan.warning else ()), *plan.notes)
    return View(
        title=f"Plan at {plan.guarantee.words} for each {plan.unit.name}; nothing is spent",
        sections=(
            Section(title="", tables=(table,)),
            *((Section(title="Notes", points=notes),) if notes else ()),
        ),
    )


@figure.register
def _errors(plan: ReleasePlan, query: str | None = None, *_: str | None) -> Figure:
    return draw_forecasts(plan, _one_query(query, [each.name for each in plan.queries]))


@view.register
def _release(release: TableRelease) -> View:
    names = ", ".join(query.name for query in release.plan.queries[:_FEW_KEYS])
    return release_view(
        release,
        f"Release of {names}: {release.plan.guarantee.words} for each {release.plan.unit.name}",
        *_values(release.values),
        *(
            replace(each, title="Data quality")
            for each in quality_section(release.quality, release.plan.unit)
        ),
    )


@figure.register
def _release_figure(release: TableRelease, query: str | None = None, statistic: str | None = None) -> Figure:
    return _answers_figure(release.values, query, statistic)


@view.register
def _answers(answers: Answers) -> View:
    count = len(answers.each)
    return View(
        title=f"{count} {'answer' if count == 1 else 'answers'} with {percent(answers.confidence)} "
        "confidence intervals",
        sections=_values(answers),
    )


@figure.register
def _answers_figure(answers: Answers, query: str | None = None, statistic: str | None = None) -> Figure:
    """The figure of one answer, or those of all statistics of a query below each other."""
    name = _one_query(query, list(dict.fromkeys(each.query for each in answers.each)))
    selection = (
        [answers[name, statistic]] if statistic else [each for each in answers.each if each.query == name]
    )
    all_figures = [_draw(each) for each in selection]
    figures = [each for each in all_figures if each is not None]
    if not figures:
        raise _nothing_to_draw(selection[0])
    if len(figures) == 1:
        return figures[0]
    notes = dict.fromkeys(each.note for each in figures)
    return Figure(title=name, chart=stack(figures), note=" ".join(notes))


@view.register
def _answer(answer: Answer) -> View:
    return View(
        title=finding(answer, answer.confidence),
        sections=(Section(title="", tables=(answer_table(answer, most=_MOST_ROWS, rest=_IN_FRAME),)),),
    )


@view.register
def _crosstab(crosstab: Crosstab) -> View:
    table = cross_table(crosstab, _MOST_ROWS, title="", rest=_IN_FRAME)
    return View(title=crosstab.title, sections=(Section(title="", tables=(table,)),))


@figure.register
def _answer_figure(answer: Answer, *_: str | None) -> Figure:
    one = _draw(answer)
    if one is None:
        raise _nothing_to_draw(answer)
    return one


@view.register
def _quality(quality: DataQuality) -> View:
    return View(
        title="Data quality",
        lead="Noisy counts of records that do not fit what is declared.",
        sections=(Section(title="", points=quality.warnings), *_values(quality.answers)),
    )


@view.register
def _exact(quality: ExactQuality) -> View:
    """Every line has the notice, so that none is passed on without it."""
    return View(title=quality.notice, sections=(Section(title="", points=tuple(quality.lines())),))


@view.register
def _bounds(bounds: FoundBounds) -> View:
    lower, upper = bounds.values
    return release_view(
        bounds,
        f"Bounds of {bounds.plan.column}: {value_words(lower)} to {value_words(upper)}",
        Section(title="", paragraphs=(bounds.plan.words,)),
    )


@view.register
def _synthetic(release: SyntheticRelease) -> View:
    plan, model = release.plan, release.model
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (part.name or "all", f"{part.tree.total:,.0f}", "; ".join(map(" - ".join, model.edges(part))))
        for part in model.parts
    )
    trees = TextTable(
        name="trees", title="", columns=("part", "about", "pairs that were measured"), rows=rows
    )
    return release_view(
        release,
        f"Synthetic table of {len(release.values):,} rows: {plan.privacy.words} for each {plan.unit.name}",
        Section(title="", tables=(trees,)),
    )


@figure.register
def _tree(release: SyntheticRelease, *_: str | None) -> Figure:
    model = release.model
    trees = [
        Figure(
            title="Relations that were measured" + (f", {part.name}" if part.name else ""),
            chart=draw_tree(model, part),
        )
        for part in model.parts[:_FEW_KEYS]
    ]
    if len(trees) == 1:
        return trees[0]
    return Figure(title="Relations that were measured", chart=stack(trees))


def _values(answers: Answers) -> tuple[Section, ...]:
    shown = answers.each[:_MOST_ANSWERS]
    many = sum(min(len(each.keys), _MOST_ROWS) for each in shown) > _ALL_ROWS
    most = _FEW_ROWS if many else _MOST_ROWS
    tables = tuple(answer_table(each, most=most, rest=_IN_FRAME) for each in shown)
    hidden = len(answers.each) - _MOST_ANSWERS
    more = (f"{hidden:,} more answers: name one, or use to_pandas().",) if hidden > 0 else ()
    return (Section(title="", points=more, tables=tables),)


def _draw(answer: Answer) -> Figure | None:
    chart = draw_alone(answer)
    if chart is None:
        return None
    title = f"{finding(answer, answer.confidence)}"
    return Figure(title=title, chart=chart, note=reading_note(answer, chart, answer.confidence))


def _nothing_to_draw(answer: Answer) -> InvalidParameter:
    reason = "only an order was published, without counts" if answer.keys else "no key reached the threshold"
    return InvalidParameter(
        f"The answer '{answer.statistic}' of '{answer.query}' has nothing to draw: {reason}. Print it."
    )


def _one_query(name: str | None, names: list[str]) -> str:
    if name is None and len(names) == 1:
        return names[0]
    if name in names:
        return str(name)
    listed = ", ".join(map(repr, names))
    wrong = "Which query is to be drawn?" if name is None else f"There is no query {name!r} to draw."
    raise InvalidParameter(f"{wrong} Name one of {listed}.")


def _unit(table: Table) -> str:
    unit = table.unit
    if unit.column is None:
        return f"Every record is one {unit.name}."
    rows, groups = (_several(n, what) for n, what in ((unit.max_rows, "record"), (unit.max_groups, "group")))
    return f"Records with the same '{unit.column}' are one {unit.name}, who counts with {rows} in {groups}."


def _several(number: int, noun: str) -> str:
    return f"at most {number:,} {noun}{'' if number == 1 else 's'}"


def _declared(column: Column) -> str:
    match column:
        case Integer() | Real():
            return f"from {value_words(column.lower)} to {value_words(column.upper)}"
        case Category():
            return _listed(column.keys)
        case Flag():
            return "true or false"
        case Text():
            return "keys are chosen privately"
        case Date() | Datetime():
            return f"from {column.first} to {column.last}{f', in {column.zone}' if column.zone else ''}"


def _listed(keys: Iterable[object]) -> str:
    names = [str(key) for key in keys]
    more = f" and {len(names) - _FEW_KEYS:,} more" if len(names) > _FEW_KEYS else ""
    return f"{', '.join(names[:_FEW_KEYS])}{more}"


def _missing(column: Column) -> str:
    return "left out" if column.missing == "drop" else f"count as {value_words(column.missing)}"
