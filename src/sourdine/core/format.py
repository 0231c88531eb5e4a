"""Numbers as people write and read them: taken exactly, and shortened to the safe side."""

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction

from sourdine.core.text import toml_key, toml_text

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


# What to write, as the caller writes it: in Python, or in a file of TOML and on a command line.
#
# A remedy must be ready to paste. Declarations come from calls and from files, and the same code reads
# both. So a sentence asks here how a setting is written, and whoever reads files says so with `in_files`.


_FILES: ContextVar[bool] = ContextVar("declarations come from files", default=False)


@contextmanager
def in_files() -> Iterator[None]:
    """While this lasts, or around a function, what is wrong stands in a file or on a command line.

    >>> setting("delta", 1e-6)
    'delta=1e-6'
    >>> with in_files():
    ...     setting("delta", 1e-6)
    'delta = 1e-6'
    """
    before = _FILES.set(True)
    try:
        yield
    finally:
        _FILES.reset(before)


def either(python: str, file: str) -> str:
    """The one of two texts that the caller can use."""
    return file if _FILES.get() else python


def value(content: object) -> str:
    """A declared value as it is written.

    >>> value({"mean": "pay"}), value([True, 0.5])
    ('{"mean": "pay"}', '[True, 0.5]')
    """
    files = _FILES.get()
    if isinstance(content, bool):
        return str(content).lower() if files else str(content)
    if isinstance(content, str):
        return toml_text(content)  # which Python reads alike
    if isinstance(content, Mapping):
        pairs = (
            f"{toml_key(name)} = {value(each)}" if files else f"{toml_text(name)}: {value(each)}"
            for name, each in content.items()
        )
        return f"{{ {', '.join(pairs)} }}" if files else f"{{{', '.join(pairs)}}}"
    if isinstance(content, Sequence):
        return f"[{', '.join(map(value, content))}]"
    if isinstance(content, float):
        return f"{content:.1f}" if content.is_integer() else plain(content)
    return str(content)


def setting(name: str, content: object) -> str:
    """A name with its value: an argument of a call, or a line of a file."""
    return f"{name} = {value(content)}" if _FILES.get() else f"{name}={value(content)}"


def entry(name: str, content: object) -> str:
    """A name with its value within a block, which is a dictionary in Python."""
    return f"{name} = {value(content)}" if _FILES.get() else f"{toml_text(name)}: {value(content)}"


def block(kind: str, name: str, **fields: object) -> str:
    """Fields of a thing that has a name.

    >>> block("columns", "pay", type="real", lower=0)
    'columns={"pay": {"type": "real", "lower": 0}}'
    >>> with in_files():
    ...     block("columns", "pay", type="real", lower=0)
    '[columns.pay] type = "real", lower = 0'
    """
    if not _FILES.get():
        return f"{kind}={value({name: fields})}"
    return f"[{kind}.{toml_key(name)}] {', '.join(entry(*field) for field in fields.items())}"


def group(kind: str, **fields: object) -> str:
    """Fields of the only thing of a kind.

    >>> group("text", encoding="cp1252")
    'text={"encoding": "cp1252"}'
    >>> with in_files():
    ...     group("text", encoding="cp1252")
    'encoding = "cp1252"'
    """
    if not _FILES.get():
        return f"{kind}={value(fields)}"
    return " and ".join(setting(*field) for field in fields.items())
