"""The whole chain in processes of its own, each killed at random: issuer, shuffler, collector, devices.

    python -m benchmarks.collect.chain --clients 1000 --kills 50

Every device has a code and a number. It gets a token, sends its number as its report until that
is acknowledged; one of ten then tries to spend its token for another number. In the end every token must have
been spent once, and every acknowledged number be in one batch at most.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import secrets
import sys
import tempfile
import time
import urllib.request
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sourdine.accounting.certificate.keys import SigningKey
from sourdine.collector.announcement import Announcement, SignedAnnouncement
from sourdine.collector.issuer import CodeStore
from sourdine.collector.period import KeptPeriod, today
from sourdine.collector.processes import listen
from sourdine.collector.settings import open_store
from sourdine.collector.store import recount
from sourdine.collector.tokens.blind import new_key, public_text, read_public
from sourdine.collector.tokens.token import Token, TokenRequest
from sourdine.local import GRR, Question
from sourdine.local.lines import written

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerProcess

QUESTION = Question(name="numbers", oracle=GRR(epsilon=1, categories=1 << 16))
_BATCH = 20
_PAUSE = 0.2  # seconds until a device tries again


@dataclass
class Chain:
    """What was left after so many kills of each process."""

    clients: int
    kills: int
    batch: int
    acknowledged: int = 0
    sent_again: int = 0
    tokens: int = 0
    collected: int = 0
    at_the_shuffler: int = 0
    batches: int = 0
    smallest_batch: int = 0
    twice: int = 0
    unknown: int = 0
    lost: int = 0
    spent_twice: int = 0
    seconds: float = 0.0


_SERVER = multiprocessing.get_context(
    "forkserver"
)  # which has the packages loaded, so that starting is quick
_LOADED = ["sourdine.cli", "sourdine.collector.processes", "sourdine.local.words", "sourdine.local.poisoning"]


def _run_command(arguments: list[str], folder: Path) -> None:
    """A command as it is typed, in a process of its own."""
    from sourdine.cli import main as command

    os.chdir(folder)
    log = os.open(f"{arguments[0]}.log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(log, stream)
    sys.argv = ["sourdine", "collect", *arguments]
    command()


@dataclass
class _Part:
    """A process that is started again at its port whenever it is killed."""

    arguments: list[str]
    folder: Path
    port: int = 0
    process: "ForkServerProcess | None" = field(default=None, repr=False)

    def start(self) -> None:
        """Start it."""
        if not self.port:
            with listen("127.0.0.1", 0) as sock:
                self.port = int(sock.getsockname()[1])
        command = [*self.arguments, "--port", str(self.port)]
        self.process = _SERVER.Process(target=_run_command, args=(command, self.folder))
        self.process.start()

    @property
    def is_up(self) -> bool:
        """Whether it answers."""
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5).close()
        except OSError:
            return False
        return True

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


async def _ask(port: int, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
    """Status and body of one request; (0, nothing) without an answer."""
    head = "".join(f"{name}: {text}\r\n" for name, text in headers.items())
    message = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n{head}\r\n"
    )
    try:
        async with asyncio.timeout(15):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(message.encode() + body)
                answer = await reader.read()
            finally:
                writer.close()
        first, _, rest = answer.partition(b"\r\n\r\n")
        return int(first.split()[1]), rest
    except (OSError, asyncio.IncompleteReadError, TimeoutError, IndexError, ValueError):
        return 0, b""


class _Devices:
    """All devices, of which more begin the more kills there were."""

    def __init__(self, codes: list[str], key: str, ports: dict[str, int], seed: int) -> None:
        self.codes, self.key, self.ports = codes, read_public(key), ports
        self.progress, self.dice = 0.0, random.Random(seed)
        self.acknowledged: set[int] = set()
        self.sent_again = self.spent_twice = 0

    async def run(self, number: int) -> None:
        while self.progress * len(self.codes) < number:
            await asyncio.sleep(_PAUSE)
        token = await self._token(number)
        name = secrets.token_hex(16)
        while await self._report(token, number, name) not in (200, 201):
            self.sent_again += 1
            await asyncio.sleep(1 + self.dice.random())
        self.acknowledged.add(number)
        if number % 10 == 0:  # a cheat
            other = len(self.codes) + number
            while (status := await self._report(token, other, secrets.token_hex(16))) not in (200, 201, 409):
                await asyncio.sleep(_PAUSE)
            self.spent_twice += status != 409

    async def _token(self, number: int) -> Token:
        request = TokenRequest.draw(self.key)
        path = f"/v1/questions/{QUESTION.fingerprint}/tokens"
        headers = {
            "Authorization": f"Bearer {self.codes[number]}",
            "Content-Type": "application/octet-stream",
        }
        while True:
            status, body = await _ask(self.ports["issue"], path, headers, request.blinding.blinded)
            if status == 200:
                return request.finish(body)
            self.sent_again += 1
            await asyncio.sleep(1 + self.dice.random())

    async def _report(self, token: Token, number: int, name: str) -> int:
        line = written(QUESTION.fingerprint, QUESTION.oracle.pack(np.array([number])))
        headers = {"Idempotency-Key": name, "Content-Type": "text/plain", "Sourdine-Token": token.to_text()}
        path = f"/v1/questions/{QUESTION.fingerprint}/reports"
        return (await _ask(self.ports["shuffle"], path, headers, line))[0]


def run_chain(folder: Path, *, clients: int, kills: int, seed: int) -> Chain:
    """Run all of it once, with so many kills of each process."""
    began = time.monotonic()
    key, dice = new_key(), random.Random(seed)
    signed = SignedAnnouncement.sign(
        Announcement(
            question=QUESTION,
            opens=today() - timedelta(days=1),
            closes=today() + timedelta(days=30),
            period=KeptPeriod.WHOLE,
            batch=_BATCH,
            tokens=public_text(key.public_key()),
        ),
        SigningKey.generate("office"),
    )
    parts = _parts(folder, signed, key, codes := [secrets.token_hex(16) for _ in range(clients)])
    _SERVER.set_forkserver_preload(_LOADED)
    for each in parts.values():
        each.start()
    ports = {name: each.port for name, each in parts.items()}
    devices = _Devices(codes, signed.announcement.tokens, ports, seed)

    async def torment(name: str) -> None:
        """Kill a process so often, each time at a random moment after it has come up."""
        for _ in range(kills):
            while not await asyncio.to_thread(lambda: parts[name].is_up):
                await asyncio.sleep(0.1)
            await asyncio.sleep(dice.expovariate(1.0))
            await asyncio.to_thread(parts[name].kill)
            parts[name].start()
            devices.progress += 1 / (kills * len(parts))

    async def run() -> None:
        tasks = [asyncio.create_task(devices.run(i)) for i in range(clients)]
        await asyncio.gather(*(torment(name) for name in parts))
        devices.progress = 2.0
        await asyncio.gather(*tasks)
        await asyncio.sleep(8)  # for batches that are on their way

    asyncio.run(run())
    for each in parts.values():
        each.stop()
    chain = _count(folder, devices, clients, kills)
    chain.seconds = round(time.monotonic() - began, 1)
    return chain


def _parts(folder: Path, signed: SignedAnnouncement, key: object, codes: list[str]) -> dict[str, _Part]:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    assert isinstance(key, rsa.RSAPrivateKey)
    form = serialization.PrivateFormat.PKCS8
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    )
    (folder / "q.json").write_text(signed.to_text(), encoding="utf-8")
    (folder / "codes.txt").write_text("\n".join(codes) + "\n", encoding="ascii")
    (folder / "pair.key").write_bytes(os.urandom(32))
    collector = _Part(
        ["serve", "q.json", "--rate", "0", "--public-results", "--shuffler-secret", "pair.key"], folder
    )
    sock = listen("127.0.0.1", 0)
    collector.port = int(sock.getsockname()[1])
    sock.close()
    there = ["--collector", f"http://127.0.0.1:{collector.port}", "--secret", "pair.key", "--rate", "0"]
    issue = ["issue", "q.json", "--key", "key.pem", "--codes", "codes.txt", "--rate", "0"]
    return {
        "issue": _Part(issue, folder),
        "shuffle": _Part(["shuffle", "q.json", *there], folder),
        "serve": collector,
    }


def _count(folder: Path, devices: _Devices, clients: int, kills: int) -> Chain:
    collected, waiting = open_store(str(folder / "reports.db")), open_store(str(folder / "shuffler.db"))
    sums, rest = recount(collected, 1, QUESTION).sums, recount(waiting, 1, QUESTION).sums
    codes = CodeStore(folder / "codes.db")
    sizes = {
        int(kind.removeprefix("batch-")): count
        for (_, kind), count in collected.events().items()
        if kind.startswith("batch-")
    }
    known = np.zeros(len(sums), np.bool_)
    known[list(devices.acknowledged)] = True
    chain = Chain(clients, kills, _BATCH)
    chain.acknowledged, chain.sent_again = len(devices.acknowledged), devices.sent_again
    chain.tokens, chain.spent_twice = codes.used, devices.spent_twice
    chain.collected, chain.at_the_shuffler = int(sums.sum()), int(rest.sum())
    chain.batches, chain.smallest_batch = sum(sizes.values()), min(sizes, default=0)
    chain.twice = int(((sums + rest) > 1).sum())
    chain.unknown = int(((sums + rest > 0) & ~known).sum())
    chain.lost = int(((sums + rest == 0) & known).sum())
    return chain


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--clients", type=int, default=1000)
    reader.add_argument("--kills", type=int, default=50)
    reader.add_argument("--seed", type=int, default=1)
    asked = reader.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        chain = run_chain(Path(folder), clients=asked.clients, kills=asked.kills, seed=asked.seed)
    print(json.dumps(asdict(chain), indent=1))


if __name__ == "__main__":
    main()
