"""The first line of a file, which is about columns: all that is looked at before a release is paid."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import group
from sourdine.frames.text.encoding import carriage_returns, line_feeds, marked, quotes, width
from sourdine.frames.text.format import TextFormat, may_part
from sourdine.frames.text.tidy import fields

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
