"""The whole chain audited by canaries, over HTTP and in processes of its own.

    python -m tests.campaigns.collect.canaries --runs 150

A canary gets a token of the issuer and sends the report on one answer or the other to the shuffler, and after
it a crowd whose answers are all the same. Whoever listens at the door of the collector sees each batch as it
comes. From many batches with either answer of the canary, events bound epsilon from below: never above the
epsilon that the collector shows, and far above it with a shuffler that lets the order through.
"""

import argparse
import http.client
import json
import math
import secrets
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from threading import Thread, local
from typing import ClassVar

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from numpy.typing import NDArray

from sourdine.audit import binomial
from sourdine.collector.receipt import BATCH_HEADER, RECEIPT_HEADER, BatchLabel
from sourdine.collector.tokens.blind import SALT, prepare
from sourdine.collector.tokens.token import HEADER, NONCE, Token, TokenRequest
from sourdine.local import GRR, Memo, Question
from sourdine.local.lines import written
from tests.campaigns.collect.device import ask
from tests.campaigns.collect.parts import Office, Part, start

QUESTION = Question(name="canary", oracle=GRR(epsilon=2, categories=2))
_DELTA = Fraction(1, 100)
_ALARM = 1e-6 / 16  # of each bound
_LINES = local()  # a connection of each thread
_MADE: list[http.client.HTTPConnection] = []  # all of those, to be closed
_AGAIN = (0, 408, 429, 503)  # no answer, or that of a server that asks to come again
_OFTEN = 0.05  # seconds between two looks of the shuffler


@dataclass(frozen=True)
class Audit:
    """What canaries showed, beside the claim of the page."""

    batch: int
    runs: int
    claimed: float
    shown: float
    in_order: float
    """What they show with a shuffler that lets the order through."""
    headers: tuple[str, ...]
    """All that came with a batch."""


class _Door(BaseHTTPRequestHandler):
    """Whoever listens before the collector: it passes everything on and remembers it."""

    protocol_version = "HTTP/1.1"
    collector: ClassVar[int] = 0
    batches: ClassVar[list[bytes]] = []
    names: ClassVar[set[str]] = set()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        there = http.client.HTTPConnection("127.0.0.1", _Door.collector, timeout=60)
        there.request("POST", self.path, body, dict(self.headers.items()))
        answer = there.getresponse()
        content = answer.read()
        there.close()
        label = BatchLabel.from_text(self.headers.get(BATCH_HEADER, ""))
        if answer.status == 201 and label is not None:
            _Door.batches.append(body[: label.reports * QUESTION.oracle.width])
            _Door.names.update(name.lower() for name in self.headers)
        self.send_response(answer.status)
        if RECEIPT_HEADER in answer.headers:
            self.send_header(RECEIPT_HEADER, answer.headers[RECEIPT_HEADER])
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def look_often() -> None:
    """Make a shuffler look more often than every second whether it has a batch."""
    from sourdine.collector import server

    server._PASS_ON = _OFTEN


def keep_order() -> None:
    """Make a shuffler a faulty one: reports leave it as they came."""
    from sourdine.collector import store
    from sourdine.collector.shuffler import batches

    look_often()
    numbers = count(1)

    def in_order(many: int) -> NDArray[np.uint64]:
        return np.array([next(numbers) for _ in range(many)], np.uint64)

    for module in (store, batches):
        module.random_numbers = in_order  # type: ignore[attr-defined]
    batches.permutation = lambda count, bits: np.arange(count)  # type: ignore[attr-defined]


@contextmanager
def _running(
    folder: Path, batch: int, people: int, change: Callable[[], None]
) -> Iterator[tuple[Office, dict[str, Part]]]:
    folder.mkdir()
    office = Office.open(folder, QUESTION, batch=batch, people=people, delta=_DELTA)
    door = ThreadingHTTPServer(("127.0.0.1", 0), _Door)
    Thread(target=door.serve_forever, daemon=True).start()
    parts = office.parts(door=int(door.server_address[1]), change=change)
    _Door.collector, _Door.batches = parts["serve"].port, []
    start(parts)
    try:
        while not all(each.is_up for each in parts.values()):
            assert all(each.process is not None and each.process.is_alive() for each in parts.values())
            time.sleep(0.2)
        yield office, parts
    finally:
        while _MADE:
            _MADE.pop().close()
        for each in parts.values():
            each.stop()
        door.shutdown()
        door.server_close()


def _canary_token(office: Office, port: int, code: str) -> Token:
    request = TokenRequest.draw(office.key.public_key())
    headers = {"Authorization": f"Bearer {code}"}
    path = f"/v1/questions/{QUESTION.fingerprint}/tokens"
    while (reply := ask(port, path, headers, request.blinding.blinded))[0] != 200:
        assert reply[0] in _AGAIN, reply[0]
        time.sleep(_OFTEN)
    return request.finish(reply[1])


def _token(office: Office) -> Token:
    """One of the crowd: what the issuer's key signs, without the way to it."""
    message = prepare(secrets.token_bytes(NONCE))
    rule = padding.PSS(padding.MGF1(hashes.SHA384()), SALT)
    return Token(message, office.key.sign(message, rule, hashes.SHA384()))


def _send(port: int, token: Token, answer: int) -> None:
    """Send a report until it is acknowledged, as devices do.

    A process that was stopped for some seconds, as on a busy machine, is told 408 if it had sent a head and
    no body yet, and finds a connection cut that it had left idle.
    """
    row = Memo(QUESTION, secrets.token_bytes(32)).row(answer)
    headers = {
        "Idempotency-Key": secrets.token_hex(16),
        "Content-Type": "text/plain",
        HEADER: token.to_text(),
    }
    path = f"/v1/questions/{QUESTION.fingerprint}/reports"
    while (status := _status(port, path, written(QUESTION.fingerprint, row), headers)) not in (200, 201):
        assert status in _AGAIN, status
        time.sleep(_OFTEN)


def _status(port: int, path: str, body: bytes, headers: dict[str, str]) -> int:
    """The answer to a request on this thread's connection; 0 without one."""
    connection = getattr(_LINES, "connection", None)
    if connection is None or connection.port != port:
        connection = _LINES.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        _MADE.append(connection)
    try:
        connection.request("POST", path, body, headers)
        reply = connection.getresponse()
        reply.read()
    except (OSError, http.client.HTTPException):
        connection.close()
        return 0
    return int(reply.status)


def watch(
    folder: Path, *, batch: int, runs: int, change: Callable[[], None]
) -> tuple[NDArray[np.int64], float]:
    """For each answer of the canary and each batch: its first report, and by how much the count of 1 moved.

    Also the epsilon that the collector shows in the end.
    """
    seen = np.zeros((2, runs, 2), np.int64)
    with _running(folder, batch, 2 * runs, change) as (office, parts), ThreadPoolExecutor(16) as crowd:
        port, before = parts["shuffle"].port, 0
        for run in range(2 * runs):
            answer = run % 2
            _send(port, _canary_token(office, parts["issue"].port, office.codes[run]), answer)
            list(crowd.map(lambda _: _send(port, _token(office), 0), range(batch - 1)))
            while len(_Door.batches) <= run:
                time.sleep(_OFTEN / 4)
            rows = np.frombuffer(_Door.batches[run], np.uint8)
            ones = before + int(rows.sum())
            seen[answer, run // 2] = rows[0], ones - before
            before = ones
        place = f"http://127.0.0.1:{parts['serve'].port}/v1/questions/{QUESTION.fingerprint}/estimates"
        with urllib.request.urlopen(place, timeout=60) as reply:
            shuffled = json.loads(reply.read())["shuffled"]
    sizes = [len(each) for each in _Door.batches]
    assert (shuffled["batches"], shuffled["smallest"]) == (len(sizes), min(sizes))
    return seen, float(shuffled["epsilon"])


def shown(seen: NDArray[np.int64], batch: int) -> float:
    """The largest epsilon that an event shows: the first report of a batch, or how many reports are 1."""
    share = 1 / (1 + math.exp(2))
    centre = batch * share + 0.5
    events: list[NDArray[np.bool_]] = [seen[:, :, 0] == 1]
    events += [seen[:, :, 1] >= round(centre + step) for step in (0, 2, 4)]
    best = 0.0
    for event in events:
        for above, below in ((event[1], event[0]), (~event[0], ~event[1])):
            p = binomial.least(int(above.sum()), len(above), _ALARM) - float(_DELTA)
            q = binomial.most(int(below.sum()), len(below), _ALARM)
            best = max(best, math.log(p / q) if p > q else 0.0)
    return best


def audit(folder: Path, *, batch: int, runs: int) -> Audit:
    """Both shufflers, the right one and the faulty one."""
    seen, claimed = watch(folder / "right", batch=batch, runs=runs, change=look_often)
    names = tuple(sorted(_Door.names))
    faulty, _ = watch(folder / "faulty", batch=batch, runs=runs, change=keep_order)
    return Audit(batch, runs, claimed, shown(seen, batch), shown(faulty, batch), names)


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--batch", type=int, default=100)
    reader.add_argument("--runs", type=int, default=150)
    asked = reader.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(asdict(audit(Path(folder), batch=asked.batch, runs=asked.runs)), indent=1))


if __name__ == "__main__":
    main()
