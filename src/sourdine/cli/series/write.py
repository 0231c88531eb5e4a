"""`sourdine series report`: a page with time on the axis."""

from pathlib import Path
from typing import Annotated

import typer

from sourdine.cli.plan import SpecFile
from sourdine.cli.series.start import opened_series
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson


def report(
    spec: SpecFile,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("series.html"),
    as_json: AsJson = False,
) -> None:
    """Write a page of all that was published: values over time with bands, and what correlation gained.

    Nothing is read or spent: it is made from rows that were published.

    Example: sourdine series report visits.toml -o visits.html
    """
    from sourdine.report.pages.series import series_page

    show.check_page(output)
    with opened_series(spec) as series:
        page = series_page(series.answers(), series.plan)
    show.keep(page.html(), output)
    if as_json:
        show.document({"page": str(output)})
    else:
        show.say(f"The page is {output}.")
