"""Texts of others that no terminal and no spreadsheet obeys.

Names of columns, keys, queries and files come from people and from files of others. A terminal obeys some
characters in them: it moves the cursor, hides or recolours what was said, writes from right to left.

Spreadsheets compute a cell that begins like a formula, whoever wrote it, and formulas can fetch addresses
and start programs. An apostrophe before it makes it a text. Numbers are left as they are, and what was
written can be read back: an apostrophe is put before those cells alone that begin so after any apostrophes
and blanks.
"""

import csv
import json
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

from sourdine.core.errors import InvalidParameter

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


# Specifications in TOML, of a size and a depth that people write: others are refused at once.
#
# A parser takes its time over names of fifty thousand parts, falls over brackets in brackets, and Python
# does not read numbers of thousands of digits. So what stands outside of texts and comments is looked at
# first.


MOST_BYTES = 1 << 22
MOST_FIELDS = 20_000
MOST_DEPTH = 20
MOST_DIGITS = 320  # of the largest number that a float holds, and a little more

# each takes what it began, even without an end, so that no letter is looked at twice
_APART = re.compile(
    r'''"""(?:\\.|[^"\\]|"(?!""))*+(?:"{3,5})?'''
    r"""|'''(?:[^']|'(?!''))*+(?:'{3,5})?"""
    r"""|"(?:\\.|[^"\\\n])*+"?"""
    r"""|'[^'\n]*+'?|\#[^\n]*+""",
    re.DOTALL,
)
_PARTS = re.compile(rf"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{MOST_DEPTH}}}")
_DIGITS = re.compile(rf"(?<!\w)(?:0[xob])?[0-9A-Fa-f_]{{{MOST_DIGITS}}}")
_HEADERS = re.compile(r"^[ \t]*\[", re.MULTILINE)
_BRACKETS = re.compile(r"[\[{]|[\]}]")


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file holds; OSError if it cannot be read."""
    return parse_toml(toml_text_of(path), path)


def toml_text_of(path: Path) -> str:
    """The text of a TOML file, of a sensible size; OSError if it cannot be read."""
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise InvalidParameter(
            f"The specification {path} is larger than {MOST_BYTES >> 20} megabytes, which no specification "
            "needs. Check that it is one, and not the table itself."
        )
    try:
        return content.decode("utf-8-sig")  # some editors begin a file with a mark
    except UnicodeDecodeError:
        raise InvalidParameter(
            f"The specification {path} is not saved as UTF-8, as TOML has to be. Save it again with that "
            "encoding."
        ) from None


def parse_toml(text: str, path: Path) -> dict[str, Any]:
    """What a text in TOML says; the path is for the sentence that tells what is wrong.

    >>> parse_toml("a = 1", Path("people.toml"))
    {'a': 1}
    >>> parse_toml("a = " + "[" * 100_000, Path("people.toml"))
    Traceback (most recent call last):
    sourdine.core.errors.InvalidParameter: The specification people.toml has brackets or dotted names ...
    """
    _check(text, path)
    try:
        return tomllib.loads(text.replace("\r\n", "\n").replace("\r", "\n"))
    except (ValueError, RecursionError) as problem:
        where = f": {problem}" if isinstance(problem, tomllib.TOMLDecodeError) else ""
        raise InvalidParameter(
            f"The specification {path} is not valid TOML{where}. Mend that line: texts stand in quotes, "
            "numbers have a decimal point, every field stands once, and brackets are closed."
        ) from None


def toml_key(name: str) -> str:
    """A name as TOML takes it before a point or an equals sign.

    >>> toml_key("age"), toml_key("has children")
    ('age', '"has children"')
    """
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else toml_text(name)


def toml_text(text: str) -> str:
    """A text as TOML takes it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _check(text: str, path: Path) -> None:
    """Refuse what would keep a parser busy, or break it."""
    bare = _APART.sub(lambda match: "" if match.group().startswith("#") else "s", text)
    fields = bare.count("=") + len(_HEADERS.findall(bare))
    if fields > MOST_FIELDS:
        raise InvalidParameter(
            f"The specification {path} has {fields:,} fields and blocks, and at most {MOST_FIELDS:,} are "
            "read. Leave out the columns that no query needs, and write keys as a list."
        )
    depths = accumulate(1 if match.group() in "[{" else -1 for match in _BRACKETS.finditer(bare))
    if any(depth > MOST_DEPTH for depth in depths) or _PARTS.search(bare):
        raise InvalidParameter(
            f"The specification {path} has brackets or dotted names more than {MOST_DEPTH} deep, which no "
            "field needs. Check its brackets and points."
        )
    if _DIGITS.search(bare):
        raise InvalidParameter(
            f"The specification {path} has a number of {MOST_DIGITS} digits or more, which no field takes. "
            "Write a smaller one."
        )
