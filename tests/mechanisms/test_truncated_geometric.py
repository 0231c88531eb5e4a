from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.mechanisms import TruncatedGeometric
from sourdine.testing import SeededBits
from tests.errors import refusal_of

SCALES = st.fractions(Fraction(1, 8), 50, max_denominator=20)


def log_law(scale: float, last: int) -> np.ndarray:
    """ln P[y | x] for all x and y, from the definition."""
    y = np.arange(last + 1)
    log_weights = -np.abs(y[:, None] - y) / scale
    return log_weights - np.log(np.exp(log_weights).sum(axis=1, keepdims=True))


def worst(law: np.ndarray, distance: int) -> float:
    """The largest log-ratio over all pairs of inputs at most so far apart, by enumeration."""
    shifts = range(1, min(distance, len(law) - 1) + 1)
    return max(float(np.abs(law[d:] - law[:-d]).max()) for d in shifts)


@given(SCALES, st.integers(1, 25), st.integers(1, 30))
def test_the_level_is_the_worst_ratio(scale: Fraction, last: int, distance: int) -> None:
    mechanism = TruncatedGeometric(scale=scale, lower=-3, upper=last - 3)
    loss = mechanism.loss(Distance.l1(distance, coordinates=1, neighbours=Neighbours.REPLACE))
    assert float(loss.epsilon) == pytest.approx(worst(log_law(float(scale), last), distance), rel=1e-9)
    assert loss.neighbours is Neighbours.REPLACE


@settings(max_examples=50)
@given(SCALES, st.integers(1, 8), st.integers(1, 8), st.integers(1, 3))
def test_a_vector_pays_for_the_worst_split(scale: Fraction, last: int, distance: int, count: int) -> None:
    law = log_law(float(scale), last)
    costs = [0.0, *(worst(law, d) for d in range(1, distance + 1))]
    splits = product(range(distance + 1), repeat=count)
    most = max(sum(costs[u] for u in split) for split in splits if sum(split) <= distance)
    mechanism = TruncatedGeometric(scale=scale, lower=0, upper=last)
    loss = mechanism.loss(Distance.l1(distance, coordinates=count))
    assert float(loss.epsilon) == pytest.approx(most, rel=1e-9)
    assert float(mechanism.loss(Distance.l1(distance)).epsilon) == pytest.approx(
        distance * costs[1], rel=1e-9
    )


def test_renormalising_costs_more_than_clamping() -> None:
    mechanism = TruncatedGeometric(scale=Fraction(1), lower=0, upper=10)
    assert mechanism.loss(Distance.l1(1)).epsilon == pytest.approx(1.21, abs=0.005)
    assert mechanism.loss(Distance.l1(10, coordinates=1)).epsilon == 10
    assert mechanism.loss(Distance.l1(11, coordinates=1)).epsilon == 10
    assert mechanism.loss(Distance.l1(0.5)).epsilon == 0


def test_huge_ranges_have_a_level() -> None:
    mechanism = TruncatedGeometric(scale=Fraction(2**40), lower=0, upper=2**30)
    assert mechanism.loss(Distance.l1(2**30, coordinates=1)).epsilon == Fraction(1, 1024)
    small = float(mechanism.loss(Distance.l1(1, coordinates=1)).epsilon)
    assert 2.0**-40 < small < 2.0**-38
    steep = TruncatedGeometric(scale=Fraction(1, 1024), lower=0, upper=2**30)
    assert steep.loss(Distance.l1(1)).epsilon == pytest.approx(1024 + np.log(1), rel=1e-12)


@given(st.fractions(Fraction(1, 100), 10, max_denominator=100), st.integers(2, 200), st.integers(1, 200))
@settings(max_examples=40)
def test_calibration_finds_the_least_scale(epsilon: Fraction, last: int, sensitivity: int) -> None:
    found = TruncatedGeometric.calibrated(epsilon=epsilon, lower=0, upper=last, sensitivity=sensitivity)
    distance = Distance.l1(sensitivity, coordinates=1)
    assert found.loss(distance).epsilon <= epsilon
    closer = TruncatedGeometric(scale=found.scale * (1 - Fraction(1, 10**6)), lower=0, upper=last)
    assert closer.loss(distance).epsilon > epsilon
    if sensitivity >= last:
        assert found.scale == last / epsilon


def test_calibration_covers_the_whole_range_by_default() -> None:
    found = TruncatedGeometric.calibrated(epsilon=Fraction(1, 2), lower=-5, upper=5)
    assert found.scale == 20
    with refusal_of("sensitivity", "TruncatedGeometric"):
        TruncatedGeometric.calibrated(epsilon=1, lower=0, upper=9, sensitivity=0)
    with refusal_of("epsilon", "TruncatedGeometric"):
        TruncatedGeometric.calibrated(epsilon=0, lower=0, upper=9)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7, 3), Fraction(40)])
def test_the_error_covers_from_every_value(scale: Fraction, confidence: float) -> None:
    error = TruncatedGeometric(scale=scale, lower=0, upper=30).error(confidence)
    law = np.exp(log_law(float(scale), 30))
    far = np.abs(np.arange(31)[:, None] - np.arange(31))
    assert (law * (far <= error)).sum(axis=1).min() >= confidence - 1e-12
    assert error == 0 or (law * (far <= error - 1)).sum(axis=1).min() < confidence + 1e-9


def test_inputs_are_clamped_and_answers_stay_inside() -> None:
    mechanism = TruncatedGeometric(scale=Fraction(5, 2), lower=-4, upper=6)
    for value, end in [(-(10**30), -4), (-5, -4), (6, 6), (2**62, 6)]:
        answers = mechanism.sample([value] * 5000, SeededBits(33))
        assert np.array_equal(answers, mechanism.sample([end] * 5000, SeededBits(33)))
        assert answers.min() == -4
        assert answers.max() == 6
    assert mechanism.sample(np.zeros((2, 3), dtype=np.int32)).shape == (2, 3)
    assert mechanism.sample(1).shape == ()
    with pytest.raises(InvalidParameter, match="must be integers"):
        mechanism.sample([0.5])


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("upper", {"upper": 0}),
        ("upper", {"upper": 2**30 + 1}),
        ("lower", {"lower": 0.5}),
        ("scale", {"scale": 2**41}),
    ],
)
def test_bad_parameters_name_themselves(name: str, fields: dict[str, object]) -> None:
    with refusal_of(name, "TruncatedGeometric"):
        TruncatedGeometric(**{"scale": 1, "lower": 0, "upper": 9} | fields)  # type: ignore[arg-type]
