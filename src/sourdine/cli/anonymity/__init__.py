"""`sourdine anonymity`: how identifiable a table is, and how to make it less so."""

import typer

from sourdine.cli.anonymity import generalise, measure

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Measure how identifiable the people in a table are, and make it coarser. "
    "This is not differential privacy.\n\n"
    "Example: sourdine anonymity measure people.csv --quasi age,sex,postcode --sensitive disease",
)
app.command(name="measure")(measure.measure)
app.command(name="generalise")(generalise.generalise)
