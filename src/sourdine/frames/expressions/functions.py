"""Functions of one number: its size, whole numbers beside it, powers, root and logarithm.

A root is that of IEEE 754, the same everywhere. The logarithms of two engines differ in the last digit of a
float at most: on a grid of 2^-20 that moves about one value in a hundred million by a step, and no bound.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from sourdine.core.errors import InvalidParameter
from sourdine.frames.dialect import Dialect
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
from sourdine.frames.expressions.tree import Expression, Kinds, RecordCells, expect_number

_ROOT_STEPS = 1 << 20


class OfNumber(Expression):
    """Something computed of one number."""

    of: Expression
    name: str

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.of,)

    @property
    def text(self) -> str:
        return f"{self.name}({self.of.text})"

    def held(self, kinds: Kinds) -> NumberKind:
        """The kind of the number."""
        return expect_number(self.of, kinds, self.name)


@dataclass(frozen=True)
class Absolute(OfNumber):
    """A number without its sign."""

    of: Expression
    name = "ABS"

    def kind(self, kinds: Kinds) -> Kind:
        held = self.held(kinds)
        ends = [abs(held.low), abs(held.high)]
        least = (1 if held.nonzero else 0) if held.low <= 0 <= held.high else min(ends)
        return NumberKind(held.step, least, max(ends), held.nonzero)

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        return f"abs({self.of.sql(cells, kinds)})"


@dataclass(frozen=True)
class Floor(OfNumber):
    """The greatest whole number up to a number."""

    of: Expression
    name = "FLOOR"

    def kind(self, kinds: Kinds) -> Kind:
        held = self.held(kinds)
        if held.whole:
            return held
        return exact_kind(Fraction(1), math.floor(held.lower), math.floor(held.upper))[1]

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        return _whole(self, 0, cells, kinds)


@dataclass(frozen=True)
class Ceiling(OfNumber):
    """The least whole number from a number on."""

    of: Expression
    name = "CEIL"

    def kind(self, kinds: Kinds) -> Kind:
        held = self.held(kinds)
        if held.whole:
            return held
        return exact_kind(Fraction(1), math.ceil(held.lower), math.ceil(held.upper))[1]

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        bottom = self.held(kinds).step.denominator
        return _whole(self, bottom - 1, cells, kinds)


def _whole(tree: OfNumber, plus: int, cells: RecordCells, kinds: Kinds) -> str:
    """The floor of a number, or of a little more than it."""
    sql, held = tree.of.sql(cells, kinds), tree.held(kinds)
    if held.whole:
        return sql
    top, bottom = held.step.numerator, held.step.denominator
    size = held.size * top + 2 * bottom
    check_size(2 * size, tree.text)
    number = f"{long(sql, 2 * size, cells.dialect)} * {top} + {plus}"
    found = floor_ratio(number, bottom, held.low * top + plus, held.high * top + plus, cells.dialect)
    kind = tree.kind(kinds)
    assert isinstance(kind, NumberKind)
    return regrid(found, NumberKind(Fraction(1), *_ends(held, plus)), kind.step, cells.dialect, tree.text)


def _ends(held: NumberKind, plus: int) -> tuple[int, int]:
    top, bottom = held.step.numerator, held.step.denominator
    return (held.low * top + plus) // bottom, (held.high * top + plus) // bottom


@dataclass(frozen=True)
class Power(Expression):
    """A number to a whole power from 1 to 8."""

    of: Expression
    exponent: int

    def __post_init__(self) -> None:
        exponent: object = self.exponent
        if not isinstance(exponent, int) or isinstance(exponent, bool) or not 1 <= exponent <= 8:
            raise InvalidParameter(
                "The exponent of POWER must be a whole number from 1 to 8. For the power 0.5 write SQRT, for "
                "negative ones divide 1 by the power."
            )

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.of,)

    @property
    def text(self) -> str:
        return f"POWER({self.of.text}, {self.exponent})"

    def _steps(self, kinds: Kinds) -> list[tuple[NumberKind, NumberKind]]:
        """The powers one after the other, each exactly and on a coarser grid."""
        base = expect_number(self.of, kinds, "POWER")
        found = [(base, base)]
        for exponent in range(2, self.exponent + 1):
            before = found[-1][1]
            ends = [a * b for a in (before.low, before.high) for b in (base.low, base.high)]
            if exponent % 2 == 0 and base.low <= 0 <= base.high:
                ends = [0, *(end for end in ends if end >= 0)]
            check_size(max(map(abs, ends)), self.text)
            nonzero = not base.has_zero
            found.append(exact_kind(before.step * base.step, min(ends), max(ends), nonzero))
        return found

    def kind(self, kinds: Kinds) -> Kind:
        return self._steps(kinds)[-1][1]

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        base = held = self.of.sql(cells, kinds)
        for exact, coarse in self._steps(kinds)[1:]:
            product = f"({long(held, exact.size, cells.dialect)} * {long(base, exact.size, cells.dialect)})"
            held = regrid(product, exact, coarse.step, cells.dialect, self.text)
        return held


@dataclass(frozen=True)
class Root(OfNumber):
    """The square root of a number that is not negative."""

    of: Expression
    name = "SQRT"

    def kind(self, kinds: Kinds) -> Kind:
        held = self.held(kinds)
        if held.low < 0:
            raise InvalidParameter(
                f"{self.of.text} may be negative, and has no root then. Write "
                f"SQRT(GREATEST({self.of.text}, 0)), or declare a lower bound of 0."
            )
        return on_grid(_root_step(held), *_root_ends(held))

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        held, found = self.held(kinds), self.kind(kinds)
        assert isinstance(found, NumberKind)
        factor = cells.dialect.literal(float(held.step / found.step**2))
        number = f"sqrt({cells.dialect.cast(self.of.sql(cells, kinds), 'DOUBLE')} * {factor})"
        return _rounded(number, found, cells.dialect)


def _root_ends(held: NumberKind) -> tuple[Fraction, Fraction]:
    scale = 1 << 200
    low, high = (Fraction(math.isqrt(int(end * scale)), 1 << 100) for end in (held.lower, held.upper))
    return low, high


def _root_step(held: NumberKind) -> Fraction:
    low, high = _root_ends(held)
    return fine_step(low, high, _ROOT_STEPS)


def _rounded(number: str, kind: NumberKind, dialect: Dialect) -> str:
    """A float that is about as large as the kind's steps as one of them."""
    whole = dialect.cast(f"floor({number} + {dialect.literal(0.5)})", "BIGINT")
    return f"CAST(least(greatest({whole}, {kind.low}), {kind.high}) AS BIGINT)"


@dataclass(frozen=True)
class Logarithm(OfNumber):
    """The natural logarithm of a positive number, to a millionth of its range at least."""

    of: Expression
    name = "LN"

    def kind(self, kinds: Kinds) -> Kind:
        held = self.held(kinds)
        if held.low < 1:
            remedy = f"LN({self.of.text} + 1)" if held.low == 0 else f"LN(GREATEST({self.of.text}, 1))"
            also = f", or NULLIF({self.of.text}, 0)" if held.low == 0 else ""
            raise InvalidParameter(
                f"{self.of.text} may be {'0' if held.low == 0 else '0 or less'}, which has no logarithm. "
                f"Write {remedy}{also}, or declare a lower bound above 0."
            )
        lower, upper = (_log(end) for end in (held.lower, held.upper))
        return on_grid(coarse_enough(Fraction(1, _ROOT_STEPS), lower, upper), lower, upper)

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        held, found = self.held(kinds), self.kind(kinds)
        assert isinstance(found, NumberKind)
        literal = cells.dialect.literal
        number = (
            f"ln({cells.dialect.cast(self.of.sql(cells, kinds), 'DOUBLE')} * {literal(float(held.step))})"
        )
        return _rounded(f"{number} * {literal(float(1 / found.step))}", found, cells.dialect)


def _log(number: Fraction) -> Fraction:
    """The logarithm of a number of any size, as near as floats tell."""
    return Fraction(math.log(number.numerator) - math.log(number.denominator))


@dataclass(frozen=True)
class Clamp(Expression):
    """A number, or the nearer of two bounds where it lies outside."""

    of: Expression
    lower: int | float | Fraction
    upper: int | float | Fraction

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, decimal(getattr(self, name)))
        if not self.lower < self.upper:
            raise InvalidParameter("The lower bound of a derived column must be below its upper bound.")

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.of,)

    @property
    def text(self) -> str:
        return (
            f"CLAMP({self.of.text}, {number_text(decimal(self.lower))}, {number_text(decimal(self.upper))})"
        )

    def kind(self, kinds: Kinds) -> Kind:
        held = expect_number(self.of, kinds, "CLAMP")
        low = max(held.low, math.ceil(decimal(self.lower) / held.step))
        high = min(held.high, math.floor(decimal(self.upper) / held.step))
        if low > high:
            raise InvalidParameter(
                f"'{self.of.text}' is {held.words}, of which nothing lies between the bounds that are "
                "declared for it. Give other bounds."
            )
        return NumberKind(held.step, low, high, held.nonzero)

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        found, value = self.kind(kinds), self.of.sql(cells, kinds)
        assert isinstance(found, NumberKind)
        return (
            f"CASE WHEN {value} < {found.low} THEN {found.low} WHEN {value} > {found.high} THEN {found.high} "
            f"ELSE {value} END"
        )
