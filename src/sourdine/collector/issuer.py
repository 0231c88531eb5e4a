"""The issuer: one token for each code that the deployer gave out, signed without being seen.

It is a process apart from shuffler and collector, and keeps of each code whether it was used and for which
blinded number, so that an answer that was lost can be asked for again, and nothing else twice.
"""

import asyncio
import hashlib
import hmac
import os
import re
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric import rsa

from sourdine.collector.rates import Rates
from sourdine.collector.reception import cors, origin_allowed, respond
from sourdine.collector.settings import CollectorSettings
from sourdine.collector.tokens.blind import blind_sign, is_blinded
from sourdine.core import disk
from sourdine.core.errors import InvalidParameter

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

LEAST_CODE = 16
"""How many characters a code has at least: whoever guesses one has its token."""
_PATH = re.compile(r"/v1/questions/([0-9a-f]{16})/tokens")
_MOST_BODY = 512
_TABLES = "CREATE TABLE IF NOT EXISTS codes (code BLOB PRIMARY KEY, number BLOB) WITHOUT ROWID"
_PREFLIGHT = [
    (b"access-control-allow-methods", b"POST"),
    (b"access-control-allow-headers", b"Authorization, Content-Type"),
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

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def add(self, fingerprint: str, codes: Iterable[str]) -> None:
        """Let codes be used for a question; those that are there already stay as they are."""
        rows = [(_digest(fingerprint, code),) for code in codes]
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT OR IGNORE INTO codes VALUES (?, NULL)", rows)
        self._connection.execute("COMMIT")

    def use(self, fingerprint: str, code: str, blinded: bytes) -> bool | None:
        """Whether a code is good for a blinded number: for its first one, on the disk, and no other.

        None where there is no such code.
        """
        key, number = _digest(fingerprint, code), hashlib.sha256(blinded).digest()
        self._connection.execute(
            "UPDATE codes SET number = ? WHERE code = ? AND number IS NULL", (number, key)
        )
        row = self._connection.execute("SELECT number FROM codes WHERE code = ?", (key,)).fetchone()
        return None if row is None else hmac.compare_digest(bytes(row[0]), number)

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
    keys: Mapping[str, rsa.RSAPrivateKey]
    origins: tuple[str, ...] = ()
    rate: float = 10.0
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

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

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
        client = (scope.get("client") or ("", 0))[0]
        if not allowed:
            status, body = HTTPStatus.FORBIDDEN, b'{"error":"origin"}'
        elif not self._rates.admits(client):
            status, body = HTTPStatus.TOO_MANY_REQUESTS, b'{"error":"rate"}'
            more = [*more, (b"retry-after", b"5")]
        else:
            status, body = await self._token(scope, headers, receive)
        kind = b"application/octet-stream" if status == HTTPStatus.OK else b"application/json"
        await respond(send, status, body, more, kind)

    async def _token(
        self, scope: "Scope", headers: Mapping[bytes, bytes], receive: "Receive"
    ) -> tuple[HTTPStatus, bytes]:
        place = _PATH.fullmatch(scope["path"])
        key = self.settings.keys.get(place.group(1)) if place and scope["method"] == "POST" else None
        if place is None or key is None:
            return HTTPStatus.NOT_FOUND, b'{"error":"unknown"}'
        scheme, _, code = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        blinded = await self._body(receive)
        if scheme.lower() != "bearer" or len(code) < LEAST_CODE:
            return HTTPStatus.UNAUTHORIZED, b'{"error":"code"}'
        if not is_blinded(key.public_key(), blinded):  # a code is used up by a number that can be signed
            return HTTPStatus.BAD_REQUEST, b'{"error":"number"}'
        assert self._codes is not None
        async with self._turn:  # one connection, one request at a time
            good = await asyncio.to_thread(self._codes.use, place.group(1), code, blinded)
        if good is None:
            return HTTPStatus.UNAUTHORIZED, b'{"error":"code"}'
        if not good:
            return HTTPStatus.CONFLICT, b'{"error":"used"}'
        return HTTPStatus.OK, await asyncio.to_thread(blind_sign, key, blinded)

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
