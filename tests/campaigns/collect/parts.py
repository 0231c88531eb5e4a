"""Issuer, shuffler and collector of one question as processes of their own, started by their commands."""

import multiprocessing
import os
import secrets
import sys
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives import serialization

from sourdine.accounting.certificate import SigningKey
from sourdine.collector.announcement import Announcement, SignedAnnouncement
from sourdine.collector.period import KeptPeriod, today
from sourdine.collector.processes import listen
from sourdine.collector.tokens.blind import new_key, public_text
from sourdine.local import Question

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerProcess

    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

PROCESSES = multiprocessing.get_context("forkserver")
"""Which has the packages loaded, so that starting is quick."""
LOADED = [
    "sourdine.cli",
    "sourdine.collector.processes",
    "sourdine.local.words",
    "sourdine.local.poisoning",
    "tests.campaigns.collect.device",
]
Change = Callable[[], None]


def run_command(arguments: list[str], folder: Path, change: Change | None) -> None:
    """A command as it is typed, in a process of its own; `change` makes it a faulty one."""
    from sourdine.cli import main as command

    os.chdir(folder)
    log = os.open(f"{arguments[0]}.log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(log, stream)
    if change is not None:
        change()
    sys.argv = ["sourdine", "collect", *arguments]
    command()


def free_port() -> int:
    """A port that nobody listens at."""
    with listen("127.0.0.1", 0) as sock:
        return int(sock.getsockname()[1])


@dataclass
class Part:
    """A process that is started again at its port whenever it is killed."""

    arguments: list[str]
    folder: Path
    port: int = field(default_factory=free_port)
    change: Change | None = None
    process: "ForkServerProcess | None" = field(default=None, repr=False)

    def start(self) -> None:
        """Start it."""
        command = [*self.arguments, "--port", str(self.port)]
        self.process = PROCESSES.Process(target=run_command, args=(command, self.folder, self.change))
        self.process.start()

    @property
    def is_up(self) -> bool:
        """Whether it answers."""
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5).close()
        except OSError:
            return False
        return True

    def revive(self) -> None:
        """Start it again if it has ended by itself, as a service manager does."""
        if self.process is not None and not self.process.is_alive():
            self.process.join()
            self.start()

    def kill(self) -> None:
        """End it as a crash would."""
        assert self.process is not None
        self.process.kill()
        self.process.join()

    def stop(self) -> None:
        """End it in order."""
        assert self.process is not None
        self.process.terminate()
        self.process.join(60)


@dataclass(frozen=True)
class Office:
    """A question with a shuffler and tokens, and the files of whoever asks it."""

    folder: Path
    signed: SignedAnnouncement
    key: "RSAPrivateKey" = field(repr=False)
    codes: list[str] = field(repr=False)

    @classmethod
    def open(
        cls,
        folder: Path,
        question: Question,
        *,
        batch: int,
        people: int,
        delta: Fraction = Fraction(1, 10**6),
    ) -> "Office":
        """Announce a question, and write a code for each of some people."""
        key = new_key()
        terms = Announcement(
            question=question,
            opens=today() - timedelta(days=1),
            closes=today() + timedelta(days=30),
            period=KeptPeriod.WHOLE,
            batch=batch,
            delta=delta,
            tokens=public_text(key.public_key()),
        )
        signed = SignedAnnouncement.sign(terms, SigningKey.generate("office"))
        codes = [secrets.token_hex(16) for _ in range(people)]
        form = serialization.PrivateFormat.PKCS8
        (folder / "key.pem").write_bytes(
            key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
        )
        (folder / "q.json").write_text(signed.to_text(), encoding="utf-8")
        (folder / "codes.txt").write_text("\n".join(codes) + "\n", encoding="ascii")
        (folder / "pair.key").write_bytes(os.urandom(32))
        return cls(folder, signed, key, codes)

    def parts(self, *, door: int = 0, change: Change | None = None) -> dict[str, Part]:
        """The three processes; batches go to the port `door` if there is one, else to the collector."""
        secret = ["--shuffler-secret", "pair.key"]
        shown = ["--public-results", "--results-port", "0"]
        collector = Part(["serve", "q.json", "--rate", "0", *shown, *secret], self.folder)
        there = ["--collector", f"http://127.0.0.1:{door or collector.port}", "--secret", "pair.key"]
        issue = ["issue", "q.json", "--key", "key.pem", "--codes", "codes.txt", "--rate", "0"]
        return {
            "issue": Part(issue, self.folder),
            "shuffle": Part(["shuffle", "q.json", *there, "--rate", "0"], self.folder, change=change),
            "serve": collector,
        }


def start(parts: dict[str, Part]) -> None:
    """Start processes, with all that they need loaded beforehand."""
    PROCESSES.set_forkserver_preload(LOADED)
    for each in parts.values():
        each.start()
