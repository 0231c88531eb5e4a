"""`sourdine series extend`: a longer horizon. And `resume`: go on with a state that was restored."""

from typing import Annotated

import typer

from sourdine.cli.plan import SpecFile
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson


def extend(
    spec: SpecFile,
    *,
    periods: Annotated[int, typer.Option(help="How many periods the series will have in all.")],
    as_json: AsJson = False,
) -> None:
    """Pay for more periods. What was published stays, and later periods go on from it.

    Example: sourdine series extend visits.toml --periods 104
    """
    from sourdine.tables.series import TableSeries
    from sourdine.tables.specification import Specification

    specification = Specification.load(spec)
    with (
        TableSeries.open(specification.series_plan(), specification.series_path) as series,
        specification.open_ledger() as ledger,
    ):
        series.extend(periods, ledger)
    if as_json:
        show.document({"periods": periods})
        return
    show.say(
        f"Paid. The series has {periods} periods now; its block goes on saying how many it had at the start."
    )


def resume(
    spec: SpecFile,
    *,
    shown: Annotated[int, typer.Option(help="How many periods were ever shown to anybody.")],
    as_json: AsJson = False,
) -> None:
    """Go on with a state that is a copy or was restored: say how many periods were shown.

    Periods that were shown and are not in the state are lost: their rows will be drawn again, and each is one
    more release, paid now.

    Example: sourdine series resume visits.toml --shown 17
    """
    from sourdine.tables.series import TableSeries
    from sourdine.tables.specification import Specification

    specification = Specification.load(spec)
    with (
        TableSeries.open(specification.series_plan(), specification.series_path) as series,
        specification.open_ledger() as ledger,
    ):
        lost = series.resume(shown, ledger)
    if as_json:
        show.document({"lost": lost})
    elif lost:
        show.say(f"Paid again for {lost} periods that were shown and are lost. Publish them again, in order.")
    else:
        show.say("Nothing was lost, and nothing was paid. Go on with publish.")
