"""The way of a request with reports: who may send, how much, in which form; stored, and then answered.

It speaks ASGI itself, since nearly all requests are of this kind. Nothing of a request is logged or repeated
in an answer.
"""

import asyncio
import hmac
import json
import re
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sourdine.collector.announcement import MOST_BATCH
from sourdine.collector.period import LATE, today
from sourdine.collector.rates import Rates
from sourdine.collector.settings import CollectorSettings
from sourdine.collector.store import StoredQuestion
from sourdine.collector.submission import BodyKind, Submission, SubmissionOutcome, SubmissionStanding
from sourdine.collector.tokens.blind import read_public
from sourdine.collector.tokens.token import Token
from sourdine.collector.writer import QueueFull, StoreFailed, Writer
from sourdine.local.lines import LineFault

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from starlette.types import Receive, Scope, Send

PATH = re.compile(r"/v1/questions/([0-9a-f]{16})/reports")
_ID = re.compile(rb"[0-9a-f]{32}")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[0-9a-z.-]+)(:\d{1,5})?")
_RETRY = b"5"  # seconds
_AGAIN = {429, 503}
_ONCE = frozenset(
    (
        b"host",
        b"origin",
        b"idempotency-key",
        b"content-type",
        b"content-encoding",
        b"content-length",
        b"sourdine-token",
        b"sourdine-shuffler",
    )
)
_WORDS = {
    "id": "The header Idempotency-Key must be 32 hexadecimal digits: 16 random bytes, the same at each try.",
    "headers": "A header that decides something came twice. Send each once.",
    "encoding": "The body must not be compressed.",
    "empty": "The body holds no reports.",
    "shape": "The length of the body is no multiple of the length of a report.",
    "origin": "Pages of this origin may not send reports here.",
    "not-open": "The question is not open yet.",
    "unknown": "No such question is asked here.",
    "conflict": "The same Idempotency-Key was used for another body. Draw a new one for each submission.",
    "another-question": "All lines are of another question.",
    "shuffled": "Reports to this question are taken from its shuffler alone. Send them there.",
    "small": "A batch must be packed, and hold as many reports as was announced.",
    "token": "A report to this question needs a token of its own, from the issuer of the question.",
    "one-report": "With a token goes one report.",
    "slow": "The body came too slowly.",
    "closed": "The question is closed. No more reports are taken.",
    "large": "The body is too large.",
    "type": "The type of the body must be text/plain or application/octet-stream.",
    "no-report": "No line is a report to this question.",
    "rate": "Too many requests. Come again later, with the same Idempotency-Key.",
    "busy": "The queue is full. Come again later, with the same Idempotency-Key.",
    "store": "The reports could not be stored. Send them again, with the same Idempotency-Key.",
}


class Refusal(Exception):
    """A request that is answered with an error: its status and the word for it."""

    def __init__(self, status: int, word: str) -> None:
        super().__init__(word)
        self.status, self.word = status, word


class Reception:
    """Takes requests with reports to the questions that are asked."""

    def __init__(self, settings: CollectorSettings, writer: Writer) -> None:
        self._settings, self._writer = settings, writer
        self._rates = Rates(settings.rate)
        self.questions: Mapping[str, StoredQuestion] | None = None
        """What is asked here; None as long as the store has not answered."""
        self._errors = {word: _body({"error": word, "message": text}) for word, text in _WORDS.items()}

    async def take(self, scope: "Scope", receive: "Receive", send: "Send", fingerprint: str) -> None:
        """Answer a request with reports to the question of a fingerprint."""
        headers = dict(scope["headers"])
        origin = headers.get(b"origin", b"")
        allowed = origin_allowed(self._settings, headers)
        more = cors(origin) if origin and allowed else []
        number = 0
        try:
            if _is_told_twice(scope["headers"]):  # whatever stands before this server may have read the other
                raise Refusal(400, "headers")
            if not allowed:
                raise Refusal(403, "origin")
            if not self._rates.admits((scope.get("client") or ("", 0))[0]):
                raise Refusal(429, "rate")
            if self.questions is None:
                raise Refusal(503, "store")
            question = self.questions.get(fingerprint)
            if question is None:
                raise Refusal(404, "unknown")
            number = question.number
            day = today()
            _check_open(question, day, LATE if self._from_shuffler(question) else timedelta())
            submission = await self._submission(headers, receive, question, day)
            status, body = _answer(await self._stored(submission))
        except Refusal as refusal:
            self._writer.count(number, f"refused-{refusal.word}")
            status, body = refusal.status, self._errors[refusal.word]
        if status in _AGAIN:
            more = [*more, (b"retry-after", _RETRY)]
        if status in (408, 413):
            more = [*more, (b"connection", b"close")]  # whose body is not read to its end
        await respond(send, status, body, more)

    async def _submission(
        self, headers: Mapping[bytes, bytes], receive: "Receive", question: StoredQuestion, day: date
    ) -> Submission:
        key = headers.get(b"idempotency-key", b"")
        if not _ID.fullmatch(key):
            raise Refusal(400, "id")
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
        if kind not in tuple(BodyKind):
            raise Refusal(415, "type")
        if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
            raise Refusal(415, "encoding")
        declared = headers.get(b"content-length", b"0")
        most = self._settings.most_body
        if self._from_shuffler(question):
            most = max(most, MOST_BATCH)
        if not declared.isdigit() or int(declared[:20]) > most:
            raise Refusal(413, "large")
        body = await self._read(receive, most)
        if not body:
            raise Refusal(400, "empty")
        if kind == BodyKind.PACKED and len(body) % question.question.oracle.width:
            raise Refusal(400, "shape")
        announcement = question.signed.announcement
        is_batch = self._from_shuffler(question)
        if is_batch:
            self._check_batch(headers, len(body) // question.question.oracle.width, announcement.batch)
        name = bytes.fromhex(key.decode())
        if announcement.tokens and not is_batch:
            one = (
                question.question.oracle.width
                if kind == BodyKind.PACKED
                else len(body.partition(b"\n")[0]) + 1
            )
            name = _spend(headers, announcement.tokens, is_one=len(body) <= one)
        period = "" if self._settings.shuffles else announcement.period.name_of(day)
        return Submission(question.number, name, body, BodyKind(kind), period, is_batch)

    def _from_shuffler(self, question: StoredQuestion) -> bool:
        """Whether reports to a question come in batches here."""
        return question.signed.announcement.batch > 0 and not self._settings.shuffles

    def _check_batch(self, headers: Mapping[bytes, bytes], reports: int, least: int) -> None:
        """Take reports to a question that is shuffled from its shuffler alone, and enough of them."""
        known, sent = self._settings.shuffler_key, headers.get(b"sourdine-shuffler", b"")
        packed = headers.get(b"content-type", b"").startswith(BodyKind.PACKED.encode())
        if not known or not hmac.compare_digest(sent, known.encode()):
            raise Refusal(403, "shuffled")
        if not packed or reports < least:
            raise Refusal(422, "small")

    async def _read(self, receive: "Receive", most: int) -> bytes:
        try:
            async with asyncio.timeout(self._settings.body_time):
                message = await receive()
                body = message.get("body", b"")
                if not message.get("more_body", False) and message["type"] == "http.request":
                    if len(body) > most:
                        raise Refusal(413, "large")
                    return bytes(body)
                parts, size = [body], len(body)
                while message.get("more_body", False):
                    if size > most:
                        raise Refusal(413, "large")
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(400, "empty")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                if size > most:
                    raise Refusal(413, "large")
                return b"".join(parts)
        except TimeoutError:
            raise Refusal(408, "slow") from None

    async def _stored(self, submission: Submission) -> SubmissionOutcome:
        try:
            return await self._writer.submit(submission)
        except QueueFull:
            raise Refusal(503, "busy") from None
        except StoreFailed:
            raise Refusal(503, "store") from None


def _is_told_twice(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    named = [name for name, _ in headers if name in _ONCE]
    return len(set(named)) < len(named)


def _spend(headers: Mapping[bytes, bytes], key: str, *, is_one: bool) -> bytes:
    """The id that the token of a request stands for: the store keeps ids, so it is spent with the report."""
    token = Token.from_text(headers.get(b"sourdine-token", b"").decode("latin-1"))
    if token is None or not token.is_valid(_public(key)):
        raise Refusal(401, "token")
    if not is_one:
        raise Refusal(422, "one-report")
    return token.spent_as


@lru_cache(maxsize=64)
def _public(text: str) -> "RSAPublicKey":
    return read_public(text)


def _check_open(question: StoredQuestion, day: date, late: timedelta) -> None:
    announcement = question.signed.announcement
    if question.closed or day > announcement.closes + late:
        raise Refusal(410, "closed")
    if day < announcement.opens:
        raise Refusal(403, "not-open")


def _answer(outcome: SubmissionOutcome) -> tuple[int, bytes]:
    match outcome.standing:
        case SubmissionStanding.STORED if not outcome.faults:
            return 201, b'{"accepted":%d,"quarantined":0,"reasons":{}}' % outcome.accepted
        case SubmissionStanding.STORED:
            reasons = {str(fault): count for fault, count in outcome.faults.items()}
            content = {"accepted": outcome.accepted, "quarantined": sum(reasons.values()), "reasons": reasons}
            return 201, _body(content)
        case SubmissionStanding.DUPLICATE:
            return 200, b'{"accepted":0,"duplicate":true}'
        case SubmissionStanding.CONFLICT:
            raise Refusal(409, "conflict")
        case SubmissionStanding.CLOSED:
            raise Refusal(410, "closed")
        case SubmissionStanding.REFUSED:
            if set(outcome.faults) == {LineFault.ANOTHER}:
                raise Refusal(409, "another-question")
            raise Refusal(422, "no-report")


def origin_allowed(settings: CollectorSettings, headers: Mapping[bytes, bytes]) -> bool:
    """Whether a page may send: one of a declared origin, one of this server by its address, or no page.

    A name in Host is whatever led a browser here, so that any page could have one that leads to this server:
    the server's own name has to be declared like others.
    """
    origin = headers.get(b"origin")
    if origin is None:
        return True
    text = origin.decode("latin-1").lower()
    own = headers.get(b"host", b"").decode("latin-1").lower()
    return text in settings.origins or (is_address(own) and text in (f"http://{own}", f"https://{own}"))


def is_address(host: str) -> bool:
    """Whether what a browser calls a server is an address, or this machine: no name that others can set."""
    name = urlsplit(f"//{host}").hostname if _HOST.fullmatch(host) else None
    if name == "localhost":
        return True
    try:
        ip_address(name or "")
    except ValueError:
        return False
    return True


def cors(origin: bytes) -> list[tuple[bytes, bytes]]:
    """What lets a page of another origin read the answer."""
    return [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]


async def respond(
    send: "Send", status: int, body: bytes, more: list[tuple[bytes, bytes]], kind: bytes = b"application/json"
) -> None:
    """One whole answer."""
    headers = [
        (b"content-type", kind),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        *more,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _body(content: Mapping[str, object]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()
