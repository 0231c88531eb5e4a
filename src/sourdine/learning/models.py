"""Models that private training can teach: networks for images, a perceptron, a linear head.

In a model that has BatchNorm, whose statistics mix the people of a batch, GroupNorm takes its place.
"""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

import torch
from torch import Tensor, nn

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.learning.data.labelled import describe_shape
from sourdine.learning.features.extractor import Extractor, reduced
from sourdine.learning.features.pipeline import Features
from sourdine.learning.features.vgg import BLOCKS, VGG


class Model(StrEnum):
    """What can be trained by name."""

    CNN = "cnn"
    MLP = "mlp"
    LINEAR = "linear"
    SCATTERING = "scattering"
    VGG13 = "vgg13"
    VGG16 = "vgg16"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a model is trained unless told otherwise. Nothing of it was chosen by looking at private data."""

    epochs: int
    learning_rate: float
    momentum: float
    clip: float
    averaging: float | None
    batch_size: int | None = None
    optimizer: str = "sgd"

    def batch_size_for(self, size: int) -> int | None:
        """The usual batch, or an eighth of few data; None where the planner is to choose."""
        return None if self.batch_size is None else max(1, min(self.batch_size, size // 8))


RECIPES = {
    Model.CNN: Recipe(epochs=15, learning_rate=0.5, momentum=0.0, clip=1.0, averaging=0.98),
    Model.MLP: Recipe(epochs=15, learning_rate=0.5, momentum=0.0, clip=1.0, averaging=0.98),
    Model.LINEAR: Recipe(epochs=15, learning_rate=0.5, momentum=0.9, clip=1.0, averaging=0.98),
    Model.SCATTERING: Recipe(
        epochs=25, learning_rate=0.25, momentum=0.9, clip=1.0, averaging=0.98, batch_size=4096
    ),
    Model.VGG13: Recipe(epochs=15, learning_rate=0.1, momentum=0.0, clip=1.0, averaging=0.98),
    Model.VGG16: Recipe(epochs=15, learning_rate=0.1, momentum=0.0, clip=1.0, averaging=0.98),
}
_AMPLE = 2.0  # an epsilon from which scattering features bear longer training in longer steps
_HIDDEN = 512  # units of the source's perceptron behind VGG


def recipe_of(model: Model, epsilon: float | None = None) -> Recipe:
    """How a model is trained within a budget, unless told otherwise.

    A linear head on scattering features takes 25 epochs at a rate of 0.25, and 40 at 0.5 where epsilon is 2
    or more, so that the noise allows it.

    >>> recipe_of(Model.SCATTERING, 1.0).epochs, recipe_of(Model.SCATTERING, 3.0).epochs
    (25, 40)
    """
    usual = RECIPES[model]
    if model is Model.SCATTERING and epsilon is not None and epsilon >= _AMPLE:
        return replace(usual, epochs=40, learning_rate=0.5)
    return usual


def cnn(shape: Sequence[int], classes: int) -> nn.Sequential:
    """The network of the source for MNIST: two convolutions of 16 and 32 channels, then 32 units.

    >>> sum(value.numel() for value in cnn((1, 28, 28), 10).parameters())
    26010
    """
    colours, *size = _image(shape)
    if min(size) < 24:
        raise check.fail("cnn", "shape", "be of 24 x 24 pixels at least", describe_shape(shape))
    body = nn.Sequential(
        nn.Conv2d(colours, 16, 8, stride=2, padding=3),
        nn.ReLU(),
        nn.MaxPool2d(2, stride=1),
        nn.Conv2d(16, 32, 4, stride=2),
        nn.ReLU(),
        nn.MaxPool2d(2, stride=1),
        nn.Flatten(),
    )
    with torch.no_grad():
        inner = body(torch.zeros(1, colours, *size)).shape[1]
    return nn.Sequential(*body, nn.Linear(inner, 32), nn.ReLU(), nn.Linear(32, classes))


def mlp(shape: Sequence[int], classes: int, hidden: Sequence[int] = (128,)) -> nn.Sequential:
    """A perceptron. Its units are bounded (tanh), which learns better from clipped gradients than ReLU.

    >>> mlp((1, 4, 4), 3, hidden=(8,))(torch.zeros(2, 1, 4, 4)).shape
    torch.Size([2, 3])
    """
    layers: list[nn.Module] = [nn.Flatten()]
    width = math.prod(shape)
    for units in hidden:
        layers += [nn.Linear(width, check.integer("mlp", "hidden", units, 1, 1 << 20)), nn.Tanh()]
        width = units
    return nn.Sequential(*layers, nn.Linear(width, classes))


def linear(shape: Sequence[int], classes: int) -> nn.Sequential:
    """A linear model that starts at zero, where all classes are alike: it needs no luck.

    >>> linear((3,), 2)(torch.ones(1, 3)).tolist()
    [[0.0, 0.0]]
    """
    head = nn.Linear(math.prod(shape), classes)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    return nn.Sequential(nn.Flatten(), head)


def vgg(depth: int, shape: Sequence[int], classes: int, hidden: Sequence[int] = (_HIDDEN,)) -> VGG:
    """A whole VGG network to train, its convolutions too, with a perceptron of the source's size."""
    colours, *size = _image(shape)
    if colours not in (1, 3) or min(size) < 32:
        raise check.fail(
            "vgg", "shape", "be of one or three colours and 32 x 32 pixels at least", describe_shape(shape)
        )
    return VGG(classes=classes, hidden=hidden, blocks=BLOCKS[depth])


def features_of(model: Model, shape: Sequence[int]) -> Features | None:
    """What is computed of images before the model sees them, if anything."""
    if model is not Model.SCATTERING:
        return None
    _, height, width = _image(shape)
    return Features(height=height, width=width)


def model_of(
    model: Model, shape: Sequence[int], classes: int, hidden: Sequence[int] | None = None
) -> nn.Module:
    """A fresh model for inputs of a shape; that of the scattering model is the shape of its features.

    `hidden` are the units of the layers between, for those models that have some.
    """
    classes = check.integer("model_of", "classes", classes, 2, 1 << 20)
    if hidden is None:
        return _BUILDERS[model](shape, classes)
    if model not in LAYERED:
        raise check.fail("model_of", "hidden", f"be left out for the model {model}", tuple(hidden))
    return _BUILDERS[model](shape, classes, hidden)


class Whole(nn.Module):
    """A trained head together with its features: it takes images as they are, and reduces them if asked."""

    def __init__(self, features: Extractor, head: nn.Module, reduce: int = 1) -> None:
        super().__init__()
        self._features = features
        self._reduce = reduce
        self.head = head

    def forward(self, images: Tensor) -> Tensor:
        """The scores of the classes."""
        scores: Tensor = self.head(self._features(reduced(images, self._reduce)).to(torch.float32))
        return scores


_BUILDERS: dict[Model, Callable[..., nn.Module]] = {
    Model.CNN: cnn,
    Model.MLP: mlp,
    Model.LINEAR: linear,
    Model.SCATTERING: linear,
    Model.VGG13: partial(vgg, 13),
    Model.VGG16: partial(vgg, 16),
}
LAYERED = (Model.MLP, Model.VGG13, Model.VGG16)  # which have hidden layers to choose


def _image(shape: Sequence[int]) -> tuple[int, int, int]:
    if len(shape) != 3:
        raise InvalidParameter(
            f"This model is for images, with colours, height and width. The examples are of "
            f"{describe_shape(shape)}. Take the model mlp or linear."
        )
    colours, height, width = shape
    return colours, height, width


_MIXING = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_ROW_GROUP = 8  # channels: of two, only which is larger would be left


def with_group_norm(model: nn.Module, *, groups: int = 32) -> nn.Module:
    """A copy of a model in which every BatchNorm is a GroupNorm, of at most so many groups.

    The number of groups divides that of the channels. A BatchNorm1d becomes groups of eight channels or more:
    in rows without a length a channel is one number, which alone would become zero. Scale and shift are kept;
    running statistics are not: they may come from data that nobody paid for.

    >>> with_group_norm(nn.Sequential(nn.Conv2d(3, 48, 3), nn.BatchNorm2d(48)))[1].num_groups
    24
    """
    groups = check.integer("with_group_norm", "groups", groups, 1, 1 << 20)
    network = copy.deepcopy(model)
    if isinstance(network, _MIXING):
        return _grouped(network, groups)
    replacements: dict[nn.Module, nn.Module] = {}
    for layer in list(network.modules()):
        for name, inner in list(layer._modules.items()):  # not named_children, which tells twins once
            if isinstance(inner, _MIXING):
                setattr(layer, name, replacements.setdefault(inner, _grouped(inner, groups)))
    return network


def _grouped(
    layer: nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d | nn.SyncBatchNorm, groups: int
) -> nn.Module:
    channels = layer.num_features
    bound = max(channels // _ROW_GROUP, 1) if isinstance(layer, nn.BatchNorm1d) else channels
    most = max(each for each in range(1, min(groups, bound) + 1) if channels % each == 0)
    norm = nn.GroupNorm(most, channels, eps=layer.eps, affine=layer.affine)
    if layer.affine:
        norm.weight, norm.bias = layer.weight, layer.bias
    return norm.train(layer.training)
