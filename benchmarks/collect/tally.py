"""Many reports tallied from files of lines and from a store, beside reading the same bytes and no more."""

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.collect.load import announced
from sourdine.collector.blocks import packed_block, random_numbers, recount
from sourdine.collector.settings import open_store
from sourdine.local import GRR, Question
from sourdine.local.lines import written
from sourdine.local.report_files import count_files

QUESTION = Question(name="tally", oracle=GRR(epsilon=1, categories=16))
_PART = 1 << 20


@dataclass(frozen=True)
class Tally:
    """So many reports, the seconds to tally and to read them, their bytes, and the memory it took.

    `processor` is the part of the seconds in which the processor worked: on a machine that others use, the
    clock tells what those do.
    """

    reports: int
    size: int
    seconds: float
    processor: float
    reading: float
    memory: int


def _read(path: Path) -> float:
    begin = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.read(1 << 22):
            pass
    return time.perf_counter() - begin


def _drop(path: Path) -> None:
    """Ask the system to forget a file, so that it is read from the disk."""
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(handle)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def tally_lines(folder: Path, reports: int) -> Tally:
    """A file of lines."""
    path = folder / "lines.txt"
    with path.open("wb") as file:
        for start in range(0, reports, _PART):
            rows = np.random.default_rng(start).integers(0, 16, (min(_PART, reports - start), 1), np.uint8)
            file.write(written(QUESTION.fingerprint, rows))
    before = _peak()
    _drop(path)
    reading = _read(path)
    _drop(path)
    begin, worked = time.perf_counter(), time.process_time()
    total = count_files(QUESTION, [path])
    took, worked = time.perf_counter() - begin, time.process_time() - worked
    assert total.counts.reports == reports
    size = path.stat().st_size
    path.unlink()
    return Tally(reports, size, took, worked, reading, _peak() - before)


def tally_store(folder: Path, reports: int) -> Tally:
    """The blocks of a store in a file."""
    path = folder / "store.db"
    store = open_store(str(path))
    number = store.register(announced(QUESTION))
    for start in range(0, reports, _PART):
        rows = np.random.default_rng(start).integers(0, 16, (min(_PART, reports - start), 1), np.uint8)
        store.begin()
        for part in range(0, len(rows), 1 << 16):
            some = rows[part : part + (1 << 16)]
            store.add_block((number, "2026-11-17"), len(some), packed_block(random_numbers(len(some)), some))
        store.commit()
    store.close()
    before = _peak()
    _drop(path)
    reading = _read(path)
    _drop(path)
    store = open_store(str(path))
    begin, worked = time.perf_counter(), time.process_time()
    counts = recount(store, number, QUESTION)
    took, worked = time.perf_counter() - begin, time.process_time() - worked
    store.close()
    assert counts.reports == reports
    return Tally(reports, path.stat().st_size, took, worked, reading, _peak() - before)
