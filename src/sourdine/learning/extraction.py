"""Extractors by name."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.learning.data import said
from sourdine.learning.extractor import Extractor
from sourdine.learning.features import Features
from sourdine.learning.random_filters import RandomFilters
from sourdine.learning.vgg_features import VggFeatures


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
            f"{said(shape)}. Leave the features out."
        )
    if kind in DEPTHS:
        made: Extractor = VggFeatures(depth=DEPTHS[kind], weights=weights, patches=patches)
    elif weights is not None:
        raise check.fail("the features", "weights", "be left out unless the features are VGG's", str(weights))
    elif kind is Extraction.RANDOM:
        made = RandomFilters() if patches is None else RandomFilters(patches=patches)
    elif patches is not None:
        raise check.fail("the features", "patches", "be left out for scattering features", patches)
    else:
        made = Features(height=shape[1], width=shape[2])
    made.numbers(shape)
    return made
