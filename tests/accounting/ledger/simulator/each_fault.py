"""Every fault at every act of one charge: what is said of it must be true, now and after a power loss.

`python -m tests.accounting.ledger.simulator.each_fault` prints how often what was said.
"""

import json
import random
import shutil
import tempfile
from collections import Counter
from pathlib import Path

from sourdine.accounting.ledger import Ledger, store
from sourdine.core.errors import LedgerError
from tests.accounting.ledger.simulator.disk import (
    FULL,
    NAME_NOT_SYNCED,
    NOT_DELETED,
    PASS,
    SYNC_FAILED,
    WRITE_FAILED,
    Act,
    Order,
    Watched,
)
from tests.accounting.ledger.simulator.power import Disk
from tests.campaigns.ledger.crash import one_spend

_BEFORE = 2  # charges that went well
_POWER_LOSSES = 2  # tried after each fault


class Failing:
    """A disk that fails at one act, or from there on."""

    def __init__(self) -> None:
        self.watched: Disk | None = None
        self.acts: list[Act] = []
        self.at, self.order, self.lasts = -1, PASS, False

    def hook(self, act: Act) -> Order:
        order = PASS
        if self.watched is not None:
            here = len(self.acts) == self.at or (self.lasts and len(self.acts) > self.at >= 0)
            order = self.order if here and act.verb != "lock" else PASS
            self.acts.append(act)
            if order.done:
                self.watched.note(act if order.length < 0 else act._replace(data=act.data[: order.length]))
        return order


def orders(verb: str) -> list[Order]:
    """What may go wrong with an act."""
    if verb == "write":
        lengths = (0, 7, 512, -1)
        return [Order(bool(size), code, size) for size in lengths for code in (WRITE_FAILED, FULL)]
    if verb == "sync":
        return [Order(False, SYNC_FAILED), Order(True, SYNC_FAILED)]
    if verb == "delete":
        return [Order(False, NOT_DELETED), Order(True, NAME_NOT_SYNCED)]
    if verb == "open":
        return [Order(False)]
    return []


def one_case(folder: Path, failing: Failing, at: int, order: Order, lasts: bool) -> tuple[str, bool]:
    """What is said of a charge that meets a fault, and whether it is so."""
    path = folder / "a.ledger"
    with Ledger.create(path, epsilon=1) as ledger:
        for _ in range(_BEFORE):
            ledger.charge(one_spend(), purpose="before")
        failing.watched = Disk(path, random.Random(at))
        failing.acts, failing.at, failing.order, failing.lasts = [], at, order, lasts
        try:
            ledger.charge(one_spend(), purpose="now")
            said = "paid"
        except LedgerError as problem:
            said = next(
                words
                for words in ("counts as spent", "not known", "Nothing was spent")
                if words in str(problem)
            )
        failing.at = -1
    watched, failing.watched = failing.watched, None
    files = {each: each.read_bytes() for each in folder.iterdir()}
    right = _is_so(path, said, {"counts as spent": {1}, "not known": {0, 1}})
    for _ in range(_POWER_LOSSES):
        for each in folder.iterdir():
            each.unlink()
        for each, content in files.items():
            each.write_bytes(content)
        watched.copy().lose_power()
        right &= _is_so(path, said, {"counts as spent": {0, 1}, "not known": {0, 1}})
    return said, right


def _is_so(path: Path, said: str, also: dict[str, set[int]]) -> bool:
    store._MARKS.clear()
    with Ledger.open(path) as ledger:
        found = [entry.purpose for entry in ledger.history()]
    told = {"paid": {1}, "Nothing was spent": {0}} | also
    return found[:_BEFORE] == ["before"] * _BEFORE and len(found) - _BEFORE in told[said]


def main() -> int:
    failing = Failing()
    if not Watched(failing.hook).install():
        print("SQLite cannot be watched here.")
        return 3
    shared = Path("/dev/shm")
    said: Counter[str] = Counter()
    wrong = []
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as above:
        folder = Path(above) / "case"
        folder.mkdir()
        one_case(folder, failing, -1, PASS, False)
        verbs = [act.verb for act in failing.acts]
        for at, verb in enumerate(verbs):
            for order in orders(verb):
                for lasts in (False, True):
                    shutil.rmtree(folder)
                    folder.mkdir()
                    told, right = one_case(folder, failing, at, order, lasts)
                    said[told] += 1
                    if not right:
                        wrong.append([at, verb, str(order), lasts, told])
    print(json.dumps({"acts": verbs, "said": said, "wrong": wrong}))
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
