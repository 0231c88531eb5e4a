"""What tests of the collector share: questions, reports, stores, and an application asked in memory."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from sourdine.accounting.certificate import SigningKey
from sourdine.collector.announcement import Announcement, SignedAnnouncement
from sourdine.collector.period import today
from sourdine.collector.server import CollectorApplication
from sourdine.collector.settings import CollectorSettings, open_store
from sourdine.collector.store import ReportStore
from sourdine.collector.submission import BodyKind, Submission
from sourdine.local import GRR, Question
from sourdine.local.lines import written
from sourdine.local.oracle import Bytes

KEY = SigningKey.generate("office")
WORK = Question(name="work", oracle=GRR(epsilon=1, categories=4), labels=("walk", "bike", "bus", "car"))


def announced(question: Question = WORK, **more: Any) -> SignedAnnouncement:
    """A question that is open now."""
    terms = {"opens": today() - timedelta(days=1), "closes": today() + timedelta(days=30), **more}
    return SignedAnnouncement.sign(Announcement(question=question, **terms), KEY)


def reports(count: int, seed: int = 0, question: Question = WORK) -> Bytes:
    """Some reports to a question, packed."""
    return question.oracle.pack(np.random.default_rng(seed).integers(0, 4, count))


def lines(count: int, seed: int = 0, question: Question = WORK) -> bytes:
    return written(question.fingerprint, reports(count, seed, question))


def new_store(place: str, *questions: SignedAnnouncement) -> ReportStore:
    store = open_store(place)
    for each in questions or (announced(),):
        store.register(each)
    return store


def submission(
    body: bytes, number: int = 1, *, key: bytes | None = None, period: str = "2026-11-17", **more: Any
) -> Submission:
    kind = more.pop("kind", BodyKind.LINES)
    return Submission(number, secrets.token_bytes(16) if key is None else key, body, kind, period, **more)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[bytes, bytes]
    body: bytes = field(repr=False)


class Client:
    """Asks an application as a server would."""

    def __init__(self, app: CollectorApplication) -> None:
        self.app = app

    async def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | list[bytes] = b"",
        *,
        port: int = 8080,
        pause: float = 0.0,
    ) -> Answer:
        parts = body if isinstance(body, list) else [body]
        sent: list[dict[str, Any]] = []
        waiting = [
            {"type": "http.request", "body": part, "more_body": i + 1 < len(parts)}
            for i, part in enumerate(parts)
        ]

        async def receive() -> dict[str, Any]:
            await asyncio.sleep(pause)
            return waiting.pop(0) if waiting else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), text.encode()) for name, text in (headers or {}).items()],
            "client": ("192.0.2.1", 5000),
            "server": ("127.0.0.1", port),
            "scheme": "http",
            "http_version": "1.1",
        }
        await self.app(scope, receive, send)
        content = b"".join(message.get("body", b"") for message in sent[1:])
        return Answer(sent[0]["status"], dict(sent[0]["headers"]), content)

    async def post(
        self, body: bytes | list[bytes], *, key: str | None = None, question: Question = WORK, **more: Any
    ) -> Answer:
        headers = {
            "Idempotency-Key": secrets.token_hex(16) if key is None else key,
            "Content-Type": "text/plain",
            **more.pop("headers", {}),
        }
        return await self.ask("POST", f"/v1/questions/{question.fingerprint}/reports", headers, body, **more)


@asynccontextmanager
async def running(settings: CollectorSettings) -> AsyncIterator[Client]:
    """An application from its start to its end."""
    app = CollectorApplication(settings)
    async with app._life(None):  # type: ignore[arg-type]
        yield Client(app)


def settings_of(place: Path | str, **more: Any) -> CollectorSettings:
    return CollectorSettings(store=str(place), **more)


DAY = date(2026, 11, 17)
