"""The model of a run as the command line names it: a network, or frozen features of images and a head."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.train.options import need_torch
from sourdine.core import check
from sourdine.core.errors import InvalidParameter

if TYPE_CHECKING:
    from torch import nn

    from sourdine.learning.data.labelled import Labelled, Parts
    from sourdine.learning.features.extractor import Extractor
    from sourdine.learning.features.pipeline import Extraction
    from sourdine.learning.models import Model, Recipe

LEAST_SQUARES = "least-squares"
_VGG = ("vgg13", "vgg16")  # known here, so that their weights are looked for before torch is loaded


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """A model or a head, and what is computed of the images before, as they were typed."""

    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="cnn, mlp, linear, scattering, vgg13, vgg16 or least-squares. Without: linear on the "
            "features that are named, or scattering.",
        ),
    ] = None
    features: Annotated[
        str | None,
        typer.Option("--features", help="Computed once of images, frozen: scattering, random, vgg13, vgg16."),
    ] = None
    weights: Annotated[
        Path | None,
        typer.Option(help="A local file with weights of VGG, a state_dict. Not learnt on these data!"),
    ] = None
    reduce: Annotated[int, typer.Option("--reduce", help="Make images smaller first, by 1, 2 or 4.")] = 1
    patches: Annotated[
        int | None,
        typer.Option("--patches", help="Patches per side over which features are averaged. Source: 7."),
    ] = None

    def choose(self, owner: str, *, hidden: int | None = None, extra: int | None = None) -> "ChosenModel":
        """What was stated, or one sentence on what does not go together."""
        model, features, weights, patches = self.model, self.features, self.weights, self.patches
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
        if self.reduce not in REDUCTIONS:
            raise check.fail(owner, "reduce", f"be one of {', '.join(map(str, REDUCTIONS))}", self.reduce)
        return ChosenModel(
            owner=owner,
            kind=kind,
            extraction=looked,
            weights=weights,
            reduce=self.reduce,
            patches=patches,
            hidden=_layers(owner, hidden, extra, kind in LAYERED, model),
        )


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
        model = model_of(self.kind, shape, classes, self.hidden)
        if self.weights is not None and isinstance(model, VGG):
            model.load_convolutions(self.weights)
        return model

    def prepared(
        self, parts: "Parts", folder: Path | None, *, single: bool
    ) -> "tuple[Labelled, Labelled | None, Extractor | None]":
        """The examples as the model takes them, and what was computed of them."""
        import torch

        from sourdine.learning.data.labelled import Labelled
        from sourdine.learning.features.extractor import reduced
        from sourdine.learning.features.pipeline import extractor_of

        def smaller(examples: Labelled) -> Labelled:
            return Labelled(reduced(examples.inputs, self.reduce), examples.targets, examples.classes)

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

        def looked_at(examples: Labelled, label: str) -> Labelled:
            dtype = torch.float32 if single else torch.float16
            progress = lambda starts: show.progress(label, starts)
            extract: Callable[..., torch.Tensor] = extractor.rows
            if folder is not None:
                extract = lambda images, progress, dtype: extractor.cached_rows(
                    images, folder, progress, dtype=dtype
                )
            return Labelled(
                extract(examples.inputs, progress, dtype=dtype), examples.targets, examples.classes
            )

        features = looked_at(train, "computing features")
        return features, None if test is None else looked_at(test, "and of the test"), extractor


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
        state = "is a folder" if weights.is_dir() else "is not there"
        raise InvalidParameter(
            f"The file {weights} with weights of VGG {state}. Check the path. Weights are a state_dict that "
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
    sizes = tuple(
        check.integer(owner, name, units, 1, 1 << 16) for name, units in stated.items() if units is not None
    )
    return sizes or None
