"""Minutes of charges with copies, hashes, backups, forks and kills beside them, on a file or on a server.

Each round has a new ledger with a small limit. Four processes charge it; threads of the same processes copy,
hash and read the file, write backups and ask for the status; processes fork, and the children charge too;
whole groups of processes are killed. On a server, sessions are canceled and terminated, and the server is
killed. After each round every receipt that a process noted must have its line.
"""

import hashlib
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from benchmarks.servers import Server
from sourdine.accounting.ledger import Ledger
from sourdine.core.errors import BudgetExceeded, LedgerError
from tests.campaigns.ledger.crash import new_ledger, one_spend

_LONGEST = 45.0  # seconds of a round, and then the next limit is tried
_PAUSES = (0.001, 0.01, 0.02)  # seconds between two acts of a thread beside the charges


@dataclass(frozen=True)
class Found:
    """What was found after some rounds."""

    rounds: int = 0
    acknowledged: int = 0
    lines: int = 0
    lost: int = 0
    twice: int = 0
    overspent: int = 0
    damaged: int = 0
    kills: int = 0
    forks: int = 0
    readings: int = 0
    backups: int = 0

    @property
    def faults(self) -> int:
        """The number of charges and ledgers that are not as they must be."""
        return self.lost + self.twice + self.overspent + self.damaged

    def plus(self, other: "Found") -> "Found":
        """The sum."""
        return Found(**{name: value + getattr(other, name) for name, value in vars(self).items()})


def campaign(
    folder: Path,
    *,
    minutes: float,
    seed: int,
    progress: Callable[[float, Found], None],
    processes: int = 4,
    server: Server | None = None,
) -> Found:
    """Run rounds for so many minutes."""
    chance, found = random.Random(seed), Found()
    begun = time.monotonic()
    while (passed := time.monotonic() - begun) < 60 * minutes:
        progress(passed / 60, found)
        place = folder / f"round-{found.rounds}"
        place.mkdir()
        longest = min(_LONGEST, max(1.0, 60 * minutes - passed))
        found = found.plus(_Round(place, chance, processes, server).run(longest))
        shutil.rmtree(place)
    return found


class _Round:
    """One ledger, and the processes that charge it."""

    def __init__(self, folder: Path, chance: random.Random, processes: int, server: Server | None) -> None:
        self._folder, self._chance, self._processes, self._server = folder, chance, processes, server
        self._path = folder / "a.ledger" if server is None else server.new()
        self._limit = Fraction(chance.choice([50, 300, 1500, 6000]), 1000)
        for name in ("notes", "acts"):
            (folder / name).mkdir()
        self._born = 0

    def run(self, seconds: float) -> Found:
        """Charge, kill and count."""
        new_ledger(self._path, self._limit).close()
        groups, kills, until = dict[int, str](), 0, time.monotonic() + seconds
        while time.monotonic() < until and not (self._folder / "spent").exists():
            while len(groups) < self._processes:
                self._born += 1
                groups[self._start()] = "charges"
            time.sleep(self._chance.uniform(0.02, 1.0))
            if self._server is not None and self._chance.random() < 0.5:
                self._disturb(self._server)
            else:
                victim = self._chance.choice(list(groups))
                _kill(victim)
                del groups[victim]
            kills += 1
        for group in groups:
            _kill(group)
        return replace(self._count(), rounds=1, kills=kills)

    def _disturb(self, server: Server) -> None:
        if self._chance.random() < 0.1:
            server.kill()
            server.restart()
            return
        act = self._chance.choice(["pg_cancel_backend", "pg_terminate_backend"])
        with suppress(Exception):  # the session may be gone by then
            server.execute(
                f"SELECT {act}(pid) FROM pg_stat_activity WHERE application_name = 'sourdine' "
                "ORDER BY random() LIMIT 1"
            )

    def _start(self) -> int:
        """A process in a group of its own."""
        seed = self._chance.getrandbits(32)
        child = os.fork()
        if child:
            with suppress(OSError):  # it may have done so already
                os.setpgid(child, child)
            return child
        try:
            os.setpgid(0, 0)
            _Writer(self._folder, self._path, f"{self._born}", random.Random(seed)).run()
        finally:
            os._exit(0)

    def _count(self) -> Found:
        told = [
            line.split()
            for note in (self._folder / "notes").iterdir()
            for line in note.read_text().splitlines()
        ]
        # a process that is killed while it notes a receipt leaves a part of it, or none
        whole = [(int(row[0]), row[1]) for row in told if len(row) == 2 and len(row[1]) == 64]
        acts = "".join(each.read_text() for each in (self._folder / "acts").iterdir())
        made = Found(
            acknowledged=len(whole),
            twice=len(whole) - len({number for number, _ in whole}),
            forks=acts.count("f"),
            readings=acts.count("r"),
            backups=acts.count("b"),
            damaged=acts.count("d"),
        )
        try:
            with Ledger.open(self._path) as ledger:
                entries, spent = ledger.history(), ledger.status().spent
        except LedgerError as problem:
            print(problem)
            return replace(made, damaged=made.damaged + 1)
        lines = {entry.number: entry.fingerprint for entry in entries}
        purposes = len(entries) - len({entry.purpose for entry in entries})
        return replace(
            made,
            lines=len(lines),
            lost=sum(lines.get(number) != mark for number, mark in whole),
            twice=made.twice + purposes,
            overspent=int(spent > self._limit or sum(entry.price for entry in entries) != spent),
        )


class _Writer:
    """One process that charges, with threads beside that read the same ledger."""

    def __init__(self, folder: Path, path: Path | str, name: str, chance: random.Random) -> None:
        self._folder, self._path, self._name, self._chance = folder, path, name, chance
        self._acts = os.open(folder / "acts" / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def run(self) -> None:
        """Charge until the budget is spent, or somebody ends this process."""
        acts: list[Callable[[], None]] = [self._backup, self._look]
        acts += [self._copy, self._hash, self._read] if isinstance(self._path, Path) else []
        for act in acts:
            threading.Thread(target=self._repeat, args=(act,), daemon=True).start()
        with Ledger.open(self._path) as ledger:
            self._charge(ledger, self._name, 10**9)

    def _charge(self, ledger: Ledger, name: str, count: int) -> None:
        spend = one_spend()
        note = os.open(self._folder / "notes" / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for number in range(count):
            try:
                receipt = ledger.charge(spend, purpose=f"{name} {number}")
            except BudgetExceeded:
                (self._folder / "spent").touch()
                return
            except LedgerError as problem:
                if (
                    "changed outside" in str(problem)
                    or "is damaged" in str(problem)
                    or "ends at" in str(problem)
                ):
                    os.write(self._acts, b"d")
                    print(problem)
                continue
            os.write(note, f"{receipt.number} {receipt.fingerprint}\n".encode())
            if count > 100 and self._chance.random() < 0.02:
                self._fork(ledger, f"{name}-{number}")
            with suppress(ChildProcessError):
                os.waitpid(-1, os.WNOHANG)

    def _fork(self, ledger: Ledger, name: str) -> None:
        os.write(self._acts, b"f")
        if os.fork() == 0:
            try:
                self._charge(ledger, name, 5)
            finally:
                os._exit(0)

    def _repeat(self, act: Callable[[], None]) -> None:
        while True:
            time.sleep(self._chance.choice(_PAUSES))
            with suppress(LedgerError):  # of a server that is being killed; damage is seen by who charges
                act()

    def _backup(self) -> None:
        time.sleep(0.5)
        target = self._folder / f"backup-{self._name}-{time.monotonic_ns()}"
        with Ledger.open(self._path) as ledger, ledger.backup(target) as kept:
            kept.history()
        os.write(self._acts, b"b")
        target.unlink()

    def _look(self) -> None:
        time.sleep(0.05)
        with Ledger.open(self._path) as ledger:
            ledger.status()

    def _copy(self) -> None:
        shutil.copy(self._path, self._folder / f"copy-{self._name}")
        os.write(self._acts, b"r")

    def _hash(self) -> None:
        with Path(self._path).open("rb") as file:
            hashlib.file_digest(file, "sha256")
        os.write(self._acts, b"r")

    def _read(self) -> None:
        Path(self._path).read_bytes()
        os.write(self._acts, b"r")


def _kill(group: int) -> None:
    """Kill a process with its children."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(group, 0)
