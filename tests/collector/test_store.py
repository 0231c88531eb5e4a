"""Both stores: each report once, counts that equal a recount, nothing that ties reports together."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.servers import Server
from sourdine.collector import store as stores
from sourdine.collector.blocks import RunningCounts, recount, unpacked_block
from sourdine.collector.postgres import PostgresStore
from sourdine.collector.settings import open_store
from sourdine.collector.store import ReportStore, StoreError
from sourdine.collector.submission import BodyKind, Submission, SubmissionStanding
from sourdine.collector.tokens.blind import new_key, public_text
from sourdine.local import GRR, OUE, Question
from sourdine.local.lines import LineFault
from tests.collector.parts import WORK, announced, lines, new_store, reports, submission

Make = Callable[[], str]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "reports.db")
    server: Server = request.getfixturevalue("server")
    return server.new()


def test_a_submission_is_stored_once(place: str) -> None:
    store = new_store(place)
    one = submission(lines(10))
    first, again = store.write([one]), store.write([one])
    assert (first[0].standing, first[0].accepted) == (SubmissionStanding.STORED, 10)
    assert again[0].standing is SubmissionStanding.DUPLICATE
    other = store.write([submission(lines(10, seed=1), key=one.id)])
    assert other[0].standing is SubmissionStanding.CONFLICT
    both = store.write([two := submission(lines(3)), two, submission(lines(4), key=two.id)])
    assert [str(each.standing) for each in both] == ["stored", "duplicate", "conflict"]
    counts = recount(store, 1, WORK)
    assert counts.reports == 13
    assert counts.sums.tolist() == (WORK.tally(reports(10)) + WORK.tally(reports(3))).sums.tolist()
    assert store.events() == {(1, "duplicate"): 2, (1, "conflict"): 2}
    store.close()


def test_bad_lines_are_counted_and_cost_no_other(place: str) -> None:
    store = new_store(place)
    body = lines(5) + b"nonsense\n" + b"0" * 16 + b" 00\n" + WORK.fingerprint.encode() + b" 04\n"
    outcome, none, packed = store.write(
        [
            submission(body),
            submission(b"nonsense\n"),
            submission(bytes([0, 3, 4, 255]), kind=BodyKind.PACKED),
        ]
    )
    assert outcome.accepted == 5
    assert outcome.faults == {LineFault.DAMAGED: 1, LineFault.ANOTHER: 1, LineFault.IMPOSSIBLE: 1}
    assert none.standing is SubmissionStanding.REFUSED
    assert (packed.accepted, packed.faults) == (2, {LineFault.IMPOSSIBLE: 2})
    assert recount(store, 1, WORK).reports == 7
    assert store.events() == {
        (1, "damaged"): 2,
        (1, "another-question"): 1,
        (1, "impossible"): 3,
        (1, "refused"): 1,
    }
    store.close()


def test_a_closed_question_takes_none(place: str) -> None:
    store, other = new_store(place), open_store(place)
    other.close_question(1, "2026-11-17")
    assert store.write([submission(lines(2))])[0].standing is SubmissionStanding.CLOSED
    assert recount(store, 1, WORK).reports == 0
    assert store.questions()[0].closed == "2026-11-17"
    store.close()
    other.close()


def test_a_later_version_takes_the_place_of_an_announcement(place: str) -> None:
    store = new_store(place)
    later, earlier = announced(version=2, retention=7), announced(retention=8)
    assert [store.register(later), store.register(earlier)] == [1, 1]
    assert store.questions()[0].signed == later
    store.close()


def test_a_failed_transaction_leaves_nothing(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = new_store(place)
    one = submission(lines(10))
    with monkeypatch.context() as patch:
        patch.setattr(type(store), "add_loose", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            store.write([one])
    assert recount(store, 1, WORK).reports == 0
    assert store.write([one])[0].standing is SubmissionStanding.STORED
    store.close()


def test_blocks_are_made_of_loose_reports_and_hide_the_order(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "_BLOCK", 50)
    monkeypatch.setattr(stores, "LEAST_BLOCK", 50)
    store = new_store(place)
    for seed in range(12):
        store.write([submission(lines(9, seed))])
    assert store.count_loose((1, "2026-11-17")) == 12 * 9 % 54
    blocks = list(store.stream(1))
    assert [len(rows) for _, rows in blocks if len(rows)] == [54, 54]
    for numbers, _ in blocks:
        assert (np.diff(numbers.astype(np.int64)) > 0).all()
    expected = sum((WORK.tally(reports(9, seed)) for seed in range(1, 12)), WORK.tally(reports(9, 0)))
    assert recount(store, 1, WORK).sums.tolist() == expected.sums.tolist()
    store.close()


def test_two_writers_pack_and_count_each_report_once(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "_BLOCK", 64)
    monkeypatch.setattr(stores, "LEAST_BLOCK", 64)
    new_store(place).close()
    same = [submission(lines(5, 1000 + i)) for i in range(20)]  # both are sent these

    def work(seed: int) -> None:
        store = open_store(place)
        for i in range(20):
            store.write([submission(lines(7, seed + i)), same[i], same[-1 - i]])
        store.close()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (0, 500)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = open_store(place)
    assert recount(store, 1, WORK).reports == 2 * 20 * 7 + 20 * 5
    numbers = np.concatenate([numbers for numbers, _ in store.stream(1)])
    assert len(set(numbers.tolist())) == len(numbers)
    store.close()


def block_sizes(store: ReportStore) -> list[int]:
    return sorted(count for _, count in store.unmixed((1, "2026-11-17")))


@pytest.mark.parametrize("count", [8192, 8193, 8447, 16385])
def test_a_large_submission_makes_no_block_below_the_least(tmp_path: Path, count: int) -> None:
    """Cut at every 8,192 reports, the rest of 8,193 was a block of one."""
    store = new_store(str(tmp_path / "reports.db"))
    store.write([submission(lines(count))])
    assert sum(block_sizes(store)) == count
    assert min(block_sizes(store)) >= stores.LEAST_BLOCK
    store.close()


def test_writers_that_counted_before_another_made_a_block_make_none_below_the_least(place: str) -> None:
    one, other = new_store(place), open_store(place)
    for turn in range(24):
        for store in (one, other):
            store.write([submission(lines(40, turn))])
    assert sum(block_sizes(one)) + one.count_loose((1, "2026-11-17")) == 24 * 80
    assert len(block_sizes(one)) >= 2
    assert min(block_sizes(one)) >= stores.LEAST_BLOCK
    one.close()
    other.close()


def batches_in(store: ReportStore) -> list[list[int]]:
    """How many reports of each batch a block has, and what lies loose; the numbers tell the batches."""
    place, found = (1, "2026-11-17"), []
    for number, _ in store.unmixed(place):
        found.append(unpacked_block(store.take_block(number), 1)[1].ravel().tolist())
    return [sorted(Counter(rows).values()) for rows in found]


def test_a_block_has_whole_batches(tmp_path: Path) -> None:
    """It took 2,048 of the loose reports of several writers, and so a part of some shuffler's batch."""
    numbered = Question(name="batches", oracle=GRR(epsilon=1, categories=256))
    first = new_store(str(tmp_path / "reports.db"), announced(numbered))
    writers = [first, *(open_store(str(tmp_path / "reports.db")) for _ in range(6))]
    for batch in range(7 * 13):
        rows = numbered.oracle.pack(np.full(25, batch))
        writers[batch % 7].write([submission(rows.tobytes(), kind=BodyKind.PACKED)])
    assert first.count_loose((1, "2026-11-17")) == 7 * 13 * 25
    rows = numbered.oracle.pack(np.full(200, 255))
    first.write([submission(rows.tobytes(), kind=BodyKind.PACKED)])
    assert batches_in(first) == [[25] * 7 * 13 + [200]]
    for store in writers:
        store.close()


def test_two_packers_share_no_batch(server: Server) -> None:
    """One that comes while another one packs leaves its reports to the next."""
    place = server.new()
    one, other = new_store(place), open_store(place)
    other.write([submission(lines(500, 1))])
    one.begin()
    assert one.may_pack()
    assert len(one.take_loose((1, "2026-11-17"))) == 500
    other.write([submission(lines(50, 2))])
    assert block_sizes(other) == []
    one.rollback()
    other.write([submission(lines(50, 3))])
    assert block_sizes(other) == [600]
    one.close()
    other.close()


@given(st.lists(st.tuples(st.integers(0, 40), st.booleans(), st.booleans()), max_size=12))
@settings(max_examples=25)
def test_running_counts_always_equal_a_recount(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[int, bool, bool]]
) -> None:
    patch = pytest.MonkeyPatch()
    patch.setattr(stores, "_BLOCK", 32)
    patch.setattr(stores, "LEAST_BLOCK", 32)
    patch.setattr("sourdine.collector.sqlite.MOST_BYTES", 200)  # several snapshots a count
    store = new_store(str(tmp_path_factory.mktemp("s") / "reports.db"))
    running = RunningCounts(store, 1, WORK)
    rows, old = [], submission(lines(1))
    for seed, (count, again, look) in enumerate(acts):
        new = submission(lines(count, seed)) if count else old
        outcomes = store.write([new, old] if again else [new])
        rows += [reports(count, seed)] if count else []
        assert {str(each.standing) for each in outcomes} <= {"stored", "duplicate"}
        old = new
        if look:
            assert running.refresh().sums.tolist() == recount(store, 1, WORK).sums.tolist()
    total = running.refresh()
    assert total.sums.tolist() == recount(store, 1, WORK).sums.tolist()
    store.close()
    patch.undo()


def test_wide_reports(place: str) -> None:
    wide = Question(name="wide", oracle=OUE(epsilon=1, categories=3000))
    store = new_store(place, announced(wide))
    rows = wide.oracle.pack(wide.oracle.sample(np.arange(600) % 3000))
    store.write([submission(rows.tobytes(), kind=BodyKind.PACKED)])
    assert recount(store, 1, wide).sums.tolist() == wide.tally(rows).sums.tolist()
    store.close()


def columns(path: Path) -> Iterator[tuple[str, str]]:
    connection = sqlite3.connect(path)
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
        for row in connection.execute(f"PRAGMA table_info({table})"):
            yield table, row[1]
    connection.close()


def test_nothing_but_the_report_is_kept(tmp_path: Path) -> None:
    """Neither id nor body of a submission lies in the file, and no column is for anything else."""
    path = tmp_path / "reports.db"
    store = new_store(str(path))
    one = Submission(1, b"sixteen id bytes", lines(3), BodyKind.LINES, "2026-11-17")
    store.write([one])
    store.close()
    content = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert one.id not in content
    assert one.body not in content
    assert sorted(columns(path)) == sorted(
        [
            *[
                ("questions", name)
                for name in ["number", "fingerprint", "version", "content", "closed", "sealed"]
            ],
            *[("submissions", name) for name in ["key", "body", "question"]],
            *[("loose", name) for name in ["number", "question", "period", "report"]],
            *[("blocks", name) for name in ["number", "question", "period", "reports", "mixed", "content"]],
            *[("events", name) for name in ["question", "kind", "count"]],
            *[("identity", name) for name in ["epoch", "secret"]],
            *[("revisions", name) for name in ["question", "version", "content"]],
            *[("seals", name) for name in ["question", "seals", "least", "delivered"]],
            *[("batches", name) for name in ["question", "store", "seal", "part", "parts"]],
            *[("batches", name) for name in ["name", "revision", "reports", "digests"]],
            *[("fresh", name) for name in ["key", "question"]],
            *[("passed", name) for name in ["digest", "question"]],
            *[("leftovers", name) for name in ["name", "mark"]],
        ]
    )
    assert path.stat().st_mode & 0o777 == 0o600


def test_another_file_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE people (name)")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="no store of reports"):
        open_store(str(path))
    path.write_bytes(b"no database at all, but long enough to be looked at" * 20)
    with pytest.raises(StoreError, match="cannot be used"):
        open_store(str(path))


def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    with pytest.raises(StoreError, match="cannot be reached") as refusal:
        open_store("postgresql://me:secret-word@127.0.0.1:1/none")
    assert "secret-word" not in str(refusal.value)


def test_a_role_that_is_changed_later_changes_no_promise(server: Server) -> None:
    store = new_store(server.new())
    server.set("synchronous_commit", "off")
    try:
        store.write([submission(lines(1))])
        assert isinstance(store, PostgresStore)
        assert store._run("SHOW synchronous_commit").fetchone() == ("on",)
    finally:
        server.execute("ALTER SYSTEM RESET synchronous_commit", "SELECT pg_reload_conf()")
        store.close()


def test_another_question_with_the_same_fingerprint_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """64 bits can be met on purpose; what a device's noise hangs on has 256."""
    other = announced(Question(name="other", oracle=GRR(epsilon=1, categories=4)))
    store = new_store(str(tmp_path / "reports.db"))
    monkeypatch.setattr(Question, "fingerprint", WORK.fingerprint)
    with pytest.raises(StoreError, match="another question"):
        store.register(other)
    store.close()


def test_a_server_that_may_lose_reports_is_refused(server: Server) -> None:
    place = server.new()
    server.execute("ALTER DATABASE postgres SET synchronous_commit = off")
    try:
        with pytest.raises(StoreError, match="synchronous_commit off"):
            open_store(place)
    finally:
        server.execute("ALTER DATABASE postgres RESET synchronous_commit")


_WRITES = """
import sys
from tests.collector.parts import lines, submission
from sourdine.collector.settings import open_store
store = open_store(sys.argv[1])
while True:
    store.write([submission(lines(1)) for _ in range(20)])
    print(20, flush=True)
"""


@pytest.mark.slow
def test_killed_at_random_nothing_acknowledged_is_lost(place: str) -> None:
    new_store(place).close()
    acknowledged = possible = 0
    dice = np.random.default_rng(5)
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", _WRITES, place], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
        )
        assert process.stdout is not None
        process.stdout.readline()
        acknowledged += 20
        threading.Event().wait(dice.uniform(0, 0.3))
        os.kill(process.pid, signal.SIGKILL)
        acknowledged += 20 * len(process.stdout.read().splitlines())
        process.stdout.close()
        process.wait()
        possible += 20
        store = open_store(place)
        assert acknowledged <= recount(store, 1, WORK).reports <= acknowledged + possible
        store.close()


def test_two_questions_do_not_share_a_key_of_tokens(tmp_path: Path) -> None:
    """A token would be good for each of them: somebody with one code would report to both."""
    key = public_text(new_key().public_key())
    store = new_store(str(tmp_path / "reports.db"), announced(tokens=key))
    other = Question(name="other", oracle=WORK.oracle)
    with pytest.raises(StoreError, match="the same key of tokens"):
        store.register(announced(other, tokens=key))
    store.register(announced(tokens=key, version=2))
    store.register(announced(other, tokens=public_text(new_key().public_key())))
    assert len(store.questions()) == 2
    store.close()
