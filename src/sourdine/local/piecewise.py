"""Numbers by a window of likely codes, placed for the mean."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sourdine.core.bits import Bits
from sourdine.core.distance import Distance
from sourdine.core.laws import AtomLaw
from sourdine.core.loss import Loss
from sourdine.core.mechanism import Example
from sourdine.local.numeric import Ints
from sourdine.local.window import PARTS, WindowOracle, window_noise
from sourdine.mechanisms.response import response_loss


class OneWindow(WindowOracle):
    """Oracles that use the window and nothing else."""

    def encode(self, values: NDArray[Any], bits: Bits) -> Ints:
        return self.sliding.sample(self.rounded(self.fine(values), bits), bits)

    def loss(self, distance: Distance) -> Loss:
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


def sliding_loss(distance: Distance, epsilon: Fraction, masses: tuple[float, float, float]) -> Loss:
    """A loss of +epsilon, 0 or -epsilon, with these probabilities at the worst pair of values."""
    size = float(epsilon)
    law = AtomLaw([size, 0.0, -size], masses, masses[::-1])
    changed = int(distance.amount)
    return response_loss(distance, changed, changed * epsilon, law)
