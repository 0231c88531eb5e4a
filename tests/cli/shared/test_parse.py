from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.cli.shared.parse import decimal, number
from sourdine.core.errors import InvalidParameter
from tests.errors import refusal_of


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
    with refusal_of("epsilon", "demo"):
        number("demo", "epsilon", text, 0, 10**100)


@pytest.mark.parametrize(
    ("text", "least"),
    [("-1", "0.001"), ("0", "0.001"), ("10.001", "0.001"), ("1e999", "0.001"), ("1/1000000", "1/1000")],
)
def test_refuses_what_is_out_of_range_in_the_form_it_was_typed_in(text: str, least: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        number("demo", "epsilon", text, Fraction(1, 1000), 10)
    assert str(caught.value) == f"The 'epsilon' of demo must lie between {least} and 10. Got '{text}'."


@pytest.mark.parametrize(
    ("exact", "told"),
    [
        (0, "0"),
        (10**6, "1,000,000"),
        (Fraction(5, 2), "2.5"),
        (Fraction(1, 10**20), "1e-20"),
        (Fraction(1, 3), "1/3"),
        (Fraction(1, 2**100), "2^-100"),
        (2**100, "2^100"),
        (Fraction(10**6), "1,000,000"),
    ],
)
def test_tells_numbers_in_decimals_where_they_have_few_digits(exact: Fraction | int, told: str) -> None:
    assert decimal(exact) == told


@given(st.fractions(min_value=0, max_value=10**8))
def test_what_is_told_is_exact(exact: Fraction) -> None:
    told = decimal(exact).replace(",", "")
    if not told.startswith("2^"):
        assert Fraction(told) == exact


@given(st.text())
def test_any_text_ends_in_a_number_or_one_error(text: str) -> None:
    with suppress(InvalidParameter):
        assert 0 <= number("demo", "epsilon", text, 0, 100) <= 100
