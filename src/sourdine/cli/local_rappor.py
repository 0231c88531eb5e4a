"""`sourdine local rappor`: words collected again and again, with a limit on what a device ever reveals."""

import typer

from sourdine.cli import local_rappor_decode, local_rappor_encode, local_rappor_simulate

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Collect words, such as home pages, that people report again and again.\n\n"
    "Example: sourdine local rappor simulate --people 100000",
)
app.command(name="encode")(local_rappor_encode.encode)
app.command(name="decode")(local_rappor_decode.decode)
app.command(name="simulate")(local_rappor_simulate.simulate)
