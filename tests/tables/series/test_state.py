"""What happens to the file of a series: full disks, forks, several publishers, and hands that edit it."""

import errno
import gc
import json
import multiprocessing
import sqlite3
from collections.abc import Callable
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import pytest

from sourdine.accounting.ledger import Ledger
from sourdine.core.errors import InvalidParameter, LedgerError, SourdineError
from sourdine.frames import Source
from sourdine.tables.series import TableSeries
from sourdine.tables.series.state import SeriesState
from tests.tables.series.case import make_plan

Make = Callable[..., Source]
RECORDS = [(f"u{i}", 1 + i % 6, "north" if i % 3 else "south") for i in range(30)]
FORK = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no forks here")


@pytest.fixture
def series(tmp_path: Path, ledger: Ledger) -> TableSeries:
    return TableSeries.start(make_plan(), tmp_path / "visits.state", ledger)


def rows(series: TableSeries, source: Source, period: int | None = None) -> list[list[int]]:
    found: list[list[int]] = series.publish(source, period).table().rows.tolist()
    return found


def test_a_full_disk_closes_no_period(series: TableSeries, source: Make) -> None:
    table = source(RECORDS)
    first = rows(series, table)
    pages = series._state._connection.execute("PRAGMA page_count").fetchone()[0]
    series._state._connection.execute(f"PRAGMA max_page_count = {pages}")
    many = source([(f"v{i}", 2, "north") for i in range(3000)])
    for _ in range(2):
        with pytest.raises(LedgerError, match="no room"):
            series.publish(many)
        assert series.status().closed == 1
        assert rows(series, table, 1) == first
    series._state._connection.execute("PRAGMA max_page_count = 100000")
    assert series.publish(many).closed == 2


def test_rows_that_cannot_be_witnessed_are_not_shown(
    series: TableSeries, source: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("sourdine.core.files.write_whole", refuse)
    for ask in (lambda: series.publish(source(RECORDS)), series.answers):
        with pytest.raises(LedgerError, match="Read-only"):
            ask()
    assert not series.status().restored
    monkeypatch.undo()
    assert series.answers().table().rows.tolist() == rows(series, source(RECORDS), 1)


def test_status_writes_nothing(tmp_path: Path, series: TableSeries, source: Make) -> None:
    witness = tmp_path / "visits.state.shown"
    before = witness.read_text()
    series.publish(source(RECORDS))
    witness.write_text(before)  # cut off after the commit
    assert not series.status().restored
    assert witness.read_text() == before
    shown = rows(series, source(RECORDS), 1)
    assert json.loads(witness.read_text())["closed"] == 1
    witness.write_text(before)
    assert rows(series, source(RECORDS), 2)[0][0] == shown[0][0]
    assert not series.status().restored
    assert json.loads(witness.read_text())["closed"] == 2


EDITS = [
    "UPDATE periods SET rows = x'00' WHERE number = 1",
    "UPDATE periods SET sums = x'690100000000' WHERE number = 1",
    "DELETE FROM periods WHERE number = 1",
    "UPDATE notes SET content = 'x' WHERE name = 'mechanisms'",
    "UPDATE notes SET content = '[]' WHERE name = 'mechanisms'",
    "UPDATE notes SET content = 'many' WHERE name = 'periods'",
    "UPDATE notes SET content = 'zz' WHERE name = 'secret'",
    "UPDATE key_lists SET keys = '[]'",
    "UPDATE key_lists SET keys = '{'",
    "DROP TABLE participations",
]


@pytest.mark.parametrize("statement", EDITS)
def test_an_edited_state_is_told_as_such(
    tmp_path: Path, series: TableSeries, source: Make, statement: str
) -> None:
    for _ in range(2):
        series.publish(source(RECORDS))
    series.close()
    _edit(tmp_path / "visits.state", statement)
    with (
        pytest.raises(SourdineError),
        TableSeries.open(make_plan(), tmp_path / "visits.state") as again,
    ):
        again.publish(source(RECORDS))


def test_a_period_that_was_cut_out_is_not_drawn_again_for_nothing(
    tmp_path: Path, series: TableSeries, source: Make
) -> None:
    for _ in range(2):
        series.publish(source(RECORDS))
    series.close()
    _edit(tmp_path / "visits.state", "DELETE FROM periods WHERE number = 2")
    with TableSeries.open(make_plan(), tmp_path / "visits.state") as again:
        assert again.status().restored
        with pytest.raises(InvalidParameter, match="restored"):
            again.publish(source(RECORDS))


def test_a_state_that_nobody_closes_leaves_no_connection_open(tmp_path: Path) -> None:
    """From 3.13 on Python warns of such a connection."""
    state = SeriesState.create(tmp_path / "s.series", {})
    connection = state._connection
    del state
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def _edit(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    for name in ("periods_stay", "periods_last"):
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize("length", [0, 100, 5000])
def test_a_state_that_was_cut_short_is_told_as_such(tmp_path: Path, series: TableSeries, length: int) -> None:
    series.close()
    path = tmp_path / "visits.state"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(SourdineError, match="damaged"):
        TableSeries.open(make_plan(), path)


@pytest.mark.parametrize("content", ["[1]", '{"token": "\u00e9", "closed": 0, "file": FILE}', "", "{}"])
def test_a_strange_witness_refuses_rows(
    tmp_path: Path, series: TableSeries, source: Make, content: str
) -> None:
    status = (tmp_path / "visits.state").stat()
    text = content.replace("FILE", json.dumps([status.st_dev, status.st_ino]))
    (tmp_path / "visits.state.shown").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidParameter, match="copy"):
        series.publish(source(RECORDS))


def test_a_resumption_cut_off_before_its_end_is_paid_once(
    tmp_path: Path, series: TableSeries, source: Make, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "visits.state"
    backup = path.read_bytes()
    series.publish(source(RECORDS))
    series.close()
    path.write_bytes(backup)
    with TableSeries.open(make_plan(), path) as again:
        run = again._state._run

        def die_at_the_last_commit(statement: str, *values: Any) -> sqlite3.Cursor:
            if (
                statement == "COMMIT"
                and again._state.note("resuming") is None
                and again._state.note("before")
            ):
                raise KeyboardInterrupt
            return run(statement, *values)

        monkeypatch.setattr(again._state, "_run", die_at_the_last_commit)
        with pytest.raises(KeyboardInterrupt):
            again.resume(1, ledger)
        monkeypatch.undo()
        paid = ledger.status().spent
        assert again.status().restored
        again.resume(1, ledger)
        assert ledger.status().spent == paid
        assert again.publish(source(RECORDS)).closed == 1


@FORK
@pytest.mark.slow
def test_whoever_publishes_first_the_others_show_the_same(
    tmp_path: Path, series: TableSeries, source: Make
) -> None:
    """Forks of an open series, and processes that open it themselves, all at once."""
    table, fork = source(RECORDS), multiprocessing.get_context("fork")
    told: Queue[list[list[int]]] = fork.Queue()

    def publish(mine: TableSeries) -> None:
        told.put([rows(mine, table, number)[0] for number in (1, 2, 3)])

    def open_and_publish() -> None:
        with TableSeries.open(make_plan(), tmp_path / "visits.state") as mine:
            publish(mine)

    processes = [fork.Process(target=publish, args=(series,)) for _ in range(2)]
    processes += [fork.Process(target=open_and_publish) for _ in range(2)]
    for process in processes:
        process.start()
    publish(series)
    answers = [told.get(timeout=60) for _ in range(5)]
    for process in processes:
        process.join()
    assert all(each == answers[0] for each in answers)
    assert series.status().closed == 3
    assert not series.status().restored
