from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local.cleaner import Method
from sourdine.local.utility import JudgedOn, LearningModel, Utility, measure_utility
from sourdine.testing import SeededBits

COLUMNS = {
    "dose": {"type": "integer", "lower": 0, "upper": 20},
    "kind": {"type": "category", "keys": ["a", "b"], "missing": "a"},
    "well": {"type": "flag", "missing": False},
}


def table(rows: int = 300) -> pa.Table:
    place = np.arange(rows)
    well = place * 7 % 10 < 6
    kind = np.where(well ^ (place % 5 == 0), "a", "b")
    return pa.table({"dose": np.where(well, 14, 6) + place % 7 - 3, "kind": kind, "well": well})


def measured(**more: Any) -> Utility:
    return measure_utility(
        table(),
        {"columns": COLUMNS},
        label="well",
        **{"each": [1, 20], "repeats": 4, "bits": SeededBits(1), **more},
    )


def test_more_epsilon_teaches_more_and_no_noise_most() -> None:
    found = measured()
    assert (found.train, found.test, found.repeats, found.by_column) == (240, 60, 4, True)
    assert [(point.method, point.target) for point in found.points] == [
        (method, asked) for asked in (1, 20) for method in Method
    ]
    low, high = found.points[0], found.points[3]
    accuracy = [point.scores[JudgedOn.UNTOUCHED].accuracy for point in (low, high)]
    assert all(len(each) == 4 for each in accuracy)
    assert accuracy[0].mean() < accuracy[1].mean()
    assert found.without_noise[LearningModel.NAIVE_BAYES] == (1.0, 1.0)
    assert found.commonest[0] == pytest.approx(0.6, abs=0.1)


def test_the_price_is_that_of_the_cleaner_and_not_what_was_asked() -> None:
    laplace, staircase, _ = (point.price for point in measured(each=[1]).points)
    assert 2.7 < laplace < 2.8  # three columns, one of which keeps missing cells and costs less
    assert staircase == 3
    person = measured(each=None, epsilon=3)
    assert [point.target for point in person.points] == [3, 3, 3]
    assert person.points[0].price == laplace
    assert not person.by_column


def test_a_row_may_be_tested_as_it_is_or_cleaned() -> None:
    (point,) = measured(each=[1], methods=[Method.LAPLACE], tested=list(JudgedOn)).points
    means = {kind: scores.accuracy.mean() for kind, scores in point.scores.items()}
    assert list(means) == list(JudgedOn)
    assert means[JudgedOn.CLEANED] < means[JudgedOn.UNTOUCHED]


def test_the_same_bits_and_split_give_the_same_scores() -> None:
    one, two = measured(), measured()
    for first, second in zip(one.points, two.points, strict=True):
        assert (first.scores[JudgedOn.UNTOUCHED].f1 == second.scores[JudgedOn.UNTOUCHED].f1).all()


def test_noises_of_numbers_are_one_where_there_are_none() -> None:
    columns = {name: COLUMNS[name] for name in ("kind", "well")}
    found = measure_utility(
        table(), {"columns": columns}, label="well", each=[1], repeats=2, bits=SeededBits(1)
    )
    assert len(found.points) == 1
    assert not found.numbers


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"label": "dose"}, "flag or a category"),
        ({"label": "nobody"}, "flag or a category"),
        ({"epsilon": 1}, "Give one"),
        ({"each": None}, "Give one"),
        ({"each": []}, "Name some"),
        ({"each": [0]}, "above 0"),
        ({"repeats": 1}, "repeats"),
        ({"test": 0.999}, "too few rows"),
        ({"models": ["tree"]}, "LearningModel"),
    ],
)
def test_what_makes_no_sense_is_refused(more: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"label": "well", "each": [1], "repeats": 2, **more}
    with pytest.raises(InvalidParameter, match=message):
        measure_utility(table(), {"columns": COLUMNS}, **given)


def test_a_model_that_is_not_installed_is_told_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sklearn", None)
    with pytest.raises(InvalidParameter, match="pip install scikit-learn"):
        measured(models=[LearningModel.TREE])


def test_nothing_to_learn_from_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="Nothing but the label"):
        measure_utility(table(), {"columns": {"well": COLUMNS["well"]}}, label="well", each=[1])
    unlabelled = {**COLUMNS, "kind": {"type": "category", "keys": ["x", "y"]}}
    with pytest.raises(InvalidParameter, match="has a label"):
        measure_utility(table(), {"columns": unlabelled}, label="kind", each=[1])
