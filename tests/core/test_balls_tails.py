from fractions import Fraction

import mpmath
import pytest

from sourdine.core import interval_arithmetic as balls
from sourdine.core.interval_arithmetic import any_of, gaussian_tail, laplace_tail


def summed(weight: object, start: int, reach: int) -> mpmath.mpf:
    """P[noise >= start] by summing, with fifty digits."""
    with mpmath.workdps(50):
        mass = {k: weight(k) for k in range(-reach, reach + 1)}  # type: ignore[operator]
        return mpmath.fsum(mass[k] for k in range(start, reach + 1)) / mpmath.fsum(mass.values())


@pytest.mark.parametrize("scale", [Fraction(1, 7), Fraction(3, 2), Fraction(11)])
@pytest.mark.parametrize("start", [1, 2, 9, 40])
def test_a_laplace_tail_is_what_its_masses_sum_to(scale: Fraction, start: int) -> None:
    inverse = 1 / scale
    true = summed(
        lambda k: mpmath.exp(-mpmath.mpf(abs(k)) * inverse.numerator / inverse.denominator), start, 600
    )
    found = balls.above(laplace_tail(scale, start))
    assert true <= found <= true * (1 + 1e-14)


@pytest.mark.parametrize("sigma", [Fraction(1, 3), Fraction(2), Fraction(63)])
@pytest.mark.parametrize("deviations", [0, 1, 5])
def test_a_gaussian_tail_is_summed(sigma: Fraction, deviations: int) -> None:
    start = 1 + int(deviations * sigma)
    inverse = 1 / (2 * sigma**2)
    true = summed(
        lambda k: mpmath.exp(-mpmath.mpf(k * k) * inverse.numerator / inverse.denominator),
        start,
        start + int(20 * sigma) + 20,
    )
    found = balls.above(gaussian_tail(sigma**2, start))
    assert true <= found <= true * (1 + 1e-14)


@pytest.mark.parametrize("deviations", [0, 3, 6])
def test_a_wide_gaussian_tail_is_bounded_closely(deviations: int) -> None:
    sigma = Fraction(100)
    start = 1 + 100 * deviations
    true = summed(lambda k: mpmath.exp(-mpmath.mpf(k * k) / 20000), start, 2000)
    found = balls.above(gaussian_tail(sigma**2, start))
    assert true <= found <= true * (1 + 1e-3)


@pytest.mark.parametrize("start", [0, -5])
def test_nothing_is_claimed_of_what_is_more_likely_than_not(start: int) -> None:
    assert balls.above(laplace_tail(Fraction(2), start)) >= 1
    assert balls.above(gaussian_tail(Fraction(2), start)) >= 1


@pytest.mark.parametrize(("chance", "count"), [("1e-30", 7), ("0.25", 3), ("1e-9", 1 << 30)])
def test_one_of_several_events(chance: str, count: int) -> None:
    exact = Fraction(chance)
    with mpmath.workdps(60):
        true = 1 - (1 - mpmath.mpf(exact.numerator) / exact.denominator) ** count
    found = balls.above(any_of(balls.ball(exact), count))
    assert true <= found <= true * (1 + 1e-9)
