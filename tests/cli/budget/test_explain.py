import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sourdine.cli import app

RUN = ("-s", "60000", "-b", "64", "-n", "1.0", "-e", "15")


def run(*args: str) -> Result:
    return CliRunner().invoke(app, ["budget", "explain", *args])


def plain(result: Result) -> str:
    """The text on one line, without wrapping."""
    return " ".join(result.stdout.split())


def test_an_epsilon() -> None:
    result = run("1.17")
    assert result.exit_code == 0
    assert result.stderr == ""
    told = plain(result)
    assert "gives it at most 77 chances in 100 afterwards, and at least 23 chances in 100" in told
    assert told.startswith("ε = 1.17 For one person")
    assert "76.32 %" in told
    assert "6,443.99 on average" in told
    assert "US Census 2020" in told


def test_an_epsilon_with_a_delta_says_what_delta_is_not() -> None:
    told = plain(run("1", "--delta", "1e-5"))
    assert "In all but 1 of 1,000 cases at most" in told
    assert "δ = 1e-5 is not the probability that the loss of an answer exceeds ε" in told


def test_a_training_run() -> None:
    result = run(*RUN)
    assert result.exit_code == 0
    told = plain(result)
    assert "Right guesses 53.3 % at most" in told
    assert "advantage 0.066 at most" in told
    assert "│ 1 % │ 1.55 % │" in told
    assert "Poisson batches of 64" in told
    assert "14,070 steps" in told
    assert "The least possible ε is at least 0.61" in told


def test_a_training_run_as_json() -> None:
    found = json.loads(run(*RUN, "-d", "1e-6", "--json").stdout)
    assert found["delta"] == 1e-6
    assert found["unit"] == "example"
    assert found["epsilon"]["lower"] < found["epsilon"]["upper"]
    assert found["attack"]["advantage"] == pytest.approx(0.066, abs=5e-4)
    assert found["words"]


def test_shuffled_batches_reveal_more() -> None:
    poisson, shuffled = (
        json.loads(run(*RUN, "--sampler", sampler, "--json").stdout) for sampler in ("poisson", "shuffle")
    )
    assert shuffled["attack"]["accuracy"] > 0.9 > poisson["attack"]["accuracy"]
    assert shuffled["neighbours"] == "zero-out"


def test_another_prior_unit_and_relation() -> None:
    told = plain(run("1/2", "--prior", "0.1", "--unit", "household", "--neighbours", "replace"))
    assert "gave it 10 chances in 100 that a given household is the one they suspect" in told


def test_the_whole_table() -> None:
    assert "73.11" not in run("0.3").stdout
    told = run("0.3", "--table").stdout
    assert "73.11" in told
    assert "26.89" in told


def test_the_page(tmp_path: Path) -> None:
    path = tmp_path / "meaning.html"
    result = run("0.5", "--html", str(path))
    assert f"The page is in {path}." in result.stdout.replace("\n", "")
    assert "<h1>What ε = 0.5 means</h1>" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ((), "Say what to explain"),
        (("1", *RUN), "More than one thing to explain was given."),
        (("-s", "60000", "-b", "64"), "A training run also needs --noise-multiplier."),
        (("-n", "1"), "A training run also needs --size and --batch-size and --epochs."),
        (("much",), "The 'epsilon' of explain must be a finite number."),
        (("1", "--delta", "1"), "The 'delta' of explain must"),
        (("1", "--prior", "2"), "The 'prior' of explain must"),
        ((*RUN, "--sampler", "cards"), "The 'sampler' of explain must be one of poisson, fixed, shuffle,"),
        ((*RUN, "-d", "0"), "'delta'"),
        (("1", "--html", "/nowhere/at/all.html"), "The folder of /nowhere/at/all.html does not exist."),
        (("1", "--html", "/"), "/ is a folder."),
        (("1", "--neighbours", "friends"), "'neighbours' of explain must be one of add-remove"),
        (("1", "--unit", "per\x1b[31mson"), "The 'unit' of explain must be one line"),
        (("-1",), "its minus sign reads like an option"),
        (("-0.5", "--delta", "1e-5"), "its minus sign reads like an option"),
        (
            (*RUN, "--unit", "person"),
            "The unit and the neighbours of a training run follow from its sampler.",
        ),
    ],
)
def test_bad_input_ends_in_one_sentence(args: tuple[str, ...], sentence: str) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1


def test_a_place_is_checked_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(*args: object) -> None:
        pytest.fail("the work was begun")

    monkeypatch.setattr("sourdine.accounting.explain.explain_training", work)
    assert "does not exist" in run(*RUN, "--html", "/nowhere/at/all.html").stderr
