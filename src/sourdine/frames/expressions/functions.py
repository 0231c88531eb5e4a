"""Functions of one number: its size, whole numbers beside it, powers, root and logarithm.

A root is that of IEEE 754, the same everywhere. The logarithms of two engines differ in the last digit of a
float at most: on a grid of 2^-20 that moves about one value in a hundred million by a step, and no bound.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sourdine.core.errors import InvalidParameter
from sourdine.frames.engines.dialect import Dialect
from sourdine.frames.expressions.arithmetic import exact_kind, floor_ratio, long, regrid
from sourdine.frames.expressions.kinds import (
    Kind,
    NumberKind,
    check_size,
    coarse_enough,
    decimal,
    fine_step,
    number_text,
    on_grid,
)
from sourdine.frames.expressions.tree import Kinds, OfOne, RecordCells, expect_number

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
        quotient, NumberKind(Fraction(1), *_ends(kind_of_number, plus)), kind.step, cells.dialect, tree.text
    )


def _ends(number: NumberKind, plus: int) -> tuple[int, int]:
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
