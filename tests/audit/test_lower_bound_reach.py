import math

import pytest
from scipy.stats import beta

from sourdine.audit.lower_bound import farthest, samples_for


@pytest.mark.parametrize("samples", [1000, 1001, 4001, 10**6])
@pytest.mark.parametrize("alarm", [1e-6, 1e-3])
def test_it_is_the_bound_of_the_luckiest_audit(samples: int, alarm: float) -> None:
    trials = samples - 2 * (samples // 4)
    least = beta.ppf(alarm / 4, trials, 1)
    most = beta.isf(alarm / 4, 1, trials)
    assert farthest(samples, alarm) == pytest.approx(math.log(least / most), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 8.0, 12.0])
def test_so_many_samples_reach_it_and_much_fewer_do_not(epsilon: float) -> None:
    needed = samples_for(epsilon, 1e-6)
    assert farthest(needed, 1e-6) >= epsilon > farthest(int(0.8 * needed) - 8, 1e-6)
