import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.core.format import counted, plain, shorten_down, shorten_up

NUMBERS = st.floats(min_value=1e-300, max_value=1e300)


@given(NUMBERS, st.integers(2, 6))
def test_shortened_numbers_lie_on_the_safe_side_and_near(number: float, digits: int) -> None:
    up, down = Decimal(shorten_up(number, digits)), Decimal(shorten_down(number, digits))
    assert down <= Decimal(repr(number)) <= up
    assert up - down <= Decimal(repr(number)) * Decimal(10) ** (1 - digits)


@given(NUMBERS)
def test_a_number_with_few_digits_stays(number: float) -> None:
    short = shorten_up(number)
    assert shorten_up(float(short)) == shorten_down(float(short)) == short


@pytest.mark.parametrize(("number", "told"), [(0.0, "0"), (math.inf, "∞"), (-math.inf, "-∞")])
def test_what_has_no_digits(number: float, told: str) -> None:
    assert shorten_up(number) == shorten_down(number) == told


@pytest.mark.parametrize(
    ("number", "told"), [(1e-5, "1e-5"), (1e10, "1e+10"), (1.5e-12, "1.5e-12"), (1, "1")]
)
def test_declared_numbers(number: float, told: str) -> None:
    assert plain(number) == told


@pytest.mark.parametrize(
    ("number", "form", "told"),
    [
        (1, ",", "1 step"),
        (0, ",", "0 steps"),
        (1500, ",", "1,500 steps"),
        (1.0, ".4g", "1 step"),
        (0.99999, ".4g", "1 step"),
        (1.5, ".4g", "1.5 steps"),
    ],
)
def test_one_is_not_many(number: float, form: str, told: str) -> None:
    assert counted(number, "step", form) == told
