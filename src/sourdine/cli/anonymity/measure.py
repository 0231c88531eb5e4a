"""`sourdine anonymity measure`: how identifiable the people in a table are."""

import dataclasses
import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.anonymity import options
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson
from sourdine.core import check

if TYPE_CHECKING:
    from sourdine.anonymity import Measures


def measure(
    table: options.TableFile,
    *,
    quasi: options.Quasi,
    sensitive: options.Sensitive = None,
    ordered: options.Ordered = None,
    hierarchical: options.Hierarchical = None,
    hierarchies: options.Hierarchies = None,
    population: Annotated[
        Path | None,
        typer.Option(help="A table of everybody the people may be among, for the journalist's risk."),
    ] = None,
    threshold: Annotated[str, typer.Option(help="The risk above which a record counts as at risk.")] = "0.2",
    subsets: Annotated[
        int,
        typer.Option(help="The largest number of columns in the combinations that are tried; 0 tries none."),
    ] = 2,
    missing: options.Absent = "value",
    spec: options.Spec = None,
    encoding: options.Encoding = "utf-8",
    html: options.Html = None,
    as_json: AsJson = False,
) -> None:
    """Measure k, l, t, delta and the risk of being linked. They describe raw data: do not publish them.

    Values of a sensitive column are equally far apart for t, unless they are said to be ordered or
    hierarchical.

    Examples: sourdine anonymity measure people.csv --quasi age,sex,postcode --sensitive disease ·
    sourdine anonymity measure people.csv --quasi age,sex --sensitive pay --ordered pay --html report.html
    """
    from sourdine.anonymity import Missing
    from sourdine.anonymity import measure as measure_table
    from sourdine.report.pages.anonymity import limits_words, measure_rows, sensitive_rows

    options.check_page(html, (table, population, spec))
    limit = options.share("anonymity measure", "threshold", threshold)
    if not 0 < limit < 1:
        raise check.fail("anonymity measure", "threshold", "be above 0 and below 1", threshold)
    subsets = check.integer("anonymity measure", "subsets", subsets, 0, 100)
    secret = options.names(sensitive)
    measures = measure_table(
        table,
        quasi=options.names(quasi),
        sensitive=secret,
        distances=options.distances_of(options.names(ordered), options.names(hierarchical), hierarchies),
        population=population,
        threshold=limit,
        subsets=subsets,
        columns=options.schema_of(spec),
        missing=options.one_of("missing", missing, Missing),
        text={"encoding": encoding},
    )
    if html is not None:
        from sourdine.report.pages.anonymity import measure_page

        show.keep(measure_page(measures, table.name).html(), html)
    if as_json:
        show.document({"note": note(), **plain(measures), "report": str(html) if html else None})
        return
    show.line(note())
    show.table(("measure", "value", "what it says"), measure_rows({"value": measures}), numbers=("value",))
    if measures.sensitive:
        secrets = ("column", "measure", "worst class", "what it says")
        show.table(secrets, sensitive_rows({"value": measures}), numbers=("worst class",))
    if measures.subsets:
        headings = ("combination", "unique records", "average risk")
        rows = [
            (
                " + ".join(map(show.one_line, each.columns)),
                f"{each.unique:,}",
                f"{100 * each.average_risk:.3g} %",
            )
            for each in measures.subsets[:10]
        ]
        show.table(headings, rows, numbers=headings[1:])
    show.say(limits_words())
    if html is not None:
        show.line(f"Wrote {html}.")


def note() -> str:
    """The mark on everything that was measured on raw data."""
    from sourdine.anonymity import NOT_FOR_PUBLICATION

    return NOT_FOR_PUBLICATION


def plain(measures: "Measures") -> dict[str, object]:
    """Measures for machines; what is infinite is null."""
    document = _finite(dataclasses.asdict(measures))
    assert isinstance(document, dict)
    return document


def _finite(thing: object) -> object:
    if isinstance(thing, dict):
        return {name: _finite(each) for name, each in thing.items()}
    if isinstance(thing, tuple | list):
        return [_finite(each) for each in thing]
    if isinstance(thing, Fraction):
        return float(thing)
    if isinstance(thing, float) and not math.isfinite(thing):
        return None
    return thing
