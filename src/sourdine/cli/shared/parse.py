"""What people hand to a verb, read exactly: numbers, lines of text, JSON, seeds.

A seed is for made-up data only: what can be repeated protects nobody.
"""

import json
import math
import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.files import unreadable
from sourdine.core.format import parse, plain

if TYPE_CHECKING:
    from sourdine.accounting.accountant import Bracket
    from sourdine.core.random.bits import Bits


def number(owner: str, name: str, text: str, least: Fraction | int, most: Fraction | int) -> Fraction:
    """The exact value of a text such as 0.1, 1e-3 or 1/3, if it lies in [least, most].

    >>> number("demo", "epsilon", "0.1", 0, 1)
    Fraction(1, 10)
    """
    exact = parse(text)
    if exact is None:
        raise check.fail(owner, name, "be a finite number", text, "Write it like 0.5, 1e-3 or 1/3.")
    if not least <= exact <= most:
        write = str if "/" in text else decimal
        raise check.fail(owner, name, f"lie between {write(least)} and {write(most)}", text)
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


def lines_of(path: Path) -> list[str]:
    """The lines of a file, or of standard input for '-', without a byte order mark and empty last lines."""
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        text = raw.decode("utf-8-sig")
    except OSError as problem:
        raise InvalidParameter(f"{unreadable(path, problem)} Check the path.") from None
    except UnicodeDecodeError:
        raise InvalidParameter(
            f"The file {path} is not text in UTF-8. Save it as UTF-8, one entry per line."
        ) from None
    lines = text.replace("\r\n", "\n").split("\n")
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise InvalidParameter(f"The file {path} is empty. Write one entry per line.")
    return lines


def read_json(path: Path) -> object:
    """What a JSON file holds."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise InvalidParameter(f"{unreadable(path, problem)} Check the path.") from None
    except UnicodeDecodeError:
        raise InvalidParameter(f"The file {path} is not a text. Name a file in JSON.") from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidParameter(
            f"The file {path} is no JSON that can be read. It is cut short or was changed. Write it again."
        ) from None


def one_line(owner: str, name: str, text: str) -> str:
    """A text without line breaks and control characters, which would deceive whoever reads it later."""
    if not text.strip() or not text.isprintable():
        raise check.fail(owner, name, "be one line of letters and signs", text, "Leave out line breaks.")
    return text


_MOST = 1 << 62
_HELP = "A number: the same one repeats the same run. For made-up data only."

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Seed = Annotated[int | None, typer.Option("--seed", help=_HELP)]
SeedNumber = Annotated[int, typer.Option("--seed", help=_HELP)]  # where there always is one


def check_seed(owner: str, seed: int | None) -> int | None:
    """The seed; one out of reach is refused."""
    return None if seed is None else check.integer(owner, "seed", seed, 0, _MOST)


def bits_of(owner: str, seed: int | None) -> "Bits":
    """The bits of a seed, which are never to meet real data; the system's without one."""
    from sourdine.core.random.bits import SYSTEM
    from sourdine.testing import SeededBits

    checked = check_seed(owner, seed)
    return SYSTEM if checked is None else SeededBits(checked)


def finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None


def plain_bracket(bracket: "Bracket") -> dict[str, float | None]:
    """Both ends, for machines."""
    return {"lower": finite(bracket.lower), "upper": finite(bracket.upper)}


def say_bracket(bracket: "Bracket", delta: float) -> str:
    """The upper end, which is the claim; then both, if the lower one says anything."""
    from sourdine.core.format import plain, shorten_down, shorten_up

    upper = shorten_up(bracket.upper)
    at = f" at delta {plain(delta)}" if delta else ""
    both = f" (certified: between {shorten_down(bracket.lower)} and {upper})" if bracket.lower else ""
    return f"{upper}{at}{both}"
