"""What is taken in, what is refused and how; attacks; and that nothing of a request is repeated or logged."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.collector import writer
from sourdine.collector.blocks import recount
from sourdine.collector.period import KeptPeriod, today
from sourdine.collector.receipt import answer_tag
from sourdine.collector.tokens.blind import new_key, public_text
from sourdine.collector.writer import Writer
from sourdine.local import GRR, OUE, Question
from tests.collector.parts import (
    WORK,
    Answer,
    Client,
    announced,
    lines,
    new_store,
    reports,
    running,
    settings_of,
)

Act = Callable[[Client], Awaitable[Any]]


def asked(tmp_path: Path, act: Act, *questions: Any, **more: Any) -> Any:
    """What an act with a running application gives; the store stays."""
    place = tmp_path / "reports.db"
    new_store(str(place), *questions).close()

    async def work() -> Any:
        async with running(settings_of(place, **more)) as client:
            return await act(client)

    return asyncio.run(work())


def stored(tmp_path: Path) -> int:
    store = new_store(str(tmp_path / "reports.db"))
    try:
        return recount(store, 1, WORK).reports
    finally:
        store.close()


def said(answer: Answer) -> Any:
    """Status and content, without the digest of the submission's id."""
    content = json.loads(answer.body)
    content.pop("answer", None)
    return answer.status, content


def test_reports_are_taken_singly_and_together(tmp_path: Path) -> None:
    async def act(client: Client) -> list[Answer]:
        packed = {"Content-Type": "application/octet-stream"}
        return [
            await client.post(lines(1)),
            await client.post(lines(100), headers={"Content-Type": "text/plain; charset=utf-8"}),
            await client.post(reports(50).tobytes(), headers=packed),
            await client.post([lines(3)[:7], lines(3)[7:30], lines(3)[30:]]),
            await client.post(lines(2) + b"nonsense\n"),
        ]

    one, many, packed, parts, part = asked(tmp_path, act)
    assert said(one) == (201, {"accepted": 1, "quarantined": 0, "reasons": {}})
    assert said(many) == (201, {"accepted": 100, "quarantined": 0, "reasons": {}})
    assert said(packed)[1]["accepted"] == 50
    assert said(parts)[1]["accepted"] == 3
    assert said(part) == (201, {"accepted": 2, "quarantined": 1, "reasons": {"damaged": 1}})
    assert stored(tmp_path) == 156


def test_the_same_id_is_taken_once(tmp_path: Path) -> None:
    key = "0123456789abcdef" * 2

    async def act(client: Client) -> list[Answer]:
        together = [client.post(lines(5), key=key) for _ in range(20)]
        return [*await asyncio.gather(*together), await client.post(lines(6), key=key)]

    *same, other = asked(tmp_path, act)
    assert sorted(each.status for each in same) == [200] * 19 + [201]
    assert said(same[-1]) == (200, {"accepted": 0, "duplicate": True})
    assert (other.status, json.loads(other.body)["error"]) == (409, "conflict")
    assert stored(tmp_path) == 5


LARGE = b"x" * (1 << 20) + b"\n"
PACKED = {"Content-Type": "application/octet-stream"}
REFUSED: dict[str, tuple[int, str, dict[str, Any]]] = {
    "no id": (400, "id", {"key": ""}),
    "short id": (400, "id", {"key": "12"}),
    "capital id": (400, "id", {"key": "A" * 32}),
    "sql in the id": (400, "id", {"key": "'; DROP TABLE loose; --"}),
    "a line break in the id": (400, "id", {"key": "0" * 31 + "\n"}),
    "empty": (400, "empty", {"body": b""}),
    "origin": (403, "origin", {"headers": {"Origin": "https://evil.example"}}),
    "null origin": (403, "origin", {"headers": {"Origin": "null"}}),
    "large": (413, "large", {"body": LARGE}),
    "large in parts": (413, "large", {"body": [LARGE[:1000]] * 1100}),
    "large by its word": (413, "large", {"headers": {"Content-Length": "9" * 400}}),
    "a length that is none": (413, "large", {"headers": {"Content-Length": "-1"}}),
    "type": (415, "type", {"headers": {"Content-Type": "application/json"}}),
    "form": (415, "type", {"headers": {"Content-Type": "multipart/form-data; boundary=x"}}),
    "only bad lines": (422, "no-report", {"body": b"nonsense\n"}),
    "only impossible ones": (422, "no-report", {"body": b"\xff\xff", "headers": PACKED}),
    "another question": (409, "another-question", {"body": b"0123456789abcdef 00\n"}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(tmp_path: Path, name: str) -> None:
    status, word, more = REFUSED[name]

    async def act(client: Client) -> tuple[Answer, Answer]:
        content = {"body": lines(3), **more}
        answer = await client.post(content.pop("body"), **content)
        return answer, await client.post(lines(1))

    answer, next_one = asked(tmp_path, act)
    assert (answer.status, json.loads(answer.body)["error"]) == (status, word)
    assert next_one.status == 201  # and whoever comes next is served
    assert stored(tmp_path) == 1
    store = new_store(str(tmp_path / "reports.db"))
    kinds = [kind for (_, kind), count in store.events().items() for _ in range(count)]
    assert kinds.count(f"refused-{word}") == 1
    store.close()


def test_packed_reports_have_whole_lengths(tmp_path: Path) -> None:
    wide = Question(name="wide", oracle=OUE(epsilon=1, categories=20))

    async def act(client: Client) -> list[Answer]:
        return [await client.post(bytes(length), headers=PACKED, question=wide) for length in (5, 6)]

    short, whole = asked(tmp_path, act, announced(wide))
    assert (short.status, json.loads(short.body)["error"], whole.status) == (400, "shape", 201)


def test_questions_that_are_not_open(tmp_path: Path) -> None:
    early, late, none = (Question(name=name, oracle=GRR(epsilon=1, categories=4)) for name in "abc")
    day = timedelta(days=1)

    async def act(client: Client) -> list[Answer]:
        return [await client.post(lines(1, question=each), question=each) for each in (early, late, none)]

    answers = asked(
        tmp_path,
        act,
        announced(early, opens=today() + day),
        announced(late, opens=today() - 9 * day, closes=today() - day),
    )
    assert [(each.status, json.loads(each.body)["error"]) for each in answers] == [
        (403, "not-open"),
        (410, "closed"),
        (404, "unknown"),
    ]


def test_a_question_closed_meanwhile_takes_none(tmp_path: Path) -> None:
    async def act(client: Client) -> list[Answer]:
        before = await client.post(lines(1))
        store = new_store(str(tmp_path / "reports.db"))
        store.close_question(1, today().isoformat())
        store.close()
        return [before, await client.post(lines(1))]

    before, after = asked(tmp_path, act)
    assert (before.status, after.status) == (201, 410)


def test_a_slow_body_is_not_waited_for(tmp_path: Path) -> None:
    async def act(client: Client) -> Answer:
        return await client.post([lines(1)[:5], lines(1)[5:]], pause=0.1)

    answer = asked(tmp_path, act, body_time=0.15)
    assert answer.status == 408
    assert answer.headers[b"connection"] == b"close"


def test_whoever_sends_too_often_waits(tmp_path: Path) -> None:
    async def act(client: Client) -> list[Answer]:
        return [await client.post(lines(1)) for _ in range(4)]

    answers = asked(tmp_path, act, rate=0.26)
    assert [each.status for each in answers] == [201] * 2 + [429] * 2
    assert answers[-1].headers[b"retry-after"] == b"5"


@pytest.mark.parametrize(("most", "size"), [(5, 1 << 26), (4096, 4 * 20)])
def test_a_full_queue_says_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, size: int
) -> None:
    """While the disk is busy, as many wait as are allowed, or as many bytes; others are told."""
    import threading

    monkeypatch.setattr(writer, "_MOST_WAITING_BYTES", size)

    gate, take = threading.Event(), Writer._take

    def slow(self: Writer) -> Any:
        gate.wait()
        return take(self)

    monkeypatch.setattr(Writer, "_take", slow)

    async def act(client: Client) -> list[Answer]:
        tasks = [asyncio.ensure_future(client.post(lines(1))) for _ in range(8)]
        await asyncio.sleep(0.05)
        gate.set()
        return list(await asyncio.gather(*tasks))

    answers = asked(tmp_path, act, most_waiting=most)
    assert sorted(each.status for each in answers) == [201] * 5 + [503] * 3
    full = next(each for each in answers if each.status == 503)
    assert full.headers[b"retry-after"] == b"5"
    assert stored(tmp_path) == 5


def test_a_disk_that_fails_acknowledges_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sourdine.collector.sqlite import SqliteStore

    commit, failures = SqliteStore.commit, [1, 1]

    def fail(self: SqliteStore) -> None:
        if failures:
            failures.pop()
            raise OSError("a word of the disk")
        commit(self)

    async def act(client: Client) -> list[Answer]:
        monkeypatch.setattr(SqliteStore, "commit", fail)
        one = await client.post(lines(3), key="0" * 32)
        ill = await client.ask("GET", "/health")
        await asyncio.sleep(0)
        two = await client.post(lines(3), key="0" * 32)
        three = await client.post(lines(3), key="0" * 32)
        return [one, ill, two, three, await client.ask("GET", "/health")]

    answers = asked(tmp_path, act)
    assert answers[0].status == answers[1].status == 503
    assert answers[3].status in (200, 201)
    assert answers[4].status == 200
    assert stored(tmp_path) == 3


def test_origins_are_declared(tmp_path: Path) -> None:
    page = {"Origin": "https://survey.example"}
    path = f"/v1/questions/{WORK.fingerprint}/reports"

    async def act(client: Client) -> list[Answer]:
        return [
            await client.post(lines(1), headers=page),
            await client.post(lines(1), headers={"Origin": "http://192.0.2.7:80", "Host": "192.0.2.7:80"}),
            await client.post(lines(1), headers={"Origin": "http://[::1]:80", "Host": "[::1]:80"}),
            await client.post(lines(1), headers={"Origin": "http://evil.example", "Host": "evil.example"}),
            await client.ask("OPTIONS", path, {**page, "Access-Control-Request-Method": "POST"}),
            await client.ask("OPTIONS", path, {"Origin": "https://evil.example"}),
            await client.ask("GET", f"/v1/questions/{WORK.fingerprint}", page),
            await client.ask("GET", f"/v1/questions/{WORK.fingerprint}", {"Origin": "https://evil.example"}),
        ]

    ours, own, six, bound, before, evil, get, evil_get = asked(
        tmp_path, act, origins=("https://survey.example/",)
    )
    name = b"access-control-allow-origin"
    assert (ours.status, ours.headers[name]) == (201, b"https://survey.example")
    assert [own.status, six.status] == [201, 201]
    assert bound.status == 403  # a name that somebody let lead here is not the server's own
    assert (before.status, before.headers[name]) == (204, b"https://survey.example")
    assert b"Idempotency-Key" in before.headers[b"access-control-allow-headers"]
    assert (evil.status, name in evil.headers) == (403, False)
    assert get.headers[name] == b"https://survey.example"
    assert name not in evil_get.headers
    assert all(b"access-control-allow-credentials" not in each.headers for each in (ours, before, get))


def test_nothing_of_a_request_is_repeated_or_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever is sent, with line breaks and colours in it, no log has a line of it and no answer a word."""
    evil = "INJECTED\r\n2026 ERROR \x1b[31mroot logged in"
    caplog.set_level(logging.DEBUG)

    async def act(client: Client) -> list[Answer]:
        path = f"/v1/questions/{WORK.fingerprint}"
        return [
            await client.post(evil.encode() * 10),
            await client.post(lines(1), key=evil),
            await client.post(lines(1), headers={"User-Agent": evil, "Origin": evil}),
            await client.post(lines(1), headers={"Content-Type": evil}),
            await client.ask("GET", f"/{evil}"),
            await client.ask("GET", f"/client/{evil}"),
            await client.ask("GET", "/client/../store.py"),
            await client.ask("GET", "/client/%2e%2e%2fstore.py"),
            await client.ask("GET", f"{path}/estimates?confidence={evil}"),
            await client.ask("POST", f"/v1/questions/{evil}/reports"),
            await client.ask("GET", f"/v1/questions/{'a' * 16}' OR 1=1 --"),
        ]

    answers = asked(tmp_path, act)
    assert all(400 <= each.status < 500 for each in answers)
    written = caplog.text + "".join(capfd.readouterr()) + "".join(each.body.decode() for each in answers)
    assert "INJECTED" not in written
    assert "logged in" not in written


def test_a_fault_of_ours_tells_no_data(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sourdine.collector.rates import Rates

    def fail(self: Rates, address: str) -> bool:
        raise RuntimeError(f"the address is {address}")

    monkeypatch.setattr(Rates, "admits", fail)
    answer = asked(tmp_path, lambda client: client.post(lines(1)))
    assert answer.status == 500
    assert "192.0.2.1" not in caplog.text + answer.body.decode()
    assert "RuntimeError" in caplog.text


def test_an_answer_has_a_digest_that_no_proxy_knows(tmp_path: Path) -> None:
    """Whatever the answer, and the id itself is not in it."""
    key = "0123456789abcdef" * 2

    async def act(client: Client) -> list[Answer]:
        return [
            await client.post(lines(5), key=key),
            await client.post(lines(5), key=key),
            await client.post(lines(6), key=key),
            await client.post(b"nonsense", key=key[::-1]),
            await client.post(lines(6), key="no id"),
        ]

    *known, none = asked(tmp_path, act)
    tags = [json.loads(each.body)["answer"] for each in known]
    assert tags[0] == tags[1] == tags[2] == answer_tag(bytes.fromhex(key)) != tags[3]
    assert "answer" not in json.loads(none.body)
    assert not any(key.encode() in each.body for each in known)


def test_a_device_may_ask_for_a_least_batch(tmp_path: Path) -> None:
    """A later revision with a smaller one gets no report of a device that asked for more."""
    signed = announced(period=KeptPeriod.WHOLE, batch=50)
    place = tmp_path / "s.db"
    new_store(str(place), signed).close()
    settings = settings_of(place, collector="http://127.0.0.1:1", shuffler_key="ab" * 32)

    async def act() -> list[tuple[int, str]]:
        found = []
        async with running(settings) as client:
            assert client.app.link is not None
            client.app.link.is_synchronised = client.app.reception.is_synchronised = True
            for asked_for in ("0", "50", "51", "-1", "9" * 30, "x"):
                answer = await client.post(lines(1), headers={"Sourdine-Least-Batch": asked_for})
                found.append((answer.status, json.loads(answer.body).get("error", "")))
        return found

    assert asyncio.run(act()) == [(201, "")] * 2 + [(409, "batch")] * 4


ODD = st.binary(max_size=12) | st.sampled_from(
    [
        b"\xff" * 40,
        b"0" * 641,
        b"9" * 400,
        b"a" * 32,
        b"text/plain",
        b"bytes=0-",
        b"1e9",
        b"\xd9\xa3",
        b"-1",
        b"\0",
    ]
)
NAMES = [
    "idempotency-key",
    "content-type",
    "content-length",
    "content-encoding",
    "origin",
    "host",
    "sourdine-token",
    "sourdine-batch",
    "sourdine-shuffler",
    "sourdine-least-batch",
]


class Application:
    """A collector of three kinds of questions, asked by raw headers, and what it logged of failures."""

    def __init__(self, folder: Path) -> None:
        key = public_text(new_key().public_key())
        others = [Question(name=name, oracle=WORK.oracle) for name in ("in batches", "with tokens")]
        signed = [
            announced(),
            announced(others[0], period=KeptPeriod.WHOLE, batch=20),
            announced(others[1], period=KeptPeriod.WHOLE, tokens=key),
        ]
        settings = settings_of(folder / "odd.db", shuffler_key="ab" * 32, rate=0)
        new_store(settings.store, *signed).close()
        self.fingerprints = [each.announcement.fingerprint for each in signed]
        self.failures: list[str] = []
        self._runner = asyncio.Runner()
        self._running = running(settings)
        self._client = self._runner.run(self._running.__aenter__())
        logging.getLogger("sourdine.collector").addFilter(self._keep)

    def _keep(self, record: logging.LogRecord) -> bool:
        self.failures.append(record.getMessage())
        return True

    def ask(self, method: str, path: str, headers: dict[str, bytes], body: bytes, query: bytes) -> int:
        """The highest status of a request to each question."""
        return max(
            self._runner.run(self._ask(method, name, path, headers, body, query))
            for name in self.fingerprints
        )

    async def _ask(
        self, method: str, name: str, path: str, headers: dict[str, bytes], body: bytes, query: bytes
    ) -> int:
        sent: list[Any] = []
        complete = {"idempotency-key": b"a" * 32, "content-type": b"text/plain", **headers}

        async def receive() -> Any:
            return {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            sent.append(message)

        scope: Any = {
            "type": "http",
            "method": method,
            "path": f"/v1/questions/{name}{path}",
            "raw_path": b"",
            "root_path": "",
            "query_string": query,
            "headers": [(key.encode(), text) for key, text in complete.items()],
            "client": ("192.0.2.1", 5000),
            "server": ("127.0.0.1", 8080),
            "scheme": "http",
            "http_version": "1.1",
        }
        await self._client.app(scope, receive, send)
        return int(sent[0]["status"])

    def close(self) -> None:
        logging.getLogger("sourdine.collector").removeFilter(self._keep)
        self._runner.run(self._running.__aexit__(None, None, None))
        self._runner.close()


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    made = Application(tmp_path_factory.mktemp("odd"))
    yield made
    made.close()


@given(
    st.dictionaries(st.sampled_from(NAMES), ODD, max_size=6),
    ODD,
    st.sampled_from(["/reports", "/counts", "/estimates", "", "/tokens"]),
    st.sampled_from(["POST", "GET"]),
    st.binary(max_size=20),
)
def test_odd_requests_are_never_an_error_of_the_server(
    odd: Application, headers: dict[str, bytes], body: bytes, path: str, method: str, query: bytes
) -> None:
    """A token of odd length was one, with a line in the log."""
    status = odd.ask(method, path, headers, body, query)
    assert status < 500
    assert odd.failures == []
