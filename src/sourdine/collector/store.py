"""Where reports are kept: on the disk before they are acknowledged, each once, in no order of arrival.

A report gets a random number of its own. It first lies loose under that number; once many have come in, they
are packed into a block, sorted by their numbers, so that within a block neither place nor order tells when a
report came or with which others. When a period is over, all its blocks are mixed. What is stored of a
submission is a digest of its id, apart from its reports. Counts are always those of the reports that are
there, and of those that were removed when their time was over.

One writer at a time has a store open for writing in a process; several processes may have one each.
"""

import secrets
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

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
from sourdine.collector.receipt import DIGEST, ID, BatchLabel, passed_digest
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

VERSION = 3
"""The form of the tables. A store of form 2, of version 0.2, is moved to this one when it is opened."""
OLDEST = 2
MOST_BYTES = 1 << 25
"""About how much of a store is in memory at once when it is counted."""
LEAST_BLOCK = 256
"""Reports that are in a block at least, so that none tells when a single one came in."""
BATCH_PERIOD = "batch "
LOG_OF_TABLES = "log"
_BLOCK, _BLOCK_BYTES = 512, 1 << 22


class StoreError(SourdineError):
    """A store of reports cannot be used."""


def batch_period(name: bytes) -> str:
    """Return the period under which a shuffler keeps the reports of a batch."""
    return f"{BATCH_PERIOD}{name.hex()}"


def check_version(version: int, place: str) -> None:
    """Refuse a store of another version of this package."""
    if version > VERSION:
        raise StoreError(f"The store {place} was made by a later version of sourdine. Use that one.")
    if version < OLDEST:
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

MIGRATION = """
CREATE TABLE {schema}.identity (epoch {bytes} NOT NULL, secret {bytes} NOT NULL);
CREATE TABLE {schema}.revisions (
    question {integer} NOT NULL,
    version {integer} NOT NULL,
    content text NOT NULL,
    PRIMARY KEY (question, version)
);
CREATE TABLE {schema}.seals (
    question {integer} PRIMARY KEY,
    seals {integer} NOT NULL DEFAULT 0,
    least {integer} NOT NULL DEFAULT 0,
    delivered {integer} NOT NULL DEFAULT 0
);
CREATE TABLE {schema}.batches (
    question {integer} NOT NULL,
    store {bytes} NOT NULL,
    seal {integer} NOT NULL,
    part {integer} NOT NULL,
    parts {integer} NOT NULL,
    name {bytes} NOT NULL,
    revision {integer} NOT NULL,
    reports {integer} NOT NULL,
    digests {bytes} NOT NULL,
    PRIMARY KEY (question, store, seal, part, name)
);
CREATE TABLE {schema}.fresh (key {bytes} PRIMARY KEY, question {integer} NOT NULL);
CREATE TABLE {schema}.passed (digest {bytes}, question {integer}, PRIMARY KEY (question, digest));
CREATE TABLE {schema}.leftovers (name text PRIMARY KEY, mark {integer} NOT NULL)
"""
"""What form 3 adds to form 2, for both databases.

`identity` has the epoch of the store, which is its name to others, and a secret; `revisions` every
announcement of a question; `seals` how often a shuffler sealed, the least batch that waiting reports were
promised, and how many reports were delivered; `batches` at a shuffler those that wait, at a collector those
that came; `fresh` the submissions since the last seal; `passed` digests of what batches had that a restored
store knows nothing of; `leftovers` tables whose removed rows may still be in the raw files.
"""


@dataclass(frozen=True)
class StoreIdentity:
    """The name of a store, which a backup has too, and a secret that it draws digests with."""

    epoch: bytes
    secret: bytes = field(repr=False)


@dataclass(frozen=True)
class Seals:
    """What a shuffler's store has sealed of a question."""

    seals: int = 0
    least: int = 0
    """The batch that was announced when reports came in which wait, where a later revision announces less."""
    delivered: int = 0


class ReportStore(ABC):
    """The tables of a collector. A subclass knows how one database is spoken to."""

    _schema = ""
    """The prefix of tables."""

    def __init__(self) -> None:
        self._questions: dict[int, Question] = {}
        self._shuffled: set[int] = set()
        self._promised: dict[int, int] = {}
        self._loose: dict[Place, int] = {}
        self._identity: StoreIdentity | None = None

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
            if not same and set(announcement.token_keys) & set(each.signed.announcement.token_keys):
                raise StoreError(
                    f"The question {each.question.fingerprint} has the same key of tokens, so that a token "
                    "would be good for both. Make a key for each with 'sourdine collect token-key'."
                )
        self.begin()
        try:
            number = self._register(signed)
            self.commit()
        except BaseException:
            self.rollback()
            raise
        return number

    def _register(self, signed: SignedAnnouncement) -> int:
        """Within a transaction, take in an announcement; one of a lower version is not put in force."""
        announcement, text = signed.announcement, signed.to_text()
        before = self.run(
            "SELECT number, version FROM {schema}.questions WHERE fingerprint = ?", announcement.fingerprint
        )
        if not before:
            self.run(
                "INSERT INTO {schema}.questions (fingerprint, version, content) VALUES (?, ?, ?) "
                "ON CONFLICT (fingerprint) DO NOTHING",
                announcement.fingerprint,
                announcement.version,
                text,
            )
        ((number, version),) = self.run(
            "SELECT number, version FROM {schema}.questions WHERE fingerprint = ?", announcement.fingerprint
        )
        number = int(number)
        self.run("INSERT INTO {schema}.seals (question) VALUES (?) ON CONFLICT DO NOTHING", number)
        if announcement.version > version:
            # What waits was promised the batch of the revision that its devices saw.
            promised = self.revisions(number)[int(version)].announcement.batch
            self.run(
                "UPDATE {schema}.seals SET least = ? WHERE question = ? AND least < ?",
                promised,
                number,
                promised,
            )
            self.run(
                "UPDATE {schema}.questions SET version = ?, content = ? WHERE number = ?",
                announcement.version,
                text,
                number,
            )
        self.run(
            "INSERT INTO {schema}.revisions VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            number,
            announcement.version,
            text,
        )
        return number

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
    def take_loose(self, place: Place, count: int | None = None) -> list[tuple[int, bytes]]:
        """Remove loose reports, all or at most so many, and return them."""

    def may_pack(self) -> bool:
        """Within a transaction, return whether no other one takes loose reports until this one ends."""
        return True

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
    def _purge_tables(self, tables: Collection[str]) -> bool:
        """Overwrite what was removed of tables in their files, and return whether it is gone there."""

    @abstractmethod
    def _purge_log(self) -> bool:
        """Remove what was removed of tables from the log, look at it, and return whether it is gone there."""

    @abstractmethod
    def run(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement with `?` for values and `{schema}.` before tables, and return its rows."""

    @abstractmethod
    def run_many(self, text: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Run a statement for each of some rows."""

    @abstractmethod
    def sealed(self, number: int) -> dict[str, Counts]:
        """The counts of reports that were removed, by period."""

    # what is the same on all of them

    def identity(self) -> StoreIdentity:
        """Return the name and the secret of the store."""
        if self._identity is None:
            ((epoch, secret),) = self.run("SELECT epoch, secret FROM {schema}.identity")
            self._identity = StoreIdentity(bytes(epoch), bytes(secret))
        return self._identity

    def _migrate(self) -> None:
        """Within a transaction, fill the tables that form 3 adds."""
        self.run(
            "INSERT INTO {schema}.identity VALUES (?, ?)", secrets.token_bytes(ID), secrets.token_bytes(32)
        )
        self.run("INSERT INTO {schema}.revisions SELECT number, version, content FROM {schema}.questions")
        self.run("INSERT INTO {schema}.seals (question) SELECT number FROM {schema}.questions")
        # Batches of form 2 had no seal: each gets one of its own, under the revision that is in force.
        found = self.run(
            "SELECT b.question, b.period, b.reports, q.version FROM {schema}.blocks AS b "
            "JOIN {schema}.questions AS q ON q.number = b.question "
            "WHERE b.period LIKE 'batch %' ORDER BY b.period"
        )
        store, made = self.identity().epoch, Counter[int]()
        for question, period, reports, version in found:
            made[question] += 1
            name = bytes.fromhex(period.removeprefix("batch "))
            self.add_batch(question, BatchLabel(store, name, made[question], version, reports), b"")
            self.run("UPDATE {schema}.seals SET seals = ? WHERE question = ?", made[question], question)

    def revisions(self, number: int) -> dict[int, SignedAnnouncement]:
        """Return every announcement of a question that was registered, by version."""
        rows = self.run("SELECT version, content FROM {schema}.revisions WHERE question = ?", number)
        return {version: SignedAnnouncement.from_text(text) for version, text in rows}

    def seals(self, number: int) -> Seals:
        """Return what was sealed of a question."""
        rows = self.run("SELECT seals, least, delivered FROM {schema}.seals WHERE question = ?", number)
        return Seals(*rows[0]) if rows else Seals()

    def set_seals(self, number: int, seals: Seals) -> None:
        """Within a transaction, keep what was sealed of a question."""
        self.run(
            "UPDATE {schema}.seals SET seals = ?, least = ?, delivered = ? WHERE question = ?",
            seals.seals,
            seals.least,
            seals.delivered,
            number,
        )

    def add_batch(self, number: int, label: BatchLabel, digests: bytes) -> None:
        """Within a transaction, keep what is known of a batch apart from its reports."""
        self.run(
            "INSERT INTO {schema}.batches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            number,
            label.store,
            label.seal,
            label.part,
            label.parts,
            label.name,
            label.revision,
            label.reports,
            digests,
        )

    def batches(self, number: int, store: bytes, after: int = 0) -> list[tuple[BatchLabel, bytes]]:
        """Return the batches of a store after some seal, in order, with the digests of their submissions."""
        rows = self.run(
            "SELECT name, seal, revision, reports, part, parts, digests FROM {schema}.batches "
            "WHERE question = ? AND store = ? AND seal > ? ORDER BY seal, part",
            number,
            store,
            after,
        )
        return [
            (
                BatchLabel(store, bytes(name), seal, revision, reports, len(digests) // DIGEST, part, parts),
                bytes(digests),
            )
            for name, seal, revision, reports, part, parts, digests in rows
        ]

    def remove_batch(self, number: int, label: BatchLabel) -> bool:
        """Within a transaction, remove a batch and its reports, and return whether it was there."""
        removed = self.run(
            "DELETE FROM {schema}.batches WHERE question = ? AND store = ? AND seal = ? AND part = ? "
            "RETURNING 1",
            number,
            label.store,
            label.seal,
            label.part,
        )
        self.leave("batches")
        self.drop(number, batch_period(label.id))
        return bool(removed)

    def take_fresh(self, number: int) -> list[bytes]:
        """Within a transaction, take the keys of submissions that came since the last seal."""
        rows = self.run("DELETE FROM {schema}.fresh WHERE question = ? RETURNING key", number)
        self.leave("fresh")
        return [bytes(row[0]) for row in rows]

    def add_passed(self, number: int, digests: Sequence[bytes]) -> None:
        """Within a transaction, remember digests of submissions that batches had which this store forgot."""
        self.run_many(
            "INSERT INTO {schema}.passed VALUES (?, ?) ON CONFLICT DO NOTHING",
            [(digest, number) for digest in digests],
        )

    def forget_submissions(self, number: int) -> None:
        """Within a transaction, remove all that is known of submissions to a question."""
        for table in ("submissions", "fresh", "passed", "batches"):
            self.run(f"DELETE FROM {{schema}}.{table} WHERE question = ?", number)
            self.leave(table)

    def _passed(self, submissions: Sequence[Submission]) -> set[bytes]:
        """Return the keys of submissions that a batch had which this store was put back from."""
        secret, found = self.identity().secret, set[bytes]()
        for number in {each.question for each in submissions}:
            if not self.run("SELECT 1 FROM {schema}.passed WHERE question = ? LIMIT 1", number):
                continue
            for each in submissions:
                digest = passed_digest(secret, each.key)
                if each.question == number and self.run(
                    "SELECT 1 FROM {schema}.passed WHERE question = ? AND digest = ?", number, digest
                ):
                    found.add(each.key)
        return found

    def leave(self, table: str) -> None:
        """Within a transaction, note that removed rows of a table may be left in the raw files."""
        self.run(
            "INSERT INTO {schema}.leftovers VALUES (?, 1) "
            "ON CONFLICT (name) DO UPDATE SET mark = leftovers.mark + 1",
            table,
        )

    def leftovers(self) -> dict[str, int]:
        """Return the tables of which removed rows may still be in the raw files."""
        return {str(name): int(mark) for name, mark in self.run("SELECT name, mark FROM {schema}.leftovers")}

    def tidy(self) -> bool:
        """Remove from all files what was removed from the tables, and return whether nothing is left.

        It has to be called again until it returns true: a reader of an older state of the database, which may
        be another program, keeps the pages of that state in the log as long as it reads.
        """
        left = self.leftovers()
        if not left:
            return True
        tables = [name for name in left if name != LOG_OF_TABLES]
        if tables and self._purge_tables(tables):
            self.leave(LOG_OF_TABLES)
            self._is_gone({name: left[name] for name in tables})
        mark = self.leftovers().get(LOG_OF_TABLES)
        if mark is not None and self._purge_log():
            self._is_gone({LOG_OF_TABLES: mark})
        return not self.leftovers()

    def _is_gone(self, marks: Mapping[str, int]) -> None:
        for name, mark in marks.items():  # what was removed meanwhile has a higher mark, and stays
            self.run("DELETE FROM {schema}.leftovers WHERE name = ? AND mark = ?", name, mark)

    def write(
        self,
        submissions: Sequence[Submission],
        events: Mapping[tuple[int, str], int] | None = None,
        *,
        admitted: bool = False,
    ) -> list[SubmissionOutcome]:
        """Store submissions in one transaction. When this returns, they are on the disk.

        Whatever fails, nothing of them is stored, or all of it and nobody knows: then they may be sent again.
        Those that were `admitted` before a question was closed are stored after that too.
        """
        reports = self._read(submissions)
        try:
            self.begin()
            outcomes, happened = self._store(submissions, reports, set() if admitted else self.closed())
            happened.update(events or {})
            if happened:
                self.add_events(happened)
            self.commit()
        except BaseException:
            self._loose.clear()
            self.rollback()
            raise
        return outcomes

    def probe(self, submissions: Sequence[Submission]) -> list[SubmissionOutcome]:
        """Return what would become of submissions: `RECEIVED` where they would be stored. Write nothing."""
        if not submissions:
            return []
        reports, closed = self._read(submissions), self.closed()
        known = self.known_keys([each.key for each in submissions])
        gone = self._passed([each for each in submissions if each.question in self._shuffled])
        found = []
        for each, content in zip(submissions, reports, strict=True):
            if not len(content.rows):
                found.append(SubmissionOutcome(SubmissionStanding.REFUSED, 0, content.faults))
            elif each.question in closed:
                found.append(SubmissionOutcome(SubmissionStanding.CLOSED))
            elif each.key in known or each.key in gone:
                is_same = known.get(each.key, each.check) == each.check
                standing = SubmissionStanding.DUPLICATE if is_same else SubmissionStanding.CONFLICT
                found.append(SubmissionOutcome(standing))
            else:
                found.append(
                    SubmissionOutcome(SubmissionStanding.RECEIVED, len(content.rows), content.faults)
                )
        return found

    def known_keys(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the checks of those keys that are stored."""
        rows = [
            row
            for key in keys
            for row in self.run("SELECT key, body FROM {schema}.submissions WHERE key = ?", key)
        ]
        return {bytes(key): bytes(check) for key, check in rows}

    def promised_batch(self, number: int) -> int:
        """Return the largest batch that any revision of a question announces, 0 where none is shuffled."""
        if number not in self._promised:
            self._promised[number] = max(
                (each.announcement.batch for each in self.revisions(number).values()), default=0
            )
        return self._promised[number]

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
            for each in self.questions():
                self._questions[each.number] = each.question
                if any(one.announcement.batch for one in self.revisions(each.number).values()):
                    self._shuffled.add(each.number)
        return self._questions[number]

    def _store(
        self, submissions: Sequence[Submission], reports: Sequence[ReadReports], closed: set[int]
    ) -> tuple[list[SubmissionOutcome], Counter[tuple[int, str]]]:
        first: dict[bytes, int] = {}
        for i, (each, content) in enumerate(zip(submissions, reports, strict=True)):
            if len(content.rows):
                first.setdefault(each.key, i)
        first = {key: i for key, i in first.items() if submissions[i].question not in closed}
        repeated = self._repeated([submissions[i] for i in first.values() if submissions[i].is_batch])
        first = {key: i for key, i in first.items() if key not in repeated}
        # Only a shuffler gets single submissions to a question that is shuffled.
        single = [
            submissions[i]
            for i in first.values()
            if submissions[i].question in self._shuffled and not submissions[i].is_batch
        ]
        gone = self._passed(single)
        old = self.add_keys([submissions[i] for i in first.values()]) if first else {}
        old |= {each.key: each.check for each in single if each.key in gone}
        fresh = [(each.key, each.question) for each in single if each.key not in old]
        if fresh:
            self.run_many("INSERT INTO {schema}.fresh VALUES (?, ?)", sorted(fresh))
        checks = {key: old.get(key) or submissions[i].check for key, i in first.items()}
        first = {key: -1 if key in old else i for key, i in first.items()}
        outcomes, happened = [], Counter[tuple[int, str]]()
        rows: dict[Place, list[Bytes]] = defaultdict(list)
        for i, (each, content) in enumerate(zip(submissions, reports, strict=True)):
            if each.key in repeated:
                outcome = SubmissionOutcome(SubmissionStanding.REPEATED)
            else:
                is_new = None if each.key not in first else first[each.key] == i
                outcome = _outcome(each, content, is_new, checks)
            outcomes.append(outcome)
            if outcome.standing is SubmissionStanding.STORED:
                rows[each.question, each.period].append(content.rows)
                if each.label is not None:
                    happened[each.question, f"batch-{len(content.rows)}"] += 1
                    self.add_batch(each.question, each.label, each.digests)
            else:
                happened[each.question, str(outcome.standing)] += 1
            if outcome.standing in (SubmissionStanding.STORED, SubmissionStanding.REFUSED):
                for fault, count in content.faults.items():
                    happened[each.question, str(fault)] += count
        for place, parts in rows.items():
            self._keep(place, parts[0] if len(parts) == 1 else np.concatenate(parts))
        return outcomes, happened

    def _repeated(self, batches: Sequence[Submission]) -> set[bytes]:
        """Return the keys of batches whose reports came before, in another batch of the same shuffler.

        A seal has one name. Another one under the number of a seal that is known comes of a store that was
        put back to before that seal, and has its reports again.
        """
        found = set[bytes]()
        for each in batches:
            assert each.label is not None
            rows = self.run(
                "SELECT 1 FROM {schema}.batches WHERE question = ? AND store = ? AND seal = ? AND name <> ?",
                each.question,
                each.label.store,
                each.label.seal,
                each.label.name,
            )
            if rows:
                found.add(each.key)
        return found

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
                if len(rows):
                    count = -(-len(rows) // max(_BLOCK_BYTES // (NUMBER + width), 1))
                    for part in np.array_split(np.argsort(numbers), count):
                        content = packed_block(numbers[part], rows[part])
                        self.add_block(place, len(part), content, mixed=True)
                    self.leave("loose")
                    self.leave("blocks")
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
            self._add_loose(place, numbers, rows)
            self._loose[place] += len(rows)
            return
        # The count above may be of before another process made a block. What this transaction really took
        # decides: a block below the least would show a watcher of public counts when single reports came in.
        # It takes all of them, and only where nobody else takes any: a part of a shuffler's batch in a block
        # would show fewer reports than were mixed.
        loose = self.take_loose(place) if self.may_pack() else []
        self._loose.pop(place)
        if loose:
            before = np.frombuffer(b"".join(row for _, row in loose), np.uint8).reshape(-1, width)
            numbers = np.concatenate([np.array([number for number, _ in loose], np.uint64), numbers])
            rows = np.concatenate([before, rows])
        if len(rows) < LEAST_BLOCK:
            self._add_loose(place, numbers, rows)
            return
        # Even parts: the last of 8,193 cut at every 8,192 would be a block of one report.
        for part in np.array_split(np.arange(len(rows)), -(-len(rows) // (16 * enough))):
            self.add_block(place, len(part), packed_block(numbers[part], rows[part]))

    def _add_loose(self, place: Place, numbers: Numbers, rows: Bytes) -> None:
        """Insert in the order of the random numbers, so that no log has the order of arrival."""
        order = np.argsort(numbers)
        self.add_loose(place, numbers[order], rows[order])


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
