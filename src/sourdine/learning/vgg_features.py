"""Features by the convolutions of a VGG network, frozen."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.learning.extractor import Extractor, Watch
from sourdine.learning.vgg import BLOCKS, Blocks, coloured, convolutions, load_convolutions

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
            made = convolutions(self._blocks)
        if self.weights is not None:
            load_convolutions(made, self.weights)
        return made.requires_grad_(False).eval()

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of all weights, in order."""
        held = hashlib.sha256()
        for name, value in self.network.state_dict().items():
            held.update(f"{name} {tuple(value.shape)}".encode())
            held.update(value.contiguous().numpy().data)
        return held.hexdigest()

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

    def __call__(self, images: Tensor, watch: Watch = iter) -> Tensor:
        found = torch.empty(len(images), self.numbers(images.shape[1:]))
        with torch.no_grad():
            for start in watch(range(0, len(images), _AT_ONCE)):
                some = self.network(coloured(images[start : start + _AT_ONCE].to(torch.float32)))
                if self.patches:
                    some = functional.adaptive_avg_pool2d(some, self.patches)
                found[start : start + _AT_ONCE] = some.flatten(1)
        return found

    @property
    def _blocks(self) -> Blocks:
        return BLOCKS[self.depth] if self.blocks is None else self.blocks
