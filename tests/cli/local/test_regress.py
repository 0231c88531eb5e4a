"""Regression of randomized answers on the command line."""

import json
from pathlib import Path

import pytest

from tests.cli.table_case import run
from tests.documents import SAMPLES

ASKED = ("local", "regress", SAMPLES / "survey.csv", "--answer", "said")


def test_coefficients_of_the_sample() -> None:
    code, out, err = run(*ASKED, "--on", "age,place", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told["settled"]
    assert told["reports"] == 3000
    found = {each["covariate"]: each for each in told["coefficients"]}
    for name, true in {"(intercept)": -2.85, "age": 0.03, "place = town": 0.8}.items():
        assert found[name]["lower"] < true < found[name]["upper"]
    assert told["share"]["lower"] < 0.29 < told["share"]["upper"]
    assert "nothing here protects them" in " ".join(run(*ASKED, "--on", "age")[1].split())


def test_a_design_that_cannot_be_is_told() -> None:
    code, out, err = run(*ASKED, "--truth", "0.1")
    assert code == 0
    assert "(intercept)" in out
    assert "no maximum" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--design", "three-coins"), "two-coins, warner"),
        (("--design", "warner", "--truth", "0.3"), "above 1/2"),
        (("--truth", "1"), "truth"),
        (("--on", "income"), "income"),
    ],
)
def test_mistakes_are_one_sentence(words: tuple[str, ...], said: str) -> None:
    code, _, err = run(*ASKED, *words)
    assert code == 2
    assert said in err


def test_other_answers_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "t.csv"
    place.write_text("x,said\n1,maybe\n2,no\n")
    code, _, err = run("local", "regress", place, "--answer", "said")
    assert code == 2
    assert "maybe" not in err
    place.write_text("x,said\n" + "".join(f"name {i},yes\n" for i in range(60)))
    code, _, err = run("local", "regress", place, "--answer", "said", "--on", "x")
    assert code == 2
    assert "more than 50" in err
