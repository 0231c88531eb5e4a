import json
from pathlib import Path
from types import MappingProxyType

import pytest
from typer.testing import CliRunner, Result

from sourdine.audit import attacks
from sourdine.audit.attacks import ATTACKS, Attack, AttackResult, Outcome
from sourdine.cli import app
from sourdine.core.random.bits import Bits
from tests.documents import SAMPLES


def run(*args: str) -> Result:
    return CliRunner().invoke(app, ["audit", "attack", *args])


def test_without_a_name_it_lists_them() -> None:
    shown = run()
    assert shown.exit_code == 0
    assert all(name in shown.stdout and each.title in shown.stdout for name, each in ATTACKS.items())
    told = json.loads(run("--json").stdout)["attacks"]
    assert [each["name"] for each in told] == list(ATTACKS)


def test_figures_a_lesson_and_a_page(tmp_path: Path) -> None:
    page = tmp_path / "local.html"
    shown = run("local", "--html", str(page))
    assert shown.exit_code == 0
    assert "100\N{NO-BREAK SPACE}% of the answers are known" in shown.stdout
    for told in ("fresh noise every day", "memo: one report for ever", "seeing nothing", "1,000", "23.2"):
        assert told in shown.stdout
    assert "a year tells no more than a day" in " ".join(shown.stdout.split())
    assert f"Wrote {page}." in shown.stdout
    text = page.read_text(encoding="utf-8")
    assert "Fresh noise wears off within weeks" in text
    assert "memo: one report for ever" in text


def test_json_holds_the_figures_and_repeats_with_the_seed() -> None:
    first, again, other = (run("local", "--json", "--seed", seed).stdout for seed in ("1", "1", "2"))
    assert first == again != other
    told = json.loads(first)
    assert told["succeeds"] is True
    assert told["stopped"] is True
    assert told["page"] is None
    assert told["unprotected"]["success"] == told["unprotected"]["hits"] / told["unprotected"]["tries"]
    assert told["charts"][0]["points"][0][:2] == ["without protection", 1]


@pytest.mark.parametrize(
    ("bare", "safe", "told"), [(500, 500, "FAILED without protection"), (999, 999, "GOT THROUGH")]
)
def test_an_attack_that_goes_otherwise_ends_in_code_1(
    monkeypatch: pytest.MonkeyPatch, bare: int, safe: int, told: str
) -> None:
    def toy(bits: Bits) -> AttackResult:
        return AttackResult(
            name="toy",
            attacked="A toy.",
            goal="right guesses",
            unprotected=Outcome(target="bare", hits=bare, tries=1000),
            protected=Outcome(target="safe", hits=safe, tries=1000),
            chance=0.5,
            guess="a coin",
            limit=0.6,
            why="it is so",
            finding="It works",
            lesson="Do not.",
            charts=(),
        )

    toys = MappingProxyType({"toy": Attack(name="toy", title="a toy", run=toy)})
    monkeypatch.setattr(attacks, "ATTACKS", toys)
    shown = run("toy")
    assert shown.exit_code == 1
    assert told in shown.stdout


def test_a_table_of_ones_own_is_marked(tmp_path: Path) -> None:
    table, page = str(SAMPLES / "people.csv"), tmp_path / "page.html"
    asked = ("differencing", "--table", table, "--secret", "disease = asthma", "--known", "age,sex,postcode")
    shown = run(*asked, "--html", str(page))
    assert shown.exit_code == 0
    assert shown.stdout.startswith("NOT PRIVATE")
    assert "NOT PRIVATE" in page.read_text(encoding="utf-8")
    told = json.loads(run(*asked, "--json").stdout)
    assert told["own"] is True
    assert told["unprotected"]["success"] == 1.0


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("gossip",), "The 'name' of audit attack must be one of linkage, traces"),
        (("--html", "page.html"), "Which attack is the page about?"),
        (("local", "--html", "nowhere/page.html"), "does not exist"),
        (("local", "--seed", "-1"), "The 'seed' of audit attack must lie between 0"),
        (("local", "--seed", "x"), "'--seed' must be a whole number"),
        (("local", "linkage"), "linkage"),
        (("--table", "people.csv"), "Which attack?"),
        (("local", "--secret", "a = b"), "Which table?"),
        (("local", "--table", "people.csv"), "name one of differencing, reconstruction"),
        (("differencing", "--table", "people.csv"), "What is the secret?"),
    ],
)
def test_bad_input_ends_in_one_sentence_and_code_2(args: tuple[str, ...], told: str) -> None:
    shown = run(*args)
    assert shown.exit_code == 2
    assert shown.stdout == ""
    assert len(shown.stderr.strip().splitlines()) == 1
    assert told in shown.stderr
