"""Failovers of real servers: a primary is killed while it is charged, and its synchronous standby takes over.

Meanwhile waits for the standby are canceled, sessions are ended, and the standby hangs for moments. What was
acknowledged by the first server must be on the second.
"""

import os
import random
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from pathlib import Path

from benchmarks.servers import Server, Standby
from sourdine.accounting.ledger import Ledger
from sourdine.core.errors import LedgerError
from tests.campaigns.ledger.crash import new_ledger, one_spend

_WRITERS = 4
_CANCEL = """
SELECT {act}(pid) FROM pg_stat_activity WHERE application_name = 'sourdine' AND wait_event = 'SyncRep'
ORDER BY random() LIMIT 1
"""


@dataclass(frozen=True)
class Found:
    """What was found after some failovers."""

    failovers: int = 0
    acknowledged: int = 0
    lines: int = 0
    lost: int = 0
    twice: int = 0
    canceled: int = 0
    ended: int = 0

    def plus(self, other: "Found") -> "Found":
        """The sum."""
        return Found(**{name: value + getattr(other, name) for name, value in vars(self).items()})


def failovers(times: int, *, seconds: float, seed: int, progress: Callable[[int, Found], None]) -> Found:
    """Let a standby take over so many times, each after so many seconds of charges."""
    chance, found = random.Random(seed), Found()
    for done in range(times):
        primary = Server.start()
        try:
            standby = primary.follow()
            try:
                found = found.plus(_one(primary, standby, chance, seconds))
            finally:
                standby.remove()
        finally:
            with suppress(Exception):  # it is killed by then
                primary.remove()
        progress(done + 1, found)
    return found


def _one(primary: Server, standby: Standby, chance: random.Random, seconds: float) -> Found:
    place = primary.new()
    new_ledger(place, Fraction(10**6)).close()
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder)
        writers = [_start(place, notes / str(number)) for number in range(_WRITERS)]
        done = {"pg_cancel_backend": 0, "pg_terminate_backend": 0}
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(chance.uniform(0.0, 0.2))
            if chance.random() < 0.2:
                standby.signal(signal.SIGSTOP)
                for _ in range(chance.randrange(5)):
                    time.sleep(chance.uniform(0.0, 0.1))
                    _disturb(primary, chance, done)
                standby.signal(signal.SIGCONT)
            _disturb(primary, chance, done)
        standby.kill()  # so that the last charges wait in vain, and what is canceled then is not replicated
        for _ in range(8):
            time.sleep(0.1)
            _disturb(primary, chance, done)
        primary.kill()
        for writer in writers:
            os.kill(writer, signal.SIGKILL)
            os.waitpid(writer, 0)
        standby.restart()
        standby.promote()
        told = [line.split() for note in notes.iterdir() for line in note.read_text().splitlines()]
    whole = [(int(row[0]), row[1]) for row in told if len(row) == 2 and len(row[1]) == 64]
    with Ledger.open(f"{standby.address}#{place.partition('#')[2]}") as ledger:
        lines = {entry.number: entry.fingerprint for entry in ledger.history()}
        ledger.charge(one_spend(), purpose="after")  # it is the ledger now
    return Found(
        failovers=1,
        acknowledged=len(whole),
        lines=len(lines),
        lost=sum(lines.get(number) != mark for number, mark in whole),
        twice=len(whole) - len(set(whole)),
        canceled=done["pg_cancel_backend"],
        ended=done["pg_terminate_backend"],
    )


def _disturb(primary: Server, chance: random.Random, done: dict[str, int]) -> None:
    act = chance.choice(["pg_cancel_backend", "pg_cancel_backend", "pg_terminate_backend"])
    done[act] += len(primary.execute(_CANCEL.format(act=act)))


def _start(place: str, note: Path) -> int:
    child = os.fork()
    if child:
        return child
    try:
        import warnings

        warnings.simplefilter("ignore")
        ledger, spend = Ledger.open(place), one_spend()
        handle = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for number in count():
            with suppress(LedgerError):
                receipt = ledger.charge(spend, purpose=f"{note.name} {number}")
                os.write(handle, f"{receipt.number} {receipt.fingerprint}\n".encode())
    finally:
        os._exit(0)
