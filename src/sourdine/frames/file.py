"""Files of records: only the header is looked at, and how a line is read depends on no other line.

An engine that guesses the dialect of a file guesses from its records, and one record could change how all the
others are read. So the delimiter is that of the header, quotes are double quotes, and every field is text.
"""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sourdine.core.errors import InvalidParameter

if TYPE_CHECKING:
    import duckdb

Open = Callable[["duckdb.DuckDBPyConnection"], "duckdb.DuckDBPyRelation"]
TEXT = (".csv", ".tsv", ".json", ".jsonl", ".ndjson")
ENDINGS = (*TEXT, ".parquet")
_DELIMITERS = (",", ";", "\t", "|")


def opener(path: Path, wanted: Sequence[str]) -> tuple[Open, list[str] | None]:
    """How to open a file, and the names its header holds; a file without one has the wanted columns."""
    ending, escaped = path.suffix.lower(), _literal(path)
    if ending in (".csv", ".tsv"):
        return _delimited(path, "\t" if ending == ".tsv" else None, wanted)
    if ending == ".parquet":
        return lambda connection: connection.read_parquet(escaped), None
    options: dict[str, Any] = {
        "columns": dict.fromkeys(wanted, "VARCHAR"),
        "format": "array" if ending == ".json" and _is_array(path) else "newline_delimited",
        "records": "true",
        "ignore_errors": True,
    }
    return lambda connection: connection.read_json(escaped, **options), None


def _is_array(path: Path) -> bool:
    """Whether a file is one list of records rather than a record a line."""
    try:
        with path.open("rb") as held:
            return held.read(1 << 12).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    except OSError:
        return False


def _delimited(path: Path, delimiter: str | None, wanted: Sequence[str]) -> tuple[Open, list[str]]:
    """Lines that do not fit the header are left out, each on its own account."""
    names, found = _header(path, delimiter)
    for name in wanted:
        if names.count(name) > 1:
            raise InvalidParameter(f"The file {path} has two columns called '{name}'. Rename one of them.")
    columns: dict[str, str] = {}
    for place, name in enumerate(names):
        columns[name if name in wanted else f"sourdine_other_{place}"] = "VARCHAR"
    options: dict[str, Any] = {
        "auto_detect": False,
        "columns": columns,
        "header": True,
        "sep": found,
        "quotechar": '"',
        "escapechar": '"',
        "ignore_errors": True,
    }
    return lambda connection: connection.read_csv(_literal(path), **options), names


def _header(path: Path, delimiter: str | None) -> tuple[list[str], str]:
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
            first = next(iter(lines), "")
            lines.seek(0)
            found = delimiter or next((mark for mark in _DELIMITERS if mark in first), ",")
            names = next(csv.reader(lines, delimiter=found), [])
    except (OSError, csv.Error):
        names = []
    if not names:
        raise unreadable(path)
    return names, found


def unreadable(path: Path) -> InvalidParameter:
    """What is said of a file that is not of the kind that its name says."""
    kind = path.suffix.lower()[1:]
    return InvalidParameter(
        f"The file {path} cannot be read as {kind}. Check that it is complete and of that kind."
    )


def _literal(path: Path) -> str:
    """A path as the engine takes it, which reads some characters as a pattern for several files."""
    return "".join(f"[{mark}]" if mark in "*?[" else mark for mark in str(path))
