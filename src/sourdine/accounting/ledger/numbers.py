"""Amounts of a budget as people read them."""

from fractions import Fraction

from sourdine.accounting.ledger.budget import UNLIMITED
from sourdine.core.format import plain, shorten_down, shorten_up

_DIGITS = 6


def readable(number: Fraction) -> str:
    """What is paid or spent as people read it: decimals, of six digits at most, that never tell less.

    >>> readable(Fraction(1, 3)), readable(Fraction(4)), readable(Fraction(1, 10**6))
    ('0.333334', '4', '1e-6')
    """
    return str(number) if number.denominator == 1 else plain(float(shorten_up(float(number), _DIGITS)))


def room(number: Fraction) -> str:
    """What may be spent as people read it: decimals that never tell more.

    >>> room(Fraction(2, 3)), room(Fraction(1, 20))
    ('0.666666', '0.05')
    """
    if number == UNLIMITED:
        return "no limit"
    return str(number) if number.denominator == 1 else plain(float(shorten_down(float(number), _DIGITS)))


def left_words(left: Fraction, limit: Fraction) -> str:
    """The same as a sentence.

    >>> left_words(Fraction(1, 2), Fraction(1)), left_words(Fraction(1, 10**24), Fraction(1))
    ('0.5 is left.', 'Almost nothing is left.')
    """
    text = remaining(left, limit)
    return f"{text[0].upper()}{text[1:]} is left."


def remaining(left: Fraction, limit: Fraction) -> str:
    """What is left of a budget as people read it; a crumb that rounding left over is not told in digits.

    >>> remaining(Fraction(1, 2), Fraction(1)), remaining(Fraction(1, 10**24), Fraction(1))
    ('0.5', 'almost nothing')
    """
    if limit == UNLIMITED:
        return "any amount"
    return "almost nothing" if 0 < left * 10**9 < limit else room(left)
