from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.accounting.ledger.budget import add, amount


@given(st.fractions(min_value=0, max_denominator=10**30), st.fractions(min_value=0, max_denominator=10**30))
def test_short_sums_are_exact(first: Fraction, second: Fraction) -> None:
    assert add(first, second) == first + second
    assert amount(str(first)) == first


def test_long_sums_are_rounded_up_and_stay_short() -> None:
    total, truth = Fraction(0), Fraction(0)
    for odd in range(10**15 + 1, 10**15 + 1201, 2):
        total, truth = add(total, Fraction(1, odd)), truth + Fraction(1, odd)
    assert truth < total < truth + Fraction(600, 2**256)
    assert len(str(total)) < 400


@pytest.mark.parametrize(
    "text",
    ["", "-1", "1/0", "1e999999999", "1.5", "½", "1/", " 1", "nan", "9" * 5000, 1, 0.5, None, True, []],
)
def test_anything_but_a_fraction_is_refused(text: object) -> None:
    with pytest.raises(ValueError):
        amount(text)
