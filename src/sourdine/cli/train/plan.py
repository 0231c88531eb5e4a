"""`sourdine train plan`: what a run of private training costs and takes, before anything is paid."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.option_groups import with_groups
from sourdine.cli.shared.parse import AsJson, number, plain_bracket
from sourdine.cli.train.options import (
    DataOptions,
    Device,
    Dtype,
    Kind,
    PlanOptions,
    read_model,
    with_usual_batch,
)
from sourdine.core import check
from sourdine.core.errors import InvalidParameter

if TYPE_CHECKING:
    from sourdine.learning.models import Model
    from sourdine.learning.pricing import PricedPlan, StepForecast


@with_groups
def plan(
    data: Annotated[
        Path | None, typer.Argument(help="A folder of images or IDX files, or a table. Or say --size.")
    ] = None,
    *,
    model: Kind = "scattering",
    plan: PlanOptions,
    shape: Annotated[
        str, typer.Option("--shape", help="Without data: the shape of an example, such as 3x32x32.")
    ] = "1x28x28",
    memory: Annotated[
        str | None, typer.Option("--memory", help="MiB that the tensors of a step may take.")
    ] = None,
    device: Device = None,
    dtype: Dtype = None,
    reading: DataOptions,
    as_json: AsJson = False,
) -> None:
    """Say what a run costs and takes: noise, batch, epsilon, memory, time, and how loud the noise is.

    With epsilon, the noise follows; with noise, the epsilon does; with both, how long training may last.
    Memory and time are measured on made-up examples. Nothing is spent.

    Examples: sourdine train plan --size 60000 --model cnn --epsilon 3 --epochs 15 ·
    sourdine train plan mnist --model scattering --epsilon 1
    """
    owner = "train plan"
    kind = read_model(owner, model)
    from sourdine.learning.models import recipe_of
    from sourdine.learning.planning import plan as price

    recipe = recipe_of(kind, plan.level(owner))
    stated = plan.plan(owner, recipe)
    room = None if memory is None else int(number(owner, "memory", memory, 1, 1 << 30)) << 20
    if data is None:
        present, like, classes = stated.size, _shape(owner, shape), reading.classes
        if present is None:
            raise InvalidParameter("Name the data, or say how many examples there are with --size.")
    else:
        train = reading.read(data).train
        present, like, classes = len(train), train.shape, len(train.classes)
    forecast = _forecast(kind, like, classes, memory=room, device=device, dtype=dtype)
    priced = price(with_usual_batch(stated, recipe, present), size=present, forecast=forecast)
    if as_json:
        show.document(plain_plan(priced))
    else:
        _print(priced)


def _shape(owner: str, text: str) -> tuple[int, ...]:
    words = text.lower().split("x")
    if not all(each.isdecimal() and len(each) <= 6 and int(each) > 0 for each in words):
        raise check.fail(owner, "shape", "be whole numbers with x between them", text, "Write 3x32x32.")
    sizes = tuple(map(int, words))
    if math.prod(sizes) > 1 << 28:
        raise check.fail(owner, "shape", "be of at most 2^28 numbers", text)
    return sizes


def _forecast(
    kind: "Model",
    shape: tuple[int, ...],
    classes: int,
    *,
    memory: int | None,
    device: str | None,
    dtype: str | None,
) -> "StepForecast":
    import torch

    from sourdine.learning.forecast import measure
    from sourdine.learning.memory.dry_run import Keeping
    from sourdine.learning.models import RECIPES, features_of, model_of

    features = features_of(kind, shape)
    inner = shape if features is None else (shape[0] * math.prod(features.scattering.shape),)
    like = (torch.zeros(1, *inner), torch.zeros(1, dtype=torch.int64))
    copies = (RECIPES[kind].momentum > 0) + (RECIPES[kind].averaging is not None)
    return measure(
        model_of(kind, inner, classes),
        like,
        optimizer=lambda values: Keeping(values, copies=copies),
        memory=memory,
        device=device,
        dtype=dtype,
    )


def plain_plan(plan: "PricedPlan") -> dict[str, object]:
    """A plan for machines."""
    forecast = plan.forecast
    return {
        "size": plan.size,
        "batch_size": plan.batch_size,
        "steps": plan.steps,
        "epochs": plan.epochs,
        "sampling_rate": plan.sampling_rate,
        "noise_multiplier": plan.noise_multiplier,
        "epsilon": plain_bracket(plan.epsilon),
        "delta": plan.delta,
        "sampler": str(plan.sampler),
        "neighbours": str(plan.neighbours),
        "max_batch_size": plan.max_batch_size,
        "group": plan.group,
        "parts": plan.parts,
        "exact": plan.exact,
        "correlation": None if plan.factor is None else plan.factor.words,
        "compared": [asdict(each) for each in plan.compared],
        "parameters": None if forecast is None else forecast.parameters,
        "physical_batch_size": None if forecast is None else forecast.physical_batch_size,
        "memory": plan.memory,
        "seconds": plan.seconds,
        "signal_to_noise": plan.signal_to_noise,
        "assumptions": list(plan.cost.assumptions),
        "warning": plan.warning or None,
    }


def _print(plan: "PricedPlan") -> None:
    for name, value in plan.words().items():
        show.line(f"{name.capitalize():<16} {value}")
    if plan.warning:
        show.say(plan.warning, mark="WARNING: ")
    show.line()
    show.line("It holds if:")
    for assumption in plan.cost.assumptions:
        show.say(assumption, "- ")
