import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks.finding import findings
from benchmarks.growth.cases import TASKS, Case, cases, write_table
from benchmarks.growth.findings import show
from benchmarks.growth.measure import opened, plain, private


def told(*results: dict[str, Any]) -> list[tuple[str, str]]:
    console = Console(file=io.StringIO(), width=200)
    show(results, console)
    assert isinstance(console.file, io.StringIO)
    return findings(console.file.getvalue())


def result(case: Case, before: float, ours: float) -> dict[str, Any]:
    sides = {"plain": (before, 10**8), "private": (ours, 2 * 10**8)}
    return {
        **case.asked(),
        **{
            name: {"seconds": seconds, "processor": seconds, "bytes": size}
            for name, (seconds, size) in sides.items()
        },
    }


def test_sizes_go_from_small_to_large() -> None:
    """Rows from 10^3 to 10^8, declared and private keys from 10 to 10^7, groups up to 10^5."""
    held = list(cases(quick=False))
    assert {case.task for case in held} == TASKS.keys()
    assert {case.rows for case in held if case.task == "rows"} == {10**power for power in range(3, 9)}
    for task in ("declared", "private"):
        assert {case.keys for case in held if case.task == task} == {10**power for power in range(1, 8)}
    assert max(case.keys for case in held if case.task == "deciles") == 10**5
    assert max(case.rows for case in cases(quick=True)) == 10**6


def test_targets_are_judged_by_the_ratio_or_by_seconds() -> None:
    keys = Case(task="declared", rows=10**7, keys=10**6)
    small = Case(task="small", rows=10**3, keys=10)
    first = Case(task="first", rows=10**3, keys=10, engine="csv")
    marks = [
        mark for mark, _ in told(result(keys, 1, 2.9), result(small, 0.1, 0.24), result(first, 0.1, 0.39))
    ]
    assert marks.count("met") == 3
    marks = [
        mark for mark, _ in told(result(keys, 1, 3.1), result(small, 0.1, 0.26), result(first, 0.1, 0.41))
    ]
    assert marks.count("missed") == 3


def test_a_failure_is_shown_and_not_judged() -> None:
    failed = {**result(Case(task="private", rows=10**7, keys=10**6), 1, 1), "private": {"error": "no memory"}}
    assert told(failed) == []


SMALL = {
    "rows": Case(task="rows", rows=500, keys=100),
    "small": Case(task="small", rows=500, keys=10, engine="csv"),
    "declared": Case(task="declared", rows=500, keys=20, engine="polars lazy"),
    "private": Case(task="private", rows=500, keys=5),
    "deciles": Case(task="deciles", rows=500, keys=5),
    "people": Case(task="people", rows=500, keys=100, engine="polars lazy"),
    "expressions": Case(task="expressions", rows=500, keys=4, question="pay / visits"),
    "first": Case(task="first", rows=500, keys=10, engine="csv"),
}


@pytest.mark.parametrize("task", TASKS)
def test_every_case_runs_both_ways(task: str, tmp_path: Path) -> None:
    case = SMALL[task]
    write_table(tmp_path / case.file, case)
    table = opened(case.engine, str(tmp_path / case.file))
    assert plain(table, case)() is not None
    assert private(table, case)() is not None


def test_many_keys_are_those_of_two_columns(tmp_path: Path) -> None:
    case = Case(task="declared", rows=100, keys=10**7)
    assert case.columns == ("a", "b")
    write_table(tmp_path / case.file, case)
    found = plain(str(tmp_path / case.file), case)()
    assert isinstance(found, dict)
    assert found["a"].max() < 1000
    assert found["b"].max() < 10**4
