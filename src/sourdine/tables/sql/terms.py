"""Terms: an aggregate with the numbers that it is multiplied by, raised to and moved by."""

from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from sourdine.core.errors import InvalidParameter
from sourdine.tables.comparison.steps import MOST_FACTOR
from sourdine.tables.sql.constants import number_of

_FLOATS = (exp.DType.DOUBLE, exp.DType.FLOAT)


@dataclass(frozen=True)
class Term:
    """factor * value^power + offset, of the value that a label names."""

    label: str
    factor: Fraction = Fraction(1)
    power: int = 1
    offset: Fraction = Fraction(0)

    @property
    def plain(self) -> bool:
        """Whether it is the value itself."""
        return self.factor == 1 and self.power == 1 and self.offset == 0


def without_factor(node: exp.Expr) -> tuple[exp.Expr, Fraction]:
    """An aggregate without a number that it is multiplied by, as in COUNT(*) * 1.0."""
    node = node.unnest()
    if is_float(node) and has_aggregate(node.this):
        return without_factor(node.this)
    if isinstance(node, exp.Mul):
        for one, other in ((node.this, node.expression), (node.expression, node.this)):
            if (number := number_of(one)) is not None:
                inner, factor = without_factor(other)
                return inner, factor * number
    return node, Fraction(1)


def is_float(node: exp.Expr) -> bool:
    """Return whether a node casts to floating-point numbers, which answers are."""
    return isinstance(node, exp.Cast) and node.args["to"].this in _FLOATS


def scaled(term: Term, factor: Fraction) -> Term:
    return replace(term, factor=term.factor * factor, offset=term.offset * factor)


def has_aggregate(node: exp.Expr) -> bool:
    return node.find(exp.AggFunc) is not None


def plain_number(number: Fraction) -> int | float:
    if abs(number) > MOST_FACTOR:
        raise InvalidParameter("A number that answers are computed with is up to 1e100 in size.")
    return int(number) if number.denominator == 1 else float(number)
