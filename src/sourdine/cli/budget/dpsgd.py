"""`sourdine budget dpsgd` and `curves`: what private training costs, and how each choice moves that."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.budget.options import (
    BatchSize,
    Draw,
    Epochs,
    Group,
    MaxBatchSize,
    Relation,
    SamplingRate,
    Size,
    Steps,
    by_sampling_rate,
    need_poisson,
    read_delta,
    read_noise_multiplier,
    read_relation,
    read_sampling_rate,
    read_steps,
    read_training,
    say_training,
)
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson, finite, plain_bracket, say_bracket
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter

if TYPE_CHECKING:
    from sourdine.accounting.dpsgd.cost import AtOrder, TrainingCost


def dpsgd(
    *,
    size: Size = None,
    batch_size: BatchSize = None,
    noise_multiplier: Annotated[
        str, typer.Option("--noise-multiplier", "-n", help="Noise, in clipping norms.")
    ],
    epochs: Epochs = None,
    delta: Annotated[str, typer.Option("--delta", "-d", help="The delta of the guarantee.")] = "1e-5",
    orders: Annotated[
        str | None, typer.Option("--orders", "-a", help="Renyi orders, such as 2,4,8.5. [default: many]")
    ] = None,
    sampler: Draw = "poisson",
    max_batch_size: MaxBatchSize = None,
    neighbours: Relation = None,
    group: Group = 1,
    sampling_rate: SamplingRate = None,
    steps: Steps = None,
    as_json: AsJson = False,
) -> None:
    """Say what a run of private training (DP-SGD) costs, before it runs.

    Examples: sourdine budget dpsgd -s 60000 -b 64 -n 1.0 -e 15 ·
    sourdine budget dpsgd --sampling-rate 0.001 --steps 10000 -n 1.0 -d 1e-6
    """
    from sourdine.accounting.dpsgd.cost import cost_of_steps, cost_of_training

    level, share, chosen = (
        read_noise_multiplier("dpsgd", noise_multiplier),
        read_delta("dpsgd", delta),
        _orders(orders),
    )
    if by_sampling_rate(sampling_rate, size, batch_size, epochs):
        need_poisson("dpsgd", sampler)
        if steps is None:
            raise InvalidParameter("A run stated by --sampling-rate also needs --steps.")
        if max_batch_size is not None:
            raise InvalidParameter(
                "--max-batch-size is for truncated batches, which are stated by -s, -b and -e."
            )
        cost = cost_of_steps(
            level,
            read_sampling_rate("dpsgd", str(sampling_rate)),
            read_steps("dpsgd", steps),
            share,
            orders=chosen,
            neighbours=read_relation("dpsgd", neighbours) or Neighbours.ADD_REMOVE,
            group=group,
        )
        run = f"batches by Poisson sampling, noise {level:g}"
    else:
        if steps is not None:
            raise InvalidParameter("--steps goes with --sampling-rate. With -s and -b, give epochs by -e.")
        training = read_training(
            "dpsgd",
            size=size,
            batch_size=batch_size,
            noise_multiplier=level,
            epochs=epochs,
            sampler=sampler,
            max_batch_size=max_batch_size,
            neighbours=neighbours,
            group=group,
        )
        cost = cost_of_training(training, share, orders=chosen)
        run = say_training(training)
    if as_json:
        show.document(_plain(cost))
    else:
        _print(cost, run)


def _orders(text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    from fractions import Fraction

    from sourdine.cli.shared.parse import number

    parts = text.replace(",", " ").split()
    if not parts:
        raise InvalidParameter("--orders needs at least one order above 1, such as 2,4,8.5.")
    return tuple(float(number("dpsgd", "orders", part, Fraction(10001, 10000), 10**4)) for part in parts)


def _plain(cost: "TrainingCost") -> dict[str, object]:
    return {
        "epsilon": plain_bracket(cost.epsilon),
        "delta": cost.delta,
        "steps": cost.steps,
        "sampling_rate": cost.sampling_rate,
        "noise_multiplier": cost.noise_multiplier,
        "sampler": str(cost.sampler),
        "neighbours": str(cost.neighbours),
        "unit": "example",
        "group": cost.group,
        "renyi": _at_order(cost.renyi),
        "source": _at_order(cost.source),
        "assumptions": list(cost.assumptions),
        "why": cost.why or None,
    }


def _at_order(figures: "AtOrder") -> dict[str, float | None]:
    return {"epsilon": finite(figures.epsilon), "order": figures.order}


def _print(cost: "TrainingCost", run: str) -> None:
    from sourdine.core.format import shorten_up

    show.line(f"Run        {run}")
    show.line(f"Steps      {cost.steps:,}, at a sampling rate of {100 * cost.sampling_rate:.4g} %")
    show.line()
    show.line(f"epsilon    {say_bracket(cost.epsilon, cost.delta)}")
    show.line(f"Renyi      {shorten_up(cost.renyi.epsilon)} at order {cost.renyi.order:.4g}")
    assumed = (
        "" if cost.sampler == "poisson" else "; it assumes Poisson batches, so this is NO guarantee here"
    )
    show.line(
        f"Source     {shorten_up(cost.source.epsilon, 3)} at order {cost.source.order:.4g} "
        f"(Mironov's conversion of 2017, as older tools have it{assumed})"
    )
    show.line()
    if cost.why:
        show.say(cost.why)
        show.line()
    show.line("It holds if:")
    for assumption in cost.assumptions:
        show.say(assumption, "- ")


def curves(
    *,
    size: Size = 60_000,
    batch_size: BatchSize = 64,
    noise_multiplier: Annotated[
        str, typer.Option("--noise-multiplier", "-n", help="Noise, in clipping norms.")
    ] = "1.0",
    epochs: Epochs = 15,
    delta: Annotated[str, typer.Option("--delta", "-d", help="The delta of the guarantee.")] = "1e-5",
    output: Annotated[Path, typer.Option("--html", help="Where the page goes.")] = Path("budget.html"),
    as_json: AsJson = False,
) -> None:
    """Draw epsilon against order, size, batch, noise, epochs and delta, around one run, on one page.

    The page holds everything it needs and loads nothing.

    Example: sourdine budget curves -s 60000 -b 64 -n 1.0 -e 15 --html budget.html
    """
    from sourdine.report.pages.training import curves_page

    level, share = read_noise_multiplier("curves", noise_multiplier), read_delta("curves", delta)
    training = read_training(
        "curves", size=size, batch_size=batch_size, noise_multiplier=level, epochs=epochs, sampler="poisson"
    )
    show.check_page(output)
    page = curves_page(training, share, show.progress)
    show.keep(page.html(), output)
    figures = [figure.title for section in page.sections for figure in section.figures]
    if as_json:
        show.document({"page": str(output), "figures": figures})
        return
    show.line(f"{output} shows:")
    for title in figures:
        show.say(title, "- ")
