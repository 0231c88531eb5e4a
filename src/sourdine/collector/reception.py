"""The way of a request with reports: who may send, how much, in which form; stored, and then answered.

It speaks ASGI itself, since nearly all requests are of this kind. Nothing of a request is logged or repeated
in an answer.
"""

import asyncio
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sourdine.collector.announcement import MOST_BATCH, Announcement
from sourdine.collector.period import LATE, today
from sourdine.collector.rates import Rates
from sourdine.collector.receipt import (
    BATCH_HEADER,
    DIGEST,
    MAC_HEADER,
    RECEIPT_HEADER,
    BatchLabel,
    SharedKey,
    answer_tag,
    same,
)
from sourdine.collector.settings import MOST_BODY, CollectorSettings
from sourdine.collector.store import StoredQuestion
from sourdine.collector.submission import BodyKind, Submission, SubmissionOutcome, SubmissionStanding
from sourdine.collector.tokens.blind import read_public
from sourdine.collector.tokens.token import Token
from sourdine.collector.writer import QueueFull, StoreFailed, Writer
from sourdine.core.errors import SourdineError
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
        b"sourdine-least-batch",
        *(name.lower().encode() for name in (BATCH_HEADER, MAC_HEADER)),
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
    "repeated": "Reports of this batch came in another one, as of a shuffler's store put back from a backup.",
    "revision": "The revision that made this batch is not known here. Register it, and send the batch again.",
    "batch": "Reports to this question are mixed among fewer than the device asks for.",
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
        self._key = SharedKey(settings.shuffler_key)
        self.is_synchronised = not settings.shuffles
        """Whether a shuffler knows what its collector has: until then reports might be taken twice."""
        self.epoch: bytes | None = None

    async def take(self, scope: "Scope", receive: "Receive", send: "Send", fingerprint: str) -> None:
        """Answer a request with reports to the question of a fingerprint."""
        headers = dict(scope["headers"])
        origin = headers.get(b"origin", b"")
        allowed = origin_allowed(self._settings, headers)
        more = cors(origin) if origin and allowed else []
        number, tag = 0, ""
        try:
            if _is_told_twice(scope["headers"]):  # whatever stands before this server may have read the other
                raise Refusal(400, "headers")
            if not allowed:
                raise Refusal(403, "origin")
            if not self._rates.admits((scope.get("client") or ("", 0))[0]):
                raise Refusal(429, "rate")
            if self.questions is None or not self.is_synchronised:
                raise Refusal(503, "store")
            question = self.questions.get(fingerprint)
            if question is None:
                raise Refusal(404, "unknown")
            number = question.number
            key = headers.get(b"idempotency-key", b"")
            if not _ID.fullmatch(key):
                raise Refusal(400, "id")
            tag = answer_tag(bytes.fromhex(key.decode()))
            submission, content = await self._submission(headers, receive, question, today())
            status, body = _answer(await self._stored(submission), tag)
            if submission.label is not None:
                # The writer has answered after its commit, which is on the disk.
                assert self.epoch is not None
                receipt = self._key.receipt(fingerprint, submission.label, content, self.epoch)
                more = [*more, (RECEIPT_HEADER.lower().encode(), receipt.encode())]
        except Refusal as refusal:
            self._writer.count(number, f"refused-{refusal.word}")
            status = refusal.status
            body = self._errors[refusal.word]
            if tag:
                body = _body({"error": refusal.word, "message": _WORDS[refusal.word], "answer": tag})
        if status in _AGAIN:
            more = [*more, (b"retry-after", _RETRY)]
        if status in (408, 413):
            more = [*more, (b"connection", b"close")]  # whose body is not read to its end
        await respond(send, status, body, more)

    async def _submission(
        self, headers: Mapping[bytes, bytes], receive: "Receive", question: StoredQuestion, day: date
    ) -> tuple[Submission, bytes]:
        """Read and check a submission; with it the whole body, which a receipt is over."""
        announcement, label = question.signed.announcement, self._label(headers, question)
        width = question.question.oracle.width
        if label is not None:
            announcement = await self._revision(question, label)
            _check_size(label, announcement.batch, width)
        # A later revision may have prolonged the question, or shortened it after the batch was sealed.
        closes = max(announcement.closes, question.signed.announcement.closes)
        _check_open(question, announcement.opens, closes + (timedelta() if label is None else LATE), day)
        if label is None and announcement.batch and not self._settings.shuffles:
            raise Refusal(403, "shuffled")
        if label is None:
            _check_least(headers, announcement.batch)
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
        if kind not in tuple(BodyKind):
            raise Refusal(415, "type")
        if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
            raise Refusal(415, "encoding")
        declared = headers.get(b"content-length", b"0")
        most = self._settings.most_body
        if label is not None:
            most = max(most, label.reports * width + label.submissions * DIGEST)
        if not declared.isdigit() or len(declared) > 20 or int(declared) > most:
            raise Refusal(413, "large")
        body = await self._read(receive, most)
        if not body:
            raise Refusal(400, "empty")
        name = bytes.fromhex(headers[b"idempotency-key"].decode())
        if label is not None:
            rows = self._check_batch(headers, question, label, body, announcement.batch)
            if name != label.id:
                raise Refusal(403, "shuffled")
            period = announcement.period.name_of(min(day, closes))
            digests = body[len(rows) :]
            return Submission(question.number, name, rows, BodyKind(kind), period, label, digests), body
        if kind == BodyKind.PACKED and len(body) % width:
            raise Refusal(400, "shape")
        if announcement.tokens:
            one = width if kind == BodyKind.PACKED else len(body.partition(b"\n")[0]) + 1
            name = _spend(headers, announcement.token_keys, is_one=len(body) <= one)
        period = "" if self._settings.shuffles else announcement.period.name_of(day)
        return Submission(question.number, name, body, BodyKind(kind), period), body

    def _label(self, headers: Mapping[bytes, bytes], question: StoredQuestion) -> BatchLabel | None:
        """Return the label of a batch, if this is one."""
        sent = headers.get(BATCH_HEADER.lower().encode())
        if sent is None or self._settings.shuffles:
            return None
        label = BatchLabel.from_text(sent.decode("latin-1"))
        if label is None or not self._settings.shuffler_key or MAC_HEADER.lower().encode() not in headers:
            raise Refusal(403, "shuffled")
        return label

    async def _revision(self, question: StoredQuestion, label: BatchLabel) -> Announcement:
        """Return the announcement under which a batch was sealed, by which it is judged."""
        known = await asyncio.to_thread(self._find_revision, question, label.revision)
        if known is None or not known.batch:
            raise Refusal(409, "revision")
        return known

    def _find_revision(self, question: StoredQuestion, version: int) -> Announcement | None:
        if question.signed.announcement.version == version:
            return question.signed.announcement
        store = self._settings.open_store()
        try:
            found = store.revisions(question.number).get(version)
        finally:
            store.close()
        return None if found is None else found.announcement

    def _check_batch(
        self,
        headers: Mapping[bytes, bytes],
        question: StoredQuestion,
        label: BatchLabel,
        body: bytes,
        least: int,
    ) -> bytes:
        """Return the reports of a batch, which has to be of the shuffler, whole and large enough."""
        sent = headers[MAC_HEADER.lower().encode()]
        text = headers[BATCH_HEADER.lower().encode()].decode("latin-1")
        if not same(sent, self._key.batch_mac(question.question.fingerprint, text, body)):
            raise Refusal(403, "shuffled")
        packed = headers.get(b"content-type", b"").startswith(BodyKind.PACKED.encode())
        size = label.reports * question.question.oracle.width
        if not packed or len(body) != size + label.submissions * DIGEST or label.reports < least:
            raise Refusal(422, "small")
        return body[:size]

    async def take_state(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Tell a shuffler which batches of its store are here, to whoever proves to have its key."""
        headers = dict(scope["headers"])
        nonce = headers.get(b"idempotency-key", b"")
        try:
            if not self._settings.shuffler_key or not _ID.fullmatch(nonce):
                raise Refusal(403, "shuffled")
            body = await self._read(receive, MOST_BODY)
            if not same(
                headers.get(MAC_HEADER.lower().encode(), b""), self._key.state_mac(nonce.decode(), body)
            ):
                raise Refusal(403, "shuffled")
            try:
                answer = await asyncio.to_thread(self._state, json.loads(body))
            except (ValueError, KeyError, TypeError, AttributeError):
                raise Refusal(400, "headers") from None
            except SourdineError:
                raise Refusal(503, "store") from None
        except Refusal as refusal:
            self._writer.count(0, f"refused-{refusal.word}")
            await respond(send, refusal.status, self._errors[refusal.word], [])
            return
        mac = self._key.state_answer_mac(nonce.decode(), answer)
        await respond(send, 200, answer, [(RECEIPT_HEADER.lower().encode(), mac.encode())])

    def _state(self, asked: Mapping[str, Any]) -> bytes:
        shuffler = bytes.fromhex(asked["store"])
        found: dict[str, object] = {}
        store = self._settings.open_store()
        try:
            for each in store.questions():
                name = each.question.fingerprint
                if name not in asked["questions"]:
                    continue
                all_of_it = store.batches(each.number, shuffler)
                found[name] = {
                    "reports": sum(label.reports for label, _ in all_of_it),
                    "batches": [
                        {"label": label.to_text(), "digests": digests.hex()}
                        for label, digests in all_of_it
                        if label.seal > int(asked["questions"][name])
                    ],
                }
            epoch = store.identity().epoch
        finally:
            store.close()
        return _body({"epoch": epoch.hex(), "questions": found})

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


def _spend(headers: Mapping[bytes, bytes], keys: Sequence[str], *, is_one: bool) -> bytes:
    """The id that the token of a request stands for: the store keeps ids, so it is spent with the report."""
    token = Token.from_text(headers.get(b"sourdine-token", b"").decode("latin-1"))
    if token is None or not any(token.is_valid(_public(key)) for key in keys):
        raise Refusal(401, "token")
    if not is_one:
        raise Refusal(422, "one-report")
    return token.spent_as


@lru_cache(maxsize=64)
def _public(text: str) -> "RSAPublicKey":
    return read_public(text)


def _check_size(label: BatchLabel, batch: int, width: int) -> None:
    """Refuse a batch before its body is read, which may be as long as the label says.

    The first part of a seal brings the digests of all its submissions, and has the most reports of them.
    """
    is_large = label.reports * width > MOST_BATCH + 2 * batch * width
    is_large |= label.submissions * DIGEST > MOST_BATCH + 2 * batch * DIGEST
    if is_large or label.submissions > label.reports * label.parts:
        raise Refusal(413, "large")


def _check_least(headers: Mapping[bytes, bytes], batch: int) -> None:
    """Refuse a report whose device asks for a larger batch than is announced now."""
    asked = headers.get(b"sourdine-least-batch", b"0")
    if not asked.isdigit() or len(asked) > 9 or int(asked) > batch:
        raise Refusal(409, "batch")


def _check_open(question: StoredQuestion, opens: date, last: date, day: date) -> None:
    if question.closed or day > last:
        raise Refusal(410, "closed")
    if day < opens:
        raise Refusal(403, "not-open")


def _answer(outcome: SubmissionOutcome, tag: str) -> tuple[int, bytes]:
    """Return status and body, with a digest of the submission's id that a proxy's answer does not have."""
    match outcome.standing:
        case SubmissionStanding.STORED if not outcome.faults:
            body = b'{"accepted":%d,"quarantined":0,"reasons":{},"answer":"%b"}'
            return 201, body % (outcome.accepted, tag.encode())
        case SubmissionStanding.STORED | SubmissionStanding.RECEIVED:
            reasons = {str(fault): count for fault, count in outcome.faults.items()}
            is_stored = outcome.standing is SubmissionStanding.STORED
            content = {
                "accepted" if is_stored else "received": outcome.accepted,
                "quarantined": sum(reasons.values()),
                "reasons": reasons,
                "answer": tag,
            }
            return 201 if is_stored else 202, _body(content)
        case SubmissionStanding.DUPLICATE:
            return 200, b'{"accepted":0,"duplicate":true,"answer":"%b"}' % tag.encode()
        case SubmissionStanding.CONFLICT:
            raise Refusal(409, "conflict")
        case SubmissionStanding.REPEATED:
            raise Refusal(409, "repeated")
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


def is_inside(scope: "Scope", port: int, origins: Sequence[str]) -> bool:
    """Return whether a request came in by a port of the loopback, by a name that no page can lead there."""
    host = dict(scope["headers"]).get(b"host", b"").decode("latin-1").lower()
    known = host == "" or is_address(host) or any(each.endswith(f"//{host}") for each in origins)
    return known and port > 0 and (scope.get("server") or ("", 0))[1] == port


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
