"""A ledger's file as SQLite keeps it: its form, how it is opened, and how it is made durable.

Lines are committed under a rollback journal that is deleted at the end (`journal_mode = DELETE`), and every
step waits for the disk, the deletion too (`synchronous = EXTRA`). So between charges there is one file with
nothing beside it, and each line that was ever acknowledged is inside. docs/guarantees/ledger.md says why this
and not a write-ahead log.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from time import monotonic, sleep

from sourdine.accounting.ledger.chain import START, LedgerLine, Mark, fingerprint
from sourdine.accounting.ledger.file import guard
from sourdine.accounting.ledger.file.names import BESIDE, resolve
from sourdine.accounting.ledger.gate import GATE
from sourdine.accounting.ledger.problems import explain
from sourdine.core import files as disk
from sourdine.core.errors import LedgerError

APPLICATION = 0x536F7264  # "Sord", in the header of the file
BACKUP = 0x536F7263  # "Sorc": software that does not know backups will not take one for a ledger
MARKED, VERSION = 3, 4
"""The first form that has a mark, and the newest that is understood.

Forms 1 and 2 (with deltas) had a write-ahead log and no mark. Form 3 was charged under SQLite's own locks,
which a reader can drop. Older forms are read as they are, and brought to form 4 by the first charge. Software
that knows no mark, or no guard, must not charge a file of form 4.
"""
_OLDEST = (3, 37, 0)  # the first SQLite that knows strict tables
_PAUSE = 0.001  # seconds between two looks whether others have left a new file
_PATIENCE = 60.0  # seconds to wait for those who look at a new file
COLUMNS = "number, content, total, fingerprint"
_GUARDED = "form INTEGER GENERATED ALWAYS AS (4) VIRTUAL"
"""A column that takes no room. A program of an earlier version that has had the file open since it was of
form 3 does not look at the form again; its statements count the columns of a line, and so they fail."""
_TABLES = f"""
CREATE TABLE terms (content TEXT NOT NULL, fingerprint TEXT NOT NULL) STRICT;
CREATE TABLE lines (
    number INTEGER PRIMARY KEY,
    content TEXT NOT NULL,
    total TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    {_GUARDED}
) STRICT;
CREATE TRIGGER terms_stay BEFORE UPDATE ON terms BEGIN SELECT RAISE(ABORT, 'the terms never change'); END;
CREATE TRIGGER terms_last BEFORE DELETE ON terms BEGIN SELECT RAISE(ABORT, 'the terms never change'); END;
CREATE TRIGGER lines_stay BEFORE UPDATE ON lines BEGIN SELECT RAISE(ABORT, 'lines never change'); END;
CREATE TRIGGER lines_last BEFORE DELETE ON lines BEGIN SELECT RAISE(ABORT, 'lines never go'); END;
"""
_MARK = """
CREATE TABLE mark (number INTEGER NOT NULL, fingerprint TEXT NOT NULL) STRICT;
CREATE TRIGGER mark_first BEFORE INSERT ON mark WHEN EXISTS (SELECT 1 FROM mark)
    BEGIN SELECT RAISE(ABORT, 'there is one mark'); END;
CREATE TRIGGER mark_stays BEFORE UPDATE ON mark WHEN NEW.number <> OLD.number + 1
    BEGIN SELECT RAISE(ABORT, 'the mark goes on line by line'); END;
CREATE TRIGGER mark_last BEFORE DELETE ON mark BEGIN SELECT RAISE(ABORT, 'the mark never goes'); END;
CREATE TRIGGER lines_marked AFTER INSERT ON lines
    BEGIN UPDATE mark SET number = NEW.number, fingerprint = NEW.fingerprint; END;
"""
_NO_MORE = """
CREATE TRIGGER lines_end BEFORE INSERT ON lines BEGIN SELECT RAISE(ABORT, 'a backup takes no lines'); END;
"""

_as_text = partial(str, encoding="utf-8", errors="replace")  # what is damaged is read, and then does not fit


def connect(
    path: Path, *, look: bool = False, guarded: bool = False, log: bool = False
) -> sqlite3.Connection:
    """A connection that does not wait for others: whoever holds it must let a fork pass meanwhile.

    With `look`, as if nobody could change the file; with `guarded`, as if nobody else had it, which a guard
    must see to whenever the connection is used. With a `log` too, its index is in memory: beside the file it
    needs locks.
    """
    if sqlite3.sqlite_version_info < _OLDEST:
        raise LedgerError(
            f"A ledger needs SQLite {'.'.join(map(str, _OLDEST))} or later, and this Python has "
            f"{sqlite3.sqlite_version}. Nothing was spent. Use a newer Python, or one that is linked to a "
            "newer SQLite."
        )
    query = "?mode=ro&immutable=1" if look else "?mode=rw"
    if guarded and guard.VFS:
        query += f"&vfs={guard.VFS}"
    connection = sqlite3.connect(
        f"{path.as_uri()}{query}", uri=True, timeout=0, isolation_level=None, check_same_thread=False
    )
    connection.text_factory = _as_text
    try:
        if log and guard.VFS:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")  # on macOS the disk is asked too, not only the system
    except BaseException:
        connection.close()
        raise
    return connection


def forget_pages(connection: sqlite3.Connection) -> None:
    """Read everything from the file again: pages that were read before may be of another file.

    SQLite takes them for current if the file's counter of changes is what it was. After an older copy was put
    in place, others come by the same counts again with other lines, which would be overwritten.
    """
    connection.execute("PRAGMA shrink_memory")


def header(connection: sqlite3.Connection) -> tuple[int, int]:
    """What a file is (a ledger, a backup, anything else) and its form."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    return int(application), int(connection.execute("PRAGMA user_version").fetchone()[0])


def take_log_away(path: Path) -> None:
    """Put the lines of a write-ahead log into the file; the guard must have it alone."""
    with closing(connect(path, guarded=True, log=True)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")


def bring_up(connection: sqlite3.Connection, version: int, newest: Mark) -> None:
    """Make the newest form of an older one, in a transaction that is open; its log is gone already."""
    if version < MARKED:
        for statement in _statements(_MARK):
            connection.execute(statement)
        connection.execute("INSERT INTO mark VALUES (?, ?)", newest)
    connection.execute(f"ALTER TABLE lines ADD COLUMN {_GUARDED}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def retire(connection: sqlite3.Connection, move: str) -> None:
    """Make a ledger a backup, in a transaction that is open."""
    connection.execute(f"PRAGMA application_id = {BACKUP}")
    connection.execute(_NO_MORE)
    _note_move(connection, move)


def activate(connection: sqlite3.Connection) -> None:
    """Make a backup the ledger, in a transaction that is open."""
    connection.execute("DROP TRIGGER lines_end")
    connection.execute("DELETE FROM moves")
    connection.execute(f"PRAGMA application_id = {APPLICATION}")


def move_of(connection: sqlite3.Connection) -> str:
    """By which move a file is a backup; empty if by none."""
    named = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'moves'"
    if not connection.execute(named).fetchall():
        return ""
    row = connection.execute("SELECT content FROM moves ORDER BY rowid DESC LIMIT 1").fetchone()
    return str(row[0]) if row else ""


def _note_move(connection: sqlite3.Connection, move: str) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS moves (content TEXT NOT NULL) STRICT")
    connection.execute("INSERT INTO moves VALUES (?)", (move,))


def create(
    path: Path, terms: str, lines: Iterable[LedgerLine] = (), *, backup: bool = False, move: str = ""
) -> None:
    """A new file with its terms; an existing one is never touched, and a failure leaves none.

    It is whole, or it is not there, and so a backup is marked as such from the beginning: a copy that is
    marked afterwards would be a second budget if the process died in between.
    """
    with _new_file(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("BEGIN")
        connection.execute(f"PRAGMA application_id = {BACKUP if backup else APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        for statement in _statements(_TABLES + _MARK):
            connection.execute(statement)
        connection.execute("INSERT INTO terms VALUES (?, ?)", (terms, fingerprint("", terms)))
        connection.execute("INSERT INTO mark VALUES (?, ?)", START)
        connection.executemany(f"INSERT INTO lines ({COLUMNS}) VALUES (?, ?, ?, ?)", lines)
        if backup:
            connection.execute(_NO_MORE)
        if move:
            _note_move(connection, move)
        connection.execute("COMMIT")


@contextmanager
def _new_file(path: Path) -> Iterator[sqlite3.Connection]:
    place = resolve(path)
    try:
        if left := [name for name in BESIDE if os.path.lexists(f"{place}{name}")]:
            raise LedgerError(
                f"Beside {path} lies {place.name}{left[0]}, which belongs to an earlier ledger of that name. "
                "Choose another name, or put the earlier ledger back and open it once."
            )
        disk.write_new(place, b"")
    except FileExistsError:
        raise LedgerError(
            f"There is a file at {path} already. A ledger is never overwritten, since its past spends "
            "still count. Open it, or choose another name."
        ) from None
    except OSError as problem:
        raise explain("write", path, problem) from problem
    try:
        with GATE.inside(), _alone_with(place), closing(connect(place, guarded=True)) as connection:
            yield connection
    except BaseException as problem:
        place.unlink(missing_ok=True)
        if isinstance(problem, sqlite3.Error):
            raise explain("write", path, problem) from problem
        raise


@contextmanager
def _alone_with(path: Path) -> Iterator[None]:
    """Keep others out of a new file, once those who look at it have left."""
    held, until = guard.Guard(path), monotonic() + _PATIENCE
    try:
        while True:
            try:
                held.take(_PATIENCE)
                break
            except guard.Busy:
                if monotonic() > until:
                    raise
                sleep(_PAUSE)
        yield
    finally:
        held.close()


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, since one that is executed whole would end the transaction first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
