"""What is computed from answers: the right rows, noise in common, and nothing that was not asked."""

from dataclasses import replace

import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.frames import Schema
from sourdine.frames.keys import Keys
from sourdine.tables import Answer, Query
from sourdine.tables.compare import (
    BY_STEP,
    AnswerChange,
    AnswerDifference,
    AnswerFormula,
    AnswerRatio,
    AnswerShare,
    AnswerStep,
    compared,
    difference,
    ratio,
)
from sourdine.tables.intervals import GroupEstimate
from sourdine.tables.statistics import COMPUTED, Count, Mean, Sum, Units


def answer(label: str, values: list[float], reach: float = 1.0, **keys: list[str]) -> Answer:
    held = np.array(values)
    return Answer(
        query="q",
        statistic=label,
        kind="mean",
        columns=tuple(keys),
        keys=Keys.product(list(keys.values())),
        estimate=GroupEstimate(held, held - reach, held + reach),
        measure="euros",
    )


PAY = answer("mean of pay", [10, 20, 30, 50], sex=["f", "m"], region=["n", "s"])


def apply(step: AnswerStep, *answers: Answer, shared: bool = False) -> Answer:
    return compared([step], answers or [PAY], lambda one, other, over: shared)[-1]


def test_a_difference_between_groups_is_told_for_every_other_key() -> None:
    found = apply(AnswerDifference("mean of pay", column="sex", first="m", second="f"))
    assert found.columns == ("region",)
    assert list(found.keys) == [("n",), ("s",)]
    assert found.estimate.value.tolist() == [20, 30]
    assert found.estimate.upper == pytest.approx([20 + 2**0.5, 30 + 2**0.5], abs=0.01)
    assert found.measure == "euros"
    assert apply(AnswerDifference("mean of pay", column="region", first="n", second="s")).at("m")[0] == -20


def test_noise_in_common_widens_what_is_compared() -> None:
    step = AnswerDifference("mean of pay", column="sex", first="m", second="f")
    assert apply(step, shared=True).estimate.upper.tolist() == [22, 32]


def test_a_ratio_between_groups() -> None:
    found = apply(AnswerRatio("mean of pay", column="sex", first="m", second="f"))
    assert found.estimate.value == pytest.approx([3, 2.5])
    one, two = (GroupEstimate(np.array([x]), np.array([x - 1]), np.array([x + 1])) for x in (30.0, 10.0))
    assert found.estimate.lower[0] == pytest.approx(ratio(one, two).lower[0], abs=0.01)


def test_statistics_are_compared_group_by_group_or_with_one_for_all() -> None:
    spend, users = (
        answer("sum of spend", [100, 300], sex=["f", "m"]),
        answer("units", [10, 20], sex=["f", "m"]),
    )
    found = apply(AnswerRatio("sum of spend", per="units"), spend, users)
    assert found.estimate.value == pytest.approx([10, 15])
    assert found.measure == "euros per euros"
    alone = answer("units", [20.0])
    assert apply(AnswerDifference("sum of spend", less="units"), spend, alone).estimate.value.tolist() == [
        80,
        280,
    ]
    with pytest.raises(InvalidParameter, match="other keys"):
        apply(
            AnswerRatio("sum of spend", per="units"), spend, answer("units", [1, 2, 3], sex=["a", "b", "c"])
        )


def test_what_is_divided_by_nothing_has_no_ends_and_says_so() -> None:
    found = apply(AnswerRatio("x", per="y"), answer("x", [10.0]), answer("y", [0.5]))
    assert found.blind(float(found.estimate.lower[0]), float(found.estimate.upper[0]))
    assert np.isfinite(found.estimate.lower).all()  # every file of numbers can hold it


def test_every_step_has_a_style() -> None:
    assert set(COMPUTED) == set(BY_STEP)


def test_shares_add_up_within_what_they_are_shares_of() -> None:
    whole = apply(AnswerShare("mean of pay"))
    assert whole.estimate.value == pytest.approx(np.array([10, 20, 30, 50]) / 110, abs=1e-3)
    within = apply(AnswerShare("mean of pay", column="sex"))
    assert within.estimate.value == pytest.approx([0.25, 2 / 7, 0.75, 5 / 7], abs=1e-3)
    assert np.all((within.estimate.lower >= 0) & (within.estimate.upper <= 1))


def test_changes_go_from_one_key_to_the_next() -> None:
    counts = answer("count", [10, 20, 40, 5, 5, 10], sex=["f", "m"], month=["1", "2", "3"])
    found = apply(AnswerChange("count", column="month"), counts)
    assert list(found.keys) == [("f", "2"), ("f", "3"), ("m", "2"), ("m", "3")]
    assert found.estimate.value.tolist() == [10, 20, 0, 5]
    relative = apply(AnswerChange("count", column="month", relative=True), counts)
    assert relative.estimate.value == pytest.approx([1, 1, 0, 1])
    outer = apply(AnswerChange("count", column="sex"), counts)
    assert list(outer.keys) == [("m", "1"), ("m", "2"), ("m", "3")]


def test_a_formula_takes_ends_to_ends() -> None:
    found = apply(AnswerFormula("mean of pay", factor=-2, offset=1))
    assert found.estimate.value.tolist() == [-19, -39, -59, -99]
    assert found.estimate.lower.tolist() == [-21, -41, -61, -101]
    near = answer("x", [0.5])
    square = apply(AnswerFormula("x", power=2), near)
    assert (square.estimate.lower[0], square.estimate.upper[0]) == pytest.approx((0, 2.25), abs=0.01)
    turned = apply(AnswerFormula("x", power=2, factor=-1), near)
    assert turned.estimate.upper[0] == pytest.approx(0, abs=0.01)


def test_a_step_may_use_another() -> None:
    steps = [AnswerShare("mean of pay"), AnswerFormula("share of mean of pay", factor=100, name="per cent")]
    found = compared(steps, [PAY], lambda one, other, over: False)
    assert [each.statistic for each in found] == ["mean of pay", "share of mean of pay", "per cent"]
    assert found[-1].estimate.value.sum() == pytest.approx(100, abs=0.5)


SCHEMA = Schema.read(
    {
        "sex": {"type": "category", "keys": ["f", "m"]},
        "town": {"type": "text"},
        "pay": {"type": "real", "lower": 0.0, "upper": 100.0},
    }
)


@pytest.mark.parametrize(
    ("step", "by", "sentence"),
    [
        (AnswerDifference("mean of age", column="sex", first="m", second="f"), "sex", "does not ask for"),
        (AnswerDifference("mean of pay", column="sex", first="m", second="x"), "sex", "does not declare"),
        (AnswerDifference("mean of pay", column="sex", first="m", second="f"), (), "does not group"),
        (AnswerDifference("mean of pay", column="town", first="a", second="b"), "town", "chosen privately"),
        (AnswerRatio("mean of pay", per="units"), "sex", "does not ask for"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_is_paid(
    step: AnswerStep, by: str, sentence: str
) -> None:
    with pytest.raises(InvalidParameter, match=sentence):
        Query("q", [Mean("pay")], by=by, compare=step).check(SCHEMA)


@pytest.mark.parametrize(
    "make",
    [
        lambda: AnswerDifference("x"),
        lambda: AnswerDifference("x", column="sex", first="m"),
        lambda: AnswerDifference("x", column="sex", first="m", second="m"),
        lambda: AnswerRatio("x", per="y", column="sex", first="a", second="b"),
    ],
)
def test_a_step_needs_two_sides(make: object) -> None:
    with pytest.raises(InvalidParameter):
        make()  # type: ignore[operator]


def test_a_query_with_steps_survives_json_and_is_read_from_a_file() -> None:
    query = Query(
        "q",
        [Mean("pay"), Count(), Sum("pay"), Units()],
        by="sex",
        compare=[
            AnswerDifference("mean of pay", column="sex", first="m", second="f"),
            AnswerRatio("sum of pay", per="units"),
            AnswerShare("count"),
            AnswerFormula("mean of pay", factor=12),
        ],
    )
    assert Query.model_validate_json(query.model_dump_json()) == query
    block = {
        "name": "q",
        "ask": [{"mean": "pay"}, "count", {"sum": "pay"}, "units"],
        "by": ["sex"],
        "compare": [
            {"difference": "mean of pay", "column": "sex", "first": "m", "second": "f"},
            {"ratio": "sum of pay", "per": "units"},
            {"share": "count"},
            {"formula": "mean of pay", "factor": 12},
        ],
    }
    assert Query.read(block) == query
    with pytest.raises(InvalidParameter, match="no comparison 'gap'"):
        Query.read({**block, "compare": [{"gap": "mean of pay"}]})


def test_the_least_interval_is_that_of_independent_noises() -> None:
    one = GroupEstimate(np.array([3.0]), np.array([0.0]), np.array([6.0]))
    assert difference(one, one).lower[0] == pytest.approx(-(18**0.5))


def test_an_interval_that_is_cut_off_says_no_more_than_its_ends() -> None:
    """Two means between 0 and 10 of which nothing is known may differ by 10, either way."""
    keys, value = Keys.product([["f", "m"]]), np.array([5.0, 4.4])
    blind = GroupEstimate(value, np.zeros(2), np.full(2, 10.0))
    source = replace(PAY, columns=("sex",), keys=keys, estimate=blind, span=(0.0, 10.0))
    found = apply(AnswerDifference("mean of pay", column="sex", first="m", second="f"), source)
    assert found.estimate.lower[0] <= -10
    assert found.estimate.upper[0] >= 10
    known = replace(source, span=(-90.0, 90.0))
    assert (
        apply(AnswerDifference("mean of pay", column="sex", first="m", second="f"), known).estimate.upper[0]
        < 10
    )
