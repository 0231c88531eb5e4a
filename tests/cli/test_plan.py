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
    assert "A plan at epsilon 0.5. No record was read, nothing spent." in out
    assert "Laplace, scale 4.211" in out  # 19/40 of 0.5 for counts that one person changes by 1
    assert "47.5 %" in out
    assert "± 13 people" in out
    # two columns, which one person changes by 1 each, and a twentieth of 0.5
    assert "Laplace, scale 80 records" in out
    assert "5 %" in out
    flat = " ".join(out.split())
    assert "It costs epsilon 0.5 for each person." in flat
    assert "has 1 left, and 0.5 after it." in flat
    assert "people.csv yet. A plan does without it, a release needs it." in flat
    assert case.spent() == "0"


def test_json_has_the_same(case: Case) -> None:
    found = json.loads(run("plan", case.spec, "--json")[1])
    assert found["epsilon"] == "1/2"
    held = {"currency": "epsilon", "price": "1/2", "left": "1", "left_after": "1/2", "delta": "0"}
    assert found["ledger"] == held
    count, mean = found["forecasts"]
    assert (count["query"], count["share"], count["measure"]) == ("people", "19/40", "people")
    # discrete Laplace noise of scale 80/19: P[|X| > k] = 2 a^(k+1) / (1 + a), with a = exp(-19/80)
    a = math.exp(-19 / 80)
    least = next(k for k in range(100) if 2 * a ** (k + 1) / (1 + a) <= 0.05)
    assert count["error"] == least
    assert mean["measure"] == "age"
    assert "made_up" not in found


def test_a_plan_that_is_too_dear_is_told(case: Case) -> None:
    case.change("epsilon = 0.5", "epsilon = 2")
    code, out, err = run("plan", case.spec)
    assert code == 2
    assert "mean of age" in out  # its errors are worth knowing all the same
    assert "would refuse it" in " ".join(out.split())
    assert err.startswith("The charge needs epsilon 2 and the budget has 1 left. Nothing was spent. Ask")
    assert err.count("\n") == 1
    code, out, told = run("plan", case.spec, "--json")
    assert (code, told) == (2, err)
    assert json.loads(out)["refusal"] == err.strip()
    assert json.loads(out)["ledger"]["left_after"] is None
    assert run("release", case.spec, "-o", case.folder / "out") == (2, "", err)
    assert case.spent() == "0"


def test_a_limit_for_a_period_counts(case: Case) -> None:
    case.change("people.ledger", "monthly.ledger")
    place = case.folder / "monthly.ledger"
    run("ledger", "create", place, "--epsilon", "5", "--period", "month", "--period-limit", "0.25")
    found = json.loads(run("plan", case.spec, "--json")[1])["ledger"]
    assert (found["left"], found["left_after"]) == ("1/4", None)


def test_without_a_ledger_it_says_how_to_make_one(case: Case) -> None:
    case.change("people.ledger", "later.ledger")
    code, out, _ = run("plan", case.spec)
    assert code == 0
    assert f"sourdine ledger create {case.folder / 'later.ledger'} --epsilon 0.5 --unit person" in out
    case.change('ledger = "later.ledger"', "")
    assert "names no ledger" in run("plan", case.spec)[1]


def test_an_error_finds_the_least_epsilon(case: Case) -> None:
    found = json.loads(run("plan", case.spec, "--error", "people=5", "--json")[1])
    (count,) = (each for each in found["forecasts"] if each["query"] == "people")
    assert count["error"] <= 5
    scale = Fraction(40, 19) / Fraction(found["epsilon"])  # 19/40 of epsilon pay for the counts
    a, less = math.exp(-1 / scale), math.exp(-1 / (scale * Fraction(1001, 1000)))
    assert 2 * a**6 / (1 + a) <= 0.05 < 2 * less**6 / (1 + less)
    out = " ".join(run("plan", case.spec, "--error", "people=5")[1].split())
    assert "reaches an error of 5 people for the count in 'people'. No record" in out


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("people", "joined by '='"),
        ("=5", "joined by '='"),
        ("people=many", "must be a finite number"),
        ("people=-1", "must lie between"),
        ("nothing=5", "There is no query 'nothing'"),
        ("people:mean=5", "has no statistic 'mean'. It asks for 'count'."),
        ("people=5%", "is counted in people, not in per cent"),
    ],
)
def test_an_error_that_is_none_is_refused(case: Case, target: str, words: str) -> None:
    code, out, err = run("plan", case.spec, "--error", target)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_a_dry_run_is_marked_as_made_up_and_costs_nothing(case: Case) -> None:
    (case.folder / "people.csv").unlink()
    code, out, _ = run("plan", case.spec, "--dry-run")
    assert code == 0
    before, after = out.split("MADE UP:")
    assert "lower" not in before
    assert "lower" in after
    assert after.rstrip().endswith("MADE UP, as said above.")
    assert case.spent() == "0"
    found = json.loads(run("plan", case.spec, "--dry-run", "--json")[1])
    assert [row["query"] for row in found["made_up"]["rows"]] == ["people", "people", "ages"]


def test_a_mistake_in_the_specification_is_told(case: Case) -> None:
    case.change("[columns.age]", "[columns.age")
    code, out, err = run("plan", case.spec)
    assert (code, out) == (2, "")
    assert "not valid TOML" in err


def test_an_error_may_be_for_one_statistic_and_the_one_that_decides_is_named(case: Case) -> None:
    case.change('{ mean = "age" }', '"count", { mean = "age" }, { proportion = "age", below = 40 }')
    whole = " ".join(run("plan", case.spec, "--error", "ages=20")[1].split())
    assert "reaches an error of 20 people for the count in 'ages', the largest of its errors." in whole
    one = json.loads(run("plan", case.spec, "--error", "ages:mean of age=20", "--json")[1])
    both = json.loads(run("plan", case.spec, "--error", "ages=20", "--json")[1])
    assert Fraction(one["epsilon"]) < Fraction(both["epsilon"])
    (mean,) = (each for each in one["forecasts"] if each["statistic"] == "mean of age")
    assert 19 < mean["error"] <= 20
    for written in ("4", "4%"):
        target = f"ages:proportion with age below 40={written}"
        share = " ".join(run("plan", case.spec, "--error", target)[1].split())
        assert "reaches an error of 4 percentage points for the proportion with age below 40" in share


def test_the_ledger_that_is_proposed_can_pay_for_the_error(case: Case) -> None:
    case.change("people.ledger", "later.ledger")
    out = run("plan", case.spec, "--error", "people=5")[1]
    found = json.loads(run("plan", case.spec, "--error", "people=5", "--json")[1])
    assert f"--epsilon {float(Fraction(found['epsilon'])):g} " in out
    assert "--epsilon 0.5" not in out


def test_a_delta_above_one_divided_by_the_size_is_a_warning(case: Case) -> None:
    case.change('ledger = "people.ledger"', "delta = 0.01")
    out = " ".join(run("plan", case.spec)[1].split())
    assert "WARNING: The delta of 0.01 is above 1 divided by the declared size of 300" in out
    case.change("delta = 0.01", "delta = 1e-6")
    assert "WARNING" not in run("plan", case.spec)[1]
    assert json.loads(run("plan", case.spec, "--json")[1])["warning"] is None


def test_a_table_is_not_taken_for_a_specification(case: Case) -> None:
    code, out, err = run("plan", case.folder / "people.csv")
    assert (code, out) == (2, "")
    assert (
        f"is a table, not a specification. Write a specification for it with: sourdine init {case.folder}"
        in err
    )


def test_all_blanks_are_named_at_once(case: Case) -> None:
    case.change("lower = 0\nupper = 120", 'lower = "FILL IN"\nupper = "FILL IN"')
    case.change('["f", "m"]', '["FILL IN"]')
    _, _, err = run("plan", case.spec)
    assert "The fields 'columns.age.lower', 'columns.age.upper' and 'columns.sex.keys' of" in err


@pytest.mark.parametrize("width", [60, 200])
def test_tables_are_as_wide_as_columns_says(case: Case, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = [line for line in run("plan", case.spec)[1].splitlines() if "│" in line or "━" in line]
    assert lines
    assert max(map(len, lines)) <= width
    assert (max(map(len, lines)) > 60) == (width == 200)


def test_keys_chosen_privately_are_told_and_paid_from_a_selection_delta(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("town\n" + "here\n" * 99 + "there\n")
    spec = tmp_path / "t.toml"
    spec.write_text(
        '[table]\nsource = "t.csv"\n[privacy]\nunit = "person"\nepsilon = 9\ndelta = 1e-6\nledger = "l"\n'
        '[columns.town]\ntype = "text"\n[[queries]]\nname = "towns"\nask = ["count"]\nby = ["town"]\n'
    )
    advice = run("plan", spec)[1].splitlines()[-1]
    assert "--epsilon 9 --selection-delta 1e-6" in advice
    _, _, command = advice.partition("make it with: sourdine ")
    assert run(*command.split())[0] == 0
    code, out, _ = run("plan", spec)
    told = " ".join(out.split())
    assert code == 0
    assert "keys of town" in told
    assert "of the 1e-6 of its selection delta" in told
    assert json.loads(run("plan", spec, "--json")[1])["ledger"]["delta"] != "0"
    code, out, _ = run("release", spec, "-o", tmp_path / "out", "--no-report")
    assert code == 0
    assert "here" in out
    assert "there" not in (tmp_path / "out" / "answers.csv").read_text()


JOIN = """
[joins.regions]
file = "regions.csv"
on = { sex = "key" }
columns = ["region"]

[columns.region]
type = "category"
keys = ["north"]
"""


def test_public_files_that_a_release_will_read_are_looked_for(case: Case) -> None:
    case.change('[[queries]]\nname = "people"', JOIN + '\n[[queries]]\nname = "people"')
    code, out, err = run("plan", case.spec)
    assert (code, out) == (2, "")
    assert "The join 'regions' cannot be made. The file" in err
    public = case.folder / "regions.csv"
    for header, missing in (("code,region", "key"), ("key,land", "region")):
        public.write_text(f"{header}\nf,north\n")
        code, out, err = run("plan", case.spec)
        assert (code, out) == (2, "")
        assert (
            f"The join 'regions' cannot be made. The table has 2 columns, and none is called '{missing}'."
            in err
        )
    public.write_text("key,region\nf,north\n")
    assert run("plan", case.spec)[0] == 0
    public.unlink()
    code, _, err = run("release", case.spec, "-o", case.folder / "out")
    assert code == 2
    assert "does not exist" in err
    assert case.spent() == "0"


def _with_towns(case: Case, ledger: str) -> None:
    case.change('type = "category"\nkeys = ["f", "m"]', 'type = "text"')
    case.change("epsilon = 0.5", "epsilon = 0.5\ndelta = 1e-6")
    case.change("people.ledger", ledger)


def test_a_ledger_without_a_selection_delta_is_told_after_the_table(case: Case) -> None:
    _with_towns(case, "none.ledger")
    run("ledger", "create", case.folder / "none.ledger", "--epsilon", 3, "--delta", "1e-6")
    code, out, err = run("plan", case.spec)
    assert code == 2
    assert "A plan at epsilon 0.5, delta 1e-6" in out
    assert "mean of age" in out
    assert "this ledger keeps none" in err
    code, out, told = run("plan", case.spec, "--json")
    assert (code, told) == (2, err)
    assert json.loads(out)["refusal"] == err.strip()


def test_a_selection_delta_that_does_not_suffice_is_told_after_the_table(case: Case) -> None:
    _with_towns(case, "small.ledger")
    place = case.folder / "small.ledger"
    run("ledger", "create", place, "--epsilon", 3, "--delta", "1e-6", "--selection-delta", "1e-8")
    code, out, err = run("plan", case.spec)
    assert code == 2
    assert "the selection delta has 1e-8 left. Nothing was spent. Choose them at a smaller delta" in err
    flat = " ".join(out.split())
    assert "mean of age" in flat
    assert "left, and would refuse it. Choosing keys takes" in flat
    assert flat.endswith("The selection delta does not suffice.")
    assert json.loads(run("plan", case.spec, "--json")[1])["ledger"]["left_after"] is None


def test_what_a_release_would_refuse_of_the_table_a_plan_refuses(case: Case) -> None:
    case.change("[columns.age]", "[columns.height]\ntype = 'flag'\n[columns.age]")
    code, out, err = run("plan", case.spec)
    assert (code, out) == (2, "")
    assert "The table has 2 columns, and none is called 'height'." in err
    assert run("release", case.spec, "-o", case.folder / "out") == (2, "", err)
    (case.folder / "people.csv").unlink()
    code, out, err = run("plan", case.spec)
    assert (code, err) == (0, "")
    assert "So the names and types of its columns were not looked at." in " ".join(out.split())
    assert json.loads(run("plan", case.spec, "--json")[1])["table_seen"] is False


def test_a_backup_pays_for_no_plan(case: Case) -> None:
    assert run("ledger", "backup", case.ledger, case.folder / "kept.ledger")[0] == 0
    case.change("people.ledger", "kept.ledger")
    code, out, err = run("plan", case.spec)
    assert code == 2
    assert "mean of age" in out
    assert "is a backup, and a backup pays for nothing." in err
    assert run("release", case.spec, "-o", case.folder / "out") == (2, "", err)


@pytest.mark.parametrize("there", [True, False])
def test_public_keys_that_repeat_are_found_without_the_table(case: Case, there: bool) -> None:
    case.change('[[queries]]\nname = "people"', JOIN + '\n[[queries]]\nname = "people"')
    (case.folder / "regions.csv").write_text("key,region\nf,Zembla\nf,Zembla\n")
    if not there:
        (case.folder / "people.csv").unlink()
    code, out, err = run("plan", case.spec)
    assert (code, out) == (2, "")
    assert "The join 'regions' cannot be made. Rows 1 and 2 of its public table have the same 'key'." in err
    assert "Zembla" not in err


@pytest.mark.parametrize("source", ["people.xlsx", "people.toml", "people.parquet.gz"])
def test_a_table_of_an_unknown_kind_is_refused_before_it_is_there(case: Case, source: str) -> None:
    case.change("people.csv", source)
    code, out, err = run("plan", case.spec)
    assert (code, out) == (2, "")
    assert run("release", case.spec, "-o", case.folder / "out") == (2, "", err)
