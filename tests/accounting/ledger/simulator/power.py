"""What is on a disk when its power goes: all that was synced, and some of what was not."""

import random
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

from tests.accounting.ledger.simulator.disk import Act

_SECTOR = 512


@dataclass
class _Kept:
    """A file: what is on the disk for certain, and what was written since."""

    durable: bytes = b""
    is_named: bool = True  # whether its name is on the disk for certain
    is_there: bool = True
    since: list[Act] = field(default_factory=list)


class Disk:
    """Follows what is done to a ledger's files, and what of it is durable."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        self._path = path
        self._chance = chance
        self._files: dict[str, _Kept] = {}
        self.settle()

    def settle(self) -> None:
        """Take everything as it is now for durable."""
        beside = self._path.parent.glob(f"{self._path.name}*")
        self._files = {str(path): _Kept(path.read_bytes()) for path in beside}

    def copy(self) -> "Disk":
        """The same, to lose its power more than once; each time it is another chance."""
        return deepcopy(self, {id(self._chance): self._chance})

    def note(self, act: Act) -> None:
        """Something was done to a file."""
        if not act.path.startswith(str(self._path)):
            return
        kept = self._files.get(act.path)
        if act.verb == "open":
            if kept is None or not kept.is_there:
                self._files[act.path] = _Kept(is_named=False)
        elif kept is None:
            return
        elif act.verb == "sync":
            kept.durable = _after(kept.durable, kept.since)
            kept.since, kept.is_named = [], True
        elif act.verb == "delete":
            kept.is_there = False
            if act.waits or not kept.is_named:
                del self._files[act.path]
        else:
            kept.since.append(act)

    def lose_power(self) -> None:
        """Leave the files as a disk might have them: each sector old or new, one perhaps torn."""
        for name, kept in list(self._files.items()):
            gone = not kept.is_there and self._chance.random() < 0.5
            never = not kept.is_named and self._chance.random() < 0.5
            if gone or never:
                Path(name).unlink(missing_ok=True)
                continue
            share = self._chance.choice([0.0, 0.3, 0.7, 1.0])
            pieces = [piece for act in kept.since for piece in _pieces(act)]
            pieces = [piece for piece in pieces if self._chance.random() < share]
            if pieces and self._chance.random() < 0.3:
                torn = self._chance.randrange(len(pieces))
                half = len(pieces[torn].data) // 2
                pieces[torn] = pieces[torn]._replace(data=pieces[torn].data[:half])
            Path(name).write_bytes(_after(kept.durable, pieces))
        self.settle()


def _pieces(act: Act) -> list[Act]:
    """A write as the sectors it touches."""
    if act.verb != "write":
        return [act]
    pieces, place = [], 0
    while place < len(act.data):
        size = _SECTOR - (act.offset + place) % _SECTOR
        pieces.append(act._replace(data=act.data[place : place + size], offset=act.offset + place))
        place += size
    return pieces


def _after(content: bytes, acts: list[Act]) -> bytes:
    held = bytearray(content)
    for act in acts:
        if act.verb == "truncate":
            held = held[: act.offset].ljust(act.offset, b"\0")
        elif act.data:
            if len(held) < act.offset:
                held = held.ljust(act.offset, b"\0")
            held[act.offset : act.offset + len(act.data)] = act.data
    return bytes(held)
