"""A ledger's file is charged while others in the same process open, read and close it."""

import errno
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from time import monotonic, sleep

import pytest

from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.file import database, guard
from sourdine.core.errors import BudgetExceeded, LedgerError
from tests.accounting.ledger.files import forget
from tests.campaigns.ledger.crash import new_ledger, one_spend

pytestmark = pytest.mark.skipif(not guard.LOCKS, reason="locks belong to handles here")
SPEND = one_spend()
_OTHER = """
    import sqlite3
    connection = sqlite3.connect({path!r}, timeout=0, isolation_level=None)
    try:
        print(connection.execute({statement!r}).fetchall())
    except sqlite3.OperationalError as problem:
        print(problem)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.ledger"


def read(path: Path) -> None:
    path.read_bytes()


def copy(path: Path) -> None:
    shutil.copy(path, path.with_suffix(".copy"))


def digest(path: Path) -> None:
    with path.open("rb") as file:
        hashlib.file_digest(file, "sha256")


def look(path: Path) -> None:
    """As other software does that opens it as a database."""
    told = pytest.raises(sqlite3.OperationalError, match="locked")
    with closing(sqlite3.connect(path, timeout=0)) as source, told:
        source.execute("SELECT * FROM lines")


def elsewhere(path: Path, statement: str) -> str:
    """What other software in another process is told."""
    program = textwrap.dedent(_OTHER).format(path=str(path), statement=statement)
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("by_description", [True, False])
@pytest.mark.parametrize("act", [read, copy, digest, look])
def test_a_reader_in_the_process_lets_nobody_into_a_charge(
    path: Path, act: Callable[[Path], None], by_description: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "_BY_DESCRIPTION", by_description)
    if act is look and not by_description:
        pytest.skip("here such locks know nothing of those of SQLite")
    ledger = new_ledger(path, Fraction(1))
    told = list[object]()

    def build(last: object) -> tuple[str, str]:
        act(path)
        try:
            guard.Guard(path).take(0)
        except guard.Busy as problem:
            told.append(problem.sqlite_errorcode)
        if by_description:
            told.append(elsewhere(path, "BEGIN EXCLUSIVE"))
        return "{}", "1/100"

    ledger._store.append(build)
    assert told == [sqlite3.SQLITE_BUSY, "database is locked"][: 1 + by_description]
    assert [item.name for item in path.parent.iterdir() if "journal" in item.name] == []


def test_a_reader_cannot_have_the_journal_of_a_charge_taken_for_one_that_was_cut_off(path: Path) -> None:
    """SQLite calls a journal hot when nobody has the file reserved, and undoes what it belongs to."""
    ledger = new_ledger(path, Fraction(1))
    store, told = ledger._store, list[str]()
    commit = store._commit  # type: ignore[union-attr]

    def late(connection: sqlite3.Connection, line: object) -> None:
        connection.execute("PRAGMA cache_spill = 1")
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("CREATE TEMP TABLE IF NOT EXISTS a (b)")
        assert Path(f"{path}-journal").exists()
        read(path)
        told.append(elsewhere(path, "SELECT count(*) FROM lines"))
        commit(connection, line)  # type: ignore[arg-type]

    store._commit = late  # type: ignore[union-attr,method-assign]
    assert ledger.charge(SPEND, purpose="p").number == 1
    assert told == ["database is locked"]
    assert len(ledger.history()) == 1


def test_a_child_does_not_let_go_of_the_lock_of_its_parent(path: Path) -> None:
    new_ledger(path, Fraction(1)).close()
    held = guard.Guard(path)
    held.take(0)
    child = os.fork()
    if child == 0:
        held.close()
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(guard.Busy):
        guard.Guard(path).take(0)
    held.give_back()
    guard.Guard(path).take(0)


def test_readers_share_the_file_and_keep_a_writer_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_ledger(path, Fraction(1)).close()
    monkeypatch.setattr(os, "open", lambda path, flags: _open(path, flags & ~os.O_RDWR))
    readers = [guard.Guard(path), guard.Guard(path)]
    monkeypatch.undo()
    for reader in readers:
        reader.is_writable = False
        reader.take(0)
    writer = guard.Guard(path)
    with pytest.raises(guard.Busy):
        writer.take(0.01)
    readers.pop().close()
    with pytest.raises(guard.Busy):
        writer.take(0.01)
    thread = threading.Timer(0.02, readers.pop().close)
    thread.start()
    writer.take(10)  # as soon as the last has left
    thread.join()
    with pytest.raises(guard.Busy):
        guard.Guard(path).take(0)


_open = os.open


def test_a_link_to_the_folder_leads_to_the_same_lock(path: Path, tmp_path: Path) -> None:
    new_ledger(path, Fraction(1)).close()
    os.link(path, tmp_path / "second")
    held = guard.Guard(path)
    held.take(0)
    with pytest.raises(guard.Busy):
        guard.Guard(tmp_path / "second").take(0)


def test_an_interrupt_between_a_lock_and_its_note_keeps_nobody_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by the stop button of a notebook, which lives on with the ledger open."""
    ledger = new_ledger(path, Fraction(1))
    ledger.charge(SPEND, purpose="p")
    change = guard._set

    def interrupted(handle: int, kind: int, start: int, end: int) -> None:
        change(handle, kind, start, end)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(guard, "_set", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ledger.charge(SPEND, purpose="p")
    assert elsewhere(path, "BEGIN EXCLUSIVE") == "[]"
    assert ledger.charge(SPEND, purpose="p").number == 2


def test_a_file_that_is_put_in_place_while_it_is_opened_is_locked_too(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = new_ledger(path, Fraction(1))
    connect = database.connect

    def late(*words: object, **more: object) -> sqlite3.Connection:
        monkeypatch.undo()
        copy(path)
        path.with_suffix(".copy").rename(path)
        return connect(*words, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(database, "connect", late)

    def build(last: object) -> tuple[str, str]:
        with pytest.raises(guard.Busy):
            guard.Guard(path).take(0)
        return "{}", "1/100"

    assert ledger._store.append(build).number == 1


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are listed as Linux has them")
def test_descriptors_that_other_code_has_closed_are_left_to_their_new_files(path: Path) -> None:
    """As by a program that closes all it has open to become a daemon, and opens files of its own."""
    ledger = new_ledger(path, Fraction(1))
    ledger.charge(SPEND, purpose="p")
    closed = [int(link.name) for link in Path("/proc/self/fd").iterdir() if link.resolve() == path]
    assert len(closed) == 2
    for handle in closed:
        os.close(handle)
    others = [(path.parent / f"other-{number}").open("wb") for number in range(2)]
    assert sorted(each.fileno() for each in others) == sorted(closed)
    assert ledger.charge(SPEND, purpose="p").number == 2
    ledger.close()
    for each in others:
        each.write(b"whole")
        each.close()
        assert Path(each.name).read_bytes() == b"whole"
    assert len(Ledger.open(path).history()) == 2


def test_a_file_system_without_locks_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = new_ledger(path, Fraction(1))

    def refuse(handle: int, kind: int, start: int, end: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(guard, "_set", refuse)
    with pytest.raises(LedgerError, match=r"No locks available.*Nothing was spent"):
        ledger.charge(SPEND, purpose="p")
    monkeypatch.undo()
    assert ledger.charge(SPEND, purpose="p").number == 1


# Older forms.


def in_form_3(path: Path) -> None:
    """The file as version 0.2 wrote it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("ALTER TABLE lines DROP COLUMN form")
        connection.execute("PRAGMA user_version = 3")
    forget()


def test_a_ledger_of_form_3_is_read_as_it_is_and_brought_up_by_the_first_charge(path: Path) -> None:
    with new_ledger(path, Fraction(1)) as ledger:
        ledger.charge(SPEND, purpose="p")
        mark = ledger.history()[0].fingerprint
    in_form_3(path)
    before = path.read_bytes()
    with Ledger.open(path) as ledger:
        assert (ledger.status().blocks, ledger.history()[0].fingerprint) == (1, mark)
        assert path.read_bytes() == before
        assert ledger.charge(SPEND, purpose="p").number == 2
        assert [entry.number for entry in ledger.history()] == [1, 2]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (database.VERSION,)


def test_a_program_of_an_earlier_version_that_has_the_file_open_can_write_no_more(path: Path) -> None:
    """It looks at the form once; what it asks of every turn is the newest lines and the mark."""
    with new_ledger(path, Fraction(1)) as ledger:
        ledger.charge(SPEND, purpose="p")
    in_form_3(path)
    newest = "SELECT * FROM lines ORDER BY number DESC LIMIT 2"
    asked = f"SELECT * FROM ({newest}) UNION ALL SELECT number, '', '', fingerprint FROM mark"
    with closing(sqlite3.connect(path, isolation_level=None)) as earlier:
        assert len(earlier.execute(asked).fetchall()) == 2
        with Ledger.open(path) as ledger:
            ledger.charge(SPEND, purpose="p")
        with pytest.raises(sqlite3.OperationalError, match="same number of result columns"):
            earlier.execute(asked)


def test_a_form_that_comes_later_is_refused(path: Path) -> None:
    new_ledger(path, Fraction(1)).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA user_version = {database.VERSION + 1}")
    with pytest.raises(LedgerError, match="made by a newer Sourdine"):
        Ledger.open(path)


# Everything at once.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pause", "seconds", "limit"), [(0.01, 30, 100), (0.02, 30, 10**6), (0.001, 20, 10**6)]
)
def test_processes_that_charge_and_copy_at_once_lose_nothing(
    path: Path, pause: float, seconds: float, limit: int
) -> None:
    new_ledger(path, Fraction(limit, 1000)).close()
    children = [_fork_writer(path, number, pause, seconds) for number in range(4)]
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    told = [line.split() for note in path.parent.glob("note-*") for line in note.read_text().splitlines()]
    with Ledger.open(path) as ledger:
        entries = ledger.history()
        assert ledger.status().spent <= Fraction(limit, 1000)
    assert sorted((int(number), mark) for number, mark in told) == [
        (entry.number, entry.fingerprint) for entry in entries
    ]


def _fork_writer(path: Path, number: int, pause: float, seconds: float) -> int:
    child = os.fork()
    if child:
        return child
    code, until = 1, monotonic() + seconds
    try:

        def beside() -> None:
            while True:
                (read, copy, digest)[number % 3](path)
                sleep(pause)

        threading.Thread(target=beside, daemon=True).start()
        with Ledger.open(path) as ledger, (path.parent / f"note-{number}").open("w") as note:
            while monotonic() < until:
                try:
                    receipt = ledger.charge(SPEND, purpose="p")
                except BudgetExceeded:
                    break
                note.write(f"{receipt.number} {receipt.fingerprint}\n")
        code = 0
    finally:
        os._exit(code)
