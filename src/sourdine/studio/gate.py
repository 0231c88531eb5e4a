"""Who may talk to the server: the browser that was given the first address, and nobody else.

The server listens on 127.0.0.1, which every user of a machine and every page in a browser can reach. So a
request must come to the right host (else another site's name could lead here), from this very page (else
another site could send forms), and with a cookie that only the first address gives, once. Cookies know no
ports: whoever serves another port of this host would be sent them. So all of it lies under a path that is
drawn anew for every start, and the cookie belongs to that path.
"""

import hmac
import html
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import parse_qs, quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "sourdine_studio"
MOST_BYTES = 1 << 20  # of a request: a specification with a few hundred questions has a tenth of that
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
ALONE = {  # of a page that brings its own scripts: it is nobody's, so it can ask nothing here
    "Content-Security-Policy": "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' "
    "'unsafe-eval'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
}
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_WELCOME = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={target}">
<link rel="icon" href="data:,">
<title>Sourdine Studio</title></head><body><main><h1>Sourdine Studio</h1>
<p><a href="{target}">Open Studio</a></p></main></body></html>
"""  # a page, and no redirect: a strict cookie is not sent along those that another program began


def hosts_of(port: int) -> tuple[str, ...]:
    """What browsers call this machine at a port; the usual one of the web they leave out.

    >>> hosts_of(8000)
    ('127.0.0.1:8000', 'localhost:8000')
    """
    names = ("127.0.0.1", "localhost")
    return names if port == 80 else tuple(f"{name}:{port}" for name in names)


class TooLarge(Exception):
    """A request holds more than is read."""


@dataclass
class Secrets:
    """What the first address holds, which works once, and what the cookie holds from then on."""

    prefix: str = field(default_factory=lambda: f"/{secrets.token_urlsafe(12)}")
    token: str | None = field(default_factory=lambda: secrets.token_urlsafe(32))
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    def take(self, token: str) -> bool:
        """Whether this is the token, which is void from then on."""
        if self.token is None or not hmac.compare_digest(token.encode(), self.token.encode()):
            return False
        self.token = None
        return True

    def knows(self, session: str) -> bool:
        """Whether this is what the cookie holds."""
        return hmac.compare_digest(session.encode(), self.session.encode())


@dataclass(frozen=True)
class StudioGate:
    """An ASGI application before another one, which sees only what is let through."""

    app: ASGIApp
    keys: Secrets
    hosts: tuple[str, ...]  # with the port, as browsers name them

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # nothing here speaks through sockets that stay open
            return
        headers = Headers(scope=scope)
        answer = self._refusal(scope, headers)
        sender = _Guarded(send, scope)
        if answer is not None:
            await answer(scope, receive, sender)
            return
        try:
            await self.app(scope, _Limited(receive), sender)
        except TooLarge:
            if not sender.began:
                await _too_large()(scope, receive, sender)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """What is answered instead, or None for a request that may pass."""
        host, path = headers.get("host", ""), scope["path"]
        if host not in self.hosts or len(headers.getlist("host")) != 1:
            return _refuse("This server answers to its own address only.")
        if path != self.keys.prefix and not path.startswith(f"{self.keys.prefix}/"):
            return _refuse("There is nothing at this address.", 404)
        reads = scope["method"] in ("GET", "HEAD")
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and not _first(scope):
            return _refuse("Another site's page cannot ask here.")
        if not reads and headers.get("origin") != f"http://{host}":
            return _refuse("Only the page of this server can change something.")
        if reads and "token" in (given := parse_qs(scope["query_string"].decode("latin-1"))):
            return self._admit(given["token"][0], given.get("page", [""])[0])
        if not any(self.keys.knows(each) for each in _cookies(headers)):
            return _refuse(
                "This page belongs to whoever started Studio. Open the address that it showed; if that was "
                "used already, in another browser perhaps, stop Studio with Ctrl-C and start it again."
            )
        if not reads and int(headers.get("content-length", "0") or 0) > MOST_BYTES:
            return _too_large()
        return None

    def _admit(self, token: str, page: str) -> Response:
        if not self.keys.take(token):
            return _refuse(
                "This address works once, and was used already. If it was not you, somebody else on this "
                "machine may have used it. Stop Studio with Ctrl-C and start it again."
            )
        target = f"./{quote(page)}" if page.startswith("spec/") else "./"
        answer = HTMLResponse(_WELCOME.format(target=html.escape(target, quote=True)))
        answer.set_cookie(COOKIE, self.keys.session, path=self.keys.prefix, httponly=True, samesite="strict")
        return answer


def _cookies(headers: Headers) -> Iterator[str]:
    """Every cookie of our name: whoever serves another port can set one too, for all paths."""
    for part in ";".join(headers.getlist("cookie")).split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            yield value.strip('"')


def _first(scope: Scope) -> bool:
    """Whether this is the first address, which another program may open."""
    return scope["method"] == "GET" and b"token=" in scope["query_string"]


def _refuse(words: str, status: int = 403) -> Response:
    return PlainTextResponse(f"{words}\n", status)


def _too_large() -> Response:
    return _refuse(f"A request may hold {MOST_BYTES >> 20} megabyte at most.", 413)


@dataclass
class _Limited:
    """What is received, until it is too much."""

    receive: Receive
    many: int = 0

    async def __call__(self) -> Message:
        message = await self.receive()
        self.many += len(message.get("body", b""))
        if self.many > MOST_BYTES:
            raise TooLarge
        return message


@dataclass
class _Guarded:
    """What is sent, with the headers that keep a browser from doing anything else with it."""

    send: Send
    scope: Scope
    began: bool = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.began = True
            headers = MutableHeaders(scope=message)
            for name, value in {"Content-Security-Policy": POLICY, **_HEADERS}.items():
                headers.setdefault(name, value)
        await self.send(message)
