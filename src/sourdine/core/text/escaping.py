"""Texts of others that no terminal and no spreadsheet obeys.

Names of columns, keys, queries and files come from people and from files of others. A terminal obeys some
characters in them: it moves the cursor, hides or recolours what was said, writes from right to left.

Spreadsheets compute a cell that begins like a formula, whoever wrote it, and formulas can fetch addresses
and start programs. An apostrophe before it makes it a text. Numbers are left as they are, and what was
written can be read back: an apostrophe is put before those cells alone that begin so after any apostrophes
and blanks.
"""

import csv
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")
_APOSTROPHE, _ENDING = "'", "\r\n"
_FORMULA = re.compile(r"[\s'\0\ufeff\u200b]*[=+\-@\uff1d\uff0b\uff0d\uff20]|'*[\t\r\n\0]")
_FORMULA_START = re.compile(r"[\s'\0\ufeff\u200b=+\-@\uff1d\uff0b\uff0d\uff20]")
_QUOTED = re.compile(r'[",\r\n]')
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:[.,][0-9]+)?|[.][0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
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


def inert(cell: T) -> T | str:
    """A cell as a spreadsheet may see it: a text that begins like a formula has an apostrophe before it.

    >>> [inert(cell) for cell in ("north", "=1+1", "-3.2", -3.2, "'=1", None)]
    ['north', "'=1+1", '-3.2', -3.2, "''=1", None]
    """
    return f"{_APOSTROPHE}{cell}" if isinstance(cell, str) and _begins(cell) else cell


def as_written(cell: str) -> str:
    """The text that `inert` was given.

    >>> as_written(str(inert("=1+1"))), as_written("'tis"), as_written("-3.2")
    ('=1+1', "'tis", '-3.2')
    """
    bare = cell.removeprefix(_APOSTROPHE)
    return bare if bare != cell and _begins(bare) else cell


def csv_text(rows: Iterable[Iterable[object]], end: str = "\n") -> str:
    """Rows as CSV. A cell with any line break in it is quoted, so that none begins a row.

    >>> csv_text([["north\\r=1+1", 2]])
    '"north\\r=1+1",2\\n'
    """
    lines = _Lines(end)
    csv.writer(lines, lineterminator=_ENDING).writerows(rows)
    return "".join(lines.texts)


def csv_cells(cells: Sequence[object]) -> list[str]:
    """Cells as they stand in a row of such a file, none of which a spreadsheet takes for a formula.

    >>> csv_cells(["north", "a, b", "=1+1", 3, None])
    ['north', '"a, b"', "'=1+1", '3', '']
    """
    texts = ["" if cell is None else str(cell) for cell in cells]
    if any(map(_FORMULA_START.match, {text[:1] for text in texts})):
        texts = [
            inert(text) if isinstance(cell, str) else text for cell, text in zip(cells, texts, strict=True)
        ]
    if not _QUOTED.search("".join(texts)):
        return texts
    return ['"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text for text in texts]


class _Lines:
    """Rows as they are written. The writer quotes those signs alone that its own line ends with: both."""

    def __init__(self, end: str) -> None:
        self.texts: list[str] = []
        self._end = end

    def write(self, row: str) -> None:
        self.texts.append(row.removesuffix(_ENDING) + self._end)


def _begins(text: str) -> bool:
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None
