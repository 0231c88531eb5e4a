"""`sourdine certificate`: is a release as published, was it paid, who signed it, and what does it mean?"""

import typer

from sourdine.cli.certificate.keys import keys
from sourdine.cli.certificate.show import show
from sourdine.cli.certificate.sign import sign
from sourdine.cli.certificate.verify import verify

app = typer.Typer(no_args_is_help=False)
app.command(name="show")(show)
app.command(name="verify")(verify)
app.command(name="keys")(keys)
app.command(name="sign")(sign)


@app.callback(invoke_without_command=True)
def certificate(ctx: typer.Context) -> None:
    """Is a release safe, as published, paid and signed? Start with show.

    Example: sourdine certificate show people-release --html verdict.html
    """
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())
