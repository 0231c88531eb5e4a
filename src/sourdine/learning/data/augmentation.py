"""Images turned, moved, mirrored and blurred at random, each by itself, every time that it is drawn.

What is drawn for an image depends on no other one, and its versions stand for the same person: their
gradients are averaged before they are clipped (De, Berrada, Hayes, Smith, Balle 2022). So a person moves a
sum by one clipped gradient at most, as without, and epsilon is the same. Versions never count as more people.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import SYSTEM, Bits, coins
from sourdine.learning.data.batches import Indices
from sourdine.learning.data.examples import Batch, Examples

_OWNER = "Augmentation"
_SPREAD = 3.0  # standard deviations that a blur reaches
_NARROW = math.log(4 / 3)  # of the ratio of a window's sides, beside that of the image


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """How images are changed at random before a gradient is taken.

    - `flip`: mirrored left and right, every other time.
    - `shift`: moved by up to so many pixels, up or down and left or right; what comes in is black.
    - `rotate`: turned by up to so many degrees, either way.
    - `crop`: cut to a part of this share of its area at least, with sides that relate to each other between 3
      to 4 and 4 to 3 of the image's, and made as large as it was.
    - `blur`: blurred by a Gaussian of up to so many pixels.
    - `copies`: versions of each image whose gradients are averaged in a step.

    >>> from sourdine.testing import SeededBits
    >>> image = torch.arange(4.0).reshape(1, 1, 1, 4)
    >>> Augmentation(flip=True).apply(image.expand(3, 1, 1, 4), SeededBits(1))[:, 0, 0, 0].tolist()
    [3.0, 3.0, 0.0]
    """

    flip: bool = False
    shift: int = 0
    rotate: float = 0.0
    crop: float | None = None
    blur: float = 0.0
    copies: int = 1

    def __post_init__(self) -> None:
        check.boolean(_OWNER, "flip", self.flip)
        check.keep(
            self,
            shift=check.integer(_OWNER, "shift", self.shift, 0, 1 << 12),
            rotate=float(check.between(_OWNER, "rotate", self.rotate, Fraction(0), Fraction(180))),
            blur=float(check.between(_OWNER, "blur", self.blur, Fraction(0), Fraction(16))),
            copies=check.integer(_OWNER, "copies", self.copies, 1, 1 << 10),
        )
        if self.crop is not None:
            least, most = Fraction(1, 100), Fraction(1)
            check.keep(self, crop=float(check.between(_OWNER, "crop", self.crop, least, most)))
        changed = self.flip or self.shift or self.rotate or self.blur or self.crop is not None
        if self.copies > 1 and not changed:
            must = "be 1 where images are not changed"
            raise check.fail(_OWNER, "copies", must, self.copies, "All copies would be the same.")

    def apply(self, images: Tensor, bits: Bits = SYSTEM) -> Tensor:
        """A version of each image, which depends on that image and on bits that are drawn for it alone."""
        versions = images if images.is_floating_point() else images.float()
        count = len(versions)
        if not count:
            return images
        if self.flip:
            turned = torch.from_numpy(coins(bits, count)).to(versions.device)
            versions = torch.where(turned.view(-1, 1, 1, 1), versions.flip(-1), versions)
        if self.shift:
            versions = self._moved(versions, bits)
        if self.rotate:
            versions = self._turned(versions, bits)
        if self.crop is not None:
            versions = self._cut(versions, bits)
        if self.blur:
            versions = _blurred(versions, self.blur * _uniform(count, bits), self.blur)
        return versions if images.is_floating_point() else versions.round().to(images.dtype)

    def _moved(self, images: Tensor, bits: Bits) -> Tensor:
        """Cut out of the image with a black margin."""
        high, wide = images.shape[-2:]
        drawn = np.floor(_uniform(2 * len(images), bits) * (2 * self.shift + 1)).astype(np.int64)
        down, right = torch.from_numpy(drawn.reshape(2, -1)).to(images.device)
        padded = functional.pad(images, (self.shift,) * 4)
        rows = (down[:, None] + torch.arange(high, device=images.device))[:, None, :, None]
        columns = (right[:, None] + torch.arange(wide, device=images.device))[:, None, None, :]
        each = torch.arange(len(images), device=images.device).view(-1, 1, 1, 1)
        colours = torch.arange(images.shape[1], device=images.device).view(1, -1, 1, 1)
        return padded[each, colours, rows, columns]

    def _turned(self, images: Tensor, bits: Bits) -> Tensor:
        angles = math.radians(self.rotate) * (2 * _uniform(len(images), bits) - 1)
        high, wide = images.shape[-2:]
        cosine, sine, zero = np.cos(angles), np.sin(angles), np.zeros(len(angles))
        # in units of half an image each way, which are not alike where it is not square
        maps = np.stack([cosine, -sine * high / wide, zero, sine * wide / high, cosine, zero], axis=1)
        return _mapped(images, maps)

    def _cut(self, images: Tensor, bits: Bits) -> Tensor:
        """A window of each image, stretched over it (Szegedy et al. 2015)."""
        least = 1.0 if self.crop is None else self.crop
        area, shape, across, down = _uniform(4 * len(images), bits).reshape(4, -1)
        side, ratio = np.sqrt(least + (1 - least) * area), np.exp(_NARROW * (2 * shape - 1) / 2)
        wide, high = np.minimum(side * ratio, 1.0), np.minimum(side / ratio, 1.0)
        zero = np.zeros(len(wide))
        right, low = (1 - wide) * (2 * across - 1), (1 - high) * (2 * down - 1)
        return _mapped(images, np.stack([wide, zero, right, zero, high, low], axis=1))


class AugmentedExamples(Examples):
    """Examples of which every batch holds new versions, `copies` of each in a row."""

    def __init__(self, examples: Examples, augmentation: Augmentation, bits: Bits) -> None:
        self._examples, self._augmentation, self._bits, self.size = (
            examples,
            augmentation,
            bits,
            examples.size,
        )
        self.names = examples.names
        if examples.like()[0].ndim != 4:
            raise InvalidParameter(
                "Only images can be augmented, with the axes colours, height and width; these examples have "
                "others. Leave the augmentation out, or train on images and not on their features."
            )

    def batch(self, places: Indices) -> Batch:
        images, *others = self._examples.batch(np.repeat(places, self._augmentation.copies))
        return (self._augmentation.apply(images, self._bits), *others)

    def fitting(self, places: Indices) -> tuple[Batch, Tensor | None]:
        (images, *others), fits = self._examples.fitting(np.repeat(places, self._augmentation.copies))
        return (self._augmentation.apply(images, self._bits), *others), fits

    def like(self) -> Batch:
        return self._examples.like()

    def made_up(self, count: int) -> Batch:
        return self._examples.made_up(count)


def _uniform(count: int, bits: Bits) -> NDArray[np.float64]:
    """Numbers from 0 to below 1."""
    return np.asarray((bits.words(count) >> np.uint64(11)) * 2.0**-53, np.float64)


def _mapped(images: Tensor, maps: NDArray[np.float64]) -> Tensor:
    """Each image as seen through its own affine map, in units of half an image each way; black outside."""
    places = torch.from_numpy(maps.reshape(-1, 2, 3)).to(images)
    grid = functional.affine_grid(places, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, padding_mode="zeros", align_corners=False)


def _blurred(images: Tensor, pixels: NDArray[np.float64], most: float) -> Tensor:
    """Each image by its own Gaussian, along one axis and then along the other; edges go on as they are.

    All reach as far as the largest that may be drawn: that of a batch would depend on who is in it.
    """
    reach = max(1, math.ceil(_SPREAD * most))
    colours = images.shape[1]
    offsets = torch.arange(-reach, reach + 1, device=images.device, dtype=images.dtype)
    wide = torch.from_numpy(np.maximum(pixels, 1e-3)).to(images)[:, None]
    kernel = torch.exp(-((offsets / wide) ** 2) / 2)
    kernel = (kernel / kernel.sum(dim=1, keepdim=True)).repeat_interleave(colours, dim=0)
    flat = images.reshape(1, -1, *images.shape[-2:])
    for shape in ((-1, 1, 2 * reach + 1, 1), (-1, 1, 1, 2 * reach + 1)):
        weights = kernel.view(shape)
        margin = (0, 0, reach, reach) if shape[2] > 1 else (reach, reach, 0, 0)
        padded = functional.pad(flat, margin, mode="replicate")
        flat = functional.conv2d(padded, weights, groups=len(weights))
    return flat.reshape(images.shape)
