"""Features by random filters: convolutions that nobody has learnt, whose numbers come from a hash."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.learning.features.extractor import Extractor, ShowProgress

_AT_ONCE = 256
_STABILITY = 1e-5


@dataclass(frozen=True, kw_only=True)
class RandomFilters(Extractor):
    """The positive and the negative part of random filters, averaged over a grid of patches.

    Random filters with pooling carry much of what learnt ones do (Jarrett and others 2009; Saxe and others
    2011). They are the same on every machine, since their numbers are those of a hash of `seed`. The numbers
    of each image get mean 0 and variance 1, so that they lie around 1 whatever the light.

    >>> RandomFilters(filters=16, patches=4)(torch.rand(3, 1, 28, 28)).shape
    torch.Size([3, 512])
    """

    filters: int = 32
    side: int = 7
    patches: int = 4
    seed: int = 1

    def __post_init__(self) -> None:
        check.keep(self, filters=check.integer("RandomFilters", "filters", self.filters, 1, 1 << 14))
        check.keep(self, side=check.integer("RandomFilters", "side", self.side, 2, 64))
        check.keep(self, patches=check.integer("RandomFilters", "patches", self.patches, 1, 64))
        check.keep(self, seed=check.integer("RandomFilters", "seed", self.seed, 0, (1 << 63) - 1))

    @property
    def identity(self) -> str:
        return f"{self!r} {_STABILITY}"

    def numbers(self, shape: Sequence[int]) -> int:
        least = self.side + self.patches - 1
        if len(shape) != 3 or min(shape[1:]) < least:
            raise InvalidParameter(
                f"These random filters are for images of at least {least} x {least} pixels. The "
                f"examples have the shape {tuple(shape)}. Take a smaller 'side', fewer 'patches' "
                "or less reduction."
            )
        return 2 * self.filters * self.patches**2

    def __call__(self, images: Tensor, progress: ShowProgress = iter) -> Tensor:
        features = torch.empty(len(images), self.numbers(images.shape[1:]))
        weights = self._weights(images.shape[1])
        with torch.no_grad():
            for start in progress(range(0, len(images), _AT_ONCE)):
                some = functional.conv2d(images[start : start + _AT_ONCE].to(torch.float32), weights)
                both = torch.cat([some.clamp(min=0), (-some).clamp(min=0)], 1)
                patches = functional.adaptive_avg_pool2d(both, self.patches).flatten(1)
                features[start : start + _AT_ONCE] = functional.layer_norm(
                    patches, patches.shape[1:], eps=_STABILITY
                )
        return features

    def _weights(self, colours: int) -> Tensor:
        """Filters of mean 0 and length 1, from the bytes of a hash."""
        shape = self.filters, colours, self.side, self.side
        raw = hashlib.shake_256(f"random filters {self.seed}".encode()).digest(4 * math.prod(shape))
        weights = torch.from_numpy(np.frombuffer(raw, "<i4").astype(np.float64)).view(self.filters, -1)
        weights = weights - weights.mean(1, keepdim=True)
        weights /= torch.linalg.vector_norm(weights, dim=1, keepdim=True)
        return weights.to(torch.float32).view(shape)
