import csv
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sourdine.accounting import DisjointPart, Spend
from sourdine.accounting.certificate import Certificate
from sourdine.accounting.ledger import Ledger
from sourdine.accounting.release import Release
from sourdine.cli import app
from sourdine.core.distance import Distance
from sourdine.mechanisms import Geometric

COUNT = Spend(mechanism=Geometric(scale=Fraction(10)), distance=Distance.l1(1))


def run(*words: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "survey.ledger"
    assert run("ledger", "create", place, "--epsilon", "1")[0] == 0
    return place


def test_status_says_what_is_left(path: Path) -> None:
    Ledger.open(path).charge(COUNT, purpose="how many said yes", author="Ada")
    code, out, _ = run("ledger", "status", path)
    assert code == 0
    assert "0.1 (10 %) in 1 charge\n" in out
    assert "that is epsilon" not in out  # the budget is in epsilon already
    assert "Left         0.9" in out
    found = json.loads(run("ledger", "status", path, "--json")[1])
    assert (found["spent"], found["left"], found["currency"]) == ("1/10", "9/10", "epsilon")


def test_history_export_and_page_agree(path: Path, tmp_path: Path) -> None:
    for k in range(3):
        Ledger.open(path).charge(COUNT, purpose=f"count {k}", author="Ada")
    code, out, _ = run("ledger", "history", path)
    assert code == 0
    assert "3 charges replayed to epsilon 0.3" in out
    listed = json.loads(run("ledger", "history", path, "--json")[1])["entries"]
    assert [entry["purpose"] for entry in listed] == ["count 0", "count 1", "count 2"]
    table = tmp_path / "spends.csv"
    assert run("ledger", "export", path, "-o", table)[0] == 0
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["total"] for row in rows] == ["1/10", "1/5", "3/10"]
    assert Spend.from_json(json.loads(rows[0]["spends"])[0]) == COUNT
    page = tmp_path / "spending.html"
    assert run("ledger", "history", path, "--html", page)[0] == 0
    text = page.read_text()
    assert "30 % of the budget is spent, in 3 charges" in text
    assert "count 2" in text


def test_forecast_counts_releases(path: Path, tmp_path: Path) -> None:
    assert "10 more fit" in run("ledger", "forecast", path, "--epsilon", "0.1")[1]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps([COUNT.to_json(), COUNT.to_json()]))
    assert json.loads(run("ledger", "forecast", path, "--spends", plan, "--json")[1])["fits"] == 5


def test_forecast_takes_a_whole_export_charge_by_charge(path: Path, tmp_path: Path) -> None:
    ledger = Ledger.open(path)
    women, men = (replace(COUNT, part=DisjointPart("sex", key)) for key in ("f", "m"))
    ledger.charge(women, purpose="women")
    ledger.charge(men, purpose="men")
    whole = tmp_path / "export.json"
    assert run("ledger", "export", path, "-o", whole)[0] == 0
    found = json.loads(run("ledger", "forecast", path, "--spends", whole, "--json")[1])
    assert (found["price"], found["fits"]) == ("1/5", 4)  # two charges add up, even of parts
    paper = tmp_path / "certificate.json"
    paper.write_text(json.dumps({"spends": [COUNT.to_json()], "unit": "person"}))
    assert "8 more fit." in run("ledger", "forecast", path, "--spends", paper)[1]


def test_any_number_fits_where_there_is_no_limit(tmp_path: Path) -> None:
    place = tmp_path / "endless.ledger"
    assert run("ledger", "create", place, "--unlimited", "--delta", "1e-6")[0] == 0
    code, out, _ = run("ledger", "forecast", place, "--epsilon", "0.1")
    assert code == 0
    assert "The ledger has no limit: any number fits" in out
    found = json.loads(run("ledger", "forecast", place, "--epsilon", "0.1", "--json")[1])
    assert (found["price"], found["fits"], found["limited_by"]) == ("1/200", None, None)


def test_forecast_says_when_the_period_limits(tmp_path: Path) -> None:
    place = tmp_path / "monthly.ledger"
    run("ledger", "create", place, "--epsilon", "1", "--period", "month", "--period-limit", "0.2")
    out = run("ledger", "forecast", place, "--epsilon", "0.05")[1]
    assert "4 more fit into this month (20" in out
    assert "The month is what limits: the whole budget has room for 20." in out
    found = json.loads(run("ledger", "forecast", place, "--epsilon", "0.05", "--json")[1])
    assert (found["fits"], found["limited_by"], found["fits_budget"]) == (4, "period", 20)
    wide = tmp_path / "wide.ledger"
    run("ledger", "create", wide, "--epsilon", "1", "--period", "month", "--period-limit", "1")
    assert run("ledger", "forecast", wide, "--epsilon", "0.05")[1].endswith(" 20 more fit.\n")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[" * 3000 + "]" * 3000,
        '{"a":' * 5000 + "1" + "}" * 5000,
        "",
        "{",
        "3",
        "[]",
        "[3]",
        "{}",
        '{"spends": []}',
        '{"spends": "all"}',
        '{"entries": []}',
        '{"entries": [3]}',
        '{"entries": [{}]}',
        '{"entries": [{"spends": []}]}',
        '[{"mechanism": {}, "distance": {}}]',
        '[{"mechanism": {"mechanism": ["a"]}, "distance": {"norm": []}}]',
        '[{"mechanism": {"mechanism": "mechanisms.Geometric", "scale": "1/0"}, "distance": {}}]',
        "NaN",
        "1" * 5000,
    ],
)
def test_damaged_files_end_in_one_sentence(path: Path, tmp_path: Path, text: str) -> None:
    damaged = tmp_path / "damaged.json"
    damaged.write_text(text)
    for words in (
        ("ledger", "forecast", path, "--spends", damaged),
        ("certificate", "verify", damaged, "--ledger", path),
    ):
        code, out, err = run(*words)
        assert (code, out, err.count("\n")) == (2, "", 1)
    damaged.write_bytes(b"\xff\xfe\x00")
    assert "is not a text" in run("ledger", "forecast", path, "--spends", damaged)[2]


def test_a_ledger_without_charges_says_so(path: Path, tmp_path: Path) -> None:
    assert run("ledger", "history", path) == (0, "No charge yet.\n", "")
    page = tmp_path / "empty.html"
    assert run("ledger", "history", path, "--html", page)[1].startswith("No charge yet.\nDrawn in ")
    assert "0 charges" in page.read_text(encoding="utf-8")
    assert json.loads(run("ledger", "history", path, "--json")[1]) == {"entries": []}


def test_a_purpose_is_shown_as_it_is_and_on_one_line(path: Path) -> None:
    Ledger.open(path).charge(COUNT, purpose="[/red] first\nsecond \x1b[2J", author="[bold]Ada")
    code, out, _ = run("ledger", "history", path)
    assert code == 0
    assert r"[/red] first\nsecond \x1b[2J" in out
    assert "[bold]Ada" in out
    assert "\x1b" not in out


def test_a_budget_with_delta_is_kept_in_rho(tmp_path: Path) -> None:
    place = tmp_path / "z.ledger"
    code, out, _ = run(
        "ledger",
        "create",
        place,
        "--epsilon",
        "3",
        "--delta",
        "1e-6",
        "--period",
        "month",
        "--period-limit",
        "0.01",
    )
    assert code == 0
    assert "that is epsilon 3 at delta 1e-6" in out
    assert "0.01 of 0.01 left" in out
    assert json.loads(run("ledger", "forecast", place, "--rho", "0.001", "--json")[1])["fits"] == 10


def test_a_certificate_is_confirmed_or_refused(path: Path, tmp_path: Path) -> None:
    ledger = Ledger.open(path)
    receipt = ledger.charge(COUNT, purpose="yes")
    release = Release(values=[5], intervals=[(3, 7)], spends=(COUNT,), receipt=receipt)
    paper = tmp_path / "certificate.json"
    paper.write_text(release.certificate(ledger, {"upper": "10"}).to_json())
    code, out, _ = run("certificate", "verify", paper, "--ledger", path)
    assert (code, out.split(",")[0]) == (0, "Paid: line 1 of the ledger")
    held = json.loads(paper.read_text())
    changes: tuple[dict[str, object], ...] = (
        {"price": "1/1000"},
        {"fingerprint": "0" * 64},
        {"ledger": "another"},
        {"spends": []},
        {"unit": "flat"},
        {"epsilon": 1e-4},
        {"delta": 1e-30},
        {"left": "1"},
    )
    for change in changes:
        paper.write_text(json.dumps(held | change))
        code, out, err = run("certificate", "verify", paper, "--ledger", path)
        assert code == 1
        assert "Paid" not in out
        assert "WRONG (payment not confirmed)" in err
    unreadable: tuple[dict[str, object], ...] = ({"format": 99}, {"price": "1/0"})
    for change in unreadable:
        paper.write_text(json.dumps(held | change))
        code, out, err = run("certificate", "verify", paper, "--ledger", path)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
    paper.write_text("{}")
    assert run("certificate", "verify", paper, "--ledger", path)[0] == 2


def test_a_certificate_survives_json(path: Path) -> None:
    ledger = Ledger.open(path)
    receipt = ledger.charge(COUNT, purpose="yes")
    made = Release(values=1, intervals=None, spends=(COUNT,), receipt=receipt, secure=False).certificate(
        ledger
    )
    read = Certificate.from_json(made.to_json())
    assert read.spends == made.spends
    assert not read.secure
    assert "seeded" in Release(values=1, intervals=None, spends=(), receipt=None, secure=False)._repr_html_()
    assert "Paid epsilon 0.1" in receipt._repr_html_()
    assert "<table>" in ledger._repr_html_()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--epsilon", "0"), "The 'epsilon' of ledger create must lie between 1e-9 and 1,000,000. Got '0'."),
        (("--rho", "0", "--delta", "1e-6"), "The 'rho' of ledger create must lie between 1e-12"),
        (("--order", "1", "--divergence", "1", "--delta", "1e-6"), "between 1.001 and 10,000. Got '1'."),
        (("--epsilon", "1", "--delta", "0"), "The 'delta' of ledger create must lie between 1e-20 and 0.999"),
        (("--epsilon", "1", "--delta", ""), "The 'delta' of ledger create must be a finite number."),
        (("--epsilon", "1", "--rho", "1"), "More than one budget was given: --epsilon and --rho."),
        (("--delta", "1e-6"), "A ledger needs a budget"),
        (("--order", "2"), "--order and --divergence go together."),
        (("--rho", "1"), "A budget given by --rho also needs --delta."),
        (("--order", "2", "--divergence", "1"), "A budget given by --divergence also needs --delta."),
        (("--epsilon", "1", "--period", "month"), "--period and --period-limit go together"),
        (("--epsilon", "1", "--period-limit", "1"), "--period and --period-limit go together"),
        (
            ("--epsilon", "1", "--period", "hour", "--period-limit", "1"),
            "be one of day, week, month, year. Got 'hour'.",
        ),
        (
            ("--epsilon", "1", "--period", "day", "--period-limit", "2"),
            "The 'period-limit' of ledger create must be at most the whole budget, epsilon 1. Got '2'.",
        ),
        (
            ("--epsilon", "1", "--period", "day", "--period-limit", "0"),
            "The 'period-limit' of ledger create must lie between",
        ),
        (("--epsilon", "1", "--unit", "a\nb"), "The 'unit' of ledger create must be one line"),
        (("--epsilon", "1", "--unit", "a\x1b[31m"), "The 'unit' of ledger create must be one line"),
        (("--epsilon", "1", "--unit", " "), "The 'unit' of ledger create must be one line"),
    ],
)
def test_bad_terms_are_told_without_inner_names(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    code, out, err = run("ledger", "create", tmp_path / "a.ledger", *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert told in err
    for inner in ("Budget ", "Fraction", "Period.", "None", "\x1b"):
        assert inner not in err
    assert not (tmp_path / "a.ledger").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("create", "{tmp}/a"),
        ("create", "{tmp}/a", "--epsilon", "-1"),
        ("create", "{tmp}/a", "--epsilon", "nan"),
        ("create", "{tmp}/a", "--epsilon", "1", "--rho", "1"),
        ("create", "{tmp}/a", "--rho", "1"),
        ("create", "{tmp}/a", "--order", "8"),
        ("create", "{tmp}/a", "--epsilon", "1", "--neighbours", "twins"),
        ("create", "{tmp}/a", "--epsilon", "1", "--period", "month"),
        ("create", "{tmp}/survey.ledger", "--epsilon", "1"),
        ("create", "{tmp}/none/a", "--epsilon", "1"),
        ("status", "{tmp}/missing"),
        ("history", "{tmp}"),
        ("forecast", "{tmp}/survey.ledger"),
        ("forecast", "{tmp}/survey.ledger", "--spends", "{tmp}/missing.json"),
        ("forecast", "{tmp}/survey.ledger", "--rho", "1"),
    ],
)
def test_bad_input_gets_a_sentence_and_code_2(path: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    code, out, err = run("ledger", *(word.format(tmp=tmp_path) for word in words))
    assert code == 2
    assert out == ""
    assert err.strip()
    assert "Traceback" not in err


def test_help_shows_an_example() -> None:
    for verb in ("create", "status", "history", "export", "forecast"):
        assert f"sourdine ledger {verb}" in " ".join(run("ledger", verb, "--help")[1].split())
    assert "sourdine certificate verify" in " ".join(run("certificate", "verify", "--help")[1].split())


@pytest.mark.parametrize(
    "budget",
    [
        ("--epsilon", "1"),
        ("--epsilon", "3", "--delta", "1e-6"),
        ("--order", "8", "--divergence", "2", "--delta", "1e-6"),
    ],
)
def test_a_ledger_is_explained(tmp_path: Path, budget: tuple[str, ...]) -> None:
    place = tmp_path / "a.ledger"
    assert run("ledger", "create", place, *budget)[0] == 0
    assert json.loads(run("budget", "explain", "--ledger", place, "--json")[1])["epsilon"]["upper"] == 0
    Ledger.open(place).charge(COUNT, purpose="yes")
    told = json.loads(run("budget", "explain", "--ledger", place, "--json")[1])
    assert told["epsilon"]["upper"] == pytest.approx(Ledger.open(place).status().epsilon, abs=2e-3)
    assert run("budget", "explain", "1", "--ledger", place)[0] == 2
    assert run("budget", "explain", "--ledger", place, "--delta", "1e-5")[0] == 2


def test_nothing_is_written_over_a_ledger(path: Path) -> None:
    before = path.read_bytes()
    for verb, to, why in (("export", "-o", "is not written over"), ("history", "--html", "ends in .html")):
        code, _, err = run("ledger", verb, path, to, path)
        assert (code, err.count("\n")) == (2, 1)
        assert why in err
    assert path.read_bytes() == before


def test_a_page_that_cannot_be_written_is_one_sentence(path: Path, tmp_path: Path) -> None:
    for words in (
        ("export", path, "-o", tmp_path / "no" / "a.csv"),
        ("history", path, "--html", tmp_path / "no" / "a.html"),
    ):
        code, _, err = run("ledger", *words)
        assert (code, err.count("\n")) == (2, 1)


def test_an_odd_budget_is_questioned(tmp_path: Path) -> None:
    usual = CliRunner().invoke(app, ["ledger", "create", str(tmp_path / "a"), "--epsilon", "3"])
    odd = CliRunner().invoke(
        app, ["ledger", "create", str(tmp_path / "b"), "--epsilon", "100", "--delta", "0.1"]
    )
    assert (usual.exit_code, usual.stderr) == (0, "")
    assert odd.exit_code == 0
    assert " ".join(odd.stderr.split()).count("Is that intended?") == 2


@pytest.mark.parametrize(("composition", "currency"), [("basic", "epsilon"), ("renyi", "share")])
def test_a_ledger_by_its_composition(composition: str, currency: str, tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    made = run("ledger", "create", path, "--epsilon", 3, "--delta", "1e-5", "--composition", composition)
    assert made[0] == 0
    with Ledger.open(path) as ledger:
        spent = ledger.charge(COUNT, purpose="yes").spent
    code, out, _ = run("ledger", "status", path, "--json")
    told = json.loads(out)
    assert (code, told["currency"], Fraction(told["spent"])) == (0, currency, spent)
    assert min(map(Fraction, told["shares"]), default=spent) == spent
    assert f"replayed to {currency}" in run("ledger", "history", path)[1]
    assert run("ledger", "create", path, "--epsilon", 3, "--composition", composition)[0] == 2
