"""What both verbs of `sourdine anonymity` take: columns, distances, what is missing, and a page."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.heartbeat import HEARTBEAT
from sourdine.cli.shared.parse import number
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.text import read_toml

if TYPE_CHECKING:
    from sourdine.anonymity import GeneralisationHierarchy, Ground
    from sourdine.frames.schema import Schema

E = TypeVar("E", bound=StrEnum)
Watch = Callable[[float], None]

TableFile = Annotated[Path, typer.Argument(help="A .csv, .tsv, .json, .ndjson or .parquet file.")]
Quasi = Annotated[
    list[str], typer.Option("--quasi", help="Columns an outsider may know, separated by commas.")
]
Sensitive = Annotated[
    list[str] | None,
    typer.Option("--sensitive", help="Columns that must not be learnt, separated by commas."),
]
Ordered = Annotated[
    list[str] | None, typer.Option("--ordered", help="Sensitive columns whose values have an order, for t.")
]
Hierarchical = Annotated[
    list[str] | None,
    typer.Option(
        "--hierarchical", help="Sensitive columns whose values are as far apart as in their hierarchy."
    ),
]
Hierarchies = Annotated[
    Path | None,
    typer.Option(
        "--hierarchies", help="A folder with a CSV file for each column: value;level 1;level 2;... up to *."
    ),
]
Absent = Annotated[
    str,
    typer.Option(
        "--missing", help="What a missing value is: a value of its own (value), or left out (drop)."
    ),
]
Spec = Annotated[
    Path | None, typer.Option("--spec", help="A specification whose [columns] declare bounds and keys.")
]
Encoding = Annotated[str, typer.Option("--encoding", help="Of a CSV file: utf-8, latin-1 or utf-16.")]
Html = Annotated[Path | None, typer.Option("--html", help="Also write a page with charts here.")]


def names(texts: Sequence[str] | None) -> list[str]:
    """Names of columns, given separated by commas or one by one."""
    return [name.strip() for text in texts or () for name in text.split(",") if name.strip()]


def one_of(name: str, text: str, kind: type[E]) -> E:
    """A choice by its name."""
    try:
        return kind(text)
    except ValueError:
        raise check.fail("anonymity", name, f"be one of {', '.join(kind)}", text) from None


def share(owner: str, name: str, text: str) -> Fraction:
    """A share written as 5% or 0.05."""
    if text.strip().endswith("%"):
        return number(owner, name, text.strip()[:-1].strip(), 0, 100) / 100
    return number(owner, name, text, 0, 1)


def schema_of(path: Path | None) -> "Schema | None":
    """The declared columns of a specification."""
    from sourdine.frames.schema import Schema

    if path is None:
        return None
    try:
        document = read_toml(path)
    except OSError:
        raise InvalidParameter(f"The specification {path} cannot be read. Check that it is TOML.") from None
    columns = document.get("columns")
    if not isinstance(columns, dict):
        raise InvalidParameter(f"The specification {path} has no [columns]. Declare the columns there.")
    return Schema.read(columns)


def distances_of(
    ordered: Sequence[str], hierarchical: Sequence[str], folder: Path | None
) -> "dict[str, Ground | GeneralisationHierarchy]":
    """How far apart sensitive values are, where it is asked for: in order, or by a tree in the folder."""
    from sourdine.anonymity import Ground, read_hierarchies

    trees = read_hierarchies(folder, hierarchical) if folder is not None else {}
    lacking = [name for name in hierarchical if name not in trees]
    if lacking:
        raise InvalidParameter(
            f"There is no hierarchy for '{lacking[0]}'. Put {lacking[0]}.csv into a folder, and name that "
            "folder with --hierarchies."
        )
    return {**trees, **dict.fromkeys(ordered, Ground.ORDERED)}


def check_page(page: Path | None, others: Sequence[Path | None]) -> None:
    """Refuse a place for a page, also where it would take that of a file which is read or written."""
    if page is not None and any(other is not None and _same(page, other) for other in others):
        raise InvalidParameter(
            f"{page} is another file of this command and is not written over. Name another file with --html."
        )
    show.check_page(page)


def _same(one: Path, other: Path) -> bool:
    # a link, also a hard one, is the file it leads to
    return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))


@contextmanager
def bar(label: str) -> Iterator[Watch]:
    """A bar on stderr that follows a share done; a plain line now and then where it is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(file=sys.stderr)
    if not console.is_terminal:
        lines = show.Lines()
        yield lambda done: lines.tell(f"{label}: {100 * done:.0f} %")
        return
    columns = TextColumn(label), BarColumn(), TimeElapsedColumn()
    with HEARTBEAT.quiet(), Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(label, total=1.0)
        yield lambda done: shown.update(task, completed=done)
