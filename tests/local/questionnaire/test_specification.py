"""A questionnaire: within its budget whatever the way, and shared in the way that forecasts better."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local import SUE, Choice
from sourdine.local.questionnaire import Item, Questionnaire, Way, specification

WAY, LUNCH, DAYS = (
    Item("way", ("foot", "bike", "bus")),
    Item("lunch", ("no", "yes")),
    Item("days", ("0", "1", "2")),
)


def office(**more: Any) -> Questionnaire:
    return Questionnaire(**{"name": "office", "epsilon": 2, "items": (WAY, LUNCH, DAYS), **more})


@pytest.mark.parametrize("way", list(Way))
@pytest.mark.parametrize("changes", [1, 3])
def test_all_reports_of_a_device_stay_within_the_budget(way: Way, changes: int) -> None:
    survey = office(given_way=way, changes=changes)
    each = survey.report_epsilon(way)
    asked = 1 if way is Way.SAMPLE else len(survey.questions)
    assert each * changes * asked == survey.epsilon == 2
    assert all(question.oracle.spend.loss().epsilon == each for question in survey.questions)


def test_the_way_is_the_one_that_forecasts_better() -> None:
    assert office(epsilon=1).way is Way.SAMPLE
    assert office(epsilon=20).way is Way.SPLIT
    for epsilon in (Fraction(1, 2), 2, 6, 20):
        survey = office(epsilon=epsilon)
        assert survey.forecast(survey.way) == min(survey.forecast(way) for way in Way)


@pytest.mark.slow
@pytest.mark.parametrize("way", list(Way))
def test_the_forecast_is_the_variance_of_a_simulation(way: Way) -> None:
    """Many devices with uniform answers, in either way, by the definition."""
    survey = office(epsilon=4, given_way=way)
    dice = np.random.default_rng(1)
    devices, errors = 600, []
    for _ in range(150):
        for question in survey.questions:
            oracle: Any = question.oracle
            answers = dice.permutation(np.arange(devices) % oracle.categories)
            chosen = answers
            if way is Way.SAMPLE:
                chosen = answers[dice.permutation(devices)[: devices // len(survey.questions)]]
            value = oracle.estimate(oracle.tally(oracle.sample(chosen))).value
            errors.append(np.mean((value - 1 / oracle.categories) ** 2))
    assert np.mean(errors) * devices == pytest.approx(survey.forecast(way), rel=0.2)


def test_pairs_are_asked_together_and_not_alone() -> None:
    survey = office(joint=(("way", "days"),))
    assert [question.name for question in survey.questions] == ["office: lunch", "office: way and days"]
    assert survey.questions[1].labels[:4] == ("foot | 0", "foot | 1", "foot | 2", "bike | 0")
    assert len(survey.questions[1].labels) == 9


def test_it_survives_a_file_and_no_change_does() -> None:
    survey = office(joint=(("way", "days"),), changes=2)
    written = survey.to_json()
    assert Questionnaire.from_json(written) == survey
    assert Questionnaire.from_json(written).identity == survey.identity
    damage: list[Any] = [{}, [], {"more": 1}, {"epsilon": "x"}, {"way": "both"}, {"format": "other"}]
    for each in damage:
        wrong = written | each if each else each
        with pytest.raises(InvalidParameter, match="no questionnaire"):
            Questionnaire.from_json(wrong)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("epsilon", 0),
        ("changes", 0),
        ("items", ()),
        ("items", (WAY, WAY)),
        ("items", (Item("a", ("x | y", "z")),)),
        ("joint", (("way", "way"),)),
        ("joint", (("way", "days"), ("days", "way"))),
        ("joint", (("way", "nobody"),)),
    ],
)
def test_what_it_refuses(field: str, wrong: Any) -> None:
    with pytest.raises(InvalidParameter, match=field):
        office(**{field: wrong})


def test_one_label_is_no_question() -> None:
    with pytest.raises(InvalidParameter, match="two labels"):
        office(items=(Item("a", ("x",)),))


def test_a_file_names_its_oracles_so_a_later_choice_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    written = office(joint=(("way", "days"),)).to_json()
    asked = Questionnaire.from_json(written).questions

    def other(epsilon: Fraction, categories: int) -> Choice:
        return Choice(SUE(epsilon=epsilon, categories=categories), "another choice")

    monkeypatch.setattr(specification, "choose", other)
    assert Questionnaire.from_json(written).questions == asked
    again = office(joint=(("way", "days"),))
    assert again.questions != asked
    assert again.identity == Questionnaire.from_json(written).identity  # each device keeps its question


def test_oracles_can_be_given_and_must_fit_the_budget() -> None:
    each = office(given_way=Way.SAMPLE).report_epsilon(Way.SAMPLE)
    fitting = tuple(SUE(epsilon=each, categories=len(item.labels)) for item in (WAY, LUNCH, DAYS))
    assert [question.oracle for question in office(given_way=Way.SAMPLE, oracles=fitting).questions] == [
        *fitting
    ]
    dear = (*fitting[:2], SUE(epsilon=each + Fraction(1, 1000), categories=3))
    for wrong in (fitting[:2], (fitting[1], *fitting[1:]), dear, ("SUE",) * 3):
        with pytest.raises(InvalidParameter) as refused:
            office(given_way=Way.SAMPLE, oracles=wrong)
        assert refused.value.name == "oracles"


def test_two_questions_that_would_share_a_fingerprint_are_refused() -> None:
    """Pairs ('a', 'b and c') and ('a and b', 'c') have one name: one report would count for both."""
    labels = ("no", "yes")
    items = tuple(Item(name, labels) for name in ("a", "b and c", "a and b", "c"))
    with pytest.raises(InvalidParameter) as refused:
        office(items=items, joint=(("a", "b and c"), ("a and b", "c")))
    assert refused.value.name == "items"
