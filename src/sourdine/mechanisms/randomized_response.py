"""Randomized response: an answer that may not be the true one, and proportions estimated from many.

`OneCoin` is a teaching example of an answer that looks protected and is not.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check, grid
from sourdine.core.distance import Distance, Norm
from sourdine.core.distributions import AtomLaw
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.core.interval_arithmetic import above, ball, precision
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example, Mechanism
from sourdine.core.random import samplers as exact
from sourdine.core.random.bits import SYSTEM, Bits, Branch, coins, in_branches
from sourdine.core.random.packed import ShortTable, byte_table
from sourdine.core.random.tables import WeightTerms, table

LEAST_EPSILON = Fraction(1, 1 << 20)
LEAST_TRUTH = Fraction(1, 2) + LEAST_EPSILON
MOST_EPSILON = 1 << 9
MOST_CATEGORIES = 1 << 24
_BLOCK = 1 << 18  # answers made together: with fewer, threads wait for each other more than they save
_PAIRED = 16  # categories up to which 16 random bits nearly always settle two reports
_FEW = 256  # categories up to which a byte tells how far a report is from the truth
Floats = NDArray[np.float64]


class Channel(NamedTuple):
    """How often a category is reported by those it is true of (p), and by the others (q).

    The estimate of its frequency f from n reports is (share of reports - q)/(p - q), without bias.
    """

    p: float
    q: float

    def estimate(self, shares: ArrayLike) -> Floats:
        """Unbiased frequencies from shares of the reports; they may fall outside [0, 1]."""
        return (np.asarray(shares, float) - self.q) / (self.p - self.q)

    def variance(self, frequency: ArrayLike, reports: int) -> Floats:
        """(f p(1-p) + (1-f) q(1-q)) / (n (p-q)^2), for the frequency f among those who report."""
        f = np.clip(np.asarray(frequency, float), 0.0, 1.0)
        count = check.integer("Channel.variance", "reports", reports, 1, 1 << 62)
        noise = f * self.p * (1 - self.p) + (1 - f) * self.q * (1 - self.q)
        return np.asarray(noise / (count * (self.p - self.q) ** 2))

    def half_width(self, confidence: float, reports: int) -> float:
        """What the error of one estimated frequency stays within, whatever the frequency.

        `mean_error` of terms of range 1/(p - q).
        """
        level = check.confidence("Channel.half_width", confidence)
        count = check.integer("Channel.half_width", "reports", reports, 1, 1 << 62)
        width = 1 / (self.p - self.q)
        reach = width * max(self.p, 1 - self.p, self.q, 1 - self.q)
        variance = width**2 * max(self.p * (1 - self.p), self.q * (1 - self.q))
        return mean_error(width, reach, variance, level, count)


def mean_error(width: float, reach: float, variance: float, confidence: float, count: int) -> float:
    """What the mean of independent terms stays within of its expectation, with this confidence.

    Each term has a range of that width, deviates by at most `reach` and has at most that variance. The least
    of three bounds: Hoeffding 1963, theorem 2; Bernstein; and the largest deviation there is.
    """
    log_odds = math.log(2 / (1 - confidence)) / count
    hoeffding = width * math.sqrt(log_odds / 2)
    third = reach * log_odds / 3
    return min(hoeffding, third + math.sqrt(third**2 + 2 * variance * log_odds), reach)


class Response(Mechanism):
    """A report about one answer; frequencies are estimated from many."""

    norm: ClassVar[Norm] = Norm.HAMMING

    @property
    @abstractmethod
    def channel(self) -> Channel:
        """How often an answer is reported when true and when not."""

    def variance(self, frequency: ArrayLike, reports: int) -> Floats:
        """The variance of the estimate of an answer that has this frequency among those who report."""
        count = check.integer(f"{type(self).__name__}.variance", "reports", reports, 1, 1 << 62)
        return self.channel.variance(frequency, count)

    def error(self, confidence: float = 0.95, reports: int = 1) -> float:
        """The half-width of an interval around the estimated frequency of one answer."""
        owner = f"{type(self).__name__}.error"
        confidence = check.confidence(owner, confidence)
        return self.channel.half_width(confidence, check.integer(owner, "reports", reports, 1, 1 << 62))


@dataclass(frozen=True, kw_only=True)
class KaryResponse(Response):
    """Reports one of the categories 0 .. k-1: the true one e^epsilon times as often as any other.

    A changed answer costs epsilon (Kairouz, Bonawitz, Ramage 2016). Its loss is +epsilon, 0 and
    -epsilon with probability e^epsilon/Z, (k-2)/Z and 1/Z, where Z = e^epsilon + k - 1.

    >>> KaryResponse(epsilon=1, categories=4).loss(Distance.hamming()).epsilon
    Fraction(1, 1)
    """

    name: ClassVar[str] = "randomized-response/1"
    epsilon: Fraction
    categories: int

    def __post_init__(self) -> None:
        epsilon = check.between(
            type(self).__name__, "epsilon", self.epsilon, LEAST_EPSILON, Fraction(MOST_EPSILON)
        )
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(
            self,
            "categories",
            check.integer(type(self).__name__, "categories", self.categories, 2, MOST_CATEGORIES),
        )

    @property
    def channel(self) -> Channel:
        likely = 1 / (1 + (self.categories - 1) * math.exp(-self.epsilon))
        return Channel(likely, likely * math.exp(-self.epsilon))

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        array = grid.numbers(values)
        flat, reports = array.reshape(-1), np.empty(array.size, np.int64)
        if flat.size <= _BLOCK:
            self._fill(reports, flat, bits)
        else:
            in_branches(lambda part, own: self._fill(reports[part], flat[part], own), flat.size, bits, _BLOCK)
        return reports.reshape(array.shape)

    def _fill(self, reports: NDArray[np.int64], values: NDArray[Any], bits: Bits) -> None:
        truth, others = grid.places(type(self).__name__, values, self.categories - 1), self.categories - 1
        if isinstance(bits, Branch) and self.categories <= _FEW:
            reports[:] = self._turned(truth, bits)
            return
        heads = exact.bernoulli_odds(self.epsilon, Fraction(1, others), truth.size, bits)
        other = exact.narrow_uniform(others, truth.size, bits)
        short = truth.astype(other.dtype)
        other += other >= short  # of those left, the numbers from the truth on are one too small
        np.copyto(other, short, where=heads)
        reports[:] = other

    def _turned(self, truth: NDArray[np.int64], branch: Branch) -> NDArray[np.uint16]:
        """By how much to go on from the truth, around a circle: 0 e^epsilon times as often as any other."""
        turns = np.empty(truth.size + truth.size % 2, np.uint8)
        if self.categories <= _PAIRED:
            _paired_turns(self.epsilon, self.categories).fill(turns.view(np.uint16), branch)
        else:
            weights = WeightTerms((1,) * self.categories, (self.epsilon, *(0,) * (self.categories - 1)))
            byte_table(weights).fill(turns, branch)
        beyond = truth.astype(np.uint16)
        beyond += turns[: truth.size]
        around = beyond - np.uint16(self.categories)  # what is below 0 becomes very large
        np.minimum(beyond, around, out=around)
        return around

    def loss(self, distance: Distance) -> PrivacyLoss:
        self.require(distance)
        likely, unlikely = self.channel
        same = (self.categories - 2) * unlikely
        epsilon = float(self.epsilon)
        law = AtomLaw([epsilon, 0.0, -epsilon], [likely, same, unlikely], [unlikely, same, likely])
        changed = math.floor(distance.amount)
        return response_loss(distance, changed, changed * self.epsilon, law)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(
            mechanism=cls(epsilon=Fraction(4, 3), categories=5),
            value=0,
            neighbour=3,
            distance=Distance.hamming(),
        )
        yield Example(
            mechanism=cls(epsilon=Fraction(2, 7), categories=2),
            value=1,
            neighbour=0,
            distance=Distance.hamming(),
        )
        yield Example(
            mechanism=cls(epsilon=Fraction(2, 3), categories=3),
            value=[0, 2],
            neighbour=[1, 0],
            distance=Distance.hamming(2),
            code=lambda answers: answers[..., 0] + 3 * answers[..., 1],
        )


@lru_cache(maxsize=64)
def _paired_turns(epsilon: Fraction, categories: int) -> ShortTable:
    """The turns of two reports together, a byte each: 16 random bits do for both."""
    pairs = list(product(range(categories), repeat=2))
    exponents = tuple(epsilon * pair.count(0) for pair in pairs)
    return ShortTable(
        table(WeightTerms((1,) * len(pairs), exponents)),
        np.array(pairs, np.uint8).view(np.uint16).reshape(-1),
    )


class BinaryResponse(Response):
    """A report of yes or no that is the truth with a known probability above 1/2."""

    @property
    @abstractmethod
    def honesty(self) -> Fraction:
        """How often the report is the truth."""

    @property
    def channel(self) -> Channel:
        return Channel(float(self.honesty), float(1 - self.honesty))

    def loss(self, distance: Distance) -> PrivacyLoss:
        """epsilon = ln(honesty/(1 - honesty)), rounded up to a float."""
        self.require(distance)
        changed = math.floor(distance.amount)
        with precision(128):
            log_odds = ball(self.honesty / (1 - self.honesty)).log()
            one, epsilon = above(log_odds), above(log_odds * changed)
        likely, unlikely = self.channel
        law = AtomLaw([one, -one], [likely, unlikely], [unlikely, likely])
        return response_loss(distance, changed, epsilon, law)

    def estimate(self, reports: ArrayLike) -> float:
        """The unbiased proportion of yes: (share + honesty - 1)/(2 honesty - 1)."""
        return proportion(type(self).__name__, self.channel, reports)


@dataclass(frozen=True, kw_only=True)
class Warner(BinaryResponse):
    """Answers a yes-no question truthfully with probability `truth`, and with a lie otherwise.

    A changed answer costs epsilon = ln(truth/(1 - truth)) (Warner 1965).

    >>> round(Warner(truth=Fraction(3, 4)).loss(Distance.hamming()).epsilon, 4)
    1.0986
    """

    name: ClassVar[str] = "warner/1"
    truth: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "truth", check.inside("Warner", "truth", self.truth, LEAST_TRUTH, 1))

    @property
    def honesty(self) -> Fraction:
        return self.truth

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        truth = yes_or_no("Warner", values)
        return truth ^ exact.bernoulli(1 - self.truth, truth.size, bits).reshape(truth.shape)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        for truth in (Fraction(7, 10), Fraction(11, 13)):
            yield Example(mechanism=cls(truth=truth), value=1, neighbour=0, distance=Distance.hamming())


@dataclass(frozen=True, kw_only=True)
class TwoCoins(BinaryResponse):
    """Answers a yes-no question with two coins: heads, the truth; tails, whatever the second coin says.

    The truth comes out 3 times in 4: a changed answer costs epsilon = ln 3 (Dwork, Roth 2014).

    >>> TwoCoins().estimate([True, True, True, False])
    1.0
    """

    name: ClassVar[str] = "two-coins/1"

    @property
    def honesty(self) -> Fraction:
        return Fraction(3, 4)

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        truth = yes_or_no("TwoCoins", values)
        first, second = (coins(bits, truth.size).reshape(truth.shape) for _ in range(2))
        return np.where(first, truth, second)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield Example(mechanism=cls(), value=0, neighbour=1, distance=Distance.hamming())


def yes_or_no(owner: str, values: ArrayLike) -> NDArray[np.bool_]:
    """Answers as booleans: every integer above 0 is a yes."""
    answers: NDArray[np.bool_] = grid.to_units(owner, values, None) > 0
    return answers


def proportion(owner: str, channel: Channel, reports: ArrayLike) -> float:
    """The unbiased proportion of yes."""
    return float(channel.estimate(np.mean(_reports(owner, reports) > 0)))


def response_loss(distance: Distance, changed: int, epsilon: Fraction | float, law: AtomLaw) -> PrivacyLoss:
    """One changed answer has a known law; several are that many independent reports, each at its own cost."""
    rho = epsilon**2 / (2 * max(1, changed))
    if changed == 1:
        return PrivacyLoss.symmetric(law, neighbours=distance.neighbours, epsilon=epsilon, rho=rho)
    return PrivacyLoss.pure(epsilon, neighbours=distance.neighbours, rho=rho)


def _reports(owner: str, reports: ArrayLike) -> NDArray[np.int64]:
    array = grid.to_units(owner, reports, None)
    if array.size == 0:
        raise InvalidParameter(f"{owner} cannot estimate a proportion from no report at all.")
    return array


@dataclass(frozen=True, kw_only=True)
class OneCoin:
    """Answers a yes-no question with one coin: heads, the truth; tails, yes.

    Its epsilon is infinite: only those whose truth is no ever say no. It is no Mechanism, so that no ledger
    can be charged for it.

    >>> OneCoin().estimate([True, True, True, False])
    0.5
    """

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[np.bool_]:
        """What each person says."""
        truth = yes_or_no("OneCoin", values)
        return truth | coins(bits, truth.size).reshape(truth.shape)

    def loss(self, distance: Distance) -> PrivacyLoss:
        """Always raises: there is no finite loss to state."""
        raise UnsupportedLoss(
            "The one-coin survey has no finite epsilon. A 'no' betrays itself, since only a true 'no' can "
            "say it. Use TwoCoins, whose epsilon is ln 3."
        )

    @property
    def channel(self) -> Channel:
        """Yes is always said where it is true, and half of the time where it is not."""
        return Channel(1.0, 0.5)

    def estimate(self, reports: ArrayLike) -> float:
        """The unbiased proportion of yes: 2 share - 1."""
        return proportion("OneCoin", self.channel, reports)
