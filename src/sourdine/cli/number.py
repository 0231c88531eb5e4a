"""Numbers as people type them, taken exactly."""

from fractions import Fraction

from sourdine.core import check
from sourdine.core.digits import parse, plain


def number(owner: str, name: str, text: str, least: Fraction | int, most: Fraction | int) -> Fraction:
    """The exact value of a text such as 0.1, 1e-3 or 1/3, if it lies in [least, most].

    >>> number("demo", "epsilon", "0.1", 0, 1)
    Fraction(1, 10)
    """
    exact = parse(text)
    if exact is None:
        raise check.fail(owner, name, "be a finite number", text, "Write it like 0.5, 1e-3 or 1/3.")
    if not least <= exact <= most:
        said = str if "/" in text else decimal
        raise check.fail(owner, name, f"lie between {said(least)} and {said(most)}", text)
    return exact


def decimal(exact: Fraction | int) -> str:
    """A number in decimals where a few digits say it, else as a power of two or a fraction.

    >>> decimal(Fraction(1, 1000)), decimal(10**6), decimal(Fraction(1, 2**20)), decimal(Fraction(1, 3))
    ('0.001', '1,000,000', '2^-20', '1/3')
    >>> decimal(10**15), decimal(2**60)
    ('1e+15', '2^60')
    """
    if exact.denominator == 1 and exact < 10**9:
        return f"{int(exact):,}"
    if exact.denominator == 1 and exact.numerator.bit_count() == 1:
        return check.power(exact)
    short = plain(float(exact))
    if Fraction(short) == exact:
        return short
    if exact.numerator == 1 and exact.denominator.bit_count() == 1:
        return f"2^-{exact.denominator.bit_length() - 1}"
    return str(exact)
