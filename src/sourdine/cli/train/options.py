"""How a run of training is stated on the command line: a model, features and a head, batches and a budget."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.parse import number
from sourdine.core import check
from sourdine.core.errors import InvalidParameter, SourdineError

if TYPE_CHECKING:
    from torch import nn

    from sourdine.learning.data.labelled import Labelled, Parts
    from sourdine.learning.features.extractor import Extractor
    from sourdine.learning.features.pipeline import Extraction
    from sourdine.learning.models import Model, Recipe
    from sourdine.learning.run import MakeOptimizer

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
class StatedRun:
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
    ) -> "StatedRun":
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
    from sourdine.learning.data.files import read_data

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


LEAST_SQUARES = "least-squares"
_VGG = ("vgg13", "vgg16")  # known here, so that their weights are looked for before torch is loaded
Head = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="cnn, mlp, linear, scattering, vgg13, vgg16 or least-squares. Without: linear on the features "
        "that are named, or scattering.",
    ),
]
Looked = Annotated[
    str | None,
    typer.Option("--features", help="Computed once of images, frozen: scattering, random, vgg13, vgg16."),
]
Weights = Annotated[
    Path | None,
    typer.Option(help="A local file with weights of VGG, a state_dict. Not learnt on these data!"),
]
Reduce = Annotated[int, typer.Option("--reduce", help="Make images smaller first, by 1, 2 or 4.")]
Patches = Annotated[
    int | None,
    typer.Option("--patches", help="Patches in height and width that features are told of. Source: 7."),
]
Hidden = Annotated[int | None, typer.Option("--hidden", help="Units of the hidden layer of mlp or VGG.")]
Extra = Annotated[int | None, typer.Option("--extra-layer", help="One more hidden layer, of so many units.")]


@dataclass(frozen=True, kw_only=True)
class ChosenModel:
    """A model or a head by name, and what is computed of the images before."""

    owner: str
    kind: "Model | None"  # None is least squares
    extraction: "Extraction | None"
    weights: Path | None
    reduce: int
    patches: int | None
    hidden: tuple[int, ...] | None

    @classmethod
    def read(
        cls,
        owner: str,
        *,
        model: str | None,
        features: str | None,
        weights: Path | None,
        reduce: int,
        patches: int | None,
        hidden: int | None,
        extra: int | None,
    ) -> "ChosenModel":
        """What was stated, or one sentence on what does not go together."""
        if features in _VGG or model in _VGG:
            _look_for(weights, frozen=features in _VGG)
        need_torch()
        from sourdine.learning.features.extractor import REDUCTIONS
        from sourdine.learning.features.pipeline import DEPTHS, Extraction
        from sourdine.learning.models import LAYERED, Model

        names = [*map(str, Model), LEAST_SQUARES]
        if model is None:
            model = str(Model.SCATTERING if features is None else Model.LINEAR)
        if model not in names:
            raise check.fail(owner, "model", f"be one of {', '.join(names)}", model)
        kind = None if model == LEAST_SQUARES else Model(model)
        looked = None
        if features is not None:
            if features not in (known := [str(each) for each in Extraction]):
                raise check.fail(owner, "features", f"be one of {', '.join(known)}", features)
            if kind not in (None, Model.LINEAR, Model.MLP):
                must = f"be linear, mlp or {LEAST_SQUARES} where features are named"
                raise check.fail(owner, "model", must, model)
            looked = Extraction(features)
        elif kind is Model.SCATTERING:
            looked = Extraction.SCATTERING
        if weights is not None and looked not in DEPTHS and kind not in (Model.VGG13, Model.VGG16):
            raise check.fail(owner, "weights", "come with VGG, as features or as the model", str(weights))
        if patches is not None and looked is None:
            raise check.fail(owner, "patches", "come with features", patches)
        if reduce not in REDUCTIONS:
            raise check.fail(owner, "reduce", f"be one of {', '.join(map(str, REDUCTIONS))}", reduce)
        return cls(
            owner=owner,
            kind=kind,
            extraction=looked,
            weights=weights,
            reduce=reduce,
            patches=patches,
            hidden=_layers(owner, hidden, extra, kind in LAYERED, model),
        )

    @property
    def name(self) -> str:
        """The model as cards and ledgers name it."""
        from sourdine.learning.models import Model

        model = LEAST_SQUARES if self.kind is None else str(self.kind)
        frozen = self.extraction is not None and self.kind is not Model.SCATTERING
        return f"{model} on {self.extraction} features" if frozen else model

    def recipe(self, epsilon: float | None) -> "Recipe":
        """The usual settings within a budget.

        A linear model of features is trained like that of scattering features at any budget.
        """
        from sourdine.learning.features.pipeline import Extraction
        from sourdine.learning.models import Model, recipe_of

        kind = Model.LINEAR if self.kind is None else self.kind
        if kind is not Model.LINEAR or self.extraction is None:
            return recipe_of(kind, epsilon)
        return recipe_of(Model.SCATTERING, epsilon if self.extraction is Extraction.SCATTERING else None)

    def fresh(self, shape: Sequence[int], classes: int) -> "nn.Module":
        """A model to train, with the weights of the file in its convolutions if there is one."""
        from sourdine.learning.features.vgg import VGG
        from sourdine.learning.models import model_of

        assert self.kind is not None
        made = model_of(self.kind, shape, classes, self.hidden)
        if self.weights is not None and isinstance(made, VGG):
            made.load_convolutions(self.weights)
        return made

    def prepared(
        self, parts: "Parts", folder: Path | None, *, single: bool
    ) -> "tuple[Labelled, Labelled | None, Extractor | None]":
        """The examples as the model takes them, and what was computed of them."""
        import torch

        from sourdine.learning.data.labelled import Labelled
        from sourdine.learning.features.extractor import reduced
        from sourdine.learning.features.pipeline import extractor_of

        def smaller(held: Labelled) -> Labelled:
            return Labelled(reduced(held.inputs, self.reduce), held.targets, held.classes)

        train, test = smaller(parts.train), None if parts.test is None else smaller(parts.test)
        if self.extraction is None:
            if folder is not None:
                raise InvalidParameter(
                    "There are no features to keep. Name them with --features, or leave --cache out."
                )
            return train, test, None
        extractor = extractor_of(self.extraction, train.shape, weights=self.weights, patches=self.patches)
        if folder is not None:
            show.check_folder(folder)

        def looked_at(held: Labelled, label: str) -> Labelled:
            dtype = torch.float32 if single else torch.float16
            watch = lambda starts: show.progress(label, starts)
            found: Callable[..., torch.Tensor] = extractor.rows
            if folder is not None:
                found = lambda images, watch, dtype: extractor.kept(images, folder, watch, dtype=dtype)
            return Labelled(found(held.inputs, watch, dtype=dtype), held.targets, held.classes)

        made = looked_at(train, "computing features")
        return made, None if test is None else looked_at(test, "and of the test"), extractor


def _look_for(weights: Path | None, *, frozen: bool) -> None:
    """Refuse weights that are not there, before torch is loaded and any image is read."""
    if weights is None:
        if frozen:
            show.warn(
                "No --weights are named, so those of VGG are random. That is a rehearsal: such features are "
                "of little use. Name a file, or take --features scattering."
            )
        return
    if not weights.is_file():
        found = "is a folder" if weights.is_dir() else "is not there"
        raise InvalidParameter(
            f"The file {weights} with weights of VGG {found}. Check the path. Weights are a state_dict that "
            "torch.save wrote, learnt on other data."
        )
    if not os.access(weights, os.R_OK):
        raise InvalidParameter(f"You have no right to read the weights {weights}. Change that, or copy them.")


def _layers(
    owner: str, hidden: int | None, extra: int | None, layered: bool, model: str
) -> tuple[int, ...] | None:
    stated = {"hidden": hidden, "extra-layer": extra}
    for name, units in stated.items():
        if units is not None and not layered:
            raise check.fail(owner, name, f"be left out for the model {model}", units)
    if extra is not None and hidden is None:
        raise check.fail(owner, "extra-layer", "come with 'hidden'", extra)
    found = tuple(
        check.integer(owner, name, units, 1, 1 << 16) for name, units in stated.items() if units is not None
    )
    return found or None
