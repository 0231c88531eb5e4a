"""`sourdine series start`: one charge for the whole horizon. And `status`: where a series stands."""

from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.plan import SpecFile
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson

if TYPE_CHECKING:
    from sourdine.tables.series import SeriesPlan, TableSeries
    from sourdine.tables.specification import Specification


def start(
    spec: SpecFile,
    *,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only say what it would cost and how accurate it would be.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Pay for all periods of a series at once. No record is read.

    The correlation of the noise is chosen by its error for what is declared as 'publish'. A start that was
    cut off is finished by the same command, and is not paid twice.

    Examples: sourdine series start visits.toml --plan · sourdine series start visits.toml
    """
    from sourdine.tables.series import TableSeries
    from sourdine.tables.specification import Specification

    specification = Specification.load(spec)
    planned = specification.series_plan()
    if not plan:
        with specification.open_ledger() as ledger:
            TableSeries.start(planned, specification.series_path, ledger).close()
    if as_json:
        show.document(plain_plan(planned, specification, paid=not plan))
        return
    show.say(show.one_line(planned.words))
    print_errors(planned)
    if plan:
        show.say("Nothing was read or spent.")
    else:
        show.say(f"Paid for all {planned.block.periods} periods. The state is {specification.series_path}.")


def print_errors(planned: "SeriesPlan") -> None:
    """What each view will be worth, beside what the same budget gives without correlation."""
    from sourdine.core.format import shorten
    from sourdine.tables.series.forecast import forecast_errors

    rows = [
        (
            *map(show.one_line, (each.query, each.label, each.view)),
            *map(shorten, (each.error, each.independent, each.anew)),
        )
        for each in forecast_errors(planned)
    ]
    ends = ("error", "independent periods", "paid anew")
    show.table(("query", "statistic", "view", *ends), rows, numbers=ends)


def plain_plan(planned: "SeriesPlan", specification: "Specification", *, paid: bool) -> dict[str, object]:
    """A plan for machines."""
    from dataclasses import asdict

    from sourdine.tables.series.forecast import forecast_errors

    return {
        "paid": paid,
        "periods": planned.block.periods,
        "state": str(specification.series_path),
        "correlation": planned.choice.name,
        "errors": [asdict(each) for each in forecast_errors(planned)],
    }


def status(spec: SpecFile, *, as_json: AsJson = False) -> None:
    """Say where a series stands: how many periods are closed, and which is next. Nothing is read or spent.

    Example: sourdine series status visits.toml
    """
    from dataclasses import asdict

    with opened_series(spec) as series:
        now = series.status()
    if as_json:
        show.document(asdict(now))
        return
    show.say(f"{now.closed} of {now.periods} periods are closed. Next: {now.next_period or 'none'}.")
    if not now.paid:
        show.say("It is not paid: its start was cut off. Start it again.", mark="WARNING: ")
    if now.restored:
        show.say(
            "The state is a copy, or was restored. It takes no period until you say how many were shown: "
            "sourdine series resume --shown.",
            mark="WARNING: ",
        )


def opened_series(spec: SpecFile) -> "TableSeries":
    """The series of a specification, which was started before."""
    from sourdine.tables.series import TableSeries
    from sourdine.tables.specification import Specification

    specification = Specification.load(spec)
    return TableSeries.open(specification.series_plan(), specification.series_path)
