import json
from fractions import Fraction

import pytest
import typer
from typer.testing import CliRunner, Result

from sourdine.audit import find_examples
from sourdine.cli import app
from sourdine.cli.shared.app import VerbOrName
from sourdine.core.distance import Distance
from sourdine.core.mechanism import Example
from sourdine.mechanisms import Geometric
from tests.mutants import all_mutants


def run(*args: str) -> Result:
    return CliRunner().invoke(app, ["audit", *args])


def test_one_mechanism() -> None:
    result = run("geometric", "--samples", "5000", "--seed", "1")
    assert result.exit_code == 0
    assert "Geometric(scale=7/3)" in result.stdout
    told = " ".join(result.stdout.split())
    assert "0 of 2 above their claim, 0 with another law than stated, with answers that are tied" in told
    assert result.stdout.count("not refuted") == 2
    assert "5,000 samples are few" in result.stdout
    assert result.stderr == ""


def test_a_claim_beyond_reach_is_told_with_the_samples_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    loud = Geometric(scale=Fraction(1, 5))
    far = Example(mechanism=loud, value=0, neighbour=1, distance=Distance.l1(1))
    monkeypatch.setattr("sourdine.audit.outcomes.find_examples", lambda name: [far])
    few, enough = (run("--all", "--samples", samples, "--seed", "1").stdout for samples in ("1000", "6000"))
    assert "out of reach" in few
    assert "1,000 samples cannot show any epsilon above 3.43" in " ".join(few.split())
    assert "--samples 4800 or more" in " ".join(few.split())
    assert "not refuted" in enough
    assert "out of reach" not in enough
    found = json.loads(run("--all", "--samples", "1000", "--seed", "1", "--json").stdout)
    assert found["results"][0]["verdict"] == "out of reach"


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_all_mechanisms_as_json(monkeypatch: pytest.MonkeyPatch, every: bool) -> None:
    examples = find_examples() if every else [*find_examples("laplace"), *find_examples()[::16]]
    if not every:
        monkeypatch.setattr("sourdine.audit.outcomes.find_examples", lambda name: examples)
    result = run("--all", "--samples", "2000", "--seed", "1", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 0
    assert found["above"] == found["wrong"] == 0
    assert len(found["results"]) == len(examples)
    laplace = next(one for one in found["results"] if one["mechanism"] == "Laplace(scale=3/2)")
    assert laplace["claimed"] == pytest.approx(2 / 3)
    assert 0 < laplace["audited"] <= laplace["claimed"]
    assert laplace["samples"] == 2000
    assert laplace["exceeded"] is False


def test_a_seed_repeats_the_audit_and_system_bits_do_not() -> None:
    first, second, other = (
        run("Laplace", "--samples", "3000", *seed) for seed in (("--seed", "4"),) * 2 + ((),)
    )
    assert first.stdout == second.stdout != other.stdout


def test_a_mechanism_above_its_claim_ends_in_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = all_mutants()[0].broken
    monkeypatch.setattr("sourdine.audit.outcomes.find_examples", lambda name: [broken])
    monkeypatch.setattr("sourdine.audit.outcomes.title", lambda mechanism: "Broken()")
    table = run("--all", "--samples", "50000", "--seed", "1")
    assert table.exit_code == 1
    assert "ABOVE ITS CLAIM" in table.stdout
    found = run("--all", "--samples", "50000", "--seed", "1", "--json")
    assert found.exit_code == 1
    assert json.loads(found.stdout)["above"] == 1


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ((), "Say what to audit"),
        (("Laplace", "--all"), "Say what to audit"),
        (("Gossip",), "must be one of AboveThreshold"),
        (("--all", "--samples", "10"), "The 'samples' of an audit must lie between 1,000"),
        (("--all", "--samples", "-1"), "The 'samples' of an audit"),
        (("--all", "--samples", "1e6"), "'--samples' must be a whole number"),
        (("--all", "--samples", "nan"), "'--samples' must be a whole number"),
        (("--all", "--samples", "9" * 30), "The 'samples' of an audit"),
        (("--all", "--seed", "x"), "--seed"),
        (("Laplace", "Gaussian"), "Gaussian"),
        (("--wrong",), "--wrong"),
    ],
)
def test_bad_input_ends_in_one_sentence_and_code_2(args: tuple[str, ...], told: str) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1
    assert told in result.stderr


def test_verbs_can_be_added_below_beside_a_name() -> None:
    group, seen = typer.Typer(cls=VerbOrName), []

    @group.callback(invoke_without_command=True)
    def above(ctx: typer.Context, name: str | None = typer.Argument(None), loud: bool = False) -> None:
        if ctx.invoked_subcommand is None:
            seen.append(("above", name, loud))

    @group.command()
    def plan(spec: str, deep: bool = False) -> None:
        seen.append(("plan", spec, deep))

    for args in (
        ["Laplace", "--loud"],
        ["--loud"],
        ["plan", "a.toml", "--deep"],
        ["--loud", "plan", "b.toml"],
    ):
        assert CliRunner().invoke(group, args).exit_code == 0
    assert seen == [
        ("above", "Laplace", True),
        ("above", None, True),
        ("plan", "a.toml", True),
        ("plan", "b.toml", False),
    ]
