"""A device: one question by its secret, the same report again, and no report that was not paid for."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local.oracle import Bytes
from sourdine.local.questionnaire import DeviceLedger, Item, Questionnaire, QuestionnaireDevice, Way, device

ITEMS = (Item("way", ("foot", "bike", "bus")), Item("lunch", ("no", "yes")), Item("days", ("0", "1", "2")))
SAMPLE = Questionnaire(name="office", epsilon=2, items=ITEMS, changes=2, given_way=Way.SAMPLE)
SPLIT = Questionnaire(name="office", epsilon=2, items=ITEMS, joint=(("way", "days"),), given_way=Way.SPLIT)
ANSWERS = {"way": "bike", "lunch": "yes", "days": "2"}


def secret(number: int) -> bytes:
    return number.to_bytes(32, "big")


def test_a_device_answers_one_question_by_its_secret_and_all_are_as_likely() -> None:
    assert QuestionnaireDevice(SAMPLE, secret(1)).places == QuestionnaireDevice(SAMPLE, secret(1)).places
    places = np.bincount([QuestionnaireDevice(SAMPLE, secret(i)).places[0] for i in range(3000)], minlength=3)
    assert ((places - 1000) ** 2 / 1000).sum() < 27.6  # chi-square of 2 degrees at 1e-6


def test_the_same_answers_give_the_same_report_and_cost_once() -> None:
    answering = QuestionnaireDevice(SAMPLE, secret(3))
    (question, row), (_, again) = answering.reports(ANSWERS)[0], answering.reports(ANSWERS)[0]
    assert row.tolist() == again.tolist()
    assert question in SAMPLE.questions
    assert answering.spent == 1
    assert question.tally(row).reports == 1


def test_after_two_different_answers_the_last_report_goes_on_and_earlier_ones_stand(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    seed = next(i for i in range(99) if QuestionnaireDevice(SAMPLE, secret(i)).places == (0,))

    def report(answering: QuestionnaireDevice, way: str) -> list[int]:
        ((_, row),) = answering.reports(ANSWERS | {"way": way})
        return row.tolist()

    first = QuestionnaireDevice(SAMPLE, secret(seed), DeviceLedger.open(path))
    rows = {way: report(first, way) for way in ("foot", "bike")}
    assert report(first, "foot") == rows["foot"]
    assert first.spent == SAMPLE.epsilon == 2
    again = QuestionnaireDevice(SAMPLE, secret(seed), DeviceLedger.open(path))  # after a restart
    assert report(again, "bus") == rows["foot"]  # the last one, once more
    assert list(again.earlier) == [SAMPLE.questions[0]]
    assert report(again, "bike") == rows["bike"]
    assert list(again.earlier) == []
    assert report(again, "bus") == rows["bike"]
    assert again.spent == 2
    assert "bike" not in path.read_text()


def test_a_split_budget_is_paid_for_all_questions() -> None:
    answering = QuestionnaireDevice(SPLIT, secret(5))
    made = answering.reports(ANSWERS)
    assert [question.name for question, _ in made] == ["office: lunch", "office: way and days"]
    assert answering.spent == Fraction(2)
    again = answering.reports(ANSWERS | {"lunch": "no"})
    assert [row.tolist() for _, row in again] == [row.tolist() for _, row in made]
    assert [question.name for question in answering.earlier] == ["office: lunch"]
    assert answering.spent == Fraction(2)


ODDS = 3
Report = Callable[[QuestionnaireDevice, str], object]
History = tuple[str, ...]
Laws = dict[History, dict[tuple[object, ...], Fraction]]
sizes = pytest.mark.parametrize("kinds", ["ab", pytest.param("abc", marks=pytest.mark.slow)])


def laws(kinds: str, changes: int, report: Report, monkeypatch: pytest.MonkeyPatch) -> Laws:
    """The exact joint law of all that a device sends, for each history of three answers.

    The keyed function of answers is as good as a random one: here all of those are listed, each answer
    keeping its place with odds of three against each other one.
    """
    items = (Item("x", tuple(kinds)),)
    survey = Questionnaire(name="s", epsilon=changes, items=items, changes=changes, given_way=Way.SPLIT)
    found: Laws = {}
    for table in product(range(len(kinds)), repeat=len(kinds)):
        chance = Fraction(1)
        for value, made in enumerate(table):
            chance *= Fraction(ODDS if value == made else 1, ODDS + len(kinds) - 1)

        class Listed:
            def __init__(self, *_: object) -> None: ...
            def row(self, value: int, table: tuple[int, ...] = table) -> Bytes:
                return np.array([[table[value]]], np.uint8)

        monkeypatch.setattr(device, "Memo", Listed)
        for history in product(kinds, repeat=3):
            answering = QuestionnaireDevice(survey, secret(1))
            seen = tuple(report(answering, answer) for answer in history)
            law = found.setdefault(history, {})
            law[seen] = law.get(seen, Fraction(0)) + chance
    return found


def sent(answering: QuestionnaireDevice, answer: str) -> object:
    return int(answering.reports({"x": answer})[0][1][0, 0])


def sent_unless_earlier(answering: QuestionnaireDevice, answer: str) -> object:
    row = sent(answering, answer)
    return None if answering.earlier else row


def worst(found: Laws, *, repeats: bool = False) -> Fraction | None:
    """The largest ratio of probabilities of what is seen, over pairs of histories; None: it has no bound.

    With `repeats`, over those pairs whose answers are the same at the same times.
    """
    largest = Fraction(0)
    for one, other in product(found, repeat=2):
        if repeats and [one.index(each) for each in one] != [other.index(each) for each in other]:
            continue
        for seen, chance in found[one].items():
            if seen not in found[other]:
                return None
            largest = max(largest, chance / found[other][seen])
    return largest


@sizes
def test_all_reports_ever_cost_one_epsilon_for_any_two_histories(
    kinds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By brute force over all pairs of histories: the bound holds, and is reached."""
    assert worst(laws(kinds, 1, sent, monkeypatch)) == ODDS


@sizes
def test_whoever_is_silent_beyond_the_limit_is_seen(kinds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal of the next answer, as there once was, tells for sure that the answer changed."""
    assert worst(laws(kinds, 1, sent_unless_earlier, monkeypatch)) is None


@sizes
def test_with_more_changes_repeats_are_told_and_given_them_each_answer_costs_once(
    kinds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = laws(kinds, 2, sent, monkeypatch)
    assert worst(found) is None  # the same answer twice never has two reports
    assert worst(found, repeats=True) == ODDS**2


def test_answers_to_all_items_are_checked_whichever_is_reported_on() -> None:
    for seed in range(12):
        answering = QuestionnaireDevice(SAMPLE, secret(seed))
        with pytest.raises(InvalidParameter, match="'way' is none of its labels"):
            answering.reports(ANSWERS | {"way": "boat"})


def test_what_it_refuses() -> None:
    with pytest.raises(InvalidParameter, match="16 bytes"):
        QuestionnaireDevice(SAMPLE, b"short")
    answering = QuestionnaireDevice(SPLIT, secret(1))
    with pytest.raises(InvalidParameter, match="no answer to 'days'"):
        answering.reports({"way": "bike", "lunch": "no"})
    with pytest.raises(InvalidParameter, match="labels"):
        answering.reports(ANSWERS | {"way": "boat"})
    assert answering.spent == 0
    assert "secret=..." in repr(answering)


def test_what_is_spent_is_of_the_whole_ledger(tmp_path: Path) -> None:
    """A second questionnaire on the same ledger pays beside the first."""
    path = tmp_path / "ledger.json"
    QuestionnaireDevice(SPLIT, secret(5), DeviceLedger.open(path)).reports(ANSWERS)
    second = QuestionnaireDevice(SAMPLE, secret(5), DeviceLedger.open(path))
    assert second.spent == 2
    second.reports(ANSWERS)
    assert second.spent == DeviceLedger.open(path).spent == 3
