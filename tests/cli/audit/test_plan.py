import dataclasses
import json
from pathlib import Path

import pytest

from sourdine.audit.plans.engines import ENGINES
from tests.cli.table_case import Case, build, run
from tests.faults import FAULTS


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return build(tmp_path)


def test_a_specification_is_replayed_without_its_table(case: Case) -> None:
    (case.folder / "people.csv").unlink()
    code, out, err = run("audit", "plan", case.spec, "--pairs", "40", "--engine", "duckdb")
    assert (code, err) == (0, "")
    flat = " ".join(out.split())
    assert "0 violations." in flat
    assert "In each pair one person comes or goes." in flat
    assert "Engines: duckdb (40 pairs)." in flat
    assert out.count("not refuted") == 3  # the queries, and data quality
    assert "1.00" in out
    assert case.spent() == "0"


@pytest.mark.slow
def test_json_has_the_same_and_more(case: Case) -> None:
    given = ("audit", "plan", case.spec, "--pairs", "30", "--engine", "csv", "--engine", "duckdb", "--json")
    code, out, _ = run(*given)
    found = json.loads(out)
    assert code == 0
    assert found["engines"] == {"csv": 30, "duckdb": 30}
    assert (found["unit"], found["neighbours"], found["good"]) == ("person", "add-remove", True)
    count, mean, quality = found["lines"]
    assert (count["query"], count["norm"], count["declared"]) == ("people", "L1", "1")
    assert mean["declared"] == "120"
    assert (quality["statistic"], quality["declared"], quality["ratio"]) == ("data quality", "2", 1.0)
    assert 0 < count["moved"] <= count["pairs"] <= 60
    assert json.loads(run(*given)[1]) == found  # the same seed


def test_a_violation_is_told_with_how_to_see_it_again(case: Case) -> None:
    fault = next(each for each in FAULTS if each.name == "numbers are not clamped")
    given = ("audit", "plan", case.spec, "--engine", "duckdb", "--seed", "7", "--pairs")
    with fault.planted():
        code, out, _ = run(*given, "150")
        found = json.loads(run(*given, "150", "--json")[1])
    assert code == 1
    assert "VIOLATED" in out
    assert "farther than is paid for (declared 120, seen" in " ".join(out.split())
    first = found["violations"][0]
    assert (first["query"], first["seed"], found["good"]) == ("ages", 7, False)
    with fault.planted():
        again = json.loads(run(*given, str(first["pair"]), "--json")[1])
    assert first in again["violations"]


def test_it_says_what_it_needs(case: Case) -> None:
    assert run("audit", "plan")[0] == 2
    code, _, err = run("audit", "plan", case.spec, "--engine", "abacus")
    assert code == 2
    assert "must be among duckdb" in err


def test_an_audit_on_no_engine_is_no_success(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = dataclasses.replace(ENGINES["arrow"], needs=("no_such_package",))
    monkeypatch.setitem(ENGINES, "arrow", gone)
    code, _, err = run("audit", "plan", case.spec, "--engine", "arrow")
    assert code == 2
    assert "Nothing was replayed. Left out: arrow, since no_such_package is not installed." in err
