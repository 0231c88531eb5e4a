"""Where the lines of a ledger are kept: a file, or a server; what holds for both is here.

A line is durable before `append` returns. Lines form a chain, and a mark apart from them tells where it ends,
so that a changed or missing line shows, the newest too.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic, sleep
from typing import ClassVar, Generic, TypeVar

from sourdine.accounting.ledger import problems
from sourdine.accounting.ledger.address import Place
from sourdine.accounting.ledger.chain import (
    START,
    Build,
    LedgerLine,
    Mark,
    Row,
    fingerprint,
    follows,
    mark_of,
    sound,
)
from sourdine.accounting.ledger.gate import GATE
from sourdine.core.errors import LedgerError

C = TypeVar("C")
T = TypeVar("T")
_PAUSE = 0.0002  # seconds between two tries, at first
_CHUNK = 2000  # lines read at a time: a charge waits while others read
_MARKS: dict[tuple[Hashable, str], Mark] = {}
"""How far this process has seen each ledger come, by its place and the fingerprint of its terms."""
_VERIFIED: dict[tuple[Hashable, str], LedgerLine] = {}
"""Up to which line this process has priced every line again, where others may write lines by SQL."""
Verify = Callable[[LedgerLine | None, Sequence[LedgerLine]], None]
"""Price lines again that follow a verified one, and derive their totals from it, or raise."""


def _accept(before: LedgerLine | None, lines: Sequence[LedgerLine]) -> None:
    """Take lines as they are written."""


class Store(ABC, Generic[C]):
    """The lines behind a ledger, reached through a connection of some kind."""

    failures: tuple[type[Exception], ...]
    patience: ClassVar[float] = 60.0  # seconds to wait for others
    quiet: ClassVar[float] = 5.0  # seconds of waiting, after which people are told what is waited for
    longest_pause: ClassVar[float]  # seconds between two tries, at last

    def __init__(self, path: Place, place: Hashable, turn: threading.RLock) -> None:
        self.path = path
        self.is_backup = False
        self._place = place
        self._turn = turn  # a finalizer may take a turn within another
        self._in_use = False
        self._connection: C | None = None
        self._terms = ""
        self._checked: tuple[LedgerLine, str] | None = None  # a line found right, with the mark before it
        self.verify: Verify = _accept

    # what each kind does in its own way

    @abstractmethod
    def _connect(self) -> C:
        """The connection, opened if there is none."""

    @abstractmethod
    def let_go(self) -> None:
        """Close the connection, if there is one; the next use opens another."""

    @abstractmethod
    def _append(self, connection: C, build: Build, digest: str) -> LedgerLine:
        """One more line, durable when this returns."""

    @abstractmethod
    def _read_terms(self, connection: C) -> list[Row]:
        """The one row of the terms, written like a line."""

    @abstractmethod
    def _end(self, connection: C) -> tuple[list[Row], Mark | None]:
        """The newest two lines, the newest first, and the mark; None where the form has no mark."""

    @abstractmethod
    def _between(self, connection: C, first: int, last: int, most: int) -> list[Row]:
        """So many lines of those after `first` and up to `last`, in order."""

    @abstractmethod
    def _passes(self, problem: Exception) -> bool:
        """Whether a problem is one that waiting may mend; nothing was spent by it."""

    @abstractmethod
    def _explain(self, act: str, problem: Exception) -> LedgerError:
        """A problem in a sentence."""

    def _announce(self, problem: Exception) -> None:
        """Tell what is waited for."""
        problems.announce(f"The ledger {self.path} is kept busy by others.")

    @abstractmethod
    def _retire(self, connection: C, end: Mark, move: str) -> None:
        """Become a backup that knows by which move, if this is still the end; durable when this returns."""

    @abstractmethod
    def _activate(self, connection: C, move: str) -> None:
        """Become the ledger, from the backup that a move has made; durable when this returns."""

    @abstractmethod
    def _read_move(self, connection: C) -> str:
        """By which move this is a backup, empty if by none; durable when this returns."""

    def _settle(self) -> None:
        """Leave nothing half done between two uses."""

    # what is the same

    def terms(self) -> str:
        """The terms the ledger was made with."""
        rows = self._patiently("read", self._read_terms)
        if len(rows) != 1 or not sound(rows[0]) or fingerprint("", rows[0][1]) != rows[0][3]:
            raise problems.damaged(self.path)
        return rows[0][1]

    def append(self, build: Build, digest: str = "") -> LedgerLine:
        """One more line, durable when this returns.

        `build` gets the last line and gives the new content and total, or raises to refuse; nobody else
        can write in between. `digest` is of what is asked for, whatever the last line is.
        """
        return self._patiently("write", lambda connection: self._append(connection, build, digest))

    def last(self) -> LedgerLine | None:
        """The newest line."""
        return self._patiently("read", self._newest)

    def _newest(self, connection: C) -> LedgerLine | None:
        """The newest line: it must fit the line before, the mark, and what this process has seen."""
        line = self._fitting_end(connection, self._end)
        self._remember(line)
        return line

    def _fitting_end(
        self, connection: C, end: Callable[[C], tuple[list[Row], Mark | None]]
    ) -> LedgerLine | None:
        known = self._known_mark()  # before: another thread may charge meanwhile
        rows, mark = end(connection)
        line = self._fitting(rows) if rows else None
        if mark is not None and mark_of(line) != mark:
            raise problems.damaged(self.path)
        if not self.is_backup and mark_of(line) != known:
            self._check_seen(connection, mark_of(line), known)
        self._verify_since(connection, rows)
        return line

    def _verify_since(self, connection: C, rows: list[Row]) -> None:
        """Verify what was added since this process did so last, given the newest rows, the newest first."""

    def _known_mark(self) -> Mark:
        """How far this process has seen the ledger come."""
        return _MARKS.get((self._place, self._terms), START)

    def _remember(self, line: LedgerLine | None) -> None:
        """Never be shown less from now on."""
        key = self._place, self._terms
        if line is not None and not self.is_backup and line.number > _MARKS.get(key, START).number:
            _MARKS[key] = mark_of(line)

    def _check_seen(self, connection: C, end: Mark, known: Mark) -> None:
        rows = self._between(connection, known.number - 1, known.number, 1)
        if known != START and (end.number < known.number or [row[3] for row in rows] != [known.fingerprint]):
            raise problems.shortened(self.path, end.number, known.number)

    def line(self, number: int) -> LedgerLine | None:
        """One line, if its mark fits its content and the line before."""
        rows = self._rows(number - 2, number, 2)
        return self._fitting(rows[::-1]) if rows and rows[-1][0] == number else None

    def _fitting(self, rows: list[Row]) -> LedgerLine:
        """A line that goes with the one before; a pair found right once needs no second proof."""
        if not all(map(sound, rows)):
            raise problems.damaged(self.path)
        line = LedgerLine._make(rows[0])
        before = Mark(rows[1][0], rows[1][3]) if len(rows) > 1 else START
        if (line, before.fingerprint) != self._checked or line.number != before.number + 1:
            if not follows(line, before):
                raise problems.damaged(self.path)
            self._checked = (line, before.fingerprint)
        return line

    def lines(self) -> Iterator[LedgerLine]:
        """Every line there is now, in order, checked against the chain and the mark."""
        end, before = mark_of(self.last()), START
        while before.number < end.number:
            rows = self._rows(before.number, end.number, _CHUNK)
            for row in rows:
                line = LedgerLine._make(row)
                if not sound(row) or not follows(line, before):
                    raise problems.damaged(self.path)
                before = mark_of(line)
                yield line
            if not rows:
                break
        if before != end:
            raise problems.damaged(self.path)

    def retire(self, end: Mark, move: str) -> None:
        """Pay for nothing any more, since all up to this end is kept elsewhere; more lines refuse it."""

        def work(connection: C) -> None:
            if not (self.is_backup and self._read_move(connection) == move):  # by a try that was not told
                self._retire(connection, end, move)

        self._patiently("write", work)
        self.close()

    def activate(self, move: str) -> None:
        """Take over what a move has brought here."""

        def work(connection: C) -> None:
            if self.is_backup:
                self._activate(connection, move)
            else:
                self._read_move(connection)  # a try before has done it, and this waits until it is durable

        self._patiently("write", work)
        self.close()

    def move(self) -> str:
        """By which move this is a backup; empty if by none."""
        return self._patiently("read", self._read_move)

    def close(self) -> None:
        """Let go of the connection; the next use opens another."""
        with GATE.inside(), self._alone():
            self.let_go()

    def _rows(self, first: int, last: int, most: int) -> list[Row]:
        return self._patiently("read", lambda connection: self._between(connection, first, last, most))

    def _patiently(self, act: str, work: Callable[[C], T]) -> T:
        """Do some work, again and again while others are at it; in between a fork may pass."""
        begun, pause, is_announced = monotonic(), _PAUSE, False
        while True:
            with GATE.inside(), self._alone():
                try:
                    result = work(self._connect())
                    self._look_again()
                    return result
                except self.failures as problem:
                    waited = monotonic() - begun
                    if not self._passes(problem) or waited > self.patience:
                        if isinstance(problem, LedgerError):
                            self.let_go()
                            raise
                        error = self._explain(act, problem)  # which may ask the server who is in the way
                        self.let_go()
                        raise error from problem
                    if waited >= self.quiet and not is_announced:
                        is_announced = True
                        self._announce(problem)
                finally:
                    self._settle()
            sleep(pause)
            pause = min(2 * pause, self.longest_pause)

    def _look_again(self) -> None:
        """Refuse what was read, if it may have changed meanwhile."""

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time; the same thread only once."""
        with self._turn:
            if self._in_use:
                raise LedgerError(
                    f"The ledger {self.path} was used by a signal handler in the middle of a charge. "
                    "Nothing was spent by the handler. Use it outside of signal handlers."
                )
            self._in_use = True
            try:
                yield
            finally:
                self._in_use = False
