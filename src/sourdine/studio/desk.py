"""The desk that a specification lies on: it is opened, shown, changed, one change after the other."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sourdine.accounting.ledger.address import Place as LedgerPlace
from sourdine.core import disk
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.studio.draft_file import ChangedElsewhere, DraftFile, Edit, Place
from sourdine.studio.folder import Folder
from sourdine.studio.header import TableHeader, read_header
from sourdine.studio.jobs import Jobs
from sourdine.studio.review import Review, review
from sourdine.tables import Specification
from sourdine.tables.draft import draft
from sourdine.tables.quality.exact import ExactQuality, mark_checked
from sourdine.tables.release import Watch

Publish = Callable[[Specification, Path, Watch], object]  # pays for a release, and writes its folder


def _cannot(specification: Specification, place: Path, watch: Watch) -> None:
    raise InvalidParameter("This Studio was started without synthetic tables. Nothing was paid.")


_KEPT = 16  # reviews of texts that were seen before, such as while a slider moves


@dataclass(frozen=True)
class Sheet:
    """A specification as it is now: its name in the folder, its file, and what is to be said of it."""

    name: str
    file: DraftFile
    review: Review
    header: TableHeader
    folder: Folder

    @property
    def stem(self) -> str:
        """The name without its ending, for files beside it."""
        return self.name.removesuffix(".toml")

    @property
    def ledger(self) -> LedgerPlace | None:
        """Where the ledger is that is named, None if there is none that Studio may open."""
        name = self.at(("privacy", "ledger"))
        try:
            place = self.folder.ledger_at(self.file.path.parent, name) if isinstance(name, str) else None
        except SourdineError:
            return None
        return place if not isinstance(place, Path) or place.is_file() else None

    def check_reach(self, specification: Specification) -> None:
        """Refuse what lies out of the folder, once more before it is opened: a link may be new."""
        base = self.file.path.parent
        for each in specification.table.sources:
            self.folder.check_files(base, each)
        if specification.privacy.ledger is not None:
            self.folder.ledger_at(base, specification.privacy.ledger)

    def at(self, place: Place) -> Any:
        """What stands at a place, None if nothing does."""
        content: Any = self.file.blocks
        for part in place:
            try:
                content = content[part]
            except (KeyError, IndexError, TypeError):
                return None
        return content


@dataclass(frozen=True)
class PrivateCounts:
    """What did not fit, told privately: column, cell, count, its ends and share, and what to wonder at."""

    rows: tuple[tuple[str, ...], ...]
    warnings: tuple[str, ...]
    words: str


@dataclass
class Desk:
    """All specifications of a folder. Changes are made one after the other, whichever tab they come from."""

    folder: Folder
    publish: Publish
    synthesize: Publish = _cannot
    jobs: Jobs = field(default_factory=Jobs)
    exact: dict[str, ExactQuality] = field(default_factory=dict)  # shown to the data's holder, kept nowhere
    told: dict[str, PrivateCounts] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _seen: dict[tuple[str, str], Review] = field(default_factory=dict)

    def start(self, table: str, *, names: str | None = None, sure: bool = False) -> str:
        """A new specification for a table, or the one that is there; its name."""
        place = self.folder.inside(table)
        with self._lock:
            for name in self.folder.specifications():
                if self._is_about(name, place):
                    return name
            name = self.folder.free(Path(table).name.split(".")[0] or "table", ".toml")
            spec = self.folder.root / name
            text = draft(place, spec, names=names or None, sure=sure)
            disk.write_whole(spec, text, over=False)
        return name

    def sheet(self, name: str) -> Sheet:
        """A specification as it is now."""
        place = self.folder.inside(name)
        if place.suffix != ".toml" or not place.is_file():
            raise InvalidParameter(f"There is no specification {name} in this folder.")
        # by one name, whatever links and dots it was asked with: work is begun once for each
        return self._sheet(self.folder.name_of(place), DraftFile.read(place))

    def carry_out(self, name: str, version: str, deed: Callable[[Sheet], None]) -> Sheet:
        """A specification after something was begun for the version that its author has seen."""
        with self._lock:
            before = self.sheet(name)
            if before.file.version != version:
                raise ChangedElsewhere(before.file.path)
            deed(before)
        return self.sheet(name)

    def change(
        self, name: str, version: str, edits: Callable[[Sheet], Sequence[Edit]], *, paid: bool = False
    ) -> Sheet:
        """A specification after some changes to the version that their author has seen.

        What was `paid` for is kept, in the file as it is by then, if another program changed it meanwhile.
        """
        with self._lock:
            before = self.sheet(name)
            if before.file.version != version:
                raise ChangedElsewhere(before.file.path)
            made = edits(before)
            if not made:
                return before
            file = DraftFile.read(before.file.path) if paid else before.file
            after = file.with_edits(made)
            after.write(file)
        return self._sheet(before.name, after)

    def mark(self, place: Path) -> None:
        """Write the mark of exact counts, while no other change is under way that could write over it."""
        with self._lock:
            mark_checked(place)

    def finish(self) -> None:
        """Wait until nothing that may be paid is under way."""
        self.jobs.wait()
        with self._lock:
            pass

    def _sheet(self, name: str, file: DraftFile) -> Sheet:
        key = name, file.version
        blocks = file.blocks
        found = self._seen.get(key)
        if found is None or "joins" in blocks or "hierarchies" in blocks:  # other files, which change too
            found = review(blocks, self.folder, file.path.parent)
            self._seen[key] = found
            for old in list(self._seen)[:-_KEPT]:
                self._seen.pop(old, None)
        return Sheet(name, file, found, read_header(blocks, self.folder, file.path.parent), self.folder)

    def _is_about(self, name: str, table: Path) -> bool:
        try:
            place = self.folder.inside(name)
            source = DraftFile.read(place).blocks["table"]["source"]
            return isinstance(source, str) and (place.parent / source).resolve() == table
        except (InvalidParameter, KeyError, TypeError):
            return False
