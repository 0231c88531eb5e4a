"""Charges a second on a PostgreSQL server, beside a bare INSERT and COMMIT of the same lines.

Both have the same number of writers, each a process with a connection of its own, and take turns, a stretch
each. The bare side has a table without a chain, so its writers wait for nobody but the disk, together.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from time import perf_counter

from benchmarks.servers import Server
from sourdine.accounting.ledger import Ledger
from tests.campaigns.ledger.crash import new_ledger, one_spend

_CONTENT = "x" * 400  # about as long as a line of a ledger


@dataclass(frozen=True)
class Rates:
    """Charges a second by so many writers, and bare inserts a second by as many."""

    writers: int
    ledger: float
    bare: float


def measure(server: Server, writers: int, *, stretches: int, each: int) -> Rates:
    """Let charges and bare inserts take turns, `each` of both in a stretch."""
    address = server.new()
    new_ledger(address, Fraction(10**6)).close()
    server.execute(
        "CREATE TABLE IF NOT EXISTS bare (number bigserial PRIMARY KEY, content text, total text, mark text)"
    )
    ours = theirs = 0.0
    for _ in range(stretches):
        ours += _seconds(writers, each, lambda: _charge(address))
        theirs += _seconds(writers, each, lambda: _insert(server.address))
    number = stretches * (each // writers) * writers
    return Rates(writers, number / ours, number / theirs)


def _charge(address: str) -> Callable[[], object]:
    ledger, spend = Ledger.open(address), one_spend()
    return lambda: ledger.charge(spend, purpose="speed")


def _insert(address: str) -> Callable[[], object]:
    import psycopg

    connection = psycopg.connect(address)
    row = (_CONTENT, "1/1000", "0" * 64)

    def insert() -> None:
        connection.execute("INSERT INTO bare (content, total, mark) VALUES (%s, %s, %s)", row)
        connection.commit()

    return insert


def _seconds(writers: int, each: int, make: Callable[[], Callable[[], object]]) -> float:
    """How long so many processes take together, from when all are ready."""
    begin, ready = os.pipe(), os.pipe()
    children = [_fork(begin, ready, each // writers, make) for _ in range(writers)]
    os.close(begin[0])
    for _ in children:
        os.read(ready[0], 1)
    start = perf_counter()
    os.close(begin[1])  # which all wait for
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    seconds = perf_counter() - start
    os.close(ready[0])
    os.close(ready[1])
    return seconds


def _fork(
    begin: tuple[int, int], ready: tuple[int, int], each: int, make: Callable[[], Callable[[], object]]
) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.close(begin[1])
        act = make()
        act()
        os.write(ready[1], b"x")
        os.read(begin[0], 1)
        for _ in range(each):
            act()
        code = 0
    finally:
        os._exit(code)
