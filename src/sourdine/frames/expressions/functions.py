"""Sums, products and quotients on whole steps, exactly, each rounded once to a grid of at most 2^31 steps."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import ClassVar

from sourdine.core.errors import InvalidParameter
from sourdine.frames.engines.dialect import Dialect
from sourdine.frames.expressions.tree import (
    LONG,
    Constant,
    Kind,
    Kinds,
    NumberKind,
    OfOne,
    OfTwo,
    RecordCells,
    check_size,
    coarse_enough,
    common_step,
    decimal,
    enclosed,
    expect_number,
    fine_step,
    number_text,
    on_grid,
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


# Functions of one number: its size, whole numbers beside it, powers, root and logarithm.
#
# A root is that of IEEE 754, the same everywhere. The logarithms of two engines differ in the last digit of
# a float at most: on a grid of 2^-20 that moves about one value in a hundred million by a step, and no
# bound.


_ROOT_STEPS = 1 << 20


@dataclass(frozen=True)
class OfNumber(OfOne):
    """Something computed of one number."""

    name: ClassVar[str]

    @property
    def text(self) -> str:
        return f"{self.name}({self.of.text})"

    def number(self, kinds: Kinds) -> NumberKind:
        """The kind of the number."""
        return expect_number(self.of, kinds, self.name)


@dataclass(frozen=True)
class Absolute(OfNumber):
    """A number without its sign."""

    name = "ABS"

    def kind(self, kinds: Kinds) -> Kind:
        number = self.number(kinds)
        ends = [abs(number.low), abs(number.high)]
        least = (1 if number.nonzero else 0) if number.low <= 0 <= number.high else min(ends)
        return NumberKind(number.step, least, max(ends), number.nonzero)

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        return f"abs({self.of.sql(cells, kinds)})"


@dataclass(frozen=True)
class Floor(OfNumber):
    """The greatest whole number up to a number."""

    name = "FLOOR"

    def kind(self, kinds: Kinds) -> Kind:
        number = self.number(kinds)
        if number.whole:
            return number
        return exact_kind(Fraction(1), math.floor(number.lower), math.floor(number.upper))[1]

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        return _whole(self, 0, cells, kinds)


@dataclass(frozen=True)
class Ceiling(OfNumber):
    """The least whole number from a number on."""

    name = "CEIL"

    def kind(self, kinds: Kinds) -> Kind:
        number = self.number(kinds)
        if number.whole:
            return number
        return exact_kind(Fraction(1), math.ceil(number.lower), math.ceil(number.upper))[1]

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        bottom = self.number(kinds).step.denominator
        return _whole(self, bottom - 1, cells, kinds)


def _whole(tree: OfNumber, plus: int, cells: RecordCells, kinds: Kinds) -> str:
    """The floor of a number, or of a little more than it."""
    sql, kind_of_number = tree.of.sql(cells, kinds), tree.number(kinds)
    if kind_of_number.whole:
        return sql
    top, bottom = kind_of_number.step.numerator, kind_of_number.step.denominator
    size = kind_of_number.size * top + 2 * bottom
    check_size(2 * size, tree.text)
    number = f"{long(sql, 2 * size, cells.dialect)} * {top} + {plus}"
    quotient = floor_ratio(
        number, bottom, kind_of_number.low * top + plus, kind_of_number.high * top + plus, cells.dialect
    )
    kind = tree.kind(kinds)
    assert isinstance(kind, NumberKind)
    return regrid(
        quotient,
        NumberKind(Fraction(1), *_functions_ends(kind_of_number, plus)),
        kind.step,
        cells.dialect,
        tree.text,
    )


def _functions_ends(number: NumberKind, plus: int) -> tuple[int, int]:
    top, bottom = number.step.numerator, number.step.denominator
    return (number.low * top + plus) // bottom, (number.high * top + plus) // bottom


@dataclass(frozen=True)
class Power(OfOne):
    """A number to a whole power from 1 to 8."""

    exponent: int

    def __post_init__(self) -> None:
        exponent: object = self.exponent
        if not isinstance(exponent, int) or isinstance(exponent, bool) or not 1 <= exponent <= 8:
            raise InvalidParameter(
                "The exponent of POWER must be a whole number from 1 to 8. For the power 0.5 write SQRT, for "
                "negative ones divide 1 by the power."
            )

    @property
    def text(self) -> str:
        return f"POWER({self.of.text}, {self.exponent})"

    def _steps(self, kinds: Kinds) -> list[tuple[NumberKind, NumberKind]]:
        """The powers one after the other, each exactly and on a coarser grid."""
        base = expect_number(self.of, kinds, "POWER")
        powers = [(base, base)]
        for exponent in range(2, self.exponent + 1):
            before = powers[-1][1]
            ends = [a * b for a in (before.low, before.high) for b in (base.low, base.high)]
            if exponent % 2 == 0 and base.low <= 0 <= base.high:
                ends = [0, *(end for end in ends if end >= 0)]
            check_size(max(map(abs, ends)), self.text)
            nonzero = not base.has_zero
            powers.append(exact_kind(before.step * base.step, min(ends), max(ends), nonzero))
        return powers

    def kind(self, kinds: Kinds) -> Kind:
        return self._steps(kinds)[-1][1]

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        base = power = self.of.sql(cells, kinds)
        for exact, coarse in self._steps(kinds)[1:]:
            product = f"({long(power, exact.size, cells.dialect)} * {long(base, exact.size, cells.dialect)})"
            power = regrid(product, exact, coarse.step, cells.dialect, self.text)
        return power


@dataclass(frozen=True)
class Root(OfNumber):
    """The square root of a number that is not negative."""

    name = "SQRT"

    def kind(self, kinds: Kinds) -> Kind:
        number = self.number(kinds)
        if number.low < 0:
            raise InvalidParameter(
                f"{self.of.text} may be negative, and has no root then. Write "
                f"SQRT(GREATEST({self.of.text}, 0)), or declare a lower bound of 0."
            )
        return on_grid(_root_step(number), *_root_ends(number))

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        kind, root = self.number(kinds), self.kind(kinds)
        assert isinstance(root, NumberKind)
        factor = cells.dialect.literal(float(kind.step / root.step**2))
        number = f"sqrt({cells.dialect.cast(self.of.sql(cells, kinds), 'DOUBLE')} * {factor})"
        return _rounded(number, root, cells.dialect)


def _root_ends(number: NumberKind) -> tuple[Fraction, Fraction]:
    scale = 1 << 200
    low, high = (Fraction(math.isqrt(int(end * scale)), 1 << 100) for end in (number.lower, number.upper))
    return low, high


def _root_step(number: NumberKind) -> Fraction:
    low, high = _root_ends(number)
    return fine_step(low, high, _ROOT_STEPS)


def _rounded(number: str, kind: NumberKind, dialect: Dialect) -> str:
    """A float that is about as large as the kind's steps as one of them."""
    whole = dialect.cast(f"floor({number} + {dialect.literal(0.5)})", "BIGINT")
    # not by least and greatest, for which what is missing is no number at all
    cases = f"WHEN {whole} < {kind.low} THEN {kind.low} WHEN {whole} > {kind.high} THEN {kind.high}"
    return f"CAST(CASE {cases} ELSE {whole} END AS BIGINT)"


@dataclass(frozen=True)
class Logarithm(OfNumber):
    """The natural logarithm of a positive number, to a millionth of its range at least."""

    name = "LN"

    def kind(self, kinds: Kinds) -> Kind:
        number = self.number(kinds)
        if number.low < 1:
            remedy = f"LN({self.of.text} + 1)" if number.low == 0 else f"LN(GREATEST({self.of.text}, 1))"
            also = f", or NULLIF({self.of.text}, 0)" if number.low == 0 else ""
            raise InvalidParameter(
                f"{self.of.text} may be {'0' if number.low == 0 else '0 or less'}, which has no logarithm. "
                f"Write {remedy}{also}, or declare a lower bound above 0."
            )
        lower, upper = (_log(end) for end in (number.lower, number.upper))
        return on_grid(coarse_enough(Fraction(1, _ROOT_STEPS), lower, upper), lower, upper)

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        kind, logarithm = self.number(kinds), self.kind(kinds)
        assert isinstance(logarithm, NumberKind)
        literal = cells.dialect.literal
        number = (
            f"ln({cells.dialect.cast(self.of.sql(cells, kinds), 'DOUBLE')} * {literal(float(kind.step))})"
        )
        return _rounded(f"{number} * {literal(float(1 / logarithm.step))}", logarithm, cells.dialect)


def _log(number: Fraction) -> Fraction:
    """The logarithm of a number of any size, as near as floats tell."""
    return Fraction(math.log(number.numerator) - math.log(number.denominator))


@dataclass(frozen=True)
class Clamp(OfOne):
    """A number, or the nearer of two bounds where it lies outside."""

    lower: int | float | Fraction
    upper: int | float | Fraction

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, decimal(getattr(self, name)))
        if not self.lower < self.upper:
            raise InvalidParameter("The lower bound of a derived column must be below its upper bound.")

    @property
    def text(self) -> str:
        return (
            f"CLAMP({self.of.text}, {number_text(decimal(self.lower))}, {number_text(decimal(self.upper))})"
        )

    def kind(self, kinds: Kinds) -> Kind:
        number = expect_number(self.of, kinds, "CLAMP")
        low = max(number.low, math.ceil(decimal(self.lower) / number.step))
        high = min(number.high, math.floor(decimal(self.upper) / number.step))
        if low > high:
            raise InvalidParameter(
                f"'{self.of.text}' is {number.words}, of which nothing lies between the bounds that are "
                "declared for it. Give other bounds."
            )
        return NumberKind(number.step, low, high, number.nonzero and 0 not in (low, high))

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        kind_of_result, value = self.kind(kinds), self.of.sql(cells, kinds)
        assert isinstance(kind_of_result, NumberKind)
        return (
            f"CASE WHEN {value} < {kind_of_result.low} THEN {kind_of_result.low} WHEN {value} > "
            f"{kind_of_result.high} THEN {kind_of_result.high} ELSE {value} END"
        )
