import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from sourdine.core.distance import Distance
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.mechanisms import BoundedLaplace
from sourdine.testing import SeededBits
from tests.errors import refusal_of
from tests.statistics import ALARM, fit


def one(change: float | Fraction) -> Distance:
    return Distance.l1(change, coordinates=1)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(7, 3)])
def test_over_the_whole_range_the_classic_scale_is_exact(epsilon: Fraction) -> None:
    mechanism = BoundedLaplace.calibrated(epsilon=epsilon, lower=-1, upper=Fraction(9, 10), cells=777)
    assert mechanism.scale == Fraction(19, 10) / epsilon
    assert mechanism.loss(one(1.9)).epsilon <= epsilon
    assert mechanism.loss(one(Fraction(19, 10))).epsilon == epsilon
    assert mechanism.loss(one(100)).epsilon == epsilon


def test_a_small_change_costs_more_than_its_share() -> None:
    """A tenth of the range at scale (range/10)/epsilon: 1.49, and not 1 (the continuous law)."""
    mechanism = BoundedLaplace(scale=Fraction(1, 10), lower=Fraction(0), upper=Fraction(1), cells=1 << 20)
    b, change = 0.1, 0.1
    extra = (2 - math.exp(-change / b) - math.exp(-(1 - change) / b)) / -math.expm1(-1 / b)
    assert mechanism.loss(one(Fraction(1, 10))).epsilon == pytest.approx(
        change / b + math.log(extra), abs=1e-4
    )
    assert mechanism.loss(one(Fraction(1, 10))).epsilon == pytest.approx(1.49, abs=0.005)


@settings(max_examples=40)
@given(st.fractions(Fraction(1, 10), 5, max_denominator=50), st.integers(2, 60), st.integers(1, 70))
def test_no_two_values_are_told_apart_better_than_claimed(scale: Fraction, cells: int, tenths: int) -> None:
    """All places that two values so far apart can round to, by enumeration."""
    mechanism = BoundedLaplace(scale=scale, lower=Fraction(-2), upper=Fraction(3), cells=cells)
    step = Fraction(5, cells)
    far = min(int(Fraction(tenths, 10) / step) + 1, cells)
    y = np.arange(cells + 1)
    weights = np.exp(-np.abs(y[:, None] - y) * float(step / scale))
    law = np.log(weights / weights.sum(axis=1, keepdims=True))
    worst = max(float(np.abs(law[d:] - law[:-d]).max()) for d in range(1, far + 1))
    assert float(mechanism.loss(one(Fraction(tenths, 10))).epsilon) == pytest.approx(worst, rel=1e-9)


@pytest.mark.parametrize("sensitivity", [0.001, 0.25, 3, 9.9])
@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_calibration_finds_the_least_scale(epsilon: float, sensitivity: float) -> None:
    found = BoundedLaplace.calibrated(
        epsilon=epsilon, lower=0, upper=10, cells=10**6, sensitivity=sensitivity
    )
    assert found.loss(one(sensitivity)).epsilon <= epsilon
    assert found.scale > sensitivity / epsilon
    tighter = BoundedLaplace(scale=found.scale * (1 - Fraction(1, 10**6)), lower=0, upper=10, cells=10**6)
    assert tighter.loss(one(sensitivity)).epsilon > epsilon


def test_several_values_pay_each() -> None:
    mechanism = BoundedLaplace(scale=Fraction(2), lower=Fraction(0), upper=Fraction(1), cells=8)
    assert mechanism.loss(Distance.l1(3, coordinates=3)).epsilon == Fraction(3, 2)
    both = float(mechanism.loss(Distance.l1(0.5, coordinates=2)).epsilon)
    assert both == pytest.approx(2 * float(mechanism.loss(one(0.25)).epsilon), rel=1e-12)
    with pytest.raises(UnsupportedLoss, match="coordinates"):
        mechanism.loss(Distance.l1(1))


def test_answers_are_drawn_to_the_middle() -> None:
    """E[y | x = 0] = .418 of the range at epsilon 1, for the continuous law."""
    mean = quad(lambda y: y * math.exp(-y), 0, 1)[0] / quad(lambda y: math.exp(-y), 0, 1)[0]
    assert mean == pytest.approx(0.418, abs=0.0005)
    mechanism = BoundedLaplace.calibrated(epsilon=1, lower=-2, upper=2, cells=1 << 16)
    answers = mechanism.sample(np.full(400_000, -2.0), SeededBits(34))
    assert (answers.mean() + 2) / 4 == pytest.approx(mean, abs=5 * 0.29 / math.sqrt(400_000))


@pytest.mark.parametrize("value", [-3.0, 0.31, 2.0])
def test_samples_follow_the_continuous_law_and_refuse_another(value: float) -> None:
    mechanism = BoundedLaplace(scale=Fraction(7, 5), lower=Fraction(-3), upper=Fraction(2), cells=5 << 20)
    answers = mechanism.sample(np.full(200_000, value), SeededBits(35))

    def shares(scale: float) -> dict[int, float]:
        edges = np.linspace(-3, 2, 41)
        until = np.where(edges < value, np.exp((edges - value) / scale), 2 - np.exp((value - edges) / scale))
        return dict(enumerate((np.diff(until) / (until[-1] - until[0])).tolist()))

    codes = np.minimum(np.floor((answers + 3) * 8), 39).astype(np.int64)
    assert fit(codes, shares(1.4)) > ALARM
    assert fit(codes, shares(1.54)) < ALARM


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("scale", [Fraction(1, 20), Fraction(1, 2), Fraction(3)])
def test_the_error_covers_from_every_value(scale: Fraction, confidence: float) -> None:
    mechanism = BoundedLaplace(scale=scale, lower=Fraction(0), upper=Fraction(1), cells=20)
    for seed, value in enumerate([0.0, 0.024, 0.26, 0.5, 0.77, 1.0]):
        answers = mechanism.sample(np.full(50_000, value), SeededBits(seed))
        covered = np.mean(np.abs(answers - value) <= mechanism.error(confidence))
        assert covered >= confidence - 5 * math.sqrt(confidence * (1 - confidence) / 50_000)
    assert mechanism.error(confidence) <= math.nextafter(1.0, 2.0)


def test_anything_is_answered_inside_the_range() -> None:
    mechanism = BoundedLaplace.calibrated(epsilon=1, lower=0.1, upper=0.7, cells=3)
    answers = mechanism.sample([[math.nan, math.inf], [-1e308, 5]])
    assert answers.shape == (2, 2)
    assert answers.min() >= 0.1
    assert answers.max() <= 0.7
    assert mechanism.sample(0.3).shape == ()
    with pytest.raises(InvalidParameter, match="must be numbers"):
        mechanism.sample(["a"])


@pytest.mark.parametrize(
    ("name", "fields"),
    [("scale", {"scale": 2.0**42}), ("scale", {"scale": 2.0**-20}), ("cells", {"cells": 2**28 + 1})],
)
def test_bad_parameters_name_themselves(name: str, fields: dict[str, object]) -> None:
    with refusal_of(name, "BoundedLaplace"):
        BoundedLaplace(**{"scale": 1, "lower": 0, "upper": 1, "cells": 10} | fields)  # type: ignore[arg-type]
    with refusal_of("sensitivity", "BoundedLaplace"):
        BoundedLaplace.calibrated(epsilon=1, lower=0, upper=1, cells=10, sensitivity=0)
