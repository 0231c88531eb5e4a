"""Statistical queries: means of functions over a population, known within a tolerance.

An algorithm that learns about a population only through such means can be run by local reports: the means of
phi: X -> [0, 1] are asked of groups of people, each of whom reports one bit. A value phi(x) is rounded to 1
with probability phi(x), else to 0, and the bit is reported as by `best_survey`: that is `Duchi` on [0, 1],
whatever the query. Its reports have the channel of `best_survey`, and all that is known of surveys applies.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check, grid
from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.local.estimate import Estimate
from sourdine.local.frequency.hashing import GRR
from sourdine.local.numeric.duchi import Duchi
from sourdine.local.surveys.design import Survey, best_survey, enough_people, sure_reach, surely_enough
from sourdine.mechanisms.randomized_response import LEAST_EPSILON, MOST_EPSILON

Query = Callable[[NDArray[Any]], ArrayLike]
_MOST_QUERIES = 1 << 20


class QueryAnswer(NamedTuple):
    """A mean, and what it is off by at most (surely, or with the oracle's confidence)."""

    value: float
    tolerance: float


class StatisticalOracle(Protocol):
    """Answers means over a population (Kearns 1998). An oracle may use all it has left for the last query."""

    def ask(self, query: Query, *, last: bool = False) -> QueryAnswer: ...


@dataclass(frozen=True, eq=False)
class TolerantOracle:
    """The oracle of the theory, for algorithms to be tried on: a true mean, off by `lean` tolerances.

    >>> TolerantOracle(np.array([0.0, 1.0]), tolerance=0.1, lean=-1.0).ask(lambda x: x)
    QueryAnswer(value=0.4, tolerance=0.1)
    """

    population: NDArray[Any]
    tolerance: float
    lean: float = 1.0

    def __post_init__(self) -> None:
        tolerance = check.inside("TolerantOracle", "tolerance", self.tolerance, 0, 1)
        lean = check.between("TolerantOracle", "lean", self.lean, Fraction(-1), Fraction(1))
        check.keep(self, tolerance=float(tolerance), lean=float(lean))

    def ask(self, query: Query, *, last: bool = False) -> QueryAnswer:
        mean = float(_shares(query(self.population), len(self.population)).mean())
        return QueryAnswer(min(1.0, max(0.0, mean + self.lean * self.tolerance)), self.tolerance)


class LocalCrowd:
    """People who answer statistical queries by private reports, a new group for each query.

    Everyone answers once at most, at epsilon. So all answers together cost each person epsilon, and queries
    may be chosen by earlier answers (Kasiviswanathan, Lee, Nissim, Raskhodnikova, Smith 2011). An
    answer is within its tolerance of the population's mean with the confidence, by Hoeffding's inequality,
    for people drawn from the population at random and in random order.

    >>> from sourdine.testing import SeededBits
    >>> crowd = LocalCrowd(np.arange(40_000) % 10, epsilon=1, group=20_000, bits=SeededBits(1))
    >>> mean, tolerance = crowd.ask(lambda digit: digit == 7)
    >>> abs(mean - 0.1) < tolerance, round(tolerance, 4), crowd.left
    (True, 0.0208, 20000)
    """

    def __init__(
        self,
        values: NDArray[Any],
        *,
        epsilon: Fraction | float,
        group: int,
        confidence: float = 0.95,
        bits: Bits = SYSTEM,
    ) -> None:
        self.group = check.integer("LocalCrowd", "group", group, 1, 1 << 62)
        self.confidence = check.confidence("LocalCrowd", confidence)
        self.oracle = best_survey(epsilon)
        self._values, self._bits, self._next = values, bits, 0

    @property
    def left(self) -> int:
        """How many people have not answered yet."""
        return len(self._values) - self._next

    def ask(self, query: Query, *, last: bool = False) -> QueryAnswer:
        size = self.left if last else self.group
        if not 1 <= size <= self.left:
            raise InvalidParameter(
                f"A query needs a group of {size:,} and only {self.left:,} people have not answered yet. "
                "Nobody may answer twice at this epsilon. Ask fewer queries, or in smaller groups."
            )
        group = self._values[self._next : self._next + size]
        self._next += size
        yes = count_yes(self.oracle, query, group, self._bits)
        p, q = self.oracle.channel
        mean = float(self.oracle.channel.estimate(yes / size))
        return QueryAnswer(mean, sure_reach(size, self.confidence) / (p - q))


@dataclass(frozen=True, kw_only=True)
class QueryPlan:
    """How many people t queries need, so that all answers are within a tolerance with a confidence.

    Each person answers `each` of the queries at epsilon/each, and all their reports together cost epsilon.
    For `each` above 1 the queries are fixed before anybody answers.

    >>> plan = QueryPlan(epsilon=1, queries=10, tolerance=0.05)
    >>> plan.published, plan.enough, plan.surely
    (4000, 37010, 56120)
    """

    epsilon: Fraction
    queries: int
    tolerance: float
    confidence: float = 0.95
    each: int = 1

    def __post_init__(self) -> None:
        owner = "QueryPlan"
        queries = check.integer(owner, "queries", self.queries, 1, _MOST_QUERIES)
        each = check.integer(owner, "each", self.each, 1, queries)
        least, most = each * LEAST_EPSILON, Fraction(MOST_EPSILON)
        epsilon = check.between(owner, "epsilon", self.epsilon, least, most)
        tolerance = float(check.inside(owner, "tolerance", self.tolerance, 0, 1))
        check.keep(self, epsilon=epsilon, queries=queries, tolerance=tolerance, each=each)
        check.keep(self, confidence=check.confidence(owner, self.confidence))

    @property
    def oracle(self) -> GRR:
        """What one bit goes through."""
        return best_survey(self.epsilon / self.each)

    @property
    def published(self) -> int:
        """t/(epsilon^2 tolerance^2), as published: it makes a standard error of about the tolerance."""
        return math.ceil(self.queries / (float(self.epsilon) * self.tolerance) ** 2)

    @property
    def surely(self) -> int:
        """By Hoeffding 1963, theorem 2, and a share (1 - confidence)/t of failure for each query.

        ceil(ln(2t/(1 - confidence))/(2 (p - q)^2 tolerance^2)) reports to each query, where
        p - q = tanh(epsilon/(2 each)).
        """
        return self._people(surely_enough(self._reach, self._one))

    @property
    def enough(self) -> int | None:
        """The same by exact binomial probabilities, for whatever mean; None above 2^20 reports to a query."""
        p, q = self.oracle.channel
        group = enough_people(q, p, self._reach, self._one)
        return None if group is None else self._people(group)

    def deviation(self, people: int, mean: float = 0.5) -> float:
        """The standard error of one answer from so many people, the mean of the query being known."""
        people = check.integer("QueryPlan.deviation", "people", people, 1, 1 << 62)
        reports = max(1, people * self.each // self.queries)
        return math.sqrt(float(Survey.of(self.oracle).variance(mean, reports, population=True)))

    def answer(
        self, queries: Sequence[Query], values: NDArray[Any], bits: Bits = SYSTEM, confidence: float = 0.95
    ) -> Estimate:
        """All queries at once: person i answers queries i each, i each + 1, ... (modulo their number).

        For people in random order. The intervals are for one query at a time.
        """
        if len(queries) != self.queries:
            raise check.fail("QueryPlan.answer", "queries", f"be {self.queries}, as planned", len(queries))
        if len(values) * self.each < self.queries:
            raise check.fail("QueryPlan.answer", "values", "suffice for a report to each query", len(values))
        first = np.arange(len(values)) * self.each % self.queries
        yes, people = np.zeros((2, self.queries), np.int64)
        for place, query in enumerate(queries):
            group = values[(place - first) % self.queries < self.each]
            yes[place] = count_yes(self.oracle, query, group, bits)
            people[place] = len(group)
        return Survey.of(self.oracle).estimate(yes, people, confidence, population=True)

    @property
    def _reach(self) -> float:
        p, q = self.oracle.channel
        return (p - q) * self.tolerance

    @property
    def _one(self) -> float:
        """The confidence that each answer needs by itself."""
        return 1 - (1 - self.confidence) / self.queries

    def _people(self, reports: int) -> int:
        """People for so many reports to each query."""
        return -(-reports * self.queries // self.each)


def best_each(epsilon: Fraction | float, queries: int) -> int:
    """How many of t fixed queries everyone should answer, for the least variance of an answer.

    The variance of an answer from n people whose reports are noisy is about t/(4 n) coth^2(x/2)/each with
    x = epsilon/each: one up to epsilon about 3, and about epsilon/2.2 beyond.

    >>> best_each(1, 10), best_each(8, 10)
    (1, 4)
    """
    cost = float(check.between("best_each", "epsilon", epsilon, LEAST_EPSILON, Fraction(MOST_EPSILON)))
    count = check.integer("best_each", "queries", queries, 1, _MOST_QUERIES)
    each = np.arange(1, count + 1)
    return 1 + int(np.argmin(1 / (np.tanh(cost / (2 * each)) ** 2 * each)))


def count_yes(oracle: GRR, query: Query, people: NDArray[Any], bits: Bits) -> int:
    """How many of these people report a yes to a query."""
    number = Duchi(epsilon=oracle.epsilon, lower=Fraction(0), upper=Fraction(1))
    return int(number.sample(_shares(query(people), len(people)), bits).sum())


def _shares(values: ArrayLike, people: int) -> NDArray[np.float64]:
    """Values of a query between 0 and 1, whatever it returned; what is not a number counts as 0."""
    real = np.asarray(grid.reals(values), np.float64)
    if real.shape != (people,):
        raise InvalidParameter(
            "A statistical query must return one number for each person. Pass a function of arrays, such as "
            "lambda ages: ages > 65."
        )
    return np.clip(np.where(np.isnan(real), 0.0, real), 0.0, 1.0)
