"""One thread of one process of a simulation, that goes on only when the world lets it.

It stops before each act of SQLite that changes a file or takes a lock, wherever it would wait, and between
commands. So which of several goes on is the world's choice, by its seed, and nothing else's.

A process is a group of threads with a memory of its own, within one true process; what is forked from it is a
true child. One that is killed lets nothing more reach the disk, and forgets everything.
"""

import fcntl
import os
import pickle
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sourdine.accounting import Spend
from sourdine.accounting.ledger import Ledger, gate, ledger, store
from sourdine.accounting.ledger.file import database, guard, names
from sourdine.accounting.ledger.file import store as file_store
from sourdine.accounting.ledger.server import store as server_store
from sourdine.core.distance import Distance
from sourdine.core.errors import BudgetExceeded, InvalidParameter, LedgerError
from sourdine.core.loss import PrivacyLoss
from sourdine.mechanisms import Geometric
from tests.accounting.ledger.simulator.disk import PASS, WRITE_FAILED, Act, Order, Watched

PARTS = 8
"""A charge is of so many eighths of epsilon."""
END = Order(done=False, code=WRITE_FAILED, deadly=True)
_MOST = 1 << 18  # bytes of a message
_SECONDS = 300  # and then a child ends, whatever became of the world
_PATIENCE = 50  # pauses, and then a ledger is told that its minute is over
_here = threading.local()
_watched: list[Watched] = []
around = SimpleNamespace(now=0.0, mounted=(), dying=False)
"""What every thread sees: the clock, what is mounted by itself, and whether its process is being killed."""


class Flattered(Geometric):
    """Noise that calls itself a Geometric, and states a tenth of its loss."""

    def to_json(self) -> Any:
        return Geometric(scale=self.scale).to_json()

    def loss(self, distance: Distance) -> PrivacyLoss:
        return PrivacyLoss.pure(Fraction(1, 10) / self.scale)


@cache
def _spend(parts: int, flattered: bool) -> Spend:
    made = (Flattered if flattered else Geometric)(scale=Fraction(PARTS, parts))
    return Spend(mechanism=made, distance=Distance.l1(1))


class Killed(BaseException):
    """The end of a thread that waited."""


class Memory:
    """What a ledger's code keeps for a process."""

    def __init__(self, held: gate.Gate) -> None:
        self.gate = held
        self._turns: dict[Any, Any] = {}
        self._seen: dict[Any, Any] = {}
        self._verified: dict[Any, Any] = {}
        held._start_over(torn=False)

    def install(self) -> None:
        """Have the code use it, now that a thread of this process goes on."""
        file_store._TURNS, store._MARKS, store._VERIFIED = self._turns, self._seen, self._verified
        store.GATE = file_store.GATE = server_store.GATE = database.GATE = self.gate  # type: ignore[attr-defined]


def _read(path: str, process: object) -> None:
    """What a copy or a hash does in another thread of a process: POSIX locks on the file go with it."""
    with suppress(FileNotFoundError):
        Path(path).read_bytes()
        for watched in _watched:
            if watched.locks is not None:
                watched.locks.drop(path, process)


class Channel:
    """One end of a pair; whole messages, in order."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    @classmethod
    def pair(cls, seconds: float) -> tuple["Channel", "Channel"]:
        """Two ends; the first does not wait for longer than so many seconds."""
        first, second = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        first.settimeout(seconds)
        return cls(first), cls(second)

    def send(self, message: object) -> None:
        """Send a message."""
        self._end.send(pickle.dumps(message, 5))

    def receive(self) -> Any:
        """The next message; a TimeoutError if there is none in time."""
        return pickle.loads(self._end.recv(_MOST))


class Actor:
    """A thread: the end of a channel to the world, and what it has open."""

    def __init__(self, channels: list[Channel], number: int, memory: Memory) -> None:
        self._channels, self._channel, self.memory = channels, channels[number], memory
        self.ledger: Ledger | None = None
        self.opened: list[Ledger] = []  # none is let go by itself before the process ends
        self.threads: list[Actor] = []  # that it has started
        self._steps, self._until = 0, ""
        self.waited = 0.0
        self._done: list[Act] = []

    def start(self) -> None:
        """Live, in a thread of its own."""
        threading.Thread(target=self._live, daemon=True).start()

    def act(self, act: Act) -> Order:
        """What becomes of an act, as the world will have it."""
        if around.dying:
            return END
        if self._steps > 0 and act.verb != self._until:
            self._steps -= 1
            order = PASS
        else:
            order = self._stop("acting", act.verb)
        if order.done and act.verb != "lock":
            self._done.append(act._replace(data=act.data[: order.length] if order.length >= 0 else act.data))
        if order.deadly:
            around.dying = True
            return order._replace(code=WRITE_FAILED)
        return order

    def pause(self) -> None:
        """Wait for others, for as long as the world wants."""
        if around.dying or self._stop("waiting").deadly:
            around.dying = True
            raise Killed

    def _stop(self, why: str, verb: str = "") -> Order:
        """Tell the world where this thread stands, and wait until it may go on."""
        self._channel.send((why, self._done, verb))
        self._done = []
        self._steps, self._until, order, around.now, around.mounted = self._channel.receive()
        self.memory.install()
        if order.reads:
            _read(order.reads, self.memory)
        return order

    def _live(self) -> None:
        """Carry out commands, one after the other, until this thread dies."""
        _here.actor, answer = self, ("", None)
        while True:
            self._channel.send(("idle", self._done, answer))
            self._done = []
            command, around.now, around.mounted = self._channel.receive()
            self.memory.install()
            self._steps, self.waited = 0, 0.0
            with suppress(Killed):
                answer = self._told(*command)
            if around.dying:
                break
        self._channel.send(("dead", self._done, ""))
        if threading.current_thread() is threading.main_thread():  # in a child
            signal.pause()

    def _told(self, verb: str, *words: Any) -> Any:
        try:
            return "done", getattr(self, f"_do_{verb}")(*words)
        except BudgetExceeded as problem:
            return "beyond", str(problem)
        except (LedgerError, InvalidParameter) as problem:
            return "refused", str(problem)
        except Exception as problem:
            return "broke", repr(problem)

    def _do_open(self, path: str) -> None:
        self.ledger = Ledger.open(path)
        self.opened.append(self.ledger)

    def _do_charge(self, parts: int, purpose: str, flattered: bool) -> tuple[int, str]:
        assert self.ledger is not None
        receipt = self.ledger.charge(_spend(parts, flattered), purpose=purpose, author="a")
        return receipt.number, receipt.fingerprint

    def _do_status(self) -> int:
        assert self.ledger is not None
        return self.ledger.status().blocks

    def _do_close(self) -> None:
        assert self.ledger is not None
        self.ledger.close()

    def _do_thread(self, number: int) -> None:
        other = Actor(self._channels, number, self.memory)
        other.ledger = self.ledger
        self.threads.append(other)
        other.start()

    def _do_fork(self, number: int) -> int:
        child = os.fork()
        if around.dying:  # it was killed while it waited to fork, which Python does not let a hook tell
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
        elif child == 0:
            signal.alarm(_SECONDS)
            self._channel, self._done = self._channels[number], []
        return child

    def _do_end(self) -> None:
        around.dying = True


class Lock:
    """A lock, or a condition, of which the world is told when a thread waits for it."""

    def __init__(self) -> None:
        self._owner, self._depth = 0, 0

    def __enter__(self) -> None:
        while self._owner not in (0, threading.get_ident()):
            _here.actor.pause()
        self._owner = threading.get_ident()
        self._depth += 1

    def __exit__(self, *problem: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = 0

    def wait(self) -> None:
        """As of a condition: let others have it for a while."""
        depth, self._depth, self._owner = self._depth, 0, 0
        try:
            _here.actor.pause()
        finally:
            self.__enter__()
            self._depth = depth

    def notify_all(self) -> None:
        """Whoever waits looks again anyway."""


def _sleep(seconds: float) -> None:
    """A pause, in which others go on."""
    _here.actor.waited += 60 / _PATIENCE
    _here.actor.pause()


def _monotonic() -> float:
    actor: Actor | None = getattr(_here, "actor", None)
    return 0.0 if actor is None else actor.waited


def hook(act: Act) -> Order:
    """What SQLite asks, in whichever thread."""
    actor: Actor | None = getattr(_here, "actor", None)
    if actor is None:
        return END if around.dying else PASS
    return actor.act(act)


def watch() -> Watched:
    """What SQLite asks of the world from now on."""

    def process() -> object:
        actor: Actor | None = getattr(_here, "actor", None)
        return actor and actor.memory

    watched = Watched(hook, process)
    _watched.append(watched)
    return watched


class _Clock(datetime):
    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        return datetime.fromtimestamp(around.now, UTC)


def install(without: Callable[[], None]) -> None:
    """Put the simulation where the ledger's code meets the system; perhaps without a mend."""
    threads = SimpleNamespace(Condition=Lock, RLock=Lock, get_ident=threading.get_ident)
    for module in (gate, store, file_store, server_store):
        module.threading = threads  # type: ignore[attr-defined]
    for module in (store, file_store, guard, database):
        module.sleep = _sleep  # type: ignore[attr-defined]
        module.monotonic = _monotonic  # type: ignore[attr-defined]
    ledger.datetime = _Clock  # type: ignore[attr-defined]
    change = guard._set

    def ask(handle: int, kind: int, start: int, end: int) -> None:
        """As SQLite's own locks are asked for."""
        if kind != fcntl.F_UNLCK:
            hook(Act("lock", ""))
        change(handle, kind, start, end)

    guard._set = ask
    tell, mount, identify = sys.unraisablehook, names._mount, names.identify
    names._mount = lambda path: -1 if str(path) in around.mounted else mount(path)

    def one_name(path: Path) -> tuple[int, int]:
        """As for a file that is mounted elsewhere, which shows nothing of it."""
        if around.mounted:
            held = path.stat()
            return held.st_dev, held.st_ino
        return identify(path)

    names.identify = one_name
    sys.unraisablehook = lambda problem: None if problem.exc_type is Killed else tell(problem)
    without()
