import pytest

from sourdine.accounting.pld.scout import Repeated, _median, look_at
from sourdine.core.distributions import GaussianLaw, LossDistribution, pure_law


@pytest.mark.parametrize(
    ("law", "median"), [(GaussianLaw(2.0), 2.0), (GaussianLaw(0.1), 0.005), (pure_law(1.5), 1.5)]
)
def test_the_median_is_found_to_a_part_of_a_step(law: LossDistribution, median: float) -> None:
    look = look_at(Repeated(law, 1), 1e-12).look
    assert _median(law, look, 1e-3) == pytest.approx(median, abs=1e-3 / 8)
