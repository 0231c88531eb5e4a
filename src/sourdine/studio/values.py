"""What somebody typed as the value that it means, by its field; what cannot be read stays as it was typed.

The reader of specifications then says what is wrong with it, and the page shows it again.
"""

import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from sourdine.tables.blocks import BLANK

_WHOLE, _NUMBER = (
    re.compile(r"[+-]?[0-9]{1,300}"),
    re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?"),
)
NUMBERS = (
    "lower",
    "upper",
    "granularity",
    "size",
    "epsilon",
    "delta",
    "selection_delta",
    "confidence",
    "weight",
)
WHOLE = ("max_rows", "max_groups", "at_least", "k", "rows")
FLAGS = ("quality", "header", "multiline")
OPTIONAL = (
    *("column", "max_rows", "max_groups", "size", "delta", "selection_delta", "ledger", "weight"),
    *("granularity", "missing", "at_least", "other", "zone", "format", "period"),
    *("encoding", "delimiter", "decimal", "thousands"),
    *("target", "rows", "mark", "leave_out"),
)


def read_value(field: str, text: object, block: Mapping[str, Any] | None = None) -> object:
    """The value of a field, None if it is to be left out, BLANK if it waits.

    >>> read_value("lower", "0"), read_value("lower", "1.5"), read_value("lower", "a few")
    (0, 1.5, 'a few')
    >>> read_value("keys", "north\\n south \\n"), read_value("delta", ""), read_value("upper", "")
    (['north', 'south'], None, 'FILL IN')
    """
    if isinstance(text, bool):
        return text
    if isinstance(text, list):
        return [str(each) for each in text]
    typed = str(text).strip()
    if field == "keys":
        return read_keys(typed)
    if not typed:
        return None if field in OPTIONAL else BLANK
    if field == "leave_out":
        return [line.strip() for line in typed.splitlines() if line.strip()]
    kind = (block or {}).get("type")
    if field in FLAGS:
        return typed.lower() == "true"
    if field in ("first", "last"):
        return read_moment(typed)
    if field in (*NUMBERS, *WHOLE) or (
        field == "missing" and kind in ("integer", "real") and typed != "drop"
    ):
        number = read_number(typed)
        real = kind == "real" and field in ("lower", "upper", "granularity", "missing")
        return float(number) if real and isinstance(number, int) and abs(number) < 1 << 53 else number
    if field == "missing" and kind == "flag" and typed in ("true", "false"):
        return typed == "true"
    return typed


def read_number(typed: str) -> int | float | str:
    """A number, also with commas or spaces between thousands; or what was typed."""
    plain = re.sub(r"(?<=[0-9])[, _\u00a0\u202f](?=[0-9]{3}(\D|$))", "", typed)
    if _WHOLE.fullmatch(plain):
        return int(plain)
    return float(plain) if _NUMBER.fullmatch(plain) else typed


def read_keys(typed: str) -> list[object]:
    """Keys from lines, or from one line with commas; whole numbers if all of them are."""
    parts = typed.splitlines() if "\n" in typed else typed.split(",")
    keys = [part.strip() for part in parts if part.strip()]
    if not keys:
        return [BLANK]
    if all(re.fullmatch(r"-?(0|[1-9][0-9]{0,18})", key) for key in keys):
        return [int(key) for key in keys]
    return list(keys)


def read_moment(typed: str) -> object:
    """A day or a time, or what was typed."""
    for kind in (date, datetime):
        try:
            return kind.fromisoformat(typed)
        except ValueError:
            continue
    return typed


def shown(content: object) -> str:
    """A value as it stands in a field of the page."""
    if content is None or content in (BLANK, [BLANK]):
        return ""
    if isinstance(content, bool):
        return "true" if content else "false"
    if isinstance(content, list):
        return "\n".join(map(shown, content))
    if isinstance(content, float) and content.is_integer() and abs(content) < 1e15:
        return str(int(content))
    return str(content)
