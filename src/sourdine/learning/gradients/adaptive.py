"""A clipping norm that follows a quantile of the gradients' lengths, and pays for looking at them.

In each step every unit tells besides its gradient whether it was within the norm, as +1 or -1: one number
more of the vector that it adds, of which the whole is no longer than before. So the noise of the step covers
both, and epsilon is the same; what the count takes of the length the gradient lacks (Andrew, Thakkar,
McMahan, Ramaswamy 2021, who add noise to both apart).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

from sourdine.core import check
from sourdine.learning.gradients.clipping import Flat

WITHIN = "units within the norm"  # a sum beside those of parameters, whose names have no spaces
_OWNER = "QuantileClipping"
_MOST_SINE = 0.5  # of the angle between a unit's vector and its gradient
_WIDEST = 2.0**20  # how far the norm may go from where it began, either way


@dataclass(frozen=True, kw_only=True)
class QuantileClipping(Flat):
    """Clipping to a norm that begins at `norm` and goes where a `quantile` of all gradients is shorter.

    - `rate`: how fast it follows; the norm changes by up to e^rate a step.
    - `deviation`: of the noise in the share of units within the norm, in each step. A smaller one takes more
      of the gradient's part of the noise.

    >>> QuantileClipping(norm=0.1).sine(noise_multiplier=1.0, batch_size=1000)
    0.01
    """

    quantile: float = 0.5
    rate: float = 0.2
    deviation: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        least, most = Fraction(1, 1000), Fraction(2)
        check.keep(
            self,
            quantile=float(check.inside(_OWNER, "quantile", self.quantile, 0, 1)),
            rate=float(check.between(_OWNER, "rate", self.rate, least, most)),
            deviation=float(check.between(_OWNER, "deviation", self.deviation, least, Fraction(1))),
        )

    def sine(self, noise_multiplier: float, batch_size: int) -> float:
        """The part of a unit's vector that says whether it was within the norm."""
        return min(_MOST_SINE, float(noise_multiplier) / (2 * self.deviation * float(batch_size)))


@dataclass(frozen=True, kw_only=True)
class FollowingNorm(Flat):
    """Clipping in the midst of a run: to the norm of the step, in units of the first, with a count.

    A gradient g counts as cos * g/limit, at most, of the first norm, and the unit as sin or -sin of it.
    """

    limit: float
    sine: float

    @property
    def cosine(self) -> float:
        """What is left for the gradient, rounded down."""
        return math.sqrt(1 - self.sine**2) * (1 - 2.0**-50)

    @property
    def stretch(self) -> float:
        """What a sum is multiplied with to have the units of the norm of the step."""
        return self.limit / (self.norm * self.cosine)

    def weights(self, squares: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return dict.fromkeys(squares, self._limited(_norms(squares), self.limit) / self.stretch)

    def counts(self, squares: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Units within the norm less those beyond; one that is not finite is beyond."""
        return {WITHIN: (2 * (_norms(squares) <= self.limit).double() - 1).sum()}


class NormFollower:
    """The norm of each step of a run, from the noisy counts of the steps before it."""

    def __init__(self, settings: QuantileClipping, noise_multiplier: float, batch_size: int) -> None:
        self._settings, self._noise, self._batch_size = settings, noise_multiplier, batch_size
        self._sine = settings.sine(noise_multiplier, batch_size)
        self.limit = settings.norm

    @property
    def clipping(self) -> FollowingNorm:
        """The clipping of the next step."""
        return FollowingNorm(norm=self._settings.norm, limit=self.limit, sine=self._sine)

    def follow(self, count: float, normal: float) -> None:
        """Go where the share of units within the norm says, under noise from a standard normal number."""
        noisy = count + normal * self._noise / self._sine
        self.limit = next_norm(self._settings, self.limit, (noisy / self._batch_size + 1) / 2)


def _norms(squares: Mapping[str, Tensor]) -> Tensor:
    return torch.stack(list(squares.values())).sum(0).sqrt()


def next_norm(clipping: QuantileClipping, limit: float, share: float) -> float:
    """The norm of the next step, from the noisy share of units within that of this one.

    >>> round(next_norm(QuantileClipping(rate=0.5), 1.0, 1.0), 4), next_norm(QuantileClipping(), 3.0, 0.5)
    (0.7788, 3.0)
    """
    step = math.exp(-clipping.rate * (min(max(share, 0.0), 1.0) - clipping.quantile))
    return min(max(limit * step, clipping.norm / _WIDEST), clipping.norm * _WIDEST)
