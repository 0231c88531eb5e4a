"""A collector as processes: sockets, workers, prompt headers, and an end that loses nothing."""

import asyncio
import logging
import math
import socket
import time
from collections.abc import Sequence
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.supervisors import Multiprocess

from sourdine.collector.issuer import IssuerFactory, IssuerSettings
from sourdine.collector.rates import ConnectionCounts, read_network
from sourdine.collector.server import ApplicationFactory
from sourdine.collector.settings import CollectorSettings
from sourdine.core.errors import InvalidParameter

try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from asyncio.transports import Transport

_KEEP_ALIVE = 15  # seconds that a connection may be idle
_MOST_STALL = 60  # seconds that an answer may wait to be read
_MOST_CONNECTIONS = 2048
_MOST_HEAD = 1 << 15  # bytes: all the cookies of a host, and what proxies add
_MOST_HEADERS = 100
_HEALTH = (b"/health", b"/ready")
_LOG_PAUSE = 60.0  # seconds between two lines that say the same of a server that is full
_LINGER = 2.0  # seconds in which a refusal may be read before the connection is cut
_MOST_DROPPED = 1 << 20  # bytes that whoever was refused may have been sending
_REFUSALS = {400: "This is no HTTP request.", 431: "The headers are too many.", 501: "Only chunks are read."}


@cache
def counts_of(most: int, proxies: tuple[str, ...]) -> ConnectionCounts:
    """The connections of this process."""
    return ConnectionCounts(most, proxies)


class _Seldom(logging.Filter):
    """Lets the same warning through once a minute, or a flood of requests would be one of lines."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is written."""
        if record.levelno != logging.WARNING:
            return True
        now, last = time.monotonic(), self._last.get(str(record.msg), -math.inf)
        if now - last < _LOG_PAUSE:
            return False
        self._last[str(record.msg)] = now
        return True


class _Refused(Exception):
    """A head that is not read to its end."""


class PromptProtocol(HttpToolsProtocol):
    """Connections that send a request and take its answer within a time, its head within a size, or are cut.

    Slow ones cost others, also after their answer, and an endless one all the memory there is.
    """

    _status = 400
    _size = 0  # of the lines of a head that were read
    _unread = 0  # bytes since then
    _begins = False
    _dropped: int | None = None
    _body: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    @property
    def _is_inside(self) -> bool:
        """Whether this is the port for results and metrics, which listens on the loopback alone."""
        port = getattr(self.config.app.settings, "results_port", 0)  # type: ignore[union-attr]
        return bool(port) and self.server is not None and self.server[1] == port

    @property
    def _counts(self) -> ConnectionCounts:
        trusted = self.config.forwarded_allow_ips if self.config.proxy_headers else ()
        proxies = tuple(trusted) if isinstance(trusted, list) else ()
        most = self.config.app.settings.most_connections  # type: ignore[union-attr]
        return counts_of(most, proxies)

    @property
    def header_time(self) -> float:
        """How long a head may take, as the application's settings say."""
        return float(self.config.app.settings.header_time)  # type: ignore[union-attr]

    def connection_made(self, transport: "Transport") -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._counted = ""
        if not self._is_inside and self.client is not None:
            if not self._counts.admit(self.client[0]):
                transport.abort()  # without an answer, which would cost more than the connection
            else:
                self._counted = self.client[0]
        self._watch: asyncio.TimerHandle | None = self.loop.call_later(self.header_time, transport.abort)

    def data_received(self, data: bytes) -> None:
        if self._dropped is not None:
            self._dropped += len(data)
            if self._dropped > _MOST_DROPPED:
                self.transport.abort()
            return
        self._begins = False
        super().data_received(data)
        # of what came with the end of a body it is not known how much is head
        self._unread = 0 if self._watch is None or self._begins else self._unread + len(data)
        if self._unread > _MOST_HEAD and self._dropped is None:
            self._status = 431
            self.send_400_response("")

    def send_400_response(self, msg: str) -> None:
        """Refuse what is read, and leave a moment for that to be read: a close would cut it off.

        Where a request before it has no answer yet, this would be read as its own, though it may be stored.
        """
        self._dropped = 0
        if not getattr(self.cycle, "response_complete", True):  # before the first request it is None
            self.transport.abort()
            return
        text = _REFUSALS[self._status]
        lines = (
            f"HTTP/1.1 {self._status} {HTTPStatus(self._status).phrase}",
            "content-type: text/plain; charset=utf-8",
            f"content-length: {len(text)}",
            "connection: close",
        )
        self.transport.write("\r\n".join((*lines, "", text)).encode("ascii"))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._cancel()
        self._watch = self.loop.call_later(_LINGER, self.transport.abort)

    def on_message_begin(self) -> None:
        self._size, self._begins = 0, True
        if self._watch is None:
            self._watch = self.loop.call_later(self.header_time, self.transport.abort)
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._grow(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._grow(len(name) + len(value))
        super().on_header(name, value)

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > _MOST_HEAD or len(self.headers) >= _MOST_HEADERS:
            self._status = 431
            raise _Refused

    def on_headers_complete(self) -> None:
        codings = [value.strip().lower() for name, value in self.headers if name == b"transfer-encoding"]
        if codings not in ([], [b"chunked"]):  # a body would be counted as it came, and not as it was meant
            self._status = 501
            raise _Refused
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        seconds = self.header_time + float(self.config.app.settings.body_time)  # type: ignore[union-attr]
        # once there is an answer, nobody but this watches the rest of a body
        self._body = self.loop.call_later(seconds, self.transport.abort)
        limit = self.limit_concurrency
        if (
            self.url.partition(b"?")[0] in _HEALTH
        ):  # whoever watches a server that is full learns that it lives
            self.limit_concurrency = None
        super().on_headers_complete()
        self.limit_concurrency = limit

    def on_message_complete(self) -> None:
        if self._body is not None:
            self._body.cancel()
            self._body = None
        super().on_message_complete()

    def pause_writing(self) -> None:
        if self._stalled is None:
            self._stalled = self.loop.call_later(_MOST_STALL, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        self.transport.abort()  # a close would wait for whoever does not read

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel()
        if self._counted:
            self._counts.release(self._counted)
        super().connection_lost(exc)

    def _cancel(self) -> None:
        for each in (self._watch, self._body, self._stalled):
            if each is not None:
                each.cancel()


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except OSError as problem:
        sock.close()
        raise InvalidParameter(
            f"Nothing can listen at {host}, port {port} ({problem.strerror}). Choose another port."
        ) from None
    sock.listen(_MOST_CONNECTIONS)
    sock.set_inheritable(True)
    return sock


def raise_file_limit() -> None:
    """Let the process have as many connections as it takes: each is a file, and 1,024 are usual."""
    if resource is not None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        enough = 2 * _MOST_CONNECTIONS
        if soft != resource.RLIM_INFINITY and soft < enough:
            most = enough if hard == resource.RLIM_INFINITY else min(enough, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def run(
    settings: CollectorSettings | IssuerSettings,
    sockets: Sequence[socket.socket],
    *,
    workers: int = 1,
    proxies: Sequence[str] = (),
) -> None:
    """Serve until a signal ends it; what was taken in by then is stored and answered first."""
    proxies = [str(read_network(each)) for each in proxies]
    logging.getLogger("uvicorn.access").disabled = True
    logging.getLogger("uvicorn.error").addFilter(_Seldom())
    raise_file_limit()
    config = uvicorn.Config(
        IssuerFactory(settings) if isinstance(settings, IssuerSettings) else ApplicationFactory(settings),
        factory=True,
        http=PromptProtocol,
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=int(settings.stop_time) or 1,
        limit_concurrency=_MOST_CONNECTIONS,
        workers=workers,
        backlog=_MOST_CONNECTIONS,
    )
    if workers > 1:
        Multiprocess(config, sockets=list(sockets)).run()
    else:
        uvicorn.Server(config).run(sockets=list(sockets))
