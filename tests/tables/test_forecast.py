"""Errors told before anything is spent are the errors that are made."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

from sourdine.core.errors import InvalidParameter
from sourdine.frames import PrivacyUnit, Schema
from sourdine.tables import Forecast, Privacy, Query, ReleasePlan, epsilon_for, forecasts
from tests.statistics import ALARM
from tests.tables.alike import answers, plan_of, table_of

SIZE, GROUPS = 401, 600
EVENLY = np.linspace(0, 100, SIZE)
ASKS: dict[str, Any] = {
    "count": "count",
    "sum": {"sum": "x"},
    "mean": {"mean": "x"},
    "proportion": {"proportion": "x", "at_least": 50},
}
EXACT = {"count": SIZE, "sum": float(np.rint(EVENLY).sum()), "mean": float(np.rint(EVENLY).mean())}


def forecast(plan: ReleasePlan, query: str) -> Forecast:
    return next(each for each in forecasts(plan) if each.query == query)


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_forecast_errors_are_those_that_are_made(delta: float | None) -> None:
    """As many errors stay within the forecast as it says, and hardly more."""
    table = table_of(EVENLY, GROUPS)
    plan = plan_of(table, list(ASKS.values()), 1.0, delta)
    assert plan.per_group(plan.lines[0].measurement) == SIZE
    for number, answer in enumerate(answers(table, plan, 5).each):
        told = forecast(plan, str(number)).error
        assert told is not None
        if answer.kind == "proportion":
            exact, told = float((np.rint(EVENLY) >= 50).mean()), told / 100
        else:
            exact = EXACT[answer.kind]
        inside = int((np.abs(answer.estimate.value - exact) <= told * (1 + 1e-9)).sum())
        assert binom.ppf(ALARM, GROUPS, 0.94) <= inside <= binom.isf(ALARM, GROUPS, 0.98), answer.kind


@pytest.mark.parametrize(
    ("kind", "target", "delta"),
    [
        ("count", 25, None),
        ("sum", 2500, None),
        ("mean", 0.5, None),
        ("proportion", 3, None),
        ("count", 25, 1e-6),
        pytest.param("sum", 2500, 1e-6, marks=pytest.mark.slow),
        pytest.param("mean", 0.5, 1e-6, marks=pytest.mark.slow),
        pytest.param("proportion", 3, 1e-6, marks=pytest.mark.slow),
    ],
)
def test_epsilon_for_reaches_its_target_and_no_more(kind: str, target: float, delta: float | None) -> None:
    plan = plan_of(table_of(EVENLY, 1), [ASKS[kind], "units"], 1.0, delta)
    found = epsilon_for(plan, "0", target)
    error = forecast(found, "0").error
    assert error is not None
    assert error <= target
    less = replace(found, privacy=Privacy(epsilon=found.privacy.epsilon * Fraction(99, 100), delta=delta))
    worse = forecast(less, "0").error
    assert worse is not None
    step = 1 if kind == "count" else 0  # errors of counts are whole
    assert worse > target - step


def test_epsilon_for_says_what_it_needs() -> None:
    plan = plan_of(table_of(EVENLY, 1), [ASKS["mean"]], 1.0)
    with pytest.raises(InvalidParameter, match="no query 'x'"):
        epsilon_for(plan, "x", 1)
    with pytest.raises(InvalidParameter, match="Declare the table's size"):
        epsilon_for(replace(plan, size=None), "0", 1)
    with pytest.raises(InvalidParameter, match="No epsilon up to 1024"):
        epsilon_for(plan, "0", 1e-9)
    with pytest.raises(InvalidParameter, match="must be above 0"):
        epsilon_for(plan, "0", 0)


def test_weights_divide_the_budget() -> None:
    schema = Schema.read({"sex": {"type": "category", "keys": ["f", "m"]}})
    queries = tuple(
        Query.read({"name": name, "ask": ask, "weight": weight, "by": ["sex"]})
        for name, ask, weight in [("a", ["count"], 3), ("b", ["count", "units"], 1), ("c", ["units"], 0.5)]
    )
    for delta in (None, 1e-6):
        plan = ReleasePlan(
            schema=schema,
            queries=queries,
            privacy=Privacy(epsilon=Fraction(9), delta=delta),
            unit=PrivacyUnit(column="who"),
            quality=False,
        )
        shares = {name: Fraction(0) for name in "abc"}
        for line in plan.lines:
            shares[line.measurement.scope.query] += line.share
        assert shares == {"a": Fraction(6, 9), "b": Fraction(2, 9), "c": Fraction(1, 9)}
        errors = [forecast(plan, name).error for name in "abc"]
        assert errors[0] is not None
        assert all(error is not None and error > errors[0] for error in errors[1:])


def test_aggregates_of_one_column_are_read_off_the_same_numbers() -> None:
    table = table_of(EVENLY, 1)
    asks = [{"mean": "x"}, {"deviation": "x"}, {"variance": "x"}, {"sum": "x"}]
    plan = table.plan({"name": "all", "ask": asks}, epsilon=1, quality=False)
    assert len(plan.lines) == 1
    assert plan.lines[0].share == 1
    assert [each.share for each in forecasts(plan)] == [1] * 4


def test_forecasts_of_quantiles_are_in_ranks_unless_a_law_is_declared() -> None:
    table = table_of(EVENLY, 1)
    ranks, even, normal = (
        forecast(
            table.plan({"name": "q", "ask": [{"quantiles": "x", "levels": [0.5], **law}]}, epsilon=1), "q"
        )
        for law in ({}, {"law": "uniform"}, {"law": {"mean": 50.0, "deviation": 10.0}})
    )
    assert ranks.measure == "ranks"
    assert ranks.error is not None
    assert even.error == pytest.approx(ranks.error / SIZE * 100)
    assert normal.error == pytest.approx(10 * norm.ppf(0.5 + ranks.error / SIZE))


def test_a_law_counts_at_the_level_where_it_is_widest_and_within_the_bounds() -> None:
    """The same ranks are farther apart where fewer values are, and nothing is farther than the bounds."""
    table = table_of(EVENLY, 1)
    law = {"mean": 50.0, "deviation": 10.0}

    def told(at: list[float], epsilon: float) -> float:
        ask = {"quantiles": "x", "levels": at, "law": law, "method": "inverse"}
        error = forecast(table.plan({"name": "q", "ask": [ask]}, epsilon=epsilon, quality=False), "q").error
        assert error is not None
        return error

    ranks = math.log(101 / 0.05) / (20 / (2 * 0.9))  # of the ninth decile alone, at epsilon 20
    assert told([0.9], 20.0) == pytest.approx(10 * (norm.ppf(0.9 + ranks / SIZE) - norm.ppf(0.9)))
    assert told([0.1, 0.5], 20.0) > told([0.5], 20.0)
    assert told([0.9], 0.01) == pytest.approx(50 + 10 * norm.ppf(0.9))  # down to the lower bound


def test_less_epsilon_is_more_error_in_every_forecast() -> None:
    table = table_of(EVENLY, 2)
    asks = [
        *ASKS.values(),
        {"deviation": "x"},
        {"variance": "x"},
        {"quantiles": "x", "levels": [0.5]},
        "units",
    ]
    for delta in (None, 1e-6):
        errors = [
            [each.error or 0.0 for each in forecasts(plan_of(table, asks, epsilon, delta))]
            for epsilon in (0.5, 1.0, 2.0)
        ]
        assert all(a >= b >= c > 0 for a, b, c in zip(*errors, strict=True))
        assert all(a > c for a, _, c in zip(*errors, strict=True))
