"""Stores as version 0.2 wrote them are read, moved to the form of now, and go on."""

import shutil
from datetime import date, timedelta
from pathlib import Path

import pytest

from benchmarks.servers import Server
from sourdine.collector import store as stores
from sourdine.collector.blocks import recount
from sourdine.collector.issuer import CodeStore
from sourdine.collector.retention import prune
from sourdine.collector.settings import open_store
from sourdine.collector.shuffler.batches import seal_batches, waiting_batches
from sourdine.collector.store import ReportStore, StoreError
from sourdine.collector.submission import BodyKind, Submission, SubmissionStanding
from sourdine.local.lines import written

GOLDEN = Path(__file__).parents[1] / "golden/0.2/collector"
BATCH = "047151e6fef79367a00ee59190d14663"
DAY = date(2026, 12, 2)


def copied(tmp_path: Path, name: str) -> str:
    shutil.copy(GOLDEN / name, tmp_path / name)
    return str(tmp_path / name)


def like(store: ReportStore, number: int, seed: int, count: int, period: str) -> Submission:
    """A submission as the script of the golden files sent it."""
    import numpy as np

    question = store._question(number)
    rows = question.oracle.pack(np.random.default_rng(seed).integers(0, 4, count))
    body = written(question.fingerprint, rows)
    return Submission(number, seed.to_bytes(16, "big"), body, BodyKind.LINES, period)


def check_collector(store: ReportStore) -> None:
    work, home = store.questions()
    assert [recount(store, each.number, each.question).reports for each in (work, home)] == [1314, 33]
    assert store.sealed(1)["2026-11-01"].reports == 5
    assert store.revisions(2).keys() == {3}
    assert store.write([like(store, 1, 2, 9, "2026-11-03")])[0].standing is SubmissionStanding.DUPLICATE
    assert store.write([like(store, 1, 9, 9, "2026-11-03")])[0].standing is SubmissionStanding.STORED
    assert recount(store, 1, work.question).reports == 1323
    assert prune(store, work, DAY + timedelta(days=2)) == ["2026-11-02", "2026-11-03"]
    assert recount(store, 1, work.question).reports == 1323
    assert len(store.identity().epoch) == 16


def test_a_collector(tmp_path: Path) -> None:
    place = copied(tmp_path, "collector.db")
    store = open_store(place)
    check_collector(store)
    epoch = store.identity().epoch
    store.close()
    store = open_store(place)
    assert store.identity().epoch == epoch
    store.close()


def test_a_shuffler(tmp_path: Path) -> None:
    """The batch that waited gets a seal, under the revision that was in force, and is what it was."""
    store = open_store(copied(tmp_path, "shuffler.db"))
    (question,) = store.questions()
    (batch,) = waiting_batches(store, question)
    assert batch.id.hex() == BATCH
    assert (batch.label.seal, batch.label.revision, len(batch.rows)) == (1, 3, 30)
    assert store.write([like(store, 1, 7, 12, "")])[0].standing is SubmissionStanding.DUPLICATE
    store.write([like(store, 1, 8, 12, "")])
    (new,) = seal_batches(store, question)
    assert (new.label.seal, len(new.rows), new.label.submissions) == (2, 24, 1)
    store.close()


def test_codes(tmp_path: Path) -> None:
    codes = CodeStore(Path(copied(tmp_path, "codes.db")))
    assert codes.used == 1
    assert codes.use("0123456789abcdef", "a" * 32, b"blinded") is True
    assert codes.use("0123456789abcdef", "a" * 32, b"another") is False
    assert codes.use("0123456789abcdef", "b" * 32, b"another") is True
    codes.close()


def test_a_server(tmp_path: Path, server: Server) -> None:
    """The tables of version 0.2, filled with what the golden file has."""
    import sqlite3

    import psycopg

    address = server.new()
    schema = "sourdine_reports_" + address.partition("#")[2]
    script = (GOLDEN / "postgres-2.sql").read_text(encoding="ascii").replace("{schema}", schema)
    server.execute(*[each for each in script.split(";") if each.strip()])
    old = sqlite3.connect(copied(tmp_path, "collector.db"))
    with psycopg.connect(server.address) as new:
        for table in ("questions", "submissions", "loose", "blocks", "events"):
            rows = old.execute(f"SELECT * FROM {table}").fetchall()
            if table == "blocks":
                rows = [(*row[:4], bool(row[4]), row[5]) for row in rows]
            for row in rows:
                new.execute(f"INSERT INTO {schema}.{table} VALUES ({','.join(['%s'] * len(row))})", row)
        new.execute(f"SELECT setval('{schema}.questions_number_seq', 2)")
    old.close()
    store = open_store(address)
    check_collector(store)
    store.close()


def test_a_move_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlite3

    place = copied(tmp_path, "shuffler.db")

    def fail(_: ReportStore) -> None:
        raise StoreError("The move fails.")

    monkeypatch.setattr(ReportStore, "_migrate", fail)
    with pytest.raises(StoreError, match="move"):
        open_store(place)
    monkeypatch.undo()
    connection = sqlite3.connect(place)
    assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    connection.close()
    store = open_store(place)
    assert len(waiting_batches(store, store.questions()[0])) == 1
    store.close()


def test_a_later_form_is_refused(tmp_path: Path) -> None:
    import sqlite3

    place = copied(tmp_path, "collector.db")
    connection = sqlite3.connect(place)
    connection.execute(f"PRAGMA user_version = {stores.VERSION + 1}")
    connection.close()
    with pytest.raises(StoreError, match="later version"):
        open_store(place)
