"""Sums, products and quotients on whole steps, exactly, each rounded once to a grid of at most 2^31 steps."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from sourdine.core.errors import InvalidParameter
from sourdine.frames.engines.dialect import Dialect
from sourdine.frames.expressions.kinds import (
    LONG,
    Kind,
    NumberKind,
    check_size,
    coarse_enough,
    common_step,
    fine_step,
    on_grid,
)
from sourdine.frames.expressions.tree import (
    Constant,
    Kinds,
    OfOne,
    OfTwo,
    RecordCells,
    enclosed,
    expect_number,
)


def floor_ratio(top: str, bottom: int, least: int, most: int, dialect: Dialect) -> str:
    """The floor of a whole number over another that is positive, in 64 bits.

    Engines divide towards zero, so what is divided is first moved above 0; it lies between least and most.
    """
    start = least // bottom
    moved = top if start == 0 else f"{top} - ({start * bottom})"
    quotient = f"CAST({dialect.quotient(f'({moved})', str(bottom))} AS BIGINT)"
    return quotient if start == 0 else f"({quotient} + ({start}))"


def regrid(sql: str, kind: NumberKind, step: Fraction, dialect: Dialect, what: str) -> str:
    """Whole steps of a kind in steps of another grid: the nearest, of two as near the upper one.

    Between two grids of which one divides the other this is a product, or a shift and a division.
    """
    ratio = kind.step / step
    if ratio == 1:
        return f"CAST({sql} AS BIGINT)" if kind.size < LONG else sql
    top, bottom = ratio.numerator, ratio.denominator
    if bottom == 1:
        check_size(kind.size * top, what)
        return f"({long(sql, kind.size * top, dialect)} * {top})"
    size = 2 * kind.size * top + bottom
    check_size(2 * size, what)
    twice = f"{long(sql, 2 * size, dialect)} * {2 * top} + {bottom}"
    return floor_ratio(twice, 2 * bottom, 2 * kind.low * top + bottom, 2 * kind.high * top + bottom, dialect)


def long(sql: str, size: int, dialect: Dialect) -> str:
    """A whole number in a type that holds what is computed of it: 64 bits where they do."""
    return f"CAST({sql} AS {'BIGINT' if size < LONG else dialect.wide})"


def exact_kind(step: Fraction, low: int, high: int, nonzero: bool = False) -> tuple[NumberKind, NumberKind]:
    """What is computed exactly, and the same on a grid that is coarse enough to go on with."""
    exact = NumberKind(step, low, high, nonzero)
    enough = coarse_enough(step, exact.lower, exact.upper)
    if enough == step:
        return exact, exact
    return exact, on_grid(enough, exact.lower, exact.upper)


@dataclass(frozen=True)
class Add(OfTwo):
    """The sum of two numbers."""

    sign = "+"

    @property
    def text(self) -> str:
        return f"{enclosed(self.left)} {self.sign} {enclosed(self.right)}"

    def _kinds(self, kinds: Kinds) -> tuple[NumberKind, NumberKind]:
        owner = "A sum" if self.sign == "+" else "A difference"
        left, right = (expect_number(part, kinds, owner) for part in self.parts)
        if self.sign == "-":
            right = NumberKind(right.step, -right.high, -right.low)
        step = common_step(left.step, right.step)
        low, high = (int((a * left.step + b * right.step) / step) for a, b in _ends(left, right))
        check_size(max(abs(low), abs(high)), self.text)
        return exact_kind(step, low, high)

    def kind(self, kinds: Kinds) -> Kind:
        return self._kinds(kinds)[1]

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        exact, coarse = self._kinds(kinds)
        parts = []
        for part in self.parts:
            kind = expect_number(part, kinds, "A sum")
            whole = regrid(part.sql(cells, kinds), kind, exact.step, cells.dialect, self.text)
            parts.append(long(whole, max(exact.size, int(kind.size * kind.step / exact.step)), cells.dialect))
        return regrid(f"({parts[0]} {self.sign} {parts[1]})", exact, coarse.step, cells.dialect, self.text)


def _ends(left: NumberKind, right: NumberKind) -> tuple[tuple[int, int], tuple[int, int]]:
    return (left.low, right.low), (left.high, right.high)


@dataclass(frozen=True)
class Subtract(Add):
    """The difference of two numbers."""

    sign = "-"


@dataclass(frozen=True)
class Multiply(OfTwo):
    """The product of two numbers. By a constant it is exact: the grid is scaled."""

    @property
    def text(self) -> str:
        return f"{enclosed(self.left)} * {enclosed(self.right)}"

    def _kinds(self, kinds: Kinds) -> tuple[NumberKind, NumberKind]:
        left, right = (expect_number(part, kinds, "A product") for part in self.parts)
        if (factor := self._factor) is not None:
            kind = _scaled(left if isinstance(self.right, Constant) else right, factor)
            return kind, kind
        ends = [a * b for a, b in product((left.low, left.high), (right.low, right.high))]
        if self.left == self.right:  # a square is not negative
            ends.append(0) if left.low <= 0 <= left.high else None
            ends = [end for end in ends if end >= 0]
        check_size(max(map(abs, ends)), self.text)
        nonzero = not (left.has_zero or right.has_zero)
        return exact_kind(left.step * right.step, min(ends), max(ends), nonzero)

    @property
    def _factor(self) -> Fraction | None:
        for part in (self.right, self.left):
            if isinstance(part, Constant) and isinstance(part.value, int | Fraction) and part.value != 0:
                return Fraction(part.value)
        return None

    def kind(self, kinds: Kinds) -> Kind:
        return self._kinds(kinds)[1]

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        exact, coarse = self._kinds(kinds)
        if (factor := self._factor) is not None:
            other = self.left if isinstance(self.right, Constant) else self.right
            return other.sql(cells, kinds) if factor > 0 else f"(-{other.sql(cells, kinds)})"
        parts = [long(part.sql(cells, kinds), exact.size, cells.dialect) for part in self.parts]
        return regrid(f"({parts[0]} * {parts[1]})", exact, coarse.step, cells.dialect, self.text)


def _scaled(kind: NumberKind, factor: Fraction) -> NumberKind:
    """The kind of numbers times a constant that is not 0."""
    if factor > 0:
        return on_grid_exactly(kind.step * factor, kind.low, kind.high, kind.nonzero)
    return on_grid_exactly(kind.step * -factor, -kind.high, -kind.low, kind.nonzero)


def on_grid_exactly(step: Fraction, low: int, high: int, nonzero: bool) -> NumberKind:
    """The same whole steps of another grid, if it is one."""
    return on_grid(step, low * step, high * step, nonzero)


@dataclass(frozen=True)
class Divide(OfTwo):
    """The quotient of two numbers; where the lower one may be 0 it is refused.

    By a constant it is exact: the grid is scaled. Else the grid is a power of two, with about 2^30 steps.
    """

    @property
    def text(self) -> str:
        return f"{enclosed(self.left)} / {enclosed(self.right)}"

    def kind(self, kinds: Kinds) -> Kind:
        left, right = (expect_number(part, kinds, "A quotient") for part in self.parts)
        if right.has_zero:
            self._refuse_zero(right)
        if isinstance(self.right, Constant):
            return _scaled(left, 1 / right.lower)
        ends = [
            a * left.step / (b * right.step) for a, b in product((left.low, left.high), _least_sizes(right))
        ]
        step = fine_step(min(ends), max(ends))
        return on_grid(step, min(ends), max(ends))

    def _refuse_zero(self, right: NumberKind) -> None:
        if right.low == right.high == 0:
            raise InvalidParameter(f"'{self.text}' divides by 0. Divide by something else.")
        raise InvalidParameter(
            f"{self.right.text} may be 0, and nothing can be divided by it: write "
            f"NULLIF({self.right.text}, 0), by which such records count as missing."
        )

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        left, right = (expect_number(part, kinds, "A quotient") for part in self.parts)
        top = self.left.sql(cells, kinds)
        if isinstance(self.right, Constant):
            return top if right.low > 0 else f"(-{top})"
        kind_of_result = self.kind(kinds)
        assert isinstance(kind_of_result, NumberKind)
        ratio = left.step / (right.step * kind_of_result.step)
        a, b = ratio.numerator, ratio.denominator
        # the nearest is the floor of (2 a top + b bottom) / (2 b bottom); moved above 0 by the least answer
        size = 4 * (left.size * a + (kind_of_result.size + 2) * b * right.size)
        check_size(size, self.text)
        bottom = self.right.sql(cells, kinds)
        if right.low < 0:
            turned = f"CASE WHEN {bottom} < 0 THEN -{top} ELSE {top} END"
            top, bottom = f"({turned})", f"abs({bottom})"
        top, bottom = long(top, size, cells.dialect), long(bottom, size, cells.dialect)
        start = kind_of_result.low - 1
        moved = f"({top} * {2 * a} + {bottom} * {b - 2 * b * start})"
        quotient = cells.dialect.quotient(moved, f"({bottom} * {2 * b})")
        return f"(CAST({quotient} AS BIGINT) + ({start}))"


def _least_sizes(kind: NumberKind) -> list[int]:
    """The ends of a range without 0, and the numbers next to 0 where it lies inside."""
    inner = [end for end in (-1, 1) if kind.low <= end <= kind.high and kind.low <= 0 <= kind.high]
    return [end for end in (kind.low, kind.high, *inner) if end != 0]


@dataclass(frozen=True)
class Negate(OfOne):
    """A number with the other sign."""

    @property
    def text(self) -> str:
        text = enclosed(self.of)
        # not --2, which begins a comment in SQL
        return f"-({text})" if text.startswith("-") else f"-{text}"

    def kind(self, kinds: Kinds) -> Kind:
        kind_of_number = expect_number(self.of, kinds, "A sign")
        return NumberKind(
            kind_of_number.step, -kind_of_number.high, -kind_of_number.low, kind_of_number.nonzero
        )

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        return f"(-{self.of.sql(cells, kinds)})"
