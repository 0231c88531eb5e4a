"""RAPPOR for categories, one bit each: neither hashes nor cohorts, once or again."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check, grid
from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.local.estimate import Counts
from sourdine.local.oracle import BitReports, FrequencyOracle, whole_number
from sourdine.local.rappor.oracle import RapporOracle, check_coins, check_flip
from sourdine.local.rappor.responses import Coins, Rows, solve_coins, solve_flip

MOST_CATEGORIES = 1 << 16


class BasicOracle(RapporOracle, BitReports, FrequencyOracle):
    """Variants for categories: each has a bit of its own, and there are neither hashes nor cohorts."""

    @property
    def epsilon(self) -> Fraction:  # type: ignore[override]
        """`epsilon_one` as a fraction."""
        return Fraction(self.epsilon_one)

    @property
    def bits(self) -> int:
        return self.categories

    @property
    def size(self) -> int:
        return self.categories

    @property
    def ones(self) -> int:
        return 1

    @property
    def groups(self) -> int:
        return 1

    def filter(self, value: object, cohort: int) -> Rows:
        row: Rows = self._filters(np.array([value]))[0]
        return row

    def with_cohorts(self, rows: Rows, cohorts: NDArray[np.int64]) -> Rows:
        return rows

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        """A packed report of a new device for each category."""
        array = grid.numbers(values)
        return self.respond(self._filters(array.reshape(-1)), bits).reshape(*array.shape, self.width)

    def _filters(self, values: NDArray[Any]) -> Rows:
        places = np.clip(grid.to_units(type(self).__name__, values, None), 0, self.categories - 1)
        rows = np.zeros((places.size, self.width), np.uint8)
        rows[np.arange(places.size), places >> 3] = 128 >> (places & 7)
        return rows

    def supports(self, counts: Counts) -> NDArray[np.int64]:
        return counts.sums


@dataclass(frozen=True, kw_only=True)
class BasicRappor(BasicOracle):
    """Categories, one bit each, answered once for ever and then anew in every report.

    The epsilons are those of `Rappor` with one hash. The channel of a category is (q*, p*).

    >>> round(BasicRappor(categories=8, f=0.5, p=0.5, q=0.75).epsilon_infinity, 3)
    2.197
    """

    name: ClassVar[str] = "basic-rappor/1"
    categories: int
    f: Fraction
    p: Fraction
    q: Fraction

    def __post_init__(self) -> None:
        _check_categories(self)
        check_coins(self)

    @property
    def coins(self) -> Coins:
        return Coins(self.f, self.p, self.q)

    def once(self) -> "BasicOneTimeRappor":
        return BasicOneTimeRappor(categories=self.categories, f=self.f)

    @classmethod
    def within(
        cls, *, epsilon: Fraction | float, epsilon_infinity: Fraction | float, categories: int
    ) -> Self:
        """The parameters of least variance with these epsilons; an infinite epsilon_infinity gives f = 0."""
        coins = solve_coins("BasicRappor.within", epsilon, epsilon_infinity, 1)
        return cls(categories=categories, f=coins.f, p=coins.p, q=coins.q)

    @classmethod
    def examples(cls) -> Iterator[Example]:
        for one in (
            cls(categories=3, f=Fraction(0), p=Fraction(1, 5), q=Fraction(2, 3)),
            cls(categories=4, f=Fraction(1, 2), p=Fraction(1, 2), q=Fraction(3, 4)),
        ):
            yield Example(mechanism=one, value=0, neighbour=2, distance=Distance.hamming(), code=whole_number)


@dataclass(frozen=True, kw_only=True)
class BasicOneTimeRappor(BasicOracle):
    """Categories, one bit each, answered once: a bit is turned over with probability f/2.

    It costs 2 ln((1-f/2)/(f/2)): symmetric unary encoding.

    >>> round(BasicOneTimeRappor(categories=8, f=0.5).epsilon_one, 3)
    2.197
    """

    name: ClassVar[str] = "basic-one-time-rappor/1"
    categories: int
    f: Fraction

    def __post_init__(self) -> None:
        _check_categories(self)
        check_flip(self)

    @property
    def coins(self) -> Coins:
        return Coins(self.f)

    def once(self) -> Self:
        return self

    @classmethod
    def within(cls, *, epsilon: Fraction | float, categories: int) -> Self:
        """The least noise with this epsilon."""
        return cls(categories=categories, f=solve_flip("BasicOneTimeRappor.within", epsilon, 1))

    @classmethod
    def examples(cls) -> Iterator[Example]:
        one = cls(categories=5, f=Fraction(2, 3))
        yield Example(mechanism=one, value=4, neighbour=1, distance=Distance.hamming(), code=whole_number)


def _check_categories(oracle: BasicRappor | BasicOneTimeRappor) -> None:
    owner = type(oracle).__name__
    count = check.integer(owner, "categories", oracle.categories, 2, MOST_CATEGORIES)
    object.__setattr__(oracle, "categories", count)
