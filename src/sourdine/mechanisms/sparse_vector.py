"""The sparse vector technique: noisy queries against a noisy threshold.

`AboveThreshold` tells the first query that reaches it, `SparseVector` all of them up to a declared number.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check, grid
from sourdine.core.distance import Distance, Norm
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example, Mechanism
from sourdine.core.random import samplers as exact
from sourdine.core.random import selection
from sourdine.core.random.bits import SYSTEM, Bits
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

    def loss(self, distance: Distance) -> PrivacyLoss:
        """Integers at most t apart are at most floor(t) apart, and every term is proportional to it."""
        self.require(distance)
        epsilon = self.epsilon * math.floor(distance.amount) / self.sensitivity
        return PrivacyLoss.pure(epsilon, neighbours=distance.neighbours)

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
        selection.last_axis(type(self).__name__, array, self.queries, "queries")
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


@dataclass(frozen=True, kw_only=True)
class SparseVector(Crossing):
    """Tells for each query whether its noisy value reaches the noisy threshold, until `answers` have.

    After that many, every query reads False, whatever its value. Integer queries that change by at most t
    cost epsilon t / sensitivity: with epsilon = e1 + e2, discrete Laplace noise of scale sensitivity/e1 on
    the threshold, drawn once, and 2 answers sensitivity/e2 on each query, without the 2 when all queries
    move the same way between neighbours (Lyu, Su, Li 2017).

    >>> SparseVector(epsilon=1, queries=10, threshold=50, answers=3).loss(Distance.linf(1)).epsilon
    Fraction(1, 1)
    """

    name: ClassVar[str] = "sparse-vector/1"
    answers: int

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "answers", check.integer("SparseVector", "answers", self.answers, 1, 1 << 20)
        )
        super().__post_init__()

    @property
    def _threshold_epsilon(self) -> Fraction:
        """e1, with e1 : e2 as 1 : (answers spread/sensitivity)^{2/3}, which minimises the noise compared.

        Any split keeps the guarantee; this one is rounded to 1/1024, so that it is the same everywhere.
        """
        ratio = self.answers * (1 if self.monotone else 2)
        return self.epsilon / (1 + Fraction(round(1024 * ratio ** (2 / 3)), 1024))

    @property
    def threshold_scale(self) -> Fraction:
        return self.sensitivity / self._threshold_epsilon

    @property
    def query_scale(self) -> Fraction:
        return self.answers * self.spread / (self.epsilon - self._threshold_epsilon)

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        above = self._above(values, bits)
        above &= np.cumsum(above, axis=-1) <= self.answers
        return above

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(
            mechanism=cls(epsilon=Fraction(5, 3), queries=6, threshold=3, answers=2),
            value=[3, 3, 3, 3, 3, 3],
            neighbour=[4, 4, 4, 4, 2, 2],
            distance=Distance.linf(1),
            code=bits_to_integer,
        )
        yield Example(
            mechanism=cls(epsilon=Fraction(5, 3), queries=6, threshold=0, answers=2, monotone=True),
            value=[1, 1, 1, 1, 2, 2],
            neighbour=[2, 2, 2, 2, 2, 2],
            distance=Distance.linf(1),
            code=bits_to_integer,
        )


def bits_to_integer(answers: NDArray[Any]) -> NDArray[np.int64]:
    """Rows of booleans as binary numbers, the first one lowest."""
    return answers.astype(np.int64) @ (1 << np.arange(answers.shape[-1]))


@dataclass(frozen=True, kw_only=True)
class AboveThreshold(Crossing):
    """Finds the index of the first query whose noisy value reaches the noisy threshold.

    When none does, the answer is `queries`: one past the last index, so that no query can be taken for it.
    Integer queries that change by at most t cost epsilon t / sensitivity, with discrete Laplace noise of
    scale 2 sensitivity/epsilon on the threshold and 4 sensitivity/epsilon on each query (Dwork, Roth 2014),
    or 2 sensitivity/epsilon on both when all queries move the same way between neighbours (monotone; Lyu, Su,
    Li 2017).

    >>> AboveThreshold(epsilon=1, queries=10, threshold=50).loss(Distance.linf(1)).epsilon
    Fraction(1, 1)
    """

    name: ClassVar[str] = "above-threshold/1"

    @property
    def threshold_scale(self) -> Fraction:
        return 2 * self.sensitivity / self.epsilon

    @property
    def query_scale(self) -> Fraction:
        return 2 * self.spread / self.epsilon

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        above = self._above(values, bits)
        return np.where(above.any(axis=-1), above.argmax(axis=-1), self.queries)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(
            mechanism=cls(epsilon=Fraction(5, 3), queries=6, threshold=7),
            value=[7, 7, 7, 7, 7, 7],
            neighbour=[8, 8, 8, 8, 8, 6],
            distance=Distance.linf(1),
        )
        yield Example(
            mechanism=cls(epsilon=Fraction(5, 3), queries=6, threshold=0, monotone=True),
            value=[0, 0, 0, 0, 0, 1],
            neighbour=[1, 1, 1, 1, 1, 1],
            distance=Distance.linf(1),
        )
        yield Example(
            mechanism=cls(epsilon=Fraction(7, 3), queries=6, threshold=-9, sensitivity=Fraction(2)),
            value=[-9, -9, -9, -9, -9, -9],
            neighbour=[-7, -7, -7, -7, -7, -11],
            distance=Distance.linf(2),
        )
