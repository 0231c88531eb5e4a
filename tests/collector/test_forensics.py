"""Nothing of what is to be forgotten is in the raw files: database, log, shared memory, journal, pg_wal."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from benchmarks.servers import Server
from sourdine.collector.period import KeptPeriod
from sourdine.collector.postgres import PostgresStore
from sourdine.collector.retention import mix, prune
from sourdine.collector.settings import open_store
from sourdine.collector.shuffler.batches import (
    drop_rest,
    forget_keys,
    seal_batches,
    settle,
    waiting_batches,
)
from sourdine.collector.store import ReportStore
from sourdine.collector.submission import Submission
from sourdine.local import OUE, Question
from sourdine.local.lines import written
from tests.collector.parts import DAY, announced, new_store, submission

WIDE = Question(name="wide", oracle=OUE(epsilon=1, categories=256))
"""Reports of 32 bytes, each unlike all else: 16 random ones between marks, by which a search is quick."""
MARK = bytes.fromhex("9d4c1f7ae35b8260")
ONE = timedelta(days=1)
SHUFFLED = announced(WIDE, opens=DAY, closes=DAY + 9 * ONE, batch=20)
KEPT = announced(WIDE, opens=DAY, closes=DAY, retention=0, period=KeptPeriod.DAY)


def singles(count: int, seed: int, period: str) -> list[Submission]:
    """Submissions of a report each."""
    rows = np.random.default_rng(seed).integers(0, 256, (count, 32), dtype=np.uint8)
    rows[:, :8] = rows[:, 24:] = np.frombuffer(MARK, np.uint8)
    return [submission(written(WIDE.fingerprint, row[None]), period=period) for row in rows]


def secrets_of(submissions: list[Submission]) -> list[bytes]:
    return [bytes.fromhex(each.body.split()[1].decode()) for each in submissions]


def is_in(needle: bytes, content: bytes) -> bool:
    """Also where it goes over the end of a page: one of its halves is whole then."""
    if not needle.startswith(MARK):
        return needle in content
    return needle[:16] in content or needle[16:] in content


def keys_of(submissions: list[Submission]) -> list[bytes]:
    """Of some of them, for these have no mark."""
    return [each.key for each in submissions][:: max(len(submissions) // 20, 1)]


class Files:
    """The raw files of a store."""

    def __init__(self, address: str, folder: Path, server: Server | None = None) -> None:
        self.address, self.folder, self.server = address, folder, server

    def found(self, needles: list[bytes]) -> dict[str, int]:
        """How many of some byte strings are in which files."""
        if self.server is not None:
            self.server.execute("CHECKPOINT")  # what is in memory is to be looked at as well
        found = {}
        for path in self.folder.rglob("*"):
            try:
                content = path.read_bytes() if path.is_file() else b""
            except FileNotFoundError:  # a segment that was removed meanwhile
                continue
            if needles[0].startswith(MARK) and MARK not in content:
                continue
            if count := sum(is_in(each, content) for each in needles):
                found[path.name] = count
        return found


@contextmanager
def purging(server: Server) -> Iterator[None]:
    server.set("wal_recycle", "off")
    try:
        yield
    finally:
        server.set("wal_recycle", "on")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def files(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Files]:
    if request.param == "sqlite":
        yield Files(str(tmp_path / "reports.db"), tmp_path)
        return
    server: Server = request.getfixturevalue("server")
    monkeypatch.setattr(PostgresStore, "purge_pause", 0.0)
    with purging(server):
        yield Files(server.new(), server.folder / "data", server)


def write(store: ReportStore, submissions: list[Submission]) -> None:
    """A transaction each, as they come; in the staging mode they are committed in groups."""
    for each in submissions:
        store.write([each])


def test_the_search_finds_what_is_there(files: Files) -> None:
    store = new_store(files.address, KEPT)
    sent = singles(30, 1, "2026-11-17")
    write(store, sent)
    assert sum(files.found(secrets_of(sent)).values()) >= 30
    assert sum(files.found(keys_of(sent)).values()) >= len(keys_of(sent))
    store.close()


def test_a_seal_and_a_delivery_leave_no_report(files: Files) -> None:
    """All 44 single reports were in the log, in order of arrival, beside the digests of their ids."""
    store = new_store(files.address, SHUFFLED)
    sent = singles(44, 2, "")
    write(store, sent)
    (question,) = store.questions()
    (batch,) = seal_batches(store, question)
    assert store.leftovers() == {}
    settle(store, question, batch)
    assert store.leftovers() == {}
    assert files.found(secrets_of(sent)) == {}
    forget_keys(store, question, "2026-12-31")
    assert store.leftovers() == {}
    assert files.found(keys_of(sent)) == {}
    assert files.found([batch.digests[:8]]) == {}
    store.close()


def test_a_seal_leaves_no_order_of_arrival(files: Files) -> None:
    """What waits to be delivered lies once in the files, in the order of the batch."""
    store = new_store(files.address, SHUFFLED)
    sent = singles(44, 3, "")
    write(store, sent)
    seal_batches(store, store.questions()[0])
    (batch,) = waiting_batches(store, store.questions()[0])
    order = [row.tobytes() for row in batch.rows]
    for path in files.folder.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        for row in order:
            assert content.count(row) <= 1
        places = [content.find(row) for row in order]
        assert places == [-1] * 44 or places == sorted(places)
    store.close()


def test_a_rest_that_is_dropped_leaves_nothing(files: Files) -> None:
    store = new_store(files.address, SHUFFLED)
    sent = singles(13, 4, "")
    write(store, sent)
    assert drop_rest(store, store.questions()[0]) == 13
    assert files.found(secrets_of(sent)) == {}
    store.close()


@pytest.mark.parametrize("count", [60, 700])
def test_retention_leaves_nothing(files: Files, count: int) -> None:
    store = new_store(files.address, KEPT)
    sent, kept = singles(count, 5, DAY.isoformat()), singles(20, 6, (DAY + 9 * ONE).isoformat())
    write(store, sent)
    write(store, kept)
    assert prune(store, store.questions()[0], DAY + 2 * ONE) == [DAY.isoformat()]
    assert store.leftovers() == {}
    assert files.found(secrets_of(sent)) == {}
    assert files.found(keys_of(sent)) == {}  # the question is over
    assert sum(files.found(secrets_of(kept)).values()) >= 20
    store.close()


def test_mixing_leaves_each_report_once(files: Files) -> None:
    store = new_store(files.address, KEPT)
    sent = singles(600, 7, DAY.isoformat())
    write(store, sent)
    assert mix(store, store.questions()[0], DAY + 2 * ONE) == [DAY.isoformat()]
    assert store.leftovers() == {}
    assert sum(files.found(secrets_of(sent)).values()) == 600
    store.close()


def test_retention_with_a_reader_open_is_tried_until_it_holds(tmp_path: Path) -> None:
    """60 of 60 reports stayed in the log, and it was never tried again."""
    files = Files(str(tmp_path / "reports.db"), tmp_path)
    store, reader = new_store(files.address, KEPT), open_store(files.address)
    sent = singles(60, 8, DAY.isoformat())
    write(store, sent)
    reader.run("BEGIN")
    reader.run("SELECT count(*) FROM loose")
    prune(store, store.questions()[0], DAY + 2 * ONE)
    assert store.leftovers()
    assert not store.tidy()
    assert files.found(secrets_of(sent)) == {"reports.db-wal": 60}
    write(store, singles(1, 9, (DAY + 9 * ONE).isoformat()))  # nobody waits for the reader
    reader.run("COMMIT")
    assert store.tidy()
    assert store.leftovers() == {}
    assert files.found(secrets_of(sent)) == {}
    reader.close()
    store.close()


def test_a_crash_between_removal_and_purge_is_made_good(tmp_path: Path) -> None:
    """The mark is in the transaction that removes, so that whoever opens the store next goes on."""
    files = Files(str(tmp_path / "reports.db"), tmp_path / "crashed")
    store = new_store(files.address, KEPT)
    sent = singles(30, 10, DAY.isoformat())
    write(store, sent)
    store.begin_alone()
    store.drop(1, DAY.isoformat())
    store.commit()
    shutil.copytree(tmp_path, files.folder, ignore=lambda *_: ["crashed"])  # as a crash leaves the files
    assert files.found(secrets_of(sent))
    again = open_store(str(files.folder / "reports.db"))
    assert again.tidy()
    assert files.found(secrets_of(sent)) == {}
    again.close()
    store.close()


def test_what_a_server_without_rights_keeps_is_known(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """It recycles its log, where removed reports stay: the store goes on saying so."""
    monkeypatch.setattr(PostgresStore, "purge_pause", 0.0)
    files = Files(server.new(), server.folder / "data", server)
    store = new_store(files.address, KEPT)
    sent = singles(40, 11, DAY.isoformat())
    write(store, sent)
    prune(store, store.questions()[0], DAY + 2 * ONE)
    assert store.leftovers().keys() == {"log"}
    found = files.found(secrets_of(sent))
    assert sum(found.values()) >= 40
    assert all(len(name) == 24 for name in found), "in the log alone, and no more in the tables"
    with purging(server):
        assert store.tidy()
    assert files.found(secrets_of(sent)) == {}
    store.close()


def test_a_reader_of_an_older_state_of_a_server_is_waited_for(server: Server) -> None:
    store = new_store(server.new(), KEPT)
    reader = open_store(str(server.address) + "#" + store._schema.removeprefix("sourdine_reports_"))
    write(store, singles(10, 12, DAY.isoformat()))
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    reader.run("SELECT count(*) FROM {schema}.questions")
    prune(store, store.questions()[0], DAY + 2 * ONE)
    assert {"loose", "blocks"} <= store.leftovers().keys()
    reader.run("COMMIT")
    store.tidy()
    assert store.leftovers().keys() <= {"log"}
    reader.close()
    store.close()


def test_a_session_that_is_not_shown_may_be_a_reader(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A role sees no snapshots of other roles' sessions: what such a backup kept alive was taken for gone."""
    monkeypatch.setattr(PostgresStore, "purge_pause", 0.0)
    place = server.new()
    name = place.partition("#")[2]
    server.execute(f"CREATE ROLE {name} LOGIN", f"GRANT CREATE ON DATABASE postgres TO {name}")
    own = server.address.replace("postgres:@", f"{name}@")
    store = new_store(f"{own}#{name}", KEPT)
    reader = open_store(place)
    write(store, singles(10, 13, DAY.isoformat()))
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    reader.run("SELECT count(*) FROM {schema}.questions")
    prune(store, store.questions()[0], DAY + 2 * ONE)
    assert {"loose", "blocks"} <= store.leftovers().keys()
    reader.run("COMMIT")
    store.tidy()
    assert {"loose", "blocks"} <= store.leftovers().keys()
    server.execute(f"GRANT pg_read_all_stats TO {name}")
    store.tidy()
    assert store.leftovers().keys() == {"log"}
    server.execute(
        f"GRANT pg_monitor, pg_checkpoint TO {name}", f"GRANT EXECUTE ON FUNCTION pg_switch_wal() TO {name}"
    )
    with purging(server):
        assert store.tidy()  # with the rights that docs/how_to/back_up_and_restore.md lists
    reader.close()
    store.close()
