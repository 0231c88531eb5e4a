"""Which types can hold what is declared, and how their values are read: one table for every engine.

What it accepts is read as the same value in a file of text is. What it does not accept is refused before
anything is spent: a column that could be read in several ways would count wrongly without a word.
"""

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from enum import Enum

SMALL = tuple(sign + size for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT"))
"""Types of whole numbers that 64 bits hold."""


SIZES = ("_S", "_MS", "_NS")
"""What types of times end in that do not count in microseconds. An instant is a time of UTC without zone."""


class Family(Enum):
    """Types of an engine that are read alike, by the names that DuckDB has for them."""

    BOOLEAN = ("BOOLEAN",)
    WHOLE = (*SMALL, "HUGEINT", "UHUGEINT")
    DECIMAL = ("DECIMAL",)
    FLOAT = ("FLOAT", "DOUBLE")
    TEXT = ("VARCHAR", "ENUM")
    UUID = ("UUID",)
    DATE = ("DATE",)
    TIMESTAMP = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")
    ZONED = ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS", *(f"INSTANT{size}" for size in ("", *SIZES)))
    TIME = ("TIME", "TIME_NS")
    BYTES = ("BLOB", "BIT")
    NOTHING = ("NULL",)
    NESTED = ("LIST", "ARRAY", "STRUCT", "TUPLE", "MAP", "UNION", "VARIANT", "JSON")
    OTHER = ("INTERVAL", "TIME WITH TIME ZONE", "BIGNUM", "GEOMETRY", "TYPE")


class Use(Enum):
    """What a column is declared to hold, in the words of an error."""

    NUMBER = "numbers"
    WHOLE_KEY = "whole numbers"
    TEXT_KEY = "text"
    FLAG = "true or false"
    TEXT = "text or whole numbers"
    JOIN = "keys of a join"
    TIME = "dates or times"
    UNIT = "units"


_AS_IS, _BITS, _WORDS = "as it is", "true is 1, false is 0", "as true or false"
_LETTERS, _DIGITS, _SMALL, _DAY = "letter by letter", "by its digits", "in small letters", "as 2024-12-31"
_NUMBERS = {
    Use.NUMBER: "to the nearest step",
    Use.WHOLE_KEY: "if it is whole",
    Use.FLAG: "1 is true, 0 is false",
    Use.JOIN: "if it is whole",
    Use.UNIT: _AS_IS,
}
_ONLY_UNITS = {Use.UNIT: _AS_IS}

READ: Mapping[Family, Mapping[Use, str]] = {
    Family.BOOLEAN: {
        Use.NUMBER: _BITS,
        Use.WHOLE_KEY: _BITS,
        Use.TEXT_KEY: _WORDS,
        Use.FLAG: _AS_IS,
        Use.TEXT: _WORDS,
        Use.JOIN: _WORDS,
        Use.UNIT: _AS_IS,
    },
    Family.WHOLE: {
        **_NUMBERS,
        Use.NUMBER: _AS_IS,
        Use.WHOLE_KEY: _AS_IS,
        Use.TEXT_KEY: _DIGITS,
        Use.TEXT: _DIGITS,
        Use.JOIN: _AS_IS,
    },
    Family.DECIMAL: _NUMBERS,
    Family.FLOAT: _NUMBERS,
    Family.TEXT: {
        Use.NUMBER: "if it is a number",
        Use.WHOLE_KEY: "if it is a whole number",
        Use.TEXT_KEY: _LETTERS,
        Use.FLAG: "if it is such a word",
        Use.TEXT: _LETTERS,
        Use.TIME: "by the format",
        Use.JOIN: _LETTERS,
        Use.UNIT: _LETTERS,
    },
    Family.UUID: {Use.TEXT_KEY: _SMALL, Use.TEXT: _SMALL, Use.JOIN: _SMALL, Use.UNIT: _AS_IS},
    Family.DATE: {Use.TEXT_KEY: _DAY, Use.TEXT: _DAY, Use.TIME: _AS_IS, Use.JOIN: _DAY, Use.UNIT: _AS_IS},
    Family.TIMESTAMP: {Use.TIME: "as the clock shows", Use.UNIT: _AS_IS},
    Family.ZONED: {Use.TIME: "on the clock of the zone", Use.UNIT: "by the instant"},
    Family.TIME: _ONLY_UNITS,
    Family.BYTES: _ONLY_UNITS,
    Family.NOTHING: dict.fromkeys(Use, "as missing"),
    Family.NESTED: {},
    Family.OTHER: {},
}
"""How each family is read for each use; what is not here is refused."""

NAMES = {name: family for family in Family for name in family.value}
BLANK = r"[ \x09-\x0d]*"
"""What numbers in text may stand between; a text of nothing else is missing."""
_SIGNED = r"[+-]?"
NUMERAL = rf"{BLANK}{_SIGNED}(?:[0-9]++(?:[.][0-9]*+)?+|[.][0-9]++)(?:[eE][+-]?[0-9]++)?+{BLANK}"
"""A number in text; no part of it is tried twice, so that a long row of digits takes no longer than it is."""
PLAIN_WHOLE = rf"{BLANK}{_SIGNED}[0-9]+(?:[.]0*)?{BLANK}"
"""A whole number in text whose digits are all there: it is read exactly, however large."""
SPACES = " \t\n\v\f\r"
YES, NO = ("true", "t", "yes", "y"), ("false", "f", "no", "n")
"""Words of a flag, in any case; a number is one as well if it is 1 or 0."""
EXACT = 1 << 53
"""Up to here every whole number is a float."""


def base_name(kind: str) -> str:
    """A type by its name alone, without what it holds: an enumeration would list values.

    >>> base_name("ENUM('a', 'b')"), base_name("DECIMAL(9,2)"), base_name("ENUM('a')[]"), base_name('"NULL"')
    ('ENUM', 'DECIMAL', 'LIST', 'NULL')
    """
    if kind.endswith("]"):
        return "LIST" if kind.endswith("[]") else "ARRAY"
    return kind.partition("(")[0].strip('" ')


def family(kind: str) -> Family | None:
    """The family of a type; None for one that is not known."""
    return NAMES.get(base_name(kind))


def scale(kind: str) -> tuple[int, int]:
    """The digits of a decimal, and how many of them come after the point."""
    digits, _, after = kind.partition("(")[2].rstrip(")").partition(",")
    return int(digits or 18), int(after or (0 if digits else 3))


def whole_in(text: str) -> int | None:
    """The whole number that a text is, as every engine reads it; None for any other.

    >>> whole_in(" 7.0 "), whole_in("2.5"), whole_in("1e2"), whole_in("1_000"), whole_in("9007199254740993")
    (7, None, 100, None, 9007199254740993)
    """
    if not re.fullmatch(NUMERAL, text):
        return None
    near = float(text)
    if not math.isfinite(near) or near != math.floor(near):
        return None
    plain = abs(near) >= EXACT and re.fullmatch(PLAIN_WHOLE, text)
    number = int(Decimal(text.strip(SPACES)) if plain else near)
    return number if -(1 << 63) <= number < 1 << 63 else None
