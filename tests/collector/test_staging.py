"""The staging mode: reports in memory until a group is together, and what that promises."""

import asyncio
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.servers import Server
from sourdine.collector.blocks import recount
from sourdine.collector.period import KeptPeriod
from sourdine.collector.postgres import PostgresStore
from sourdine.collector.retention import prune
from sourdine.collector.settings import open_store
from sourdine.collector.store import LEAST_BLOCK, ReportStore
from sourdine.collector.submission import SubmissionStanding
from sourdine.collector.writer import Staging
from tests.collector.parts import (
    DAY,
    WORK,
    Client,
    announced,
    lines,
    new_store,
    running,
    settings_of,
    submission,
)
from tests.collector.test_forensics import KEPT, ONE, Files, purging, secrets_of, singles

NONE: Counter[tuple[int, str]] = Counter()


def staged(store: ReportStore, seconds: float = 1e6) -> Staging:
    return Staging(store, seconds)


def test_a_group_is_written_once_it_is_large_enough(tmp_path: Path) -> None:
    store = new_store(str(tmp_path / "reports.db"))
    staging = staged(store)
    for i in range(LEAST_BLOCK - 1):
        (outcome,) = staging.write([submission(lines(1, i))], NONE)
        assert outcome.standing is SubmissionStanding.RECEIVED
    assert recount(store, 1, WORK).reports == 0
    assert staging.held == LEAST_BLOCK - 1
    staging.write([submission(lines(1, 999))], NONE)
    assert recount(store, 1, WORK).reports == LEAST_BLOCK
    assert staging.held == 0
    store.close()


def test_long_bodies_with_few_reports_are_written_too(tmp_path: Path) -> None:
    """Of 255 reports among a megabyte of nonsense each a question had 255 MB in memory."""
    store = new_store(str(tmp_path / "reports.db"))
    staging = staged(store)
    for i in range(18):
        staging.write([submission(lines(1, i) + b"x" * (1 << 20))], NONE)
    assert staging.held == 2
    assert recount(store, 1, WORK).reports == 16
    store.close()


def test_each_submission_is_received_once(tmp_path: Path) -> None:
    store = new_store(str(tmp_path / "reports.db"))
    staging, one = staged(store), submission(lines(5))
    other = submission(lines(6), key=one.id)
    said = staging.write([one, one, other, submission(b"nonsense")], NONE)
    assert [str(each.standing) for each in said] == ["received", "received", "conflict", "refused"]
    staging.commit()
    assert [str(each.standing) for each in staging.write([one, other], NONE)] == ["duplicate", "conflict"]
    assert recount(store, 1, WORK).reports == 5
    store.close_question(1, "2026-11-17")
    assert staging.write([submission(lines(1))], NONE)[0].standing is SubmissionStanding.CLOSED
    store.close()


def test_a_group_that_another_process_has_too_counts_once(tmp_path: Path) -> None:
    """A client whose answer was lost may send to another process the next time."""
    place = str(tmp_path / "reports.db")
    one, other = new_store(place), open_store(place)
    first, second, both = staged(one), staged(other), submission(lines(7))
    first.write([both, submission(lines(1))], NONE)
    second.write([both, submission(lines(2))], NONE)
    first.commit()
    second.commit()
    assert recount(one, 1, WORK).reports == 10
    one.close()
    other.close()


def test_what_waits_for_its_time_is_written_then(tmp_path: Path) -> None:
    store = new_store(str(tmp_path / "reports.db"))
    staging = staged(store, 60.0)
    staging.write([submission(lines(3))], NONE)
    staging.commit(time.monotonic() + 59)
    assert recount(store, 1, WORK).reports == 0
    staging.commit(time.monotonic() + 61)
    assert recount(store, 1, WORK).reports == 3
    store.close()


def test_a_failure_to_write_a_group_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = new_store(str(tmp_path / "reports.db"))
    staging, one = staged(store), submission(lines(3))
    staging.write([one], NONE)

    def fail(*_: object) -> None:
        raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(store, "commit", fail)
        with pytest.raises(OSError):
            staging.commit()
    assert staging.write([one], NONE)[0].standing is SubmissionStanding.RECEIVED
    staging.commit()
    assert recount(store, 1, WORK).reports == 3
    store.close()


def test_what_was_received_before_a_question_was_closed_is_stored(tmp_path: Path) -> None:
    """It was dropped without a word: the question was closed while it was in memory."""
    store = new_store(str(tmp_path / "reports.db"))
    staging = staged(store)
    staging.write([submission(lines(3))], NONE)
    store.close_question(1, "2026-11-17")
    staging.commit()
    assert recount(store, 1, WORK).reports == 3
    store.close()


def test_events_are_counted_once_though_a_group_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer keeps the events of what failed, and these were on the disk."""
    store = new_store(str(tmp_path / "reports.db"))
    staging, events = staged(store, 0.0), Counter({(1, "refused-rate"): 1})
    write = store.write

    def fail(submissions: list[object], *rest: Any, **more: Any) -> Any:
        if submissions:
            raise OSError
        return write([], *rest, **more)

    monkeypatch.setattr(store, "write", fail)
    with pytest.raises(OSError):
        staging.write([submission(lines(3))], events)
    assert store.events() == {(1, "refused-rate"): 1}
    assert not events
    store.close()


def test_the_answer_is_received_and_an_end_in_order_stores_all(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "reports.db", staging=1e6)
    new_store(settings.store).close()

    async def act() -> list[tuple[int, str]]:
        async with running(settings) as client:
            return [await said(client, i) for i in range(20)]

    async def said(client: Client, seed: int) -> tuple[int, str]:
        answer = await client.post(lines(1, seed))
        content = json.loads(answer.body)
        content.pop("answer")
        return answer.status, json.dumps(content)

    assert set(asyncio.run(act())) == {(202, '{"received": 1, "quarantined": 0, "reasons": {}}')}
    store = open_store(settings.store)
    assert recount(store, 1, WORK).reports == 20
    store.close()


def test_a_shuffler_stages_as_many_as_a_batch(tmp_path: Path) -> None:
    store = new_store(str(tmp_path / "s.db"), announced(period=KeptPeriod.WHOLE, batch=300))
    staging = staged(store)
    for i in range(299):
        staging.write([submission(lines(1, i), period="")], NONE)
    assert recount(store, 1, WORK).reports == 0
    staging.write([submission(lines(1, 999), period="")], NONE)
    assert recount(store, 1, WORK).reports == 300
    store.close()


def order_in(content: bytes, rows: list[bytes]) -> bool:
    """Whether rows lie in a file in the order of their arrival."""
    places = [content.find(row[8:24]) for row in rows]
    there = [place for place in places if place >= 0]
    return len(there) > 10 and there == sorted(there)


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def test_no_log_has_the_order_and_after_retention_no_file_a_report(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 700 removed reports PostgreSQL kept 700 in its log, each with its time to the microsecond."""
    files = Files(str(tmp_path / "reports.db"), tmp_path)
    if kind == "postgres":
        server: Server = request.getfixturevalue("server")
        monkeypatch.setattr(PostgresStore, "purge_pause", 0.0)
        files = Files(server.new(), server.folder / "data", server)
    sent = singles(700, 21, DAY.isoformat())
    store = new_store(files.address, KEPT)
    staging = staged(store)
    for each in sent:
        staging.write([each], NONE)
    staging.commit()
    rows = secrets_of(sent)
    assert sum(files.found(rows).values()) >= 700
    groups = [rows[:256], rows[256:512], rows[512:]]
    for path in files.folder.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        assert not any(order_in(content, group) for group in groups), path.name

    def remove() -> None:
        prune(store, store.questions()[0], DAY + 2 * ONE)
        assert store.tidy()

    if kind == "postgres":
        with purging(server):
            remove()
    else:
        remove()
    assert files.found(rows) == {}
    store.close()
