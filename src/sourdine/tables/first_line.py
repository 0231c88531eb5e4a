"""The first line of a file of text: the names of its columns, unless it looks like a record."""

import codecs
import csv
import re
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted

_LONGEST = 1 << 20  # characters of a header: a file without line breaks is not read to its end
_DELIMITERS = ",;\t|"
_DIGITS = re.compile(r"[^A-Za-z]*[0-9][^A-Za-z]*([eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class FirstLine:
    """The fields of the first line, what parts them, and how it is encoded; nothing below it is looked at."""

    place: Path
    fields: tuple[str, ...]
    delimiter: str
    encoding: str

    @classmethod
    def read(cls, place: Path) -> "FirstLine":
        """The first line of a CSV or TSV file."""
        encoding = _encoding(place)
        try:
            if encoding == "utf-16":
                with place.open(encoding=encoding, newline="") as file:
                    line = file.readline(_LONGEST)
            else:  # by bytes, since only the first line is decoded
                with place.open("rb") as raw:
                    line = raw.readline(_LONGEST).decode("utf-8-sig" if encoding == "utf-8" else encoding)
        except (OSError, UnicodeError):
            raise InvalidParameter(
                f"The file {place} cannot be read as text. Check it, and its rights."
            ) from None
        delimiter = "\t" if place.suffix.lower() == ".tsv" else max(_DELIMITERS, key=line.count)
        try:
            fields = next(csv.reader([line], delimiter=delimiter), [])
        except csv.Error:  # a field of 128 kilobytes is no name
            fields = []
        if not fields or not line.strip():
            raise InvalidParameter(f"The file {place} has no header. Write the names of its columns first.")
        return cls(place, tuple(fields), delimiter, encoding)

    def names(self, *, sure: bool = False) -> tuple[str, ...]:
        """The fields as names; if one looks like a value, somebody must be sure that they are.

        What the fields hold is not told: they may be somebody's record.
        """
        first_places: dict[str, int] = {}
        for number, field in enumerate(self.fields, start=1):
            first = first_places.setdefault(field, number)
            if not field.strip() or first != number:
                what = f"{number:,} repeats field {first:,}" if field.strip() else f"{number:,} is empty"
                raise self._refusal(what, "If it holds names, give every column its own in the file.")
            if not sure and _is_value(field):
                remedy = "If it holds names, say --header."
                raise self._refusal(f"{number:,} reads like a number, a date or a truth value", remedy)
        return self.fields

    def _refusal(self, what: str, remedy: str) -> InvalidParameter:
        return InvalidParameter(
            f"The first line of {self.place} looks like a record, not like the names of columns: of its "
            f"{counted(len(self.fields), 'field')}, field {what}. If it is one, give the names yourself, as "
            f"in --names 'age,sex'. {remedy}"
        )

    def parse_names(self, text: str) -> tuple[str, ...]:
        """Names that somebody gives for a file without a header, as many as there are fields."""
        listed = [name.strip() for name in next(csv.reader([text]), [])]
        if len(listed) != len(self.fields):
            raise InvalidParameter(
                f"The first line of {self.place} has {counted(len(self.fields), 'field')}, and --names gives "
                f"{counted(len(listed), 'name')}. Give one for each, separated by commas."
            )
        if not all(listed) or len(set(listed)) != len(listed):
            raise InvalidParameter("--names has a name twice, or an empty one. Give every column its own.")
        return tuple(listed)


def _is_value(field: str) -> bool:
    """Whether a field reads like a value rather than like a name.

    >>> [_is_value(field) for field in ("31", "-1.5e3", "1 000,50", "2024-05-01T12:00", "true", "age", "q1")]
    [True, True, True, True, True, False, False]
    """
    text = field.strip()
    if _DIGITS.fullmatch(text) or text.lower() in ("true", "false"):
        return True
    return any(_reads(kind, text) for kind in (date, datetime))


def _reads(kind: type[date], text: str) -> bool:
    try:
        kind.fromisoformat(text)
    except ValueError:
        return False
    return True


def _encoding(place: Path) -> str:
    """The encoding that the first line shows: by the mark of UTF-16, or by letters that are no UTF-8."""
    try:
        with place.open("rb") as raw:
            line = raw.readline(_LONGEST)
    except OSError:
        return "utf-8"  # reading it again will tell
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return "utf-8" if b"\0" in line else "cp1252"
    return "utf-8"
