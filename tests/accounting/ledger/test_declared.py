"""Several plans paid as one block, before the first answer of any of them."""

import copy
import multiprocessing
import os
import pickle
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sourdine as sd
from sourdine.accounting import Spend
from sourdine.accounting.ledger import DeclaredBlock, Ledger
from sourdine.accounting.release import Release
from sourdine.core.distance import Distance
from sourdine.core.errors import BudgetExceeded, InvalidParameter, LedgerError, UnsupportedLoss
from sourdine.mechanisms import RoundedGaussian

MOVED = Distance.l2(1000, coordinates=1)
MEAN = Spend(mechanism=RoundedGaussian(sigma=20_000), distance=MOVED)
RUN = Spend(mechanism=RoundedGaussian(sigma=40_000), distance=MOVED, count=30)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "a.ledger", epsilon=3, delta=1e-5, composition="basic")


@pytest.fixture
def block(ledger: Ledger) -> DeclaredBlock:
    return ledger.declare(RUN, MEAN, MEAN, purpose="a training and two means")


def test_a_block_costs_less_than_its_plans_one_by_one(ledger: Ledger, block: DeclaredBlock) -> None:
    apart = ledger.price(RUN) + 2 * ledger.price(MEAN)
    assert ledger.status().spent == block.receipt.price < Fraction(3, 4) * apart


def test_each_plan_is_taken_once_and_nothing_else(ledger: Ledger, block: DeclaredBlock) -> None:
    receipts = [block.charge(spend, purpose="as declared") for spend in (MEAN, RUN, MEAN)]
    assert receipts == [block.receipt] * 3
    for more in (MEAN, RUN):
        with pytest.raises(BudgetExceeded, match="not left in the declared block"):
            block.charge(more, purpose="again")
    assert (ledger.status().blocks, ledger.status().spent) == (1, block.receipt.price)


NEARER = Spend(mechanism=MEAN.mechanism, distance=Distance.l2(1, coordinates=1))


@pytest.mark.parametrize("spends", [(), (MEAN, MEAN, MEAN), (NEARER,)])
def test_what_was_not_declared_is_refused(spends: tuple[Spend, ...], block: DeclaredBlock) -> None:
    with pytest.raises(BudgetExceeded, match="Nothing was spent"):
        block.charge(*spends, purpose="something else")
    block.charge(MEAN, MEAN, RUN, purpose="all")


def test_threads_take_each_plan_once(block: DeclaredBlock) -> None:
    taken = list[object]()

    def take() -> None:
        try:
            taken.append(block.charge(MEAN, purpose="a mean"))
        except BudgetExceeded:
            taken.append(None)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(each is not None for each in taken) == 2


def test_a_block_is_not_copied(block: DeclaredBlock) -> None:
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InvalidParameter, match="cannot be copied"):
            act(block)


def test_a_forked_child_takes_nothing(block: DeclaredBlock) -> None:
    def take(pipe: "multiprocessing.connection.Connection") -> None:
        try:
            block.charge(MEAN, purpose="a mean")
        except LedgerError as problem:
            pipe.send(str(problem))
        finally:
            pipe.close()
            os._exit(0)

    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=take, args=(theirs,))
    child.start()
    assert "belongs to the process that paid" in ours.recv()
    child.join()


def test_certificates_state_the_whole_block(ledger: Ledger, block: DeclaredBlock) -> None:
    receipt = block.charge(MEAN, purpose="a mean", secure=True)
    release = Release(values=np.zeros(1), intervals=None, spends=(MEAN,), receipt=receipt)
    stated = release.certificate(ledger)
    assert stated.spends == (RUN, MEAN, MEAN)
    assert stated.price == ledger.status().spent
    assert stated.verify(ledger) == ("secure", "declared")


def test_a_block_that_does_not_fit_is_refused_whole(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded, match="Nothing was spent"):
        ledger.declare(RUN, Spend(mechanism=RoundedGaussian(sigma=500), distance=MOVED), purpose="too much")
    with pytest.raises(UnsupportedLoss):
        Ledger.create(ledger.path.parent / "b", epsilon=1).declare(MEAN, purpose="pure")  # type: ignore[union-attr]
    assert ledger.status().blocks == 0


def test_a_table_is_released_from_a_block(tmp_path: Path) -> None:
    people = pa.table({"age": list(range(20, 60))})
    table = sd.Table(people, unit="person", columns={"age": {"type": "integer", "lower": 0, "upper": 99}})
    plans = [
        table.plan(query, epsilon=1, quality=False)
        for query in ({"name": "all", "ask": ["count"]}, {"name": "ages", "ask": [{"mean": "age"}]})
    ]
    ledger = Ledger.create(tmp_path / "b.ledger", epsilon=3, delta=1e-6, composition="basic")
    block = ledger.declare(*(spend for plan in plans for spend in plan.spends), purpose="two tables")
    for plan in plans:
        assert table.release(plan, ledger=block).receipt == block.receipt
    with pytest.raises(BudgetExceeded):
        table.release(plans[0], ledger=block)
