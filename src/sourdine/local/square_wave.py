"""Numbers by a window of likely codes, placed for their whole distribution."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sourdine.core.mechanism import Example
from sourdine.local.numeric import numeric_examples
from sourdine.local.piecewise import OneWindow


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
