"""`sourdine train`: plan a run of private training, and carry it out."""

import typer

from sourdine.cli.train.check import check
from sourdine.cli.train.fit import fit
from sourdine.cli.train.memory import memory
from sourdine.cli.train.plan import plan
from sourdine.cli.train.sweep import sweep

app = typer.Typer()
app.command(name="plan")(plan)
app.command(name="check")(check)
app.command(name="fit")(fit)
app.command(name="memory")(memory)
app.command(name="sweep")(sweep)


@app.callback(invoke_without_command=True)
def train(ctx: typer.Context) -> None:
    """Train on sensitive data: what it will cost and take, then a model with its certificate.

    Example: sourdine train plan --size 60000 --model scattering --epsilon 3
    """
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())
