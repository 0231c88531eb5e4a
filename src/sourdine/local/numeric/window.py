"""A window of codes that are e^epsilon times as likely as the others, and slides with the value.

Piecewise, square wave and hybrid are this window at different widths.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sourdine.core import check
from sourdine.core.grid import Interval
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import Bits
from sourdine.local.numeric.oracle import Floats, Ints, Noise, NumericOracle, ResolvedOracle, UnbiasedOracle

PARTS = 1 << 10  # of a cell: how finely a value is placed before it is rounded at random to the grid


@dataclass(frozen=True)
class Window:
    """Codes 0 .. cells + width - 1: from place s those in s .. s + width - 1 weigh e^epsilon, the others 1.

    There are always `cells` codes outside, so every place has the same normaliser, and epsilon is exact.
    """

    epsilon: Fraction
    cells: int
    width: int

    @property
    def codes(self) -> int:
        return self.cells + self.width

    @property
    def likely(self) -> float:
        """The probability of one code inside the window."""
        return 1 / (self.width + self.cells * math.exp(-self.epsilon))

    @property
    def unlikely(self) -> float:
        """The probability of one code outside."""
        return self.likely * math.exp(-self.epsilon)

    def sample(self, places: Ints, bits: Bits) -> Ints:
        """One code for each place; all words are drawn whether or not they are used."""
        odds = Fraction(self.width, self.cells)
        inside = exact.bernoulli_odds(self.epsilon, odds, places.size, bits).reshape(places.shape)
        within = exact.uniform(self.width, places.size, bits).reshape(places.shape)
        beside = exact.uniform(self.cells, places.size, bits).reshape(places.shape)
        return np.where(inside, places + within, beside + self.width * (beside >= places))

    @property
    def decoded(self) -> Floats:
        """Codes centred and stretched by 1/slope, so that the mean from place s is 2 s/cells - 1."""
        centred = np.arange(self.codes) - (self.codes - 1) / 2
        return np.asarray(centred / (self.slope * self.cells / 2), np.float64)

    @property
    def slope(self) -> float:
        """How far the mean code moves with the place."""
        return self.width * (self.likely - self.unlikely)

    @property
    def noise(self) -> Noise:
        constant, square = window_noise(float(self.epsilon), self.cells, np.array([self.width]))
        return Noise(float(constant[0]), float(square[0]))

    @property
    def rows(self) -> Floats:
        """The probability of each code from each place."""
        ahead = np.arange(self.codes) - np.arange(self.cells + 1)[:, None]
        return np.where((ahead >= 0) & (ahead < self.width), self.likely, self.unlikely)

    @property
    def apart(self) -> tuple[float, float, float]:
        """From the ends of the range: the probabilities of the first's window, of neither's, of the other's.

        Places less far apart share part of their windows, which moves mass to a loss of 0.
        """
        neither = (self.cells - self.width) * self.unlikely
        return self.width * self.likely, neither, self.width * self.unlikely


def window_noise(epsilon: float, cells: int, width: Ints) -> tuple[Floats, Floats]:
    """The `Noise` of windows of several widths: the constants and the squares.

    With N = cells + width codes, the centred code has the second moment p_out N(N^2 - 1)/12 +
    (p_in - p_out) width ((width^2 - 1)/12 + s^2) from s places off the middle.
    """
    wide = width.astype(float)
    likely = 1 / (wide + cells * math.exp(-epsilon))
    unlikely = likely * math.exp(-epsilon)
    slope = -math.expm1(-epsilon) * wide * likely
    codes = cells + wide
    moment = unlikely * codes * (codes**2 - 1) / 12 + slope * (wide**2 - 1) / 12
    return moment / (slope * cells / 2) ** 2, 1 / slope - 1


@dataclass(frozen=True, kw_only=True)
class WindowOracle(UnbiasedOracle, ResolvedOracle):
    """Oracles that report by a sliding window; None takes the best width for their purpose."""

    parts: ClassVar[int] = 1  # more than one: values are rounded at random between places
    window: int | None = None

    def __post_init__(self) -> None:
        NumericOracle.__post_init__(self)
        width = self.best_window() if self.window is None else self.window
        owner = type(self).__name__
        object.__setattr__(self, "window", check.integer(owner, "window", width, 1, self.cells))

    @abstractmethod
    def best_window(self) -> int:
        """The width that serves this oracle's purpose best."""

    @property
    def sliding(self) -> Window:
        """The window itself."""
        return Window(self.epsilon, self.cells, self.window or 1)

    @property
    def codes(self) -> int:
        return self.sliding.codes

    @property
    def decoded(self) -> Floats:
        return self.sliding.decoded

    @property
    def noise(self) -> Noise:
        return self.sliding.noise

    @property
    def blur(self) -> float:
        return 0.0 if self.parts == 1 else 1 / self.cells**2

    @property
    def rounding(self) -> float:
        """Half of a part of a cell: within a cell values are rounded at random, without bias."""
        return super().rounding / self.parts

    @property
    def channel(self) -> Floats:
        return self.sliding.rows

    def fine(self, values: NDArray[Any]) -> Ints:
        """Where values lie, in parts of a cell."""
        whole = Interval(self.lower, self.upper, self.cells * self.parts)
        return whole.places(type(self).__name__, values)

    def rounded(self, fine: Ints, bits: Bits) -> Ints:
        """One of the two places around each, so that the place is right on average."""
        whole, rest = np.divmod(fine, self.parts)
        return whole + (exact.uniform(self.parts, fine.size, bits).reshape(fine.shape) < rest)
