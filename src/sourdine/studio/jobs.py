"""Work that goes on in the server while pages come and go: releases, and counts for the data's holder.

Each has a name that cannot be taken twice, so that a double click or a second tab finds what the first one
began, and pays nothing more. Nothing stops it once it is paid: the server waits for it at its end.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeVar

from sourdine.core.errors import InvalidParameter, SourdineError

T = TypeVar("T")
Work = Callable[["Job"], None]


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
