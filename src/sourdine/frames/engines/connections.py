"""Connections to a database of our own: each question has one that no other question uses meanwhile.

An engine that is asked on one connection by two threads gives the answer of the second question to whoever
fetches first. So a question takes a connection that is idle, or a new one, and puts it back after its answer
was fetched. One on which anything failed is closed and never used again.

The database belongs to one process, one spilling folder and one state of the files. After a fork, or once
somebody removed the folder or wrote the files again, it is opened again by the same steps, so a table may be
kept for as long as its owner likes.
"""

import contextlib
import hashlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.frames.engines.closed import spills_in

if TYPE_CHECKING:
    import duckdb

_forked: list["Database"] = []
"""Databases of the process that this one was forked from: to close them would wait for threads it lacks."""


@dataclass(eq=False)
class Database:
    """A database of our own that can read one table, in one process.

    `relation` has the columns that may be asked about, and `names` are those of the whole table. `lend` gives
    a new connection what only it can see, such as a frame. `prepare` looks at what must be seen to read the
    table, such as the length of a file; it waits for the first question, after the charge.
    """

    connection: "duckdb.DuckDBPyConnection"
    relation: "duckdb.DuckDBPyRelation"
    names: Sequence[str]
    lend: "Callable[[duckdb.DuckDBPyConnection], object] | None" = None
    prepare: Callable[[], None] | None = None
    process: int = field(default_factory=os.getpid, init=False)
    _spills: Path = field(default_factory=lambda: spills_in(os.getpid()), init=False)
    _idle: deque["duckdb.DuckDBPyConnection"] = field(default_factory=deque, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _failed: bool = field(default=False, init=False)

    @property
    def usable(self) -> bool:
        """Whether this process can ask it, and it can spill."""
        return not self._failed and self.process == os.getpid() and self._spills.is_dir()

    def take(self) -> "duckdb.DuckDBPyConnection":
        """Return a connection that no other question uses."""
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        connection = self.connection.cursor()
        if self.lend is not None:
            self.lend(connection)
        return connection

    def put(self, connection: "duckdb.DuckDBPyConnection") -> None:
        """Take back a connection whose question is answered."""
        self._idle.append(connection)

    def ready(self) -> None:
        """Look, once, at what must be seen to read the table."""
        with self._lock:
            if self.prepare is not None:
                self._failed = True
                self.prepare()
                self.prepare, self._failed = None, False


class Connections:
    """The connections of one table; `files` are those that it is read from."""

    def __init__(self, open_database: Callable[[], Database], files: Sequence[Path] = ()) -> None:
        self._open, self._files = open_database, tuple(files)
        self._locks: dict[int, threading.Lock] = {}  # by process: a fork may find one that nobody releases
        self._state = self._look()
        self._database = open_database()

    @property
    def database(self) -> Database:
        """The database of this process."""
        if self._database.process != os.getpid():
            self.connect()
        return self._database

    def connect(self) -> None:
        """Make sure that there is an idle connection, so that what prevents one is raised now.

        It is called before a charge. Between the questions of one release the files are not looked at again:
        what is written behind a text file meanwhile is not read, and answers that were kept stay.
        """
        with self._locks.setdefault(os.getpid(), threading.Lock()):
            known, state = self._database, self._look()
            if state != self._state or not known.usable:
                if known.process != os.getpid():
                    _forked.append(known)
                self._database, self._state = self._again(known), state
            database = self._database
        try:
            database.put(database.take())
        except Exception:  # an engine has many, and its text may quote a record
            raise SourdineError(
                "The table's connection must be open, and cannot be used. Open the table again."
            ) from None

    @contextlib.contextmanager
    def question(self) -> "Iterator[duckdb.DuckDBPyConnection]":
        """Lend a connection to one question, whose answer is fetched before it goes back."""
        database = self.database
        database.ready()
        connection = database.take()
        try:
            yield connection
        except BaseException:
            with contextlib.suppress(Exception):
                connection.close()
            raise
        database.put(connection)

    def digest(self) -> str:
        """Return what tells this table from another, and its files from the same files written again."""
        state = self._look() or (id(self),)
        return hashlib.sha256(repr(state).encode()).hexdigest()

    def _again(self, known: Database) -> Database:
        """Open the database again; what was checked of the table's columns must still be so."""
        new = self._open()
        alike = new.relation.columns == known.relation.columns and new.relation.types == known.relation.types
        if not alike or tuple(new.names) != tuple(known.names):
            raise InvalidParameter(
                "The table's files must have the columns and types that they had when it was opened. Open "
                "the table again."
            )
        return new

    def _look(self) -> tuple[tuple[int, ...], ...]:
        """Return which files there are, how long they are and when they were written."""
        try:
            states = [path.stat() for path in self._files]
        except OSError:
            raise InvalidParameter(
                "The table's files must be where they were when it was opened. Open the table again."
            ) from None
        return tuple((each.st_dev, each.st_ino, each.st_size, each.st_mtime_ns) for each in states)
