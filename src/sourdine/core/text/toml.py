"""Specifications in TOML, of a size and a depth that people write: others are refused at once.

A parser takes its time over names of fifty thousand parts, falls over brackets in brackets, and Python does
not read numbers of thousands of digits. So what stands outside of texts and comments is looked at first.
"""

import json
import re
import tomllib
from itertools import accumulate
from pathlib import Path
from typing import Any

from sourdine.core.errors import InvalidParameter

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
