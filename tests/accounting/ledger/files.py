"""Ledgers as files, changed or made behind the back of Sourdine."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from benchmarks.servers import Server
from sourdine.accounting.ledger import store
from sourdine.accounting.ledger.address import Address
from sourdine.accounting.ledger.chain import fingerprint
from sourdine.accounting.ledger.file.database import APPLICATION

_OLD_TABLES = """
CREATE TABLE terms (content TEXT NOT NULL, fingerprint TEXT NOT NULL) STRICT;
CREATE TABLE lines (
    number INTEGER PRIMARY KEY,
    content TEXT NOT NULL,
    total TEXT NOT NULL,
    fingerprint TEXT NOT NULL
) STRICT;
CREATE TRIGGER lines_stay BEFORE UPDATE ON lines BEGIN SELECT RAISE(ABORT, 'lines never change'); END;
"""


def accept_any_time(server: Server, address: str) -> None:
    """Have a ledger's database take lines of any time, for tests whose clocks are their own."""
    name = f"{Address.parse(address).schema}.is_punctual(at timestamptz)"
    server.execute(f"CREATE OR REPLACE FUNCTION {name} RETURNS boolean LANGUAGE sql AS 'SELECT true'")


def forget() -> None:
    """Forget what this process has seen of ledgers, as another process would not know it."""
    store._MARKS.clear()
    store._VERIFIED.clear()


@contextmanager
def behind(path: Path) -> Iterator[sqlite3.Connection]:
    """The file without its triggers, for somebody who can undo them; they are not put back."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in names:
            if name != "lines_marked":
                connection.execute(f"DROP TRIGGER {name}")
        yield connection
    forget()


def rewrite(path: Path, number: int, content: str | None = None, total: str | None = None) -> None:
    """Change a line, and give it a fingerprint that fits; the mark too, if it is the last."""
    with behind(path) as connection:
        held = {row[0]: row[1:] for row in connection.execute("SELECT * FROM lines")}
        content, total = content or held[number][0], total or held[number][1]
        before = held[number - 1][2] if number > 1 else ""
        mark = fingerprint(before, f"{content}\n{total}")
        connection.execute(
            "UPDATE lines SET content = ?, total = ?, fingerprint = ? WHERE number = ?",
            (content, total, mark, number),
        )
        connection.execute("UPDATE mark SET fingerprint = ? WHERE number = ?", (mark, number))


def in_old_form(path: Path, old: Path, version: int = 1) -> sqlite3.Connection:
    """The same ledger as Sourdine 0.1 kept it: no mark, and its lines in a write-ahead log.

    The connection must stay open: the log goes into the file when it is closed.
    """
    connection = sqlite3.connect(old, isolation_level=None)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.executescript(_OLD_TABLES)
    with closing(sqlite3.connect(path)) as newer:
        terms = newer.execute("SELECT * FROM terms").fetchall()
        lines = newer.execute("SELECT number, content, total, fingerprint FROM lines").fetchall()
    connection.executemany("INSERT INTO terms VALUES (?, ?)", terms)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executemany("INSERT INTO lines VALUES (?, ?, ?, ?)", lines)
    return connection
