"""Yes-no questions answered through coins: what a design costs, how well it tells, and how many to ask.

S people of n say yes, each with the same probability, the rate, on their own: probabilities are binomial,
and exact but for the rounding of floats, which `_SLACK` is far above. Not trusting a curator costs
precision, which is compared with that of central noise.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check
from sourdine.core.lazy import betainc
from sourdine.local.estimate import Estimate, Floats, deviations, needed, shares
from sourdine.local.frequency.hashing import GRR
from sourdine.mechanisms.geometric import Geometric
from sourdine.mechanisms.randomized_response import LEAST_EPSILON, MOST_EPSILON, Channel

MOST = 1 << 20  # people up to which every rate is looked at
_SLACK = 1e-12
_STEPS = 10  # a search goes on by 2^-10 of what it has reached
_NEAR = 64  # rates looked at first, where it usually fails


def coverage(rates: ArrayLike, reach: float, people: int) -> Floats:
    """P[|S/n - rate| <= reach] for each rate.

    >>> float(coverage(0.5, 0.25, 2))
    0.5
    """
    rate = np.asarray(rates, float)
    low = np.ceil(people * (rate - reach) - _SLACK * people)
    high = np.floor(people * (rate + reach) + _SLACK * people)
    return _within(low, high, rate, people)


def least_coverage(low: float, high: float, reach: float, people: int) -> float:
    """The least of P[|S/n - rate| <= reach] over all rates from low to high.

    While the rate moves and the counts that are near enough stay the same, g to h, their probability rises
    and then falls: its derivative has the sign of P[S' = g - 1] - P[S' = h] for n - 1 people, whose ratio
    falls in the rate. So it is least where these counts change, just beyond k/n + reach or just before
    k/n - reach, or at an end of the range (Chen 2007).
    """
    ends = coverage(np.array([low, high]), reach, people)
    return float(min([ends.min(), *(each.min() for each in _changes(low, high, reach, people) if each.size)]))


def enough_people(low: float, high: float, reach: float, confidence: float) -> int | None:
    """People with whom the share of yes lies within reach of its rate that surely, whatever the rate.

    Going up from the normal approximation, the first number found at which `least_coverage` reaches the
    confidence; the search leaves out at most one number in a thousand. None if it takes more than 2^20.
    """
    middle = min(max(0.5, low), high)
    people = max(1, math.floor(middle * (1 - middle) * (deviations(confidence) / reach) ** 2))
    near = _NEAR / 2
    while people <= MOST:
        nearest = max(low, middle - near / people), min(high, middle + near / people)
        wanted = confidence + _SLACK
        if least_coverage(*nearest, reach, people) >= wanted <= least_coverage(low, high, reach, people):
            return people
        people += 1 + (people >> _STEPS)
    return None


def surely_enough(reach: float, confidence: float) -> int:
    """The same by Hoeffding 1963, theorem 2, and for more people too: ln(2/(1 - confidence))/(2 reach^2)."""
    return math.ceil(math.log(2 / (1 - confidence)) / (2 * reach**2))


def sure_reach(people: int, confidence: float) -> float:
    """What the share of yes surely lies within of its rate, by the same theorem."""
    return math.sqrt(math.log(2 / (1 - confidence)) / (2 * people))


def _changes(low: float, high: float, reach: float, people: int) -> tuple[Floats, Floats]:
    """The probabilities where counts leave (from below) or are yet to join (from above)."""
    wide = math.floor(2 * reach * people * (1 - _SLACK))
    left = _between(low - reach, high - reach, people)
    right = _between(low + reach, high + reach, people)
    return (
        _within(left + 1, left + wide, left / people + reach, people),
        _within(right - wide, right - 1, right / people - reach, people),
    )


def _between(low: float, high: float, people: int) -> Floats:
    """The counts whose shares lie between two."""
    return np.arange(max(0, math.ceil(low * people)), min(people, math.floor(high * people)) + 1, dtype=float)


def _within(low: Floats, high: Floats, rate: Floats, people: int) -> Floats:
    """P[low <= S <= high], as what both tails leave."""
    rate = np.clip(rate, 0.0, 1.0)
    below = betainc(people - np.maximum(low, 1) + 1, np.maximum(low, 1), 1 - rate)
    above = betainc(np.minimum(high, people - 1) + 1, people - np.minimum(high, people - 1), rate)
    tails = np.where(low > 0, below, 0.0) + np.where(high < people, above, 0.0)
    return np.where(low > high, 0.0, np.maximum(0.0, 1 - tails))


_ROUNDING = 2.0**-50  # far above the error of a float64 logarithm
_SHARES = (Fraction(0), Fraction(1))


class Answering(Protocol):
    """Whatever answers yes or no by a known channel: `Warner`, `TwoCoins`, `OneCoin`, `GRR` of two."""

    @property
    def channel(self) -> Channel: ...


@dataclass(frozen=True)
class People:
    """How many to draw from a population, so that the estimate is within an error with a confidence.

    `normal` by the normal approximation, `exact` by binomial probabilities (None above a million people), and
    `surely` by Hoeffding's inequality, which holds for any larger number too.
    """

    normal: int
    exact: int | None
    surely: int


@dataclass(frozen=True)
class Survey:
    """A design: yes is said with probability p by those of whom it is true, and with q by the others.

    It costs epsilon = max(ln(p/q), ln((1-q)/(1-p))), the worst over both answers; no finite one if a yes or a
    no can only come from one side. The share f of yes is estimated by (share of reports - q)/(p - q), without
    bias. docs/guarantees/local_queries.md has proofs.

    >>> from sourdine.mechanisms import OneCoin, TwoCoins
    >>> survey = Survey.of(TwoCoins())
    >>> round(survey.epsilon, 4), float(survey.variance(0.2, 300).round(6)), Survey.of(OneCoin()).epsilon
    (1.0986, 0.0025, inf)
    >>> survey.people(error=0.05)
    People(normal=1537, exact=1542, surely=2952)
    """

    channel: Channel

    def __post_init__(self) -> None:
        p, q = self.channel
        if not 0 <= q < p <= 1:
            must = "have 0 <= q < p <= 1, yes being likelier where it is true"
            raise check.fail("Survey", "channel", must, tuple(self.channel))

    @classmethod
    def of(cls, response: Answering) -> "Survey":
        """The design of a mechanism."""
        return cls(response.channel)

    @classmethod
    def two_coins(cls, truth: float = 0.5, yes: float = 0.5) -> "Survey":
        """The truth with one probability; otherwise a second coin answers, yes with another.

        >>> Survey.two_coins().channel
        Channel(p=0.75, q=0.25)
        """
        first = float(check.inside("Survey.two_coins", "truth", truth, 0, 1))
        second = float(check.between("Survey.two_coins", "yes", yes, *_SHARES))
        return cls(Channel(first + (1 - first) * second, (1 - first) * second))

    @classmethod
    def at(cls, epsilon: float, yes: float = 0.5) -> "Survey":
        """Two coins that cost epsilon: the first has odds (e^epsilon - 1) min(yes, 1 - yes) of the truth.

        >>> Survey.at(math.log(3)).channel
        Channel(p=0.75, q=0.25)
        """
        cost = float(check.between("Survey.at", "epsilon", epsilon, LEAST_EPSILON, Fraction(MOST_EPSILON)))
        second = float(check.inside("Survey.at", "yes", yes, 0, 1))
        odds = math.expm1(cost) * min(second, 1 - second)
        return cls.two_coins(odds / (1 + odds), second)

    @property
    def epsilon(self) -> float:
        """What one answer costs, rounded up; infinite when an answer can betray itself."""
        p, q = self.channel
        if q == 0 or p == 1:
            return math.inf
        return max(math.log(p / q), math.log1p((p - q) / (1 - p))) * (1 + _ROUNDING)

    def rate(self, share: ArrayLike) -> Floats:
        """How often yes is said when it is true of this share."""
        p, q = self.channel
        return np.asarray(q + (p - q) * np.asarray(share, float))

    def bias(self, share: ArrayLike, coins: Channel | None = None) -> Floats:
        """The mean error of the estimate: 0, unless the coins really fell by another channel.

        >>> fair, bent = Survey.two_coins(), Survey.two_coins(truth=0.52)
        >>> float(fair.bias(0.1, bent.channel).round(4))
        -0.016
        """
        rate = (self if coins is None else Survey(coins)).rate(share)
        return np.asarray(self.channel.estimate(rate) - np.asarray(share, float))

    def variance(self, share: ArrayLike, people: int, *, population: bool = False) -> Floats:
        """Of the estimate, for people among whom the share holds, or drawn from a population where it does.

        With r = q + (p - q) f: (f p(1-p) + (1-f) q(1-q))/(n (p-q)^2) for given people; r(1-r)/(n (p-q)^2),
        which is that and f(1-f)/n, for drawn ones.
        """
        count = check.integer("Survey.variance", "people", people, 1, 1 << 62)
        check.boolean("Survey.variance", "population", population)
        noise = self.channel.variance(share, count)
        f = np.clip(np.asarray(share, float), 0.0, 1.0)
        return np.asarray(noise + f * (1 - f) / count) if population else noise

    def estimate(
        self, yes: ArrayLike, people: ArrayLike, confidence: float = 0.95, *, population: bool = False
    ) -> Estimate:
        """The share among those who reported, or in the population they were drawn from, with its interval.

        >>> found = Survey.two_coins().estimate(450, 1000, population=True)
        >>> float(found.value.round(3)), float(found.lower.round(3)), float(found.upper.round(3))
        (0.4, 0.339, 0.462)
        """
        level = check.confidence("Survey.estimate", confidence)
        check.boolean("Survey.estimate", "population", population)
        sizes = np.asarray(people, np.int64)
        counts = np.asarray(yes, np.int64)
        if sizes.size == 0 or np.any(sizes < 1):
            raise check.fail("Survey.estimate", "people", "be 1 or more", int(np.min(sizes, initial=0)))
        if np.any((counts < 0) | (counts > sizes)):
            raise check.fail("Survey.estimate", "yes", "lie between 0 and the people", "a count outside")
        if not population:
            if sizes.ndim:
                raise check.fail("Survey.estimate", "people", "be one number for given people", sizes.shape)
            return shares(self.channel, counts, int(sizes), level)
        return self._drawn(counts, sizes, level)

    def _drawn(self, yes: NDArray[np.int64], people: NDArray[np.int64], confidence: float) -> Estimate:
        """The share of yes has a score interval (Wilson 1927), and the estimate is linear in it."""
        rate = yes / people
        square = deviations(confidence) ** 2 / people
        middle = (rate + square / 2) / (1 + square)
        reach = np.sqrt(square * (rate * (1 - rate) + square / 4)) / (1 + square)
        estimate = self.channel.estimate
        p, q = self.channel
        variance = rate * (1 - rate) / (people * (p - q) ** 2)
        lower, upper = estimate(middle - reach), estimate(middle + reach)
        return Estimate(estimate(rate), variance, lower, upper, int(people.min()), confidence)

    def people(
        self, error: float, confidence: float = 0.95, *, between: tuple[float, float] = (0.0, 1.0)
    ) -> People:
        """How many to draw, so that the estimate is within the error of the population's share that surely.

        Whatever the share is, or whatever it is between two that are known.
        """
        owner = "Survey.people"
        within = float(check.inside(owner, "error", error, 0, 1))
        level = check.confidence(owner, confidence)
        low, high = (float(check.between(owner, "between", share, *_SHARES)) for share in between)
        if low > high:
            raise check.fail(owner, "between", "rise", between)
        p, q = self.channel
        least, most = (float(rate) for rate in self.rate(np.array([low, high])))
        middle = min(max(0.5, least), most)
        return People(
            normal=needed(middle * (1 - middle) / (p - q) ** 2, within, level),
            exact=enough_people(least, most, (p - q) * within, level),
            surely=surely_enough((p - q) * within, level),
        )


def best_survey(epsilon: Fraction | float) -> GRR:
    """The best design at an epsilon: the truth with probability e^epsilon/(1 + e^epsilon), else a lie.

    That is Warner's, and no unbiased estimate from epsilon-private answers to a yes-no question has a smaller
    variance, whatever the share and whatever else the answers may be: all of them can be made from Warner's
    (Kairouz, Oh, Viswanath 2015; docs/guarantees/local_queries.md).

    >>> best_survey(1).categories
    2
    """
    return GRR(epsilon=check.rational("best_survey", "epsilon", epsilon), categories=2)


@dataclass(frozen=True, kw_only=True)
class CentralComparison:
    """A share among n people, or in the population they were drawn from, both ways at one epsilon.

    For the people themselves, `best_survey` has variance e^epsilon/(n (e^epsilon - 1)^2), and geometric noise
    on their count 2 e^epsilon/(n^2 (e^epsilon - 1)^2): the first is exactly n/2 times that. Drawing adds
    f(1 - f)/n to both, and then the ratio never exceeds 1 + e^epsilon/((e^epsilon - 1)^2 f(1 - f)).

    >>> same = CentralComparison(epsilon=1, people=10_000)
    >>> round(same.local / same.central), round(same.drawn_local / same.drawn_central, 2)
    (5000, 4.68)
    """

    epsilon: Fraction
    people: int
    share: float = 0.5

    def __post_init__(self) -> None:
        owner = "CentralComparison"
        epsilon = check.between(owner, "epsilon", self.epsilon, LEAST_EPSILON, Fraction(MOST_EPSILON))
        object.__setattr__(self, "epsilon", epsilon)
        check.keep(self, people=check.integer(owner, "people", self.people, 1, 1 << 62))
        share = float(check.between(owner, "share", self.share, Fraction(0), Fraction(1)))
        object.__setattr__(self, "share", share)

    @property
    def mechanism(self) -> Geometric:
        """The noise on the count of yes, which one person changes by 1 at most."""
        return Geometric(scale=1 / self.epsilon)

    @property
    def local(self) -> float:
        """The variance by local reports, for the share among the people."""
        return float(Survey.of(best_survey(self.epsilon)).variance(self.share, self.people))

    @property
    def central(self) -> float:
        """The variance by noise on their count."""
        return 2 * math.exp(-self.epsilon) / (math.expm1(-self.epsilon) * self.people) ** 2

    @property
    def drawn_local(self) -> float:
        """The variance by local reports, for the share in the population."""
        return self.local + self._drawing

    @property
    def drawn_central(self) -> float:
        """The variance by noise on the count, for the share in the population."""
        return self.central + self._drawing

    @property
    def _drawing(self) -> float:
        return self.share * (1 - self.share) / self.people
