"""Files of reports counted together: in bounded memory, each report once, bad lines set apart and told.

A copy of a file is left out. A report with a number, as a collector's export has, is counted once however
many files hold it. Reports without numbers look alike by nature, so of those only whole files are compared.
"""

import hashlib
import json
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.core.files import unreadable
from sourdine.core.format import counted
from sourdine.local.estimate import Counts
from sourdine.local.lines import LineFault, Numbers, ReportBatch, batches, line_length
from sourdine.local.oracle import Bytes
from sourdine.local.question import Question

MOST_NUMBERS = 1 << 24
"""How many numbers of reports are kept in memory at once; more are read in several passes."""
_CHANCE = 64
"""So many lines are never the same by chance: two reports are alike in less than two cases of three."""
_MARK = b"\xef\xbb\xbf"  # that some editors put before UTF-8


@dataclass(frozen=True, eq=False)
class FileCounts:
    """The counts of some files, how many lines were set apart by reason, and which files are copies."""

    counts: Counts
    faults: dict[LineFault, int] = field(default_factory=dict)
    first: dict[LineFault, tuple[Path, int]] = field(default_factory=dict)
    """Where the first line of each reason is."""
    copies: tuple[tuple[Path, Path], ...] = ()
    """Files that were left out, each with the file that it is a copy of."""


def count_files(
    question: Question, paths: Sequence[Path], watch: Callable[[Bytes], None] = lambda rows: None
) -> FileCounts:
    """Count files of reports or of counts; what is no line of this question is set apart.

    Memory is bounded whatever the sizes. Where reports have numbers and there are more than fit, files are
    read in several passes, each of which counts the reports of its part of the numbers. `watch` sees the rows
    that are counted.
    """
    with tempfile.TemporaryDirectory(prefix="sourdine-") as folder:
        places = {path: _lasting(path, Path(folder) / str(i)) for i, path in enumerate(paths)}
        return _count(question, places, watch)


def _count(question: Question, places: dict[Path, Path], watch: Callable[[Bytes], None]) -> FileCounts:
    """Of each file as it was named, where it lies."""
    unlike, copies = _without_copies(places)
    total = question.tally(np.zeros((0, question.oracle.width), np.uint8))
    lines = [path for path in unlike if not _holds_counts(places[path])]
    for path in unlike:
        if path not in lines:
            total += _read_counts(places[path], path)
    size = sum(_size(places[path]) for path in lines)
    parts = max(1, -(-size // (MOST_NUMBERS * line_length(question.oracle.width, numbered=True))))
    faults: Counter[LineFault] = Counter()
    first: dict[LineFault, tuple[Path, int]] = {}
    for part in range(parts):
        past = _Numbers(part, parts)
        for path in lines:
            with _open(places[path]) as file:
                for batch in batches(file, question.fingerprint, question.oracle):
                    rows, repeated = past.new(batch)
                    total += question.tally(rows)
                    watch(rows)
                    faults[LineFault.REPEATED] += repeated
                    if part == 0:
                        for fault, numbers in batch.faults.items():
                            faults[fault] += len(numbers)
                            first.setdefault(fault, (path, int(numbers[0])))
        if not past.any_numbers:
            break  # they all were of the first part
    return FileCounts(total, {fault: count for fault, count in faults.items() if count}, first, copies)


class _Numbers:
    """Which reports of one part of the numbers were counted; those without a number are of the first."""

    def __init__(self, part: int, parts: int) -> None:
        self._part, self._parts = np.uint64(part), np.uint64(parts)
        self._old = np.zeros(0, np.uint64)
        self._new: list[Numbers] = []
        self.any_numbers = False

    def new(self, batch: ReportBatch) -> tuple[Bytes, int]:
        """The rows of a batch to count now, and how many of this part were counted before."""
        numbers = batch.numbers
        if not numbers.any():
            return (batch.rows if self._part == 0 else batch.rows[:0]), 0
        self.any_numbers = True
        ours = numbers % self._parts == self._part
        without = ours & (numbers == 0)
        places = np.flatnonzero(ours & (numbers > 0))
        distinct, at = np.unique(numbers[places], return_index=True)
        fresh = ~self._contains(distinct)
        self._add(distinct[fresh])
        keep = np.concatenate([np.flatnonzero(without), places[at[fresh]]])
        return batch.rows[keep], int(ours.sum()) - len(keep)

    def _contains(self, numbers: Numbers) -> NDArray[np.bool_]:
        known = np.zeros(len(numbers), np.bool_)
        for each in (self._old, *self._new):
            if len(each):
                at = np.minimum(np.searchsorted(each, numbers), len(each) - 1)
                known |= each[at] == numbers
        return known

    def _add(self, numbers: Numbers) -> None:
        """Sorted arrays, merged once the new ones are many: then little is sorted again."""
        self._new.append(numbers)
        if len(self._new) > 8 and sum(map(len, self._new)) * 4 > len(self._old):
            self._old = np.sort(np.concatenate([self._old, *self._new]))
            self._new = []


def _without_copies(places: Mapping[Path, Path]) -> tuple[list[Path], tuple[tuple[Path, Path], ...]]:
    """The files without those that hold the same bytes as an earlier one; only those of one size are read."""
    sizes: dict[int, list[Path]] = defaultdict(list)
    for path, place in places.items():
        sizes[_size(place)].append(path)
    first: dict[str, Path] = {}
    copies: dict[Path, Path] = {}
    for size, same in sizes.items():
        for path in same if len(same) > 1 and size else ():
            with _open(places[path]) as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if (earlier := first.setdefault(digest, path)) is not path:
                _check_chance(places[path], path, earlier)
                copies[path] = earlier
    return [path for path in places if path not in copies], tuple(copies.items())


def _check_chance(place: Path, path: Path, earlier: Path) -> None:
    """Refuse equal files of few lines: whether one is a copy or both are so by chance, nobody can tell."""
    with _open(place) as file:
        head = file.read(1 << 20)
    lines = head.count(b"\n")
    if lines < _CHANCE and len(head) < 1 << 20 and head.lstrip()[:1] != b"{":
        raise InvalidParameter(
            f"The files {earlier} and {path} hold the same {counted(lines, 'line')}, which so few reports "
            "may do by chance. If one is a copy, name the other alone; if they are of different people, join "
            "them into one file. Nothing was counted."
        )


def _holds_counts(path: Path) -> bool:
    with _open(path) as file:
        return file.read(64).lstrip()[:1] == b"{"


def _read_counts(place: Path, path: Path) -> Counts:
    with _open(place) as file:
        text = file.read()
    try:
        return Counts.from_json(json.loads(text))
    except (ValueError, RecursionError):
        raise InvalidParameter(
            f"The counts in {path} cannot be read. They are cut short or were changed. Make them again."
        ) from None


def _lasting(path: Path, place: Path) -> Path:
    """A file, or a copy of what a pipe gives only once."""
    try:
        if path.is_dir() or not path.exists():
            path.open("rb").close()  # which tells why it cannot be read
        if not path.is_file():
            with path.open("rb") as source, place.open("wb") as copy:
                shutil.copyfileobj(source, copy)
            return place
    except OSError as problem:
        raise _unreadable(path, problem) from None
    return path


def _size(place: Path) -> int:
    return place.stat().st_size


def _open(path: Path) -> BufferedReader:
    """A file behind its mark, if it has one."""
    try:
        file = path.open("rb")
        if file.read(len(_MARK)) != _MARK:
            file.seek(0)
    except OSError as problem:
        raise _unreadable(path, problem) from None
    return file


def _unreadable(path: Path, problem: OSError) -> InvalidParameter:
    return InvalidParameter(f"{unreadable(path, problem)} Check the path.")
