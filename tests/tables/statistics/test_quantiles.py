"""Values as declared for a forecast, and places as values; methods are tested in tests/tables/quantiles."""

import numpy as np
import pytest

from sourdine.frames import Real
from sourdine.frames.schema import span
from sourdine.tables.statistics.quantiles import Normal, _Law, _steps


def test_shares_at_and_beyond_the_ends_are_the_bounds() -> None:
    for law in (_Law("uniform", 10.0, 50.0), _Law(Normal(mean=30.0, deviation=5.0), 10.0, 50.0)):
        assert [law.quantile(share) for share in (-0.5, 0.0, 0.5, 1.0, 1.5)] == [10.0, 10.0, 30.0, 50.0, 50.0]


def test_a_quantile_is_off_by_the_wider_side() -> None:
    assert _Law("uniform", 10.0, 50.0).off(0.5, 0.25) == 10.0
    assert _Law("uniform", 10.0, 50.0).off(0.9, 0.25) == pytest.approx(10.0)
    assert _Law("uniform", 10.0, 50.0).off(0.1, 0.25) == pytest.approx(10.0)
    normal = _Law(Normal(mean=30.0, deviation=5.0), 10.0, 50.0)
    assert normal.off(0.975, 0.02) == pytest.approx(5 * (2.575829 - 1.959964), abs=1e-5)


@pytest.mark.parametrize(
    ("lower", "granularity"),
    [(-3, 0.01), (0, 0.1), (-3, 2.0**-20), (0, 1e-8), (10**12, 0.01), (95 * 10**12, 0.37)],
)
def test_places_are_the_nearest_floats_to_exact_steps(lower: int, granularity: float) -> None:
    column = Real(lower=lower, upper=lower + 7, granularity=granularity)
    most = int((column.upper - column.lower) / float(column.step))
    places = np.unique(np.linspace(0, most, 500).astype(np.int64)).astype(float)
    low = span(column)[0]
    exact = [float((low + int(place)) * column.step) for place in places]
    assert _steps(places, column).tolist() == exact
    unknown = _steps(np.array([0.0, np.nan]), column)
    assert unknown[0] == exact[0]
    assert np.isnan(unknown[1])
    assert np.isnan(_steps(np.array([np.nan]), column)).all()
