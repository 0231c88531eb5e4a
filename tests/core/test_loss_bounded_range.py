import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from sourdine.core.loss import BoundedRangeLaw

EPSILONS = [0.01, 0.7, 3.0, 40.0, 900.0]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_profile_is_the_worst_over_all_places_of_the_range(epsilon: float) -> None:
    """Two outcomes, whose losses are the two ends of the range: the worst over where the range lies."""
    law = BoundedRangeLaw(epsilon)
    tops = np.linspace(0, epsilon, 20_001)
    p = np.expm1(tops - epsilon) / np.expm1(-epsilon)
    for x in np.linspace(-epsilon, epsilon, 9):
        high, low = (-np.expm1(np.minimum(0, x - loss)) for loss in (tops, tops - epsilon))
        worst = np.max(p * high + (1 - p) * low)
        assert float(law.profile(x)) == pytest.approx(worst, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_it_is_the_law_of_a_pair(epsilon: float) -> None:
    law = BoundedRangeLaw(epsilon)
    x = np.linspace(-1.2 * epsilon, 1.2 * epsilon, 401)
    above, below = law.survival(x), law.cumulative(x)
    for up, down in zip(above, below, strict=True):
        assert np.allclose(up + down, 1, rtol=0, atol=1e-12)
        assert np.all(np.diff(up) <= 0)
    assert np.allclose(above.p, law.cumulative(-x).q, rtol=1e-12, atol=0)  # both directions are alike
    weight = np.exp(np.minimum(x, 700))
    usable = x < 30
    assert np.allclose((above.p - weight * above.q)[usable], law.profile(x)[usable], atol=1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 0.7, 3.0])
def test_the_masses_of_a_short_interval_have_the_ratio_of_its_loss(epsilon: float) -> None:
    law = BoundedRangeLaw(epsilon)
    middle = np.linspace(-0.9, 0.9, 7) * epsilon
    step = 1e-3 * min(epsilon, 1.0)
    near, far = law.survival(middle - step), law.survival(middle + step)
    assert np.allclose(np.log((near.p - far.p) / (near.q - far.q)), middle, rtol=0, atol=1e-6)


def test_beyond_its_range_nothing_is_left() -> None:
    law = BoundedRangeLaw(2.0)
    assert law.survival(2.0) == (0, 0)
    assert law.survival(5.0) == (0, 0)
    assert law.survival(-2.0) == (1, 1)
    assert law.cumulative(-3.0) == (0, 0)
    assert float(law.profile(-3.0)) == pytest.approx(1 - math.exp(-3))
    assert (law.lowest, law.highest) == (-2.0, 2.0)


@given(st.lists(st.tuples(st.floats(-6, 6), st.floats(0, 1)), min_size=2, max_size=6), st.floats(0.05, 5))
def test_it_dominates_every_choice_by_scores(pairs: list[tuple[float, float]], epsilon: float) -> None:
    """Weights e^s against e^{s + d} with d between 0 and epsilon: whatever the scores."""
    scores, changes = np.array(pairs).T
    p, q = np.exp(scores), np.exp(scores + epsilon * changes)
    p, q = p / p.sum(), q / q.sum()
    law = BoundedRangeLaw(epsilon)
    for x in np.linspace(-epsilon, epsilon, 11):
        for one, other in [(p, q), (q, p)]:
            true = np.maximum(0, one - math.exp(x) * other).sum()
            assert true <= float(law.profile(x)) + 1e-12
    for order in (1.01, 2.0, 8.0, 50.0):
        divergence = logsumexp(order * np.log(p) + (1 - order) * np.log(q)) / (order - 1)
        assert divergence <= order * epsilon**2 / 8 + 1e-9


def test_small_losses_are_not_lost_to_rounding() -> None:
    mpmath.mp.prec = 200
    epsilon, x = mpmath.mpf(1e-9), mpmath.mpf(0.5e-9)
    expected = (1 - mpmath.exp((x - epsilon) / 2)) ** 2 / (1 - mpmath.exp(-epsilon))
    assert float(BoundedRangeLaw(1e-9).profile(0.5e-9)) == pytest.approx(float(expected), rel=1e-12)
