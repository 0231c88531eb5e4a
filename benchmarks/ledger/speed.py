"""Charges a second of one process, beside the least that SQLite itself can do on the same disk.

Both take turns, a stretch each, since a disk that others use is quick one second and slow the next. The bare
side writes the very same lines with the same journal mode, and waits for the disk as often. It does no more:
no budget, no chain, no mark, no look at the last line.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from time import perf_counter

from benchmarks.ledger.crash import new_ledger, one_spend


@dataclass(frozen=True)
class Speed:
    """Lines a second of the ledger, of bare SQLite, and the best stretch of the ledger."""

    ledger: float
    bare: float
    best: float


def measure(folder: Path, *, stretches: int, each: int) -> Speed:
    """Let the ledger and bare SQLite write `each` lines in turn, so many times."""
    spend = one_spend()
    with new_ledger(folder / "speed.ledger", Fraction(10**6)) as ledger:
        content = _content(folder / "speed.ledger", ledger.charge(spend, purpose="speed").number)
        with closing(_bare(folder / "bare.db")) as connection:
            ours, theirs = [], []
            for _ in range(stretches):
                ours.append(_seconds(lambda: ledger.charge(spend, purpose="speed"), each))
                theirs.append(_seconds(lambda: _write(connection, content), each))
    return Speed(
        ledger=stretches * each / sum(ours), bare=stretches * each / sum(theirs), best=each / min(ours)
    )


def _seconds(act: Callable[[], object], count: int) -> float:
    start = perf_counter()
    for _ in range(count):
        act()
    return perf_counter() - start


def _content(path: Path, number: int) -> str:
    with closing(sqlite3.connect(path)) as connection:
        row = connection.execute("SELECT content FROM lines WHERE number = ?", (number,)).fetchone()
    return str(row[0])


def _bare(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("CREATE TABLE lines (number INTEGER PRIMARY KEY, content, total, fingerprint)")
    return connection


def _write(connection: sqlite3.Connection, content: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO lines VALUES (NULL, ?, '1/1000', ?)", (content, "0" * 64))
    connection.execute("COMMIT")
