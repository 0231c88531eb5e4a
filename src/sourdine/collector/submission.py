"""What one request brings: a random id, and reports as lines or packed. Many are read at once.

Of the id only a digest is kept, and of the body only a digest that nobody can repeat without the id: what is
stored ties no report to its submission, nor two reports of one submission to each other.
"""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np

from sourdine.collector.receipt import BatchLabel
from sourdine.local.lines import LineFault, line_length, parse
from sourdine.local.oracle import Bytes
from sourdine.local.question import Question

KEY, CHECK = 16, 8  # bytes that are kept of a submission's id, and of its body


class BodyKind(StrEnum):
    """How the reports of a submission are written."""

    LINES = "text/plain"
    PACKED = "application/octet-stream"


@dataclass(frozen=True)
class Submission:
    """Some reports to one question, under an id of 16 random bytes that their sender drew."""

    question: int
    """The number of the question in the store."""
    id: bytes = field(repr=False)
    body: bytes = field(repr=False)
    kind: BodyKind
    period: str
    label: BatchLabel | None = None
    """Of a batch, which shuffler made it."""
    digests: bytes = field(default=b"", repr=False)
    """Of a batch, those of the submissions that it was made of."""

    @property
    def is_batch(self) -> bool:
        """Whether a shuffler sent it."""
        return self.label is not None

    @cached_property
    def key(self) -> bytes:
        """By what a second submission of the same id is known."""
        digest = hashlib.sha256(b"sourdine submission\0%d\0%b" % (self.question, self.id))
        return digest.digest()[:KEY]

    @cached_property
    def check(self) -> bytes:
        """By what another body under the same id is known, to whoever has the id and nobody else."""
        return hashlib.sha256(b"sourdine body\0" + self.id + self.body).digest()[:CHECK]


class SubmissionStanding(StrEnum):
    """What became of a submission."""

    STORED = "stored"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"  # the id was used with another body
    REFUSED = "refused"  # no report of it is one
    CLOSED = "closed"  # its question takes no more reports
    REPEATED = (
        "repeated"  # a batch of reports that an earlier batch had: its shuffler was put back from a backup
    )
    RECEIVED = "received"  # in memory, and not on the disk yet


@dataclass(frozen=True, slots=True)
class SubmissionOutcome:
    """What became of a submission: how many reports were stored, and how many were not and why."""

    standing: SubmissionStanding
    accepted: int = 0
    faults: dict[LineFault, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class ReadReports:
    """The reports of a submission as rows, and what of it is none."""

    rows: Bytes
    faults: dict[LineFault, int]


def read_reports(question: Question, submissions: Sequence[Submission]) -> list[ReadReports]:
    """The reports of some submissions to one question, read together, since most are short and in order."""
    reports: list[ReadReports | None] = [None] * len(submissions)
    by_kind: dict[BodyKind, list[int]] = defaultdict(list)
    for i, each in enumerate(submissions):
        by_kind[each.kind].append(i)
    for kind, places in by_kind.items():
        bodies = [submissions[i].body for i in places]
        together = _read(question, b"".join(bodies), kind) if len(bodies) > 1 else None
        length = question.oracle.width if kind is BodyKind.PACKED else line_length(question.oracle.width)
        sizes = [len(body) // length for body in bodies]
        regular = all(len(body) == size * length for body, size in zip(bodies, sizes, strict=True))
        if together is not None and regular and not together.faults and len(together.rows) == sum(sizes):
            ends = np.cumsum(sizes)
            for i, end, size in zip(places, ends.tolist(), sizes, strict=True):
                reports[i] = ReadReports(together.rows[end - size : end], {})
        else:
            for i, body in zip(places, bodies, strict=True):
                reports[i] = _read(question, body, kind)
    return [each for each in reports if each is not None]


def _read(question: Question, body: bytes, kind: BodyKind) -> ReadReports:
    oracle = question.oracle
    if kind is BodyKind.LINES:
        batch = parse(body, question.fingerprint, oracle)
        return ReadReports(batch.rows, {fault: len(places) for fault, places in batch.faults.items()})
    whole = len(body) // oracle.width
    rows = np.frombuffer(body, np.uint8, whole * oracle.width).reshape(whole, oracle.width)
    sound = oracle.sound(rows)
    impossible = whole - int(sound.sum())
    if not impossible:
        return ReadReports(rows, {})
    return ReadReports(rows[sound], {LineFault.IMPOSSIBLE: impossible})
