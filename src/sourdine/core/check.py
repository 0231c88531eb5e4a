"""Checks of declared parameters: each returns the value in its exact form or raises InvalidParameter.

The form of a message: "The 'scale' of Laplace must be above 0. Got -1. <What to do.>"
"""

import math
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import TypeVar

from sourdine.core.errors import InvalidParameter

E = TypeVar("E", bound=Enum)

_OF_PYTHON = (int, float, Fraction, Decimal)  # no others need NumPy, for which a list of options would wait


def fail(owner: str, name: str, must: str, got: object, remedy: str = "") -> InvalidParameter:
    """The error for one bad parameter, in the house's form."""
    shown = str(got) if isinstance(got, Fraction) else repr(got)
    if len(shown) > 60:
        shown = shown[:57] + "..."
    message = f"The '{name}' of {owner} must {must}. Got {shown}. {remedy}".rstrip()
    return InvalidParameter(message, owner=owner, name=name, expected=must, got=got, hint=remedy or None)


def keep(instance: object, **values: object) -> None:
    """Keep what a check returned in the fields of a frozen dataclass, in place of what was given.

    A number of another library equals an int or a float and does not reckon like one: a NumPy integer of
    eight bits goes from 255 to 0. So what is validated is what is kept.
    """
    for name, value in values.items():
        object.__setattr__(instance, name, value)


def rational(owner: str, name: str, value: object) -> Fraction:
    """The exact value of a number; a float is taken as the binary fraction it is."""
    if isinstance(value, bool) or not isinstance(value, Real | Decimal) or _is_duration(value):
        raise fail(owner, name, "be a number", value, "Pass an int, a float or a Fraction.")
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    finite = value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)
    if not finite:
        raise fail(owner, name, "be finite", value, "Pass an int, a float or a Fraction.")
    ratio = getattr(value, "as_integer_ratio", None)  # a long float of NumPy has digits that a float has not
    return Fraction(float(value)) if ratio is None else Fraction(*ratio())


def _is_duration(value: object) -> bool:
    """Whether it is a duration of NumPy, which passes for a whole number there."""
    if type(value) in _OF_PYTHON:
        return False
    import numpy as np

    return isinstance(value, np.timedelta64)


def _is_short_float(value: object) -> bool:
    """Whether it is a float of NumPy with no more digits than one of Python."""
    if type(value) in _OF_PYTHON:
        return False
    import numpy as np

    return isinstance(value, np.floating) and not isinstance(value, np.longdouble)


def decimal(owner: str, name: str, value: object) -> Fraction:
    """The number that people wrote: a float is taken as the shortest decimal that stands for it, 0.3 as 3/10.

    For shares and bounds of which so many things are a whole number. What is measured by how much it can leak
    is taken as it is, by `rational`.
    """
    exact = rational(owner, name, value)
    shortest = isinstance(value, float) or _is_short_float(value)
    return Fraction(str(value)) if shortest else exact


def share(owner: str, name: str, value: object) -> Fraction:
    """A share from 0 to 1, as people wrote it: three of ten records are 0.3 of them."""
    exact = decimal(owner, name, value)
    if not 0 <= exact <= 1:
        raise fail(owner, name, "lie between 0 and 1", value)
    return exact


def number(owner: str, name: str, value: object) -> Fraction | float:
    """An int or a float as it came, and any other number as a Fraction; it may be infinite."""
    if type(value) in (int, float):
        return value  # type: ignore[return-value]
    infinite = isinstance(value, Real | Decimal) and value == math.inf
    return math.inf if infinite else rational(owner, name, value)


def positive(owner: str, name: str, value: object, most: Fraction | int | None = None) -> Fraction:
    """A rational above 0 and at most `most`."""
    exact = rational(owner, name, value)
    if exact <= 0:
        raise fail(owner, name, "be above 0", value)
    if most is not None and exact > most:
        raise fail(owner, name, f"be at most {power(most)}", value)
    return exact


def between(owner: str, name: str, value: object, least: Fraction, most: Fraction) -> Fraction:
    """A rational in the closed interval [least, most]."""
    exact = rational(owner, name, value)
    if not least <= exact <= most:
        raise fail(owner, name, f"lie between {power(least)} and {power(most)}", value)
    return exact


def inside(owner: str, name: str, value: object, least: Fraction | int, most: Fraction | int) -> Fraction:
    """A rational in the open interval (least, most)."""
    exact = rational(owner, name, value)
    if not least < exact < most:
        raise fail(owner, name, f"lie strictly between {least} and {most}", value)
    return exact


def integer(owner: str, name: str, value: object, least: int, most: int) -> int:
    """A whole number in [least, most]."""
    if isinstance(value, bool) or not isinstance(value, Integral) or _is_duration(value):
        raise fail(owner, name, "be a whole number", value)
    whole = int(value)
    if not least <= whole <= most:
        raise fail(owner, name, f"lie between {power(least)} and {power(most)}", value)
    return whole


def boolean(owner: str, name: str, value: object) -> bool:
    """True or False, and nothing that only looks like it."""
    if not isinstance(value, bool):
        raise fail(owner, name, "be True or False", value)
    return value


def member(owner: str, name: str, value: object, kind: type[E]) -> E:
    """A member of an enumeration."""
    if not isinstance(value, kind):
        if isinstance(value, str) and value in [choice.value for choice in kind]:
            wanted = f"be a {kind.__name__}, not a text"
            raise fail(owner, name, wanted, value, f"Give {kind.__name__}({value!r}).")
        choices = ", ".join(str(choice) for choice in kind)
        raise fail(owner, name, f"be one of {choices}", value)
    return value


def confidence(owner: str, value: object) -> float:
    """A confidence level strictly between 0 and 1."""
    level = float(inside(owner, "confidence", value, 0, 1))
    if level in (0.0, 1.0):
        raise fail(owner, "confidence", "differ from 0 and 1 by more than a float can round", value)
    return level


def power(number: Fraction | int) -> str:
    """A number as people write it: 2^40 rather than 1099511627776, and 1,000,000 rather than 1000000."""
    if number.denominator == 1 and number.numerator > 1024 and number.numerator.bit_count() == 1:
        return f"2^{number.numerator.bit_length() - 1}"
    return f"{int(number):,}" if number.denominator == 1 else str(number)
