"""The end b of uniform values on [0, b], four ways: plain, by a curator, by local reports, and by queries.

An upper bound of b is declared, never taken from the values, and so is their number: neighbours have one
value replaced. Values are clamped to [0, bound], and so are estimates, which only ever brings them nearer.
docs/guarantees/local_queries.md has the errors.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.accounting.spend import Spend
from sourdine.core import check, grid
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.lazy import betaincinv
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.local.surveys.design import Survey, best_survey, sure_reach
from sourdine.local.surveys.statistical_query import LocalCrowd, StatisticalOracle, count_yes
from sourdine.mechanisms.laplace import Laplace
from sourdine.mechanisms.randomized_response import LEAST_EPSILON, MOST_EPSILON
from sourdine.mechanisms.selection import Exponential

_MOST_BOUND = 1 << 40
_MOST_LEVELS = 40
_CROWDED = 8  # half of how many times its share of the values a cell may hold: good for b above bound/16
_STEPS = 20  # a maximum is rounded to about 2^-20 of the bound
_STOP = 0.25  # the share of values beyond a threshold that ends the search, if that is above its tolerance


@dataclass(frozen=True)
class Endpoint:
    """An estimate of b with an interval that holds with the confidence."""

    value: float
    lower: float
    upper: float
    confidence: float


@dataclass(frozen=True, kw_only=True)
class EndpointMethod(ABC):
    """A way to estimate b, which is at most `bound`."""

    bound: Fraction

    def __post_init__(self) -> None:
        owner = type(self).__name__
        least = Fraction(1, _MOST_BOUND)
        bound = check.between(owner, "bound", self.bound, least, Fraction(_MOST_BOUND))
        object.__setattr__(self, "bound", bound)

    @property
    @abstractmethod
    def spend(self) -> Spend | None:
        """What it costs each person; None if it protects nobody."""

    @abstractmethod
    def _deviation(self, end: float, people: int) -> float:
        """The same for an estimate that is not clamped."""

    def deviation(self, end: float, people: int) -> float:
        """About the root mean squared error for so many people, if b were this."""
        owner = f"{type(self).__name__}.deviation"
        count = check.integer(owner, "people", people, 1, 1 << 62)
        real = float(check.positive(owner, "end", end, self.bound))
        return min(float(self.bound), self._deviation(real, count))

    @abstractmethod
    def _find(self, values: NDArray[np.float64], beta: float, bits: Bits) -> tuple[float, float, float]:
        """Value, lower and upper end of the interval that fails with probability beta."""

    def estimate(self, values: ArrayLike, bits: Bits = SYSTEM, confidence: float = 0.95) -> Endpoint:
        """The end of the law that these values were drawn from."""
        level = check.confidence(f"{type(self).__name__}.estimate", confidence)
        real = grid.reals(values)
        if real.ndim != 1 or real.size == 0 or real.dtype.kind not in "biuf":
            raise InvalidParameter(
                "The values must be one row of numbers, not empty. Pass an array of floats."
            )
        real = np.nan_to_num(real.astype(np.float64), nan=0.0, posinf=np.inf, neginf=0.0)
        most = float(self.bound)
        ends = self._find(np.clip(real, 0.0, most), 1 - level, bits)
        value, lower, upper = (min(most, max(0.0, each)) for each in ends)
        return Endpoint(value, lower, upper, level)


@dataclass(frozen=True, kw_only=True)
class PlainEndpoint(EndpointMethod):
    """max (n + 1)/n: without bias, its deviation b/sqrt(n (n + 2)), and no privacy at all.

    >>> PlainEndpoint(bound=100).estimate([1.0, 4.0, 8.0]).value
    10.666666666666666
    """

    @property
    def spend(self) -> None:
        return None

    def _deviation(self, end: float, people: int) -> float:
        return end / math.sqrt(people * (people + 2))

    def _find(self, values: NDArray[np.float64], beta: float, bits: Bits) -> tuple[float, float, float]:
        """max/b has the law of the largest of n uniform numbers: P[max <= b u] = u^n."""
        n, most = len(values), float(values.max())
        low, high = (most / tail ** (1 / n) for tail in (1 - beta / 2, beta / 2))
        return most * (n + 1) / n, low, high


@dataclass(frozen=True, kw_only=True)
class _Private(EndpointMethod):
    """What the private ways have in common."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = type(self).__name__
        epsilon = check.between(owner, "epsilon", self.epsilon, LEAST_EPSILON, Fraction(MOST_EPSILON))
        object.__setattr__(self, "epsilon", epsilon)


@dataclass(frozen=True, kw_only=True)
class NoisyMaximum(_Private):
    """The largest value with Laplace noise: epsilon-DP, and off by bound/epsilon, however many values.

    One value may move the maximum from 0 to the bound, so this is the noise it takes.

    >>> round(NoisyMaximum(bound=100, epsilon=4).deviation(10, 1_000_000))
    35
    """

    @property
    def mechanism(self) -> Laplace:
        """The noise, on a grid of about a millionth of the bound."""
        step = Fraction(2) ** (math.floor(math.log2(self.bound)) - _STEPS)
        return Laplace(scale=(self.bound + step) / self.epsilon, granularity=step)

    @property
    def spend(self) -> Spend:
        moved = Distance.l1(self.bound, coordinates=1, neighbours=Neighbours.REPLACE)
        return Spend(mechanism=self.mechanism, distance=moved)

    def _deviation(self, end: float, people: int) -> float:
        return math.sqrt(2) * float(self.mechanism.scale)

    def _find(self, values: NDArray[np.float64], beta: float, bits: Bits) -> tuple[float, float, float]:
        n = len(values)
        answer = float(self.mechanism.sample(values.max(), bits))
        off = self.mechanism.error(1 - beta / 2)
        return answer * (n + 1) / n, answer - off, (answer + off) / (beta / 2) ** (1 / n)


@dataclass(frozen=True, kw_only=True)
class CentralEndpoint(_Private):
    """A high quantile by the exponential mechanism, divided by its level: epsilon-DP, off by about 1/n.

    Of the ends t of equal cells of [0, bound], one is drawn with weight e^(-epsilon |#{x <= t} - k|/2)
    (McSherry, Talwar 2007; sensitivity 1). The rank k lies 2/epsilon ln(cells n^2) below n, and
    so an end beyond all values is drawn with probability 1/n^2 at most, if a cell holds few values; b is then
    about t n/k.

    >>> round(CentralEndpoint(bound=100, epsilon=1).deviation(10, 10_000), 4)
    0.0086
    """

    cells: int = 1 << 20

    def __post_init__(self) -> None:
        super().__post_init__()
        check.keep(self, cells=check.integer("CentralEndpoint", "cells", self.cells, 2, 1 << 20))

    @property
    def mechanism(self) -> Exponential:
        """The choice among the ends of cells."""
        return Exponential(epsilon=self.epsilon, sensitivity=Fraction(1), candidates=self.cells)

    @property
    def spend(self) -> Spend:
        moved = Distance.linf(1, neighbours=Neighbours.REPLACE)
        return Spend(mechanism=self.mechanism, distance=moved)

    def rank(self, people: int) -> int:
        """The rank that is aimed at, of so many; their half if they are few."""
        below = (
            math.ceil(2 / self.epsilon * math.log(self.cells * people**2)) + _CROWDED * people // self.cells
        )
        return max(people - below, -(-people // 2))

    def _deviation(self, end: float, people: int) -> float:
        """By the law of a uniform value of that rank, the noise in ranks, and the width of a cell."""
        level = self.rank(people) / people
        noise = math.exp(-self.epsilon / 2) / (math.expm1(-self.epsilon / 2) * people) ** 2
        ranks = level * (1 - level) / people + 2 * noise
        cell = float(self.bound) / self.cells
        return math.sqrt(end**2 * ranks + cell**2 / 3) / level

    def _find(self, values: NDArray[np.float64], beta: float, bits: Bits) -> tuple[float, float, float]:
        n, width = len(values), float(self.bound) / self.cells
        places = np.clip(np.ceil(values / width) - 1, 0, self.cells - 1).astype(np.int64)
        counts = np.cumsum(np.bincount(places, minlength=self.cells))
        aim = self.rank(n)
        end = (int(self.mechanism.sample(-np.abs(counts - aim), bits)) + 1) * width
        off = math.ceil(self.mechanism.error(1 - beta / 2))
        least = _order(max(1, aim - off), n, beta / 4)
        most = _order(min(n, aim + off + 1), n, 1 - beta / 4)
        beyond = aim + off >= n  # the end drawn may then lie beyond all values
        return end * n / aim, 0.0 if beyond else (end - width) / most, (end + width) / least


@dataclass(frozen=True, kw_only=True)
class LocalEndpoint(_Private):
    """Twice the mean of one-bit reports: epsilon-LDP, off by about bound coth(epsilon/2)/sqrt(n).

    A person with x makes a bit that is 1 with probability x/bound and reports it through `best_survey`, which
    is Duchi's mechanism. Before it is clamped the estimate has no bias.

    >>> round(LocalEndpoint(bound=100, epsilon=1).deviation(10, 10_000), 2)
    1.97
    """

    @property
    def spend(self) -> Spend:
        return best_survey(self.epsilon).spend

    def _deviation(self, end: float, people: int) -> float:
        most = float(self.bound)
        variance = Survey.of(best_survey(self.epsilon)).variance(end / most / 2, people, population=True)
        return 2 * most * math.sqrt(float(variance))

    def _find(self, values: NDArray[np.float64], beta: float, bits: Bits) -> tuple[float, float, float]:
        most, oracle = float(self.bound), best_survey(self.epsilon)
        yes = count_yes(oracle, lambda x: x / most, values, bits)
        mean = Survey.of(oracle).estimate(yes, len(values), 1 - beta, population=True)
        return 2 * most * float(mean.value), 2 * most * float(mean.lower), 2 * most * float(mean.upper)


@dataclass(frozen=True, kw_only=True)
class QueriedEndpoint(_Private):
    """Thresholds asked of one group after another: epsilon-LDP, off by about b coth(epsilon/2)/sqrt(2 n).

    `ask_endpoint` with a crowd: half of the people are for the search, in a group for each of the levels, and
    who is not asked there answers the last query. It suits b between bound/2^(levels - 1) and bound.

    >>> round(QueriedEndpoint(bound=100, epsilon=1).deviation(10, 10_000), 2)
    0.15
    """

    levels: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        check.keep(self, levels=check.integer("QueriedEndpoint", "levels", self.levels, 1, _MOST_LEVELS))

    @property
    def spend(self) -> Spend:
        return best_survey(self.epsilon).spend

    def group(self, people: int) -> int:
        """How many are asked about each threshold of the search."""
        return max(1, people // (2 * self.levels))

    def _deviation(self, end: float, people: int) -> float:
        most, group = float(self.bound), self.group(people)
        survey = Survey.of(best_survey(self.epsilon))
        p, q = survey.channel
        tolerance = sure_reach(group, 1 - 0.05 / (self.levels + 1)) / (p - q)
        stop = max(math.ldexp(end, -self.levels), (1 - max(_STOP, tolerance)) * end)
        rounds = min(self.levels, max(1, math.floor(math.log2(most / stop)) + 1))
        threshold = math.ldexp(most, -rounds) / end
        near = min(1.0, threshold / (threshold + tolerance))
        left = max(1, people - rounds * group)
        return end / near * math.sqrt(float(survey.variance(near, left, population=True)))

    def _find(self, values: NDArray[np.float64], beta: float, bits: Bits) -> tuple[float, float, float]:
        if len(values) <= self.levels:  # too few for a group each, and their number is public
            return float(self.bound) / 2, 0.0, float(self.bound)
        one = 1 - beta / (self.levels + 1)
        crowd = LocalCrowd(
            values, epsilon=self.epsilon, group=self.group(len(values)), confidence=one, bits=bits
        )
        return ask_endpoint(crowd, float(self.bound), self.levels)


def ask_endpoint(oracle: StatisticalOracle, bound: float, levels: int) -> tuple[float, float, float]:
    """b of Unif[0, b] by statistical queries, with what it lies between if all answers are within tolerance.

    The share of values beyond bound/2, bound/4, ... is asked until it exceeds 1/4 and its tolerance. From it
    follows a place that b surely reaches, and the share below that place gives b. If the tolerance tau
    is at most 1/16 and b at least bound/2^(levels - 1), then levels + 1 queries find b within 1.5 tau b.

    >>> from sourdine.local.surveys.statistical_query import TolerantOracle
    >>> uniform = (np.arange(10_000) + 0.5) / 10_000
    >>> value, lower, upper = ask_endpoint(TolerantOracle(7 * uniform, tolerance=0.01, lean=0.5), 100, 8)
    >>> abs(value - 7) <= 0.105, lower <= 7 <= upper
    (True, True)
    """
    threshold, beyond, tolerance = bound, 0.0, 0.0
    for _ in range(levels):
        threshold /= 2
        at = threshold
        beyond, tolerance = oracle.ask(lambda x, at=at: x > at)  # type: ignore[misc]
        if beyond > max(_STOP, tolerance):
            break
    near = min(bound, threshold / max(1 - beyond + tolerance, threshold / bound))
    share, off = oracle.ask(lambda x: x <= near, last=True)
    upper = near / (share - off) if share - off > near / bound else bound
    value = near / share if share > near / bound else bound
    if beyond <= tolerance:  # b may lie below the threshold
        return value, 0.0, upper
    return max(near, value), max(near, near / max(share + off, near / bound)), max(near, upper)


def _order(rank: int, people: int, probability: float) -> float:
    """A quantile of the uniform value of that rank."""
    return float(betaincinv(rank, people + 1 - rank, probability))
