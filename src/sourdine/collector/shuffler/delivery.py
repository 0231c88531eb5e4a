"""Batches on their way: made when reports are enough, sent until the collector has them, then forgotten."""

import urllib.error
import urllib.request
from datetime import date, timedelta

from sourdine.collector.period import LATE
from sourdine.collector.settings import CollectorSettings
from sourdine.collector.shuffler.batches import Batch, drop_rest, seal_batches, settle, waiting_batches
from sourdine.collector.store import ReportStore, StoredQuestion
from sourdine.collector.submission import BodyKind

HEADER = "Sourdine-Shuffler"
"""By what a collector knows its shuffler: a secret that both have."""
_TIME = 60.0  # seconds that a collector may take
_HAS = (200, 201)
_GRACE = timedelta(days=1)  # after a question has closed: a clock may be a day ahead


class DeliveryFailed(Exception):
    """A collector did not take a batch: it is sent again later. The status says why; 0: no answer."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


def pass_on(settings: CollectorSettings, store: ReportStore, day: date) -> int:
    """Make and send batches of all questions that have enough reports; how many were taken.

    When a question is over since a day, what is left of it is too little to be a batch, and is dropped.
    Batches that were refused or not answered are sent again for some days, and hold up nobody else's.
    """
    taken, failed = 0, None
    for question in store.questions():
        if not question.signed.announcement.batch:
            continue
        seal_batches(store, question)
        closes = question.signed.announcement.closes
        for batch in waiting_batches(store, question):
            try:
                _send(settings, question, batch)
                taken += 1
            except DeliveryFailed as problem:
                failed = problem
                if day <= closes + LATE:
                    continue
            settle(store, question, batch)
        if question.closed or day > closes + _GRACE:
            drop_rest(store, question)
    if failed is not None:
        raise failed
    return taken


def _send(settings: CollectorSettings, question: StoredQuestion, batch: Batch) -> None:
    request = urllib.request.Request(
        f"{settings.collector}/v1/questions/{question.question.fingerprint}/reports",
        data=batch.rows.tobytes(),
        headers={
            "Idempotency-Key": batch.id.hex(),
            "Content-Type": str(BodyKind.PACKED),
            HEADER: settings.shuffler_key,
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=_TIME) as answer:
            status = int(answer.status)
    except urllib.error.HTTPError as problem:
        status = problem.code
        problem.close()
    except (OSError, TimeoutError):
        status = 0
    if status not in _HAS:
        raise DeliveryFailed(status)
