"""The names of a table's columns, and their types where its format states them. No value is ever read.

Of a file of text it is the first line, of Parquet the footer: both take as long for a hundred million rows as
for ten.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from sourdine.core.errors import InvalidParameter
from sourdine.studio.folder import DRAFTED, Folder
from sourdine.tables.draft import read_types

_RECORD = (
    "The first line of the file looks like a record, so only names in it that are declared are shown. If it "
    "holds names, write header = true under [table]; if not, header = false and their names."
)


@dataclass(frozen=True)
class TableHeader:
    """The columns by name, each with the type its file states: '' where it states none, None for others.

    `trouble` says why there are none.
    """

    types: Mapping[str, str | None] = field(default_factory=dict)
    trouble: str = ""
    size: int = 0  # in bytes

    @property
    def states_types(self) -> bool:
        """Whether the format says what the columns hold."""
        return any(self.types.values())


def read_header(blocks: Mapping[str, Any], folder: Folder, base: Path) -> TableHeader:
    """The header of the table that a specification names."""
    table = blocks.get("table", {})
    source = table.get("source") if isinstance(table, Mapping) else None
    if not isinstance(source, str):
        return TableHeader(trouble="The table is made of several files; its columns are those declared.")
    try:
        place = folder.within(base, source)
        names = table.get("names")
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return TableHeader(dict.fromkeys(names, ""), size=place.stat().st_size if place.is_file() else 0)
        if table.get("header") is False:  # the first line is a record
            return TableHeader(trouble="The file has no header. Give the names of its columns.")
        if place.suffix.lower() not in DRAFTED or not place.is_file():
            missing = "" if place.exists() else f"There is no file {source}. "
            return TableHeader(trouble=f"{missing}The columns are those declared.")
        status = place.stat()
        sure = table.get("header") is True
        header = _read(place, status.st_mtime_ns, status.st_size, sure)
        declared = blocks.get("columns", {})
        if header.trouble and not sure and declared:  # what is declared under its name is a name
            names = _read(place, status.st_mtime_ns, status.st_size, True).types
            kept = {name: kind for name, kind in names.items() if name in declared}
            return TableHeader(kept, _RECORD, status.st_size)
        return header
    except (InvalidParameter, OSError) as problem:
        return TableHeader(trouble=str(problem))


@lru_cache(maxsize=64)
def _read(place: Path, changed: int, size: int, sure: bool) -> TableHeader:
    try:
        return TableHeader(read_types(place, sure=sure and place.suffix.lower() != ".parquet"), size=size)
    except InvalidParameter as problem:
        return TableHeader(trouble=str(problem))
