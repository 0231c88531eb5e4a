"""VGG networks: blocks of small convolutions, each twice as coarse as the last, then a perceptron.

The parameters have the names of the published checkpoints (`features.0.weight`, `classifier.0.weight`, ...),
so a file that was saved elsewhere is read here. Frozen, their convolutions give features.
"""

import hashlib
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO
from zipfile import BadZipFile

import torch
from torch import Tensor, nn
from torch.nn import functional

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.learning.features.extractor import Extractor, ShowProgress

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
        scores: Tensor = self.classifier(self.avgpool(self.features(coloured(images))).flatten(1))
        return scores

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
            layer = nn.Conv2d(channels, wide, 3, padding=1)
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
            layers += [layer, nn.ReLU()]
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
    weights = read_weights(path)
    wanted = features.state_dict()
    for name, value in wanted.items():
        weight = weights.get(f"features.{name}")
        if weight is None or weight.shape != value.shape:
            problem = "is not there" if weight is None else f"is of {tuple(weight.shape)}"
            raise InvalidParameter(
                f"The weights {path} do not fit this network: 'features.{name}' must be of "
                f"{tuple(value.shape)} and {problem}. Name a file for {_depth(wanted)} without batch norm."
            )
        if not bool(torch.isfinite(weight).all()):
            raise InvalidParameter(
                f"The weights {path} hold numbers that are not finite, in 'features.{name}'. "
                "Fetch them again."
            )
    features.load_state_dict({name: weights[f"features.{name}"].to(wanted[name]) for name in wanted})


def read_weights(path: Path) -> Mapping[str, Tensor]:
    """The tensors of a state_dict in a file; nothing in it is run."""
    try:
        with path.open("rb") as file:
            weights = _tensors(file)
    except OSError as problem:
        raise InvalidParameter(
            f"The weights {path} cannot be read ({problem.strerror or problem}). Check the path."
        ) from None
    if not isinstance(weights, dict) or not all(isinstance(each, Tensor) for each in weights.values()):
        raise InvalidParameter(
            f"The file {path} holds no weights. It must be a state_dict that torch.save wrote: names, each "
            "with a tensor."
        )
    return weights


def _tensors(file: BinaryIO) -> object:
    try:
        return torch.load(file, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, KeyError, OSError, ValueError, BadZipFile, pickle.UnpicklingError):
        return None  # what torch raises on bytes that it did not write


def _depth(wanted: Mapping[str, Tensor]) -> str:
    layers = len(wanted) // 2 + 3
    return f"VGG{layers}" if layers in BLOCKS else "this network"


_AT_ONCE = 16
_SEED = 1


@dataclass(frozen=True, kw_only=True, eq=False)
class VggFeatures(Extractor):
    """What the convolutions of a VGG network make of images: 512 numbers for each patch of 32 x 32 pixels.

    Images of 224 x 224 pixels have 7 x 7 patches and 25,088 numbers, those of half the side 3 x 3 and 4,608,
    of a quarter one patch and 512. With `patches` the grid is stretched to so many in height and width, as
    the source's was to 7: the numbers are then repeated, and noise is added to each.

    The weights come from a local file. Without one they are random, the same each time, and of little use
    but for rehearsals. Weights that were learnt on the private data themselves would have to be paid for.

    >>> VggFeatures(depth=16).numbers((3, 224, 224)), VggFeatures(depth=16).numbers((3, 112, 112))
    (25088, 4608)
    >>> VggFeatures(depth=16, patches=7).numbers((3, 56, 56))
    25088
    """

    depth: int = 16
    weights: Path | None = None
    patches: int | None = None
    blocks: Blocks | None = None  # instead of those of the depth

    def __post_init__(self) -> None:
        if self.depth not in BLOCKS:
            raise check.fail("VggFeatures", "depth", f"be one of {', '.join(map(str, BLOCKS))}", self.depth)
        if self.patches is not None:
            check.keep(self, patches=check.integer("VggFeatures", "patches", self.patches, 1, 64))

    def __repr__(self) -> str:
        source = "random weights" if self.weights is None else f"weights of digest {self.digest[:16]}"
        stretched = "" if self.patches is None else f", {self.patches} x {self.patches} patches"
        return f"VGG{self.depth} without its perceptron, {source}{stretched}"

    @cached_property
    def network(self) -> nn.Sequential:
        """The convolutions, frozen; read once."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(_SEED)
            network = convolutions(self._blocks)
        if self.weights is not None:
            load_convolutions(network, self.weights)
        return network.requires_grad_(False).eval()

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of all weights, in order."""
        digest = hashlib.sha256()
        for name, value in self.network.state_dict().items():
            digest.update(f"{name} {tuple(value.shape)}".encode())
            digest.update(value.contiguous().numpy().data)
        return digest.hexdigest()

    @property
    def identity(self) -> str:
        return f"VggFeatures {self._blocks} {self.patches} {self.digest}"

    def numbers(self, shape: Sequence[int]) -> int:
        least = 2 ** len(self._blocks)
        if len(shape) != 3 or shape[0] not in (1, 3) or min(shape[1:]) < least:
            raise InvalidParameter(
                f"VGG is for images of one or three colours and at least {least} x {least} pixels. The "
                f"examples have the shape {tuple(shape)}. Take larger images, or a smaller reduction."
            )
        grid = self.patches**2 if self.patches else (shape[1] // least) * (shape[2] // least)
        return self._blocks[-1][-1] * grid

    def __call__(self, images: Tensor, progress: ShowProgress = iter) -> Tensor:
        features = torch.empty(len(images), self.numbers(images.shape[1:]))
        with torch.no_grad():
            for start in progress(range(0, len(images), _AT_ONCE)):
                some = self.network(coloured(images[start : start + _AT_ONCE].to(torch.float32)))
                if self.patches:
                    some = functional.adaptive_avg_pool2d(some, self.patches)
                features[start : start + _AT_ONCE] = some.flatten(1)
        return features

    @property
    def _blocks(self) -> Blocks:
        return BLOCKS[self.depth] if self.blocks is None else self.blocks
