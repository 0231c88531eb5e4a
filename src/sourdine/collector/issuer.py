"""The issuer: one token for each code that the deployer gave out, signed without being seen.

It is a process apart from shuffler and collector, and keeps of each code whether it was used and for which
blinded number, so that an answer that was lost can be asked for again, and nothing else twice.
"""

import asyncio
import hashlib
import hmac
import logging
import os
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric import rsa

from sourdine.collector.rates import Rates
from sourdine.collector.reception import cors, is_inside, origin_allowed, respond
from sourdine.collector.settings import CollectorSettings
from sourdine.collector.tokens.blind import blind_sign, is_blinded, key_name
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

LEAST_CODE = 16
"""How many characters a code has at least: whoever guesses one has its token."""
_PATH = re.compile(r"/v1/questions/([0-9a-f]{16})/tokens")
_MOST_BODY = 512
_OUTCOMES = {
    200: "signed",
    400: "number",
    401: "code",
    403: "origin",
    404: "unknown",
    409: "used",
    429: "rate",
}
_KEY_NAME = re.compile(r"[0-9a-f]{16}")
_TABLES = "CREATE TABLE IF NOT EXISTS codes (code BLOB PRIMARY KEY, number BLOB, key BLOB) WITHOUT ROWID"
LOG = logging.getLogger("sourdine.collector")
_PREFLIGHT = [
    (b"access-control-allow-methods", b"POST"),
    (b"access-control-allow-headers", b"Authorization, Content-Type, Sourdine-Token-Key"),
    (b"access-control-max-age", b"7200"),
]


class CodeStore:
    """Which codes there are, and for which blinded number each was used, by digests alone."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, disk.OWNER))
        self._connection = sqlite3.connect(path, timeout=30.0, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(_TABLES)
        columns = {row[1] for row in self._connection.execute("PRAGMA table_info(codes)")}
        if "key" not in columns:  # as version 0.2 wrote it
            self._connection.execute("ALTER TABLE codes ADD COLUMN key BLOB")

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def check(self) -> None:
        """Raise an error of SQLite if codes cannot be used now."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute("ROLLBACK")

    def add(self, fingerprint: str, codes: Iterable[str]) -> None:
        """Let codes be used for a question; those that are there already stay as they are."""
        rows = [(_digest(fingerprint, code),) for code in codes]
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT OR IGNORE INTO codes VALUES (?, NULL, NULL)", rows)
        self._connection.execute("COMMIT")

    def use(self, fingerprint: str, code: str, blinded: bytes, signer: str = "") -> bool | None:
        """Whether a code is good for a blinded number: for its first one, on the disk, and no other.

        The first use also binds the code to the key that signs, so that after a change of keys it is not good
        for a second token. None where there is no such code.
        """
        key, number = _digest(fingerprint, code), hashlib.sha256(blinded).digest()
        self._connection.execute(
            "UPDATE codes SET number = ?, key = ? WHERE code = ? AND number IS NULL",
            (number, signer.encode() or None, key),
        )
        row = self._connection.execute("SELECT number, key FROM codes WHERE code = ?", (key,)).fetchone()
        if row is None:
            return None
        is_its_key = row[1] is None or bytes(row[1]) == signer.encode()
        return hmac.compare_digest(bytes(row[0]), number) and is_its_key

    def signer(self, fingerprint: str, code: str) -> str:
        """The name of the key that a code was used with, or nothing."""
        row = self._connection.execute(
            "SELECT key FROM codes WHERE code = ?", (_digest(fingerprint, code),)
        ).fetchone()
        return "" if row is None or row[0] is None else bytes(row[0]).decode()

    @property
    def used(self) -> int:
        """How many codes were used."""
        return int(self._connection.execute("SELECT count(number) FROM codes").fetchone()[0])


def _digest(fingerprint: str, code: str) -> bytes:
    return hashlib.sha256(f"sourdine code\0{fingerprint}\0{code}".encode()).digest()


def check_codes(codes: Iterable[str]) -> list[str]:
    """Codes as a deployer lists them, long enough that nobody guesses one."""
    listed = list(codes)
    for place, code in enumerate(listed, 1):
        if len(code) < LEAST_CODE or not code.isascii() or not code.isprintable() or " " in code:
            raise InvalidParameter(
                f"Code {place} is none. A code has at least {LEAST_CODE} characters without spaces, drawn at "
                "random, such as those of 'openssl rand -hex 16'."
            )
    return listed


@dataclass(frozen=True)
class IssuerSettings:
    """Where codes are kept, the key of each question by fingerprint, and whose pages may ask."""

    store: Path
    keys: Mapping[str, Sequence[rsa.RSAPrivateKey]]
    """Of each question the key that is announced, and then earlier ones whose tokens are still good."""
    origins: tuple[str, ...] = ()
    rate: float = 10.0
    most_connections: int = 512
    results_port: int = 0
    """The port on which metrics are shown; 0: nowhere."""
    header_time: float = 10.0
    body_time: float = 10.0
    stop_time: float = 10.0


class IssuerApplication:
    """The ASGI application of an issuer: one kind of request, and no page."""

    def __init__(self, settings: IssuerSettings) -> None:
        self.settings = settings
        self._asked = CollectorSettings(store=str(settings.store), origins=settings.origins)
        self._rates = Rates(settings.rate)
        self._codes: CodeStore | None = None
        self._turn = asyncio.Lock()
        self._counts: Counter[str] = Counter()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            try:
                await self._answer(scope, receive, send)
            except Exception as problem:  # its words may quote a request, so its kind alone is logged
                LOG.error("A request failed: %s", type(problem).__name__)
                self._counts["failed"] += 1
                with suppress(Exception):
                    await respond(send, HTTPStatus.INTERNAL_SERVER_ERROR, b'{"error":"failed"}', [])

    async def _live(self, receive: "Receive", send: "Send") -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._codes = CodeStore(self.settings.store)
                await send({"type": "lifespan.startup.complete"})
            else:
                if self._codes is not None:
                    self._codes.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _answer(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        headers = dict(scope["headers"])
        origin, allowed = headers.get(b"origin"), origin_allowed(self._asked, headers)
        more = cors(origin) if origin and allowed else []
        if scope["method"] == "OPTIONS":
            status = HTTPStatus.NO_CONTENT if allowed else HTTPStatus.FORBIDDEN
            await respond(send, status, b"", [*more, *_PREFLIGHT] if more else [])
            return
        if scope["method"] == "GET" and scope["path"] == "/health":
            await respond(send, HTTPStatus.OK, b'{"status":"ok"}', more)
            return
        if scope["method"] == "GET" and scope["path"] == "/ready":
            is_ready = await self._is_ready()
            status = HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE
            body = b'{"ready":true,"waits_for":[]}' if is_ready else b'{"ready":false,"waits_for":["store"]}'
            await respond(send, status, body, more)
            return
        inside = is_inside(scope, self.settings.results_port, self.settings.origins)
        if scope["path"] == "/metrics" and inside:
            await respond(send, HTTPStatus.OK, self._metrics(), more, b"text/plain; version=0.0.4")
            return
        client = (scope.get("client") or ("", 0))[0]
        if not allowed:
            status, body = HTTPStatus.FORBIDDEN, b'{"error":"origin"}'
        elif not self._rates.admits(client):
            status, body = HTTPStatus.TOO_MANY_REQUESTS, b'{"error":"rate"}'
            more = [*more, (b"retry-after", b"5")]
        else:
            status, body = await self._token(scope, headers, receive)
        self._counts[_OUTCOMES.get(int(status), "refused")] += 1
        kind = b"application/octet-stream" if status == HTTPStatus.OK else b"application/json"
        await respond(send, status, body, more, kind)

    async def _is_ready(self) -> bool:
        if self._codes is None:
            return False
        try:
            async with self._turn:
                await asyncio.to_thread(self._codes.check)
        except sqlite3.Error:
            return False
        return True

    async def _token(
        self, scope: "Scope", headers: Mapping[bytes, bytes], receive: "Receive"
    ) -> tuple[HTTPStatus, bytes]:
        place = _PATH.fullmatch(scope["path"])
        keys = self.settings.keys.get(place.group(1)) if place and scope["method"] == "POST" else None
        if place is None or not keys:
            return HTTPStatus.NOT_FOUND, b'{"error":"unknown"}'
        scheme, _, code = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        assert self._codes is not None
        named = headers.get(b"sourdine-token-key", b"").decode("latin-1")
        if not _KEY_NAME.fullmatch(named):  # a device that does not say for which key it drew
            async with self._turn:
                named = await asyncio.to_thread(self._codes.signer, place.group(1), code)
        known = {key_name(each.public_key()): each for each in keys}
        key = known.get(named) if named else keys[0]
        blinded = await self._body(receive)
        if scheme.lower() != "bearer" or len(code) < LEAST_CODE:
            return HTTPStatus.UNAUTHORIZED, b'{"error":"code"}'
        if key is None:  # before the code is used up: the device draws anew for the key of now
            return HTTPStatus.BAD_REQUEST, b'{"error":"key"}'
        if not is_blinded(key.public_key(), blinded):  # a code is used up by a number that can be signed
            return HTTPStatus.BAD_REQUEST, b'{"error":"number"}'
        async with self._turn:  # one connection, one request at a time
            signer = key_name(key.public_key())
            good = await asyncio.to_thread(self._codes.use, place.group(1), code, blinded, signer)
        if good is None:
            return HTTPStatus.UNAUTHORIZED, b'{"error":"code"}'
        if not good:
            return HTTPStatus.CONFLICT, b'{"error":"used"}'
        return HTTPStatus.OK, await asyncio.to_thread(blind_sign, key, blinded)

    def _metrics(self) -> bytes:
        lines = [
            "# HELP sourdine_token_requests_total Requests for tokens, by what became of them.",
            "# TYPE sourdine_token_requests_total counter",
            *(
                f'sourdine_token_requests_total{{outcome="{name}"}} {n}'
                for name, n in sorted(self._counts.items())
            ),
        ]
        return ("\n".join(lines) + "\n").encode()

    async def _body(self, receive: "Receive") -> bytes:
        body = b""
        try:
            async with asyncio.timeout(self.settings.body_time):
                while len(body) <= _MOST_BODY:
                    message = await receive()
                    body += message.get("body", b"")
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            return b""
        return body


@dataclass(frozen=True)
class IssuerFactory:
    """Makes the application in whichever process it is to run."""

    settings: IssuerSettings

    def __call__(self) -> IssuerApplication:
        return IssuerApplication(self.settings)
