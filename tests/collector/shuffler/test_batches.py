"""Batches: enough reports or none, each report in one, the same one at every try, in an order by chance."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.servers import Server
from sourdine.collector.blocks import recount
from sourdine.collector.settings import open_store
from sourdine.collector.shuffler.batches import drop_rest, seal_batches, settle, waiting_batches
from sourdine.collector.store import ReportStore, StoredQuestion
from sourdine.local import GRR, Question
from sourdine.local.lines import written
from sourdine.testing import SeededBits
from tests.collector.parts import announced, submission

NUMBERS = Question(name="numbers", oracle=GRR(epsilon=1, categories=1 << 16))


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "shuffler.db")
    server: Server = request.getfixturevalue("server")
    return server.new()


_OPEN: list[ReportStore] = []


@pytest.fixture(autouse=True)
def closed_stores() -> Iterator[None]:
    yield
    while _OPEN:
        _OPEN.pop().close()


def store_with(place: str, count: int) -> tuple[ReportStore, StoredQuestion]:
    store = open_store(place)
    _OPEN.append(store)
    store.register(announced(NUMBERS, batch=20))
    add(store, np.arange(count))
    return store, store.questions()[0]


def add(store: ReportStore, numbers: np.ndarray) -> None:
    for number in numbers:
        line = written(NUMBERS.fingerprint, NUMBERS.oracle.pack(np.array([number])))
        store.write([submission(line, period="")])


def values(rows: np.ndarray) -> list[int]:
    return [int(each) for each in NUMBERS.oracle.unpack(rows)]


def test_too_few_reports_make_no_batch(place: str) -> None:
    store, question = store_with(place, 19)
    assert seal_batches(store, question) == []
    assert waiting_batches(store, question) == []
    assert recount(store, 1, NUMBERS).reports == 19


def test_all_that_wait_are_one_batch_and_later_ones_another(place: str) -> None:
    store, question = store_with(place, 25)
    (first,) = seal_batches(store, question)
    assert first is not None
    assert sorted(values(first.rows)) == list(range(25))
    assert seal_batches(store, question) == []
    add(store, np.arange(100, 120))
    (second,) = seal_batches(store, question)
    assert second is not None
    assert sorted(values(second.rows)) == list(range(100, 120))
    waiting = {each.id: sorted(values(each.rows)) for each in waiting_batches(store, question)}
    assert waiting == {first.id: list(range(25)), second.id: list(range(100, 120))}


def test_a_batch_is_the_same_when_it_is_sent_again_and_gone_when_settled(place: str) -> None:
    store, question = store_with(place, 30)
    seal_batches(store, question)
    (one,), (again,) = waiting_batches(store, question), waiting_batches(store, question)
    assert one.id == again.id
    assert one.rows.tobytes() == again.rows.tobytes()
    settle(store, question, one)
    assert waiting_batches(store, question) == []
    assert recount(store, 1, NUMBERS).reports == 0


def test_a_batch_that_two_processes_settle_is_delivered_once(place: str) -> None:
    """It was counted twice, so that the collector seemed to have lost reports."""
    store, question = store_with(place, 30)
    (batch,) = seal_batches(store, question)
    settle(store, question, batch)
    settle(store, question, batch)
    assert store.seals(1).delivered == 30


def test_what_is_left_at_the_end_is_dropped(place: str) -> None:
    store, question = store_with(place, 7)
    assert drop_rest(store, question) == 7
    assert drop_rest(store, question) == 0
    assert recount(store, 1, NUMBERS).reports == 0


def test_the_order_is_by_chance(tmp_path: Path) -> None:
    """Where the first report of 20 lands, over many batches: each place is as likely as any."""
    places = np.zeros(20)
    store, question = store_with(str(tmp_path / "shuffler.db"), 0)
    for seed in range(60):
        add(store, np.arange(20))
        seal_batches(store, question, SeededBits(seed))
        (batch,) = waiting_batches(store, question)
        places[values(batch.rows).index(0)] += 1
        settle(store, question, batch)
    assert ((places - 3) ** 2 / 3).sum() < 67.0  # chi-square of 19 degrees, at 3e-7


def test_a_failure_leaves_reports_where_they_were(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store, question = store_with(place, 25)

    def fail(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(store, "add_block", fail)
    with pytest.raises(OSError):
        seal_batches(store, question)
    monkeypatch.undo()
    assert recount(store, 1, NUMBERS).reports == 25
    (batch,) = seal_batches(store, question)
    assert batch is not None
    assert len(batch.rows) == 25


def test_more_than_a_collector_takes_at_once_is_several_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, question = store_with(str(tmp_path / "shuffler.db"), 90)
    monkeypatch.setattr("sourdine.collector.shuffler.batches.MOST_BATCH", 80)  # 40 reports of two bytes
    made = seal_batches(store, question)
    assert [len(each.rows) for each in made] == [30, 30, 30]
    assert sorted(value for each in made for value in values(each.rows)) == list(range(90))
    assert {each.id for each in waiting_batches(store, question)} == {each.id for each in made}
