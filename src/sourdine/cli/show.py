"""What every verb shows: JSON for machines, tables and progress for people."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from rich.console import Console
from rich.progress import track
from rich.table import Table

T = TypeVar("T")

_PIPE = 160  # characters of a line that nobody's terminal limits


def document(content: Mapping[str, object]) -> None:
    """One JSON document on stdout."""
    print(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))


def table(columns: Iterable[str], rows: Iterable[Iterable[str]], numbers: Iterable[str] = ()) -> None:
    """A table on stdout, as wide as the terminal allows."""
    shown = Table(header_style="bold")
    for column in columns:
        shown.add_column(column, justify="right" if column in numbers else "left")
    for row in rows:
        shown.add_row(*row)
    console = Console(file=sys.stdout)
    if not console.is_terminal:
        console.width = _PIPE
    console.print(shown)


def progress(label: str, things: Sequence[T]) -> Iterable[T]:
    """The things, with a bar on stderr while they are taken, if anybody is looking."""
    console = Console(file=sys.stderr)
    return track(things, label, console=console, transient=True, disable=not console.is_terminal)
