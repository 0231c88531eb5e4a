"""What cannot be compared or shown is refused before anything is read or paid for."""

import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.frames import Schema
from sourdine.tables import Query
from sourdine.tables.compare import (
    AnswerChange,
    AnswerDifference,
    AnswerFormula,
    AnswerRatio,
    AnswerShare,
    AnswerStep,
)
from sourdine.tables.statistics import Correlation, Count, Mean, Quantiles, Statistic, Sum

SCHEMA = Schema.read(
    {
        "age": {"type": "integer", "lower": 0, "upper": 120},
        "net": {"type": "integer", "lower": -100, "upper": 100},
        "sex": {"type": "category", "keys": ["f", "m"]},
        "year": {"type": "category", "keys": [2023, 2024]},
        "well": {"type": "flag"},
    }
)
ASKED: list[Statistic] = [Count(), Sum("age"), Sum("net"), Mean("net"), Correlation("age", "net")]


def check(*steps: AnswerStep, ask: list[Statistic] = ASKED, **show: object) -> None:
    Query("q", ask, by=["sex", "year", "well"], compare=steps, show=show).check(SCHEMA)


@pytest.mark.parametrize("of", ["sum of net", "mean of net", "correlation of age and net", "-1 * count"])
def test_no_shares_of_what_may_be_negative(of: str) -> None:
    with pytest.raises(InvalidParameter, match="may be below 0"):
        check(AnswerFormula("count", factor=-1), AnswerShare(of))


def test_shares_of_what_may_not() -> None:
    check(AnswerShare("count"), AnswerShare("sum of age"), AnswerShare("share of count", column="sex"))
    check(AnswerRatio("sum of age", per="count"), AnswerShare("sum of age per count"))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (Mean("age"), Quantiles("age", [0.5])),
        (Quantiles("age", [0.5]), Quantiles("net", [0.5, 0.9])),
        (Quantiles("age", [0.5]), Mean("age")),
    ],
)
def test_statistics_with_other_rows_are_not_compared(one: Statistic, two: Statistic) -> None:
    with pytest.raises(InvalidParameter, match="have other keys"):
        check(AnswerDifference(one.label, less=two.label), ask=[one, two])


def test_the_same_rows_are_compared() -> None:
    one, two = Quantiles("age", [0.5]), Quantiles("net", [0.5])
    check(AnswerDifference(one.label, less=two.label), ask=[one, two])
    with pytest.raises(InvalidParameter, match="must be another statistic"):
        AnswerRatio("count", per="count")


def test_rows_are_shown_by_answers_that_have_them_all() -> None:
    change = AnswerChange("count", column="year")
    with pytest.raises(InvalidParameter, match="other rows than 'count'"):
        check(change, order=[{"of": change.label}])


@pytest.mark.parametrize(
    ("of", "value"), [("count", "x"), ("count", True), ("sex", 1), ("year", "2023"), ("well", "yes")]
)
def test_rows_are_compared_with_values_of_their_kind(of: str, value: object) -> None:
    with pytest.raises(InvalidParameter, match="not of its kind"):
        check(having=[{"of": of, "sign": "=", "value": value}])


@pytest.mark.parametrize(("of", "value"), [("count", 1.5), ("sex", "f"), ("year", 2023), ("well", True)])
def test_values_of_their_kind(of: str, value: object) -> None:
    check(having=[{"of": of, "sign": "=", "value": value}])


@pytest.mark.parametrize("value", [10**400, float("nan"), float("inf")])
def test_no_number_is_beyond_what_answers_are(value: float) -> None:
    with pytest.raises(InvalidParameter):
        check(having=[{"of": "count", "sign": "=", "value": value}])
    with pytest.raises(InvalidParameter):
        AnswerFormula("count", factor=value)
    with pytest.raises(InvalidParameter):
        AnswerFormula("count", offset=value)


def test_no_factor_of_zero() -> None:
    with pytest.raises(InvalidParameter, match="must not be 0"):
        AnswerFormula("count", factor=0)
