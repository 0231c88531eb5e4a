"""The folder that Studio was started in: what lies in it, and what does not is not reached."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from sourdine.accounting.ledger.address import Place, place_of
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter
from sourdine.frames.csv.reader import kind_of
from sourdine.frames.files import ENDINGS, find_files
from sourdine.tables.draft import read_types

MOST_FILES = 500  # that are listed
_DEPTH = 3  # of folders in folders
_CERTIFICATE = "/certificate.json"  # of a folder with a release
DRAFTED = (".csv", ".tsv", ".parquet")  # endings of tables that tell the names of their columns


@dataclass(frozen=True)
class Folder:
    """A folder, by its real path; `elsewhere` names a ledger that whoever started it allowed to pay."""

    root: Path
    elsewhere: tuple[str, ...] = ()

    @classmethod
    def of(cls, place: Path, *, ledger: str | None = None) -> "Folder":
        """The folder of a path, with links followed, and perhaps a ledger that lies elsewhere."""
        if ledger is None:
            return cls(place.resolve())
        payer = place_of(ledger)
        return cls(place.resolve(), (str(payer.resolve()) if isinstance(payer, Path) else ledger,))

    def inside(self, name: str) -> Path:
        """The path of a name that is seen from the folder; refused if it leads out of it, by a link too.

        >>> Folder(Path("/data")).inside("../secret")
        Traceback (most recent call last):
        sourdine.core.errors.InvalidParameter: '../secret' does not lie in the folder ...
        """
        return self.within(self.root, name)

    def within(self, base: Path, name: str) -> Path:
        """The path of a name that is seen from a folder in it, such as that of a specification."""
        if "\0" in name or not name:
            raise InvalidParameter("A file's name must not be empty, nor hold the character 0.")
        place = (base / name).resolve()
        if not place.is_relative_to(self.root):
            raise InvalidParameter(
                f"'{name}' does not lie in the folder {self.root.name} that Studio was started in, and it "
                "reaches no other. Start it in a folder that holds everything."
            )
        return place

    def check_files(self, base: Path, name: str) -> None:
        """Refuse a table of which any file leads out of the folder: a pattern or a folder may hold links."""
        place = self.within(base, name)
        if place.is_file():
            return
        try:
            files = find_files(base / name).paths
        except (InvalidParameter, OSError):
            return  # there is none, or none that is read
        for file in files:
            if not file.resolve().is_relative_to(self.root):
                raise InvalidParameter(
                    f"'{name}' holds a link that leads out of the folder {self.root.name} that Studio was "
                    "started in, and it reaches no other. Put the file itself there, or take the link out."
                )

    def ledger_at(self, base: Path, name: str) -> Place:
        """The place of a ledger: a file of the folder, or what was allowed when Studio was started."""
        if name and "\0" not in name:
            place = place_of(name)
            seen = (base / place).resolve() if isinstance(place, Path) else place
            if str(seen if isinstance(seen, Path) else name) in self.elsewhere:
                return seen
            if isinstance(seen, Path) and seen.is_relative_to(self.root):
                return seen
        raise InvalidParameter(
            f"The ledger does not lie in the folder {self.root.name} that Studio was started in. If it shall "
            "pay, stop Studio and allow it: sourdine studio --ledger PLACE"
        )

    def name_of(self, place: Path) -> str:
        """A path in the folder as it is seen from there."""
        return place.resolve().relative_to(self.root).as_posix()

    def tables(self) -> list[str]:
        """The files that can be tables, the compressed ones too."""
        return [name for name in self._names() if kind_of(Path(name)) in ENDINGS]

    def specifications(self) -> list[str]:
        """The files in TOML that hold a [table]; other tools have such files too."""
        return [name for name in self._names() if name.endswith(".toml") and self._is_specification(name)]

    def ledgers(self) -> list[str]:
        """The files that are called ledgers."""
        return [name for name in self._names() if name.endswith(".ledger")]

    def releases(self) -> list[str]:
        """The folders in it that hold a release."""
        return [name.removesuffix(_CERTIFICATE) for name in self._names() if name.endswith(_CERTIFICATE)]

    def free(self, stem: str, ending: str) -> str:
        """A name that nothing in the folder has yet, nor is on its way to have."""
        number = 1
        while True:
            place = self.root / (name := f"{stem}{'' if number == 1 else f'-{number}'}{ending}")
            if not place.exists() and not disk.unfinished(place).exists():
                return name
            number += 1

    def _is_specification(self, name: str) -> bool:
        try:
            with self.inside(name).open(encoding="utf-8-sig") as file:
                text = file.read(1 << 16)
        except (OSError, UnicodeError, InvalidParameter):
            return False
        return any(line.strip().replace(" ", "") == "[table]" for line in text.splitlines())

    def _names(self) -> list[str]:
        found = sorted(self._walk(self.root, 0), key=lambda name: (name.count("/"), name.lower()))
        return found[:MOST_FILES]

    def _walk(self, place: Path, depth: int) -> Iterator[str]:
        """The names of files, hidden ones left out, and of links only those that stay inside."""
        try:
            entries = list(os.scandir(place))
        except OSError:
            return
        for entry in entries:
            if entry.name.startswith((".", "_")) or not Path(entry.path).resolve().is_relative_to(self.root):
                continue
            if entry.is_file():
                yield Path(entry.path).relative_to(self.root).as_posix()
            elif entry.is_dir(follow_symlinks=False) and depth < _DEPTH:
                yield from self._walk(Path(entry.path), depth + 1)


# The names of a table's columns, and their types where its format states them. No value is ever read.
#
# Of a file of text it is the first line, of Parquet the footer: both take as long for a hundred million
# rows as for ten.


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
