"""`sourdine reproduce mutants`: what got away ends in code 1, and the checkout's mutants are found."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sourdine.cli import app
from sourdine.core.errors import SourdineError
from sourdine_reproduction import mutants as command
from tests import faults, mutants
from tests.faults import FAULTS, Fault
from tests.mutants import all_mutants, training


def run(*words: object) -> Result:
    return CliRunner(env={"COLUMNS": "160"}).invoke(app, ["reproduce", "mutants", *map(str, words)])


def test_mutants_are_listed_with_what_caught_them(monkeypatch: pytest.MonkeyPatch) -> None:
    few = [one for one in all_mutants()[:8] if "%" not in one.name]
    monkeypatch.setattr(mutants, "all_mutants", lambda: few)
    shown = run("--samples", 200_000, "--seed", 1)
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[-1] == f"caught {len(few)}/{len(few)}"
    assert all(mutant.name in shown.stdout for mutant in few)
    assert "law test" in shown.stdout


def test_a_mutant_that_gets_away_ends_in_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    one = all_mutants()[0]
    honest = replace(one, sampler=one.honest.mechanism.sample)
    monkeypatch.setattr(mutants, "all_mutants", lambda: [honest])
    shown = run("--samples", 20_000, "--seed", 1)
    assert (shown.exit_code, shown.stdout.splitlines()[-1]) == (1, "caught 0/1")
    assert "NOTHING" in shown.stdout
    found = run("--samples", 20_000, "--seed", 1, "--json")
    verdict = json.loads(found.stdout)
    assert (found.exit_code, verdict["caught"], verdict["of"]) == (1, 0, 1)
    assert verdict["results"][0]["caught_by"] is None
    assert min(verdict["results"][0]["law"], verdict["results"][0]["ties"]) > 1e-6


def _keep(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    monkeypatch.setattr(training, "BROKEN", tuple(each for each in training.BROKEN if each.name in names))


@pytest.mark.slow
@pytest.mark.parametrize("names", [["half-noise", "full-batches"], [each.name for each in training.BROKEN]])
def test_training_that_is_broken_is_caught(monkeypatch: pytest.MonkeyPatch, names: list[str]) -> None:
    _keep(monkeypatch, *names)
    small = ("--canaries", 64, "--gradients", 1000, "--steps", 10, "--seed", 1)
    shown = run("training", *small, "--epsilon", 2, "--json")
    assert shown.exit_code == 0, shown.output
    found = json.loads(shown.stdout)
    assert found["caught"] == found["of"] == len(found["results"]) == len(names)
    assert all(each["refuted"] for each in found["results"])


def test_training_that_gets_away_ends_in_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    _keep(monkeypatch, "unclipped", "reused-noise")
    small = ("--canaries", 64, "--gradients", 64, "--steps", 1, "--seed", 1, "--epsilon", 8)
    shown = run("training", *small)
    assert shown.exit_code == 1  # one step says nothing of noise that is used twice
    assert "gradients are not clipped" in shown.stdout
    (line,) = (each for each in shown.stdout.splitlines() if "reused-noise" in each)
    assert "NOTHING" in line


def test_planted_faults_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("numbers are not clamped", "ranks are paid one way")
    monkeypatch.setattr(faults, "FAULTS", tuple(each for each in FAULTS if each.name in names))
    shown = run("plans")
    assert (shown.exit_code, shown.stdout.splitlines()[-1]) == (0, "caught 2/2")
    assert "both ways" in shown.stdout
    monkeypatch.setattr(faults, "FAULTS", (Fault(name="nothing at all", wraps=()),))
    shown = run("plans", "--pairs", 20, "--json")
    assert shown.exit_code == 1
    assert json.loads(shown.stdout)["results"] == [{"mutant": "nothing at all", "caught_by": ""}]


def test_another_kind_is_refused() -> None:
    assert run("elephants").exit_code == 2


def test_the_checkout_is_found_where_pip_installed_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installation that is not editable lies elsewhere, and another package may be called tests."""
    root = Path(__file__).parents[2]
    record = json.dumps({"url": (root / "reproduction").as_uri(), "dir_info": {}})
    moved = tmp_path / "site-packages" / "sourdine_reproduction" / "mutants.py"
    monkeypatch.setattr(command, "__file__", str(moved))

    class Installed:
        def read_text(self, name: str) -> str | None:
            return record

    monkeypatch.setattr(command, "distribution", lambda name: Installed())

    def forget() -> None:
        for name in [each for each in sys.modules if each == "tests" or each.startswith("tests.mutants")]:
            monkeypatch.delitem(sys.modules, name)

    forget()
    assert len(command.load("mutants").all_mutants()) >= 100
    forget()
    record = "{}"
    with pytest.raises(SourdineError):
        command.load("mutants")
