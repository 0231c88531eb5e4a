from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.cli.number import number
from sourdine.core.errors import InvalidParameter


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", Fraction(1)),
        ("0.1", Fraction(1, 10)),
        (".5", Fraction(1, 2)),
        ("3.", Fraction(3)),
        ("1e-3", Fraction(1, 1000)),
        ("1/3", Fraction(1, 3)),
        ("+2", Fraction(2)),
        ("-1/2", Fraction(-1, 2)),
    ],
)
def test_reads_numbers_exactly(text: str, value: Fraction) -> None:
    assert number("demo", "epsilon", text, -10, 10) == value


@pytest.mark.parametrize(
    "text", ["", "abc", "nan", "inf", "-inf", "1/0", "0x10", "1e99999999999", "9" * 60, "1_0", "1 2", "²"]
)
def test_refuses_what_is_no_finite_number(text: str) -> None:
    with pytest.raises(InvalidParameter, match=r"The 'epsilon' of demo must be a finite number\. Got"):
        number("demo", "epsilon", text, 0, 10**100)


@pytest.mark.parametrize("text", ["-1", "0", "10.001", "1e999", "1/1000000"])
def test_refuses_what_is_out_of_range_as_it_was_typed(text: str) -> None:
    with pytest.raises(InvalidParameter, match=f"lie between 1/1000 and 10. Got '{text}'"):
        number("demo", "epsilon", text, Fraction(1, 1000), 10)


@given(st.text())
def test_any_text_ends_in_a_number_or_one_error(text: str) -> None:
    with suppress(InvalidParameter):
        assert 0 <= number("demo", "epsilon", text, 0, 100) <= 100
