"""Which expressions have a value for every record, as far as the columns they depend on tell."""

from collections.abc import Callable

from sourdine.frames.expressions.conditions import (
    All,
    Among,
    AnyOf,
    Case,
    Coalesce,
    Comparison,
    Greatest,
    IsMissing,
    Least,
    Like,
    Matched,
    Not,
    OfKey,
)
from sourdine.frames.expressions.functions import (
    Absolute,
    Add,
    Ceiling,
    Clamp,
    Divide,
    Floor,
    Multiply,
    Negate,
    Power,
)
from sourdine.frames.expressions.times import InPeriod, PartOf, TimeBetween
from sourdine.frames.expressions.tree import ColumnValue, Constant, Expression

_STRICT = (
    *(Absolute, Add, Among, Ceiling, Clamp, Comparison, Constant, Divide, Floor, InPeriod, Like, Multiply),
    *(Negate, Not, OfKey, PartOf, Power, TimeBetween),
)
"""Expressions that have a value where all their parts have one, and there alone."""


def may_be_missing(tree: Expression, lacks: Callable[[str], bool]) -> bool:
    """Return whether an expression may have no value, where some columns may lack theirs."""
    match tree:
        case ColumnValue(name):
            return lacks(name)
        case Case():
            return tree.otherwise is None or any(may_be_missing(each, lacks) for each in tree.values)
        case Coalesce(of):
            return all(may_be_missing(each, lacks) for each in of)
        case IsMissing() | Matched():
            return False
    present = isinstance(tree, (*_STRICT, All, Least, Greatest))
    return not present or any(may_be_missing(each, lacks) for each in tree.parts)


def columns_present(condition: Expression) -> frozenset[str]:
    """Return the columns that have a value in every record for which a condition is true."""
    match condition:
        case AnyOf(of):
            return frozenset.intersection(*map(columns_present, of))
        case All(of):
            return frozenset().union(*map(columns_present, of))
        case Not(IsMissing(of)):
            return _needed(of)
    return _needed(condition)


def _needed(tree: Expression) -> frozenset[str]:
    """Return the columns without which an expression has no value."""
    if isinstance(tree, ColumnValue):
        return frozenset({tree.name})
    if not isinstance(tree, _STRICT):
        return frozenset()
    return frozenset().union(*map(_needed, tree.parts))
