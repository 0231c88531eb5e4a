"""How values are spread as declared for a forecast; methods are tested in tests/tables/quantiles."""

import pytest

from sourdine.tables.statistics.quantiles import Normal, _Law


def test_shares_at_and_beyond_the_ends_are_the_bounds() -> None:
    for law in (_Law("uniform", 10.0, 50.0), _Law(Normal(mean=30.0, deviation=5.0), 10.0, 50.0)):
        assert [law.quantile(share) for share in (-0.5, 0.0, 0.5, 1.0, 1.5)] == [10.0, 10.0, 30.0, 50.0, 50.0]


def test_a_quantile_is_off_by_the_wider_side() -> None:
    assert _Law("uniform", 10.0, 50.0).off(0.5, 0.25) == 10.0
    assert _Law("uniform", 10.0, 50.0).off(0.9, 0.25) == pytest.approx(10.0)
    assert _Law("uniform", 10.0, 50.0).off(0.1, 0.25) == pytest.approx(10.0)
    normal = _Law(Normal(mean=30.0, deviation=5.0), 10.0, 50.0)
    assert normal.off(0.975, 0.02) == pytest.approx(5 * (2.575829 - 1.959964), abs=1e-5)
