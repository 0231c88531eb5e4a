"""Columns that are computed of a record: their bounds and keys follow from what is declared."""

import math
from collections.abc import Mapping
from fractions import Fraction

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import value
from sourdine.frames.columns import Category, Column, Flag, Integer, Real
from sourdine.frames.expressions.form import ExpressionField, read_expression
from sourdine.frames.expressions.kinds import (
    FARTHEST,
    MOST_STEPS,
    DayKind,
    KeyKind,
    Kind,
    MomentKind,
    NumberKind,
    TruthKind,
    coarse_enough,
    decimal,
)
from sourdine.frames.expressions.tree import Expression


class DerivedInteger(Integer):
    """Whole numbers that are computed of a record; their bounds follow from those of its columns."""

    expression: ExpressionField


class DerivedReal(Real):
    """Numbers that are computed of a record; bounds and grid follow from those of its columns."""

    expression: ExpressionField


class DerivedCategory(Category):
    """Keys that are computed of a record, all of them known from what is declared."""

    expression: ExpressionField
    period: str | None = None


class DerivedFlag(Flag):
    """Whether a condition holds for a record."""

    expression: ExpressionField


DERIVED = (DerivedInteger, DerivedReal, DerivedCategory, DerivedFlag)


def derived_column(name: str, tree: Expression, kinds: Mapping[str, Kind]) -> Column:
    """The column of an expression: its bounds or keys follow from those of the columns in it."""
    kind = tree.kind(kinds)
    match kind:
        case NumberKind() if kind.low == kind.high:
            raise InvalidParameter(f"'{tree.text}' is the same for every record. Ask about something else.")
        case NumberKind():
            lower, upper, step = kind.lower, kind.upper, kind.step
            near = upper - lower <= MOST_STEPS and max(abs(lower), abs(upper)) <= FARTHEST
            if kind.whole and near:  # whole numbers may lie on a coarser grid than that of Integer
                return DerivedInteger(lower=int(lower), upper=int(upper), expression=tree)
            if any(decimal(float(each)) != each for each in (lower, upper, step)):
                # steps that floats tell exactly as they are written: a few digits
                step = coarse_enough(_power_of_ten(step), lower - 4 * step, upper + 4 * step)
                lower, upper = math.floor(lower / step) * step, math.ceil(upper / step) * step
            return DerivedReal(
                lower=float(lower), upper=float(upper), granularity=float(step), expression=tree
            )
        case KeyKind(keys, period):
            return DerivedCategory(keys=keys, period=period, expression=tree)
        case TruthKind():
            return DerivedFlag(expression=tree)
        case DayKind() | MomentKind():
            raise InvalidParameter(
                f"The derived column '{name}' would hold dates. Take a period of it, as in "
                f"{value({'month': 'seen'})}, or a difference."
            )
    raise InvalidParameter(
        f"The derived column '{name}' would hold texts that nobody can list. Use the column."
    )


def _power_of_ten(step: Fraction) -> Fraction:
    """The largest power of ten that is not above a step."""
    power = Fraction(1)
    while power > step:
        power /= 10
    while power * 10 <= step:
        power *= 10
    return power


def derivation(name: str, block: object) -> Expression:
    """The expression of a block, within the bounds that it may give as well."""
    assert isinstance(block, Mapping)
    tree = read_expression(block["expression"])
    if "type" in block:  # as it was written down, with the bounds that follow
        return tree
    rest = {key: each for key, each in block.items() if key != "expression"}
    if rest and set(rest) != {"lower", "upper"}:
        raise InvalidParameter(
            f"The derived column '{name}' has an expression, and a lower and an upper bound or neither. "
            f"Got '{next(iter(rest))}'."
        )
    return read_expression({"clamp": tree, **rest}) if rest else tree


def is_derived(block: object) -> bool:
    return isinstance(block, Mapping) and "expression" in block
