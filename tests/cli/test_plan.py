import json
import math
from fractions import Fraction
from pathlib import Path

import pytest

from tests.cli.table_case import Case, build, run


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return build(tmp_path)


def test_it_tells_errors_costs_and_what_is_left_without_the_table(case: Case) -> None:
    (case.folder / "people.csv").unlink()
    code, out, err = run("plan", case.spec)
    assert (code, err) == (0, "")
    assert "A plan at epsilon 0.5. Nothing was read or spent." in out
    assert "Laplace, scale 4" in out  # half of 0.5 for counts that one person changes by 1
    assert "50 %" in out
    assert "± 12 people" in out
    flat = " ".join(out.split())
    assert "It costs epsilon 1/2 for each person." in flat
    assert "has 1 left, and 1/2 after it." in flat
    assert case.spent() == "0"


def test_json_has_the_same(case: Case) -> None:
    found = json.loads(run("plan", case.spec, "--json")[1])
    assert found["epsilon"] == "1/2"
    assert found["ledger"] == {"currency": "epsilon", "price": "1/2", "left": "1", "left_after": "1/2"}
    count, mean = found["forecasts"]
    assert (count["query"], count["share"], count["measure"]) == ("people", "1/2", "people")
    # discrete Laplace noise of scale 4: P[|X| > k] = 2 a^(k+1) / (1 + a), with a = exp(-1/4)
    a = math.exp(-1 / 4)
    least = next(k for k in range(100) if 2 * a ** (k + 1) / (1 + a) <= 0.05)
    assert count["error"] == least
    assert mean["measure"] == "age"
    assert "made_up" not in found


def test_a_plan_that_is_too_dear_is_told(case: Case) -> None:
    case.change("epsilon = 0.5", "epsilon = 2")
    code, out, _ = run("plan", case.spec)
    assert code == 0
    assert "would refuse it" in " ".join(out.split())
    assert json.loads(run("plan", case.spec, "--json")[1])["ledger"]["left_after"] is None


def test_a_limit_for_a_period_counts(case: Case) -> None:
    case.change("people.ledger", "monthly.ledger")
    place = case.folder / "monthly.ledger"
    run("ledger", "create", place, "--epsilon", "5", "--each", "month", "--limit", "0.25")
    found = json.loads(run("plan", case.spec, "--json")[1])["ledger"]
    assert (found["left"], found["left_after"]) == ("1/4", None)


def test_without_a_ledger_it_says_how_to_make_one(case: Case) -> None:
    case.change("people.ledger", "later.ledger")
    code, out, _ = run("plan", case.spec)
    assert code == 0
    assert f"sourdine ledger create {case.folder / 'later.ledger'} --epsilon 0.5 --unit person" in out
    case.change('ledger = "later.ledger"', "")
    assert "names no ledger" in run("plan", case.spec)[1]


def test_a_target_finds_the_least_epsilon(case: Case) -> None:
    found = json.loads(run("plan", case.spec, "--target", "people=5", "--json")[1])
    (count,) = (each for each in found["forecasts"] if each["query"] == "people")
    assert count["error"] <= 5
    scale = 2 / Fraction(found["epsilon"])  # half of epsilon pays for the counts
    a, less = math.exp(-1 / scale), math.exp(-1 / (scale * Fraction(1001, 1000)))
    assert 2 * a**6 / (1 + a) <= 0.05 < 2 * less**6 / (1 + less)
    assert "reaches people=5" in run("plan", case.spec, "--target", "people=5")[1]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("people", "joined by '='"),
        ("=5", "joined by '='"),
        ("people=many", "must be a finite number"),
        ("people=-1", "must lie between"),
        ("nothing=5", "There is no query 'nothing'"),
    ],
)
def test_a_target_that_is_none_is_refused(case: Case, target: str, words: str) -> None:
    code, out, err = run("plan", case.spec, "--target", target)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_a_dry_run_is_marked_as_made_up_and_costs_nothing(case: Case) -> None:
    (case.folder / "people.csv").unlink()
    code, out, _ = run("plan", case.spec, "--dry-run")
    assert code == 0
    before, after = out.split("MADE UP:")
    assert "at least" not in before
    assert "at least" in after
    assert after.rstrip().endswith("MADE UP, as said above.")
    assert case.spent() == "0"
    found = json.loads(run("plan", case.spec, "--dry-run", "--json")[1])
    assert [row["query"] for row in found["made_up"]["rows"]] == ["people", "people", "ages"]


def test_a_mistake_in_the_specification_is_told(case: Case) -> None:
    case.change("[columns.age]", "[columns.age")
    code, out, err = run("plan", case.spec)
    assert (code, out) == (2, "")
    assert "not valid TOML" in err
