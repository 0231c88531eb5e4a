"""Generalised randomized response (GRR), whose report is a category, and optimal local hashing (OLH).

The hash family of OLH is that of dot products over a finite field.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.shuffling.blanket import Favours
from sourdine.core import check
from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import Bits
from sourdine.core.random.tables import WeightTerms, table
from sourdine.core.serialization import added
from sourdine.local.estimate import Counts
from sourdine.local.frequency.field import MOST_ORDER, ORDERS, prime_of, vectors
from sourdine.local.frequency.supports import CodedOracle, Ints
from sourdine.local.oracle import CodeReports, FrequencyOracle
from sourdine.mechanisms.randomized_response import Channel, KaryResponse

MOST_CODES = 1 << 26


@dataclass(frozen=True, kw_only=True)
class OLH(CodedOracle):
    """Optimal local hashing.

    Reports a random hash function and, by k-ary response, the group that it puts the category in.

    A changed answer costs epsilon. Categories are vectors of m digits over the field of g = `groups`
    elements, a seed is such a vector too, and h_seed(x) = <seed, x>: two categories fall into one group with
    probability 1/g exactly, which is all that the estimates of Wang, Blocki, Li, Jha 2017 ask of hash
    functions (proof in docs/guarantees/hashing.md). The report is seed * g + response. Unless given (0), g is
    the prime power of least variance at a frequency of 1/k, near e^epsilon + 1.

    Seed 0 puts every category into group 0: it tells nothing, and whoever sends it with that group raises all
    categories at once. With `trivial=False` there is none, and the report is (seed - 1) * g + response; two
    categories then share a group a little less often, and the estimates follow that.

    >>> oracle = OLH(epsilon=1, categories=1000)
    >>> oracle.groups, oracle.digits, oracle.width
    (4, 5, 2)
    """

    name: ClassVar[str] = "olh/1"
    epsilon: Fraction
    categories: int
    groups: int = 0
    trivial: bool = added(True)

    def __post_init__(self) -> None:
        self.check_declared()
        owner = "OLH"
        check.boolean(owner, "trivial", self.trivial)
        groups = check.integer(owner, "groups", self.groups, 0, MOST_ORDER) or self._best()
        if prime_of(groups) is None or groups ** (1 + _digits(groups, self.categories)) > MOST_CODES:
            must = f"be a power of a prime that leaves at most {check.power(MOST_CODES)} different reports"
            raise check.fail(owner, "groups", must, groups, "Leave it out for the best.")
        object.__setattr__(self, "groups", groups)

    def _best(self) -> int:
        k = self.categories
        fitting = (order for order in ORDERS if order ** (1 + _digits(order, k)) <= MOST_CODES)
        channels = {order: _channel(self.epsilon, order, _apart(order, k, self.trivial)) for order in fitting}
        return min(channels, key=lambda order: float(channels[order].variance(1 / k, 1)))

    @property
    def digits(self) -> int:
        """How many digits a category has, and a seed."""
        return _digits(self.groups, self.categories)

    @property
    def codes(self) -> int:
        return self._seeds * self.groups

    @property
    def _seeds(self) -> int:
        seeds: int = self.groups**self.digits
        return seeds if self.trivial else seeds - 1

    @property
    def _apart(self) -> Fraction:
        """How often a seed tells two categories apart."""
        return _apart(self.groups, self.categories, self.trivial)

    @property
    def channel(self) -> Channel:
        return _channel(self.epsilon, self.groups, self._apart)

    @property
    def revealing(self) -> float:
        return float(self._apart) * self.channel.p

    @property
    def favours(self) -> tuple[Favours, ...]:
        """The third category is 0, in group 0 by every seed; 1 and g have groups that are independent."""
        share, apart = Fraction(1, self.groups), self._apart
        others = 1 - share if self.categories > self.groups else Fraction(self.categories > 2)
        each, alone, both, third = (float(share * part) for part in (1, apart, 1 - apart, apart * others))
        return (Favours(each=each, alone=alone, both=both, third=third),)

    def encode(self, truth: Ints, bits: Bits) -> Ints:
        space = vectors(self.groups, self.digits)
        drawn = exact.uniform(self._seeds, truth.size, bits)
        seeds = drawn if self.trivial else drawn + 1
        shifts = WeightTerms((1,) * self.groups, (self.epsilon, *(0,) * (self.groups - 1)))
        shift = table(shifts).sample(truth.size, bits)  # the response less the true group
        return drawn * self.groups + space.field.add(space.dot(seeds, truth), shift)

    def supports(self, counts: Counts) -> Ints:
        """How many reports (seed, response) have <seed, x> = response: <(seed, response), (x, -1)> = 0."""
        space = vectors(self.groups, 1 + self.digits)
        candidates = np.arange(self.categories) * self.groups + space.field.minus[1]
        left_out = np.zeros(0 if self.trivial else self.groups, np.int64)
        return space.on_hyperplanes(np.concatenate([left_out, counts.sums]), candidates)

    def support_sizes(self) -> Ints:
        space = vectors(self.groups, 1 + self.digits)
        every = np.zeros(self.groups ** (1 + self.digits), np.int64)
        every[np.arange(self.categories) * self.groups + space.field.minus[1]] = 1
        return space.on_hyperplanes(every, np.arange(len(every) - self.codes, len(every)))

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(
            mechanism=cls(epsilon=Fraction(4, 3), categories=7, groups=4),
            value=0,
            neighbour=6,
            distance=Distance.hamming(),
        )
        yield Example(
            mechanism=cls(epsilon=Fraction(1, 2), categories=9, groups=3),
            value=5,
            neighbour=4,
            distance=Distance.hamming(),
        )
        yield Example(
            mechanism=cls(epsilon=Fraction(4, 3), categories=7, groups=3, trivial=False),
            value=3,
            neighbour=0,
            distance=Distance.hamming(),
        )


def _digits(groups: int, categories: int) -> int:
    """The least m with g^m >= k."""
    return next(m for m in range(1, 65) if groups**m >= categories)


def _apart(groups: int, categories: int, trivial: bool) -> Fraction:
    """How often a seed tells two categories apart: all but 1/g of the seeds do, and never seed 0."""
    seeds: int = groups ** _digits(groups, categories)
    return Fraction(seeds - seeds // groups, seeds if trivial else seeds - 1)


def _channel(epsilon: Fraction, groups: int, apart: Fraction) -> Channel:
    """The true group e^epsilon times as often as any other; another category shares it if not told apart."""
    p = 1 / (1 + (groups - 1) * math.exp(-epsilon))
    if apart == 1 - Fraction(1, groups):
        return Channel(p, 1 / groups)
    return Channel(p, float(1 - apart) * p + float(apart) * math.exp(-epsilon) * p)


@dataclass(frozen=True, kw_only=True)
class GRR(KaryResponse, CodeReports, FrequencyOracle):
    """Generalized randomized response: `KaryResponse` with tally and estimate (GRR of Wang et al. 2017).

    A changed answer costs epsilon (Kairouz, Bonawitz, Ramage 2016). The unbiased share of a category is
    ((e^epsilon + k - 1) share of reports - 1)/(e^epsilon - 1).

    >>> from sourdine.testing import SeededBits
    >>> oracle = GRR(epsilon=8, categories=3)
    >>> counts = oracle.tally(oracle.sample([0, 1, 1, 1], SeededBits(1)))
    >>> oracle.estimate(counts).value[:2].round(2)
    array([0.25, 0.75])
    """

    name: ClassVar[str] = "grr/1"

    @property
    def codes(self) -> int:
        return self.categories

    @property
    def favours(self) -> tuple[Favours, ...]:
        share = 1 / self.categories
        return (Favours(each=share, alone=share, both=0.0, third=share if self.categories > 2 else 0.0),)

    def supports(self, counts: Counts) -> NDArray[np.int64]:
        return counts.sums
