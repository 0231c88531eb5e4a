"""Single reports go when their time is over; counts stay the same, and nothing of them is left."""

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest

from benchmarks.servers import Server
from sourdine.collector.period import KeptPeriod
from sourdine.collector.retention import prune
from sourdine.collector.store import RunningCounts, recount
from sourdine.collector.submission import BodyKind
from sourdine.local import OUE, Question
from tests.collector.parts import WORK, announced, lines, new_store, submission

DAY = date(2026, 11, 17)
ONE = timedelta(days=1)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "reports.db")
    server: Server = request.getfixturevalue("server")
    return server.new()


def test_counts_stay_and_reports_go(place: str) -> None:
    store = new_store(place, announced(opens=DAY, closes=DAY + 9 * ONE, retention=2))
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
    store = new_store(place, announced(opens=DAY, closes=DAY + 9 * ONE, retention=2))
    store.write([submission(lines(5), period=DAY.isoformat())])
    (question,) = store.questions()
    assert prune(store, question, DAY + 5 * ONE) == ["2026-11-17"]
    assert store.has_keys(1)
    assert prune(store, question, DAY + 12 * ONE) == []
    assert not store.has_keys(1)
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
