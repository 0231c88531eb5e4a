"""Attacks on a collector that runs, over its socket: refused or flagged, counted, and nothing lost."""

import contextlib
import json
import secrets
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from sourdine.local import GRR, Counts, Question
from sourdine.local.poisoning import alarms, signs_of_counts
from tests.browser import watched
from tests.collector.client.serving import Serving, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MARK = "x-nobody-repeats-this"
SQL = ["'; DROP TABLE reports; --", '" OR 1=1 --', "0; PRAGMA writable_schema=1", "%27%20OR%20%271%27=%271"]
PATHS = [
    "/client/../../../../etc/passwd",
    "/client/..%2f..%2f..%2fetc%2fpasswd",
    "/client/%2e%2e/announcement.py",
    "/client/....//server.py",
    "/client/sourdine.js%00.html",
    "/client/",
    "/v1/questions/../../../../etc/passwd",
    "/v1/questions/%2e%2e%2freports.db",
    "//etc/passwd",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("collector")) as server:
        yield server


@pytest.fixture(autouse=True)
def nothing_lost(server: Serving) -> Iterator[None]:
    """Before and after each attack an honest report is taken and counted, and the server is well."""
    before = server.sums()
    assert server.post(server.line(1)).status == 201
    yield
    assert server.ask("GET", "/health").json == {"status": "ok"}
    assert server.post(server.line(1)).status == 201
    assert server.sums()[1] >= before[1] + 2
    assert MARK not in server.log
    assert "Traceback" not in server.log
    with closing(sqlite3.connect(server.folder / "reports.db")) as store:
        assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_forged_reports_are_set_apart_and_counted(server: Serving) -> None:
    """Of another question, of no category, of letters that are no digits, with bytes and lines within."""
    other = Question(name="other", oracle=GRR(epsilon=9, categories=5)).fingerprint
    own = server.question.fingerprint
    bad = [
        f"{other} 01\n",
        f"{own} 05\n",
        f"{own} ff\n",
        f"{own} zz\n",
        f"{own} 0\n",
        f"{own}01\n",
        f"{own.upper()} 01\n" if own.upper() != own else f"{own} 0X\n",
        f"{own} 01 {MARK}\n",
        f"{own} \x0001\n",
        f"{own} 01\r01\n",
        f"{own} ０１\n",
        "\n",
    ]
    before = server.sums()
    for line in bad:
        answer = server.post(line.encode())
        assert answer.status in (400, 409, 422), line
    assert server.sums() == before
    mixed = server.post(server.line(2) + bad[1].encode() + server.line(2) + bad[3].encode())
    assert mixed.status == 201
    assert (mixed.json["accepted"], mixed.json["quarantined"]) == (2, 2)
    assert server.sums()[2] == before[2] + 2


def test_replayed_submissions_count_once(server: Serving) -> None:
    before, key = server.sums(), secrets.token_hex(16)
    first = server.post(server.line(3), key)
    again = [server.post(server.line(3), key) for _ in range(20)]
    assert first.status == 201
    assert {each.status for each in again} == {200}
    assert all(each.json["duplicate"] for each in again)
    other = server.post(server.line(4), key)
    assert other.status == 409
    assert server.sums()[3:] == [before[3] + 1, before[4]]


def test_replays_at_the_same_time_count_once(server: Serving) -> None:
    from concurrent.futures import ThreadPoolExecutor

    before, key = server.sums(), secrets.token_hex(16)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: server.post(server.line(0), key).status, range(48)))
    assert sorted(set(answers)) == [200, 201]
    assert answers.count(201) == 1
    assert server.sums()[0] == before[0] + 1


def test_oversized_bodies_are_refused(server: Serving) -> None:
    before = server.sums()
    large = server.line(0) * ((1 << 20) // len(server.line(0)) + 1)
    with contextlib.suppress(ConnectionError):  # it may be cut while it is still being sent
        assert server.post(large).status == 413
    assert server.post(b"", Content_Length=str(1 << 40)).status == 413
    chunks = raw(
        server, head(server, "Transfer-Encoding: chunked"), *([b"10000\r\n" + b"0" * 65536 + b"\r\n"] * 17)
    )
    assert chunks == b"" or chunks.startswith(b"HTTP/1.1 413")
    assert server.sums() == before


@pytest.mark.parametrize("kind", ["headers", "address"])
def test_a_request_whose_head_never_ends_is_cut(server: Serving, kind: str) -> None:
    """Else one connection takes all the memory there is."""
    begin = {"headers": head(server)[:-2], "address": b"GET /"}[kind]
    more = {"headers": b"X-More: aaaaaaaa\r\n" * 50_000, "address": b"a" * 1_000_000}[kind]
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(begin)
        with pytest.raises(ConnectionError):
            connection.sendall(more * 50)


@pytest.mark.parametrize(
    "lines",
    [["X-More: " + "a" * 60_000], [f"X-{i}: a" for i in range(5_000)], ["X-More: " + "a" * 300_000]],
    ids=["one of 60 kB", "5,000", "one of 300 kB"],
)
def test_headers_beyond_measure_are_refused_by_name(server: Serving, lines: list[str]) -> None:
    before, line = server.sums(), server.line(0)
    answer = raw(server, head(server, *lines, f"Content-Length: {len(line)}"), line)
    assert answer.startswith(b"HTTP/1.1 431")
    assert server.sums() == before


def test_headers_within_measure_are_taken(server: Serving) -> None:
    """As many as browsers, with all the cookies of a host, and proxies together send."""
    line = server.line(0)
    lines = [f"X-{i}: {'a' * 300}" for i in range(80)]
    assert raw(server, head(server, *lines, f"Content-Length: {len(line)}"), line).startswith(b"HTTP/1.1 201")


@pytest.mark.parametrize(
    "coding",
    ["gzip, chunked", "chunked\r\nTransfer-Encoding: chunked", "chunked, chunked", "gzip", "xchunked"],
)
def test_transfer_codings_but_chunks_are_refused(server: Serving, coding: str) -> None:
    """Whoever stands before this server would have decoded what it counts as it is."""
    before, line = server.sums(), server.line(0)
    answer = raw(server, head(server, f"Transfer-Encoding: {coding}"), chunk(line))
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501"))
    assert server.sums() == before
    assert raw(server, head(server, "Transfer-Encoding: Chunked"), chunk(line)).startswith(b"HTTP/1.1 201")


def test_a_bad_request_does_not_answer_the_one_before(server: Serving) -> None:
    """It is not answered at all: a client would read its 400 as the answer to a report that was stored."""
    line = server.line(0)
    good = head(server, f"Content-Length: {len(line)}") + line
    assert not raw(server, good + b"no HTTP at all\r\n\r\n").startswith(b"HTTP/1.1 400")


def test_a_head_behind_a_long_body_is_taken(server: Serving) -> None:
    """Of two requests in one, the second may begin in the same packet that ends the first."""
    long = server.line(0) * 20_000
    line = server.line(0)
    second = head(server, f"Content-Length: {len(line)}", "Connection: close")
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(head(server, f"Content-Length: {len(long)}") + long + second[:40])
        time.sleep(0.2)
        connection.sendall(second[40:60])
        time.sleep(0.1)
        connection.sendall(second[60:] + line)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    assert answer.count(b"HTTP/1.1 201") == 2


@pytest.mark.parametrize(
    "length",
    ["-1", "1e3", "0x10", "20, 20", "+20", "२०", "99999999999999999999999999", "20\r\nContent-Length: 3"],
)
def test_lengths_that_are_none_are_refused(server: Serving, length: str) -> None:
    before = server.sums()
    answer = raw(server, head(server, f"Content-Length: {length}"), server.line(0))
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert server.sums() == before


@pytest.mark.parametrize(
    ("more", "status"),
    [
        (f"Idempotency-Key: {'0' * 32}", 400),
        ("Content-Type: application/octet-stream", 400),
        ("Origin: https://evil.example\r\nOrigin: http://127.0.0.1", 400),
        (f"Sourdine-Token: {'0' * 64}\r\nSourdine-Token: {'1' * 64}", 400),
        ("Content-Encoding: gzip", 415),
        ("Content-Encoding: identity\r\nContent-Encoding: gzip", 400),
        ("Content-Length: 20", 400),
        ("Transfer-Encoding: chunked", 400),
        ("Transfer-Encoding: identity", 400),
        ("X-A: b\rc", 400),
    ],
)
def test_what_is_told_twice_or_two_ways_is_refused(server: Serving, more: str, status: int) -> None:
    """A proxy may have read the one and the collector the other; compressed bodies are no reports."""
    before, line = server.sums(), server.line(0)
    answer = raw(server, head(server, f"{more}\r\nContent-Length: {len(line)}"), line)
    assert answer.startswith(b"HTTP/1.1 %d" % status)
    assert server.sums() == before


def test_pipelined_requests_are_each_answered_and_counted(server: Serving) -> None:
    before, line = server.sums(), server.line(0)
    good = [head(server, f"Content-Length: {len(line)}") + line for _ in range(6)]
    bad = good[0].replace(b"text/plain", b"text/html")
    last = head(server, f"Content-Length: {len(line)}", "Connection: close") + line
    answer = b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(b"".join([*good[:3], bad, *good[3:], last]))
        while part := connection.recv(65536):
            answer += part
    assert (answer.count(b"HTTP/1.1 201"), answer.count(b"HTTP/1.1 415")) == (7, 1)
    assert server.sums()[0] == before[0] + 7


def test_slow_senders_hold_up_nobody(server: Serving) -> None:
    """Two hundred connections that send a byte and no more: others are answered meanwhile."""
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(200)]
    try:
        for each in idle:
            each.sendall(head(server, "Content-Length: 1000") + b"0")
        start = time.monotonic()
        assert server.post(server.line(0)).status == 201
        assert time.monotonic() - start < 10
    finally:
        for each in idle:
            each.close()


def test_one_address_with_many_connections_shuts_out_nobody_else(server: Serving) -> None:
    """With 2,048 of them everybody else got 503 for ten seconds."""
    idle = []
    try:
        for _ in range(700):
            each = socket.socket()
            each.bind(("127.0.1.5", 0))  # of another network than the honest one, which is 127.0.0.1
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", server.port))
            idle.append(each)
        assert server.ask("GET", "/health").status == 200
        assert server.ask("GET", "/ready").json == {"ready": True, "waits_for": []}
        assert server.post(server.line(0)).status == 201
        cut = 0
        for each in idle:
            with contextlib.suppress(BlockingIOError):
                try:
                    cut += each.recv(1) == b""
                except ConnectionError:
                    cut += 1
        assert cut >= 700 - 512
    finally:
        for each in idle:
            each.close()


def test_a_page_of_another_origin_is_refused(server: Serving) -> None:
    before = server.sums()
    for origin in ("https://evil.example", "null", f"http://127.0.0.1:{server.port}.evil.example", MARK):
        assert server.post(server.line(0), Origin=origin).status == 403
        assert server.ask("OPTIONS", server.path, headers={"Origin": origin}).status == 403
    assert server.sums() == before
    assert server.post(server.line(0), Origin=server.url).status == 201


def test_a_page_of_another_origin_cannot_send_in_chromium(browser: "Browser", server: Serving) -> None:
    """A page elsewhere may ask the browser to send; the collector refuses what comes of it."""
    before = server.sums()
    with watched(browser) as page:
        page.goto(server.url.replace("127.0.0.1", "evil.example") + "/client/demo.html")
        page.get_by_role("alert").get_by_text("secure connection").wait_for()
        sent = page.evaluate(
            """async ([url, body]) => {
              const seen = [];
              for (const headers of [{ "Idempotency-Key": "0".repeat(32) }, {}]) {
                try { seen.push((await fetch(url, { method: "POST", body, headers })).status); }
                catch (problem) { seen.push(problem.name); }
              }
              return seen;
            }""",
            [server.url + server.path, server.line(0).decode()],
        )
    assert sent == ["TypeError", "TypeError"]
    assert server.sums() == before


@pytest.mark.parametrize("text", SQL)
def test_sql_is_only_text(server: Serving, text: str) -> None:
    before = server.sums()
    quoted = text.replace(" ", "%20").replace('"', "%22")
    assert server.ask("GET", f"/v1/questions/{quoted}").status == 404
    assert server.ask("POST", f"/v1/questions/{quoted}/reports", server.line(0)).status in (404, 405)
    assert server.post(server.line(0), key=text).status == 400
    assert server.post(text.encode()).status in (400, 409, 422)
    assert server.post(f"{server.question.fingerprint} {text}\n".encode()).status in (400, 409, 422)
    estimates = f"/v1/questions/{server.question.fingerprint}/estimates?confidence={quoted}"
    assert server.result(estimates).status == 400
    assert server.sums() == before


@pytest.mark.parametrize("path", PATHS)
def test_paths_lead_nowhere_else(server: Serving, path: str) -> None:
    answer = server.ask("GET", path)
    assert answer.status in (400, 404)
    assert b"root:" not in answer.body
    assert b"import" not in answer.body


def test_nothing_of_a_request_is_logged_or_repeated(server: Serving) -> None:
    """Lines of its own, escapes of terminals, what a request says: none of it reaches a log or an answer."""
    forged = f"{MARK}%0d%0aERROR%20forged%1b[31m"
    answers = [
        server.ask("GET", f"/{forged}"),
        server.ask("GET", f"/client/{forged}"),
        server.ask("GET", f"/v1/questions/{forged}"),
        server.post(f"{MARK}\r\nERROR forged \x1b[31m\n".encode()),
        server.post(server.line(0), key=MARK),
        server.post(server.line(0), Content_Type=MARK),
        server.post(server.line(0), User_Agent=MARK, Referer=MARK, X_Forwarded_For=MARK, Cookie=MARK),
    ]
    assert [each.status for each in answers] == [404, 404, 404, 422, 400, 415, 201]
    assert not any(MARK.encode() in each.body for each in answers)
    raw(server, f"GET /{MARK} HTTP/9.9\r\n{MARK}: \x1b[31m\r\n\r\n".encode("latin-1"))
    raw(server, MARK.encode())
    stored = b"".join(path.read_bytes() for path in server.folder.glob("reports.db*"))
    assert MARK.encode() not in stored  # nor is it kept


def test_refusals_are_counted(server: Serving) -> None:
    server.post(b"nonsense\n")
    server.post(server.line(0), key="short")
    server.post(server.line(0), Origin="https://evil.example")
    metrics = server.result("/metrics").body.decode()
    for word in ("refused-id", "refused-origin", "refused-no-report"):
        assert (
            word in metrics or word.replace("-", "_") in metrics or word.removeprefix("refused-") in metrics
        )


def test_crude_poisoners_are_taken_and_flagged(server: Serving) -> None:
    """Their reports are such as honest devices send, so they are stored; the tests of counts tell of them."""
    body = server.line(4) * 3000
    assert server.post(body).json["accepted"] == 3000
    path = f"/v1/questions/{server.question.fingerprint}/counts"
    counts: Any = Counts.from_json(server.result(path).json)
    told = alarms(signs_of_counts(server.question.oracle, counts))
    assert len(told) == 1
    assert "made up" in told[0]
    json.dumps(told)


def head(server: Serving, *lines: str) -> bytes:
    """The beginning of a request that sends reports, as bytes on the wire."""
    fields = [
        f"POST {server.path} HTTP/1.1",
        f"Host: 127.0.0.1:{server.port}",
        "Content-Type: text/plain",
        f"Idempotency-Key: {secrets.token_hex(16)}",
        *lines,
    ]
    return ("\r\n".join(fields) + "\r\n\r\n").encode()


def chunk(body: bytes) -> bytes:
    """A body as one chunk, and its end."""
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


def raw(server: Serving, *parts: bytes) -> bytes:
    """What comes back for bytes on the wire, or nothing where the connection is cut."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        try:
            for part in parts:
                connection.sendall(part)
            return connection.recv(4096)
        except (ConnectionError, TimeoutError):
            return b""
