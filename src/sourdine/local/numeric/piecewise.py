"""Numbers by a window of likely codes: placed for the mean, for the distribution, or mixed with one bit.

These are the piecewise mechanism, the square wave and the hybrid, which has the least variance in the worst
case.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sourdine.core import check
from sourdine.core.distance import Distance
from sourdine.core.distributions import AtomLaw
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import Bits
from sourdine.local.numeric.duchi import ends_decoded, ends_noise, upper_end
from sourdine.local.numeric.oracle import Floats, Ints, Noise, numeric_examples
from sourdine.local.numeric.window import PARTS, WindowOracle, window_noise
from sourdine.mechanisms.randomized_response import KaryResponse, response_loss


class OneWindow(WindowOracle):
    """Oracles that use the window and nothing else."""

    def encode(self, values: NDArray[Any], bits: Bits) -> Ints:
        return self.sliding.sample(self.rounded(self.fine(values), bits), bits)

    def loss(self, distance: Distance) -> PrivacyLoss:
        self.require(distance)
        return sliding_loss(distance, self.epsilon, self.sliding.apart)


@dataclass(frozen=True, kw_only=True)
class Piecewise(OneWindow):
    """Reports a code from a window around the value e^epsilon times as often as one from elsewhere.

    A changed value costs epsilon (Wang, Xiao, Yang, Zhao, Hui, Shin, Shin, Yu 2019; proof on its page). Codes
    decode without bias. The window is the one of least worst-case variance; theirs is e^{-epsilon/2} * cells
    wide.

    >>> round(Piecewise(epsilon=1, lower=-1, upper=1).worst_variance, 2)
    5.07
    """

    name: ClassVar[str] = "piecewise/1"
    parts: ClassVar[int] = PARTS

    def best_window(self) -> int:
        constant, square = window_noise(float(self.epsilon), self.cells, np.arange(1, self.cells + 1))
        return 1 + int(np.argmin(constant + square))

    @classmethod
    def examples(cls) -> Iterator[Example]:
        for epsilon, cells, window, value in ((Fraction(1), 16, None, 0.0), (Fraction(3), 9, 2, 0.3)):
            yield Example(
                mechanism=cls(
                    epsilon=epsilon, lower=Fraction(0), upper=Fraction(1), cells=cells, window=window
                ),
                value=value,
                neighbour=1.0,
                distance=Distance.hamming(),
            )


def sliding_loss(distance: Distance, epsilon: Fraction, masses: tuple[float, float, float]) -> PrivacyLoss:
    """A loss of +epsilon, 0 or -epsilon, with these probabilities at the worst pair of values."""
    size = float(epsilon)
    law = AtomLaw([size, 0.0, -size], masses, masses[::-1])
    changed = int(distance.amount)
    return response_loss(distance, changed, changed * epsilon, law)


@dataclass(frozen=True, kw_only=True)
class SquareWave(OneWindow):
    """Reports a code near the value e^epsilon times as often as one far from it.

    A changed value costs epsilon (Li, Wang, Lopuhaä-Zwakenberg, Škorić, Li 2020; proof on its page). Their b
    is taken, half the window as a share of the range, which lets a report tell most about the value. The
    distribution comes from `distribution`, by smoothed EM.

    >>> SquareWave(epsilon=1, lower=0, upper=1, cells=1000).window
    512
    """

    name: ClassVar[str] = "square-wave/1"

    def best_window(self) -> int:
        epsilon = float(self.epsilon)
        b = (epsilon + math.expm1(-epsilon)) / (2 * (math.expm1(epsilon) - epsilon))
        return max(1, round(2 * b * self.cells))

    @classmethod
    def examples(cls) -> Iterator[Example]:
        return numeric_examples(cls, ((Fraction(1), 16, 0.0), (Fraction(7, 3), 21, 0.4)))


_SHARES = 1 << 16  # the best share is rounded to one of these parts


@dataclass(frozen=True, kw_only=True)
class Hybrid(WindowOracle):
    """Reports like `Piecewise` with probability `share`, like `Duchi` otherwise, and says which.

    A changed value costs epsilon, whichever it was (Wang, Xiao, Yang, Zhao, Hui, Shin, Shin, Yu 2019; proof
    in docs/guarantees/hybrid.md). The variance of the one grows towards the ends of the range and that of the
    other falls; window and share are the pair of least variance in the worst case, which is then the same for
    every value. Below an epsilon of about 0.6 no window helps, and the share is 0: it is `Duchi` then, and
    tells the mean alone.

    >>> round(Hybrid(epsilon=1, lower=-1, upper=1).worst_variance, 2)
    4.27
    """

    name: ClassVar[str] = "hybrid/1"
    parts: ClassVar[int] = PARTS
    share: Fraction | None = None

    def __post_init__(self) -> None:
        WindowOracle.__post_init__(self)
        share = self._best_share() if self.share is None else self.share
        check.keep(self, share=check.between("Hybrid", "share", share, Fraction(0), Fraction(1)))

    def best_window(self) -> int:
        """The variance is constant along the range at a share of 1/(1 + square), the best for any window."""
        widths = np.arange(1, self.cells + 1)
        constant, square = window_noise(float(self.epsilon), self.cells, widths)
        most = ends_noise(self.epsilon).constant
        return 1 + int(np.argmin((constant + square * most) / (1 + square)))

    def _best_share(self) -> Fraction:
        """The variance is linear in the share up to where it is the same for every value."""
        constant, square = self.sliding.noise
        if constant >= ends_noise(self.epsilon).constant:
            return Fraction(0)
        return Fraction(max(1, round(_SHARES / (1 + square))), _SHARES)

    @property
    def _share(self) -> Fraction:
        return Fraction(1) if self.share is None else self.share

    @property
    def codes(self) -> int:
        return self.sliding.codes + 2

    @property
    def decoded(self) -> Floats:
        return np.concatenate([self.sliding.decoded, ends_decoded(self.epsilon)])

    @property
    def noise(self) -> Noise:
        share = float(self._share)
        pairs = zip(self.sliding.noise, ends_noise(self.epsilon), strict=True)
        return Noise(*(share * one + (1 - share) * other for one, other in pairs))

    @property
    def response(self) -> KaryResponse:
        """What the bit goes through."""
        return KaryResponse(epsilon=self.epsilon, categories=2)

    @property
    def channel(self) -> Floats:
        share = float(self._share)
        p, q = self.response.channel
        upper = q + (p - q) * np.linspace(0, 1, self.cells + 1)
        ends = np.stack([1 - upper, upper], axis=1)
        return np.concatenate([share * self.sliding.rows, (1 - share) * ends], axis=1)

    def encode(self, values: NDArray[Any], bits: Bits) -> Ints:
        fine = self.fine(values)
        slides = exact.bernoulli(self._share, fine.size, bits).reshape(fine.shape)
        code = self.sliding.sample(self.rounded(fine, bits), bits)
        end = self.response.sample(upper_end(fine, self.cells * self.parts, bits), bits)
        return np.where(slides, code, self.sliding.codes + end)

    def loss(self, distance: Distance) -> PrivacyLoss:
        self.require(distance)
        share = float(self._share)
        p, q = self.response.channel
        one, neither, other = self.sliding.apart
        masses = (share * one + (1 - share) * p, share * neither, share * other + (1 - share) * q)
        return sliding_loss(distance, self.epsilon, masses)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        return numeric_examples(cls, ((Fraction(1), 12, 0.0), (Fraction(3), 20, 0.37)))
