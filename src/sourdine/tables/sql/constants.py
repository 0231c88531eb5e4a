"""Constants that are written out in a question: numbers and texts."""

from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sqlglot import exp

from sourdine.core.errors import InvalidParameter

_FARTHEST = 100  # digits of a number, before its point or after it


def value_of(node: exp.Expr) -> str | bool | Fraction | int:
    """A text, a truth value or a number."""
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    return node.name if node.is_string else _number(node)


def literal_of(node: object) -> str | int | float | None:
    """A constant that is written out."""
    if isinstance(node, exp.Literal) and node.is_string:
        return str(node.name)
    number = number_of(node)
    return None if number is None else int(number) if number.denominator == 1 else float(number)


def number_of(node: object) -> Fraction | None:
    """A number that is written out."""
    if isinstance(node, exp.Neg):
        inner = number_of(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Paren):
        return number_of(node.this)
    if isinstance(node, exp.Literal) and not node.is_string:
        return _number(node)
    return None


def _number(node: exp.Expr) -> Fraction:
    """What a number is that is written out; one of endless digits would take as long to read."""
    try:
        number = Decimal(node.name)
    except InvalidOperation:
        raise InvalidParameter("This number cannot be read. Write it like 1500 or 0.15.") from None
    if number and (abs(number.adjusted()) > _FARTHEST or len(number.as_tuple().digits) > _FARTHEST):
        raise InvalidParameter(f"A constant must be a number up to 1e{_FARTHEST} in size, and no longer.")
    return Fraction(number)
