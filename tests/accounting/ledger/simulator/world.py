"""A seeded world of processes and threads that use one ledger, on a disk that may fail or be damaged.

The world lets one thread go on at a time, by its seed, so that a schedule can be run again. SQLite and the
ledger are the real ones. Some schedules fork: their children are true ones, and so are the locks.
"""

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sourdine.accounting.ledger import Ledger, gate
from tests.accounting.ledger.simulator.actor import END, PARTS, Actor, Memory, around
from tests.accounting.ledger.simulator.disk import (
    FULL,
    NAME_NOT_SYNCED,
    NOT_DELETED,
    PASS,
    SYNC_FAILED,
    WRITE_FAILED,
    Locks,
    Order,
    Watched,
)
from tests.accounting.ledger.simulator.model import DAILY, LIMIT, Fault, Happened, Model, lost
from tests.accounting.ledger.simulator.power import Disk
from tests.accounting.ledger.simulator.processes import CHILDREN, THREADS, Links, Mind, Process, forget, kill

_DAY = 86_400.0
_PAGE = 4096
_STEPS = ((0, ""), (0, ""), (1, ""), (2, ""), (5, ""), (12, ""), (99, "sync"), (99, "delete"), (99, ""))
"""For how many acts a thread goes on, and before which it stops anyway."""
STYLES = {"clock": 3, "power": 3, "kill": 3, "names": 3, "copies": 3, "damage": 3, "forks": 1}
"""What schedules are about, and how often; a true child takes its time."""
_ORDINARY = tuple(STYLES)[:-1]


@dataclass
class World:
    """One schedule."""

    folder: Path
    seed: int
    links: Links
    watched: Watched
    empty: dict[bool, bytes]  # a ledger without lines, with and without days
    style: str = ""
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        style = self._chance.choices(list(STYLES), list(STYLES.values()))[0]
        self.style = self.style or style
        self._forks = self.style == "forks"
        self.watched.locks = None if self._forks else Locks()
        has_days = self.style == "clock"
        self._second_is = ""  # a link, a mount, or nothing
        self._prepare(has_days)
        self._now = 20_000 * _DAY
        self._minds: dict[int, Mind] = {}
        self._model, self._happened = Model(has_days), Happened()
        self._born = self._asked = 0
        self._children: list[int] = []

    def _prepare(self, has_days: bool) -> None:
        """An empty ledger, on a disk that is watched."""
        for name in ("data", "second"):
            (self.folder / name).mkdir(parents=True)
        self._path = self.folder / "data/a.ledger"
        self._second = self.folder / "second/a.ledger"
        self._link = self.folder / "link.ledger"
        self._link.symlink_to(self._path)
        self._path.write_bytes(self.empty[has_days])
        self._disk = Disk(self._path, self._chance)
        self._copy: tuple[bytes, Model] | None = None
        self._earlier = self.empty[has_days]

    def _places(self) -> list[Path]:
        """The names by which the ledger may be opened."""
        return [self._path, self._path, self._link] + [self._second] * 2 * bool(self._second_is)

    # one schedule

    def run(self) -> None:
        """Live through the schedule, and look at what is left; a Fault if it must not be."""
        try:
            for _ in range(self._chance.randint(15, 40)):
                self._turn()
            self._rest()
            self._kill_all()
        except TimeoutError:
            raise Fault("a process hangs") from None
        finally:
            for child in self._children:
                kill(child)
        if self._second_is:
            self._second.unlink()
            around.mounted = ()
        Memory(gate.Gate()).install()
        self._model.check(self._path, self._happened)

    def _rest(self) -> None:
        """Let all that was begun come to its end."""
        for _ in range(20_000):
            busy = [mind for mind in self._minds.values() if mind.state != "idle"]
            if not busy:
                return
            self._resume(self._chance.choice(busy), PASS)
        raise Fault("somebody waits for ever")

    def _turn(self) -> None:
        minds = list(self._minds.values())
        roots = {mind.process.name for mind in minds if mind.process.root}
        most = 1 if self._forks else 3  # what one true process holds open must not cross the fork of another
        if not minds or (len(roots) < most and self._chance.random() < 0.04):
            self._start()
        elif self._chance.random() < 0.15:
            self._something_else()
        else:
            mind = self._chance.choice(minds)
            if mind.state == "idle":
                self._command(mind)
            else:
                self._resume(mind, self._order(mind))

    def _order(self, mind: Mind) -> Order:
        """What becomes of the act before which a thread stands: mostly, it is done.

        Another thread of its process may copy or hash the file meanwhile.
        """
        if self._chance.random() < 0.05:
            return PASS._replace(reads=str(self._path))
        often = 0.06 if mind.verb not in ("sync", "delete") else 0.5 if self._second_is else 0.2
        if mind.state != "acting" or self._chance.random() > often:
            return PASS
        kind = self._chance.choice(["kill", "kill", "fail", "fail", "full"])
        some = self._chance.choice([0, 1, 4, 100, 511, 512, 2000, 4095, -1])
        if kind == "kill":
            return Order(done=self._chance.random() < 0.7, length=some, deadly=True)
        done = self._chance.random() < 0.5
        order = {
            "write": Order(done=some != 0, length=some, code=FULL if kind == "full" else WRITE_FAILED),
            "sync": Order(done=done, code=SYNC_FAILED),
            "delete": Order(done=done, code=NAME_NOT_SYNCED if done else NOT_DELETED),
        }.get(mind.verb, PASS)
        mind.failing |= order != PASS
        return order

    def _command(self, mind: Mind) -> None:
        ways = ["charge"] * 8 + ["status", "close", "open"]
        free = self._free()
        if free is not None:
            forking = sum(mind.command[:1] == ("fork",) for mind in self._minds.values())
            can_fork = self._forks and len(self._children) + forking < CHILDREN
            ways += ["thread", "fork", "fork", "fork"] if can_fork else ["thread"]
        way = self._chance.choice(ways) if mind.is_open else "open"
        if way == "open":
            self._say(mind, "open", str(self._chance.choice(self._places())))
        elif way == "charge":
            self._asked += 1
            flattered = self._chance.random() < 0.03
            self._say(mind, "charge", self._chance.randint(1, 3), f"charge {self._asked}", flattered)
        elif way in ("fork", "thread"):
            self._say(mind, way, free)
        else:
            self._say(mind, way)

    def _something_else(self) -> None:
        """An event of the world, mostly of the kind that this schedule is about."""
        events: dict[str, Callable[[], None]] = {
            "clock": self._jump,
            "power": self._lose_power,
            "kill": self._kill_one,
            "names": self._name_or_unname,
            "copies": self._copy_or_put_back,
            "damage": self._damage,
        }
        other = self._forks or self._chance.random() < 0.2
        events[self._chance.choice(_ORDINARY) if other else self.style]()

    # what the world does

    @property
    def _journal(self) -> Path:
        return Path(f"{self._path}-journal")

    def _jump(self) -> None:
        self._now += self._chance.choice([-3, -1, 1, 2]) * _DAY
        self._note("the clock jumps")

    def _kill_one(self) -> None:
        mind = self._chance.choice(list(self._minds.values()))
        self._note(f"kill {mind.process.name}")
        self._bury(mind.process)

    def _lose_power(self) -> None:
        self._note("the power is lost")
        self._kill_all()
        self._disk.lose_power()
        self._happened.power_lost = True

    def _name_or_unname(self) -> None:
        if self._second_is:
            self._rest()
            self._second.unlink()
            Path(f"{self._second}-journal").unlink(missing_ok=True)
            self._second_is = ""
        else:
            os.link(self._path, self._second)
            self._second_is = self._chance.choice(["link", "mount"])
            self._happened.second_name = True
        self._note(f"second name: {self._second_is or 'none'}")

    def _copy_or_put_back(self) -> None:
        self._rest()
        if self._journal.exists() or self._second_is:  # it is not one file, or not one name
            return
        if self._copy is None or self._chance.random() < 0.3:
            self._earlier = self._path.read_bytes()
            self._copy = self._earlier, self._model.copy()
            self._note("a copy is taken")
            return
        content, model = self._copy
        if self._chance.random() < 0.5:
            self._path.write_bytes(content)
        else:
            beside = self._path.with_suffix(".copy")
            beside.write_bytes(content)
            beside.rename(self._path)
        self._model = model.copy()
        self._happened.copied = True
        self._disk.settle()
        self._note("the copy is put back")

    def _damage(self) -> None:
        """Damage the disk once, in one place, perhaps after a kill that left a journal."""
        if self._happened.damaged or not self._model.paid:
            return
        if self._chance.random() < 0.5:
            self._kill_all()
        self._rest()
        target = self._journal if self._journal.exists() and self._chance.random() < 0.5 else self._path
        content = bytearray(target.read_bytes())
        if not content:
            return
        page = self._chance.randrange(-(-len(content) // _PAGE)) * _PAGE
        whole = range(page, min(page + _PAGE, len(content)))
        place = self._chance.choice([place for place in whole if content[place]] or whole)
        kind = self._chance.choice(["flip", "flip", "zero", "cut", "old"])
        if kind == "flip":
            content[place] ^= 1 << self._chance.randrange(8)
        elif kind == "zero":
            place -= place % 512
            content[place : place + 512] = bytes(len(content[place : place + 512]))
        elif kind == "old":  # a write that a disk has lost, of one page
            content[page : page + _PAGE] = self._earlier[page : page + _PAGE].ljust(_PAGE, b"\0")
        else:
            del content[place:]
        target.write_bytes(content)
        self._happened.damaged = True
        self._disk.settle()
        self._note(f"damage: {kind} at {place} of {target.name}")

    # processes

    def _free(self) -> int | None:
        coming = {
            mind.command[1] for mind in self._minds.values() if mind.command[:1] in (("fork",), ("thread",))
        }
        used = self._minds.keys() | coming
        return next((number for number in range(THREADS + CHILDREN) if number not in used), None)

    def _start(self) -> None:
        number = self._free()
        if number is not None:
            memory = Memory(gate.GATE if self._forks else gate.Gate())  # Python's forks pass by the first
            root = Actor(self.links.theirs, number, memory)
            root.start()
            self._live(number, self._process(root))

    def _process(self, root: Actor | None, child: int = 0, seen: int = 0) -> Process:
        self._born += 1
        self._note(f"start {self._born}")
        return Process(self._born, root, child, seen)

    def _live(self, number: int, process: Process, is_open: bool = False) -> None:
        process.threads += 1
        mind = Mind(number, f"{process.name}.{process.threads}", process, is_open)
        self._minds[number] = mind
        self._listen(mind)

    def _say(self, mind: Mind, *command: Any) -> None:
        told = command[:1] if command[0] in ("fork", "thread") else command
        self._note(f"{mind.name} {told}")
        mind.command, mind.failing = command, False
        mind.seen, mind.paid = mind.process.seen, len(self._model.paid)
        self._tell(mind, *command)

    def _resume(self, mind: Mind, order: Order) -> None:
        if order != PASS:
            self._note(f"{mind.name} {mind.verb}: {order}")
        if order.deadly:
            self._bury(mind.process, mind, order)
        else:
            self._tell(mind, *self._chance.choice(_STEPS), order)

    def _tell(self, mind: Mind, *words: Any) -> None:
        mounted = (str(self._second),) if self._second_is == "mount" else ()
        message = (words,) if mind.state == "idle" else words
        self.links.ours[mind.number].send((*message, self._now, mounted))
        self._listen(mind)

    def _listen(self, mind: Mind) -> None:
        mind.state, done, said = self.links.ours[mind.number].receive()
        for act in done:
            self._disk.note(act)
        mind.verb = str(said)
        if mind.state == "idle":
            self._answered(mind, *said)

    def _bury(self, process: Process, first: Mind | None = None, order: Order = END) -> None:
        """Kill a process with all its threads, one of them perhaps in the middle of an act."""
        minds = [mind for mind in self._minds.values() if mind.process is process]
        for mind in minds:
            self._doubt(mind)
        if first is not None:
            self._tell(first, 0, "", order)
        for mind in minds:
            if process.root and mind.state != "dead":
                self._tell(mind, *(("end",) if mind.state == "idle" else (0, "", END)))
            del self._minds[mind.number]
        if process.root:
            forget(process.root)
        else:
            kill(process.child)

    def _kill_all(self) -> None:
        for process in {mind.process.name: mind.process for mind in self._minds.values()}.values():
            self._bury(process)

    def _doubt(self, mind: Mind) -> None:
        if mind.charge is not None:
            self._model.doubtful.add(mind.charge)

    # what they say

    def _answered(self, mind: Mind, kind: str, what: Any) -> None:
        charge, command, mind.command = mind.charge, mind.command, ()
        if not command:  # it has only begun to live
            return
        if kind == "broke":
            if charge is None and self._happened.damaged and lost(str(what)):
                return
            raise Fault(f"no sentence, but {what}")
        if kind == "refused":
            self._note(f"{mind.name} refused: {what}")
            self._model.refuse(charge, what, mind.failing, self._happened)
        elif kind == "beyond":
            assert charge is not None
            going = [other.charge for other in self._minds.values() if other.charge is not None]
            self._model.beyond(charge, going, self._happened)
        elif charge is not None:
            self._note(f"{mind.name} paid line {what[0]}")
            self._model.acknowledge(charge, what, mind.seen)
            mind.process.seen = max(mind.process.seen, what[0])
        elif command[0] == "status":
            if what < max(mind.seen, mind.paid):
                raise Fault(f"{what} lines are shown, {mind.seen} had been seen and {mind.paid} paid")
            mind.process.seen = max(mind.process.seen, what)
        elif command[0] == "open":
            mind.is_open = True
        elif command[0] == "thread":
            self._live(command[1], mind.process, mind.is_open)
        elif command[0] == "fork":
            self._children.append(what)
            self._live(command[1], self._process(None, what, mind.process.seen), mind.is_open)

    def _note(self, text: str) -> None:
        self.log.append(text.replace(str(self.folder), ""))


def empty_ledgers(folder: Path) -> dict[bool, bytes]:
    """A ledger without lines, with and without days."""
    made = {}
    for has_days in (False, True):
        days: dict[str, Any] = {"period": "day", "period_limit": f"{DAILY}/{PARTS}"} if has_days else {}
        path = folder / f"{has_days}.ledger"
        Ledger.create(path, epsilon=LIMIT // PARTS, **days).close()
        made[has_days] = path.read_bytes()
    return made


def one_schedule(
    folder: Path, seed: int, links: Links, watched: Watched, empty: dict[bool, bytes], style: str = ""
) -> tuple[list[str], str]:
    """Run one schedule: what happened, and what went wrong, if anything."""
    place = folder / str(seed)
    world = World(place, seed, links, watched, empty, style)
    try:
        world.run()
    except Fault as fault:
        return world.log, f"seed {seed}: {fault}".replace(str(place), "")
    finally:
        shutil.rmtree(place)
    return world.log, ""
