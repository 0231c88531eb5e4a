"""`sourdine local`: collect answers without having to be trusted."""

import typer

from sourdine.cli import local_clean, local_encode, local_estimate, local_rappor, local_simulate, local_spec

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Collect answers that are made private on each person's own device, and read them together.\n\n"
    "Example: sourdine local spec coffee --epsilon 1 --labels labels.txt -o coffee.json",
)
app.command(name="spec")(local_spec.spec)
app.command(name="encode")(local_encode.encode)
app.command(name="estimate")(local_estimate.estimate)
app.command(name="clean")(local_clean.clean)
app.command(name="simulate")(local_simulate.simulate)
app.add_typer(local_rappor.app, name="rappor")
