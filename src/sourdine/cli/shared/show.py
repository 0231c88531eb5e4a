"""What every verb shows: JSON for machines, tables and progress for people, no text that a terminal obeys.

Names of columns, units, queries and files come from people and from files of others. A terminal obeys some
characters in them: it moves the cursor, hides or recolours what was said, writes from right to left, or
answers as if somebody had typed. So whatever is shown goes through here, and such characters are shown as
what they are.
"""

import json
import os
import re
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table
from rich.text import Text

from sourdine.cli.shared.heartbeat import HEARTBEAT
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter
from sourdine.core.text import has_shape, tame


def tame_json(text: str) -> str:
    r"""A JSON document that says the same, in which such characters are written as JSON writes them.

    >>> tame_json('{\n "a": "\x9b"\n}')
    '{\n "a": "\\u009b"\n}'
    """
    return re.sub(r"[^\n\x20-\x7e]", _in_json, text)


def _in_json(match: re.Match[str]) -> str:
    letter = match.group()
    if has_shape(letter):
        return letter
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[k : k + 2].hex()}" for k in range(0, len(units), 2))


T = TypeVar("T")

_PIPE = 160  # characters of a line that nobody's terminal limits
_NARROW = 40  # below that no table can be read
_PROSE = 100
_BLANKS = dict.fromkeys(map(ord, "\t\n\v\f\r"), " ")
_PAUSE = 10.0  # seconds between two plain lines about the same work, and before the first


def document(content: Mapping[str, object]) -> None:
    """One JSON document on stdout."""
    narrow = not (sys.stdout.encoding or "").lower().startswith("utf")
    print(tame_json(json.dumps(content, indent=2, ensure_ascii=narrow, allow_nan=False)))


def table(columns: Iterable[str], rows: Iterable[Iterable[str]], numbers: Iterable[str] = ()) -> None:
    """A table on stdout, as wide as the terminal allows."""
    shown = Table(header_style="bold")
    for column in columns:
        shown.add_column(_cell(column), justify="right" if column in numbers else "left")
    for row in rows:
        shown.add_row(*map(_cell, row))
    console = Console(file=sys.stdout)
    if not console.is_terminal:
        columns = os.environ.get("COLUMNS", "")
        console.width = max(int(columns), _NARROW) if columns.isdecimal() else _PIPE
    console.print(shown)


def _cell(text: str) -> Text:
    """A cell as it is: what people wrote is taken for no markup and no command."""
    return Text("\n".join(map(tame, text.split("\n"))))


def progress(label: str, things: Sequence[T]) -> Iterable[T]:
    """The things, with a bar on stderr while they are taken, or plain lines where it is no terminal."""
    console = Console(file=sys.stderr)
    return _in_a_bar(label, things, console) if console.is_terminal else _in_lines(label, things)


def _in_a_bar(label: str, things: Sequence[T], console: Console) -> Iterator[T]:
    with HEARTBEAT.quiet():
        yield from track(things, escape(tame(label)), console=console, transient=True)


def _in_lines(label: str, things: Sequence[T]) -> Iterator[T]:
    lines = Lines()
    for done, thing in enumerate(things):
        lines.tell(f"{label}: {done:,} of {len(things):,}")
        yield thing
    HEARTBEAT.doing("")


class Lines:
    """Plain lines on stderr about long work, for logs: the first after a while, and others as far apart."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def tell(self, text: str) -> None:
        """Say how far it is, if the last word was long ago."""
        now = time.monotonic()
        HEARTBEAT.doing(text)
        if now - self._last >= _PAUSE:
            self._last = now
            line(text, aside=True)
            HEARTBEAT.spoke()


def line(text: str = "", *, aside: bool = False) -> None:
    """One line on stdout, or on stderr; it is never broken, since it may hold a command."""
    print(tame(text), file=sys.stderr if aside else sys.stdout, flush=aside)


def lines(text: str) -> None:
    """Several lines on stdout, as they are broken."""
    for each in text.split("\n"):
        line(each)


def say(text: str, mark: str = "") -> None:
    """A paragraph on stdout, in lines that are easy to read; later lines stand under the first."""
    under = " " * len(mark)
    lines(_filled(text, mark, under))


def warn(text: str) -> None:
    """A warning on stderr, which leaves stdout to what was asked for."""
    for each in _filled(f"WARNING: {text}").split("\n"):
        line(each, aside=True)


def _filled(text: str, first: str = "", under: str = "") -> str:
    """A paragraph, broken where it is too long and nowhere else."""
    line = tame(text.translate(_BLANKS))
    return textwrap.fill(line, _PROSE, initial_indent=first, subsequent_indent=under, break_on_hyphens=False)


def one_line(text: str) -> str:
    """A text that somebody wrote, as one line that no terminal takes for a command."""
    return tame(text)


def check_place(path: Path | None) -> None:
    """Refuse a place for a file before any work is done for it."""
    if path is None:
        return
    if path.is_dir():
        raise InvalidParameter(f"{path} is a folder. Name a file.")
    if not path.resolve().parent.is_dir():
        raise InvalidParameter(
            f"The folder of {path} does not exist. Make it first, or choose another place."
        )
    special = path.exists() and not path.is_file()  # such as a pipe, which is written to as it is
    if not os.access(path if special else path.resolve().parent, os.W_OK):
        raise InvalidParameter(f"You have no right to write {path}. Choose another place.")


def refuse_existing(places: Iterable[Path | None], remedy: str = "Choose another place.") -> None:
    """Refuse places that hold something which may be the only copy: reports, counts, tables, charges."""
    for place in places:
        if place is not None and place.exists():
            raise InvalidParameter(f"{place} exists already and is not written over. {remedy}")


def check_page(path: Path | None) -> None:
    """Refuse a place for a page before any work is done for it: over a page it may go, over nothing else."""
    if path is not None and not path.is_dir() and path.suffix.lower() not in (".html", ".htm"):
        raise InvalidParameter(
            f"A page is written over nothing but a page, and {path} has another ending. "
            "Name a file that ends in .html."
        )
    check_place(path)


def check_folder(path: Path) -> None:
    """Make a folder if there is none, before any work is done for it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InvalidParameter(f"{path} cannot be a folder ({problem.strerror}). Choose another.") from None
    if not os.access(path, os.W_OK):
        raise InvalidParameter(f"You have no right to write into {path}. Choose another folder.")


def keep(text: str, path: Path) -> None:
    """A file with this text: whole or not at all, and for its owner."""
    try:
        disk.write_whole(path, text)
    except OSError as problem:
        raise InvalidParameter(
            f"{path} cannot be written ({problem.strerror}). Choose another place."
        ) from None
