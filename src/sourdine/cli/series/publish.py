"""`sourdine series publish`: close the next period, or show one that is closed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.plan import MOST_ROWS, SpecFile
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson

if TYPE_CHECKING:
    from sourdine.tables.series import SeriesAnswers


def publish(
    spec: SpecFile,
    *,
    period: Annotated[
        str | None, typer.Option(help="The period, such as 2026-W14. Without it: the next one.")
    ] = None,
    table: Annotated[
        list[Path] | None, typer.Option(help="The file of this period, where each has its own.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write everything up to this period as CSV.")
    ] = None,
    early: Annotated[bool, typer.Option("--early", help="Publish although the period is not over.")] = False,
    as_json: AsJson = False,
) -> None:
    """Close the next period: read what arrived in it, add noise, keep it, and only then show it.

    Nothing is charged: the series was paid when it started. A period that is closed shows the same numbers
    again, whatever the table holds now. Publish when all of a period's records have arrived, for it is never
    read again.

    Examples: sourdine series publish visits.toml · sourdine series publish visits.toml --period 2026-W14 ·
    sourdine series publish visits.toml --table week14.csv -o visits.csv
    """
    from sourdine.tables.crosstab import worth_showing
    from sourdine.tables.series import TableSeries
    from sourdine.tables.specification import Specification

    specification = Specification.load(spec)
    show.check_place(output)
    source = specification.open(table or ())
    with TableSeries.open(specification.series_plan(), specification.series_path) as series:
        answers = series.publish(source, period, early=early)
    if output is not None:
        write_columns(answers, output)
    if as_json:
        show.document({"period": answers.calendar.name(answers.closed), "answers": _last(answers)})
        return
    rows = _last(answers)
    ends = ("value", "lower", "upper")
    show.say(
        f"Period {answers.calendar.name(answers.closed)}, {answers.closed} of {answers.calendar.periods}:"
    )
    show.table(
        ("query", "statistic", "key", "view", *ends),
        [
            [show.one_line(str(row[name])) for name in ("query", "statistic", "key", "view")]
            + [f"{each:,f}" for each in worth_showing(*(float(str(row[name])) for name in ends))]
            for row in rows[:MOST_ROWS]
        ],
        numbers=ends,
    )
    if len(rows) > MOST_ROWS:
        show.say(f"{len(rows) - MOST_ROWS} more rows: keep them with -o.")
    if chosen := _new_keys(answers):
        show.say(show.one_line(f"Chosen in this period: {', '.join(chosen)}. They count from it on."))


def _new_keys(answers: "SeriesAnswers") -> list[str]:
    """The keys that are measured from the last period on, where others were before or are to come."""
    return list(
        dict.fromkeys(
            ", ".join(map(str, key))
            for table in answers.tables
            for key, start in zip(table.keys, table.starts.tolist(), strict=True)
            if start == answers.closed and (start > 1 or table.line.measurement.scope.open)
        )
    )


def _last(answers: "SeriesAnswers") -> list[dict[str, object]]:
    """The rows of the last period."""
    name, columns = answers.calendar.name(answers.closed), answers.columns_at(answers.closed)
    return [
        {field: columns[field][i] for field in columns if field != "period"}
        for i, each in enumerate(columns["period"])
        if each == name
    ]


def write_columns(answers: "SeriesAnswers", path: Path) -> None:
    """Every period up to the last that is closed, as CSV."""
    from sourdine.core.text import csv_text

    columns = answers.columns
    show.keep(csv_text([list(columns), *zip(*columns.values(), strict=True)]), path)
