"""Pages on how identifiable a table is, and on what making it coarser has done."""

import math
from collections.abc import Iterator

from sourdine.anonymity import NOT_FOR_PUBLICATION, Generalised, Measures, Sensitivity
from sourdine.core.figure import Figure
from sourdine.report.charts.anonymity import COARSE, RAW, draw_columns, draw_hiding, draw_sizes
from sourdine.report.pages.page import Page, Section
from sourdine.report.table import Cell, TextTable

MOST_SUBSETS = 15
_GAP = "\N{NO-BREAK SPACE}"

LIMITS = (
    "Other knowledge. Whoever knows more than the quasi-identifiers named here, or another table of the same "
    "people, may single them out or rule others out. No figure here accounts for that.",
    "What a class has in common. If all or most of a class share a sensitive value, it is known of everybody "
    "in it without finding anybody: l and t limit this, k does not.",
    "Two tables. Two generalised tables that overlap can be put side by side, and their classes cut each "
    "other into smaller ones. None of these guarantees adds up.",
    "The method itself. Whoever knows that no more was generalised than had to be can sometimes undo part "
    "of it.",
    "Rare values that stay. A sensitive value that one person has shows that this person is in the table.",
)
REMEDY = (
    "A private release answers questions about the table instead of giving it away, with noise whose "
    "guarantee holds whatever others know and adds up over releases. To begin: sourdine init TABLE, then "
    "sourdine release."
)
_NOTE = (
    "This page describes the raw table as well: not for publication. Only the generalised table itself is "
    "meant to be given away."
)


def measure_page(measures: Measures, name: str) -> Page:
    """How identifiable a table is."""
    tables = {RAW: measures}
    figures = [
        Figure(title=_upper(_about_sizes(measures)), chart=draw_sizes(tables), note=_sizes_note(measures)),
        Figure(
            title=_about_risk(measures),
            chart=draw_hiding(tables),
            note="Among n records that are alike, a guess is right once in n times.",
        ),
    ]
    figures += _subset_figure(measures)
    return Page(
        title=f"{name}: {_about_sizes(measures)}",
        lead=f"{NOT_FOR_PUBLICATION} {measures.records:,} records by {_listed(measures.quasi)}.",
        sections=(
            Section(title="What was found", figures=tuple(figures)),
            Section(title="All measures", tables=tuple(_tables({"value": measures}))),
            *_limits(),
        ),
    )


def generalised_page(table: Generalised, before: Measures, after: Measures, name: str) -> Page:
    """What making a table coarser has done, and what it has cost."""
    tables = {RAW: before, COARSE: after}
    widest = max(table.penalties, key=lambda each: table.penalties[each])
    columns = dict(sorted(table.penalties.items(), key=lambda pair: -pair[1]))
    figures = (
        Figure(
            title=f"{_upper(_about_sizes(before))} before; {_about_sizes(after)} after",
            chart=draw_sizes(tables),
        ),
        Figure(
            title=f"The highest risk falls from {_chance(before.k)} to {_chance(after.k)}",
            chart=draw_hiding(tables),
            note="Among n records that are alike, a guess is right once in n times.",
        ),
        Figure(
            title=f"'{widest}' has lost most: {_percent(table.penalties[widest])} of what it could say",
            chart=draw_columns(columns, "loss of the column (NCP)"),
            note="0 % says every value exactly, 100 % says nothing. A record left out counts 100 %.",
        ),
    )
    return Page(
        title=f"{name}: generalised to {table.demand.words}",
        lead=f"{_NOTE} {_method_words(table)}",
        sections=(
            Section(title="What was done", points=tuple(_points(table)), figures=figures),
            Section(title="All measures", tables=tuple(_tables({"raw": before, "generalised": after}))),
            *_limits(),
        ),
    )


def measure_rows(tables: dict[str, Measures]) -> list[tuple[str, ...]]:
    """Every measure in words, for one table or several side by side."""
    rows: list[tuple[str, ...]] = []

    def add(what: str, meaning: str, *shown: str) -> None:
        rows.append((what, *shown, meaning))

    each = list(tables.values())
    add("records", "measured", *(f"{m.records:,}" for m in each))
    if any(m.dropped for m in each):
        add("left out", "a quasi-identifier is missing", *(f"{m.dropped:,}" for m in each))
    add("classes", "of records alike in all quasi-identifiers", *(f"{m.classes:,}" for m in each))
    add("k", "records in the smallest class", *(f"{m.k:,}" for m in each))
    add("average class", "records", *(f"{m.average_class:,.4g}" for m in each))
    add("unique records", "nobody else is like them", *(_of(m.unique, m.records) for m in each))
    add("highest risk", "of being linked, knowing who is in the table", *(_chance(m.k) for m in each))
    add(
        "average risk",
        "the share linked rightly if all are linked",
        *(_percent(m.prosecutor.average) for m in each),
    )
    limit = float(each[0].prosecutor.threshold)
    add(
        "records at risk",
        f"of more than {_percent(limit)}",
        *(_of(m.prosecutor.records_at_risk, m.records) for m in each),
    )
    for field, meaning in (("highest", "knowing the population alone"), ("average", "the same, on average")):
        if all(m.journalist for m in each):
            add(
                f"{field} risk in the population",
                meaning,
                *(_percent(getattr(m.journalist, field)) for m in each),
            )
    return rows


def sensitive_rows(tables: dict[str, Measures]) -> list[tuple[str, ...]]:
    """Every measure of sensitive columns in words, for one table or several side by side."""
    rows: list[tuple[str, ...]] = []
    for columns in zip(*(m.sensitive for m in tables.values()), strict=True):
        name = columns[0].column
        for what, meaning, shown in _sensitive(columns):
            rows.append((name, what, *shown, meaning))
    return rows


def _sensitive(columns: tuple[Sensitivity, ...]) -> Iterator[tuple[str, str, list[str]]]:
    l = columns[0].diversity  # noqa: E741 - its name everywhere
    together = all(each.diversity == l for each in columns)
    yield "l (distinct)", "values in the least varied class", [f"{each.diversity:,}" for each in columns]
    yield (
        "l (entropy)",
        "the same, weighed by how even they are",
        [_number(c.entropy_diversity) for c in columns],
    )
    yield (
        f"c (recursive, l = {l})" if together else "c (recursive, at its l)",
        "(c, l)-diversity holds for every c above",
        [_number(each.c) for each in columns],
    )
    yield "alpha", "share of the most frequent value in a class", [_percent(each.alpha) for each in columns]
    yield (
        f"t ({columns[0].ground})",
        "farthest that a class is from the table, 0 to 1",
        [_number(each.closeness) for each in columns],
    )
    yield (
        "delta",
        "largest |log ratio| of a value's share to the table's",
        [_number(each.delta) for each in columns],
    )
    yield (
        "in classes of one value",
        "records whose value is known for certain",
        [f"{each.homogeneous:,}" for each in columns],
    )


def limits_words() -> str:
    """In two sentences, what none of this protects against."""
    return (
        "This does not protect against whoever knows more than the quasi-identifiers, nor against two such "
        "tables put side by side. A private release does: sourdine init TABLE, then sourdine release."
    )


def _tables(tables: dict[str, Measures]) -> Iterator[TextTable]:
    names = tuple(tables)
    yield TextTable(
        name="measures",
        title="Classes and risk",
        columns=("measure", *names, "what it says"),
        rows=tuple(measure_rows(tables)),
    )
    if sensitive := sensitive_rows(tables):
        yield TextTable(
            name="sensitive",
            title="Sensitive columns: the worst class",
            columns=("column", "measure", *names, "what it says"),
            rows=tuple(sensitive),
        )
    first = next(iter(tables.values()))
    if first.subsets:
        rows: list[tuple[Cell, ...]] = [
            (" + ".join(each.columns), each.unique, _percent(each.share), _percent(each.average_risk))
            for each in first.subsets[:MOST_SUBSETS]
        ]
        yield TextTable(
            name="subsets",
            title="Combinations that single out most",
            columns=("columns", "unique records", "share", "average risk"),
            rows=tuple(rows),
        )


def _subset_figure(measures: Measures) -> list[Figure]:
    if not measures.subsets:
        return []
    first = measures.subsets[0]
    shares = {" + ".join(each.columns): each.average_risk for each in measures.subsets[:MOST_SUBSETS]}
    columns = " and ".join(f"'{name}'" for name in first.columns)
    largest = max(len(each.columns) for each in measures.subsets)
    verb = "links" if len(first.columns) == 1 else "link"
    title = f"{columns} alone {verb} {_percent(first.average_risk)} of the records rightly"
    title += f", the most that up to {largest} columns do" if len(measures.subsets) > 1 else ""
    single = (
        f"They single out {_of(first.unique, measures.records)} records."
        if first.unique
        else "No combination here singles anybody out."
    )
    note = f"The share of records that would be linked rightly by these columns alone. {single}"
    return [Figure(title=title, chart=draw_columns(shares, "records linked rightly"), note=note)]


def _limits() -> tuple[Section, Section]:
    return (
        Section(title="What this does not protect against", points=LIMITS),
        Section(title="What does", paragraphs=(REMEDY,)),
    )


def _points(table: Generalised) -> Iterator[str]:
    yield f"Demanded: {table.demand.words}. Every class of the generalised table satisfies it."
    yield f"Left out: {_of(table.suppressed, table.size)} records."
    loss = table.loss
    yield (
        f"Lost: {_percent(loss.ncp)} by the normalised certainty penalty; discernibility "
        f"{loss.discernibility:,}; {loss.average_class:,.4g} records in a class on average."
    )
    if table.levels is not None and table.heights is not None:
        levels = ", ".join(f"{name} {level} of {table.heights[name]}" for name, level in table.levels.items())
        yield f"Levels of generalisation: {levels}."


def _method_words(table: Generalised) -> str:
    if table.levels is None:
        return "Each class was made as coarse as it had to be, by halving."
    if table.proven:
        return "One level for each column; no other choice of levels loses less."
    return "One level for each column, the best that was found; there may be better ones."


def _about_sizes(measures: Measures) -> str:
    if measures.unique:
        return f"{_of(measures.unique, measures.records)} records are like no other"
    return f"every record is like at least {measures.k - 1:,} others"


def _sizes_note(measures: Measures) -> str:
    return f"Records alike in {_listed(measures.quasi)} form a class. There are {measures.classes:,} classes."


def _about_risk(measures: Measures) -> str:
    risk = measures.prosecutor
    return (
        f"{_of(risk.records_at_risk, measures.records)} records can be linked with a chance above "
        f"{_percent(float(risk.threshold))}"
    )


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _of(count: int, size: int) -> str:
    return f"{count:,} of {size:,} ({_percent(count / size)})"


def _chance(k: int) -> str:
    return "certainty" if k == 1 else f"1 in {k:,}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g}{_GAP}%"


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "∞"
