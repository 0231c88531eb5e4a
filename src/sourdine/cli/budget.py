"""`sourdine budget`: what a plan costs, what a budget buys, and how the choices trade."""

import math
import textwrap
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.explain import explain
from sourdine.cli.number import number
from sourdine.core import check
from sourdine.core.errors import InvalidParameter

if TYPE_CHECKING:
    from sourdine.accounting.dpsgd import Sampler, Training
    from sourdine.accounting.training_cost import TrainingCost

app = typer.Typer(no_args_is_help=False)
app.command(name="explain")(explain)

_WIDTH = 100
_MOST_NOISE = 2**20

Size = Annotated[int | None, typer.Option("--size", "-s", help="Examples in the data.")]
Batch = Annotated[int | None, typer.Option("--batch", "-b", help="Examples in a batch, on average.")]
Epochs = Annotated[int | None, typer.Option("--epochs", "-e", help="Passes over the data.")]
Rate = Annotated[str | None, typer.Option(help="Instead of size and batch: the sampling rate.")]
Steps = Annotated[int | None, typer.Option(help="Instead of epochs: the steps of the optimizer.")]
Draw = Annotated[str, typer.Option("--sampler", help="How batches are drawn: poisson, fixed or shuffle.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback(invoke_without_command=True)
def budget(ctx: typer.Context) -> None:
    """Plan a privacy budget: price a training run, find the noise for a budget, draw the curves.

    Example: sourdine budget dpsgd -s 60000 -b 64 -n 1.0 -e 15 --json
    """
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


@app.command()
def dpsgd(
    *,
    size: Size = None,
    batch: Batch = None,
    noise: Annotated[str, typer.Option("--noise", "-n", help="Noise, in units of the clipping norm.")],
    epochs: Epochs = None,
    delta: Annotated[str, typer.Option("--delta", "-d", help="The delta of the guarantee.")] = "1e-5",
    orders: Annotated[
        str | None, typer.Option("--orders", "-a", help="Renyi orders, such as 2,4,8.5 (instead of many).")
    ] = None,
    sampler: Draw = "poisson",
    rate: Rate = None,
    steps: Steps = None,
    as_json: AsJson = False,
) -> None:
    """Say what a run of private training (DP-SGD) costs, before it runs.

    Examples: sourdine budget dpsgd -s 60000 -b 64 -n 1.0 -e 15 ·
    sourdine budget dpsgd --rate 0.001 --steps 14070 -n 1.0 -d 1e-6
    """
    from sourdine.accounting.training_cost import cost_of_steps, cost_of_training

    kind, level = _sampler("dpsgd", sampler), _noise("dpsgd", noise)
    share = float(number("dpsgd", "delta", delta, 0, 1))
    chosen = _orders(orders)
    told = _stated("dpsgd", size, batch, epochs, rate, steps)
    if isinstance(told, _Sampled):
        _only_poisson("dpsgd", sampler)
        cost = cost_of_steps(level, told.rate, told.steps, share, orders=chosen)
        run = f"noise {level:g}"
    else:
        training = told.training(level, kind)
        cost = cost_of_training(training, share, orders=chosen)
        run = _said(training)
    if as_json:
        from sourdine.cli import show

        show.document(_plain(cost))
    else:
        _print_cost(cost, run)
