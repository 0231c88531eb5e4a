"""From devices to a shuffler to a collector, in memory: whole batches, once, from the shuffler alone."""

import asyncio
import io
import secrets
import urllib.error
import urllib.request
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sourdine.collector.blocks import recount
from sourdine.collector.period import KeptPeriod, today
from sourdine.collector.retention import prune
from sourdine.collector.settings import CollectorSettings, open_store
from sourdine.collector.shuffler.delivery import DeliveryFailed, pass_on
from sourdine.local import Question
from tests.collector.parts import WORK, announced, lines, new_store, reports, running, submission

SIGNED = announced(period=KeptPeriod.WHOLE, batch=20, retention=0)
KEY = "ab" * 32
PATH = f"/v1/questions/{WORK.fingerprint}/reports"


def shuffler(folder: Path) -> CollectorSettings:
    return CollectorSettings(store=str(folder / "s.db"), collector="http://collector", shuffler_key=KEY)


class Wire:
    """In the place of the network: a collector in memory, which may answer and not be heard."""

    def __init__(self, folder: Path) -> None:
        self.settings = CollectorSettings(store=str(folder / "c.db"), shuffler_key=KEY)
        new_store(self.settings.store, SIGNED).close()
        self.silent = 0
        self.statuses: list[int] = []

    def open(self, request: urllib.request.Request, timeout: float) -> Any:
        async def ask() -> int:
            async with running(self.settings) as client:
                body = request.data
                assert isinstance(body, bytes)
                path = urlsplit(request.full_url).path
                return (await client.ask("POST", path, dict(request.header_items()), body)).status

        status = asyncio.run(ask())
        self.statuses.append(status)
        if self.silent:
            self.silent -= 1
            raise TimeoutError
        if status >= 300:
            raise urllib.error.HTTPError("", status, "", {}, io.BytesIO())  # type: ignore[arg-type]
        answer = io.BytesIO()
        answer.status = status  # type: ignore[attr-defined]
        return answer


@pytest.fixture
def wire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wire:
    made = Wire(tmp_path)
    monkeypatch.setattr(urllib.request, "urlopen", made.open)
    return made


def counted(place: str) -> int:
    store = open_store(place)
    try:
        return recount(store, 1, WORK).reports
    finally:
        store.close()


def test_batches_arrive_whole_and_once_though_an_answer_is_lost(tmp_path: Path, wire: Wire) -> None:
    settings = shuffler(tmp_path)
    store = new_store(settings.store, SIGNED)
    store.write([submission(lines(15), period="")])
    assert pass_on(settings, store, today()) == 0
    assert counted(wire.settings.store) == 0
    store.write([submission(lines(10, 1), period="")])
    wire.silent = 1
    with pytest.raises(DeliveryFailed):
        pass_on(settings, store, today())
    assert counted(wire.settings.store) == 25
    store.write([submission(lines(3, 2), period="")])
    assert pass_on(settings, store, today()) == 1
    assert wire.statuses == [201, 200]
    assert counted(wire.settings.store) == 25
    assert recount(store, 1, WORK).reports == 3
    collected = open_store(wire.settings.store)
    assert collected.events() == {(1, "batch-25"): 1, (1, "duplicate"): 1}


def test_a_question_that_is_over_leaves_no_rest(tmp_path: Path, wire: Wire) -> None:
    settings = shuffler(tmp_path)
    store = new_store(settings.store, SIGNED)
    store.write([submission(lines(45), period=""), submission(lines(1, 3), period="")])
    store.close_question(1, today().isoformat())
    assert pass_on(settings, store, today()) == 1
    store_again = open_store(settings.store)
    assert recount(store_again, 1, WORK).reports == 0
    assert counted(wire.settings.store) == 46


def refused(folder: Path, body: bytes, headers: dict[str, str]) -> int:
    settings = CollectorSettings(store=str(folder / "c.db"), shuffler_key=KEY)

    async def ask() -> int:
        async with running(settings) as client:
            given = {"idempotency-key": secrets.token_hex(16), **headers}
            return (await client.ask("POST", PATH, given, body)).status

    return asyncio.run(ask())


def test_a_collector_takes_shuffled_questions_from_the_shuffler_alone(tmp_path: Path, wire: Wire) -> None:
    packed = {"content-type": "application/octet-stream"}
    batch, few = reports(20).tobytes(), reports(19).tobytes()
    assert refused(tmp_path, lines(30), {"content-type": "text/plain"}) == 403
    assert refused(tmp_path, batch, packed) == 403
    assert refused(tmp_path, batch, {**packed, "sourdine-shuffler": "cd" * 32}) == 403
    assert refused(tmp_path, few, {**packed, "sourdine-shuffler": KEY}) == 422
    assert refused(tmp_path, lines(30), {"content-type": "text/plain", "sourdine-shuffler": KEY}) == 422
    assert counted(wire.settings.store) == 0
    assert refused(tmp_path, batch, {**packed, "sourdine-shuffler": KEY}) == 201
    assert counted(wire.settings.store) == 20


def test_a_shuffler_shows_nothing_of_what_it_has(tmp_path: Path) -> None:
    settings = replace(shuffler(tmp_path), results_port=0)
    new_store(settings.store, SIGNED).close()

    async def ask() -> list[int]:
        async with running(settings) as client:
            one = WORK.fingerprint
            places = (f"/v1/questions/{one}/counts", f"/v1/questions/{one}/estimates", "/metrics", "/")
            return [(await client.ask("GET", place)).status for place in places]

    assert asyncio.run(ask()) == [404] * 4


def test_a_batch_that_is_not_taken_holds_up_no_other_question(tmp_path: Path, wire: Wire) -> None:
    """The collector knows nothing of the first question: the second is passed on all the same."""
    settings, lost = shuffler(tmp_path), Question(name="lost", oracle=WORK.oracle)
    store = new_store(settings.store, announced(lost, period=KeptPeriod.WHOLE, batch=20), SIGNED)
    store.write([submission(lines(20, question=lost), period=""), submission(lines(30), 2, period="")])
    with pytest.raises(DeliveryFailed):
        pass_on(settings, store, today())
    assert counted(wire.settings.store) == 30
    assert recount(store, 1, lost).reports == 20
    assert recount(store, 2, WORK).reports == 0


def test_what_was_taken_on_the_last_day_arrives_on_the_next(
    tmp_path: Path, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = shuffler(tmp_path)
    closes = SIGNED.announcement.closes
    store = new_store(settings.store, SIGNED)
    store.write([submission(lines(20), period="")])
    monkeypatch.setattr("sourdine.collector.reception.today", lambda: closes + timedelta(days=1))
    assert pass_on(settings, store, closes + timedelta(days=1)) == 1
    assert wire.statuses == [201]
    assert counted(wire.settings.store) == 20
    store.write([submission(lines(20, 1), period="")])
    wire.silent = 1
    with pytest.raises(DeliveryFailed):
        pass_on(settings, store, closes + timedelta(days=7))
    collected = open_store(wire.settings.store)
    (question,) = collected.questions()
    prune(collected, replace(question, closed=""), closes + timedelta(days=7))
    assert pass_on(settings, store, closes + timedelta(days=7)) == 1
    assert wire.statuses == [201, 201, 200]


def test_a_clock_that_is_a_day_ahead_drops_nothing(tmp_path: Path, wire: Wire) -> None:
    settings, closes = shuffler(tmp_path), SIGNED.announcement.closes
    store = new_store(settings.store, SIGNED)
    store.write([submission(lines(10), period="")])
    assert pass_on(settings, store, closes + timedelta(days=1)) == 0
    store.write([submission(lines(10, 1), period="")])  # the clock is set back, and the question open
    assert pass_on(settings, store, closes) == 1
    assert counted(wire.settings.store) == 20
    store.write([submission(lines(10, 2), period="")])
    assert pass_on(settings, store, closes + timedelta(days=2)) == 0
    assert recount(store, 1, WORK).reports == 0


def test_what_a_collector_takes_no_more_is_not_kept_for_ever(
    tmp_path: Path, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, late = shuffler(tmp_path), SIGNED.announcement.closes + timedelta(days=8)
    store = new_store(settings.store, SIGNED)
    store.write([submission(lines(20), period="")])
    monkeypatch.setattr("sourdine.collector.reception.today", lambda: late)
    with pytest.raises(DeliveryFailed):
        pass_on(settings, store, late)
    assert wire.statuses == [410]
    assert recount(store, 1, WORK).reports == 0
