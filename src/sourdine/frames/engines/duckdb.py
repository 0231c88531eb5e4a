"""Where a table lives, and how it is asked: DuckDB, for files and for frames in memory."""

import atexit
import contextlib
import hashlib
import itertools
import os
import shutil
import stat
import sys
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.frames.engines.dialect import DUCKDB, Dialect
from sourdine.frames.engines.types import Family, family

if TYPE_CHECKING:
    import duckdb


# Connections to a database of our own: each question has one that no other question uses meanwhile.
#
# An engine that is asked on one connection by two threads gives the answer of the second question to
# whoever fetches first. So a question takes a connection that is idle, or a new one, and puts it back after
# its answer was fetched. One on which anything failed is closed and never used again.
#
# The database belongs to one process, one spilling folder and one state of the files. After a fork, or once
# somebody removed the folder or wrote the files again, it is opened again by the same steps, so a table may
# be kept for as long as its owner likes.

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


SideTables = Mapping[str, Mapping[str, NDArray[Any]]]
"""Small tables of ours that go along with a question, which knows them by these names."""
NOTHING: SideTables = {}
VIEW = "sourdine_source"
"""What a table is called where it is opened; floats may be NaN there."""
_numbers = itertools.count()
_foreign = threading.RLock()
_Fetched = TypeVar("_Fetched")


class Failure(Enum):
    """Why a question was not answered, where no value of any record can be the reason.

    Values decide how much memory and disk a question takes, and whether a decoder or a driver gives up, so
    these are not among them.
    """

    BUSY = "Another thread used the connection of the table"
    INTERRUPTED = "The question was interrupted"
    CLOSED = "The connection to the table was closed"


_FAILURES = {
    ("duckdb", "ResourceInUseException"): Failure.BUSY,
    ("duckdb", "InterruptException"): Failure.INTERRUPTED,
    ("duckdb", "ConnectionException"): Failure.CLOSED,
    ("py4j", "Py4JNetworkError"): Failure.CLOSED,
}


def failure_of(problem: BaseException) -> Failure | None:
    """Return the class of a failure that values cannot cause, and None for any other; by types alone."""
    kind = type(problem)
    return _FAILURES.get((kind.__module__.partition(".")[0].strip("_"), kind.__name__))


@dataclass(frozen=True, eq=False)
class AnswerTable:
    """The answer to a question that stays in the engine, which knows it by this name, or asks it again.

    When nobody looks at it any more it is dropped.
    """

    name: str


class TableEngine(Protocol):
    """What a source asks of an engine."""

    @property
    def dialect(self) -> Dialect:
        """How its SQL is written."""

    @property
    def name(self) -> str:
        """What the table is called in SQL."""

    @property
    def names(self) -> Sequence[str]:
        """What its columns are called, those that are called alike as well."""

    @property
    def types(self) -> Mapping[str, str]:
        """The type of each column, by the name that DuckDB has for it."""

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """What it raises; its words may tell about records."""

    def connect(self) -> None:
        """Make sure that a question can be asked, so that what prevents it is raised before a charge."""

    def digest(self) -> str:
        """Return what tells this table from another, by which it is and not by what it holds."""

    def ask(self, sql: str, side_tables: SideTables = NOTHING) -> list[tuple[Any, ...]]:
        """The rows of a question, as exact Python numbers."""

    def columns(self, sql: str, side_tables: SideTables = NOTHING) -> dict[str, NDArray[Any]]:
        """The answer to a question as arrays, one a column."""

    def keep(self, sql: str, side_tables: SideTables = NOTHING) -> AnswerTable:
        """The answer to a question, which stays where it is for others that name it."""


@dataclass(frozen=True)
class InDuckDB:
    """A relation of DuckDB, on connections of our own or on the one of its owner.

    Times of UTC that had a zone are `instants`. It may hold fewer columns than the table has; `names` are
    those of all. Those that are `wanted` may be asked about; None is for every one.
    """

    relation: "duckdb.DuckDBPyRelation" = field(repr=False)
    connections: Connections | None = field(default=None, repr=False)
    names: Sequence[str] = ()
    instants: frozenset[str] = frozenset()
    wanted: Sequence[str] | None = None
    process: int = field(default_factory=os.getpid, repr=False)

    def __post_init__(self) -> None:
        if not self.names:
            object.__setattr__(self, "names", tuple(self.relation.columns))

    @classmethod
    def of(cls, connections: Connections, instants: frozenset[str] = frozenset()) -> Self:
        """Return the table of a database of our own."""
        database = connections.database
        return cls(database.relation, connections, names=database.names, instants=instants)

    @cached_property
    def name(self) -> str:
        """The table in SQL, in which no float is NaN."""
        floats = [
            name
            for name, kind in self.types.items()
            if family(kind) is Family.FLOAT and (self.wanted is None or name in self.wanted)
        ]
        if not floats:
            return VIEW
        cells = (f"{DUCKDB.present(cell)} AS {cell}" for cell in map(DUCKDB.quoted, floats))
        return f"(SELECT * REPLACE ({', '.join(cells)}) FROM {VIEW})"

    @property
    def dialect(self) -> Dialect:
        """DuckDB's."""
        return DUCKDB

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """The errors of DuckDB."""
        import duckdb

        return (duckdb.Error,)

    @property
    def connection(self) -> "duckdb.DuckDBPyConnection | None":
        """The connection of our own that others are made from; None for a relation of somebody else's."""
        return None if self.connections is None else self.connections.database.connection

    @cached_property
    def types(self) -> Mapping[str, str]:
        """The type of each column that can be asked about."""
        kinds = dict(zip(self.relation.columns, map(str, self.relation.types), strict=True))
        return {
            name: kind.replace("TIMESTAMP", "INSTANT") if name in self.instants else kind
            for name, kind in kinds.items()
        }

    def connect(self) -> None:
        """Make sure that a question can be asked, so that what prevents it is raised before a charge."""
        if self.connections is not None:
            self.connections.connect()
        elif self.process != os.getpid():
            # its owner's connection has threads that a fork lacks, and would wait for them
            raise InvalidParameter(
                "A relation of DuckDB must be asked in the process that opened it, and this one was forked "
                "from that. Open the relation and the table here."
            )

    def digest(self) -> str:
        """Return what tells this table from another."""
        if self.connections is not None:
            return self.connections.digest()
        return hashlib.sha256(repr((self.process, id(self.relation))).encode()).hexdigest()

    def ask(self, sql: str, side_tables: SideTables = NOTHING) -> list[tuple[Any, ...]]:
        """The rows of a question."""
        return self._answer(sql, side_tables, lambda answer: answer.fetchall())

    def columns(self, sql: str, side_tables: SideTables = NOTHING) -> dict[str, NDArray[Any]]:
        """The answer to a question as arrays, masked where a cell is NULL."""
        return self._answer(sql, side_tables, lambda answer: answer.fetchnumpy())

    def keep(self, sql: str, side_tables: SideTables = NOTHING) -> AnswerTable:
        """The answer in a table of a database of our own, which may spill to the disk.

        It is in memory like a temporary table, but every connection sees it. On another's connection nothing
        is made: the question is asked again each time.
        """
        if self.connections is None:
            return AnswerTable(f"({sql})")
        table = AnswerTable(f"sourdine_answer_{next(_numbers)}")
        self._answer(f"CREATE TABLE {table.name} AS {sql}", side_tables, lambda answer: None)
        weakref.finalize(table, _drop, self.connections.database, table.name).atexit = False
        return table

    def _answer(self, sql: str, side_tables: SideTables, fetch: Callable[[Any], _Fetched]) -> _Fetched:
        """What is fetched of the answer, on a connection that no other question uses before that."""
        tables = {name: dict(columns) for name, columns in side_tables.items()}
        if self.connections is not None:
            with self.connections.question() as connection:
                for name, columns in tables.items():
                    connection.register(name, columns)
                answer = fetch(connection.execute(sql))
                for name in tables:
                    connection.unregister(name)
                return answer
        # On a connection that is not ours, what is lent is found by the names of variables where it is asked.
        # Which relations share a connection is not known, so no two of them are asked at once.
        with _foreign:
            here = {"relation": self.relation, "name": VIEW, "sql": sql}
            return fetch(eval("relation.query(name, sql)", tables, here))


def _drop(database: Database, name: str) -> None:
    if database.process != os.getpid():
        return
    with contextlib.suppress(Exception):  # a connection that is closed has dropped it
        connection = database.take()
        connection.execute(f"DROP TABLE IF EXISTS {name}")
        database.put(connection)


# Connections of DuckDB that reach nothing but declared files, and spill where nobody else looks.
#
# Sorting and grouping what does not fit into memory, an engine writes records to the disk. By itself it
# does so in a folder `.tmp` of wherever the program was started, readable for all. Here it is a folder of
# the process among the system's temporary ones (`TMPDIR` says which), for its owner alone, removed when the
# program ends. A program that is killed leaves it, and the next one removes it: the lock in it is free
# then.
#
# No question leads anywhere else: other files, addresses, databases, extensions and variables of the
# program are out of reach, and the settings cannot be changed back. A connection that somebody hands in is
# theirs, and none of its settings are touched.


if sys.platform != "win32":
    import fcntl

_ALONE = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}
_TRUSTING = "statistics_propagation,filter_pushdown"
"""Optimizers that answer by the least and the greatest value which a file states of a column.

Polars and PyArrow leave NaN out of both, though the engine sorts it above every number: a comparison would be
decided for NaN by what other records hold. NaN is NULL before anything is asked of it (`Dialect.present`);
without these two optimizers there is nothing to decide by either.
"""
_PREFIX, _LOCK = "sourdine-spill-", "lock"
_places = itertools.count()


def closed_connection(
    paths: Sequence[Path | str] = (), directories: Sequence[str] = ()
) -> "duckdb.DuckDBPyConnection":
    """A new connection that can read and write these files, those in these directories, and no others."""
    connection = spilling_connection()
    for name, listed in (("allowed_paths", paths), ("allowed_directories", directories)):
        texts = ", ".join(DUCKDB.literal(str(each)) for each in listed)
        connection.execute(f"SET {name} = [{texts}]::VARCHAR[]")
    # those of one connection alone would not hold on the cursors that questions are asked on
    connection.execute("SET GLOBAL enable_external_file_cache = false")  # what is read is not kept
    connection.execute(f"SET disabled_optimizers = '{_TRUSTING}'")
    connection.execute("SET GLOBAL pandas_analyze_sample = 0")  # else types are guessed from what is held
    connection.execute(
        "SET GLOBAL python_enable_replacements = false"
    )  # no name is a variable of the program
    connection.execute("SET GLOBAL enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def spilling_connection() -> "duckdb.DuckDBPyConnection":
    """A new connection that spills in private and installs nothing, for relations that people are given."""
    import duckdb

    place = spills_in(os.getpid()) / str(next(_places))
    connection = duckdb.connect(config={**_ALONE, "temp_directory": str(place)})
    # where Python is asked line by line it is on; a notebook that cannot draw it refuses, and has it off
    with contextlib.suppress(duckdb.InvalidInputException):
        connection.execute("SET enable_progress_bar = false")
    weakref.finalize(connection, _forget, place).atexit = False
    return connection


def spills_in(process: int) -> Path:
    """Return the folder of a process, made again if somebody tidied up."""
    folder = _spilling(process)
    if not folder.is_dir():
        _spilling.cache_clear()
        folder = _spilling(process)
    return folder


@cache
def _spilling(process: int) -> Path:
    """The folder of a process; a fork has its own. What an engine makes in it nobody else can reach."""
    _tidy(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))  # of mode 700
    atexit.register(_remove, process, folder)
    os.close(os.open(folder / _LOCK, os.O_CREAT | os.O_WRONLY, 0o600))
    _locked(folder)  # until the process ends, however it does
    return folder


def _tidy(place: Path) -> None:
    """Remove what our own processes left that were killed."""
    if sys.platform == "win32":
        return
    for folder in place.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
                handle = _locked(folder)
                if handle is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                    os.close(handle)


def _locked(folder: Path) -> int | None:
    """The lock of a folder, held as long as it is open; None if somebody holds it, or there is none yet."""
    if sys.platform == "win32":
        return None
    handle = None
    try:
        handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        if handle is not None:
            os.close(handle)
        return None
    return handle


def _forget(place: Path) -> None:
    """Remove what a connection had, if nothing is in it: a relation may live on."""
    with contextlib.suppress(OSError):
        place.rmdir()


def _remove(process: int, folder: Path) -> None:
    """Remove the folder at the end of the process that made it, not of its forks."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
