"""How reports lie in a store, under random numbers, loose or in blocks, and how they are counted.

A block never changes, so that each is counted once, and the counts are always those of a recount.
"""

import json
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sourdine.local.estimate import Counts
from sourdine.local.lines import Numbers
from sourdine.local.oracle import Bytes
from sourdine.local.question import Question

NUMBER = 8
"""The bytes of a report's number."""


def random_numbers(count: int) -> Numbers:
    """Numbers for reports, from 1 on, that nobody can guess and that fit into eight bytes with a sign."""
    words = np.frombuffer(secrets.token_bytes(NUMBER * count), np.uint64)
    return np.asarray(np.maximum(words >> np.uint64(1), np.uint64(1)), np.uint64)


def packed_block(numbers: Numbers, rows: Bytes) -> bytes:
    """Reports with their numbers before them, in the order of those."""
    order = np.argsort(numbers)
    content = np.empty((len(rows), NUMBER + rows.shape[1]), np.uint8)
    content[:, :NUMBER] = numbers[order].astype(">u8").view(np.uint8).reshape(-1, NUMBER)
    content[:, NUMBER:] = rows[order]
    return content.tobytes()


def unpacked_block(content: bytes, width: int) -> tuple[Numbers, Bytes]:
    """The numbers and rows of a block."""
    table = np.frombuffer(content, np.uint8).reshape(-1, NUMBER + width)
    numbers = np.ascontiguousarray(table[:, :NUMBER]).view(">u8").reshape(-1).astype(np.uint64)
    return numbers, table[:, NUMBER:]


def loose_block(rows: Iterable[tuple[int, bytes]], width: int) -> tuple[Numbers, Bytes]:
    """Loose reports as a block has them."""
    listed = sorted(rows)
    content = np.frombuffer(b"".join(row for _, row in listed), np.uint8).reshape(-1, width)
    return np.array([number for number, _ in listed], np.uint64), content


def sealed_text(sealed: Mapping[str, Counts]) -> str:
    """Counts of removed reports, by period, as they are stored."""
    return json.dumps({period: counts.to_json() for period, counts in sealed.items()})


def sealed_counts(text: str | None) -> dict[str, Counts]:
    """Counts of removed reports as they were stored, if there are any."""
    return {period: Counts.from_json(each) for period, each in json.loads(text or "{}").items()}


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What there is of a question at one moment: all its blocks with their periods, and some unknown ones."""

    blocks: Mapping[int, str]
    new: Mapping[int, bytes]
    """The contents of blocks that were not known: of so many as a memory holds."""
    loose: Sequence[tuple[str, bytes]]
    sealed: Mapping[str, Counts]


class Countable(Protocol):
    """What has reports in blocks, as a store does."""

    def snapshot(self, number: int, known: frozenset[int]) -> Snapshot:
        """What there is of a question at one moment; blocks that are known are named only."""


class RunningCounts:
    """The counts of a question as they grow: each block is counted once, and always there is a recount.

    What is counted is what is stored, so the two cannot differ; only the work is saved.
    """

    def __init__(self, store: Countable, number: int, question: Question) -> None:
        self._store, self._number, self._question = store, number, question
        self._blocks: frozenset[int] = frozenset()
        self._counts: dict[str, Counts] = {}

    def by_period(self, *, grouped: Callable[[str], bool] = lambda period: False) -> dict[str, Counts]:
        """The counts of all reports that are stored now; of `grouped` periods only of those in blocks."""
        width = self._question.oracle.width
        while True:
            there = self._store.snapshot(self._number, self._blocks)
            if not self._blocks <= there.blocks.keys():  # some were removed, and are in the sealed counts
                self._blocks, self._counts = frozenset(), {}
                continue
            for block, content in there.new.items():
                self._add(self._counts, there.blocks[block], unpacked_block(content, width)[1])
            self._blocks |= there.new.keys()
            if self._blocks == there.blocks.keys():
                break
        found = dict(self._counts)
        loose: dict[str, list[bytes]] = defaultdict(list)
        for period, report in there.loose:
            loose[period].append(report)
        for period, some in loose.items():
            if not grouped(period):
                self._add(found, period, np.frombuffer(b"".join(some), np.uint8).reshape(-1, width))
        for period, counts in there.sealed.items():
            found[period] = found[period] + counts if period in found else counts
        return dict(sorted(found.items()))

    def _add(self, counts: dict[str, Counts], period: str, rows: Bytes) -> None:
        new = self._question.tally(rows)
        counts[period] = counts[period] + new if period in counts else new

    def refresh(self) -> Counts:
        """The counts of all reports that are stored now."""
        none = self._question.tally(np.zeros((0, self._question.oracle.width), np.uint8))
        return sum(self.by_period().values(), none)


def recount(store: Countable, number: int, question: Question) -> Counts:
    """The counts of all reports, read anew, in bounded memory."""
    return RunningCounts(store, number, question).refresh()
