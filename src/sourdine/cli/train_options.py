"""How a run of training is stated on the command line."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli import show
from sourdine.cli.number import number
from sourdine.core import check
from sourdine.core.errors import SourdineError

if TYPE_CHECKING:
    from sourdine.learning.data import Parts
    from sourdine.learning.models import Model, Recipe
    from sourdine.learning.run import MakeOptimizer

EPSILON = Fraction(1, 1000), 1000
NOISE = Fraction(1, 10), 10**4
DELTA = Fraction(1, 10**20), Fraction(1, 2)

Data = Annotated[Path, typer.Argument(help="A folder of IDX files, of CIFAR-10 or of images; or a table.")]
Cache = Annotated[
    Path | None,
    typer.Option(help="Keep computed features in this folder. They are as sensitive as the images."),
]
Kind = Annotated[str, typer.Option("--model", "-m", help="cnn, mlp, linear, scattering, vgg13 or vgg16.")]
Epsilon = Annotated[str | None, typer.Option("--epsilon", help="The budget. The noise follows from it.")]
Delta = Annotated[str, typer.Option("--delta", "-d", help="The delta of the guarantee.")]
Noise = Annotated[
    str | None, typer.Option("--noise", "-n", help="Noise, in clipping norms. With epsilon: stop at it.")
]
Epochs = Annotated[int | None, typer.Option("--epochs", "-e", help="Passes over the data.")]
Steps = Annotated[int | None, typer.Option("--steps", help="Instead of epochs: the steps.")]
Batch = Annotated[
    int | None,
    typer.Option("--batch", "-b", help="Examples in a batch, on average. Without: the usual, or planned."),
]
Drawn = Annotated[
    str,
    typer.Option("--sampler", help="How batches are drawn: poisson, truncated, allocation, fixed, shuffle."),
]
Units = Annotated[
    int | None,
    typer.Option("--size", "-s", help="The number of examples that counts as public. Without: the true one."),
]
Classes = Annotated[int, typer.Option("--classes", help="How many classes there are, for IDX files.")]
Side = Annotated[int, typer.Option("--side", help="Pixels that images of a folder are scaled to.")]
Grey = Annotated[bool, typer.Option("--grey", help="Take the images of a folder without colours.")]
Spec = Annotated[
    Path | None,
    typer.Option("--spec", help="What is declared of a table's columns. Without: TABLE.toml beside it."),
]
Target = Annotated[str | None, typer.Option("--target", help="The column of a table that is to be learnt.")]
Test = Annotated[Path | None, typer.Option("--test", help="A public table to tell accuracy on.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@dataclass(frozen=True, kw_only=True)
class Stated:
    """What the accounting of a run is asked about, read from text."""

    epsilon: float | None
    noise: float | None
    delta: float
    epochs: int | None
    steps: int | None
    sampler: str
    size: int | None
    most: int | None = None
    neighbours: str | None = None
    group: int = 1

    @classmethod
    def read(
        cls,
        owner: str,
        recipe: "Recipe",
        *,
        epsilon: str | None,
        noise: str | None,
        delta: str,
        epochs: int | None,
        steps: int | None,
        sampler: str,
        size: int | None,
        most: int | None = None,
        neighbours: str | None = None,
        group: int = 1,
    ) -> "Stated":
        """The run as it is stated, with the epochs of the recipe where nothing says how long it is."""
        level = read_epsilon(owner, epsilon)
        scale = None if noise is None else float(number(owner, "noise", noise, *NOISE))
        if level is None and scale is None:
            raise check.fail(owner, "epsilon", "be given, or else 'noise'", None)
        lasts = epochs is None and steps is None and (level is None or scale is None)
        return cls(
            epsilon=level,
            noise=scale,
            delta=float(number(owner, "delta", delta, *DELTA)),
            epochs=recipe.epochs if lasts else epochs,
            steps=steps,
            sampler=sampler,
            size=size,
            most=most,
            neighbours=neighbours,
            group=group,
        )


def read_epsilon(owner: str, text: str | None) -> float | None:
    """The budget of a run, if one is stated."""
    return None if text is None else float(number(owner, "epsilon", text, *EPSILON))


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
            "Training needs torch, which is not installed. Install it with: pip install 'sourdine[learn]'."
        )


def read_parts(
    data: Path,
    *,
    classes: int,
    side: int,
    grey: bool,
    spec: Path | None,
    target: str | None,
    test: Path | None,
) -> "Parts":
    """The examples at a path, with a bar where there are many files."""
    from sourdine.learning.data_any import read_data

    return read_data(
        data,
        classes=classes,
        side=side,
        grey=grey,
        columns=spec,
        target=target,
        test=test,
        watch=lambda images: show.progress("reading images", images),
    )


def optimizer_of(learning_rate: float, momentum: float) -> "MakeOptimizer":
    """Gradient steps of a size, with momentum."""
    from torch.optim import SGD

    made: Callable[..., SGD] = lambda values: SGD(values, lr=learning_rate, momentum=momentum)
    return made
