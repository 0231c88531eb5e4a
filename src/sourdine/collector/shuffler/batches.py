"""Batches: all reports that came in, once they are enough, taken out and mixed in one transaction.

A batch waits in the store of the shuffler until the collector has given a receipt for it. Its label names the
seal that made it: by that a batch which is sent again after a crash counts once, and so do reports that are
sealed again in a store that was put back from a backup.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sourdine.collector.announcement import MOST_BATCH
from sourdine.collector.blocks import packed_block, random_numbers
from sourdine.collector.receipt import DIGEST, ID, BatchLabel, passed_digest
from sourdine.collector.store import ReportStore, StoredQuestion, batch_period
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.local.oracle import Bytes
from sourdine.local.shuffle import permutation

WAITING = ""
"""The period of reports that are in no batch yet: a shuffler keeps no time."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Reports that are passed on together, in an order that tells nothing."""

    label: BatchLabel
    rows: Bytes
    digests: bytes = b""
    """Of the submissions of its seal, in the order of the digests."""

    @property
    def id(self) -> bytes:
        """Its submission id at the collector."""
        return self.label.id

    @property
    def body(self) -> bytes:
        """What is sent: the reports, and then the digests."""
        return self.rows.tobytes() + self.digests


def least_batch(store: ReportStore, question: StoredQuestion) -> int:
    """Return how many reports have to wait before they are sealed, as their devices were promised."""
    return max(question.signed.announcement.batch, store.seals(question.number).least, 1)


def seal_batches(store: ReportStore, question: StoredQuestion, bits: Bits = SYSTEM) -> list[Batch]:
    """Make a batch of all reports that wait, if they are as many as was announced.

    So many that a collector would not take them together are several batches, drawn at random. What the
    tables have no more is removed from the raw files too, by `ReportStore.tidy`.
    """
    number = question.number
    try:
        store.begin_alone()
        rows = _rows(store, question, WAITING)
        least = least_batch(store, question)
        if len(rows) < least:
            store.rollback()
            return []
        before, identity = store.seals(number), store.identity()
        digests = b"".join(sorted(passed_digest(identity.secret, key) for key in store.take_fresh(number)))
        count = min(-(-rows.nbytes // MOST_BATCH), max(len(rows) // least, 1))
        parts = np.array_split(rows[permutation(len(rows), bits)], count)
        label = BatchLabel(
            identity.epoch,
            secrets.token_bytes(ID),
            before.seals + 1,
            question.signed.announcement.version,
            len(parts[0]),
            len(digests) // DIGEST,
            parts=len(parts),
        )
        batches = [
            Batch(label, parts[0], digests),
            *(
                Batch(replace(label, part=i, reports=len(parts[i]), submissions=0), parts[i])
                for i in range(1, len(parts))
            ),
        ]
        store.drop(number, WAITING)
        for batch in batches:
            rows = np.ascontiguousarray(batch.rows)
            place = (number, batch_period(batch.id))
            store.add_block(place, len(rows), packed_block(random_numbers(len(rows)), rows))
            store.add_batch(number, batch.label, batch.digests)
        store.set_seals(number, replace(before, seals=label.seal, least=0))
        store.commit()
    except BaseException:
        store.rollback()
        raise
    store.tidy()
    return batches


def waiting_batches(store: ReportStore, question: StoredQuestion) -> list[Batch]:
    """Return batches without a receipt, each in the order of its block's random numbers.

    It is the same at every try, as the collector asks of what is sent again.
    """
    return [
        Batch(label, _rows(store, question, batch_period(label.id)), digests)
        for label, digests in store.batches(question.number, store.identity().epoch)
    ]


def settle(store: ReportStore, question: StoredQuestion, batch: Batch, *, delivered: bool = True) -> None:
    """Forget a batch that the collector has, or that no collector takes any more."""
    try:
        store.begin_alone()
        was_there = store.remove_batch(question.number, batch.label)
        if delivered and was_there:  # else another process on the same store has counted it
            before = store.seals(question.number)
            store.set_seals(
                question.number, replace(before, delivered=before.delivered + batch.label.reports)
            )
        store.commit()
    except BaseException:
        store.rollback()
        raise
    store.tidy()


def drop_rest(store: ReportStore, question: StoredQuestion) -> int:
    """Forget what is left of a question that is over, too few to hide each other; how many they were."""
    count = len(_rows(store, question, WAITING))
    if count:
        try:
            store.begin_alone()
            store.drop(question.number, WAITING)
            store.commit()
        except BaseException:
            store.rollback()
            raise
        store.tidy()
    return count


def forget_keys(store: ReportStore, question: StoredQuestion, day: str) -> None:
    """Forget the digests of submissions to a question that is over, and close it for good."""
    if not store.has_keys(question.number):
        return
    try:
        store.begin_alone()
        store.close_question(question.number, day)
        store.forget_submissions(question.number)
        store.commit()
    except BaseException:
        store.rollback()
        raise
    store.tidy()


def catch_up(store: ReportStore, question: StoredQuestion, known: Sequence[tuple[BatchLabel, bytes]]) -> int:
    """Bring a store that was put back from a backup to what the collector has; how many reports are left out.

    The collector knows seals that this store does not. The first of them took all reports that wait here, so
    they are counted and are removed. The digests of its submissions and of later ones are kept, so that a
    device which never got its answer is told that its report was taken.
    """
    number = question.number
    try:
        store.begin_alone()
        before = store.seals(number)
        # Under the lock: a process beside this one may have made the seals that the collector spoke of.
        later = [(label, digests) for label, digests in known if label.seal > before.seals]
        if not later:
            store.rollback()
            return 0
        dropped = 0
        if any(label.seal == before.seals + 1 for label, _ in later):
            dropped = len(_rows(store, question, WAITING))
            store.drop(number, WAITING)
            store.take_fresh(number)
        for _, digests in later:
            store.add_passed(number, [digests[i : i + DIGEST] for i in range(0, len(digests), DIGEST)])
        delivered = before.delivered + sum(label.reports for label, _ in later)
        store.set_seals(
            number, replace(before, seals=max(label.seal for label, _ in later), delivered=delivered)
        )
        store.commit()
    except BaseException:
        store.rollback()
        raise
    store.tidy()
    return dropped


def _rows(store: ReportStore, question: StoredQuestion, period: str) -> Bytes:
    parts = [rows for _, rows in store.stream(question.number, period)]
    return np.concatenate([np.zeros((0, question.question.oracle.width), np.uint8), *parts])
