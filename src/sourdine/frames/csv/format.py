"""How a file of text is written: declared, never guessed from its records."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, ValidationError, model_validator

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import either, entry, group
from sourdine.frames.csv.normalize import carriage_returns, fields, line_feeds, marked, quotes, width
from sourdine.frames.declared import Declared, mistake
from sourdine.frames.schema import as_tuples

ENCODINGS = ("utf-8", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1252")
_ALIASES = {
    "utf8": "utf-8",
    "utf-8-sig": "utf-8",
    "utf16": "utf-16",
    "utf-16le": "utf-16-le",
    "utf-16be": "utf-16-be",
    "latin1": "latin-1",
    "iso-8859-1": "latin-1",
    "windows-1252": "cp1252",
}
_THOUSANDS = (",", ".", " ", "'", "’", "_", "\u00a0", "\u202f")
MULTILINE = (
    "Line breaks inside quotes are read as part of a field (multiline = true). So a single record with a "
    "quote that is never closed changes how all records after it are read: the guarantee holds only if no "
    "record has one."
)


class TextFormat(Declared):
    """The encoding, marks and header of a CSV or TSV file, and the encoding of JSON Lines.

    Without a delimiter that of the header is taken. Letters of `strip` are left out at both ends of every
    field, and a field that holds no others is empty. `header = False` needs the `names` of the columns. With
    `multiline` a quoted field may hold line breaks.

    >>> TextFormat(encoding="Windows-1252", decimal=",").encoding
    'cp1252'
    """

    encoding: str = "utf-8"
    delimiter: str | None = None
    decimal: Literal[".", ","] = "."
    thousands: str | None = None
    strip: str | None = Field(
        default=None, min_length=1, max_length=20, exclude_if=lambda letters: letters is None
    )
    header: bool = True
    names: tuple[str, ...] | None = Field(default=None, min_length=1, max_length=1 << 16)
    multiline: bool = False

    @model_validator(mode="before")
    @classmethod
    def _written(cls, fields: Any) -> Any:
        fields_read = as_tuples(fields, "names")
        if isinstance(fields_read, dict) and isinstance(fields_read.get("encoding"), str):
            name = fields_read["encoding"].lower().replace("_", "-")
            return {**fields_read, "encoding": _ALIASES.get(name, name)}
        return fields_read

    @model_validator(mode="after")
    def _known(self) -> "TextFormat":
        if self.encoding not in ENCODINGS:
            raise ValueError(f"the encoding must be one of {', '.join(ENCODINGS)}; save the file as UTF-8")
        mark = self.delimiter
        if mark is not None and not may_part(mark):
            raise ValueError("the delimiter must be one ASCII character that no number or quote is made of")
        if self.thousands is not None and self.thousands not in _THOUSANDS:
            raise ValueError("thousands must be a comma, a point, a space, an apostrophe or an underscore")
        if self.thousands == self.decimal:
            raise ValueError("thousands and decimal must be different marks")
        if mark is not None and mark == self.thousands:
            raise ValueError("thousands and delimiter must be different marks")
        if self.strip is not None and not all(map(_may_go, self.strip)):
            raise ValueError("strip must hold blanks and signs that no number or quote is made of, such as %")
        if mark is not None and mark in (self.strip or ""):
            raise ValueError("strip must not hold the delimiter")
        if self.header == (self.names is not None):
            raise ValueError(
                f"names and {entry('header', False)} come together: a file without a header needs names"
            )
        if self.names is not None and len(set(self.names)) != len(self.names):
            raise ValueError("names must not repeat")
        if not self.header and self.encoding == "utf-16":
            raise ValueError(
                "without a header the order of the bytes must be declared: write utf-16-le or utf-16-be, "
                "since a mark at the start would be part of a record"
            )
        return self

    @classmethod
    def read(cls, fields: "TextFormat | Mapping[str, object]") -> "TextFormat":
        """The format of plain fields; a mistake is named by its field."""
        if isinstance(fields, TextFormat):
            return fields
        try:
            return cls.model_validate(dict(fields))
        except ValidationError as problem:
            raise mistake(problem, either("text", "")) from None

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a reader of the plan and of the certificate must know."""
        return (MULTILINE,) if self.multiline else ()

    @property
    def plain(self) -> bool:
        """Whether nothing is declared."""
        return self == TextFormat()


def may_part(mark: str) -> bool:
    """Whether a text may stand between fields: one byte that no number or quote is made of.

    >>> may_part(";"), may_part('"'), may_part("5"), may_part("€")
    (True, False, False, False)
    """
    return len(mark) == 1 and mark.isascii() and not (mark.isalnum() or mark in "\r\n\"'+-.\0")


def _may_go(letter: str) -> bool:
    """Whether a letter may be left out at the ends of a field: no sign of a number would be lost."""
    return not letter.isalnum() and letter not in "+-.,\"'\r\n\0\u2212"


# The first line of a file, which is about columns: all that is looked at before a release is paid.


_LONGEST = 1 << 24
_FIRST_LOOK = 1 << 16
_DELIMITERS = (",", ";", "\t", "|")
_SEPARATOR = re.compile(r'"?sep=(.)"?', re.IGNORECASE)  # how Excel notes a delimiter, above the header


@dataclass(frozen=True)
class Header:
    """The names of a file's columns, what parts them, and where its records begin."""

    names: tuple[str, ...]
    delimiter: str
    encoding: str
    start: int


def read_header(
    path: Path, look: Callable[[int], bytes], text: TextFormat, columns: Sequence[str], default: str | None
) -> Header:
    """The header of a file whose first bytes `look` gives; without one, the declared names.

    The delimiter is the declared one, or that of the file's ending, or the first that parts the header so
    that the wanted columns are among its fields.
    """
    start = look(_FIRST_LOOK)
    encoding, at = marked(start, text.encoding)
    if encoding is None:
        raise InvalidParameter(
            f"The file {path} does not say in which order its bytes stand. "
            f'Declare {group("text", encoding="utf-16-le")} or "utf-16-be".'
        )
    if not text.header:
        assert text.names is not None
        return Header(text.names, text.delimiter or default or ",", encoding, at)
    line, at = _line(path, look, encoding, at, text.multiline)
    delimiter = text.delimiter or default
    separator = _SEPARATOR.fullmatch(line)
    if separator is not None:
        delimiter = delimiter or separator[1]
        if not may_part(delimiter):
            raise InvalidParameter(
                f"The first line of the file {path} notes a mark between fields that cannot part them. "
                f"Change it, as in sep=; or declare the delimiter, as in {group('text', delimiter=';')}."
            )
        line, at = _line(path, look, encoding, at, text.multiline)
    if not line:
        raise _headless(path)
    marks = [delimiter] if delimiter else [mark for mark in _DELIMITERS if mark in line] or [","]
    parted = [(mark, fields(line, mark)) for mark in marks]
    known = [(mark, names) for mark, names in parted if names is not None]
    if not known:
        raise InvalidParameter(
            f"The header of the file {path} has a quote that is not closed on its line. Rename that column, "
            f"or, if its name holds a line break, declare {group('text', multiline=True)}."
        )
    fit = (each for each in known if set(columns) <= set(each[1]))
    mark, names = next(fit, known[0])
    return Header(tuple(names), mark, encoding, at)


def _line(
    path: Path, look: Callable[[int], bytes], encoding: str, at: int, multiline: bool
) -> tuple[str, int]:
    """The line that begins at a place, and where the next one does."""
    size = _FIRST_LOOK
    while True:
        head = look(size)
        end = _end(head[at:], encoding, multiline)
        if end is not None or len(head) < size:
            break
        if size >= _LONGEST:
            raise _headless(path)
        size *= 4
    whole = head[at:] if end is None else head[at : at + end]
    returns = carriage_returns(whole, encoding)
    if (returns < len(whole) - width(encoding)).any():
        # told before anything is decoded: of a file without a line feed all records are in this line
        raise InvalidParameter(
            f"The lines of the file {path} end in carriage returns alone, as on old systems, or its header "
            "holds one. Save it with line feeds, as CSV files have them today."
        )
    try:
        line = whole.decode(encoding)
    except UnicodeDecodeError:
        raise InvalidParameter(
            f"The header of the file {path} is not written in {encoding}. Declare its encoding, such as "
            f"{group('text', encoding='cp1252')} for files of older Windows programs, or save it as UTF-8."
        ) from None
    return line.removesuffix("\r"), at + len(whole) + (0 if end is None else width(encoding))


def _end(head: bytes, encoding: str, multiline: bool) -> int | None:
    """Where the first record of these bytes ends; None if it does not."""
    ends = line_feeds(head, encoding)
    if multiline:
        ends = np.array([end for end in ends[:1000].tolist() if quotes(head[:end], encoding) % 2 == 0])
    return int(ends[0]) if ends.size else None


def _headless(path: Path) -> InvalidParameter:
    return InvalidParameter(
        f"The file {path} has no header in its first line. Add the names of its columns there, or declare "
        f"{group('text', header=False, names=['...', '...'])}."
    )
