from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.core.errors import InvalidParameter
from sourdine.frames import Real, Schema


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ({"type": "integer", "lower": 5, "upper": 5}, "lower must be below upper"),
        ({"type": "integer", "lower": 9, "upper": 5}, "lower must be below upper"),
        ({"type": "integer", "lower": 0}, "'columns.age.upper' is missing"),
        ({"type": "real", "upper": 1.0}, "'columns.age.lower' is missing"),
        ({"type": "integer", "lower": 0, "upper": 2**40}, "at most 2^31 grid steps"),
        ({"type": "integer", "lower": 2**50, "upper": 2**50 + 9}, "within 2^48 grid steps"),
        ({"type": "integer", "lower": 0, "upper": 10**400}, "up to 1e100 in size"),
        ({"type": "integer", "lower": "0", "upper": 5}, "it must be a whole number"),
        ({"type": "integer", "lower": 0, "upper": 5.5}, "it must be a whole number"),
        ({"type": "integer", "lower": 0, "upper": 5, "missing": 7}, "between the bounds"),
        ({"type": "real", "lower": float("nan"), "upper": 1.0}, "up to 1e100 in size"),
        ({"type": "real", "lower": 0.0, "upper": float("inf")}, "up to 1e100 in size"),
        ({"type": "real", "lower": 0.0, "upper": 5e-324}, "between 1e-100 and 1e100"),
        ({"type": "real", "lower": 0.0, "upper": 1.0, "missing": float("nan")}, "between the bounds"),
        ({"type": "real", "lower": 0.0, "upper": 1.0, "granularity": 0.0}, "it must be above 0"),
        ({"type": "real", "lower": 0.0, "upper": 1.0, "granularity": float("inf")}, "finite number"),
        ({"type": "real", "lower": 0.0, "upper": 1.0, "granularity": 1e-12}, "at most 2^31 grid steps"),
        ({"type": "category", "keys": []}, "it must hold at least 1"),
        ({"type": "category", "keys": ["a", "a"]}, "must not repeat"),
        ({"type": "category", "keys": ["a", 1]}, "all texts or all whole numbers"),
        ({"type": "category", "keys": [2**64]}, "fit in 64 bits"),
        ({"type": "category", "keys": ["a\0b"]}, "must not hold the character 0"),
        ({"type": "category", "keys": ["a"], "missing": "b"}, "one of the keys"),
        ({"type": "colour"}, "its 'type' must be one of 'integer', 'real'"),
        ({"lower": 0}, "its 'type' is missing"),
        ({"type": "flag", "lower": 0}, "'columns.age.lower' is unknown"),
    ],
)
def test_a_mistake_is_named_by_its_column(column: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidParameter, match=r"The declaration 'columns\.age") as caught:
        Schema.read({"age": column})
    assert sentence.lower() in str(caught.value).lower()
    assert "\n" not in str(caught.value)


@given(st.floats(-1e9, 1e9), st.floats(1e-3, 1e9))
def test_the_default_grid_cuts_the_range_into_about_a_million(lower: float, span: float) -> None:
    try:
        column = Real(lower=lower, upper=lower + span)
    except ValueError:
        return  # a narrow range far from zero has too many steps up to its bounds
    width = Fraction(repr(column.upper)) - Fraction(repr(column.lower))
    assert 2**20 <= width / column.step < 2**21
    assert column.step.numerator.bit_count() == column.step.denominator.bit_count() == 1


def test_numbers_and_keys_are_asked_for_by_name() -> None:
    schema = Schema.read({"age": {"type": "integer", "lower": 0, "upper": 9}, "well": {"type": "flag"}})
    assert schema.number("mean", "age").upper == 9
    assert schema.keys("well") == (False, True)
    with pytest.raises(InvalidParameter, match="mean needs numbers, and the column 'well'"):
        schema.number("mean", "well")
    assert schema.keys("age") == tuple(range(10))
    real = Schema.read({"pay": {"type": "real", "lower": 0, "upper": 9}})
    with pytest.raises(InvalidParameter, match="the column 'pay' is declared to hold numbers"):
        real.keys("pay")


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_a_name_that_no_engine_takes_is_refused(name: str) -> None:
    with pytest.raises(InvalidParameter, match="a column's name must not be empty"):
        Schema.read({name: {"type": "flag"}})
