import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.accounting.pld.discretisation import SHIFT
from sourdine.accounting.pld.lattice import lattice_from, sum_above, sum_below
from sourdine.accounting.pld.scout import Repeated, _median, look_at
from sourdine.accounting.pld.tilt import Tilt
from sourdine.core.distributions import GaussianLaw, LossDistribution, pure_law
from tests.accounting.profiles import gaussian_delta


@pytest.mark.parametrize(
    ("law", "median"), [(GaussianLaw(2.0), 2.0), (GaussianLaw(0.1), 0.005), (pure_law(1.5), 1.5)]
)
def test_the_median_is_found_to_a_part_of_a_step(law: LossDistribution, median: float) -> None:
    look = look_at(Repeated(law, 1), 1e-12).look
    assert _median(law, look, 1e-3) == pytest.approx(median, abs=1e-3 / 8)


@settings(max_examples=40)
@given(
    st.floats(-3, 3),
    st.floats(0.01, 0.2),
    st.floats(0.5, 20),
    st.sampled_from([(0.1, 25), (0.5, 1), (0.25, 4)]),
)
def test_no_origin_makes_a_bracket_wrong(
    origin: float, step: float, order: float, noise: tuple[float, int]
) -> None:
    """Gaussian noise that comes to mu = 1/2: both ends against Balle and Wang's formula, from any origin."""
    laws, tilt = [Repeated(GaussianLaw(noise[0]), noise[1])], Tilt(order, order)
    lattice = lattice_from([origin], [look_at(laws[0], 1e-12)], step, tilt)
    high, low = sum_above(laws, lattice, step, tilt), sum_below(laws, lattice, step, tilt)
    for delta in (1e-3, 1e-6):
        upper, lower = high.epsilon(delta), low.epsilon(delta) - SHIFT * noise[1]
        assert lower < upper
        assert gaussian_delta(0.5, upper) <= delta
        assert lower < 0 or gaussian_delta(0.5, lower) >= delta
    for epsilon in (0.0, 0.5, 2.0):
        assert low.delta(epsilon + SHIFT * noise[1]) <= gaussian_delta(0.5, epsilon) <= high.delta(epsilon)
