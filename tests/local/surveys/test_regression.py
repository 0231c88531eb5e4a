"""Regression on randomized answers: closed forms, a second way to the maximum, and coverage."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit

from sourdine.core.errors import InvalidParameter
from sourdine.core.random import samplers as exact
from sourdine.local import AnswerRegression, Survey, regress
from sourdine.mechanisms import Channel
from sourdine.testing import SeededBits

TRUE = np.array([-2.2, 0.03, 0.7])
FORCED = Survey.two_coins(truth=2 / 3)  # a die: 1 forces no, 6 forces yes (Blair, Imai, Zhou 2015)
DESIGNS = [Survey.two_coins(), FORCED, Survey.two_coins(0.6, 0.25), Survey(Channel(0.8, 0.2))]
NOBODY = np.zeros((1000, 0))


def people(count: int, bits: SeededBits) -> NDArray[np.float64]:
    ages = 18 + exact.uniform(63, count, bits)
    return np.stack([ages, exact.uniform(2, count, bits)], axis=1).astype(float)


def say(survey: Survey, rows: NDArray[np.float64], bits: SeededBits) -> NDArray[np.bool_]:
    rate = survey.rate(expit(TRUE[0] + rows @ TRUE[1:]))
    return np.asarray(bits.words(len(rows)) / 2.0**64 < rate)


@pytest.mark.parametrize("survey", DESIGNS)
@pytest.mark.parametrize("yes", [400, 500, 650])
def test_without_covariates_it_is_the_estimate_of_the_share(survey: Survey, yes: int) -> None:
    found = regress(survey, np.arange(1000) < yes, NOBODY)
    share = survey.estimate(yes, 1000, population=True)
    assert found.settled
    assert found.coefficients == pytest.approx([logit(share.value)])
    predicted = found.predict(np.zeros((1, 0)))
    assert predicted.value == pytest.approx([share.value])
    assert predicted.variance == pytest.approx([share.variance])  # r(1-r)/(n (p-q)^2), by the delta method


def test_groups_are_estimated_by_themselves() -> None:
    city = np.repeat([0.0, 1.0], 1000)
    said = np.r_[np.arange(1000) < 350, np.arange(1000) < 550]
    found = regress(FORCED, said, city[:, None], names=["city"]).predict([[0], [1]])
    for place, yes in enumerate((350, 550)):
        alone = FORCED.estimate(yes, 1000, population=True)
        assert found.value[place] == pytest.approx(float(alone.value))
        assert found.variance[place] == pytest.approx(float(alone.variance))


@pytest.mark.parametrize(
    "survey", [*DESIGNS, Survey(Channel(1.0, 0.0))]
)  # the last: ordinary logistic regression
def test_the_maximum_by_another_way(survey: Survey) -> None:
    bits = SeededBits(3)
    rows = people(800, bits)
    said = say(survey, rows, bits)
    p, q = survey.channel

    def loss(scaled: NDArray[np.float64]) -> float:
        rate = q + (p - q) * expit(scaled[0] + (rows - [45, 0]) @ (scaled[1:] * [0.1, 1]))
        return -float(np.sum(np.where(said, np.log(rate), np.log1p(-rate))))

    found = regress(survey, said, rows)
    other = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-6})
    slopes = other.x[1:] * [0.1, 1]
    assert found.log_likelihood == pytest.approx(-other.fun, abs=1e-7)
    assert found.coefficients == pytest.approx([other.x[0] - 45 * slopes[0], *slopes], rel=1e-3, abs=1e-4)


def covered(survey: Survey, runs: int) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    inside, off = [], []
    for seed in range(runs):
        bits = SeededBits(seed)
        rows = people(2000, bits)
        found = regress(survey, say(survey, rows, bits), rows)
        assert found.settled
        inside.append((found.lower <= TRUE) & (found.upper >= TRUE))
        off.append((found.coefficients - TRUE) / found.errors)
    return np.array(inside), np.array(off)


def test_intervals_cover() -> None:
    inside, off = covered(FORCED, 24)
    assert inside.sum() >= 24 * 3 - 12  # of 72; fewer has a probability below 1e-3, and the seeds are fixed
    assert np.all(np.abs(off) < 5)


@pytest.mark.slow
@pytest.mark.parametrize("survey", DESIGNS)
def test_intervals_cover_as_often_as_they_say(survey: Survey) -> None:
    inside, off = covered(survey, 400)
    assert np.all(np.abs(inside.mean(axis=0) - 0.95) < 0.045)  # four standard deviations of a binomial share
    assert np.all(np.abs(off.std(axis=0) - 1) < 0.15)


def test_counts_stand_for_people() -> None:
    bits = SeededBits(5)
    rows = people(300, bits)
    said = say(FORCED, rows, bits)
    many = 1 + exact.uniform(3, 300, bits)
    once = regress(FORCED, said, rows, counts=many)
    each = regress(FORCED, np.repeat(said, many), np.repeat(rows, many, axis=0))
    assert once.reports == each.reports == many.sum()
    assert once.coefficients == pytest.approx(each.coefficients)
    assert once.errors == pytest.approx(each.errors)


@pytest.mark.parametrize("yes", [50, 950])
def test_what_no_share_explains_is_told(yes: int) -> None:
    found = regress(Survey.two_coins(), np.arange(1000) < yes, NOBODY)
    assert not found.settled
    assert np.isfinite(found.coefficients).all()


@pytest.mark.parametrize(
    ("said", "rows", "told"),
    [
        ([0, 1, 2], np.ones((3, 1)), "'answers'"),
        ([], np.zeros((0, 0)), "'answers'"),
        ([0, 1], np.zeros((3, 1)), "'covariates'"),
        ([0, 1], [[1.0], [np.nan]], "finite"),
        ([0, 1, 1], np.ones((3, 1)), "constant"),
        ([0, 1, 1, 0], np.array([[0, 1], [1, 3], [2, 5], [4, 9.0]]), "'x2'"),
    ],
)
def test_mistakes_are_told(said: list[int], rows: NDArray[np.float64], told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        regress(FORCED, said, rows)


def test_settings_are_checked() -> None:
    for wrong in ({"names": ["a", "b"]}, {"counts": [1]}, {"confidence": 2}):
        with pytest.raises(InvalidParameter):
            regress(FORCED, [0, 1], [[1], [2]], **wrong)
    with pytest.raises(InvalidParameter, match="two_coins"):
        regress(0.5, [0, 1], [[1], [2]])  # type: ignore[arg-type]
    found: AnswerRegression = regress(FORCED, [0, 1, 1, 0, 1, 0], [[1], [2], [3], [2], [1], [3]])
    assert found.names == ("(intercept)", "x1")
    with pytest.raises(InvalidParameter, match="rows of 1"):
        found.predict([[1, 2]])
