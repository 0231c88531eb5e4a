"""Servers and databases killed at random moments while reports come in: each acknowledged one counts once.

Every report is a number of its own, so that after all kills the counts tell which came in, and how often.
Whatever is not acknowledged is sent again under the same id, as browsers do.
"""

import asyncio
import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from benchmarks.collect.load import announced, request, start
from sourdine.collector.blocks import recount
from sourdine.collector.settings import CollectorSettings, open_store
from sourdine.local import GRR, Question
from sourdine.local.lines import written

QUESTION = Question(name="numbers", oracle=GRR(epsilon=1, categories=1 << 22))
_SENDERS = 8


@dataclass
class _Work:
    """What senders share: the next number, what was acknowledged, and whether to go on."""

    next: int = 0
    acknowledged: set[int] = field(default_factory=set)
    doubtful: int = 0
    goes_on: bool = True


@dataclass(frozen=True)
class Torment:
    """What was left after so many kills."""

    kills: int
    acknowledged: int
    sent_again: int
    lost: int
    twice: int
    unknown: int


async def _sender(port: int, work: _Work, dice: random.Random) -> None:
    while work.goes_on:
        count = dice.choice((1, 1, 1, 20))
        numbers = range(work.next, work.next + count)
        work.next += count
        rows = QUESTION.oracle.pack(np.arange(numbers.start, numbers.stop))
        message = request(QUESTION, written(QUESTION.fingerprint, rows), secrets.token_hex(16))
        while not await _stored(port, message):
            work.doubtful += 1
            await asyncio.sleep(0.05)
        work.acknowledged.update(numbers)


async def _stored(port: int, message: bytes) -> bool:
    try:
        async with asyncio.timeout(10):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(message)
                head = await reader.readuntil(b"\r\n")
            finally:
                writer.close()
            return head.startswith((b"HTTP/1.1 201", b"HTTP/1.1 200"))
    except (OSError, asyncio.IncompleteReadError, TimeoutError):
        return False


def torment(
    place: str, kills: int, seed: int, *, workers: int = 1, kill_database: Callable[[], None] | None = None
) -> Torment:
    """Kill the server, or in turn with it the database, at random moments, and count what is left."""
    store = open_store(place)
    number = store.register(announced(QUESTION))
    store.close()
    settings = CollectorSettings(store=place, rate=0)
    work, dice = _Work(), random.Random(seed)
    served = start(settings, workers)
    port = served.port

    async def run() -> None:
        nonlocal served
        senders = [
            asyncio.create_task(_sender(port, work, random.Random(dice.random()))) for _ in range(_SENDERS)
        ]
        for kill in range(kills):
            await asyncio.sleep(dice.uniform(0.01, 0.5))
            if kill_database is not None and kill % 2:
                await asyncio.to_thread(kill_database)
            else:
                await asyncio.to_thread(served.kill)
                served = await asyncio.to_thread(start, settings, workers, port)
        work.goes_on = False
        await asyncio.gather(*senders)

    asyncio.run(run())
    time.sleep(0.1)
    served.stop()
    store = open_store(place)
    sums = recount(store, number, QUESTION).sums
    store.close()
    known = np.zeros(len(sums), np.bool_)
    known[list(work.acknowledged)] = True
    return Torment(
        kills,
        int(known.sum()),
        work.doubtful,
        int((sums[known] == 0).sum()),
        int((sums > 1).sum()),
        int(((sums > 0) & ~known).sum()),
    )
