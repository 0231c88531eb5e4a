"""What is summed over records, as whole numbers of which one record moves only so much.

A value v between 0 and W is not summed by its powers but by its Bernstein polynomials: of degree 1, W - v and
v; of degree 2, (W - v)^2, 2 v (W - v) and v^2. None is negative and together they are W^d whatever v is, so
one record moves them by W^d in L1, all at once, and the count, the sum and the sum of squares are read off
together. Noise on three sums apart would have to be three times as large.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from numpy.typing import NDArray

from sourdine.core import check
from sourdine.frames.engines.dialect import DUCKDB, Dialect

Whole = TypeVar("Whole", int, NDArray[Any])
"""Whole numbers, one by one or in arrays."""
EVERYTHING = "0"  # a value that no record lacks
_NARROW = 1 << 22  # of so much a record, 2^40 records make no sum larger than 64 bits hold


def is_wide(reach: int) -> bool:
    """Whether sums that one record moves so far may be larger than 64 bits hold."""
    return reach > _NARROW


def valid(value: str) -> str:
    """The aggregate that counts values which are not missing; it is quicker than a filter."""
    return f"count(nullif({value}, -1))"


class Summation(Protocol):
    """Some whole numbers of each group. `value` is SQL, what one record counts as."""

    @property
    def value(self) -> str: ...

    @property
    def max_rows(self) -> int: ...

    @property
    def coordinates(self) -> int: ...

    @property
    def reach(self) -> int: ...

    def powers(self, value: str, dialect: Dialect = DUCKDB) -> list[str]: ...

    @property
    def wide(self) -> bool: ...

    def from_powers(self, sums: Sequence[Whole]) -> tuple[Whole, ...]: ...

    def capped(self, columns: Sequence[str], dialect: Dialect = DUCKDB) -> list[str]: ...


@dataclass(frozen=True, kw_only=True)
class BernsteinSums:
    """The sums of the Bernstein polynomials of a value between 0 and `width`.

    `value` is SQL, NULL or -1 for records that are left out, and never NULL if it is `marked`; `max_rows`
    records of a unit in one group count in full, and more are scaled down to that.

    >>> BernsteinSums(value="age", width=10, degree=2).from_powers((2, 7, 25, 2))
    (85, 90, 25)
    """

    value: str = EVERYTHING
    width: int = 1
    degree: int = 0
    max_rows: int = 1
    marked: bool = False

    def __post_init__(self) -> None:
        check.keep(self, degree=check.integer("BernsteinSums", "degree", self.degree, 0, 2))
        check.keep(self, width=check.integer("BernsteinSums", "width", self.width, 1, 1 << 32))
        check.keep(self, max_rows=check.integer("BernsteinSums", "max_rows", self.max_rows, 1, 1 << 62))

    @property
    def coordinates(self) -> int:
        """How many numbers there are in a group."""
        return self.degree + 1

    @property
    def reach(self) -> int:
        """How far one record moves them, in L1."""
        return int(self.width**self.degree)

    @property
    def wide(self) -> bool:
        """Whether its sums may be larger than 64 bits hold."""
        return is_wide(self.reach)

    def powers(self, value: str, dialect: Dialect = DUCKDB) -> list[str]:
        """The aggregates that the engine computes of a column.

        They are how many values there are, their sum, their sum of squares, and how many are not NULL: those
        of -1, which stand for what is missing, are taken out again below.
        """
        if self.value == EVERYTHING:
            return ["count(*)"]
        first = dialect.total(value, self.width)
        second = dialect.total(f"CAST({value} AS BIGINT) * {value}", self.width**2)
        every = "count(*)" if self.marked else f"count({value})"
        return [valid(value), first, second][: self.degree + 1] + ([every] if self.degree else [])

    def from_powers(self, sums: Sequence[Whole]) -> tuple[Whole, ...]:
        """The sums of the Bernstein polynomials, of numbers or of arrays of them."""
        wide, count = self.width, sums[0]
        if self.degree == 0:
            return (count,)
        absent = sums[-1] - count
        first = sums[1] + absent
        if self.degree == 1:
            return wide * count - first, first
        second = sums[2] - absent
        return wide**2 * count - 2 * wide * first + second, 2 * (wide * first - second), second

    def capped(self, columns: Sequence[str], dialect: Dialect = DUCKDB) -> list[str]:
        """The same in SQL for the records of one unit in one group, at most as if they were `most`."""
        wide, count = f"CAST({self.width} AS {dialect.wide})", columns[0]
        if self.degree == 0:
            return [f"least({count}, {self.max_rows})"]
        absent = f"({columns[-1]} - {count})"
        first = f"({columns[1]} + {absent})"
        if self.degree == 1:
            parts = [f"({wide} * {count} - {first})", first]
        else:
            second = f"({columns[2]} - {absent})"
            parts = [
                f"({wide} * {wide} * {count} - 2 * {wide} * {first} + {second})",
                f"(2 * ({wide} * {first} - {second}))",
                second,
            ]
        return [scaled_down(part, count, self.max_rows, dialect) for part in parts]


@dataclass(frozen=True, kw_only=True)
class PlainSum:
    """The plain sum of a value whose size is at most `reach`."""

    value: str
    reach: int
    max_rows: int = 1

    def __post_init__(self) -> None:
        check.keep(self, reach=check.integer("PlainSum", "reach", self.reach, 0, 1 << 62))
        check.keep(self, max_rows=check.integer("PlainSum", "max_rows", self.max_rows, 1, 1 << 62))

    @property
    def coordinates(self) -> int:
        """One number in a group."""
        return 1

    @property
    def wide(self) -> bool:
        """Whether it may be larger than 64 bits hold."""
        return is_wide(self.reach)

    def powers(self, value: str, dialect: Dialect = DUCKDB) -> list[str]:
        """The aggregates that the engine computes of a column: count and sum."""
        return [f"count({value})", dialect.total(value, self.reach)]

    def from_powers(self, sums: Sequence[Whole]) -> tuple[Whole, ...]:
        """The sum alone."""
        return (sums[1],)

    def capped(self, columns: Sequence[str], dialect: Dialect = DUCKDB) -> list[str]:
        """The sum over the records of one unit in one group, at most as if they were `most`."""
        return [scaled_down(columns[1], columns[0], self.max_rows, dialect)]


def scaled_down(part: str, count: str, max_rows: int, dialect: Dialect) -> str:
    """A part of a unit in a group, as if it had at most `max_rows` records.

    Whole numbers only: division of whole numbers never rounds their size up.
    """
    return f"CASE WHEN {count} > {max_rows} THEN {dialect.scaled(part, max_rows, count)} ELSE {part} END"
