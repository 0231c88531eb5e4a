"""`sourdine local rappor`: words collected again and again, with a limit on what a device ever reveals."""

import typer

from sourdine.cli.local.rappor import decode, encode, simulate

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Collect words, such as home pages, that people report again and again.\n\n"
    "Example: sourdine local rappor simulate --people 100000",
)
app.command(name="encode")(encode.encode)
app.command(name="decode")(decode.decode)
app.command(name="simulate")(simulate.simulate)
