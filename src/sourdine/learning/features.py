"""Scattering features as a linear model takes them: normalised image by image, computed once, kept on disk.

The normalisation looks at one image at a time, so it takes nothing from the others and costs no privacy.
Means and deviations over the data would be statistics of them, and would have to be paid for.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.learning.scattering import Scattering, Watch

_STABILITY = 1e-5  # what is added to a variance: groups that hold next to nothing stay small
_AT_ONCE = 1024


@dataclass(frozen=True, kw_only=True)
class Features:
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

    def __call__(self, images: Tensor, watch: Watch = iter) -> Tensor:
        """The features of images, one row each."""
        found = self.scattering(images, watch)
        groups = self.groups * images.shape[1]
        for start in range(0, len(found), _AT_ONCE):
            some = found[start : start + _AT_ONCE]
            some.copy_(functional.group_norm(some.to(torch.float32), groups, eps=_STABILITY))
        return found.flatten(1)

    def kept(self, images: Tensor, folder: Path, watch: Watch = iter) -> Tensor:
        """The features of images from a file in a folder, which is made if it is not there.

        The file is as sensitive as the images: whoever has it nearly has them. Only its owner may read it.
        Its name is a digest of the images and of the settings, so it is never taken for another's.
        """
        place = folder / f"features-{self._digest(images)}.npy"
        if place.exists():
            try:
                held = np.load(place, allow_pickle=False)
            except (EOFError, OSError, ValueError):
                raise InvalidParameter(
                    f"The kept features {place} cannot be read. Remove the file, and they are computed again."
                ) from None
            return torch.from_numpy(held)
        made = self(images, watch)
        part = place.with_suffix(".part")
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            np.save(file, made.numpy(), allow_pickle=False)
        part.replace(place)
        return made

    def _digest(self, images: Tensor) -> str:
        held = hashlib.sha256(repr((self, _STABILITY, images.dtype, tuple(images.shape))).encode())
        held.update(images.contiguous().numpy().data)
        return held.hexdigest()[:32]
