"""Numbers as people type them, taken exactly."""

import re
from fractions import Fraction

from sourdine.core import check

# digits and exponents are limited so that no text can ask for a number that fills the memory
_DECIMAL = r"(\d{1,50}(\.\d{0,50})?|\.\d{1,50})([eE][+-]?\d{1,3})?"
_RATIO = r"\d{1,50}/0{0,50}[1-9]\d{0,50}"
_FORM = re.compile(rf"[+-]?({_DECIMAL}|{_RATIO})")


def number(owner: str, name: str, text: str, least: Fraction | int, most: Fraction | int) -> Fraction:
    """The exact value of a text such as 0.1, 1e-3 or 1/3, if it lies in [least, most].

    >>> number("demo", "epsilon", "0.1", 0, 1)
    Fraction(1, 10)
    """
    if not _FORM.fullmatch(text):
        raise check.fail(owner, name, "be a finite number", text, "Write it like 0.5, 1e-3 or 1/3.")
    exact = Fraction(text)
    if not least <= exact <= most:
        raise check.fail(owner, name, f"lie between {least} and {most}", text)
    return exact
