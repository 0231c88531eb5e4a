"""Sums over pairs of columns, as whole numbers of which one record moves only so much.

Values u between 0 and U and v between 0 and V are summed by products of their Bernstein polynomials. None is
negative, and over all of them together a record adds up to U^a V^b, whatever it holds, so that one
measurement tells n and the sums of u, v, uv and, of degree 2, of squares and their products. Weights w with
values v are the pair w (V - v) and w v, which add up to w V.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from sourdine.core import check
from sourdine.frames.engines.dialect import DUCKDB, Dialect
from sourdine.frames.statistics.sums import Whole, is_wide, scaled_down

MOST_STEPS = {1: 1 << 15, 2: 1 << 10}  # of a column in a pair, by its degree: larger ones are made coarser


def coarseness(width: int, degree: int) -> int:
    """How many steps of a column make one step of a pair.

    >>> coarseness(1000, 2), coarseness(500_000, 1)
    (1, 16)
    """
    return -(-width // MOST_STEPS[degree])


def coarse_width(width: int, degree: int) -> int:
    """The width in those steps: the nearest, as values are rounded."""
    step = coarseness(width, degree)
    return (width + step // 2) // step


def pair(
    places: Sequence[str],
    widths: Sequence[int],
    degrees: Sequence[int],
    dialect: Dialect,
    *,
    origins: Sequence[int] = (0, 0),
) -> str:
    """Both places of a record as one number, and -1 where either is missing.

    `places` are SQL, from 0 to a width less its origin or -1. The origins are added to them, and they are
    rounded to coarser steps.
    """
    parts = []
    for place, width, degree, origin in zip(places, widths, degrees, origins, strict=True):
        step = coarseness(width, degree)
        wide = f"CAST({place} AS BIGINT)" + (f" + {origin}" if origin else "")
        parts.append(wide if step == 1 else dialect.quotient(f"({wide} + {step // 2})", str(step)))
    base = coarse_width(widths[1], degrees[1]) + 1
    code = f"({parts[0]}) * {base} + ({parts[1]})"
    return f"CASE WHEN {places[0]} >= 0 AND {places[1]} >= 0 THEN {code} ELSE -1 END"


@dataclass(frozen=True, kw_only=True)
class PairSums:
    """The sums of the products of Bernstein polynomials of two values.

    `value` is SQL, a pair as above with these widths and degrees. With `weighted` the first value is a
    weight, and the sums are those of the second, each times its weight.

    >>> PairSums(value="", widths=(10, 4), degrees=(1, 1)).from_powers((2, 5, 7, 20))
    (22, 30, 8, 20)
    """

    value: str
    widths: tuple[int, int]
    degrees: tuple[int, int] = (1, 1)
    weighted: bool = False
    max_rows: int = 1

    def __post_init__(self) -> None:
        degrees = tuple(check.integer("PairSums", "degree", degree, 1, 2) for degree in self.degrees)
        widths = tuple(
            check.integer("PairSums", "width", width, 1, MOST_STEPS[degree])
            for width, degree in zip(self.widths, degrees, strict=True)
        )
        max_rows = check.integer("PairSums", "max_rows", self.max_rows, 1, 1 << 62)
        check.keep(self, widths=widths, degrees=degrees, max_rows=max_rows)

    @property
    def coordinates(self) -> int:
        """How many numbers there are in a group."""
        return len(self.matrix)

    @property
    def reach(self) -> int:
        """How far one record moves them, in L1."""
        return math.prod(width**degree for width, degree in zip(self.widths, self.degrees, strict=True))

    @property
    def exponents(self) -> list[tuple[int, int]]:
        """The powers of both values whose products are summed, in their order."""
        if self.weighted:
            return [(0, 0), (1, 0), (1, 1)]
        return list(product(range(self.degrees[0] + 1), range(self.degrees[1] + 1)))

    @property
    def matrix(self) -> list[list[int]]:
        """Every sum that is told, as whole multiples of the sums of powers."""
        if self.weighted:
            return [[0, self.widths[1], -1], [0, 0, 1]]
        one, two = (
            _in_powers(width, degree) for width, degree in zip(self.widths, self.degrees, strict=True)
        )
        return [[first[p] * second[q] for p, q in self.exponents] for first in one for second in two]

    def powers(self, value: str, dialect: Dialect = DUCKDB) -> list[str]:
        """The aggregates that the engine computes of a column of pairs."""
        base = self.widths[1] + 1
        first = dialect.quotient(f"({value})", str(base))
        second = f"({value} - ({first}) * {base})"
        sums = []
        for p, q in self.exponents:
            factors = " * ".join([f"({first})"] * p + [second] * q)
            most = self.widths[0] ** p * self.widths[1] ** q
            total = dialect.total(factors, most) if factors else "count(*)"
            sums.append(f"{total} FILTER (WHERE {value} >= 0)")
        return sums

    @property
    def wide(self) -> bool:
        """Whether its sums may be larger than 64 bits hold."""
        return is_wide(self.reach)

    def from_powers(self, sums: Sequence[Whole]) -> tuple[Whole, ...]:
        """The sums of the products of polynomials."""
        first, *others = sums
        rows = []
        for one, *more in self.matrix:
            total = first * one
            for times, number in zip(more, others, strict=True):
                total = total + number * times
            rows.append(total)
        return tuple(rows)

    def capped(self, columns: Sequence[str], dialect: Dialect = DUCKDB) -> list[str]:
        """The same in SQL for the records of one unit in one group, at most as if they were `max_rows`."""
        wide = [f"CAST({column} AS {dialect.wide})" for column in columns]
        parts = (
            " + ".join(f"({times}) * {column}" for times, column in zip(row, wide, strict=True) if times)
            for row in self.matrix
        )
        return [scaled_down(f"({part})", columns[0], self.max_rows, dialect) for part in parts]


def _in_powers(width: int, degree: int) -> list[list[int]]:
    """C(d, i) u^i (W - u)^(d - i) by powers of u, for i = 0 to d."""
    return [
        [
            math.comb(degree, i) * math.comb(degree - i, p - i) * (-1) ** (p - i) * width ** (degree - p)
            if p >= i
            else 0
            for p in range(degree + 1)
        ]
        for i in range(degree + 1)
    ]
