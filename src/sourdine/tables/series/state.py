"""What is kept of a series beside its ledger: rows that were published, and what must stay private.

One SQLite file for its owner alone holds the plan, the rows of each closed period, the exact sums of closed
periods, and for each unit a keyed digest with the periods it counted in. A period is committed in one durable
transaction before anybody sees its rows. A witness beside it tells a copy that was restored.
"""

import hmac
import json
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.ledger.gate import GATE
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter, LedgerError, SourdineError

# Closed periods of a series: what one holds, how it is kept, and several of them side by side.


@dataclass(frozen=True, eq=False)
class ClosedPeriod:
    """One line of a period: the keys it was measured by, its exact sums, and its noisy rows (by key)."""

    number: int
    line: int
    keys: tuple[tuple[Any, ...], ...]
    sums: NDArray[np.int64]
    rows: NDArray[Any]


def to_bytes(array: NDArray[Any]) -> bytes:
    """Numbers by key, as they are kept."""
    kind = b"f" if array.dtype.kind == "f" else b"i"
    plain = np.ascontiguousarray(array, np.float64 if kind == b"f" else np.int64)
    return kind + len(array).to_bytes(4, "little") + plain.tobytes()


def from_bytes(content: bytes) -> NDArray[Any]:
    """The same numbers again."""
    kind = np.float64 if content[:1] == b"f" else np.int64
    length = int.from_bytes(content[1:5], "little")
    flat = np.frombuffer(content[5:], kind)
    return flat.reshape(length, -1) if length else flat.reshape(0, 0)


def aligned(
    closed: list[ClosedPeriod],
    keys: tuple[tuple[Any, ...], ...],
    part: Callable[[ClosedPeriod], tuple[NDArray[Any], int]],
) -> NDArray[Any]:
    """What closed periods hold, side by side along the last axis, by the newest keys; 0 where none was.

    `part` tells what a period holds, and how many numbers that is for each key.
    """
    place = {key: i for i, key in enumerate(keys)}
    columns = []
    for period in closed:
        block, width = part(period)
        if period.keys == keys:
            columns.append(block.reshape(len(keys), width))
            continue
        spread = np.zeros((len(keys), width), block.dtype)
        if period.keys:
            spread[[place[key] for key in period.keys]] = block
        columns.append(spread)
    return np.concatenate(columns, axis=1) if columns else np.zeros((len(keys), 0), np.int64)


def key_rows(keys: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The keys of each group, as plain values."""
    return [tuple(map(_plain, key)) for key in keys]


def _plain(key: object) -> object:
    return (
        key.item() if isinstance(key, np.generic) else key if isinstance(key, str | int | bool) else str(key)
    )


APPLICATION = 0x536F7273  # "Sors", in the header of the file
_FORM = 1
_WAIT = 600.0  # seconds for another publisher to finish
_TABLES = """
CREATE TABLE notes (name TEXT PRIMARY KEY, content TEXT NOT NULL) STRICT;
CREATE TABLE key_lists (number INTEGER PRIMARY KEY, line INTEGER NOT NULL, keys TEXT NOT NULL) STRICT;
CREATE TABLE periods (
    number INTEGER NOT NULL, line INTEGER NOT NULL, key_list INTEGER NOT NULL,
    sums BLOB NOT NULL, rows BLOB NOT NULL, PRIMARY KEY (number, line)
) STRICT;
CREATE TABLE participations (
    unit BLOB NOT NULL, period INTEGER NOT NULL, records INTEGER NOT NULL, PRIMARY KEY (unit, period)
) STRICT, WITHOUT ROWID;
CREATE TABLE candidates (
    choice INTEGER NOT NULL, period INTEGER NOT NULL, key TEXT NOT NULL, units INTEGER NOT NULL,
    PRIMARY KEY (choice, period, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE chosen (
    choice INTEGER NOT NULL, key TEXT NOT NULL, period INTEGER NOT NULL, PRIMARY KEY (choice, key)
) STRICT;
CREATE TRIGGER chosen_stay BEFORE UPDATE ON chosen BEGIN SELECT RAISE(ABORT, 'keys never change'); END;
CREATE TRIGGER chosen_last BEFORE DELETE ON chosen BEGIN SELECT RAISE(ABORT, 'keys never go'); END;
CREATE TRIGGER periods_stay BEFORE UPDATE ON periods BEGIN SELECT RAISE(ABORT, 'periods never change'); END;
CREATE TRIGGER periods_last BEFORE DELETE ON periods BEGIN SELECT RAISE(ABORT, 'periods never go'); END;
"""


class SeriesState:
    """The file of a series, open for one process at a time to write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise InvalidParameter(
                f"There is no series at {path}. Start one with 'sourdine series start', or check the path: "
                "a series that is started again pays again."
            )
        self._open: sqlite3.Connection | None = None
        GATE.holders.add(self)  # whoever forks closes it first, and both sides open it anew
        self._witness = Witness(path)
        try:
            form = self._connection.execute("PRAGMA application_id").fetchone()[0]
        except sqlite3.DatabaseError:
            form = None
        if form != APPLICATION:
            self.close()
            raise InvalidParameter(f"{path} is not the state of a series, or is damaged. Check the path.")
        self._lists: dict[int, tuple[tuple[Any, ...], ...]] = {}

    @classmethod
    def create(cls, path: Path, notes: Mapping[str, str]) -> "SeriesState":
        """A new state, whole or not there; an existing one is never touched."""
        try:
            with disk.whole_file(path, over=False) as place:
                disk.write_new(place, b"")
                connection = _connect(place)
                try:
                    connection.execute("BEGIN")
                    connection.execute(f"PRAGMA application_id = {APPLICATION}")
                    connection.execute(f"PRAGMA user_version = {_FORM}")
                    for statement in _statements():
                        connection.execute(statement)
                    private = {"secret": secrets.token_hex(32), "token": secrets.token_hex(16)}
                    connection.executemany(
                        "INSERT INTO notes VALUES (?, ?)", [*notes.items(), *private.items()]
                    )
                    connection.execute("COMMIT")
                finally:
                    connection.close()
        except FileExistsError:
            raise InvalidParameter(
                f"There is a file at {path} already. A series is never overwritten. Go on with it, or choose "
                "another name."
            ) from None
        state = cls(path)
        state.witness()
        return state

    @property
    def _connection(self) -> sqlite3.Connection:
        if self._open is None:
            self._open = _connect(self.path)
        return self._open

    def let_go(self) -> None:
        """Close the file until it is used again."""
        if self._open is not None:
            self._open.close()
            self._open = None

    close = let_go

    def __del__(self) -> None:
        """Close what was forgotten: from 3.13 on Python warns of connections that are dropped open."""
        if getattr(self, "_open", None) is not None:
            self.let_go()

    def _run(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """One statement; what goes wrong with the file is told in words of its own."""
        with GATE.inside(), self._explained():
            return self._connection.execute(statement, values)

    def _run_many(self, statement: str, values: Iterable[Sequence[Any]]) -> None:
        with GATE.inside(), self._explained():
            self._connection.executemany(statement, values)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as problem:
            why = "its disk has no room left" if "full" in str(problem) else "its disk takes no changes"
            raise LedgerError(
                f"The series {self.path} cannot be read or written: another process holds it, or {why}. "
                "Nothing was shown. Try again when that is mended."
            ) from problem
        except sqlite3.DatabaseError as problem:
            raise self._damaged() from problem

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While notes and periods are put together: what does not fit was written by somebody else."""
        try:
            yield
        except SourdineError:
            raise
        except (sqlite3.DatabaseError, ValueError, KeyError, TypeError, IndexError) as problem:
            raise self._damaged() from problem

    def _damaged(self) -> LedgerError:
        return LedgerError(
            f"The state {self.path} of a series is damaged, or was changed by other means. Nothing was "
            "shown. Put back the newest copy that you have, and say how many periods were shown, with "
            "'sourdine series resume --shown'."
        )

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One durable transaction: all of it, or nothing. Another publisher waits until it is over."""
        with GATE.inside():
            self._run("BEGIN IMMEDIATE")
            try:
                yield
                self._run("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has rolled it back already
                    self._connection.execute("ROLLBACK")
                raise

    def note(self, name: str) -> str | None:
        """A note by its name."""
        row = self._run("SELECT content FROM notes WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def write_note(self, name: str, content: str) -> None:
        """Keep a note, within `writing`."""
        self._run("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, content))

    def drop_note(self, name: str) -> None:
        """Forget a note, within `writing`."""
        self._run("DELETE FROM notes WHERE name = ?", (name,))

    @property
    def closed(self) -> int:
        """How many periods are closed."""
        return int(self._run("SELECT coalesce(max(number), 0) FROM periods").fetchone()[0])

    def periods(self, line: int, until: int | None = None) -> list[ClosedPeriod]:
        """Every closed period of a line, in order."""
        last = self.closed if until is None else until
        rows = self._run(
            "SELECT number, key_list, sums, rows FROM periods WHERE line = ? AND number <= ? ORDER BY number",
            (line, last),
        )
        periods = [
            ClosedPeriod(number, line, self._keys(key_list), from_bytes(sums), from_bytes(noisy))
            for number, key_list, sums, noisy in rows.fetchall()
        ]
        whole = [each.number for each in periods] == list(range(1, last + 1))
        if not whole or any(len(each.keys) != len(each.sums) for each in periods):
            raise self._damaged()
        return periods

    def _keys(self, number: int) -> tuple[tuple[Any, ...], ...]:
        if number not in self._lists:
            row = self._run("SELECT keys FROM key_lists WHERE number = ?", (number,)).fetchone()
            self._lists[number] = tuple(map(tuple, json.loads(row[0])))
        return self._lists[number]

    def keys(self, line: int) -> tuple[tuple[Any, ...], ...]:
        """The newest keys of a line."""
        row = self._run("SELECT max(number) FROM key_lists WHERE line = ?", (line,)).fetchone()
        return () if row[0] is None else self._keys(int(row[0]))

    def add_period(self, period: ClosedPeriod) -> None:
        """Keep a line of a period, within `writing`."""
        keys = json.dumps([list(each) for each in period.keys], ensure_ascii=False)
        row = self._run(
            "SELECT number FROM key_lists WHERE line = ? AND keys = ?", (period.line, keys)
        ).fetchone()
        if row is None:
            cursor = self._run("INSERT INTO key_lists (line, keys) VALUES (?, ?)", (period.line, keys))
            number = cursor.lastrowid
        else:
            number = row[0]
        self._run(
            "INSERT INTO periods VALUES (?, ?, ?, ?, ?)",
            (period.number, period.line, number, to_bytes(period.sums), to_bytes(period.rows)),
        )

    # keys that are chosen

    def chosen(self, choice: int) -> list[str]:
        """The keys that were chosen, in the order in which they were, and then of their texts."""
        rows = self._run("SELECT key FROM chosen WHERE choice = ? ORDER BY period, rowid", (choice,))
        return [str(key) for (key,) in rows]

    def add_chosen(self, choice: int, period: int, keys: Sequence[str]) -> None:
        """Keep keys for good, within `writing`."""
        self._run_many("INSERT INTO chosen VALUES (?, ?, ?)", ((choice, key, period) for key in keys))

    def candidates(self, choice: int, first: int, last: int) -> dict[str, int]:
        """How many units came with each key in some periods: private, and never shown."""
        rows = self._run(
            "SELECT key, sum(units) FROM candidates WHERE choice = ? AND period BETWEEN ? AND ? GROUP BY key",
            (choice, first, last),
        )
        return {str(key): int(units) for key, units in rows}

    def add_candidates(self, choice: int, period: int, counts: Mapping[str, int]) -> None:
        """Note how many units came with each key in a period, within `writing`."""
        self._run_many(
            "INSERT INTO candidates VALUES (?, ?, ?, ?)",
            ((choice, period, key, units) for key, units in counts.items()),
        )

    # units

    def digests(self, units: Sequence[Any]) -> list[bytes]:
        """The keyed digest of each unit; without the state's secret nobody can tell whose it is."""
        key = bytes.fromhex(self.note("secret") or "")
        return [
            blake2b(str(unit).encode("utf-8", "surrogatepass"), key=key, digest_size=16).digest()
            for unit in units
        ]

    def participations(self, digests: Sequence[bytes]) -> dict[bytes, tuple[int, int, int]]:
        """Of units that counted before: in how many periods, the last of them, and with how many records."""
        self._run("CREATE TEMP TABLE IF NOT EXISTS asked (unit BLOB PRIMARY KEY) WITHOUT ROWID")
        self._run("DELETE FROM asked")
        self._run_many("INSERT OR IGNORE INTO asked VALUES (?)", ((each,) for each in digests))
        rows = self._run(
            "SELECT unit, count(*), max(period), sum(records) FROM asked JOIN participations USING (unit) "
            "GROUP BY unit"
        ).fetchall()
        self._run("DELETE FROM asked")
        return {unit: (times, last, records) for unit, times, last, records in rows}

    def add_participations(self, digests: Sequence[bytes], period: int, records: Sequence[int]) -> None:
        """Note that units count in a period, within `writing`."""
        self._run_many(
            "INSERT INTO participations VALUES (?, ?, ?) "
            "ON CONFLICT DO UPDATE SET records = records + excluded.records",
            sorted((unit, period, int(count)) for unit, count in zip(digests, records, strict=True)),
        )

    # copies

    def turn(self) -> None:
        """Mark that rows are added, within `writing`: an older state no longer fits the witness."""
        self.write_note("before", self.note("token") or "")
        self.write_note("token", secrets.token_hex(16))

    def witness(self) -> None:
        """Write down, outside of the state, which state is the newest and which file it is."""
        self._witness.write(self.note("token") or "", self.closed)

    def first_witness(self) -> None:
        """Write the witness of a series from which nothing was shown; one that lies there already stays."""
        if not self._witness.path.exists():
            self.witness()

    def bring_witness(self) -> None:
        """Before rows are shown: let the witness know of those that were committed and not shown yet.

        Else a state from before them, put back in its place, would draw them anew for nothing.
        """
        if self._behind():
            with self.writing():
                self.catch_up()

    def catch_up(self) -> None:
        """The same within `writing`, before the next period is closed."""
        if self._behind():
            self.witness()

    def is_newest(self) -> bool:
        """Whether this is the file, and the state of it, from which rows were last shown.

        A state that is one step ahead of its witness was cut off after a commit, before anybody saw the rows.
        """
        witnessed = self._witness.read()
        return witnessed is not None and (witnessed.is_of(self.note("token"), self.closed) or self._behind())

    def _behind(self) -> bool:
        """Whether the witness is of this file, one period ago."""
        witnessed = self._witness.read()
        return witnessed is not None and witnessed.is_of(self.note("before"), self.closed - 1)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA temp_store = MEMORY")  # digests stay off other disks
    connection.execute("PRAGMA cache_size = -65536")  # KiB: digests fall anywhere in their table
    return connection


def _statements() -> Iterator[str]:
    statement = ""
    for line in _TABLES.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


# A small file beside the state of a series: it tells the newest state from a copy that was restored.
#
# What was shown since a copy was made cannot be known from the copy. So which state rows were last shown
# from is written down outside of it.


@dataclass(frozen=True)
class Witnessed:
    """What rows were last shown from: the state's token then, and how many periods it held."""

    token: str
    closed: int

    def is_of(self, token: str | None, closed: int) -> bool:
        """Whether it is this one."""
        same = hmac.compare_digest(self.token.encode(), (token or "none").encode())
        return same and self.closed == closed


@dataclass(frozen=True)
class Witness:
    """The witness of a state, beside it."""

    state: Path

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.state.with_name(self.state.name + ".shown")

    def write(self, token: str, closed: int) -> None:
        """Write down which state is the newest, and which file it is."""
        content = {"token": token, "closed": closed, "file": self._mark()}
        try:
            disk.write_whole(self.path, json.dumps(content) + "\n")
        except OSError as problem:
            raise LedgerError(
                f"It cannot be written down beside the series {self.state} that rows are shown "
                f"({problem.strerror or 'no reason is known'}), so they are not. Let its folder be written "
                "to, and try again: nothing is lost."
            ) from problem

    def read(self) -> Witnessed | None:
        """What was written down of this file; None if the witness is of another, or lost."""
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            witnessed, mark = Witnessed(str(content["token"]), int(content["closed"])), content["file"]
            return witnessed if mark == self._mark() else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _mark(self) -> list[int]:
        """What tells a file from a copy of it."""
        status = self.state.stat()
        return [status.st_dev, status.st_ino]
