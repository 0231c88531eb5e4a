"""Numbers as people write and read them: taken exactly, and shortened to the safe side."""

import math
import re
import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction

# digits and exponents are limited so that no text can ask for a number that fills the memory
_DECIMAL = r"(\d{1,50}(\.\d{0,50})?|\.\d{1,50})([eE][+-]?\d{1,3})?"
_RATIO = r"\d{1,50}/0{0,50}[1-9]\d{0,50}"
_LONG = 1e15  # from here on nobody counts the digits
_FORM = re.compile(rf"[+-]?({_DECIMAL}|{_RATIO})")


def parse(text: str) -> Fraction | None:
    """The exact value of a text such as 0.1, 1e-3 or 1/3; None for any other.

    >>> parse("0.1"), parse("1/3"), parse("nan")
    (Fraction(1, 10), Fraction(1, 3), None)
    """
    return Fraction(text) if _FORM.fullmatch(text) else None


def written(number: Fraction) -> str:
    """Return a number so that `parse` reads the very same one.

    >>> written(Fraction(1, 2)), written(Fraction(1, 3)), written(Fraction(3))
    ('0.5', '1/3', '3')
    """
    short = plain(float(number)) if abs(number) < _LONG else str(number)
    for text in (short, repr(float(number))):
        if parse(text) == number:
            return text
    return str(number)


def shorten_up(number: float, digits: int = 4) -> str:
    """A few digits that are not below the number.

    >>> shorten_up(0.61144), shorten_up(1.1), shorten_up(23271.3), shorten_up(1.23456e-7)
    ('0.6115', '1.1', '23280', '1.235e-07')
    """
    return _shorten(number, digits, ROUND_CEILING)


def shorten_down(number: float, digits: int = 4) -> str:
    """A few digits that are not above the number.

    >>> shorten_down(0.61089), shorten_down(0)
    ('0.6108', '0')
    """
    return _shorten(number, digits, ROUND_FLOOR)


def plain(number: float) -> str:
    """A declared number as people write it.

    >>> plain(1e-5), plain(0.25), plain(3.0)
    ('1e-5', '0.25', '3')
    """
    return re.sub(r"e([+-])0+", r"e\1", f"{number:g}")


def shorten(number: float, digits: int = 4) -> str:
    """A few digits, with commas and without a power of ten where people would write none.

    >>> shorten(13764.2), shorten(5370.4), shorten(0.000123456), shorten(26.0), shorten(1.8e15)
    ('13,760', '5,370', '0.0001235', '26', '1.8e+15')
    """
    short = f"{number:,.{digits}g}"
    return f"{float(short):,.0f}" if "e+" in short and abs(number) < _LONG else short


def endless(number: float) -> bool:
    """Whether a number stands for no end: it is infinite, or the largest that every file can hold.

    >>> endless(float("inf")), endless(-sys.float_info.max), endless(1e300)
    (True, True, False)
    """
    return abs(number) >= sys.float_info.max


def counted(number: float, noun: str, form: str = ",") -> str:
    """A number with what it counts, in the plural unless it reads 1.

    >>> counted(1, "epoch"), counted(2000, "step"), counted(0.5, "epoch", ".4g")
    ('1 epoch', '2,000 steps', '0.5 epochs')
    """
    text = f"{number:{form}}"
    return f"{text} {noun}" if text == "1" else f"{text} {noun}s"


def _shorten(number: float, digits: int, rounding: str) -> str:
    if not math.isfinite(number):
        return "∞" if number > 0 else "-∞"
    exact = Decimal(repr(float(number)))  # 0.1 is meant, not the binary fraction next to it
    if exact == 0:
        return "0"
    last = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    rounded = exact.quantize(last, rounding=rounding)
    return f"{float(rounded):g}" if digits <= 6 else f"{float(rounded):.{digits}g}"


def byte_count(size: float) -> str:
    """A number of bytes as people read it.

    >>> byte_count(1_500), byte_count(12)
    ('1.5 kB', '12 B')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if abs(size) < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
