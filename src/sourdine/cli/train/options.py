"""How a run of training is stated on the command line: its data, its budget and how batches are drawn."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.budget.options import Group, MaxBatchSize, Relation
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import number
from sourdine.core import check
from sourdine.core.errors import SourdineError
from sourdine.core.lazy import install_line

if TYPE_CHECKING:
    from sourdine.learning.correlation.declared import GradientCorrelation
    from sourdine.learning.data.labelled import Parts
    from sourdine.learning.execution import Execution
    from sourdine.learning.models import Model, Recipe
    from sourdine.learning.planning import TrainingPlan
    from sourdine.learning.running.moving import MakeOptimizer

EPSILON = Fraction(1, 1000), 1000
NOISE = Fraction(1, 10), 10**4
DELTA = Fraction(1, 10**20), Fraction(1, 2)

Data = Annotated[
    Path, typer.Argument(help="A folder of IDX files, of CIFAR-10, of 102 flowers or of images; or a table.")
]
Cache = Annotated[
    Path | None,
    typer.Option(help="Keep computed features in this folder. They are as sensitive as the images."),
]
Kind = Annotated[str, typer.Option("--model", "-m", help="cnn, mlp, linear, scattering, vgg13 or vgg16.")]
Delta = Annotated[str, typer.Option("--delta", "-d", help="The delta of the guarantee.")]
Noise = Annotated[
    str | None,
    typer.Option("--noise-multiplier", "-n", help="Noise, in clipping norms. With epsilon: stop at it."),
]
Epochs = Annotated[int | None, typer.Option("--epochs", "-e", help="Passes over the data.")]
Steps = Annotated[int | None, typer.Option("--steps", help="Instead of epochs: the steps.")]
SamplerName = Annotated[
    str,
    typer.Option(
        "--sampler", help="How batches come: poisson, truncated, allocation, fixed, shuffle or cyclic."
    ),
]
Units = Annotated[
    int | None,
    typer.Option("--size", "-s", help="The number of examples that counts as public. Without: the true one."),
]
Classes = Annotated[int, typer.Option("--classes", help="How many classes there are, for IDX files.")]
Test = Annotated[Path | None, typer.Option("--test", help="A public table to measure accuracy on.")]


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """The options that make a TrainingPlan, as they were typed."""

    epsilon: Annotated[
        str | None, typer.Option("--epsilon", help="The budget. The noise follows from it.")
    ] = None
    delta: Delta = "1e-5"
    noise_multiplier: Noise = None
    epochs: Epochs = None
    steps: Steps = None
    batch_size: Annotated[
        int | None,
        typer.Option(
            "--batch-size", "-b", help="Examples in a batch, on average. Without: the usual, or planned."
        ),
    ] = None
    sampler: SamplerName = "poisson"
    max_batch_size: MaxBatchSize = None
    neighbours: Relation = None
    group: Group = 1
    size: Units = None
    correlation: Annotated[
        str | None,
        typer.Option(
            "--correlation",
            help="Noise that is correlated over the steps: banded, blt, tree, or least, which takes what has "
            "the least noise, DP-SGD included. banded:16 or blt:4 say how much is kept between steps.",
        ),
    ] = None
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="Gradients and noise in whole numbers: a guarantee that does not assume real ones. Slower.",
        ),
    ] = False

    def level(self, owner: str) -> float | None:
        """The budget, if one is stated."""
        if self.epsilon is None:
            return None
        from sourdine.core.distributions import float_below

        return float_below(number(owner, "epsilon", self.epsilon, *EPSILON))  # never beyond a third

    def plan(self, owner: str, recipe: "Recipe") -> "TrainingPlan":
        """The plan, with the epochs of a recipe where nothing says how long the run is."""
        from sourdine.learning.planning import TrainingPlan

        level, text = self.level(owner), self.noise_multiplier
        noise = None if text is None else float(number(owner, "noise-multiplier", text, *NOISE))
        if level is None and noise is None:
            raise check.fail(owner, "epsilon", "be given, or else 'noise-multiplier'", None)
        lasts = self.epochs is None and self.steps is None and (level is None or noise is None)
        return TrainingPlan(
            epsilon=level,
            noise_multiplier=noise,
            delta=read_delta(owner, self.delta),
            epochs=recipe.epochs if lasts else self.epochs,
            steps=self.steps,
            batch_size=self.batch_size,
            sampler=None if self.correlation is not None and self.sampler == "poisson" else self.sampler,
            max_batch_size=self.max_batch_size,
            neighbours=self.neighbours,
            group=self.group,
            size=self.size,
            correlation=None if self.correlation is None else read_correlation(owner, self.correlation),
            exact=self.exact,
        )


def read_correlation(owner: str, text: str) -> "GradientCorrelation":
    """How noise is correlated, such as banded:16.

    >>> read_correlation("train plan", "blt:4")
    BLT(buffers=4)
    """
    from sourdine.learning.correlation.declared import BLT, Banded, BinaryTree, LeastNoise

    kind, _, count = text.partition(":")
    many = int(count) if count.isdecimal() and len(count) < 9 else None
    if many is None and not count:
        plain = {"banded": Banded(), "blt": BLT(), "tree": BinaryTree(), "least": LeastNoise()}
        if kind in plain:
            return plain[kind]
    elif many is not None and kind == "banded":
        return Banded(bands=many)
    elif many is not None and kind == "blt":
        return BLT(buffers=many)
    raise check.fail(owner, "correlation", "be banded, banded:16, blt, blt:4, tree or least", text)


def with_usual_batch(plan: "TrainingPlan", recipe: "Recipe", present: int) -> "TrainingPlan":
    """A plan for so many examples, with the batch size of a recipe where it states none."""
    size = recipe.batch_size_for(present if plan.size is None else plan.size)
    return plan if plan.batch_size is not None else replace(plan, batch_size=size)


def read_delta(owner: str, text: str) -> float:
    """The delta of a run."""
    return float(number(owner, "delta", text, *DELTA))


Device = Annotated[
    str | None, typer.Option("--device", help="Where it is computed, such as cuda. Without: the processor.")
]
Dtype = Annotated[
    str | None,
    typer.Option("--dtype", help="What layers compute in: float32, float64 or bfloat16. Without: float32."),
]


@dataclass(frozen=True, kw_only=True)
class ExecutionOptions:
    """How a run is carried out, which changes no price."""

    device: Device = None
    dtype: Dtype = None
    physical_batch_size: Annotated[
        int | None,
        typer.Option("--physical-batch-size", help="Examples computed at once. Without: it is measured."),
    ] = None
    log: Annotated[
        Path | None, typer.Option("--log", help="Write the course of the run to this CSV file.")
    ] = None

    def execution(self) -> "Execution":
        """The same for Python."""
        from sourdine.learning.execution import Execution

        return Execution(physical_batch_size=self.physical_batch_size, device=self.device, dtype=self.dtype)


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """What is said of the examples at a path."""

    classes: Classes = 10
    side: Annotated[int, typer.Option("--side", help="Pixels that images of a folder are scaled to.")] = 32
    grey: Annotated[bool, typer.Option("--grey", help="Take the images of a folder without colours.")] = False
    spec: Annotated[
        Path | None,
        typer.Option("--spec", help="What is declared of a table's columns. Without: TABLE.toml beside it."),
    ] = None
    target: Annotated[
        str | None, typer.Option("--target", help="The column of a table that is to be learnt.")
    ] = None

    def read(self, data: Path, test: Path | None = None) -> "Parts":
        """The examples at a path, with a bar where there are many files."""
        from sourdine.learning.data.files import read_data

        return read_data(
            data,
            classes=self.classes,
            side=self.side,
            grey=self.grey,
            columns=self.spec,
            target=self.target,
            test=test,
            progress=lambda images: show.progress("reading images", images),
        )


def read_model(owner: str, text: str) -> "Model":
    """A model by its name."""
    need_torch()
    from sourdine.learning.models import Model

    kinds = {str(kind): kind for kind in Model}
    if text not in kinds:
        raise check.fail(owner, "model", f"be one of {', '.join(kinds)}", text)
    return kinds[text]


def need_torch() -> None:
    """Say in one sentence what is not installed."""
    if find_spec("torch") is None:
        raise SourdineError(
            f"Training needs torch, which is not installed. Install it with: {install_line('learn')}"
        )


OPTIMIZERS = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW", "rmsprop": "RMSprop", "adagrad": "Adagrad"}


def optimizer_of(learning_rate: float, momentum: float, name: str = "sgd") -> "MakeOptimizer":
    """Steps of a size by an optimizer of torch, of which sgd alone has momentum here.

    Each of them reads nothing but noisy gradients, so that the choice costs no epsilon.
    """
    from torch import optim

    kind: Callable[..., optim.Optimizer] = getattr(optim, OPTIMIZERS[name])
    more = {"momentum": momentum} if name == "sgd" else {}
    return lambda values: kind(values, lr=learning_rate, **more)
