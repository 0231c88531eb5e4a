"""Single reports go when their time is over; counts stay the same, and nothing of them is left."""

import asyncio
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.servers import Server
from sourdine.collector.blocks import RunningCounts, recount
from sourdine.collector.period import KeptPeriod, today
from sourdine.collector.retention import mix, prune
from sourdine.collector.store import ReportStore
from sourdine.collector.submission import BodyKind, SubmissionStanding
from sourdine.local import OUE, Question
from sourdine.local.lines import written
from tests.collector.parts import WORK, announced, lines, new_store, settings_of, submission
from tests.collector.parts import running as running_server

DAY = date(2026, 11, 17)
ONE = timedelta(days=1)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "reports.db")
    server: Server = request.getfixturevalue("server")
    return server.new()


def test_counts_stay_and_reports_go(place: str) -> None:
    store = new_store(place, announced(opens=DAY, closes=DAY + 9 * ONE, retention=2, period=KeptPeriod.DAY))
    running = RunningCounts(store, 1, WORK)
    for k in range(4):
        store.write([submission(lines(5000 + k, k), period=(DAY + k * ONE).isoformat())])
    before = running.refresh()
    (question,) = store.questions()
    assert prune(store, question, DAY + 2 * ONE) == []
    assert prune(store, question, DAY + 4 * ONE) == ["2026-11-17", "2026-11-18"]
    assert store.periods(1) == ["2026-11-19", "2026-11-20"]
    assert sum(len(rows) for _, rows in store.stream(1)) == 10005
    for counts in (running.refresh(), recount(store, 1, WORK)):
        assert counts.reports == before.reports == 20006
        assert counts.sums.tolist() == before.sums.tolist()
    again = submission(lines(3), period="2026-11-21")
    store.write([again])
    assert prune(store, question, DAY + 20 * ONE) == ["2026-11-19", "2026-11-20", "2026-11-21"]
    assert recount(store, 1, WORK).reports == 20009
    store.close()


def test_keys_go_when_a_question_is_over_though_its_reports_went_before(place: str) -> None:
    store = new_store(place, announced(opens=DAY, closes=DAY + 9 * ONE, retention=2, period=KeptPeriod.DAY))
    store.write([submission(lines(5), period=DAY.isoformat())])
    (question,) = store.questions()
    assert prune(store, question, DAY + 5 * ONE) == ["2026-11-17"]
    assert store.has_keys(1)
    assert prune(store, question, DAY + 12 * ONE) == []
    assert not store.has_keys(1)
    assert recount(store, 1, WORK).reports == 5
    store.close()


def test_when_a_period_is_over_nothing_tells_which_reports_came_together(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, a block holds those that came one after another; then it is by random numbers alone."""
    store = new_store(place, announced(opens=DAY, closes=DAY + 9 * ONE, period=KeptPeriod.DAY))
    first, second = DAY.isoformat(), (DAY + ONE).isoformat()
    running = RunningCounts(store, 1, WORK)
    for k in range(6):
        store.write([submission(written(WORK.fingerprint, np.full((600, 1), k % 4)), period=first)])
    store.write([submission(lines(9), period=first), submission(lines(700), period=second)])
    before, numbers = running.by_period(), sorted(_numbers(store))
    (question,) = store.questions()
    assert mix(store, question, DAY + ONE) == []  # a late one may still come in
    assert len(store.unmixed((1, first))) == 6
    assert mix(store, question, DAY + 2 * ONE) == [first]
    assert (store.unmixed((1, first)), store.count_loose((1, first))) == ([], 0)
    assert mix(store, question, DAY + 2 * ONE) == []
    assert len(store.unmixed((1, second))) == 1
    for found in (running.by_period(), RunningCounts(store, 1, WORK).by_period()):
        assert {name: each.sums.tolist() for name, each in found.items()} == {
            name: each.sums.tolist() for name, each in before.items()
        }
    assert sorted(_numbers(store)) == numbers
    (block,) = [rows for found, rows in store.stream(1, first) if len(found)]
    assert len(set(block[:50, 0].tolist())) == 4  # those of all submissions are among each other
    monkeypatch.setattr("sourdine.collector.store.MOST_BYTES", 2000)
    for _ in range(5):
        store.write([submission(lines(600), period=second)])
    assert mix(store, question, DAY + 9 * ONE) == [second]
    assert len(_numbers(store)) == 3609 + 3700
    store.close()


def _numbers(store: ReportStore) -> list[int]:
    return [number for numbers, _ in store.stream(1) for number in numbers.tolist()]


def test_mixing_makes_even_blocks(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of 601 reports was a block of one."""
    monkeypatch.setattr("sourdine.collector.store._BLOCK_BYTES", 300 * 9)
    store = new_store(place, announced(opens=DAY, closes=DAY, period=KeptPeriod.DAY))
    store.write([submission(lines(601), period=DAY.isoformat())])
    assert mix(store, store.questions()[0], DAY + 2 * ONE) == [DAY.isoformat()]
    sizes = store.run("SELECT reports FROM {schema}.blocks ORDER BY reports")
    assert [count for (count,) in sizes] == [200, 200, 201]
    store.close()


def test_a_server_applies_what_was_announced_as_soon_as_it_starts(tmp_path: Path) -> None:
    place = tmp_path / "reports.db"
    long_ago = today() - 30 * ONE
    store = new_store(str(place), announced(opens=long_ago, retention=2, period=KeptPeriod.DAY))
    store.write([submission(lines(5), period=long_ago.isoformat())])

    async def start() -> None:
        async with running_server(settings_of(place)):
            for _ in range(200):
                if not store.periods(1):
                    return
                await asyncio.sleep(0.05)

    asyncio.run(start())
    assert store.periods(1) == []
    assert recount(store, 1, WORK).reports == 5
    store.close()


def test_what_was_removed_is_not_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "reports.db"
    words = Question(name="w", oracle=OUE(epsilon=1, categories=8 * 40))
    secret = np.frombuffer(b"a report of forty bytes that is very odd", np.uint8)[None]
    store = new_store(
        str(path), announced(words, opens=DAY, closes=DAY, retention=0, period=KeptPeriod.WHOLE)
    )
    store.write([submission(secret.tobytes(), kind=BodyKind.PACKED, period="")])
    there = lambda: any(secret.tobytes() in each.read_bytes() for each in tmp_path.iterdir())
    assert there()
    (question,) = store.questions()
    assert prune(store, question, DAY) == []
    assert prune(store, question, DAY + ONE) == [""]
    assert not there()
    assert recount(store, 1, words).reports == 1
    store.close()


def test_closed_early_is_over_early(place: str) -> None:
    store = new_store(
        place, announced(opens=DAY, closes=DAY + 90 * ONE, retention=1, period=KeptPeriod.WHOLE)
    )
    store.write([submission(lines(5), period="")])
    store.close_question(1, DAY.isoformat())
    (question,) = store.questions()
    assert prune(store, question, DAY + 2 * ONE) == [""]
    assert recount(store, 1, WORK).reports == 5
    store.close()


def test_a_clock_that_ran_ahead_counts_nothing_twice(place: str) -> None:
    """Keys that were forgotten would be new ones once the clock is set back: the question stays closed."""
    store = new_store(place, announced(opens=DAY, closes=DAY + ONE, retention=1))
    sent = submission(lines(5))
    store.write([sent])
    (question,) = store.questions()
    prune(store, question, DAY + 900 * ONE)
    assert not store.has_keys(1)
    assert [each.standing for each in store.write([sent])] == [SubmissionStanding.CLOSED]
    assert recount(store, 1, WORK).reports == 5
    store.close()


@pytest.mark.parametrize(
    ("period", "name", "last"),
    [
        (KeptPeriod.DAY, "2026-11-17", date(2026, 11, 17)),
        (KeptPeriod.WEEK, "2026-11-16", date(2026, 11, 22)),
        (KeptPeriod.MONTH, "2026-11-01", date(2026, 11, 30)),
        (KeptPeriod.WHOLE, "", date(2027, 1, 1)),
    ],
)
def test_periods(period: KeptPeriod, name: str, last: date) -> None:
    assert period.name_of(DAY) == name
    assert period.last_day(name, date(2027, 1, 1)) == last


@pytest.mark.parametrize(
    ("one", "other"), [(KeptPeriod.WHOLE, KeptPeriod.DAY), (KeptPeriod.DAY, KeptPeriod.WHOLE)]
)
def test_a_revision_with_other_periods_stops_no_removal(
    tmp_path: Path, one: KeptPeriod, other: KeptPeriod
) -> None:
    """Reports that were kept without a day raised an error in each removal, and so none was removed."""
    terms: dict[str, Any] = {"opens": DAY, "closes": DAY + 9 * ONE, "retention": 2}
    store = new_store(str(tmp_path / "reports.db"), announced(period=one, **terms))
    store.write([submission(lines(5), period=one.name_of(DAY))])
    store.register(announced(period=other, version=2, **terms))
    store.write([submission(lines(7, 1), period=other.name_of(DAY))])
    (question,) = store.questions()
    mix(store, question, DAY + 8 * ONE)
    prune(store, question, DAY + 30 * ONE)
    assert store.periods(1) == []
    assert recount(store, 1, WORK).reports == 12
    store.close()
