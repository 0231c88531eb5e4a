"""A proxy between two parts that fails as proxies do: it redirects, answers itself, or cuts connections."""

import http.client
import random
import time
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Fault(StrEnum):
    """What a proxy does with a request."""

    NONE = "none"
    REDIRECT = "redirect"
    OK = "200"
    CREATED = "201"
    FORBIDDEN = "403"
    UNKNOWN = "404"
    UNAUTHORIZED = "401"
    LARGE = "413"
    BAD_GATEWAY = "502"
    CUT_BEFORE = "cut before"
    CUT_AFTER = "cut after"  # the request has arrived, and its answer has not
    SILENT = "silent"  # for half a minute


_STATUS = {
    Fault.OK: 200,
    Fault.CREATED: 201,
    Fault.FORBIDDEN: 403,
    Fault.UNKNOWN: 404,
    Fault.UNAUTHORIZED: 401,
    Fault.LARGE: 413,
    Fault.BAD_GATEWAY: 502,
}
_SILENCE = 30.0  # seconds
_PAGE = b"<!doctype html><title>Sign in</title>"


class Proxy:
    """A proxy to a port of this machine, with a login page to which it redirects."""

    def __init__(self, target: int, choose: Callable[[], Fault] = lambda: Fault.NONE) -> None:
        self.target, self.choose = target, choose
        self.faults: Counter[Fault] = Counter()
        self.headers: list[dict[str, str]] = []
        """Those of every request that came through."""
        self.login_headers: list[dict[str, str]] = []
        """Those of every request that followed a redirect."""
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                proxy._answer(self)

            def do_POST(self) -> None:
                proxy._answer(self)

            def do_OPTIONS(self) -> None:
                proxy._answer(self)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        class Login(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                proxy.login_headers.append(dict(self.headers.items()))
                _send(self, 200, _PAGE)

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._login, self._server = _started(Login), _started(Handler)
        self.port = int(self._server.server_address[1])

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        """End it."""
        for each in (self._server, self._login):
            each.shutdown()
            each.server_close()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        fault = self.choose()
        self.faults[fault] += 1
        body = request.rfile.read(int(request.headers.get("Content-Length", "0")))
        self.headers.append(dict(request.headers.items()))
        if fault is Fault.CUT_BEFORE:
            _cut(request)
        elif fault is Fault.SILENT:
            time.sleep(_SILENCE)
            _cut(request)
        elif fault is Fault.REDIRECT:
            request.send_response(302)
            request.send_header("Location", f"http://localhost:{self._login.server_address[1]}/login")
            request.send_header("Access-Control-Allow-Origin", "*")
            request.send_header("Content-Length", "0")
            request.end_headers()
        elif fault in _STATUS:
            _send(request, _STATUS[fault], _PAGE)
        else:
            self._forward(request, body, heard=fault is Fault.NONE)

    def _forward(self, request: BaseHTTPRequestHandler, body: bytes, *, heard: bool) -> None:
        there = http.client.HTTPConnection("127.0.0.1", self.target, timeout=60)
        try:
            there.request(request.command, request.path, body or None, dict(request.headers.items()))
            answer = there.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            _send(request, 502, _PAGE)
            return
        finally:
            there.close()
        if not heard:
            _cut(request)
            return
        request.send_response(answer.status)
        for name, text in answer.getheaders():
            if name.lower() not in ("content-length", "connection", "date", "server", "transfer-encoding"):
                request.send_header(name, text)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)


class Faults:
    """A share of faults of all kinds, drawn from a seed."""

    def __init__(self, share: float, seed: int) -> None:
        self.share, self._dice = share, random.Random(seed)
        self._kinds = [each for each in Fault if each not in (Fault.NONE, Fault.SILENT)]

    def __call__(self) -> Fault:
        if self._dice.random() >= self.share:
            return Fault.NONE
        return self._dice.choice(self._kinds)


def _started(handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

        def handle_error(self, *_: object) -> None:
            """Nothing: whoever asked is gone."""

    server = Server(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    return server


def _send(request: BaseHTTPRequestHandler, status: int, body: bytes) -> None:
    request.send_response(status)
    request.send_header("Content-Type", "text/html")
    request.send_header("Access-Control-Allow-Origin", "*")
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


def _cut(request: BaseHTTPRequestHandler) -> None:
    request.close_connection = True
    request.connection.close()
