"""Two-sided geometric noise on counts, kept inside a declared range if there is one."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check, grid
from sourdine.core.distance import Distance, Norm
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.mechanisms.additive import AdditiveNoise
from sourdine.mechanisms.laplace import LEAST_SCALE, MOST_SCALE, laplace_loss, laplace_quantile


@dataclass(frozen=True, kw_only=True)
class Geometric(AdditiveNoise):
    """Adds two-sided geometric noise to integers, then clamps the answers to [lower, upper].

    A change of d in L1 costs epsilon = d / scale (Ghosh, Roughgarden, Sundararajan 2009; laplace.md);
    clamping is post-processing and costs nothing.

    >>> Geometric(scale=2, lower=0).loss(Distance.l1(1)).epsilon
    Fraction(1, 2)
    """

    name: ClassVar[str] = "geometric/1"
    norm: ClassVar[Norm] = Norm.L1
    scale: Fraction
    lower: int | None = None
    upper: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "scale", check.between("Geometric", "scale", self.scale, LEAST_SCALE, MOST_SCALE)
        )
        for name in ("lower", "upper"):
            bound = getattr(self, name)
            if bound is not None:
                whole = check.integer("Geometric", name, bound, -grid.LIMIT, grid.LIMIT)
                object.__setattr__(self, name, whole)
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise check.fail("Geometric", "upper", f"be at least the lower bound {self.lower}", self.upper)

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        noisy = super().sample(values, bits)
        if noisy.ndim:
            clamped: NDArray[Any] = np.clip(noisy, self.lower, self.upper)
            return clamped
        one = int(noisy) if self.lower is None else max(int(noisy), self.lower)
        return np.array(one if self.upper is None else min(one, self.upper))

    def _make_noise(self) -> exact.Noise:
        return exact.laplace_noise(self.scale)

    def loss(self, distance: Distance) -> PrivacyLoss:
        self.require(distance)
        return laplace_loss(distance.amount, self.scale, distance)

    def error(self, confidence: float = 0.95) -> float:
        """For a value inside the range, clamping only ever brings the answer nearer."""
        confidence = check.confidence("Geometric.error", confidence)
        return float(laplace_quantile(self.scale, confidence))

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(mechanism=cls(scale=Fraction(7, 3)), value=5, neighbour=6, distance=Distance.l1(1))
        yield Example(
            mechanism=cls(scale=Fraction(5, 2), lower=0, upper=9),
            value=1,
            neighbour=0,
            distance=Distance.l1(1),
        )
