"""`sourdine budget`: what a plan costs, what a budget buys, what it means, and how the choices trade."""

import typer

from sourdine.cli.budget.calibrate import calibrate
from sourdine.cli.budget.dpsgd import curves, dpsgd
from sourdine.cli.budget.explain import explain

app = typer.Typer()
app.command(name="dpsgd")(dpsgd)
app.command(name="calibrate")(calibrate)
app.command(name="curves")(curves)
app.command(name="explain")(explain)


@app.callback(invoke_without_command=True)
def budget(ctx: typer.Context) -> None:
    """Plan a privacy budget: price a run, find the noise for a budget, say what it means, draw the curves.

    Example: sourdine budget dpsgd -s 60000 -b 64 -n 1.0 -e 15 --json
    """
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())
