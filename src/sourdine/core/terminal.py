"""Texts that no terminal obeys.

Names of columns, keys, queries and files come from people and from files of others. A terminal obeys some
characters in them: it moves the cursor, hides or recolours what was said, writes from right to left.
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


def has_shape(letter: str) -> bool:
    """Whether a letter is seen as itself; spaces of any kind are."""
    return letter.isprintable() or unicodedata.category(letter) == "Zs"


def _shown(match: re.Match[str]) -> str:
    letter = match.group()
    if has_shape(letter):
        return letter
    return letter.encode("unicode_escape", "surrogatepass").decode("ascii")
