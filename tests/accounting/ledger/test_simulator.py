"""Seeded schedules of processes, threads, faults and losses, against a model of what was acknowledged."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.accounting.ledger.simulator.mends import FOUND_IN, MENDS, ON_SERVER

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are watched as Linux has them")


def run(module: str, *words: object) -> tuple[int, str]:
    command = [sys.executable, "-m", f"tests.accounting.ledger.simulator{module}", *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 3:
        pytest.skip("SQLite's library cannot be watched here")
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_schedules_keep_every_acknowledged_charge(count: int) -> None:
    assert run("", 0, count) == (0, f"{count} schedules, 0 faults\n")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(50))
def test_a_hundred_thousand_schedules_keep_every_acknowledged_charge(part: int) -> None:
    assert run("", 10**6 + 2000 * part, 2000) == (0, "2000 schedules, 0 faults\n")


@pytest.mark.slow
@pytest.mark.parametrize("mend", sorted(FOUND_IN))
def test_each_mend_is_missed_when_it_is_taken_out(mend: str) -> None:
    code, told = run("", 0, 500, "--style", FOUND_IN[mend], "--patience", 10, "--without", mend)
    assert code == 1, told
    assert "seed " in told


@pytest.mark.parametrize("count", [10, pytest.param(1000, marks=pytest.mark.slow)])
def test_the_same_schedules_on_a_server_keep_every_acknowledged_charge(count: int) -> None:
    pytest.importorskip("psycopg")
    assert run("", 0, count, "--server") == (0, f"{count} schedules, 0 faults\n")


@pytest.mark.slow
@pytest.mark.parametrize("mend", sorted(ON_SERVER))
def test_each_mend_of_a_server_is_missed_when_it_is_taken_out(mend: str) -> None:
    pytest.importorskip("psycopg")
    code, told = run("", 0, 300, "--style", ON_SERVER[mend], "--without", mend, "--server")
    assert code == 1, told
    assert "seed " in told


def test_every_mend_can_be_taken_out() -> None:
    assert set(MENDS) == {"", *FOUND_IN, *ON_SERVER}


@pytest.mark.slow
def test_a_schedule_is_the_same_each_time() -> None:
    first, second = (run("", 11, 3, "--show") for _ in range(2))
    assert first == second
    assert "paid line" in first[1]


def test_what_is_said_of_a_charge_that_meets_a_fault_is_so() -> None:
    """Each fault at each act of one charge, for once and from there on, and then a power loss."""
    code, told = run(".each_fault")
    found = json.loads(told)
    assert (code, found["wrong"]) == (0, [])
    assert {"write", "sync", "delete", "open"} <= set(found["acts"])
    assert found["said"]["Nothing was spent"] > 50
    assert found["said"]["counts as spent"] > 0
    assert found["said"]["not known"] > 0
