"""Where reports are kept: on the disk before they are acknowledged, each once, in no order of arrival.

A report gets a random number of its own. It first lies loose under that number; once many have come in, they
are packed into a block, sorted by their numbers, so that within a block neither place nor order tells when a
report came or with which others. When a period is over, all its blocks are mixed. What is stored of a
submission is a digest of its id, apart from its reports. Counts are always those of the reports that are
there, and of those that were removed when their time was over.

One writer at a time has a store open for writing in a process; several processes may have one each.
"""

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from sourdine.collector.announcement import SignedAnnouncement
from sourdine.collector.blocks import (
    NUMBER,
    Snapshot,
    loose_block,
    packed_block,
    random_numbers,
    unpacked_block,
)
from sourdine.collector.submission import (
    ReadReports,
    Submission,
    SubmissionOutcome,
    SubmissionStanding,
    read_reports,
)
from sourdine.core.errors import SourdineError
from sourdine.local.estimate import Counts
from sourdine.local.lines import LineFault, Numbers
from sourdine.local.oracle import Bytes
from sourdine.local.question import Question

VERSION = 2
"""The form of the tables."""
MOST_BYTES = 1 << 25
"""About how much of a store is in memory at once when it is counted."""
LEAST_BLOCK = 256
"""Reports that are in a block at least, so that none tells when a single one came in."""
_BLOCK, _BLOCK_BYTES = 512, 1 << 22


class StoreError(SourdineError):
    """A store of reports cannot be used."""


def check_version(version: int, place: str) -> None:
    """Refuse a store of another version of this package."""
    if version > VERSION:
        raise StoreError(f"The store {place} was made by a later version of sourdine. Use that one.")
    if version < VERSION:
        raise StoreError(
            f"The store {place} was made by an earlier version of sourdine, with other tables. Read it with "
            "that one, and name another place for a new store."
        )


@dataclass(frozen=True)
class StoredQuestion:
    """A question in a store, and the day on which it was closed before its time, if it was."""

    number: int
    signed: SignedAnnouncement
    closed: str = ""

    @property
    def question(self) -> Question:
        """What was asked."""
        return self.signed.announcement.question

    def is_over(self, period: str, day: date) -> bool:
        """Whether no report of a period can come in any more on a day."""
        announcement = self.signed.announcement
        if self.closed and self.closed < day.isoformat():
            return True
        return announcement.period.last_day(period, announcement.closes) < day


Place = tuple[int, str]
"""A question's number, and a period."""


class ReportStore(ABC):
    """The tables of a collector. A subclass knows how one database is spoken to."""

    def __init__(self) -> None:
        self._questions: dict[int, Question] = {}
        self._loose: dict[Place, int] = {}

    # what a database does

    @abstractmethod
    def close(self) -> None:
        """Let go of the database."""

    @abstractmethod
    def questions(self) -> list[StoredQuestion]:
        """All questions that were ever asked here."""

    def register(self, signed: SignedAnnouncement) -> int:
        """Take a question in, or a later version of its announcement; its number in the store."""
        announcement = signed.announcement
        for each in self.questions():
            same = each.question.fingerprint == announcement.fingerprint
            if same and each.question.identity != announcement.question.identity:
                raise StoreError(
                    f"The store has another question with the fingerprint {announcement.fingerprint}, which "
                    "does not happen by chance. Ask whoever signed it."
                )
            if not same and announcement.tokens and each.signed.announcement.tokens == announcement.tokens:
                raise StoreError(
                    f"The question {each.question.fingerprint} has the same key of tokens, so that a token "
                    "would be good for both. Make a key for each with 'sourdine collect token-key'."
                )
        return self._register(signed)

    @abstractmethod
    def _register(self, signed: SignedAnnouncement) -> int:
        """Take in an announcement; one of a lower version changes nothing."""

    @abstractmethod
    def close_question(self, number: int, day: str) -> None:
        """Take no more reports to a question from now on."""

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction that writes."""

    @abstractmethod
    def begin_alone(self) -> None:
        """Begin a transaction during which nobody else writes."""

    @abstractmethod
    def commit(self) -> None:
        """End the transaction; what it wrote is on the disk."""

    @abstractmethod
    def rollback(self) -> None:
        """Undo the transaction, if there is one and the database still answers."""

    @abstractmethod
    def add_keys(self, submissions: Sequence[Submission]) -> dict[bytes, bytes]:
        """Keep the keys of submissions; of those that are there already, the check of their bodies."""

    @abstractmethod
    def has_keys(self, number: int) -> bool:
        """Whether keys of submissions to a question are there."""

    @abstractmethod
    def closed(self) -> set[int]:
        """The questions that take no reports, as the transaction sees them."""

    @abstractmethod
    def add_loose(self, place: Place, numbers: Numbers, rows: Bytes) -> None:
        """Keep reports one by one."""

    @abstractmethod
    def take_loose(self, place: Place, count: int) -> list[tuple[int, bytes]]:
        """Remove at most so many loose reports and return them."""

    @abstractmethod
    def count_loose(self, place: Place) -> int:
        """How many reports lie loose."""

    @abstractmethod
    def add_block(self, place: Place, reports: int, content: bytes, *, mixed: bool = False) -> None:
        """Keep a block, under a random number."""

    @abstractmethod
    def unmixed(self, place: Place) -> list[tuple[int, int]]:
        """The blocks that were not mixed yet, in the order of their random numbers, and their reports."""

    @abstractmethod
    def take_block(self, number: int) -> bytes:
        """Remove a block and return it."""

    @abstractmethod
    def add_events(self, events: Mapping[tuple[int, str], int]) -> None:
        """Count what happened, by question (0: none) and kind."""

    @abstractmethod
    def events(self) -> dict[tuple[int, str], int]:
        """What happened so far."""

    @abstractmethod
    def snapshot(self, number: int, known: frozenset[int]) -> Snapshot:
        """What there is of a question at one moment; blocks that are known are named only."""

    @abstractmethod
    def periods(self, number: int) -> list[str]:
        """The periods of which single reports are there."""

    @abstractmethod
    def stream(self, number: int, period: str | None = None) -> Iterator[tuple[Numbers, Bytes]]:
        """All reports to a question at one moment, or those of a period, with their numbers."""

    @abstractmethod
    def forget(
        self, number: int, periods: Sequence[str], sealed: Mapping[str, Counts], *, keys: bool
    ) -> None:
        """Within a transaction, keep counts in place of the single reports of periods, perhaps of keys."""

    @abstractmethod
    def drop(self, number: int, period: str) -> None:
        """Within a transaction, remove the single reports of a period."""

    @abstractmethod
    def tidy(self) -> None:
        """Make sure that what was removed is gone from the disk too, as far as the database can tell."""

    @abstractmethod
    def sealed(self, number: int) -> dict[str, Counts]:
        """The counts of reports that were removed, by period."""

    # what is the same on all of them

    def write(
        self, submissions: Sequence[Submission], events: Mapping[tuple[int, str], int] | None = None
    ) -> list[SubmissionOutcome]:
        """Store submissions in one transaction. When this returns, they are on the disk.

        Whatever fails, nothing of them is stored, or all of it and nobody knows: then they may be sent again.
        """
        reports = self._read(submissions)
        try:
            self.begin()
            outcomes, happened = self._store(submissions, reports)
            happened.update(events or {})
            if happened:
                self.add_events(happened)
            self.commit()
        except BaseException:
            self._loose.clear()
            self.rollback()
            raise
        return outcomes

    def _read(self, submissions: Sequence[Submission]) -> list[ReadReports]:
        by_question: dict[int, list[int]] = defaultdict(list)
        for i, each in enumerate(submissions):
            by_question[each.question].append(i)
        reports: dict[int, ReadReports] = {}
        for number, places in by_question.items():
            some = read_reports(self._question(number), [submissions[i] for i in places])
            reports.update(zip(places, some, strict=True))
        return [reports[i] for i in range(len(submissions))]

    def _question(self, number: int) -> Question:
        if number not in self._questions:
            self._questions.update({each.number: each.question for each in self.questions()})
        return self._questions[number]

    def _store(
        self, submissions: Sequence[Submission], reports: Sequence[ReadReports]
    ) -> tuple[list[SubmissionOutcome], Counter[tuple[int, str]]]:
        first: dict[bytes, int] = {}
        for i, (each, content) in enumerate(zip(submissions, reports, strict=True)):
            if len(content.rows):
                first.setdefault(each.key, i)
        closed = self.closed() if first else set()
        first = {key: i for key, i in first.items() if submissions[i].question not in closed}
        old = self.add_keys([submissions[i] for i in first.values()]) if first else {}
        checks = {key: old.get(key) or submissions[i].check for key, i in first.items()}
        first = {key: -1 if key in old else i for key, i in first.items()}
        outcomes, happened = [], Counter[tuple[int, str]]()
        rows: dict[Place, list[Bytes]] = defaultdict(list)
        for i, (each, content) in enumerate(zip(submissions, reports, strict=True)):
            outcome = _outcome(each, content, None if each.key not in first else first[each.key] == i, checks)
            outcomes.append(outcome)
            if outcome.standing is SubmissionStanding.STORED:
                rows[each.question, each.period].append(content.rows)
                if each.is_batch:
                    happened[each.question, f"batch-{len(content.rows)}"] += 1
            else:
                happened[each.question, str(outcome.standing)] += 1
            if outcome.standing in (SubmissionStanding.STORED, SubmissionStanding.REFUSED):
                for fault, count in content.faults.items():
                    happened[each.question, str(fault)] += count
        for place, parts in rows.items():
            self._keep(place, parts[0] if len(parts) == 1 else np.concatenate(parts))
        return outcomes, happened

    def mix(self, place: Place) -> int:
        """Put the reports of a period that is over into new blocks, by their random numbers; how many.

        So many as a memory holds are mixed at once, of blocks that were drawn from all: then nothing tells
        which ones came in one after another.
        """
        width, mixed = self._question(place[0]).oracle.width, 0
        while True:
            try:
                self.begin_alone()
                parts = [loose_block(self.take_loose(place, MOST_BYTES // (NUMBER + width)), width)]
                size = 0
                for number, reports in self.unmixed(place):
                    if size > MOST_BYTES:
                        break
                    parts.append(unpacked_block(self.take_block(number), width))
                    size += reports * (NUMBER + width)
                numbers = np.concatenate([each for each, _ in parts])
                rows = np.concatenate([each for _, each in parts])
                order = np.argsort(numbers)
                most = max(_BLOCK_BYTES // (NUMBER + width), 1)
                for start in range(0, len(rows), most):
                    part = order[start : start + most]
                    content = packed_block(numbers[part], rows[part])
                    self.add_block(place, len(part), content, mixed=True)
                self.commit()
            except BaseException:
                self._loose.clear()
                self.rollback()
                raise
            self._loose.pop(place, None)
            mixed += len(rows)
            if not len(rows):
                return mixed

    def _keep(self, place: Place, rows: Bytes) -> None:
        """Keep reports loose, or in a block with those that lie loose, if they are many together."""
        width = rows.shape[1]
        enough = max(LEAST_BLOCK, min(_BLOCK, _BLOCK_BYTES // (NUMBER + width)))
        numbers = random_numbers(len(rows))
        if place not in self._loose:
            self._loose[place] = self.count_loose(place)
        if self._loose[place] + len(rows) < enough:
            self.add_loose(place, numbers, rows)
            self._loose[place] += len(rows)
            return
        loose = self.take_loose(place, 4 * enough)
        self._loose.pop(place)
        if loose:
            before = np.frombuffer(b"".join(row for _, row in loose), np.uint8).reshape(-1, width)
            numbers = np.concatenate([np.array([number for number, _ in loose], np.uint64), numbers])
            rows = np.concatenate([before, rows])
        for start in range(0, len(rows), 16 * enough):
            part = slice(start, start + 16 * enough)
            self.add_block(place, len(rows[part]), packed_block(numbers[part], rows[part]))


def _outcome(
    each: Submission, content: ReadReports, is_new: bool | None, checks: Mapping[bytes, bytes]
) -> SubmissionOutcome:
    """What becomes of a submission that is new, or not, or (None) whose question is closed."""
    if not len(content.rows):
        return SubmissionOutcome(SubmissionStanding.REFUSED, 0, content.faults)
    if is_new is None:
        return SubmissionOutcome(SubmissionStanding.CLOSED)
    if is_new:
        return SubmissionOutcome(SubmissionStanding.STORED, len(content.rows), content.faults)
    is_same = checks[each.key] == each.check
    return SubmissionOutcome(SubmissionStanding.DUPLICATE if is_same else SubmissionStanding.CONFLICT)


def line_faults(events: Mapping[tuple[int, str], int], number: int) -> dict[str, int]:
    """Of a question's events those about reports that were set apart."""
    names = {str(fault) for fault in LineFault}
    return {kind: count for (each, kind), count in events.items() if each == number and kind in names}
