"""How a file of text is written: declared, never guessed from its records."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from sourdine.core.format import either, entry
from sourdine.frames.columns import as_tuples
from sourdine.frames.mistakes import Declared, mistake

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
