"""A server in processes of its own, and many browsers' worth of requests to it over the loopback."""

import asyncio
import multiprocessing
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.process import BaseProcess

import numpy as np

from sourdine.accounting.certificate.keys import SigningKey
from sourdine.collector.announcement import Announcement, SignedAnnouncement
from sourdine.collector.period import today
from sourdine.collector.processes import listen, run
from sourdine.collector.settings import CollectorSettings, open_store
from sourdine.collector.sqlite import SqliteStore
from sourdine.collector.store import ReportStore
from sourdine.collector.submission import Submission, SubmissionOutcome, SubmissionStanding
from sourdine.core.errors import InvalidParameter
from sourdine.local import Question
from sourdine.local.lines import written

CONNECTIONS = 256
FORK = multiprocessing.get_context("forkserver")  # a process without threads, which has all loaded already
FORK.set_forkserver_preload(["benchmarks.collect.load"])


class ReadingStore(SqliteStore):
    """Reads submissions as any store does, and keeps nothing of them: the limit that storing is held to."""

    def write(
        self, submissions: Sequence[Submission], events: object = None, *, admitted: bool = False
    ) -> list[SubmissionOutcome]:
        reports = self._read(submissions)
        return [SubmissionOutcome(SubmissionStanding.STORED, len(each.rows), each.faults) for each in reports]


class WithoutStorage(CollectorSettings):
    """The same server, with a store that keeps nothing."""

    def open_store(self) -> ReportStore:
        return ReadingStore(open_store(self.store).path)  # type: ignore[attr-defined]


def announced(question: Question) -> SignedAnnouncement:
    """A question that is open now."""
    terms = Announcement(question=question, opens=today(), closes=today() + timedelta(days=30), thresholds={})
    return SignedAnnouncement.sign(terms, SigningKey.generate("bench"))


def _serve(settings: CollectorSettings, port: int, workers: int) -> None:
    os.setpgrp()
    sys.stdin = None  # there is none here, and workers would ask for it
    run(settings, [_listen_again(port)], workers=workers)


def _listen_again(port: int) -> socket.socket:
    """A socket at a port that workers which were killed a moment ago may still hold."""
    for _ in range(500):
        try:
            return listen("127.0.0.1", port)
        except InvalidParameter:
            time.sleep(0.02)
    return listen("127.0.0.1", port)


@dataclass
class Served:
    """A server that runs, and the port it listens at."""

    process: BaseProcess
    port: int

    def kill(self) -> None:
        """End every process of it at once, as a power loss would."""
        assert self.process.pid is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.join()

    def stop(self) -> None:
        """Let it end by itself."""
        self.process.terminate()
        self.process.join()


def start(settings: CollectorSettings, workers: int = 1, port: int = 0) -> Served:
    """A server of so many processes, once it answers."""
    if port == 0:
        with listen("127.0.0.1", 0) as sock:
            port = int(sock.getsockname()[1])
    process = FORK.Process(target=_serve, args=(settings, port, workers))
    process.start()
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as probe:
                probe.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                if probe.recv(64).startswith(b"HTTP/1.1 200"):
                    return Served(process, port)
        except OSError:
            pass
        time.sleep(0.02)
    raise TimeoutError("the server does not answer")


@contextmanager
def serving(settings: CollectorSettings, workers: int) -> Iterator[Served]:
    """A server while the block lasts."""
    served = start(settings, workers)
    try:
        yield served
    finally:
        served.stop()


def request(question: Question, body: bytes, key: str) -> bytes:
    """One request as a browser sends it."""
    head = (
        f"POST /v1/questions/{question.fingerprint}/reports HTTP/1.1\r\nHost: collector.example\r\n"
        f"User-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\nAccept: */*\r\nIdempotency-Key: {key}\r\n"
        f"Content-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def requests(question: Question, reports: int, each: int) -> list[bytes]:
    """Requests with so many reports in all, drawn once and sent many times under other ids."""
    rows = question.oracle.pack(question.oracle.sample(np.arange(reports) % 16))
    length = len(written(question.fingerprint, rows[:1]))
    text = written(question.fingerprint, rows)
    return [
        request(question, text[start * length : (start + each) * length], secrets.token_hex(16))
        for start in range(0, reports, each)
    ]


async def _send(port: int, messages: Sequence[bytes]) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    stored = 0
    for message in messages:
        writer.write(message)
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(size)
        stored += head.startswith(b"HTTP/1.1 201")
    writer.close()
    return stored


def flood(port: int, messages: Sequence[bytes]) -> float:
    """Seconds that a server takes for all messages over many connections; each must be stored."""

    async def work() -> float:
        begin = time.perf_counter()
        parts = [messages[i::CONNECTIONS] for i in range(CONNECTIONS)]
        stored = sum(await asyncio.gather(*(_send(port, part) for part in parts if part)))
        took = time.perf_counter() - begin
        assert stored == len(messages), f"{len(messages) - stored} of {len(messages)} were not stored"
        return took

    import uvloop

    return uvloop.run(work())
