"""One thread that writes: what came in while the disk was busy is written together, and answered then.

The queue is bounded. When it is full, whoever sends is told to come again, and nothing of theirs is kept.
"""

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from sourdine.collector.store import ReportStore
from sourdine.collector.submission import Submission, SubmissionOutcome

MOST_TOGETHER = 512  # submissions of one transaction
_MOST_BYTES = 1 << 24  # and their bodies
_MOST_WAITING_BYTES = 1 << 26  # of all bodies in the queue: few long ones fill it as well as many short ones
_IDLE = 1.0  # seconds after which events are written, if nothing else is


class QueueFull(Exception):
    """There are as many submissions waiting as are allowed."""


class StoreFailed(Exception):
    """A transaction failed: its submissions are not acknowledged, and may be sent again."""


@dataclass(slots=True)
class _Waiting:
    submission: Submission
    answer: "asyncio.Future[SubmissionOutcome]" = field(repr=False)


class Writer:
    """Submissions wait here for their turn. `open_store` is called in the thread that writes."""

    def __init__(self, open_store: Callable[[], ReportStore], *, most_waiting: int = 4096) -> None:
        self._open, self._most = open_store, most_waiting
        self._queue: deque[_Waiting] = deque()
        self._size = 0  # bytes of the bodies in the queue
        self._events: Counter[tuple[int, str]] = Counter()
        self._change = threading.Condition()
        self._stops = False
        self._thread = threading.Thread(target=self._work, name="sourdine writer", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self.is_failing = False
        self.commits = 0

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
        while True:
            waiting, events, stops = self._take()
            if waiting or events:
                try:
                    if store is None:
                        store = self._open()
                    outcomes = store.write([each.submission for each in waiting], events)
                    self.commits += 1
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
