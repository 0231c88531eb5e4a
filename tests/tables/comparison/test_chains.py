"""What is computed of what was computed: its noise is in common wherever a step before put it together."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import sourdine as sd
from sourdine.frames.keys import Keys
from sourdine.tables import Answer
from sourdine.tables.compare import (
    AnswerChange,
    AnswerDifference,
    AnswerFormula,
    AnswerShare,
    AnswerStep,
    compared,
)
from sourdine.tables.intervals import GroupEstimate
from sourdine.tables.release import _carry_out
from sourdine.testing import SeededBits

RUNS, ALARM, SIGMA = 4000, 1e-6, 10.0
TRUTH = np.array([600.0, 400.0, 700.0])
COUNT = "count"
CHAINS: dict[str, tuple[list[AnswerStep], float]] = {
    "shares of a whole": (
        [
            AnswerShare(COUNT, column="month"),
            AnswerDifference("share of count by month", column="month", first="a", second="c"),
        ],
        -100 / 1700,
    ),
    "changes that follow each other": (
        [
            AnswerChange(COUNT, column="month"),
            AnswerDifference("change of count by month", column="month", first="c", second="b"),
        ],
        500.0,
    ),
    "a count and its double": (
        [
            AnswerDifference(COUNT, column="month", first="a", second="b"),
            AnswerFormula("count, a less b", factor=-1),
            AnswerDifference("count, a less b", less="-1 * count, a less b"),
        ],
        400.0,
    ),
}


def released() -> Answer:
    """As many releases as runs, side by side as keys of a column."""
    noise = np.random.default_rng(7).normal(0, SIGMA, (RUNS, TRUTH.size))
    value = (TRUTH + noise).ravel()
    reach = 1.96 * SIGMA
    return Answer(
        query="q",
        statistic=COUNT,
        kind="count",
        columns=("run", "month"),
        keys=Keys.product([[str(run) for run in range(RUNS)], ["a", "b", "c"]]),
        estimate=GroupEstimate(value, value - reach, value + reach),
        measure="records",
    )


@pytest.mark.parametrize("name", CHAINS)
def test_intervals_hold_the_truth_as_often_as_those_they_come_from(name: str) -> None:
    steps, truth = CHAINS[name]
    found = compared(steps, [released()], lambda one, other, over: False)[-1].estimate
    assert found.value.size == RUNS
    inside = ((found.lower <= truth) & (truth <= found.upper)).sum()
    assert inside >= binom.ppf(ALARM, RUNS, 0.95)


def test_groups_of_other_columns_stay_independent() -> None:
    steps = [
        AnswerChange(COUNT, column="month"),
        *(
            AnswerDifference(of, column="run", first="0", second="1")
            for of in (COUNT, "change of count by month")
        ),
    ]
    *_, plain, change = compared(steps, [released()], lambda one, other, over: False)
    wide = [each.estimate.upper[0] - each.estimate.lower[0] for each in (plain, change)]
    assert wide == pytest.approx([2 * 1.96 * SIGMA * 2**0.5, 2 * 1.96 * SIGMA * 2], rel=0.01)


def test_there_may_be_no_keys_to_compare() -> None:
    """Where one column's keys are chosen privately there may be none, and what was paid for is still told."""
    none = Answer(
        query="q",
        statistic=COUNT,
        kind="count",
        columns=("month", "town"),
        keys=Keys.product([["a", "b"], ["x"]]).take(np.zeros(0, np.int64)),
        estimate=GroupEstimate(*(np.zeros(0) for _ in range(3))),
        measure="records",
    )
    steps = [AnswerDifference(COUNT, column="month", first="a", second="b"), AnswerShare(COUNT)]
    assert [len(each.keys) for each in compared(steps, [none], lambda one, other, over: False)] == [0, 0, 0]


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95])
def test_intervals_of_differences_hold_at_every_confidence(confidence: float) -> None:
    """Laplace noise is peaked, so that at low confidence sums of squares would be too short."""
    runs = 3000
    nobody = pa.table({"sex": pa.array([], pa.string()), "run": pa.array([], pa.int64())})
    columns = {
        "sex": {"type": "category", "keys": ["f", "m"]},
        "run": {"type": "category", "keys": list(range(runs))},
    }
    table = sd.Table(nobody, unit="person", columns=columns)
    step = AnswerDifference(COUNT, column="sex", first="m", second="f")
    query = sd.Query("gap", ["count"], by=["sex", "run"], compare=step)
    plan = table.plan(query, epsilon=0.01, confidence=confidence, quality=False)
    found = _carry_out(plan, table.source, bits=SeededBits(11))["gap", step.label].estimate
    inside = ((found.lower <= 0) & (found.upper >= 0)).sum()
    assert found.value.size == runs
    assert inside >= binom.ppf(ALARM, runs, confidence)
