"""Writers that are killed at random: every spend they were told is paid must be in the ledger.

A writer notes the receipt of each charge in a file of its own, right after `charge` returns, as a release
would draw its noise then. Afterwards every note must have its line, no charge may have two, and the total
must be within the budget. On a server one kill in five is of the server, with all its processes at once.
"""

import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from pathlib import Path

from benchmarks.servers import Server
from sourdine.accounting import Spend
from sourdine.accounting.ledger import Ledger, PureBudget, Terms
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import BudgetExceeded
from sourdine.mechanisms import Geometric

_SERVER = 0.2  # of the kills


@dataclass(frozen=True)
class Outcome:
    """What was found after all kills."""

    kills: int
    acknowledged: int
    recorded: int
    unrecorded: int
    duplicates: int
    overspent: Fraction


def new_ledger(path: Path | str, limit: Fraction) -> Ledger:
    """A ledger with a pure budget."""
    terms = Terms(budget=PureBudget(limit=limit), unit="person", neighbours=Neighbours.ADD_REMOVE)
    return Ledger.create(path, terms)


def one_spend() -> Spend:
    """A spend of epsilon 1/1000."""
    return Spend(mechanism=Geometric(scale=Fraction(1000)), distance=Distance.l1(1))


def torment(
    folder: Path,
    *,
    processes: int,
    kills: int,
    limit: Fraction,
    seed: int,
    progress: Callable[[int], None],
    server: Server | None = None,
) -> Outcome:
    """Keep so many writers at work, kill one at random again and again, and count what is left."""
    path, notes = folder / "torment.ledger" if server is None else server.new(), folder / "notes"
    notes.mkdir()
    new_ledger(path, limit).close()
    chance = random.Random(seed)
    writers: list[int] = []
    for done in range(kills):
        while len(writers) < processes:
            writers.append(_fork_writer(path, notes / f"{done}-{len(writers)}-{chance.getrandbits(32)}"))
        time.sleep(chance.uniform(0.0, 0.02 if server is None else 0.1))
        if server is not None and chance.random() < _SERVER:
            server.kill()
            server.restart()
            progress(done + 1)
            continue
        victim = writers.pop(chance.randrange(len(writers)))
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
        progress(done + 1)
    for writer in writers:
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
    return _count(path, notes, kills, limit)


def _fork_writer(path: Path | str, note: Path) -> int:
    child = os.fork()
    if child:
        return child
    try:
        ledger, spend = Ledger.open(path), one_spend()
        handle = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for number in count():
            receipt = ledger.charge(spend, purpose=f"{note.name} {number}")
            os.write(handle, f"{receipt.number} {receipt.fingerprint}\n".encode())
    except BudgetExceeded:
        time.sleep(60)
    finally:
        os._exit(0)


def _count(path: Path | str, notes: Path, kills: int, limit: Fraction) -> Outcome:
    ledger = Ledger.open(path)
    entries = ledger.history()
    lines = {entry.number: entry.fingerprint for entry in entries}
    told = [line.split() for note in notes.iterdir() for line in note.read_text().splitlines()]
    whole = [(int(row[0]), row[1]) for row in told if len(row) == 2 and len(row[1]) == 64]
    spent = ledger.status().spent
    ledger.close()
    return Outcome(
        kills=kills,
        acknowledged=len(whole),
        recorded=len(lines),
        unrecorded=sum(lines.get(number) != mark for number, mark in whole),
        duplicates=len(whole) - len(set(whole)) + len(entries) - len({entry.purpose for entry in entries}),
        overspent=max(Fraction(0), spent - limit),
    )
