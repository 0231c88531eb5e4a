"""Charges a second of one process, beside the least that SQLite itself can do on the same disk.

All take turns, a stretch each, since a disk that others use is quick one second and slow the next. The bare
sides write the very same lines, one with the ledger's rollback journal and one with a write-ahead log, and
each commit waits until the disk has it. They do no more: no budget, no chain, no mark, no look at the last
line.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from time import perf_counter

from tests.campaigns.ledger.crash import new_ledger, one_spend


@dataclass(frozen=True)
class Speed:
    """Lines a second of the ledger, of bare SQLite with its journal and with a log; its best stretch."""

    ledger: float
    bare: float
    log: float
    best: float


def measure(folder: Path, *, stretches: int, each: int) -> Speed:
    """Let the ledger and bare SQLite write `each` lines in turn, so many times."""
    spend = one_spend()
    with new_ledger(folder / "speed.ledger", Fraction(10**6)) as ledger:
        content = _content(folder / "speed.ledger", ledger.charge(spend, purpose="speed").number)
        bare, log = _bare(folder / "bare.db", "DELETE"), _bare(folder / "log.db", "WAL")
        with closing(bare), closing(log):
            acts: list[Callable[[], object]] = [
                lambda: ledger.charge(spend, purpose="speed"),
                lambda: _write(bare, content),
                lambda: _write(log, content),
            ]
            taken = [[_seconds(act, each) for act in acts] for _ in range(stretches)]
    ours, theirs, logged = (stretches * each / sum(seconds) for seconds in zip(*taken, strict=True))
    return Speed(ledger=ours, bare=theirs, log=logged, best=each / min(row[0] for row in taken))


def _seconds(act: Callable[[], object], count: int) -> float:
    start = perf_counter()
    for _ in range(count):
        act()
    return perf_counter() - start


def _content(path: Path, number: int) -> str:
    with closing(sqlite3.connect(path)) as connection:
        row = connection.execute("SELECT content FROM lines WHERE number = ?", (number,)).fetchone()
    return str(row[0])


def _bare(path: Path, journal: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode = {journal}")
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("CREATE TABLE lines (number INTEGER PRIMARY KEY, content, total, fingerprint)")
    return connection


def _write(connection: sqlite3.Connection, content: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO lines VALUES (NULL, ?, '1/1000', ?)", (content, "0" * 64))
    connection.execute("COMMIT")
