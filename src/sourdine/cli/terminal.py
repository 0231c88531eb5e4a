"""Texts that no terminal takes for a command.

Names of columns, units, queries and files come from people and from files of others. A terminal obeys some
characters in them: it moves the cursor, hides or recolours what was said, writes from right to left, or
answers as if somebody had typed. So whatever is shown goes through here, and such characters are shown as
what they are.
"""

import re
import unicodedata

_ODD = re.compile(r"[^\x20-\x7e]")


def tame(text: str) -> str:
    r"""A text in one line: what has no shape is shown by its number; spaces of any kind are spaces.

    >>> print(tame("\x1b[2Jpeople\n"))
    \x1b[2Jpeople\n
    >>> tame("naïve 人口")
    'naïve 人口'
    """
    return _ODD.sub(_shown, text)


def tame_json(text: str) -> str:
    r"""A JSON document that says the same, in which such characters are written as JSON writes them.

    >>> tame_json('{\n "a": "\x9b"\n}')
    '{\n "a": "\\u009b"\n}'
    """
    return re.sub(r"[^\n\x20-\x7e]", _in_json, text)


def _has_shape(letter: str) -> bool:
    return letter.isprintable() or unicodedata.category(letter) == "Zs"


def _shown(found: re.Match[str]) -> str:
    letter = found.group()
    if _has_shape(letter):
        return letter
    return letter.encode("unicode_escape", "surrogatepass").decode("ascii")


def _in_json(found: re.Match[str]) -> str:
    letter = found.group()
    if _has_shape(letter):
        return letter
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[k : k + 2].hex()}" for k in range(0, len(units), 2))
