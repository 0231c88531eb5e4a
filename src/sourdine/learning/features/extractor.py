"""What turns images into rows of numbers before a head learns from them, and keeps those on disk.

An extractor is fixed before it sees an image: it looks at one image at a time and takes nothing from the
others, so its numbers cost no privacy. They do tell the images nearly as they are.
"""

import hashlib
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from sourdine.core import check
from sourdine.core.errors import InvalidParameter

ShowProgress = Callable[[Sequence[int]], Iterable[int]]
REDUCTIONS = (1, 2, 4)
_AT_ONCE = 1024


class Extractor(ABC):
    """Rows of features from images (examples, colours, height, width)."""

    @property
    @abstractmethod
    def identity(self) -> str:
        """All that its numbers depend on beside the images, weights included."""

    @abstractmethod
    def numbers(self, shape: Sequence[int]) -> int:
        """How many numbers an image of a shape (colours, height, width) gives; or why it cannot be."""

    @abstractmethod
    def __call__(self, images: Tensor, progress: ShowProgress = iter) -> Tensor:
        """The features of images, one row each, chunk by chunk."""

    def rows(
        self, images: Tensor, progress: ShowProgress = iter, *, dtype: torch.dtype = torch.float16
    ) -> Tensor:
        """The features of images in numbers of a type; what that cannot hold becomes its largest number."""
        if dtype not in _TYPES:
            raise check.fail("Extractor", "dtype", "be float16 or float32", dtype)
        most = torch.finfo(dtype).max
        features = self(images, progress)
        return features if features.dtype == dtype else features.clamp_(-most, most).to(dtype)

    def cached_rows(
        self,
        images: Tensor,
        folder: Path,
        progress: ShowProgress = iter,
        *,
        dtype: torch.dtype = torch.float16,
    ) -> Tensor:
        """The features of images from a file in a folder, which is made if it is not there.

        The file is as sensitive as the images: whoever has it nearly has them. Only its owner may read it.
        Its name is a digest of the images, of the extractor with its weights and of the type of numbers, so
        it is never taken for another's; images that were reduced before are other images.
        """
        place = folder / f"features-{self._digest(images, dtype)}.npy"
        if not place.exists():
            features = self.rows(images, progress, dtype=dtype)
            _write(place, features)
            return features
        try:
            array = np.load(place, mmap_mode="c", allow_pickle=False)  # read as it is needed
        except (EOFError, OSError, ValueError):
            array = None
        if array is None or array.shape[:1] != (len(images),) or array.dtype != _TYPES[dtype]:
            raise InvalidParameter(
                f"The kept features {place} cannot be read. Remove the file, and they are computed again."
            )
        return torch.from_numpy(array)

    def _digest(self, images: Tensor, dtype: torch.dtype) -> str:
        about = (self.identity, str(images.dtype), tuple(images.shape), str(dtype))
        digest = hashlib.sha256(repr(about).encode())
        for start in range(0, len(images), _AT_ONCE):
            digest.update(images[start : start + _AT_ONCE].contiguous().numpy().data)
        return digest.hexdigest()[:32]


_TYPES = {torch.float16: np.float16, torch.float32: np.float32}


def _write(place: Path, features: Tensor) -> None:
    """A whole file or none, that only its owner may read; also when two processes write it at once."""
    handle, name = tempfile.mkstemp(suffix=".part", prefix=place.stem, dir=place.parent)  # of mode 600
    try:
        with os.fdopen(handle, "wb") as file:
            np.save(file, features.numpy(), allow_pickle=False)
        Path(name).replace(place)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def reduced(images: Tensor, by: int) -> Tensor:
    """Images of 1/by of the height and width: each pixel is the mean of by x by; what is over is cut off.

    >>> reduced(torch.arange(16.0).view(1, 1, 4, 4), 2).tolist()
    [[[[2.5, 4.5], [10.5, 12.5]]]]
    """
    if by not in REDUCTIONS:
        raise check.fail("reduced", "by", f"be one of {', '.join(map(str, REDUCTIONS))}", by)
    if by == 1:
        return images
    if images.ndim != 4 or min(images.shape[2:]) < by:
        raise InvalidParameter(
            "Only images can be reduced, with the axes (examples, colours, height, width). The examples have "
            f"{tuple(images.shape[1:])}. Leave the reduction out."
        )
    starts = range(0, max(len(images), 1), _AT_ONCE)
    return torch.cat([functional.avg_pool2d(images[start : start + _AT_ONCE], by) for start in starts])
