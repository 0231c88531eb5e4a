"""How charges and looks take longer with more writers and more lines."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from time import perf_counter

from sourdine.accounting.ledger import Ledger, PureBudget, Terms
from sourdine.accounting.ledger.chain import START, LedgerLine, Mark, next_line
from sourdine.accounting.ledger.file import database
from sourdine.accounting.release import Release
from sourdine.core.distance import Neighbours
from tests.campaigns.ledger.crash import new_ledger, one_spend

_LIMIT = Fraction(10**6)


@dataclass(frozen=True)
class Long:
    """A ledger of so many lines: charges a second, and the seconds that looks take."""

    lines: int
    charges: float
    opening: float
    verifying: float
    history: float | None


def with_writers(folder: Path, writers: int, each: int) -> float:
    """Charges a second of so many processes together."""
    path = folder / f"{writers}-writers.ledger"
    new_ledger(path, _LIMIT).close()
    begin, end = os.pipe()
    children = [_fork_writer(path, begin, end, each) for _ in range(writers)]
    os.close(begin)
    start = perf_counter()
    os.close(end)  # which all wait for
    for child in children:
        os.waitpid(child, 0)
    seconds = perf_counter() - start
    with Ledger.open(path) as ledger:
        assert ledger.status().blocks == writers * each
    return writers * each / seconds


def _fork_writer(path: Path, begin: int, end: int, each: int) -> int:
    child = os.fork()
    if child:
        return child
    try:
        os.close(end)
        with Ledger.open(path) as ledger:
            spend = one_spend()
            os.read(begin, 1)
            for _ in range(each):
                ledger.charge(spend, purpose="growth")
    finally:
        os._exit(0)


def with_lines(folder: Path, lines: int, each: int) -> Long:
    """What charges and looks take in a ledger of so many lines."""
    path = folder / f"{lines}-lines.ledger"
    _make(path, lines)
    start = perf_counter()
    with Ledger.open(path) as ledger:
        ledger.status()
        opening = perf_counter() - start
        spend = one_spend()
        receipt = ledger.charge(spend, purpose="growth")
        start = perf_counter()
        for _ in range(each):
            ledger.charge(spend, purpose="growth")
        charges = each / (perf_counter() - start)
        certificate = Release(values=0, intervals=0, spends=(spend,), receipt=receipt).certificate(ledger)
        start = perf_counter()
        certificate.verify(path)
        verifying = perf_counter() - start
        history = None
        if lines <= 10**5:
            start = perf_counter()
            assert len(ledger.history()) == lines + each + 1
            history = perf_counter() - start
    path.unlink()
    return Long(lines, charges, opening, verifying, history)


def _make(path: Path, lines: int) -> None:
    """A ledger of so many lines, as if each had been charged."""
    sample = path.with_suffix(".sample")
    with new_ledger(sample, _LIMIT) as ledger:
        ledger.charge(one_spend(), purpose="growth")
        content = next(ledger._store.lines()).content
    sample.unlink()
    terms = Terms(budget=PureBudget(limit=_LIMIT), unit="person", neighbours=Neighbours.ADD_REMOVE)
    database.create(path, terms.to_json(), _lines(content, Fraction(json.loads(content)["price"]), lines))


def _lines(content: str, price: Fraction, count: int) -> Iterator[LedgerLine]:
    before = START
    for number in range(1, count + 1):
        line = next_line(before, content, str(number * price))
        before = Mark(line.number, line.fingerprint)
        yield line
