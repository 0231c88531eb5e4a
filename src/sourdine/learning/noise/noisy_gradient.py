"""Gaussian noise on a sum of clipped gradients: what one step of training spends. Priced without torch.

Its noise is in float32; an exact step adds rounded Gaussian noise to whole numbers of a grid instead.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from sourdine.core import check
from sourdine.core.distance import Distance, Norm, root_above
from sourdine.core.distributions import GaussianLaw, float_above
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example, Mechanism
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.mechanisms.rounded_gaussian import RoundedGaussian

MOST_SIGMA = 1 << 60
GRID_STEPS = 1 << 20
"""Steps of the grid of exact training to a clipping norm."""
_MOST_NORMS = 1 << 10  # beyond, rounded noise would have more digits than its sampler tells


def rounded_noise(owner: str, deviations: Fraction) -> RoundedGaussian:
    """The noise of an exact step, in steps of the grid, from its deviation in clipping norms."""
    most = Fraction(_MOST_NORMS)
    if not 8 / Fraction(GRID_STEPS) <= deviations <= most:
        must = f"lie between 8/{GRID_STEPS} and {_MOST_NORMS} clipping norms in exact training"
        raise check.fail(owner, "noise_multiplier", must, float(deviations))
    return RoundedGaussian(sigma=deviations * GRID_STEPS)


@dataclass(frozen=True, kw_only=True)
class NoisyGradient(Mechanism):
    """Adds Gaussian noise to a sum of clipped gradients.

    A change of d in L2 costs rho = d^2 / (2 sigma^2) (Bun and Steinke 2016, proposition 1.6), and its loss is
    normal, N(mu^2/2, mu^2) with mu = d/sigma (Dong, Roth, Su 2022, theorem 2.7). The noise is in float32:
    docs/guarantees/learning_methods.md says what that leaves open. It can be described and priced without
    torch.

    >>> NoisyGradient(sigma=2).loss(Distance.l2(1)).rho
    Fraction(1, 8)
    """

    name: ClassVar[str] = "noisy-gradient/1"
    norm: ClassVar[Norm] = Norm.L2
    sigma: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", check.positive("NoisyGradient", "sigma", self.sigma, MOST_SIGMA))

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        import torch

        from sourdine.learning.noise.normal import gaussian

        finite = np.nan_to_num(np.asarray(values, np.float32), nan=0.0, posinf=0.0, neginf=0.0)
        noise: NDArray[np.float32] = gaussian(torch.Size(finite.shape), bits).numpy()
        return finite + noise * np.float32(self.sigma)

    def loss(self, distance: Distance) -> PrivacyLoss:
        self.require(distance)
        square = distance.amount / self.sigma**2
        law = GaussianLaw(float_above(root_above(square)))
        return PrivacyLoss.symmetric(law, neighbours=distance.neighbours, rho=square / 2)

    def error(self, confidence: float = 0.95) -> float:
        confidence = check.confidence("NoisyGradient.error", confidence)
        return float(-ndtri((1 - confidence) / 2)) * float(self.sigma)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(
            mechanism=cls(sigma=Fraction(4, 3)),
            value=0.0,
            neighbour=1.0,
            distance=Distance.l2(1),
            code=lambda answers: np.floor(8 * answers).astype(np.int64),
        )
        yield Example(
            mechanism=cls(sigma=Fraction(5)),
            value=[0.0, 0.0],
            neighbour=[3.0, 4.0],
            distance=Distance.l2(5),
            code=lambda answers: np.floor(answers @ np.array([3.0, 4.0]) / 5).astype(np.int64),
        )
