"""Unary encoding: a report has one bit a category, each of them noisy."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.shuffling.blanket import Favours
from sourdine.core import check
from sourdine.core.lazy import expit
from sourdine.core.mechanism import Example
from sourdine.core.random import packed
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import Bits, Branch, coins
from sourdine.core.random.selection import spots
from sourdine.local.frequency.supports import BitwiseOracle, bitwise_examples
from sourdine.local.oracle import Bytes
from sourdine.mechanisms.randomized_response import Channel


@dataclass(frozen=True, kw_only=True)
class Unary(BitwiseOracle):
    """Oracles whose report sets the bit of the true category with probability p and any other with q."""

    epsilon: Fraction
    categories: int

    def __post_init__(self) -> None:
        self.check_declared()

    @property
    @abstractmethod
    def noise(self) -> Fraction:
        """The log odds that the bit of another category is set."""

    @abstractmethod
    def true_bits(self, count: int, bits: Bits) -> NDArray[np.bool_]:
        """Whether the bit of the true category is set."""

    @property
    def revealing(self) -> float:
        p, q = self.channel
        return p * (1 - q)

    @property
    def favours(self) -> tuple[Favours, ...]:
        q = self.channel.q
        third = q * (1 - q) ** 2 if self.categories > 2 else 0.0
        return (Favours(each=q, alone=q * (1 - q), both=q * q, third=third),)

    def encode(self, truth: NDArray[np.int64], bits: Bits) -> Bytes:
        """All bits are drawn as if their category were not the true one, and that one's is written over."""
        size = truth.size * self.width
        flat = packed.bernoulli_odds(self.noise, -(-size // 8), bits).view(np.uint8)[:size]
        return self._true(flat.reshape(-1, self.width), truth, bits)

    def fill(self, reports: Bytes, truth: NDArray[np.int64], branch: Branch) -> None:
        packed.fill_odds(self.noise, reports.reshape(-1), branch)
        self._true(reports, truth, branch)

    def _true(self, rows: Bytes, truth: NDArray[np.int64], bits: Bits) -> Bytes:
        """Write the bit of the true category over, in reports that are drawn in place."""
        flat = rows.reshape(-1)
        at, bit = spots(np.arange(truth.size) * self.width, truth)
        flat[at] = flat[at] & ~bit | bit * self.true_bits(truth.size, bits)
        if self.last != 255:
            rows[:, -1] &= self.last
        return rows

    @classmethod
    def examples(cls) -> Iterator[Example]:
        return bitwise_examples(
            cls(epsilon=Fraction(4, 3), categories=5),
            cls(epsilon=Fraction(3, 4), categories=11),
            cls(epsilon=Fraction(2, 3), categories=3),
        )


@dataclass(frozen=True, kw_only=True)
class SUE(Unary):
    """Symmetric unary encoding, or basic one-time RAPPOR.

    Reports one bit a category, each of them true with odds e^{epsilon/2}.

    A changed answer changes the law of two bits, at a cost of epsilon/2 each (Erlingsson, Pihur, Korolova
    2014; Wang, Blocki, Li, Jha 2017; proof in docs/guarantees/unary.md). The variance of a share near 0 from
    n reports is e^{epsilon/2}/(n (e^{epsilon/2} - 1)^2).

    >>> from sourdine.testing import SeededBits
    >>> oracle = SUE(epsilon=24, categories=3)
    >>> counts = oracle.tally(oracle.sample([0, 1, 1, 1], SeededBits(1)))
    >>> oracle.estimate(counts).value[:2].round(2)
    array([0.25, 0.75])
    """

    name: ClassVar[str] = "sue/1"

    @property
    def channel(self) -> Channel:
        half = float(self.epsilon) / 2
        return Channel(float(expit(half)), float(expit(-half)))

    @property
    def noise(self) -> Fraction:
        return -self.epsilon / 2

    def true_bits(self, count: int, bits: Bits) -> NDArray[np.bool_]:
        count = check.integer("SUE.true_bits", "count", count, 0, 1 << 40)
        return exact.bernoulli_odds(self.epsilon / 2, Fraction(1), count, bits)


@dataclass(frozen=True, kw_only=True)
class OUE(Unary):
    """Optimized unary encoding.

    Reports one bit a category: that of the true one by a fair coin, any other with odds e^{-epsilon}.

    A changed answer costs epsilon (Wang, Blocki, Li, Jha 2017; proof in docs/guarantees/unary.md). Of all
    unary encodings it has the least variance of a share near 0: 4 e^epsilon/(n (e^epsilon - 1)^2) from n
    reports.

    >>> from sourdine.core.distance import Distance
    >>> OUE(epsilon=1, categories=4).loss(Distance.hamming()).epsilon
    Fraction(1, 1)
    """

    name: ClassVar[str] = "oue/1"

    @property
    def channel(self) -> Channel:
        return Channel(0.5, float(expit(-float(self.epsilon))))

    @property
    def noise(self) -> Fraction:
        return -self.epsilon

    def true_bits(self, count: int, bits: Bits) -> NDArray[np.bool_]:
        return coins(bits, check.integer("OUE.true_bits", "count", count, 0, 1 << 40))
