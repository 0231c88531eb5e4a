"""Extractors of features by name, and scattering as a linear model takes it: normalised image by image.

The normalisation looks at one image at a time, so it takes nothing from the others and costs no privacy.
Means and standard deviations over the data would be statistics of them, and would have to be paid for.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.learning.data.labelled import describe_shape
from sourdine.learning.features.extractor import Extractor, ShowProgress
from sourdine.learning.features.random_filters import RandomFilters
from sourdine.learning.features.scattering import Scattering
from sourdine.learning.features.vgg import VggFeatures

_STABILITY = 1e-5  # what is added to a variance: groups that hold next to nothing stay small
_AT_ONCE = 1024


@dataclass(frozen=True, kw_only=True)
class Features(Extractor):
    """Scattering coefficients in groups of channels; each group of an image gets mean 0 and variance 1.

    It is group normalisation without parameters (Wu, He 2018; with scattering: Tramer, Boneh 2021). Numbers
    are in half precision, since noise hides the rest.

    >>> Features(height=28, width=28)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 3969])
    """

    height: int
    width: int
    scales: int = 2
    angles: int = 8
    groups: int = 27

    def __post_init__(self) -> None:
        channels = self.scattering.channels
        if channels % check.integer("Features", "groups", self.groups, 1, channels):
            raise check.fail("Features", "groups", f"divide the {channels} channels", self.groups)

    @property
    def scattering(self) -> Scattering:
        """The coefficients before they are normalised."""
        return Scattering(height=self.height, width=self.width, scales=self.scales, angles=self.angles)

    @property
    def identity(self) -> str:
        return f"{self!r} {_STABILITY}"

    def numbers(self, shape: Sequence[int]) -> int:
        if tuple(shape[1:]) != (self.height, self.width):
            raise InvalidParameter(
                f"These scattering features are for images of {self.height} x {self.width} pixels. The "
                f"examples have the shape {tuple(shape)}."
            )
        return shape[0] * math.prod(self.scattering.shape)

    def __call__(self, images: Tensor, progress: ShowProgress = iter) -> Tensor:
        """The features of images, one row each."""
        features = self.scattering(images, progress)
        groups = self.groups * images.shape[1]
        for start in range(0, len(features), _AT_ONCE):
            some = features[start : start + _AT_ONCE]
            some.copy_(functional.group_norm(some.to(torch.float32), groups, eps=_STABILITY))
        return features.flatten(1)


class Extraction(StrEnum):
    """What can be computed of images by name, before a head learns from it."""

    SCATTERING = "scattering"
    RANDOM = "random"
    VGG13 = "vgg13"
    VGG16 = "vgg16"


DEPTHS = {Extraction.VGG13: 13, Extraction.VGG16: 16}


def extractor_of(
    kind: Extraction, shape: Sequence[int], *, weights: Path | None = None, patches: int | None = None
) -> Extractor:
    """The extractor of a name for images of a shape; a file with `weights` is for VGG alone.

    >>> extractor_of(Extraction.RANDOM, (1, 28, 28)).numbers((1, 28, 28))
    1024
    """
    if len(shape) != 3:
        raise InvalidParameter(
            f"Features are computed of images, with colours, height and width. The examples are of "
            f"{describe_shape(shape)}. Leave the features out."
        )
    if kind in DEPTHS:
        extractor: Extractor = VggFeatures(depth=DEPTHS[kind], weights=weights, patches=patches)
    elif weights is not None:
        raise check.fail("the features", "weights", "be left out unless the features are VGG's", str(weights))
    elif kind is Extraction.RANDOM:
        extractor = RandomFilters() if patches is None else RandomFilters(patches=patches)
    elif patches is not None:
        raise check.fail("the features", "patches", "be left out for scattering features", patches)
    else:
        extractor = Features(height=shape[1], width=shape[2])
    extractor.numbers(shape)
    return extractor
