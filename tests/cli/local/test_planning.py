"""Local against central, statistical queries and shuffling on the command line."""

import json
import math
from collections import Counter
from pathlib import Path

import pytest

from sourdine.accounting import shuffle_model
from sourdine.local import GRR, CentralComparison
from sourdine.local.shuffle import amplified
from tests.cli.table_case import run


def told(*words: object) -> dict[str, object]:
    code, out, err = run(*words, "--json")
    assert (code, err) == (0, "")
    found: dict[str, object] = json.loads(out)
    return found


def refused(*words: object) -> str:
    code, _, err = run(*words)
    assert code == 2
    return err


def test_local_against_central() -> None:
    found = told("local", "compare", "--epsilon", "1", "--people", "10000")
    both = CentralComparison(epsilon=1, people=10_000)
    assert found["among_these_people"] == {"local": math.sqrt(both.local), "central": math.sqrt(both.central)}
    assert found["variance_ratio"] == pytest.approx(
        {"among_these_people": 5000, "in_their_population": 4.68}, rel=1e-3
    )
    assert "5,000 times" in run("local", "compare", "--epsilon", "1", "--people", "10000")[1]
    assert "share" in refused("local", "compare", "--epsilon", "1", "--people", "9", "--share", "2")


def test_how_many_people_queries_need() -> None:
    found = told("local", "queries", "--epsilon", "1", "--queries", "10")
    assert found["people"] == {"exact": 37_010, "surely": 56_120, "published": 4_000}
    assert "37,010" in run("local", "queries", "--epsilon", "1", "--queries", "10")[1]


def test_queries_about_a_file(tmp_path: Path) -> None:
    place = tmp_path / "ages.txt"
    place.write_text("".join(f"{age}\n" for age in range(2000)))  # in order, which must not matter
    asked = ("local", "queries", place, "--epsilon", "8", "--each", "1", "--above", "499", "--above", "1499")
    answers = told(*asked)["answers"]
    assert isinstance(answers, list)
    assert [each["share"] for each in answers] == pytest.approx([0.75, 0.25], abs=0.1)
    assert all(each["lower"] < each["share"] < each["upper"] for each in answers)
    assert "costs it again" in " ".join(run(*asked)[1].split())
    place.write_text("1\nsecret\n")
    error = refused("local", "queries", place, "--epsilon", "1", "--above", "3")
    assert "Line 2" in error
    assert "secret" not in error
    assert "Which queries?" in refused("local", "queries", place, "--epsilon", "1", "--queries", "2")


def test_forecast_of_a_shuffle() -> None:
    found = told("local", "shuffle", "--epsilon", "2", "--categories", "4", "--people", "10000")
    bracket = amplified(GRR(epsilon=2, categories=4), 10_000, 1e-6)
    assert found["epsilon"] == {"lower": bracket.lower, "upper": bracket.upper}
    found = told("local", "shuffle", "--epsilon", "2", "--people", "10000")
    assert found["epsilon"] == {"lower": 0.0, "upper": shuffle_model(2, 10_000, 1e-6)}
    assert "How are reports made?" in refused("local", "shuffle", "--people", "9")
    assert "--people" in refused("local", "shuffle", "--epsilon", "2")


def test_a_file_is_shuffled(tmp_path: Path) -> None:
    spec, reports, mixed = (tmp_path / name for name in ("spec.json", "reports.txt", "mixed.txt"))
    (tmp_path / "answers.txt").write_text("0\n" * 200 + "3\n" * 200)
    run("local", "spec", "tea", "--epsilon", "8", "--categories", "4", "-o", spec)
    run("local", "encode", spec, tmp_path / "answers.txt", "-o", reports)
    code, out, err = run("local", "shuffle", spec, reports, "-o", mixed)
    assert (code, err) == (0, "")
    assert "400 reports" in out
    before, after = reports.read_text().splitlines(), mixed.read_text().splitlines()
    assert before != after
    assert Counter(before) == Counter(after)
    assert "exists already" in refused("local", "shuffle", spec, reports, "-o", mixed)
    reports.write_text("")
    assert "is empty" in refused("local", "shuffle", spec, reports, "-o", tmp_path / "new.txt")
