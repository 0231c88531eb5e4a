"""The desk that a specification lies on: it is opened, shown, changed, one change after the other."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from sourdine.accounting.certificate import Certificate
from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.address import Place as LedgerPlace
from sourdine.accounting.ledger.numbers import readable
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.files import CERTIFICATE
from sourdine.studio.draft import ChangedElsewhere, DraftFile, Edit, Place
from sourdine.studio.folder import Folder, TableHeader, read_header
from sourdine.studio.review import Review, review
from sourdine.tables import Specification
from sourdine.tables.draft import draft
from sourdine.tables.quality import ExactQuality, mark_checked
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


Work = Callable[["Job"], None]


# Work that goes on in the server while pages come and go: releases, and counts for the data's holder.
#
# Each has a name that cannot be taken twice, so that a double click or a second tab finds what the first
# one began, and pays nothing more. Nothing stops it once it is paid: the server waits for it at its end.

T = TypeVar("T")


class JobState(Enum):
    """How far it came."""

    RUNNING = auto()
    DONE = auto()
    FAILED = auto()


@dataclass
class Job:
    """One piece of work, and how far it is."""

    spec: str
    name: str
    state: JobState = JobState.RUNNING
    done: int = 0
    of: int = 0
    words: str = ""
    _thread: threading.Thread | None = field(default=None, repr=False)

    def watch(self, things: Sequence[T]) -> Iterable[T]:
        """The things one by one, while the page sees how many are left."""
        self.of = len(things)
        return self._counted(things)

    def _counted(self, things: Sequence[T]) -> Iterator[T]:
        for number, thing in enumerate(things):
            self.done = number
            yield thing
        self.done = self.of

    @property
    def running(self) -> bool:
        """Whether it still goes on."""
        return self.state is JobState.RUNNING


@dataclass
class Jobs:
    """All that was begun since the server was started."""

    _jobs: dict[tuple[str, str], Job] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, spec: str, name: str, work: Work) -> Job:
        """Begin some work, unless it was begun or finished already; one at a time for a specification."""
        with self._lock:
            found = self._jobs.get((spec, name))
            if found is not None and found.state is not JobState.FAILED:
                return found
            if self.running(spec) is not None:
                raise InvalidParameter(
                    "Something else is under way for this specification. Nothing was begun: wait for it."
                )
            job = Job(spec, name)
            self._jobs[spec, name] = job
            job._thread = threading.Thread(target=_run, args=(job, work), name=f"studio {name}")
            job._thread.start()
            return job

    def running(self, spec: str) -> Job | None:
        """What goes on for a specification."""
        return next((job for job in self._jobs.values() if job.spec == spec and job.running), None)

    def of(self, spec: str, name: str) -> Job | None:
        """A piece of work by its name."""
        return self._jobs.get((spec, name))

    def newest(self, spec: str) -> Job | None:
        """What was begun last for a specification."""
        return next((job for job in reversed(self._jobs.values()) if job.spec == spec), None)

    def forget(self, spec: str, name: str) -> None:
        """Drop finished work."""
        with self._lock:
            job = self._jobs.get((spec, name))
            if job is not None and not job.running:
                del self._jobs[spec, name]

    def wait(self) -> None:
        """Wait until all of it is finished."""
        for job in list(self._jobs.values()):
            if job._thread is not None:
                job._thread.join()

    @property
    def busy(self) -> bool:
        """Whether anything goes on."""
        return any(job.running for job in self._jobs.values())


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


def _run(job: Job, work: Work) -> None:
    try:
        work(job)
    except SourdineError as problem:
        job.words, job.state = str(problem), JobState.FAILED
    except BaseException:  # its words may quote a record; an engine that panics is no Exception
        job.words = (
            "Something went wrong whose own words may quote a record, so they are not told. If it was "
            "paid already, that stays paid: the history of the ledger shows it."
        )
        job.state = JobState.FAILED
    else:
        job.state = JobState.DONE


# What a ledger has paid for, and what of it nobody has: a release cut off after its charge stays paid.
#
# A ledger is the only witness that outlives the server, whatever ended it. So before something is paid for,
# it is looked for there under its purpose, and paid for again only if somebody says so.


_LEDGERS_KEPT = 8  # ledgers whose lines are remembered
_LINES: dict[str, tuple[object, tuple["LedgerPayment", ...]]] = {}


@dataclass(frozen=True)
class LedgerPayment:
    """A line of a ledger that paid for something."""

    number: int
    purpose: str
    price: str
    when: str
    fingerprint: str

    @property
    def words(self) -> str:
        """What was paid when, as the beginning of a sentence."""
        return f"Line {self.number} of the ledger paid {self.price} for this on {self.when}"


def payments_for(ledger: Ledger, purpose: str) -> list[LedgerPayment]:
    """The lines of a ledger with a purpose, the newest last."""
    status = ledger.status()
    stand, found = _LINES.get(status.ledger, (None, ()))
    if stand != (status.blocks, status.spent):
        found = tuple(
            LedgerPayment(
                number=entry.number,
                purpose=entry.purpose,
                price=f"{status.currency} {readable(entry.price)}",
                when=f"{entry.time:%Y-%m-%d %H:%M} UTC",
                fingerprint=entry.fingerprint,
            )
            for entry in ledger.history()
            if entry.rule is None
        )
        while len(_LINES) >= _LEDGERS_KEPT:
            _LINES.pop(next(iter(_LINES)))
        _LINES[status.ledger] = (status.blocks, status.spent), found
    return [each for each in found if each.purpose == purpose]


def without_release(payments: Iterable[LedgerPayment], folders: Iterable[Path]) -> list[LedgerPayment]:
    """The payments of which none of some folders holds the release."""
    there = {_fingerprint(place / CERTIFICATE) for place in folders}
    return [each for each in payments if each.fingerprint not in there]


def check_again(payments: Iterable[LedgerPayment], confirmed: object, what: str) -> None:
    """Refuse to pay for something again, unless somebody has confirmed the newest line that paid for it."""
    newest = max((each.number for each in payments), default=None)
    if newest is not None and str(confirmed) != str(newest):
        raise InvalidParameter(
            f"Line {newest} of the ledger paid for {what} already, and what is paid stays paid. Confirm that "
            "it is to be paid for once more. Nothing was paid now."
        )


def _fingerprint(place: Path) -> str | None:
    try:
        status = place.stat()
    except OSError:
        return None
    return _read_fingerprint(place, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=256)
def _read_fingerprint(place: Path, changed: int, size: int) -> str | None:
    try:
        return Certificate.from_json(place.read_text(encoding="utf-8")).fingerprint
    except (OSError, UnicodeError, SourdineError):
        return None
