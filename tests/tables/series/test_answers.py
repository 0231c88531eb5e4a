"""What is read off a series: intervals that hold, alone and together, differences, growth, mended totals."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.mechanisms import CorrelatedLaplace
from sourdine.tables.series import SeriesAnswers, SeriesPlan, SeriesView
from sourdine.tables.series.answers import SeriesRows, quantile
from sourdine.testing import SeededBits
from tests.tables.series.case import make_plan

TOTAL, PERIOD = SeriesView(), SeriesView(window=1)


def read(plan: SeriesPlan, values: np.ndarray, seed: int = 0) -> SeriesAnswers:
    """Answers for a whole series of these numbers, by key."""
    line = plan.lines[0]
    rows = line.mechanism.sample(values, SeededBits(seed))
    keys = tuple((f"k{i}",) for i in range(len(values)))
    table = SeriesRows(line=line, keys=keys, rows=rows, starts=np.ones(len(values), np.int64))
    return SeriesAnswers(
        tables=(table,),
        views=plan.block.views,
        calendar=plan.block.calendar,
        closed=plan.block.periods,
        confidence=plan.confidence,
        choice=plan.choice,
    )


def share(hits: np.ndarray) -> float:
    return float(np.mean(hits))


@pytest.mark.parametrize("delta", [1e-6, None])
def test_intervals_hold_alone_and_together(delta: float | None) -> None:
    """1,000 series of 26 weeks, each a key of its own."""
    plan = make_plan(periods=26, delta=delta, epsilon=1, publish=["total", "period"])
    rng = np.random.default_rng(5)
    values = rng.poisson(40, (1000, 26))
    answers, exact = read(plan, values), np.cumsum(values, axis=1)
    for view, truth in ((TOTAL, exact), (PERIOD, values)):
        every = np.ones(1000, bool)
        for period in range(1, 27):
            alone, joint = (answers.value(view, period, joint=joint) for joint in (False, True))
            inside = (alone.lower <= truth[:, period - 1]) & (truth[:, period - 1] <= alone.upper)
            assert share(inside) > 0.95 - 4.9 * math.sqrt(0.05 * 0.95 / 1000)
            every &= (joint.lower <= truth[:, period - 1]) & (truth[:, period - 1] <= joint.upper)
        assert share(every) > 0.95 - 4.9 * math.sqrt(0.05 * 0.95 / 1000)


def test_differences_and_growth_hold() -> None:
    plan = make_plan(periods=26, epsilon=1)
    values = np.random.default_rng(6).poisson(200, (1000, 26))
    answers = read(plan, values, 1)
    later, earlier = values[:, 13:].sum(axis=1), values[:, :13].sum(axis=1)
    change, rate = (ask((14, 26), (1, 13)) for ask in (answers.difference, answers.growth))
    for told, truth in ((change, later - earlier), (rate, later / earlier - 1)):
        assert 0.915 < share((told.lower <= truth) & (truth <= told.upper)) < 0.985
    assert change.deviation[0] < math.sqrt(2) * answers.value(SeriesView(window=13)).deviation[0] * 1.2


def test_a_ratio_to_nothing_has_no_ends() -> None:
    rate = read(make_plan(epsilon=Fraction(1, 10)), np.zeros((1, 6), int)).growth((4, 6), (1, 3))
    assert rate.lower[0] == -math.inf
    assert rate.upper[0] == math.inf


def test_turning_points_are_those_beyond_doubt() -> None:
    plan = make_plan(periods=26, epsilon=4)
    values = np.array([[100] * 8 + [400] * 8 + [50] * 10, [100] * 26])
    turns = read(plan, values).turning_points(4)
    assert [word for word, _ in turns[("k0",)]] == ["rise", "fall"]
    assert 9 <= turns[("k0",)][0][1] <= 12
    assert 17 <= turns[("k0",)][1][1] <= 20
    assert turns[("k1",)] == []


def test_mended_totals_never_fall_and_are_nearer() -> None:
    plan = make_plan(periods=26, epsilon=1)
    values = np.random.default_rng(2).poisson(1, (40, 26))
    answers = read(plan, values)
    mended = answers.non_negative()
    assert (mended >= 0).all()
    plain = np.stack([answers.value(PERIOD, t).value for t in range(1, 27)], axis=1)
    assert np.mean((mended - values) ** 2) < np.mean((plain - values) ** 2)
    signed = make_plan(ask={"sum": "pay"})
    with pytest.raises(InvalidParameter, match="negative"):
        read(signed, values[:, :6]).non_negative()


def test_a_key_that_came_later_has_less_noise() -> None:
    plan = make_plan(periods=6)
    answers = read(plan, np.zeros((2, 6), int))
    late = SeriesRows(
        line=answers.tables[0].line,
        keys=answers.tables[0].keys,
        rows=answers.tables[0].rows,
        starts=np.array([1, 6]),
    )
    weights = late.matrix.coefficients(1, 6)
    early, later = late.deviation(weights)
    assert early / later == pytest.approx(np.linalg.norm(weights) / abs(weights[-1]))


def test_quantiles_of_many_are_wider() -> None:
    mechanism = make_plan().lines[0].mechanism
    assert quantile(mechanism, 0.95) == pytest.approx(1.959964, abs=1e-6)
    assert quantile(mechanism, 0.95, 52) == pytest.approx(3.294, abs=1e-3)
    laplace = make_plan(delta=None).lines[0].mechanism
    assert isinstance(laplace, CorrelatedLaplace)
    assert quantile(laplace, 0.95, 52) > quantile(laplace, 0.95)


def test_what_cannot_be_read_is_refused() -> None:
    answers = read(make_plan(publish=["total", {"window": 3}]), np.zeros((1, 6), int))
    for ask, reason in [
        (lambda: answers.value(SeriesView(window=3), 2), "first period"),
        (lambda: answers.value(TOTAL, query="other"), "no such thing"),
        (lambda: answers.value(TOTAL).at("k9"), "no such key"),
        (lambda: answers.difference((3, 9), (1, 2)), "last period"),
    ]:
        with pytest.raises(InvalidParameter, match=reason):
            ask()
