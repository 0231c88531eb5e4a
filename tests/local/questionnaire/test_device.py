"""A device: one question by its secret, the same report again, and a ledger that it cannot overrun."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sourdine.core.errors import BudgetExceeded, InvalidParameter
from sourdine.local.questionnaire import DeviceLedger, Item, Questionnaire, QuestionnaireDevice, Way

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
    device = QuestionnaireDevice(SAMPLE, secret(3))
    (question, row), (_, again) = device.reports(ANSWERS)[0], device.reports(ANSWERS)[0]
    assert row.tolist() == again.tolist()
    assert question in SAMPLE.questions
    assert device.spent == 1
    assert question.tally(row).reports == 1


def test_the_third_different_answer_is_refused_and_earlier_ones_stand(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    seed = next(i for i in range(99) if QuestionnaireDevice(SAMPLE, secret(i)).places == (0,))
    device = QuestionnaireDevice(SAMPLE, secret(seed), DeviceLedger.open(path))
    for way in ("foot", "bike", "foot"):
        device.reports(ANSWERS | {"way": way})
    assert device.spent == SAMPLE.epsilon == 2
    again = QuestionnaireDevice(SAMPLE, secret(seed), DeviceLedger.open(path))  # after a restart
    with pytest.raises(BudgetExceeded, match="as many different answers") as refusal:
        again.reports(ANSWERS | {"way": "bus"})
    assert (refusal.value.amount, refusal.value.left) == (1, 0)
    again.reports(ANSWERS | {"way": "bike", "lunch": "no"})
    assert again.spent == 2
    assert "bike" not in path.read_text()


def test_a_split_budget_is_paid_for_all_questions() -> None:
    device = QuestionnaireDevice(SPLIT, secret(5))
    made = device.reports(ANSWERS)
    assert [question.name for question, _ in made] == ["office: lunch", "office: way and days"]
    assert device.spent == Fraction(2)
    with pytest.raises(BudgetExceeded):
        device.reports(ANSWERS | {"lunch": "no"})


def test_what_it_refuses(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="16 bytes"):
        QuestionnaireDevice(SAMPLE, b"short")
    device = QuestionnaireDevice(SPLIT, secret(1))
    with pytest.raises(InvalidParameter, match="no answer to 'days'"):
        device.reports({"way": "bike", "lunch": "no"})
    with pytest.raises(InvalidParameter, match="labels"):
        device.reports(ANSWERS | {"way": "boat"})
    assert device.spent == 0
    (tmp_path / "l.json").write_text("[1")
    with pytest.raises(InvalidParameter, match="cannot be read"):
        DeviceLedger.open(tmp_path / "l.json")
    assert "secret=..." in repr(device)
