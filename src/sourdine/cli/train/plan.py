"""`sourdine train plan`: what a run of private training costs and takes, before anything is paid."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.budget.options import Group, MaxBatchSize, Relation
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import number, plain_bracket
from sourdine.cli.train.options import (
    AsJson,
    Batch,
    Classes,
    Delta,
    Drawn,
    Epochs,
    Epsilon,
    Grey,
    Kind,
    Noise,
    Side,
    Spec,
    StatedRun,
    Steps,
    Target,
    Units,
    read_epsilon,
    read_model,
    read_parts,
)
from sourdine.core import check
from sourdine.core.errors import InvalidParameter

if TYPE_CHECKING:
    from sourdine.learning.models import Model
    from sourdine.learning.planning import StepForecast, TrainingPlan


def plan(
    data: Annotated[
        Path | None, typer.Argument(help="A folder of images or IDX files, or a table. Or say --size.")
    ] = None,
    *,
    model: Kind = "scattering",
    epsilon: Epsilon = None,
    delta: Delta = "1e-5",
    noise: Noise = None,
    epochs: Epochs = None,
    steps: Steps = None,
    batch: Batch = None,
    sampler: Drawn = "poisson",
    most: MaxBatchSize = None,
    neighbours: Relation = None,
    group: Group = 1,
    size: Units = None,
    shape: Annotated[
        str, typer.Option("--shape", help="Without data: the shape of an example, such as 3x32x32.")
    ] = "1x28x28",
    memory: Annotated[
        str | None, typer.Option("--memory", help="MiB that the tensors of a step may take.")
    ] = None,
    classes: Classes = 10,
    side: Side = 32,
    grey: Grey = False,
    spec: Spec = None,
    target: Target = None,
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
    from sourdine.learning.planning import plan as made_plan

    recipe = recipe_of(kind, read_epsilon(owner, epsilon))
    stated = StatedRun.read(
        owner,
        recipe,
        epsilon=epsilon,
        noise=noise,
        delta=delta,
        epochs=epochs,
        steps=steps,
        sampler=sampler,
        size=size,
        most=most,
        neighbours=neighbours,
        group=group,
    )
    room = None if memory is None else int(number(owner, "memory", memory, 1, 1 << 30)) << 20
    if data is None:
        present, like = size, _shape(owner, shape)
        if present is None:
            raise InvalidParameter("Name the data, or say how many examples there are with --size.")
    else:
        parts = read_parts(data, classes=classes, side=side, grey=grey, spec=spec, target=target, test=None)
        present, like, classes = len(parts.train), parts.train.shape, len(parts.train.classes)
    units = present if size is None else size
    found = made_plan(
        size=units,
        delta=stated.delta,
        epsilon=stated.epsilon,
        noise=stated.noise,
        epochs=stated.epochs,
        steps=stated.steps,
        batch=recipe.batch_for(units) if batch is None else batch,
        sampler=stated.sampler,
        most=stated.most,
        neighbours=stated.neighbours,
        group=stated.group,
        forecast=_forecast(kind, like, classes, room),
    )
    if as_json:
        show.document(plain(found))
    else:
        _print(found)


def _shape(owner: str, text: str) -> tuple[int, ...]:
    sizes = text.lower().split("x")
    if not all(each.isdecimal() and len(each) <= 6 and int(each) > 0 for each in sizes):
        raise check.fail(owner, "shape", "be whole numbers with x between them", text, "Write 3x32x32.")
    found = tuple(map(int, sizes))
    if math.prod(found) > 1 << 28:
        raise check.fail(owner, "shape", "be of at most 2^28 numbers", text)
    return found


def _forecast(kind: "Model", shape: tuple[int, ...], classes: int, memory: int | None) -> "StepForecast":
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
    )


def plain(found: "TrainingPlan") -> dict[str, object]:
    """A plan for machines."""
    forecast = found.forecast
    return {
        "size": found.size,
        "batch": found.batch,
        "steps": found.steps,
        "epochs": found.epochs,
        "rate": found.rate,
        "noise": found.noise,
        "epsilon": plain_bracket(found.epsilon),
        "delta": found.delta,
        "sampler": str(found.sampler),
        "neighbours": str(found.neighbours),
        "most": found.most,
        "group": found.group,
        "parameters": None if forecast is None else forecast.parameters,
        "physical": None if forecast is None else forecast.physical,
        "memory": found.memory,
        "seconds": found.seconds,
        "signal_to_noise": found.signal_to_noise,
        "assumptions": list(found.cost.assumptions),
        "warning": found.warning or None,
    }


def _print(found: "TrainingPlan") -> None:
    for name, value in found.words().items():
        show.line(f"{name.capitalize():<16} {value}")
    if found.warning:
        show.say(found.warning, mark="WARNING: ")
    show.line()
    show.line("It holds if:")
    for assumption in found.cost.assumptions:
        show.say(assumption, "- ")
