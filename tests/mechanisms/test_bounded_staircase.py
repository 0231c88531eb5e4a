import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.core.distance import Distance
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.mechanisms import BoundedLaplace, BoundedStaircase, Staircase
from sourdine.testing import SeededBits
from tests.errors import refusal_of
from tests.statistics import ALARM, fit


def log_law(drop: float, cells: int, period: int, inner: int) -> np.ndarray:
    """ln P[y | x] for all x and y, from the definition."""
    y = np.arange(cells + 1)
    log_weights = -drop * ((np.abs(y[:, None] - y) + period - inner) // period)
    return log_weights - np.log(np.exp(log_weights).sum(axis=1, keepdims=True))


def worst(law: np.ndarray, distance: int) -> float:
    """The largest log-ratio over all pairs of inputs at most so far apart and all answers."""
    return max(float(np.abs(law[d:] - law[:-d]).max()) for d in range(1, distance + 1))


def on_unit(drop: float, cells: int, period: int, inner: int) -> BoundedStaircase:
    return BoundedStaircase(
        drop=Fraction(drop), lower=Fraction(0), upper=Fraction(1), cells=cells, period=period, inner=inner
    )


def places(count: int, cells: int) -> Distance:
    """A change that moves an input by exactly so many places at most."""
    return Distance.l1(Fraction(2 * count - 1, 2 * cells), coordinates=1)


@settings(max_examples=300)
@given(
    st.sampled_from([0.001, 0.1, 0.7, 1.0, 3.0, 9.0]),
    st.integers(1, 30),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_the_level_is_the_worst_ratio(drop: float, cells: int, a: float, b: float, c: float) -> None:
    """The few candidates that the proof leaves against all pairs and all answers."""
    period = 1 + int(a * (cells - 1))
    inner = 1 + int(b * (period - 1))
    distance = 1 + int(c * (cells - 1))
    claimed = on_unit(drop, cells, period, inner).loss(places(distance, cells)).epsilon
    true = worst(log_law(drop, cells, period, inner), distance)
    assert true <= claimed <= true * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize(("epsilon", "factor"), [(0.1, 1.48), (1, 1.35), (4, 1.16)])
def test_the_step_alone_is_not_the_level(epsilon: float, factor: float) -> None:
    """With drop = epsilon the ratio exceeds epsilon: the price of renormalising that is often forgotten."""
    cells = 2048
    inner = Staircase.for_squared_error(epsilon=epsilon, sensitivity=cells).inner
    naive = on_unit(epsilon, cells, cells, inner).loss(Distance.l1(1, coordinates=1)).epsilon
    assert naive / epsilon == pytest.approx(factor, abs=0.005)
    found = BoundedStaircase.calibrated(epsilon=epsilon, lower=0, upper=1, cells=cells, inner=inner)
    assert epsilon * (1 - 1e-8) < found.loss(Distance.l1(1, coordinates=1)).epsilon <= epsilon


@pytest.mark.parametrize("sensitivity", [None, 0.001, 0.25, 3, 9.9])
@pytest.mark.parametrize("epsilon", [0.01, 1, 4])
def test_calibration_finds_the_largest_drop(epsilon: float, sensitivity: float | None) -> None:
    found = BoundedStaircase.calibrated(
        epsilon=epsilon, lower=0, upper=10, cells=300, sensitivity=sensitivity
    )
    distance = Distance.l1(sensitivity or 10, coordinates=1)
    assert found.loss(distance).epsilon <= epsilon
    far = min(int((sensitivity or 10) * 30) + 1, 300)
    true = worst(log_law(float(found.drop), 300, found.period, found.inner), far)
    assert epsilon * (1 - 1e-6) < true <= epsilon


def test_several_values_pay_each() -> None:
    mechanism = on_unit(1.0, 40, 40, 15)
    whole = mechanism.loss(Distance.l1(1, coordinates=1)).epsilon
    assert mechanism.loss(Distance.l1(1, coordinates=3)).epsilon == pytest.approx(3 * whole)
    small = mechanism.loss(Distance.l1(0.01, coordinates=3)).epsilon
    assert small == pytest.approx(3 * mechanism.loss(Distance.l1(0.01, coordinates=1)).epsilon)
    with pytest.raises(UnsupportedLoss, match="coordinates"):
        mechanism.loss(Distance.l1(1))


@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
def test_it_errs_less_than_bounded_laplace(epsilon: float) -> None:
    """At the same exact level over the whole range, on average over all inputs."""
    cells = 200
    found = BoundedStaircase.calibrated(epsilon=epsilon, lower=0, upper=1, cells=cells)
    far = np.abs(np.arange(cells + 1)[:, None] - np.arange(cells + 1)) / cells
    laplace = np.exp(
        -far / float(BoundedLaplace.calibrated(epsilon=epsilon, lower=0, upper=1, cells=cells).scale)
    )
    laplace /= laplace.sum(axis=1, keepdims=True)
    stairs = np.exp(log_law(float(found.drop), cells, found.period, found.inner))
    assert (stairs * far).sum() < (laplace * far).sum()


@pytest.mark.parametrize(("period", "inner"), [(1, 1), (7, 1), (7, 3), (7, 7), (50, 20)])
@pytest.mark.parametrize("value", [0.0, 0.34, 1.0])
def test_samples_follow_their_law_and_refuse_another(period: int, inner: int, value: float) -> None:
    answers = on_unit(0.7, 50, period, inner).sample(np.full(100_000, value), SeededBits(36))
    codes = np.rint(answers * 50).astype(np.int64)
    right, wrong = (np.exp(log_law(drop, 50, period, inner)[round(50 * value)]) for drop in (0.7, 0.77))
    assert fit(codes, dict(enumerate(right.tolist()))) > ALARM
    assert fit(codes, dict(enumerate(wrong.tolist()))) < ALARM


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
@pytest.mark.parametrize(("period", "inner"), [(3, 1), (20, 7), (20, 20)])
def test_the_error_covers_from_every_value(period: int, inner: int, confidence: float) -> None:
    error = on_unit(2.0, 20, period, inner).error(confidence)
    law = np.exp(log_law(2.0, 20, period, inner))
    far = np.abs(np.arange(21)[:, None] - np.arange(21))
    least = min(k for k in range(21) if (law * (far <= k)).sum(axis=1).min() >= confidence)
    assert error == pytest.approx(min((least + 0.5) / 20, 1), rel=1e-4)
    assert error >= min((least + 0.5) / 20, 1)


def test_anything_is_answered_inside_the_range() -> None:
    mechanism = BoundedStaircase.calibrated(epsilon=1, lower=-0.3, upper=0.7, cells=3)
    answers = mechanism.sample([[math.nan, math.inf], [-1e308, 5]])
    assert answers.shape == (2, 2)
    assert answers.min() >= -0.3
    assert answers.max() <= 0.7
    assert mechanism.sample(0).shape == ()


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("drop", {"drop": 65}),
        ("drop", {"drop": 2.0**-61}),
        ("period", {"period": 11}),
        ("inner", {"inner": 0}),
        ("inner", {"inner": 6}),
        ("cells", {"cells": 2**20 + 1}),
    ],
)
def test_bad_parameters_name_themselves(name: str, fields: dict[str, object]) -> None:
    good = {"drop": 1, "lower": 0, "upper": 1, "cells": 10, "period": 5, "inner": 2}
    with refusal_of(name, "BoundedStaircase"):
        BoundedStaircase(**good | fields)  # type: ignore[arg-type]
    for bad in ({"epsilon": 0}, {"sensitivity": -1}):
        with pytest.raises(InvalidParameter, match="of BoundedStaircase"):
            BoundedStaircase.calibrated(**{"epsilon": 1, "lower": 0, "upper": 1, "cells": 9} | bad)
