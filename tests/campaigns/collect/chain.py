"""The whole chain in processes of its own, each killed at random: issuer, shuffler, collector, devices.

    python -m tests.campaigns.collect.chain --clients 1000 --kills 50

Every device is a process with a code and a number. It gets a token, and sends its number as its report until
that is acknowledged; one of ten then tries to spend its token for another number. Issuer, shuffler and
collector are killed so often each, and so many devices, which begin again with what they had on the disk. In
the end every token must have been spent once, and every acknowledged number be in one batch at most.
"""

import argparse
import asyncio
import json
import random
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sourdine.collector.blocks import recount
from sourdine.collector.issuer import CodeStore
from sourdine.collector.settings import open_store
from tests.campaigns.collect.device import QUESTION, Device
from tests.campaigns.collect.parts import PROCESSES, Office, Part, start

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerProcess

_BATCH = 20
_PAUSE = 0.1  # seconds between two looks
_MOST_ALIVE = 32  # devices at once


@dataclass
class Chain:
    """What was left after so many kills of each process."""

    clients: int
    kills: int
    batch: int
    acknowledged: int = 0
    killed_devices: int = 0
    sent_again: int = 0
    tokens: int = 0
    collected: int = 0
    at_the_shuffler: int = 0
    batches: int = 0
    smallest_batch: int = 0
    twice: int = 0
    unknown: int = 0
    lost: int = 0
    spent_twice: int = 0
    seconds: float = 0.0


class _Crowd:
    """All devices, each in a process of its own, of which more begin the more kills there were."""

    def __init__(self, devices: list[Device], kills: int, dice: random.Random) -> None:
        self.devices, self.kills, self.dice = devices, kills, dice
        self.progress, self.killed = 0.0, 0
        self._alive: dict[int, ForkServerProcess] = {}

    async def run(self) -> None:
        """Start devices, kill some, and start those again, until all are done."""
        waiting = list(reversed(self.devices))
        while waiting or self._alive:
            self._reap(waiting)
            while waiting and len(self._alive) < _MOST_ALIVE and self._may_begin(waiting[-1]):
                device = waiting.pop()
                process = PROCESSES.Process(target=device.run)
                process.start()
                self._alive[device.number] = process
            if self._alive and self.killed < self.progress * self.kills:
                self._alive[self.dice.choice(list(self._alive))].kill()
                self.killed += 1
            await asyncio.sleep(_PAUSE * self.dice.random())

    def _may_begin(self, device: Device) -> bool:
        return self.progress * len(self.devices) >= device.number or device.place.exists()

    def _reap(self, waiting: list[Device]) -> None:
        for number, process in list(self._alive.items()):
            if not process.is_alive():
                process.join()
                del self._alive[number]
                if not self.devices[number].is_done:
                    waiting.append(self.devices[number])


def run_chain(folder: Path, *, clients: int, kills: int, seed: int) -> Chain:
    """Run all of it once, with so many kills of each process."""
    began = time.monotonic()
    dice = random.Random(seed)
    office = Office.open(folder, QUESTION, batch=_BATCH, people=clients)
    parts = office.parts()
    start(parts)
    (folder / "devices").mkdir()
    devices = [
        Device(
            number,
            code,
            office.signed.announcement.tokens,
            parts["issue"].port,
            parts["shuffle"].port,
            folder / "devices",
        )
        for number, code in enumerate(office.codes)
    ]
    crowd = _Crowd(devices, kills, dice)

    async def torment(part: Part) -> None:
        """Kill a process so often, each time at a random moment after it has come up."""
        for _ in range(kills):
            while not await asyncio.to_thread(lambda: part.is_up):
                await asyncio.sleep(_PAUSE)
            await asyncio.sleep(dice.expovariate(1.0))
            await asyncio.to_thread(part.kill)
            part.start()
            crowd.progress += 1 / (kills * len(parts))

    async def run() -> None:
        devices = asyncio.create_task(crowd.run())
        await asyncio.gather(*map(torment, parts.values()))
        crowd.progress = 2.0
        await devices
        await asyncio.sleep(8)  # for batches that are on their way

    asyncio.run(run())
    for each in parts.values():
        each.stop()
    chain = _count(folder, crowd, kills)
    chain.seconds = round(time.monotonic() - began, 1)
    return chain


def _count(folder: Path, crowd: _Crowd, kills: int) -> Chain:
    collected, waiting = open_store(str(folder / "reports.db")), open_store(str(folder / "shuffler.db"))
    sums, rest = recount(collected, 1, QUESTION).sums, recount(waiting, 1, QUESTION).sums
    sizes = {
        int(kind.removeprefix("batch-")): count
        for (_, kind), count in collected.events().items()
        if kind.startswith("batch-")
    }
    states = [each.state() for each in crowd.devices]
    known = np.zeros(len(sums), np.bool_)
    known[[i for i, state in enumerate(states) if "acknowledged" in state]] = True
    return Chain(
        clients=len(states),
        kills=kills,
        batch=_BATCH,
        acknowledged=int(known.sum()),
        killed_devices=crowd.killed,
        sent_again=sum(int(state.get("again", 0)) for state in states),
        tokens=CodeStore(folder / "codes.db").used,
        collected=int(sums.sum()),
        at_the_shuffler=int(rest.sum()),
        batches=sum(sizes.values()),
        smallest_batch=min(sizes, default=0),
        twice=int(((sums + rest) > 1).sum()),
        unknown=int(((sums + rest > 0) & ~known).sum()),
        lost=int(((sums + rest == 0) & known).sum()),
        spent_twice=sum(state.get("fraud", "409") != "409" for state in states),
    )


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--clients", type=int, default=1000)
    reader.add_argument("--kills", type=int, default=50)
    reader.add_argument("--seed", type=int, default=1)
    asked = reader.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        chain = run_chain(Path(folder), clients=asked.clients, kills=asked.kills, seed=asked.seed)
    print(json.dumps(asdict(chain), indent=1))


if __name__ == "__main__":
    main()
