"""Files of records: only the header is looked at, and how a line is read depends on no other line.

An engine that guesses the dialect of a file guesses from its records, and one record could change how all the
others are read. So the delimiter is that of the header, quotes are double quotes, and every field is text.
"""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sourdine.core.errors import InvalidParameter
from sourdine.frames.expression import literal

if TYPE_CHECKING:
    import duckdb

Open = Callable[["duckdb.DuckDBPyConnection"], "duckdb.DuckDBPyRelation"]
TEXT = (".csv", ".tsv", ".json", ".jsonl", ".ndjson")
ENDINGS = (*TEXT, ".parquet")
ENCODINGS = ("utf-8", "latin-1", "utf-16")
_DELIMITERS = (",", ";", "\t", "|")


def opener(path: Path, wanted: Sequence[str], encoding: str = "utf-8") -> tuple[Open, list[str] | None]:
    """How to open a file, and the names its header holds; a file without one has the wanted columns."""
    ending, escaped = path.suffix.lower(), _pattern(path)
    if ending in (".csv", ".tsv"):
        return _delimited(path, "\t" if ending == ".tsv" else None, wanted, encoding)
    if encoding != "utf-8":
        raise InvalidParameter(f"A file of kind {ending[1:]} has no encoding of its own. Leave it out.")
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


def _delimited(
    path: Path, delimiter: str | None, wanted: Sequence[str], encoding: str
) -> tuple[Open, list[str]]:
    """Lines that are too short or not text are left out, each on its own account.

    One thread reads the file from its start: several would begin inside quotes, where a line break ends no
    record, and take one record for many. Being strict would end the whole release over one odd line break.
    """
    if encoding not in ENCODINGS:
        listed = ", ".join(ENCODINGS)
        raise InvalidParameter(f"The encoding of {path} must be one of {listed}. Save the file as UTF-8.")
    names, found = _header(path, delimiter, encoding)
    for name in wanted:
        if names.count(name) > 1:
            raise InvalidParameter(f"The file {path} has two columns called '{name}'. Rename one of them.")
    columns = [name if name in wanted else f"sourdine_other_{place}" for place, name in enumerate(names)]
    named = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in columns)
    question = (
        f"SELECT * FROM read_csv({literal(_pattern(path))}, auto_detect = false, columns = {{{named}}}, "
        f"header = true, delim = {literal(found)}, quote = '\"', escape = '\"', "
        f"encoding = {literal(encoding)}, ignore_errors = true, parallel = false, strict_mode = false)"
    )
    return lambda connection: connection.sql(question), names


def _header(path: Path, delimiter: str | None, encoding: str) -> tuple[list[str], str]:
    try:
        with path.open(
            encoding="utf-8-sig" if encoding == "utf-8" else encoding, errors="replace", newline=""
        ) as lines:
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


def _pattern(path: Path) -> str:
    """A path as the engine takes it, which reads some characters as a pattern for several files."""
    return "".join(f"[{mark}]" if mark in "*?[" else mark for mark in str(path))
