"""Ledgers on both sides of a fork, with threads."""

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from sourdine.accounting import Spend
from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.gate import GATE, Gate
from sourdine.core.distance import Distance
from sourdine.core.errors import BudgetExceeded, LedgerError
from sourdine.mechanisms import Geometric
from tests.campaigns.ledger.crash import new_ledger

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
SPEND = Spend(mechanism=Geometric(scale=100), distance=Distance.l1(1))
ROOT = Path(__file__).parents[3]
_OPENER = """
import sys
from sourdine.accounting.ledger import Ledger
from sourdine.accounting.spend import Spend
from sourdine.core.distance import Distance
from sourdine.core.errors import BudgetExceeded
from sourdine.mechanisms import Geometric
SPEND = Spend(mechanism=Geometric(scale=100), distance=Distance.l1(1))
done = 0
try:
    while True:
        with Ledger.open(sys.argv[1]) as ledger:
            ledger.charge(SPEND, purpose="another process")
            done += 1
except BudgetExceeded:
    print(done)
"""


_EXECUTOR = """
import os, threading, time
from sourdine.accounting.ledger.gate import GATE
from concurrent.futures import ThreadPoolExecutor
inside = threading.Event()
def work():
    with GATE.inside():
        inside.set()
        time.sleep(0.5)  # until the other thread waits to fork
        with ThreadPoolExecutor(1) as pool:
            pool.submit(int).result()
thread = threading.Thread(target=work, daemon=True)
thread.start()
inside.wait()
if not (child := os.fork()):
    os._exit(0)
os.waitpid(child, 0)
thread.join()
print("done")
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "survey.ledger"


def spend_all(ledger: Ledger, told: "multiprocessing.Queue[int]") -> None:
    done = 0
    try:
        while True:
            ledger.charge(SPEND, purpose="a worker")
            done += 1
            time.sleep(0.01)
    except BudgetExceeded:
        told.put(done)


def forked(act: Callable[[], object], seconds: int = 60) -> int:
    """The exit code of an act in a child; -SIGALRM if it hangs."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(seconds)
            act()
            code = 0
        except LedgerError:
            code = 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_workers_that_inherit_a_ledger_and_others_that_open_it_never_overspend(path: Path) -> None:
    ledger = new_ledger(path, Fraction(1))
    ledger.charge(SPEND, purpose="the parent")
    context = multiprocessing.get_context("fork")
    told: multiprocessing.Queue[int] = context.Queue()
    others = [
        subprocess.Popen([sys.executable, "-c", _OPENER, path], cwd=ROOT, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    workers = [context.Process(target=spend_all, args=(ledger, told)) for _ in range(3)]
    for worker in workers:
        worker.start()
    ledger.close()  # with it, the locks that the workers would only have believed to hold
    done = 1 + sum(told.get(timeout=100) for _ in workers)
    for worker in workers:
        worker.join()
    done += sum(int(other.communicate()[0]) for other in others)
    with pytest.raises(BudgetExceeded):
        ledger.charge(SPEND, purpose="the parent")
    assert done == len(ledger.history()) == 100


def test_no_child_hangs_that_is_forked_while_a_thread_charges(path: Path) -> None:
    ledger, stop = new_ledger(path, Fraction(10**6)), threading.Event()
    done = []

    def work() -> None:
        while not stop.is_set():
            done.append(ledger.charge(SPEND, purpose="a thread").number)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    codes = [forked(lambda: ledger.charge(SPEND, purpose="a child"), seconds=30) for _ in range(10)]
    stop.set()
    for thread in threads:
        thread.join()
    assert codes == [0] * 10
    assert len(ledger.history()) == len(done) + 10


def test_nothing_is_open_across_a_fork_and_both_sides_open_it_again(path: Path) -> None:
    ledger = new_ledger(path, Fraction(1))
    ledger.charge(SPEND, purpose="the parent")
    connected = lambda: ledger._store._connection is not None
    assert connected()
    assert ledger._store in GATE.holders

    def act() -> None:
        assert not connected()
        assert not [link for link in Path("/proc/self/fd").glob("*") if str(path) in os.path.realpath(link)]
        ledger.charge(SPEND, purpose="the child")
        ledger.close()

    assert forked(act) == 0
    assert not connected()
    ledger.charge(SPEND, purpose="the parent again")
    assert [entry.purpose for entry in ledger.history()] == ["the parent", "the child", "the parent again"]


def test_a_child_that_is_forked_within_a_charge_refuses_and_the_parent_goes_on(path: Path) -> None:
    """As by a signal handler that forks: the connection cannot be closed then."""
    ledger = new_ledger(path, Fraction(1))
    codes = []

    def build(last: object) -> tuple[str, str]:
        codes.append(forked(lambda: Ledger.open(path).status()))
        return "{}", "1/100"

    ledger._store.append(build)
    assert codes == [2]
    assert ledger._store.line(1) is not None
    assert forked(ledger._store.last) == 0


def test_a_child_of_a_fork_that_python_does_not_see_refuses(path: Path) -> None:
    """No hook runs then. Without an open ledger there is nothing to fear."""
    ledger = new_ledger(path, Fraction(1))
    libc = ctypes.CDLL(None)

    def code() -> int:
        child = libc.fork()
        if child == 0:
            try:
                ledger.charge(SPEND, purpose="the child")
            except LedgerError as problem:
                os._exit(2 if "other means than Python's" in str(problem) else 3)
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert code() == 0
    ledger.charge(SPEND, purpose="the parent")
    assert code() == 2
    ledger.close()
    assert code() == 0
    assert len(ledger.history()) == 3


def test_a_fork_waits_for_those_inside_and_keeps_others_out() -> None:
    gate, order = Gate(), []
    entered, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with gate.inside():
            entered.set()
            leave.wait()
            order.append("out")

    def fork() -> None:
        gate.before_fork()
        order.append("forked")
        time.sleep(0.02)
        gate.after_fork_here()

    def come() -> None:
        with gate.inside():
            order.append("in")

    first, second, third = (threading.Thread(target=act) for act in (stay, fork, come))
    first.start()
    entered.wait()
    second.start()
    while not gate._forking:
        time.sleep(0.001)
    third.start()
    time.sleep(0.02)
    assert order == []
    leave.set()
    for thread in (first, second, third):
        thread.join()
    assert order == ["out", "forked", "in"]


def test_two_threads_fork_one_after_the_other() -> None:
    gate, inside = Gate(), []

    def fork() -> None:
        gate.before_fork()
        inside.append(1)
        assert len(inside) == 1
        time.sleep(0.002)
        inside.clear()
        gate.after_fork_here()

    threads = [threading.Thread(target=fork) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with gate.inside(), gate.inside():
        pass
    assert not gate._inside


def test_a_thread_inside_may_start_an_executor_while_another_waits_to_fork() -> None:
    told = subprocess.run(
        [sys.executable, "-c", _EXECUTOR], check=False, capture_output=True, text=True, timeout=60
    )
    assert told.stdout == "done\n", told.stderr


def test_a_signal_handler_that_charges_within_a_charge_is_refused(path: Path) -> None:
    ledger = new_ledger(path, Fraction(1))

    def build(last: object) -> tuple[str, str]:
        with pytest.raises(LedgerError, match="signal handler"):
            ledger.charge(SPEND, purpose="within")
        return "{}", "1/100"

    ledger._store.append(build)
    assert ledger._store.line(2) is None
