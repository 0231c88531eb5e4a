"""One thread that writes: what came in while the disk was busy is written together, and answered then.

The queue is bounded. When it is full, whoever sends is told to come again, and nothing of theirs is kept.

In the staging mode single reports are answered from memory, and written once a group of them is together:
the database, its log, archives and replicas then have neither the moment nor the order in which they came. A
crash loses what was not written yet, so the answer is "received" and not "stored".
"""

import asyncio
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sourdine.collector.store import LEAST_BLOCK, ReportStore
from sourdine.collector.submission import Submission, SubmissionOutcome, SubmissionStanding
from sourdine.core.random.bits import SYSTEM
from sourdine.local.shuffle import permutation

MOST_TOGETHER = 512  # submissions of one transaction
_MOST_BYTES = 1 << 24  # and their bodies
_MOST_WAITING_BYTES = 1 << 26  # of all bodies in the queue: few long ones fill it as well as many short ones
_IDLE = 1.0  # seconds after which events are written, if nothing else is


class QueueFull(Exception):
    """There are as many submissions waiting as are allowed."""


class StoreFailed(Exception):
    """A transaction failed: its submissions are not acknowledged, and may be sent again."""


class Staging:
    """Submissions in memory, until those to a question and period are a group, or have waited long enough."""

    def __init__(self, store: ReportStore, seconds: float) -> None:
        self._store, self._seconds = store, seconds
        self._held: dict[tuple[int, str], list[Submission]] = defaultdict(list)
        self._reports: Counter[tuple[int, str]] = Counter()
        self._bytes: Counter[tuple[int, str]] = Counter()
        self._since: dict[tuple[int, str], float] = {}
        self._checks: dict[bytes, bytes] = {}

    def write(
        self, submissions: Sequence[Submission], events: Counter[tuple[int, str]]
    ) -> list[SubmissionOutcome]:
        """Take submissions into memory, and batches to the disk, since a receipt is for good."""
        outcomes: list[SubmissionOutcome | None] = [None] * len(submissions)
        batches = [i for i, each in enumerate(submissions) if each.is_batch]
        if batches or events:
            done = self._store.write([submissions[i] for i in batches], events)
            events.clear()  # they are on the disk, whatever fails below
            for i, outcome in zip(batches, done, strict=True):
                outcomes[i] = outcome
        single = [i for i, outcome in enumerate(outcomes) if outcome is None]
        known = self._store.probe([submissions[i] for i in single])
        for i, outcome in zip(single, known, strict=True):
            outcomes[i] = self._take(submissions[i], outcome)
        self.commit(time.monotonic())
        return [each for each in outcomes if each is not None]

    def _take(self, each: Submission, outcome: SubmissionOutcome) -> SubmissionOutcome:
        if outcome.standing is not SubmissionStanding.RECEIVED:
            return outcome
        if each.key in self._checks:
            is_same = self._checks[each.key] == each.check
            return SubmissionOutcome(
                SubmissionStanding.RECEIVED if is_same else SubmissionStanding.CONFLICT,
                outcome.accepted if is_same else 0,
            )
        place = (each.question, each.period)
        self._checks[each.key] = each.check
        self._held[place].append(each)
        self._reports[place] += outcome.accepted
        self._bytes[place] += len(each.body)
        self._since.setdefault(place, time.monotonic())
        return outcome

    def commit(self, now: float = float("inf")) -> None:
        """Write the groups that are large enough, or are there for long enough, each in a transaction."""
        for place, held in list(self._held.items()):
            is_group = self._reports[place] >= max(LEAST_BLOCK, self._store.promised_batch(place[0]))
            is_group |= self._bytes[place] > _MOST_BYTES  # long bodies with few reports would fill the memory
            if not held or not (is_group or now - self._since[place] >= self._seconds):
                continue
            # In an order by chance: nothing that is written has that of arrival.
            mixed = [held[i] for i in permutation(len(held), SYSTEM).tolist()]
            self._store.write(mixed, admitted=True)
            for each in held:
                del self._checks[each.key]
            for kept in (self._held, self._reports, self._bytes, self._since):
                del kept[place]

    @property
    def held(self) -> int:
        """How many submissions are in memory alone."""
        return len(self._checks)


@dataclass(slots=True)
class _Waiting:
    submission: Submission
    answer: "asyncio.Future[SubmissionOutcome]" = field(repr=False)


class Writer:
    """Submissions wait here for their turn. `open_store` is called in the thread that writes."""

    def __init__(
        self, open_store: Callable[[], ReportStore], *, most_waiting: int = 4096, staging: float = 0.0
    ) -> None:
        self._open, self._most, self._staging = open_store, most_waiting, staging
        self._queue: deque[_Waiting] = deque()
        self._size = 0  # bytes of the bodies in the queue
        self._events: Counter[tuple[int, str]] = Counter()
        self._change = threading.Condition()
        self._stops = False
        self._thread = threading.Thread(target=self._work, name="sourdine writer", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self.is_failing = False
        self.commits = 0
        self.staged = 0
        """Submissions that are in memory alone."""

    def start(self) -> None:
        """Begin to write, for the event loop that runs."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def submit(self, submission: Submission) -> "asyncio.Future[SubmissionOutcome]":
        """Put a submission into the queue; the answer comes once it is on the disk."""
        assert self._loop is not None
        answer: asyncio.Future[SubmissionOutcome] = self._loop.create_future()
        with self._change:
            if len(self._queue) >= self._most or self._size > _MOST_WAITING_BYTES or self._stops:
                raise QueueFull
            self._queue.append(_Waiting(submission, answer))
            self._size += len(submission.body)
            self._change.notify()
        return answer

    def count(self, question: int, kind: str) -> None:
        """Count something that happened, to be written with what comes next."""
        with self._change:
            self._events[question, kind] += 1

    @property
    def waiting(self) -> int:
        """How many submissions are in the queue."""
        return len(self._queue)

    def stop(self) -> None:
        """Write what waits, and end the thread."""
        with self._change:
            self._stops = True
            self._change.notify()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        store: ReportStore | None = None
        staging: Staging | None = None
        while True:
            waiting, events, stops = self._take()
            if waiting or events or staging is not None:
                try:
                    if store is None:
                        store = self._open()
                        staging = Staging(store, self._staging) if self._staging else None
                    submissions = [each.submission for each in waiting]
                    if staging is None:
                        outcomes = store.write(submissions, events)
                    elif stops and not self._queue:
                        outcomes = staging.write(submissions, events)
                        staging.commit()  # an end in order loses nothing
                    else:
                        outcomes = staging.write(submissions, events)
                    self.commits += bool(waiting or events)
                    self.staged = 0 if staging is None else staging.held
                    self.is_failing = False
                    self._answer(waiting, outcomes)
                except Exception:  # whatever it is, nobody is told that their reports are stored
                    self.is_failing = True
                    with self._change:
                        self._events.update(events)
                    self._answer(waiting, None)
                    if stops and not waiting:
                        return
            if stops and not self._queue:
                if store is not None:
                    store.close()
                return

    def _take(self) -> tuple[list[_Waiting], Counter[tuple[int, str]], bool]:
        with self._change:
            if not self._queue and not self._stops:
                self._change.wait(_IDLE)
            waiting: list[_Waiting] = []
            size = 0
            while self._queue and len(waiting) < MOST_TOGETHER and size < _MOST_BYTES:
                waiting.append(self._queue.popleft())
                size += len(waiting[-1].submission.body)
            self._size -= size
            events, self._events = self._events, Counter()
            return waiting, events, self._stops

    def _answer(self, waiting: list[_Waiting], outcomes: list[SubmissionOutcome] | None) -> None:
        def tell() -> None:
            for i, each in enumerate(waiting):
                if not each.answer.done():  # whoever asked may be gone
                    if outcomes is None:
                        each.answer.set_exception(StoreFailed())
                    else:
                        each.answer.set_result(outcomes[i])

        assert self._loop is not None
        if waiting and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(tell)
