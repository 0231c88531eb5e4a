"""What the mechanisms that compare noisy queries with a noisy threshold have in common."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check, exact, grid, select
from sourdine.core.bits import Bits
from sourdine.core.distance import Distance, Norm
from sourdine.core.loss import Loss
from sourdine.core.mechanism import Mechanism
from sourdine.mechanisms.laplace import LEAST_SCALE, MOST_SCALE

MOST_EPSILON = 1 << 10
MOST_QUERIES = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Crossing(Mechanism):
    """Integer queries held against one integer threshold, all with discrete Laplace noise.

    Let every query change by at most D between neighbours. The loss is D / b1 + c r / b2 for noise of scale
    b1 on the threshold and b2 on the queries, at most c of which are reported above. r is how far apart the
    changes of two queries can be: 2 D, or D when all queries move the same way (monotone).
    """

    norm: ClassVar[Norm] = Norm.LINF
    epsilon: Fraction
    queries: int
    threshold: int
    sensitivity: Fraction = Fraction(1)
    monotone: bool = False

    def __post_init__(self) -> None:
        owner = type(self).__name__
        epsilon = check.positive(owner, "epsilon", self.epsilon, MOST_EPSILON)
        object.__setattr__(self, "epsilon", epsilon)
        sensitivity = check.positive(owner, "sensitivity", self.sensitivity, MOST_SCALE)
        object.__setattr__(self, "sensitivity", sensitivity)
        object.__setattr__(self, "queries", check.integer(owner, "queries", self.queries, 1, MOST_QUERIES))
        object.__setattr__(
            self, "threshold", check.integer(owner, "threshold", self.threshold, -grid.LIMIT, grid.LIMIT)
        )
        check.boolean(owner, "monotone", self.monotone)
        scales = (self.threshold_scale, self.query_scale)
        if min(scales) < LEAST_SCALE or max(scales) > MOST_SCALE:
            remedy = "Change epsilon or the sensitivity."
            must = "keep the scale of the noise between 2^-40 and 2^40"
            raise check.fail(owner, "epsilon", must, self.epsilon, remedy)

    @property
    def spread(self) -> Fraction:
        """How far apart the changes of two queries can be."""
        return self.sensitivity if self.monotone else 2 * self.sensitivity

    @property
    @abstractmethod
    def threshold_scale(self) -> Fraction:
        """The scale b1 of the threshold's noise."""

    @property
    @abstractmethod
    def query_scale(self) -> Fraction:
        """The scale b2 of each query's noise."""

    def loss(self, distance: Distance) -> Loss:
        """Integers at most t apart are at most floor(t) apart, and every term is proportional to it."""
        self.require(distance)
        epsilon = self.epsilon * math.floor(distance.amount) / self.sensitivity
        return Loss.pure(epsilon, neighbours=distance.neighbours)

    def error(self, confidence: float = 0.95) -> float:
        """An alpha such that, with this confidence, every query reported above is at least threshold - alpha
        and every query compared and reported below is less than threshold + alpha.

        It holds when no noise exceeds its share of alpha = k1 + k2: the threshold's exceeds k1 with
        probability beta b1/(b1 + b2) at most, each query's k2 with beta b2/(b1 + b2)/queries.
        """
        beta = 1 - check.confidence(f"{type(self).__name__}.error", confidence)
        share = self.threshold_scale / (self.threshold_scale + self.query_scale)
        first = _reach(self.threshold_scale, beta * float(share))
        return float(first + _reach(self.query_scale, beta * float(1 - share) / self.queries))

    def _above(self, values: ArrayLike, bits: Bits) -> NDArray[np.bool_]:
        """Which noisy queries reach the noisy threshold. All are drawn: the time tells nothing.

        Values and threshold lie within 2^62 and the noise of these scales far within, so no sum overflows.
        """
        array = grid.numbers(values)
        select.last_axis(type(self).__name__, array, self.queries, "queries")
        units = grid.to_units(type(self).__name__, array, None)
        rows = math.prod(units.shape[:-1])
        line = self.threshold + exact.laplace(self.threshold_scale, rows, bits)
        noisy = units + exact.laplace(self.query_scale, units.size, bits).reshape(units.shape)
        above: NDArray[np.bool_] = noisy >= line.reshape(*units.shape[:-1], 1)
        return above


def _reach(scale: Fraction, tail: float) -> int:
    """The least k with P[|noise| > k] = 2 a^{k+1}/(1 + a) <= tail, a = e^{-1/scale}."""
    log_odds = math.log(2 / tail) - math.log1p(math.exp(-1 / scale))
    return max(0, math.ceil(log_odds * float(scale) * (1 + 1e-12)) - 1)
