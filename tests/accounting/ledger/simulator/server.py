"""The same world on a PostgreSQL server: each statement is asked for, and connections are lost around it.

The server and the ledger are the real ones. A statement may be lost on its way, or its answer may; the server
may drop everybody; an older state of its tables is put back, and rows are damaged by somebody who owns it.
"""

import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.servers import Server
from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.address import Address
from sourdine.accounting.ledger.server import session, store
from sourdine.core.errors import LedgerWait
from tests.accounting.ledger.simulator import actor
from tests.accounting.ledger.simulator.actor import PARTS
from tests.accounting.ledger.simulator.disk import PASS, WRITE_FAILED, Act, Order, Watched
from tests.accounting.ledger.simulator.model import DAILY, LIMIT, Fault, Model
from tests.accounting.ledger.simulator.processes import Links, Mind
from tests.accounting.ledger.simulator.world import World


class Line(session.Session):
    """A connection that the world may cut before or after a statement."""

    def execute(self, query: Any, *words: Any, **more: Any) -> Any:
        """The statement, if it comes through; and its answer, if that does."""
        text = str(query)
        verb = "write" if "INSERT" in text else "turn" if "BEGIN" in text else "read"
        order = actor.hook(Act(verb, ""))
        answer = super().execute(query, *words, **more) if order.done else None
        if order == PASS:
            return answer
        self.close()
        raise psycopg.OperationalError("the connection is lost")

    def close(self) -> None:
        """As when the process dies: the server notices before anybody else goes on."""
        pid = 0 if self.closed else self.info.backend_pid
        super().close()
        if pid:
            wait_for(pid)


_owner: list["psycopg.Connection[Any]"] = []


def wait_for(pid: int) -> None:
    """Wait until the server has ended a session."""
    for _ in range(1000):
        query = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
        if not psycopg.Connection.execute(_owner[0], query, (pid,)).fetchall():
            return
        time.sleep(0.001)


@dataclass
class Ground:
    """A server with two empty ledgers, with and without days."""

    server: Server
    ledgers: dict[bool, str]

    @classmethod
    def start(cls) -> "Ground":
        """In memory: what a disk does to a server is not simulated."""
        shared = Path("/dev/shm")
        server = Server.start(shared if shared.is_dir() else None)
        made = {}
        for has_days in (False, True):
            days: dict[str, Any] = {"period": "day", "period_limit": f"{DAILY}/{PARTS}"} if has_days else {}
            made[has_days] = server.new()
            Ledger.create(made[has_days], epsilon=LIMIT // PARTS, **days).close()
        _owner.append(psycopg.connect(server.address, autocommit=True))
        _owner[0].execute("SET session_replication_role = replica")
        store.LOCK_WAIT = "1ms"  # then the world lets others go on
        session.Session = Line  # type: ignore[misc]
        warnings.simplefilter("ignore", LedgerWait)
        for address in made.values():  # clocks of a world are of its own
            always = f"CREATE OR REPLACE FUNCTION {Address.parse(address).schema}.is_punctual(at timestamptz)"
            _owner[0].execute(f"{always} RETURNS boolean LANGUAGE sql AS 'SELECT true'")
        return cls(server, made)


class _NoDisk:
    """What the world tells its disk; a server has its own."""

    def note(self, act: Act) -> None:
        """Nothing is written here."""


class ServerWorld(World):
    """One schedule on a server."""

    ground: Ground

    def _prepare(self, has_days: bool) -> None:
        self.style = "kill" if self.style == "forks" else self.style
        self._forks = False  # the world's own connection must not cross one; forks have tests of their own
        self._path = self.ground.ledgers[has_days]  # type: ignore[assignment]
        self._schema = Address.parse(str(self._path)).schema
        self._disk = _NoDisk()  # type: ignore[assignment]
        self._put(([], [(0, "")]))
        self._rows: tuple[tuple[Any, Any], Model] | None = None

    def _places(self) -> list[Any]:
        return [self._path]

    def _order(self, mind: Mind) -> Order:
        often = 0.25 if mind.verb == "write" else 0.06
        if mind.state != "acting" or self._chance.random() > often:
            return PASS
        kind = self._chance.choice(["kill", "lose", "lose"])
        mind.failing |= kind == "lose"
        return Order(done=self._chance.random() < 0.5, code=WRITE_FAILED, deadly=kind == "kill")

    # what the world does

    def _execute(self, query: str, *values: Any) -> Any:
        return psycopg.Connection.execute(_owner[0], query.format(self._schema), values or None)

    def _take(self) -> tuple[Any, Any]:
        lines = self._execute("SELECT * FROM {0}.lines ORDER BY number").fetchall()
        return lines, self._execute("SELECT * FROM {0}.mark").fetchall()  # none where it was damaged

    def _put(self, rows: tuple[Any, Any]) -> None:
        self._execute("BEGIN")
        self._execute("DELETE FROM {0}.lines")
        self._execute("DELETE FROM {0}.mark")
        for line in rows[0]:
            self._execute("INSERT INTO {0}.lines VALUES (%s, %s, %s, %s, %s, %s)", *line)
        for mark in rows[1]:
            self._execute("INSERT INTO {0}.mark VALUES (%s, %s)", *mark)
        self._execute("COMMIT")

    def _lose_power(self) -> None:
        """The server ends every session, whatever it is at."""
        self._note("the server drops everybody")
        query = (
            "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sourdine'"
        )
        for pid, _ in self._execute(query).fetchall():
            wait_for(pid)
        self._happened.power_lost = True

    def _name_or_unname(self) -> None:
        self._jump()

    def _copy_or_put_back(self) -> None:
        self._rest()
        if self._rows is None or self._chance.random() < 0.3:
            self._rows = self._take(), self._model.copy()
            self._note("a copy is taken")
            return
        self._put(self._rows[0])
        self._model = self._rows[1].copy()
        self._happened.copied = True
        self._note("the copy is put back")

    def _damage(self) -> None:
        if self._happened.damaged or not self._model.paid:
            return
        self._rest()
        statement = self._chance.choice(
            [
                "UPDATE {0}.lines SET total = '1/8' WHERE number = (SELECT max(number) FROM {0}.lines)",
                "UPDATE {0}.lines SET content = replace(content, '1', '2') WHERE number = 1",
                "DELETE FROM {0}.lines WHERE number = (SELECT max(number) FROM {0}.lines)",
                "UPDATE {0}.mark SET number = number - 1",
                "UPDATE {0}.lines SET fingerprint = 'x' WHERE number = (SELECT max(number) FROM {0}.lines)",
                "DELETE FROM {0}.mark",
            ]
        )
        self._execute(statement)
        self._happened.damaged = True
        self._note(f"damage: {statement}")


def one_schedule(
    folder: Path, seed: int, links: Links, watched: Watched, ground: Ground, style: str = ""
) -> tuple[list[str], str]:
    """Run one schedule: what happened, and what went wrong, if anything."""
    ServerWorld.ground = ground
    world = ServerWorld(folder / str(seed), seed, links, watched, {}, style)
    try:
        world.run()
    except Fault as fault:
        return world.log, f"seed {seed}: {fault}"
    return world.log, ""
