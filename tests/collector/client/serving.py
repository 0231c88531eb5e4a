"""A collector in a process of its own, as somebody runs it, for tests of what comes over the network."""

import http.client
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sourdine.local import GRR, Oracle, Question
from tests.collector.parts import KEY, announced

LABELS = ("on foot", "bicycle", "train", "bus", "car")
WAY = Question(name="How do you get to work?", oracle=GRR(epsilon=2, categories=5), labels=LABELS)


@dataclass(frozen=True)
class Answer:
    """What the server said."""

    status: int
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Serving:
    """A server that runs: where, which question it asks, and all that it wrote."""

    port: int
    results_port: int
    question: Question
    folder: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pin(self) -> str:
        """The key that the question is signed by, as clients pin it."""
        return KEY.public.raw.hex()

    @property
    def log(self) -> str:
        """What the server wrote so far."""
        return (self.folder / "out").read_text() + (self.folder / "err").read_text()

    @property
    def path(self) -> str:
        return f"/v1/questions/{self.question.fingerprint}/reports"

    def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        return self._ask(self.port, method, path, body, headers)

    def result(self, path: str) -> Answer:
        """What is shown on the port for results."""
        return self._ask(self.results_port, "GET", path)

    def _ask(
        self, port: int, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            return Answer(response.status, response.read())
        finally:
            connection.close()

    def post(self, body: bytes, key: str | None = None, **headers: str) -> Answer:
        """A submission; headers are named with underscores."""
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        standard = {"Content-Type": "text/plain", "Idempotency-Key": key or secrets.token_hex(16)}
        return self.ask("POST", self.path, body, standard | named)

    def sums(self) -> list[int]:
        """The counts so far."""
        sums: list[int] = self.result(f"/v1/questions/{self.question.fingerprint}/counts").json["sums"]
        return sums

    def line(self, category: int = 0) -> bytes:
        """A report to the question."""
        row = category.to_bytes(self.question.oracle.width, "big")
        return f"{self.question.fingerprint} {row.hex()}\n".encode()


@contextmanager
def serving(
    folder: Path, oracle: Oracle | None = None, *, labels: tuple[str, ...] = LABELS, **terms: Any
) -> Iterator[Serving]:
    """A collector with one question, on a port of its own; it is ended with the test."""
    question = WAY if oracle is None else Question(name=WAY.name, oracle=oracle, labels=labels)
    announcement = folder / "way.announcement.json"
    announcement.write_text(announced(question, **terms).to_text(), encoding="utf-8")
    arguments = [
        announcement,
        "--store",
        folder / "reports.db",
        "--port",
        "0",
        "--public-results",
        "--rate",
        "0",
    ]
    command = [sys.executable, "-m", "sourdine", "collect", "serve", *map(str, arguments)]
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=err, env=os.environ.copy())
        assert process.stdout is not None
        ports: list[int] = []
        try:
            for line in process.stdout:
                out.write(line)
                out.flush()
                if line.startswith((b"Listening on ", b"Results: ")):
                    ports.append(int(line.decode().rstrip("/\n").rpartition(":")[2]))
                if len(ports) == 2:
                    break
            else:
                raise AssertionError((folder / "err").read_text())
            yield Serving(ports[0], ports[1], question, folder)
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
            process.stdout.close()
