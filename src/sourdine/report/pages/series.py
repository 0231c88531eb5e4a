"""The page of a series: what was published, over time, and what correlated noise gained."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from sourdine.accounting.certificate import Certificate
from sourdine.core.display import Figure
from sourdine.report.charts.answers import draw_series
from sourdine.report.charts.base import COLOURS, Row
from sourdine.report.charts.synthetic import draw_tree, strength
from sourdine.report.pages.ledger import certificate_table, epsilon_words
from sourdine.report.view import Page, Section, TextTable, show
from sourdine.tables.crosstab import worth_showing
from sourdine.tables.measurement import plural
from sourdine.tables.series import SeriesAnswers, SeriesPlan, SeriesView
from sourdine.tables.series.answers import SeriesRows
from sourdine.tables.series.forecast import forecast_errors
from sourdine.tables.synthetic import SyntheticModel, SyntheticRelease
from sourdine.tables.synthetic.model import Residual, SyntheticPart
from sourdine.tables.synthetic.synthesis import LIMITS

_MOST_KEYS = 40  # rows of a table
_TOLD_KEYS = 3  # in a title


def series_page(answers: SeriesAnswers, plan: SeriesPlan) -> Page:
    """Everything that was published up to the last closed period."""
    calendar, percent = answers.calendar, f"{answers.confidence:.0%}"
    sections = [_section(answers, plan, table, view) for table in answers.tables for view in answers.views]
    names = ", ".join(dict.fromkeys(each.line.query for each in answers.tables))
    return Page(
        title=f"{names}: {calendar.name(1)} to {calendar.name(answers.closed)}",
        lead=(
            f"{answers.closed} of {calendar.periods} periods, published one by one and paid once: "
            f"{plan.privacy.words} for each {plan.unit.name}, who counts {plan.block.participation.words}. "
            f"Dark bands hold with {percent} at each period by itself, light ones at all periods together."
        ),
        sections=(*(each for each in sections if each is not None), _gain(plan)),
    )


def _section(answers: SeriesAnswers, plan: SeriesPlan, table: SeriesRows, view: SeriesView) -> Section | None:
    """A view of one thing over time: a chart of the first keys, and the last period of all as a table."""
    if answers.closed < view.first:
        return None
    line, shown = table.line, table.keys[: len(COLOURS)]
    measure = line.measurement.step(plan.schema, plan.unit)[1]
    what = f"{line.label}, {view.label}" if line.label != view.label else line.label
    rows = list(_rows(answers, table, view))
    names = tuple(_name(key) for key in shown)
    at = answers.calendar.name(answers.closed)
    last = [row for row in rows if row["name"] == at]
    body = tuple(
        (row["key"], *worth_showing(*(float(row[name] or 0) for name in ("value", "lower", "upper"))))
        for row in last[:_MOST_KEYS]
    )
    values = [f"{show(key)} {value:,f} ({lower:,f} to {upper:,f})" for key, value, lower, upper in body]
    ending = f"at {at} {', '.join(values)}" if len(values) <= _TOLD_KEYS else f"by {plan.block.period}"
    figure = Figure(
        title=f"{line.query}, {what}: {ending}",
        chart=draw_series([row for row in rows if row["key"] in names], names=names, measure=measure),
    )
    return Section(
        title=f"{line.query}: {what}",
        figures=(figure,),
        tables=(TextTable(name="last", title=f"At {at}", columns=("key", "value", "from", "to"), rows=body),),
    )


def _rows(answers: SeriesAnswers, table: SeriesRows, view: SeriesView) -> Iterator[Row]:
    """A row for each key and period."""
    for period in view.periods(answers.closed):
        query, label = table.line.query, table.line.label
        alone = answers.value(view, period, query=query, label=label)
        joint = answers.value(view, period, query=query, label=label, joint=True)
        for i, key in enumerate(table.keys):
            if period < table.starts[i]:  # nothing was measured of it yet
                continue
            yield {
                "day": answers.calendar.start(period).isoformat(),
                "name": answers.calendar.name(period),
                "key": _name(key),
                "value": float(alone.value[i]),
                "lower": float(alone.lower[i]),
                "upper": float(alone.upper[i]),
                "joint_lower": float(joint.lower[i]),
                "joint_upper": float(joint.upper[i]),
            }


def _name(key: tuple[object, ...]) -> str:
    return ", ".join(map(str, key)) or "all"


def _gain(plan: SeriesPlan) -> Section:
    """What the same budget would have given without correlation."""
    rows = tuple(
        (f"{each.query}: {each.label}, {each.view}", each.error, each.independent, each.anew)
        for each in forecast_errors(plan)
    )
    return Section(
        title="What correlated noise gained",
        paragraphs=(
            f"The error of a typical period with {plan.confidence:.0%} confidence, in the measure of the "
            "data: as it was published, with independent noise in each period, and with each release paid "
            "for anew, all out of the same budget.",
            plan.choice.words(plan.block.views),
        ),
        tables=(
            TextTable(
                name="gain",
                title="Errors by how the budget is spent",
                columns=("what", "published", "independent", "paid anew"),  # four fit a telephone
                rows=rows,
            ),
        ),
    )


# The page of a synthetic table: what was measured and may be trusted, what was not, and how well it fits.


_MOST_PARTS = 6  # whose trees are drawn
_MOST_CELLS = 20  # of a table that is shown
_MOST_TABLES = 20  # whose fit is told
_MOST_PAIRS = 200  # that are listed as not measured


def synthetic_page(release: SyntheticRelease, certificate: Certificate) -> Page:
    """One page about one synthetic table: all of it is noisy, and safe to publish with the table."""
    plan, model, table = release.plan, release.model, release.values
    people = plural(certificate.unit)
    return Page(
        title=f"A synthetic table of {len(table):,} rows and {len(plan.names)} columns",
        lead=(
            f"No row is of anybody. The rows were drawn {certificate.time:%Y-%m-%d} from noisy tables of "
            f"{people}, which protect each {certificate.unit}: {epsilon_words(certificate)}. Whatever is "
            "computed from them costs nothing more."
        ),
        sections=(
            *_warnings(release),
            Section(title="What not to conclude", points=(*plan.notes, *LIMITS)),
            *_trees(model),
            _not_measured(model),
            *_fit(release),
            Section(title="Payment", tables=(certificate_table(certificate),)),
        ),
    )


def _warnings(release: SyntheticRelease) -> Iterator[Section]:
    if not release.secure:
        yield Section(
            title="This table protects nobody",
            paragraphs=("It was made with seeded noise, which anybody can repeat and take away.",),
        )


def _trees(model: SyntheticModel) -> Iterator[Section]:
    """Which relations were measured: a picture for each part, and a table of them."""
    for part in model.parts[:_MOST_PARTS]:
        if not part.tree.edges:
            continue
        where = _where(model, part)
        rows = tuple(
            (*(model.columns[each].name for each in edge), f"{100 * strength(part, *edge):.1f} %")
            for edge in part.tree.edges
        )
        yield Section(
            title=f"Relations that were measured{where}",
            paragraphs=(
                "Lines join columns whose counts together were measured. They may be trusted as far as noise "
                "allows. A thicker line is a stronger relation.",
            ),
            figures=(Figure(title=f"The tree of relations{where}", chart=draw_tree(model, part)),),
            tables=(
                TextTable(
                    name="edges",
                    title="Pairs, and the share of records that would have to move for independence",
                    columns=("column", "with", "distance"),
                    rows=rows,
                ),
            ),
        )


def _where(model: SyntheticModel, part: SyntheticPart) -> str:
    return "" if model.target is None else f" where {model.target.name} is {part.name}"


def _not_measured(model: SyntheticModel) -> Section:
    """Pairs of which nothing was measured in any part."""
    known = {frozenset(pair) for part in model.parts for pair in model.edges(part)}
    names = [column.name for column in model.columns]
    open_pairs = [pair for pair in combinations(names, 2) if frozenset(pair) not in known]
    listed = "; ".join(f"{one} and {other}" for one, other in open_pairs[:_MOST_PAIRS])
    more = len(open_pairs) - _MOST_PAIRS
    rest = f"; and {more:,} more" if more > 0 else ""
    return Section(
        title="Relations that were not measured",
        paragraphs=(
            f"{len(open_pairs):,} of {len(names) * (len(names) - 1) // 2:,} pairs of columns were measured "
            "in no tree. In the rows they are related only through the columns between them, and nobody can "
            "say how wrong that is without paying for it. The same holds for three columns and more.",
            f"They are: {listed}{rest}." if open_pairs else "All pairs were measured.",
        ),
    )


def _fit(release: SyntheticRelease) -> Iterator[Section]:
    """Every measured table beside the rows."""
    residuals = release.residuals
    rows = tuple(
        (
            each.part or "all",
            " and ".join(each.columns),
            each.noisy.size,
            round(float(each.deviation.max()), 1),
            round(each.mean, 2),
            round(each.worst, 2),
        )
        for each in sorted(residuals, key=lambda each: -each.mean)[:_MOST_TABLES]
    )
    hidden = len(residuals) - len(rows)
    yield Section(
        title="How well the rows fit what was measured",
        paragraphs=(
            "A residual is the number of rows in a cell less its noisy count, in standard deviations of the "
            "noise. About 1 and less is noise; the rows cannot follow every noisy table at once, since those "
            "do not agree among each other.",
        ),
        tables=(
            TextTable(
                name="residuals",
                title="Residuals of measured tables, the largest first",
                columns=("part", "table", "cells", "deviation of the noise", "root mean square", "largest"),
                rows=rows,
                note=f"{hidden:,} more tables fit better." if hidden else "",
            ),
        ),
    )
    yield Section(
        title="Noisy and synthetic counts",
        paragraphs=("Each noisy count, the rows in the same cell, and the residual.",),
        tables=tuple(_counts(each) for each in residuals if len(each.columns) == 1),
    )


def _counts(residual: Residual) -> TextTable:
    labels: Sequence[str] = residual.labels[0]
    order = np.sort(np.argsort(-residual.rows, kind="stable")[:_MOST_CELLS])  # bins stay in their order
    rows = tuple(
        (
            labels[place],
            round(float(residual.noisy[place])),
            round(float(residual.rows[place])),
            round(float(residual.scores[place]), 2),
        )
        for place in order.tolist()
    )
    hidden = residual.noisy.size - len(rows)
    where = f" where the target is {residual.part}" if residual.part else ""
    return TextTable(
        name="counts",
        title=f"{residual.columns[0]}{where}",
        columns=("cell", "noisy", "rows", "residual"),
        rows=rows,
        note=f"{hidden:,} smaller cells are not shown." if hidden > 0 else "",
    )
