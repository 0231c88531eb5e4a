"""Specifications: what changes them changes their fingerprint, and nothing else is counted with them."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local import GRR, Counts, Question
from sourdine.mechanisms import Laplace
from tests.errors import refusal_of

COFFEE = Question(name="coffee", oracle=GRR(epsilon=2, categories=3), labels=("a", "b", "ü"))


def test_json_goes_both_ways() -> None:
    assert Question.from_json(json.loads(json.dumps(COFFEE.to_json()))) == COFFEE


def test_any_change_changes_the_fingerprint() -> None:
    others = [
        replace(COFFEE, name="tea"),
        replace(COFFEE, oracle=GRR(epsilon=1, categories=3)),
        replace(COFFEE, labels=("a", "ü", "b")),
        replace(COFFEE, labels=()),
    ]
    assert len({each.fingerprint for each in (COFFEE, *others)}) == 5


def test_reports_are_tallied_and_read_under_the_question_alone() -> None:
    counts = COFFEE.tally(COFFEE.oracle.pack(np.array([0, 2, 2, 1])))
    assert counts.sums.tolist() == [1, 1, 2]
    direct = COFFEE.oracle.estimate(COFFEE.oracle.tally(np.array([0, 2, 2, 1])))
    assert COFFEE.estimate(counts).value == pytest.approx(direct.value)
    with pytest.raises(InvalidParameter, match="not of reports to 'tea'"):
        replace(COFFEE, name="tea").estimate(counts)
    with pytest.raises(InvalidParameter, match="other parameters"):
        counts + replace(COFFEE, name="tea").tally(np.zeros((1, 1), np.uint8))


def test_answers_become_values() -> None:
    assert COFFEE.values(["ü", "a"]).tolist() == [2, 0]
    assert replace(COFFEE, labels=()).values(["2", " 0 "]).tolist() == [2, 0]
    with pytest.raises(InvalidParameter, match="Answer 2 to 'coffee' is not one of the 3 labels"):
        COFFEE.values(["a", "SECRET"])
    for bad in ("3", "-1", "1.5", "x", "", "9" * 40, "³"):
        with pytest.raises(InvalidParameter, match=r"Answer 1 .* category from 0 to 2"):
            replace(COFFEE, labels=()).values([bad])


def test_answers_are_never_quoted() -> None:
    with pytest.raises(InvalidParameter) as problem:
        COFFEE.values(["SECRET"])
    assert "SECRET" not in str(problem.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"fingerprint": "0" * 16}, "own fingerprint"),
        ({"question": "tea"}, "own fingerprint"),
        ({"labels": ["a", "b"]}, "'labels' of Question must be 3"),
        ({"labels": ["a", "a", "b"]}, "differ"),
        ({"labels": ["a", "b", 3]}, "lines of text"),
        ({"labels": "abc"}, "malformed"),
        ({"format": "sourdine local 3"}, "no specification"),
        ({"format": ["sourdine local 2"]}, "no specification"),
        ({"format": "sourdine local 1"}, "own fingerprint"),
        ({"question": "two\nlines"}, "one line"),
        ({"oracle": Laplace(scale=1).to_json()}, "makes no reports"),
        ({"oracle": {"mechanism": "os.System"}}, "must name one of this package"),
        ({"extra": 1}, "no specification"),
    ],
)
def test_what_is_no_specification_is_refused(change: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        Question.from_json({**COFFEE.to_json(), **change})


def test_format_2_hashes_names_and_format_1_those_of_version_0_1() -> None:
    first = replace(COFFEE, format=1)
    assert COFFEE.to_json()["format"] == "sourdine local 2"
    oracle, older = COFFEE.to_json()["oracle"], first.to_json()["oracle"]
    assert isinstance(oracle, dict)
    assert isinstance(older, dict)
    assert oracle["mechanism"] == "grr/1"
    assert first.to_json()["format"] == "sourdine local 1"
    assert older["mechanism"] == "local.KaryOracle"
    assert first.fingerprint == "0e8a413587c1eb9c"  # as version 0.1 has it
    for each in (COFFEE, first):
        body = {name: value for name, value in each.to_json().items() if name != "fingerprint"}
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        assert hashlib.sha256(text.encode()).hexdigest()[:16] == each.fingerprint
        assert Question.from_json(json.loads(json.dumps(each.to_json()))) == each
    with pytest.raises(InvalidParameter, match="not of reports to 'coffee'"):
        COFFEE.estimate(first.tally(first.oracle.pack(np.array([0, 2, 2, 1]))))


@pytest.mark.parametrize("bad", [0, 3, True, "1", None])
def test_another_format_is_refused(bad: int) -> None:
    with refusal_of("format", "Question"):
        replace(COFFEE, format=bad)


@pytest.mark.parametrize("held", [None, [], {}, {"counts": "x", "reports": -1, "sums": []}, {"counts": 1}])
def test_what_are_no_counts_is_refused(held: object) -> None:
    with pytest.raises(InvalidParameter, match="counts cannot be read"):
        Counts.from_json(held)


def test_counts_are_read_back() -> None:
    counts = COFFEE.tally(COFFEE.oracle.pack(np.array([0, 2, 2, 1])))
    back = Counts.from_json(json.loads(json.dumps(counts.to_json())))
    assert (back.fingerprint, back.reports, back.sums.tolist()) == (counts.fingerprint, 4, [1, 1, 2])


@pytest.mark.parametrize("sums", [[5, 0, -1], [3, 3, 3], [2, 2], [4, 0, 0, 0]])
def test_counts_that_no_reports_have_are_refused(sums: list[int]) -> None:
    counts = Counts(COFFEE.fingerprint, 4, np.array(sums))
    with pytest.raises(InvalidParameter, match="none that reports can have given"):
        COFFEE.estimate(counts)
