import numpy as np
import pytest

from sourdine.accounting import known
from sourdine.core.distributions import GaussianLaw, LossDistribution, pure_law
from sourdine.core.loss import LeakyLaw


@pytest.mark.parametrize("base", [pure_law(0.7), GaussianLaw(1.3)])
@pytest.mark.parametrize("delta", [1e-9, 0.2])
def test_the_profile_is_delta_and_the_rest_of_the_base(base: LossDistribution, delta: float) -> None:
    epsilons = np.linspace(-1, 6, 50)
    expected = delta + (1 - delta) * base.profile(epsilons)
    assert LeakyLaw(base, delta).profile(epsilons) == pytest.approx(expected, abs=1e-15)


def test_a_leaky_response_is_the_law_of_one_epsilon_and_one_delta() -> None:
    epsilons = np.linspace(0, 3, 31)
    law = LeakyLaw(pure_law(1.5), 0.01)
    assert law.profile(epsilons) == pytest.approx(known(1.5, 0.01).profile(epsilons), abs=1e-15)
    assert law.infinite == 0.01


def test_masses_add_up_to_one_with_the_leaks() -> None:
    law = LeakyLaw(GaussianLaw(0.5), 0.125)
    losses = np.linspace(-2, 2, 9)
    above, below = law.survival(losses), law.cumulative(losses)
    assert above.p + below.p == pytest.approx(1.0)
    assert above.q + below.q == pytest.approx(1 - 0.125)


def test_leaks_of_leaks_add_up() -> None:
    law = LeakyLaw(LeakyLaw(pure_law(1.0), 0.1), 0.2)
    assert law.infinite == pytest.approx(1 - 0.9 * 0.8)
    assert law.infinite == pytest.approx(float(law.survival(1e9).p))
