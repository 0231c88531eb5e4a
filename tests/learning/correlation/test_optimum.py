import pytest

from sourdine.learning.correlation.factor import BandedFactor
from sourdine.learning.correlation.optimum import best_banded, best_buffered, square_root


@pytest.mark.parametrize(("steps", "bands", "published"), [(104, 64, 2.345), (365, 64, 3.025)])
def test_banded_numbers_are_the_best_known(steps: int, bands: int, published: float) -> None:
    """Figures of banded Toeplitz factors as jax_privacy's optimiser finds them."""
    assert best_banded(steps, bands).error(steps) <= published * 1.002


def test_small_changes_make_banded_numbers_worse() -> None:
    best = best_banded(60, 3)
    for place in (1, 2):
        for by in (-0.01, 0.01):
            other = list(best.coefficients)
            other[place] += by
            assert BandedFactor(steps=60, coefficients=tuple(other)).error(60) > best.error(60)


@pytest.mark.parametrize(("steps", "every"), [(52, 52), (200, 200)])
def test_three_buffers_are_better_than_the_whole_square_root(steps: int, every: int) -> None:
    root = BandedFactor(steps=steps, coefficients=tuple(square_root(steps).tolist()))
    assert best_buffered(steps, 3, every).error(every) < root.error(every)


def test_buffers_know_how_often_a_unit_comes() -> None:
    once, often = best_buffered(120, 2, 120), best_buffered(120, 2, 20)
    assert often.error(20) < once.error(20)
    assert once.error(120) < often.error(120)


def test_short_runs_have_factors_too() -> None:
    for steps in (1, 2, 3):
        assert best_banded(steps, 64).steps == best_buffered(steps, 2, steps).steps == steps
