"""Batches: all reports that came in, once they are enough, taken out and mixed in one transaction.

A batch waits in the store of the shuffler, under a random name, until the collector has it. The name is its
submission id there, so that a batch which is sent again after a crash counts once.
"""

import secrets
from dataclasses import dataclass

import numpy as np

from sourdine.collector.announcement import MOST_BATCH
from sourdine.collector.blocks import packed_block, random_numbers
from sourdine.collector.store import ReportStore, StoredQuestion
from sourdine.core.randomness.bits import SYSTEM, Bits
from sourdine.local.oracle import Bytes
from sourdine.local.shuffle import permutation

WAITING = ""
"""The period of reports that are in no batch yet: a shuffler keeps no time."""
_BATCH = "batch "
_ID = 16  # bytes


@dataclass(frozen=True, eq=False)
class Batch:
    """Reports that are passed on together, in an order that tells nothing."""

    id: bytes
    rows: Bytes

    @property
    def period(self) -> str:
        """Under which it is kept."""
        return _BATCH + self.id.hex()


def seal_batches(store: ReportStore, question: StoredQuestion, bits: Bits = SYSTEM) -> list[Batch]:
    """Make a batch of all reports that wait, if they are as many as was announced.

    So many that a collector would not take them together are several batches, drawn at random.
    """
    least = question.signed.announcement.batch
    try:
        store.begin_alone()
        rows = _rows(store, question, WAITING)
        if len(rows) < max(least, 1):
            store.rollback()
            return []
        parts = np.array_split(rows[permutation(len(rows), bits)], -(-rows.nbytes // MOST_BATCH))
        batches = [Batch(secrets.token_bytes(_ID), np.ascontiguousarray(part)) for part in parts]
        store.drop(question.number, WAITING)
        for batch in batches:
            content = packed_block(random_numbers(len(batch.rows)), batch.rows)
            store.add_block((question.number, batch.period), len(batch.rows), content)
        store.commit()
    except BaseException:
        store.rollback()
        raise
    return batches


def waiting_batches(store: ReportStore, question: StoredQuestion) -> list[Batch]:
    """Batches that the collector may not have yet, each in the order of its block's random numbers.

    It is the same at every try, as the collector asks of what is sent again.
    """
    names = [period for period in store.periods(question.number) if period.startswith(_BATCH)]
    return [Batch(bytes.fromhex(name.removeprefix(_BATCH)), _rows(store, question, name)) for name in names]


def settle(store: ReportStore, question: StoredQuestion, batch: Batch) -> None:
    """Forget a batch that the collector has."""
    _drop(store, question, batch.period)


def drop_rest(store: ReportStore, question: StoredQuestion) -> int:
    """Forget what is left of a question that is over, too few to hide each other; how many they were."""
    count = len(_rows(store, question, WAITING))
    if count:
        _drop(store, question, WAITING)
    return count


def _drop(store: ReportStore, question: StoredQuestion, period: str) -> None:
    try:
        store.begin_alone()
        store.drop(question.number, period)
        store.commit()
    except BaseException:
        store.rollback()
        raise


def _rows(store: ReportStore, question: StoredQuestion, period: str) -> Bytes:
    parts = [rows for _, rows in store.stream(question.number, period)]
    return np.concatenate([np.zeros((0, question.question.oracle.width), np.uint8), *parts])
