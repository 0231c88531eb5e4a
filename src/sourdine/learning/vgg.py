"""VGG networks: blocks of small convolutions, each twice as coarse as the last, then a perceptron.

The parameters have the names of the published checkpoints (`features.0.weight`, `classifier.0.weight`, ...),
so a file that was saved elsewhere is read here.
"""

import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO
from zipfile import BadZipFile

import torch
from torch import Tensor, nn

from sourdine.core import check
from sourdine.core.errors import InvalidParameter

Blocks = tuple[tuple[int, ...], ...]
BLOCKS: dict[int, Blocks] = {
    13: ((64, 64), (128, 128), (256, 256), (512, 512), (512, 512)),
    16: ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512)),
}
PATCHES = 7  # that the perceptron sees, in height and width
# means and deviations of the colours in the public images that the published weights were learnt from
MEANS, DEVIATIONS = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class VGG(nn.Module):
    """A VGG network of 13 or 16 layers with weights (Simonyan, Zisserman 2015, table 1, columns B and D).

    It takes images of three colours between 0 and 1, of 32 x 32 pixels at least, and gives one number for
    each class. With the units of `hidden` as published, (4096, 4096), and 1000 classes it is the published
    network; the source had (512,). `blocks` are the channels of the convolutions instead of the 16 layers.

    >>> network = VGG(classes=102, hidden=(512,), blocks=((2,), (2,), (4,), (4,), (4,)))
    >>> network(torch.zeros(1, 3, 64, 64)).shape
    torch.Size([1, 102])
    >>> sorted(name for name in network.state_dict() if name.startswith("classifier"))
    ['classifier.0.bias', 'classifier.0.weight', 'classifier.3.bias', 'classifier.3.weight']
    """

    def __init__(
        self,
        *,
        classes: int,
        hidden: Sequence[int] = (4096, 4096),
        dropout: float = 0.0,
        blocks: Blocks = BLOCKS[16],
    ) -> None:
        super().__init__()
        self.features = convolutions(blocks)
        self.avgpool = nn.AdaptiveAvgPool2d(PATCHES)
        layers: list[nn.Module] = []
        width = blocks[-1][-1] * PATCHES**2
        share = float(check.between("VGG", "dropout", dropout, check.rational("VGG", "dropout", 0), _MOST))
        for units in hidden:
            linear = nn.Linear(width, check.integer("VGG", "hidden", units, 1, 1 << 20))
            layers += [linear, nn.ReLU(), nn.Dropout(share)]
            width = units
        classes = check.integer("VGG", "classes", classes, 2, 1 << 20)
        self.classifier = nn.Sequential(*layers, nn.Linear(width, classes))

    def forward(self, images: Tensor) -> Tensor:
        """The scores of the classes."""
        found: Tensor = self.classifier(self.avgpool(self.features(coloured(images))).flatten(1))
        return found

    def load_convolutions(self, path: Path) -> None:
        """Take the weights of the convolutions from a file, and leave the perceptron as it is."""
        load_convolutions(self.features, path)


_MOST = check.rational("VGG", "dropout", 0.95)


def convolutions(blocks: Blocks) -> nn.Sequential:
    """The convolutional part, with places in the order of the published files."""
    layers: list[nn.Module] = []
    channels = 3
    for block in blocks:
        for wide in block:
            made = nn.Conv2d(channels, wide, 3, padding=1)
            nn.init.kaiming_normal_(made.weight, mode="fan_out", nonlinearity="relu")
            nn.init.zeros_(made.bias)  # type: ignore[arg-type]
            layers += [made, nn.ReLU()]
            channels = wide
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers)


def coloured(images: Tensor) -> Tensor:
    """Images as the published weights expect them: three colours, each shifted and scaled.

    Grey images count as equal in all colours. The shift and the scale are those of other, public images.
    """
    three = images.expand(-1, 3, -1, -1) if images.shape[1] == 1 else images
    means, deviations = (torch.tensor(each).view(3, 1, 1).to(three) for each in (MEANS, DEVIATIONS))
    return (three - means) / deviations


def load_convolutions(features: nn.Sequential, path: Path) -> None:
    """Put the weights of a file (`features.N.weight`, `features.N.bias`) into convolutions."""
    held = read_weights(path)
    wanted = features.state_dict()
    for name, value in wanted.items():
        given = held.get(f"features.{name}")
        if given is None or given.shape != value.shape:
            found = "is not there" if given is None else f"is of {tuple(given.shape)}"
            raise InvalidParameter(
                f"The weights {path} do not fit this network: 'features.{name}' must be of "
                f"{tuple(value.shape)} and {found}. Name a file for {_depth(wanted)} without batch norm."
            )
        if not bool(torch.isfinite(given).all()):
            raise InvalidParameter(
                f"The weights {path} hold numbers that are not finite, in 'features.{name}'. "
                "Fetch them again."
            )
    features.load_state_dict({name: held[f"features.{name}"].to(wanted[name]) for name in wanted})


def read_weights(path: Path) -> Mapping[str, Tensor]:
    """The tensors of a state_dict in a file; nothing in it is run."""
    try:
        with path.open("rb") as file:
            held = _tensors(file)
    except OSError as problem:
        raise InvalidParameter(
            f"The weights {path} cannot be read ({problem.strerror or problem}). Check the path."
        ) from None
    if not isinstance(held, dict) or not all(isinstance(each, Tensor) for each in held.values()):
        raise InvalidParameter(
            f"The file {path} holds no weights. It must be a state_dict that torch.save wrote: names, each "
            "with a tensor."
        )
    return held


def _tensors(file: BinaryIO) -> object:
    try:
        return torch.load(file, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, KeyError, OSError, ValueError, BadZipFile, pickle.UnpicklingError):
        return None  # what torch raises on bytes that it did not write


def _depth(wanted: Mapping[str, Tensor]) -> str:
    layers = len(wanted) // 2 + 3
    return f"VGG{layers}" if layers in BLOCKS else "this network"
