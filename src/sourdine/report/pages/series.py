"""The page of a series: what was published, over time, and what correlated noise gained."""

from collections.abc import Iterator

from sourdine.core.figure import Figure
from sourdine.report.charts.base import COLOURS, Row
from sourdine.report.charts.series import draw_series
from sourdine.report.pages.page import Page, Section
from sourdine.report.table import TextTable, show
from sourdine.tables.crosstabs.cell import worth_showing
from sourdine.tables.series import SeriesAnswers, SeriesPlan, SeriesView
from sourdine.tables.series.answers import SeriesRows
from sourdine.tables.series.forecast import forecast_errors

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
